# SPDX-License-Identifier: Apache-2.0
"""Which rows of the known-answer table run when: one for each mechanism in `make test`, the others in `make soak`."""

from __future__ import annotations

from typing import Final, Literal

from tests.labs.known_answers.rows import Row

Tier = Literal["beside others", "alone", "soak"]

#: Their figures are counts, which a busy host does not change: a trial that it disturbs is INVALID, and repeated. An
#: isolated device needs two cores at the same time; next to other tests too many of its trials are disturbed.
COUNTED: Final = frozenset(
    {
        "duplicates",
        "reordering",
        "damage",
        "leak",
        "mistranslation",
        "stop",
        "count that traffic contradicts",
        "orders of enumeration of fewer",
        "table of a limit that nobody told",
        "capacity of 4 outside addresses with 100 ports",
        "loss of every fifth ack",
        "loss of every fifth fin",
        "resets",
        "SYN proxy",
        "other sequence numbers",
        "other time stamps",
    }
)
#: Why `make test` does without a row.
REPEATED: Final = {
    "throughput": "the device of `throughput, roughly`, in a longer search",
    "throughput by mlrsearch": "the device of `throughput`; the other search is held against simulated devices",
    "resolution rate": "test_resolution.py counts each query; `throughput, roughly` is searched so",
    "resolution rate, roughly": "the row before, in a shorter search",
    "connection rate": "`validated connection rate, roughly` opens connections at a known rate",
    "validated connection rate": "the device of `validated connection rate, roughly`, in a longer search",
    "loss of every 40th frame of a router": "every 50th frame, in the other direction",
    "loss of every 50th frame": "`loss of a policed device` is a share, too; truth/test_devices.py counts lost frames",
    "loss at every rate": "truth/test_stalls.py loses frames at every rate",
    "share of new connections lost": "`table of a limit that nobody told`, with another answer of fewer connections",
    "delay beyond the time limit": "truth/test_tester.py has late frames, test_procedure_connection_rate.py the doubt",
    "delay of 10000 us": "a longer delay",
    "packet delay variation, once": "of the delays of `inter packet delay variation, once`, by another formula",
    "packet delay variation": "the device of `packet delay variation, once`, three times",
    "inter packet delay variation": "the device of `inter packet delay variation, once`, three times",
    "burst into a queue": "another buffer than that of `burst into a bucket`",
    "recovery of a queue": "another overload than that of `recovery from a penalty`",
    "table capacity": "the capacity of a device that tells its limit; `table of a limit that nobody told` does not",
    "orders of enumeration": "more four tuples than in `orders of enumeration of fewer`",
    "capacity of 4 outside addresses with 64512 ports": "the same rules with fewer ports",
    "capacity of 6543 behind a deep queue": "`table of a limit that nobody told` has such a limit, without a queue",
    "capacity of 10000 behind a deep queue": "a slower device",
    "capacity of 25000 behind a deep queue": "a still slower device",
    "connection-rate behind a deep queue": "`validated connection rate, roughly` opens connections at a known rate",
    "validated-connection-rate behind a deep queue": "the queue of `connection-rate behind a deep queue`",
    "connection rate with controls that fail by chance": "unit/test_device_controls.py has commands that fail",
    "throughput behind a deep queue": "the queue of `connection-rate behind a deep queue`",
    "collapse": "simulated devices of the unit tests collapse",
    "stability": "simulated devices of unit/test_procedure_stability.py get worse; truth/test_devices.py counts losses",
    "stability of a device that gets worse": "two minutes; `stability` has a trend and a first failure in two seconds",
    "tear-down rate": "simulated devices of unit/test_procedure_tear_down.py empty as slowly",
    "loss beside stalls": "truth/test_stalls.py has loss at every rate beside stalls",
    "core burnt during a latency trial": "simulated devices of unit/test_procedure_timed.py have such stalls",
    "two versions in a series": "simulated devices of unit/test_campaign_resumed.py change their versions",
    "loss of every fifth syn": "another segment of the handshake than that of `loss of every fifth ack`",
    "loss of every fifth syn-ack": "another segment of the handshake than that of `loss of every fifth ack`",
    "leak of SYNs": "`leak` has frames that are not translated; test_audit.py has leaks of TCP",
    "second half of the handshake delayed": "a queue on the other way",
    "half-open connections up to a limit": "`table of a limit that nobody told` has such a limit",
    "connection rate with half-open connections up to a limit": "the device of the row before, in a search",
    "transaction rate, roughly": "`validated connection rate, roughly` is searched so; tcp_rows.py counts its segments",
    "mixed load of few openings": "`subscribers of few frames` opens connections beside frames, searched so, too",
    "mixed load beside a flood with a limit for each host": "as `mixed load of few openings`, searched twice",
    "mixed load beside a flood with a limit for all": "as `subscribers of few frames`, searched twice",
    "subscribers of few openings": "the device of `mixed load of few openings`, with ten seconds of phase 1",
    "subscribers of a small table": "`table of a limit that nobody told` has such a limit",
    "subscribers of a small table, by bare defaults": "the row before, its connection rate measured first",
    "new connections on a wire": "test_external.py counts the same device's connections, trial by trial",
}
#: Why a procedure has no row in `make test`.
WITHOUT_ROW: Final = {
    "cost": "devices of known cost are calibrated by themselves: tests.labs.known_costs",
    "mixed-load": "the load of `subscribers of few frames`, in frames/s; test_every_metric.py measures it",
    "resolution-rate": "the search of `throughput, roughly`; test_every_metric.py measures it",
    "stability": "periods are trials of a known load; test_every_metric.py measures it",
    "tear-down-rate": "two readings of the table's count; test_every_metric.py measures it",
    "pdv": "`inter packet delay variation, once` times the same device; test_every_metric.py measures it",
    "transaction-rate": "the search of `validated connection rate, roughly`; test_every_metric.py measures it",
}


def tier_of(row: Row) -> Tier:
    """When a row runs. `python -m tests.labs.known_answers` runs all."""
    if row.name in REPEATED:
        return "soak"
    return "beside others" if row.name in COUNTED else "alone"

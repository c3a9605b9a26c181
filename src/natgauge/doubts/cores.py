# SPDX-License-Identifier: Apache-2.0
"""Doubts about the device's cores: the tester's work on them, and cores that had time left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from natgauge.analysis.unit_frames import frames_in_all, is_of_frames, received_frames
from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.figure_text import in_percent, nanoseconds
from natgauge.figure_text import number as written
from natgauge.metrics import declared
from natgauge.metrics.shared_figures import CORE_IMBALANCE, IDLE_CORES, IN_ALL
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.search import queues
from natgauge.records.parameters import Parameters
from natgauge.words import OF_SPEED

#: A smaller share of the device's cores, taken by the tester, is less than the error of a search.
LEAST_RECEIVER_SHARE: Final = 0.01
#: Share of the busiest core's frames above the mean from which the cores are uneven: the device reaches less than two
#: thirds of what its working cores can do together. Hashing 10,000 flows over 16 cores stays below 1.15.
UNEVEN: Final = 1.5
#: Ports in the letters of ethtool.
_PORTS: Final = "fn"
#: Flows of an interface whose hashes are recorded, in their order; those of the device's inside and of its outside.
_FLOWS: Final = ("ipv4", "ipv6")
_FAMILIES: Final = ("initiator_family", "responder_family")


def _receiver(facts: Facts) -> Iterator[Said]:
    """The kernel receives a frame on the core that sent it: the tester works on an isolated device's cores, too."""
    measured, parameters = facts.measured, facts.parameters
    without = declared(measured.metric).without_frames and parameters.get("tear_down_by") in {None, "command"}
    if parameters.get("placement") != "isolated" or without:
        return
    work, receiver_ns = "the device's cores also did the tester's receive work", parameters.get("receiver_ns")
    if not isinstance(receiver_ns, int | float):
        yield Said(f"{work}; how much was not measured")
        return
    share = receiver_share(measured, parameters)
    if share is None:
        yield Said(f"{work}, {nanoseconds(receiver_ns)} a frame, which the figure includes as the device's")
    elif share >= LEAST_RECEIVER_SHARE:
        text = f"{work}, {_reception(measured, parameters)}: that alone makes the rate {in_percent(share)} too low"
        yield Said(text, value=share, grade=queues.grade_of(share))


def receiver_share(measured: MeasurementResult, parameters: Parameters) -> float | None:
    """Return the share by which the tester's receivers alone make a rate too low; 0 where another limited it.

    None = the value is no rate of frames, or the time of the receivers is not known.
    """
    receiver_ns, cores = parameters.get("receiver_ns"), parameters.get("device_cores")
    frames = _frames_of_unit(measured, parameters)
    if not frames or not isinstance(receiver_ns, int | float) or parameters.get("placement") != "isolated":
        return None
    # What another limited does not come later for that.
    if measured.limited_by not in OF_SPEED | {"time"} or not isinstance(cores, int):
        return 0.0
    return receiver_ns * 1e-9 * frames * measured.summary.median / cores


def _frames_of_unit(measured: MeasurementResult, parameters: Parameters) -> float:
    """Number of frames of one unit of the value that the tester receives; 0 where it is no rate of frames."""
    figures, median = measured.figures, measured.summary.median
    if IN_ALL in figures and median:
        return frames_in_all(median, figures, parameters) / median
    return received_frames(measured.metric, parameters)


def _reception(measured: MeasurementResult, parameters: Parameters) -> str:
    """The time of the receivers, and the time of all work for a frame, connection or query, in words."""
    number, unit = _frames_of_unit(measured, parameters), measured.unit.removesuffix("/s")
    receiver_ns, cores = parameters.get("receiver_ns"), parameters.get("device_cores")
    if not isinstance(receiver_ns, int | float) or not isinstance(cores, int):
        return ""
    whole = 1e9 * cores / measured.summary.median
    if is_of_frames(measured.metric, parameters):
        return f"{nanoseconds(receiver_ns)} of {nanoseconds(whole / number)} a frame"
    of = {"queries": "query"}.get(unit, unit.removesuffix("s"))
    return f"{number:.3g} x {nanoseconds(receiver_ns)} of {nanoseconds(whole)} a {of}"


def _idle(facts: Facts) -> Iterator[Said]:
    """A rate of several cores is the rate of the busiest core: what the others could do in addition is not seen."""
    cores, idle, _ = _work(facts)
    if idle:
        text = f"{idle} of the device's {cores} cores did next to nothing; the figure is that of {cores - idle} cores"
        yield Said(text, idle, float(idle))


def _uneven(facts: Facts) -> Iterator[Said]:
    _, _, working = _work(facts)
    if working > UNEVEN:
        text = (
            f"the busiest of the device's cores had {written(working)} times the mean frames of the working cores; a "
            f"rate that this core limits is {in_percent(1 / working)} of the rate of even cores"
        )
        yield Said(text, value=working)


def _one_pair(facts: Facts) -> Iterator[Said]:
    """A hash of addresses alone puts all frames between two addresses on one core."""
    parameters = facts.parameters
    counts = (parameters.get("source_address_count"), parameters.get("destination_address_count"))
    hashes = parameters.get("device_flow_hash")
    if counts != (1, 1) or not isinstance(hashes, list) or parameters.get("device_cores") == 1:
        return
    # What is recorded is the hash of UDP; a card may have another one for TCP.
    if (transport := parameters.get("transport")) == "tcp":
        return
    if transport == "icmp":
        yield Said("all frames have one pair of addresses, and no ports to hash, so one core gets all of them")
        return
    for port, side in zip(hashes, _FAMILIES, strict=False):
        each = _hashed(port, parameters.get(side))
        if any(fields and not {*fields} & {*_PORTS} for fields in each):
            yield Said(
                f"all frames have one pair of addresses, and an interface of the device hashes addresses only "
                f"({port}), so one core gets all of them"
            )
            return


def _hashed(port: object, family: object) -> Sequence[str]:
    """Return the fields that an interface hashes of the frames of a family; of every one where that is not known."""
    flows = port.split(", ") if isinstance(port, str) else []
    is_known = len(flows) == len(_FLOWS) and family in _FLOWS
    return [flows[_FLOWS.index(family)]] if is_known else flows


def _work(facts: Facts) -> tuple[int, int, float]:
    """Return the number of cores, of idle cores, and the imbalance of the working cores; all 0 = not known."""
    figures, cores = facts.measured.figures, facts.parameters.get("device_cores")
    if CORE_IMBALANCE not in figures or not isinstance(cores, int):
        return 0, 0, 0.0
    idle = round(figures[IDLE_CORES].median)
    return cores, idle, figures[CORE_IMBALANCE].median * (cores - idle) / cores


DOUBTS: Final = (
    Doubt(
        word="tester on device cores",
        plainly="the tester's receivers worked on the gateway's cores",
        grade="interval",
        about="result",
        holds=_receiver,
        grades="`answer` if the share is 5 % or more",
        meaning=(
            "in `isolated` placement the device's cores also run the tester's receivers. The text has their time per "
            "frame, and the share by which this alone makes a rate too low (from 1 % on). They run once for each "
            "frame: three times for a TCP connection, seven times for a transaction, twice for a query "
            "(once for its answer by a DNS server, and once for each query that this asks the far side)"
        ),
        remedy='Compare with "natgauge compare --by slices", or measure cost: both leave the tester\'s work out.',
        share="too low",
        leaves="at least",
        shows_text=True,
    ),
    Doubt(
        word="one address pair",
        plainly="all frames had one pair of addresses, so that one core of the gateway worked",
        grade="answer",
        about="result",
        holds=_one_pair,
        meaning=(
            "all frames have one source and one destination address, and an interface of the device chooses the core "
            "of a frame by its addresses alone (`device_flow_hash`; always of ICMP): one core works, whatever the "
            "number of four tuples. RFC 9693 section 3.2 and draft-lencse-bmwg-multiple-ip-addresses have several "
            "addresses for this"
        ),
        remedy="Use several addresses (--addresses draft), or let the device hash ports (--tune-device).",
        leaves="at least",
    ),
    Doubt(
        word="idle cores",
        plainly="some cores of the gateway did next to nothing",
        grade="answer",
        about="result",
        holds=_idle,
        meaning=(
            "some of the device's cores did next to nothing in the deciding trials. The figure is that of the other "
            "cores"
        ),
        remedy="Check the flow hash (RSS) and the number of queues.",
    ),
    Doubt(
        word="uneven cores",
        plainly="the cores of the gateway had uneven work",
        grade="answer",
        about="result",
        holds=_uneven,
        meaning=(
            "in the deciding trials, the busiest of the device's cores had more than 1.5 times the mean frames of the "
            "working cores. The other cores had time left, so the figure is lower than even cores would reach. Check "
            "the device's flow hash (RSS by ports), its queues, and the number of four tuples"
        ),
        remedy="Check the flow hash (RSS).",
        leaves="at least",
    ),
)

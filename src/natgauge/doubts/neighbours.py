# SPDX-License-Identifier: Apache-2.0
"""Doubts about what had a part: queues, tester, workers, servers, links, cores, and rates that were measured first.

RFC 8219 section 9.2 asks whether the tester is proven, and whether names were in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from natgauge.analysis.unit_frames import (
    asked_by_dns64,
    counted_unit,
    frames_in_all,
    frames_of,
    is_of_frames,
    most_units,
    queries_of_far_side,
    received_frames,
)
from natgauge.doubts.doubt import LONGER_TRIALS, Doubt, Facts, Said, by_grade
from natgauge.figure_text import in_percent, nanoseconds
from natgauge.figure_text import number as written
from natgauge.metrics import declared
from natgauge.metrics.metric import CORE_IMBALANCE, IDLE_CORES, IN_ALL
from natgauge.procedures.kit import queues
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.records.parameters import Parameters, differing
from natgauge.trials import Direction, Trial
from natgauge.words import OF_SPEED, PROOF_SHARE, TESTER, Verdict

#: The tester must answer a tenth more queries than a DNS64 asks (RFC 8219 section 9.2).
PROOF_MARGIN: Final = 1.1
#: Share of the queries for cached names that a server may ask the far side for again, which is the usual error of a
#: search.
MISSED: Final = 0.01
#: A rate above this share of the highest one that was tried may be the tester's.
NEAR_TOP: Final = 0.8
#: Clocks may differ by 100 ppm (RFC 5180 appendix A.1), and a search ends within 1 %.
NEAR_LINK: Final = 0.98
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


def _queues(facts: Facts) -> Iterator[Said]:
    """Frames that wait in queues at the end of a short trial still count as forwarded."""
    limit = facts.parameters.get("frame_timeout_seconds")
    waits = queues.queues_before(facts.parameters.get("placement"), facts.parameters.get("own_processes"))
    wait = limit if isinstance(limit, int | float) and waits else None
    shortest = queues.shortest_reported(facts.measured.measurements, wait)
    if wait is not None and shortest is not None:
        most = queues.most_queued_share(wait, shortest)
        text = f"queues before the device may have raised the rate by up to {in_percent(most)}"
        yield Said(text, value=most, grade=queues.grade_of(most))


def _turns(facts: Facts) -> Iterator[Said]:
    """`shared` placement means work in the sender's context; a process has one of its own.

    In `isolated` placement only a chain whose devices have cores of their own may have a core of the sender.
    """
    parameters = facts.parameters
    if parameters.get("placement") == "shared" and parameters.get("own_processes"):
        yield Said(
            "the device's own processes took turns with the tester on one core, half of which is the tester's: the "
            "rate is lower than the device's own, and turns look like stalls; measure it in placement isolated"
        )
    devices, senders = parameters.get("cpus_of_devices"), parameters.get("sender_cpus")
    if isinstance(devices, dict) and isinstance(senders, list):
        with_sender = [name for name, cpus in devices.items() if isinstance(cpus, list) and set(cpus) & set(senders)]
        if with_sender:
            yield Said(
                f"{' and '.join(with_sender)} took turns with the tester on a core: the rate is lower than the "
                "device's own, and turns look like stalls; name sender cores that no device has"
            )


def _server(facts: Facts) -> Iterator[Said]:
    """A real server is part of what is measured, if it is asked at all: a DNS64 server has known names in its cache."""
    parameters = facts.parameters
    name = parameters.get("far_side", TESTER)
    asked = queries_of_far_side(parameters)
    if name == TESTER or not asked:
        return
    version, rate = parameters.get("server_version") or name, parameters.get("server_alone")
    text, share = "its own highest rate was not measured", None
    if isinstance(rate, int | float):
        share = asked * facts.measured.summary.median / rate
        load = "this is" if asked == 1 else f"the device asked it {asked:.3g} queries for each of these, which is"
        text = (
            f"without the device it answered up to {written(rate)} queries/s{_in_time(parameters)}, and {load} "
            f"{in_percent(share)} of that"
        )
    placement, cores = parameters.get("placement"), parameters.get("device_cpus")
    way_back = ", and its cores did the device's work on the way back" if placement == "shared" else ""
    of_device = set(map(str, cores)) if isinstance(cores, list | tuple) else set()
    shared = of_device & set(str(parameters.get("server_cpus", "")).split(","))
    if shared:
        way_back = f", and it took turns with the device on core {' and '.join(sorted(shared))}"
    # The tester hands the queries on to the kernel, which takes them in where the frame arrived.
    taken_in = placement == "isolated"
    if taken_in:
        way_back += ", and the kernel took in the server's queries on the device's cores, which no figure contains"
    full = f"{version} answered and may have been the bottleneck: {text}{way_back}"
    bound = shared or taken_in or share is None or share >= NEAR_TOP
    yield Said(full, grade="answer" if bound else "information")


def _in_time(parameters: Parameters) -> str:
    """The time in which a server alone had to answer, in words; empty where it is not known."""
    limit = parameters.get("frame_timeout_seconds")
    if not isinstance(limit, int | float):
        return ""
    return f" within {limit * (PROOF_SHARE if parameters.get('kind') == 'dns64' else 1):g} s"


def _workers(facts: Facts) -> Iterator[Said]:
    """Gateways that ran in parallel have separate cores, but share caches and memory."""
    others = facts.parameters.get("beside")
    number = max((value for value in differing(others) or [others] if isinstance(value, int)), default=0)
    if number:
        name = "another worker" if number == 1 else f"{number} other workers"
        yield Said(
            f"{name} of the same machine may have measured at the same time: on other cores, but memory and the last "
            "cache were shared; to see what that costs, measure with --on local:1"
        )


def _foreign(facts: Facts) -> Iterator[Said]:
    """RFC 9693 section 4.4 requires an empty table, not only without the connections of this trial."""
    parameters = facts.parameters
    if parameters.get("fresh_trials") in ("new-tuples", "no-wait"):
        held = f"connections of earlier trials for up to {parameters.get('device_timeout')} s"
        unknown = " and may have been full, because its limit was not stated (--table-size)"
        full = "" if parameters.get("table_size") else unknown
        work = "a rate includes the work of forgetting them; --empty-command or --fresh-trials wait excludes it"
        yield Said(f"all connections were new, but the device's table held {held}{full}; {work}")


def _proof(facts: Facts) -> Iterator[Said]:
    """The tester must be proven before a DNS64 server is measured."""
    parameters = facts.parameters
    if parameters.get("kind") != "dns64":
        return
    times = PROOF_MARGIN * asked_by_dns64(parameters.get("query"))
    needed, rate = times * facts.measured.summary.median, parameters.get("server_alone")
    proven, found = False, "how many it answers was not measured"
    if isinstance(rate, int | float):
        proven, found = rate >= needed, f"it answered {written(rate)}"
    yield Said(
        f"the tester's own server is {'' if proven else 'not '}proven by RFC 8219 section 9.2, {written(needed)} "
        f"queries/s ({times:g} times this rate) within a quarter of the time: {found}",
        grade="information" if proven else "answer",
    )


def _missed(facts: Facts) -> Iterator[Said]:
    """A full cache forgets names, and the far side is asked for them again."""
    passed = [trial for trial in facts.counted if trial.plan.cached_share and trial.verdict is Verdict.PASS]
    worst = max(map(_asked_again, passed), default=0.0)
    if worst > MISSED:
        yield Said(
            f"the server asked the far side again for up to {in_percent(worst)} of the queries whose names phase 1 had "
            "put into its cache",
            value=worst,
        )


def _asked_again(trial: Trial) -> float:
    """Return the share of the queries for cached names that were asked for again.

    Queries that the server sends again for a new name count as asked again, too.
    """
    counts, plan = trial.phase2[Direction.INITIATOR], trial.plan
    each = asked_by_dns64(plan.query, plan.aaaa_share)
    again = (counts.asked or 0) - each * (1 - plan.cached_share) * counts.offered_frames
    return again / (each * plan.cached_share * counts.offered_frames)


def _link(facts: Facts) -> Iterator[Said]:
    """A full link ends the search."""
    measured = facts.measured
    most = most_units(measured.metric, facts.parameters, measured.figures)
    if most is not None and measured.summary.median >= NEAR_LINK * most:
        unit = counted_unit(measured.metric, measured.unit, facts.parameters)
        what = "frames/s of this size" if is_of_frames(measured.metric, facts.parameters) else unit
        yield Said(f"the link carries no more than {written(most)} {what}; the device may do more")


def _flow_control(facts: Facts) -> Iterator[Said]:
    """PAUSE frames (IEEE 802.3 annex 31B) turn a loss into a wait."""
    ports, flows = facts.parameters.get("ports"), facts.parameters.get("flow_control")
    if not isinstance(ports, list) or not isinstance(flows, list):
        return
    for port, flow in zip(ports, flows, strict=False):
        if flow not in ("off", "not known"):
            yield Said(
                f"flow control is on at {port} ({flow}): frames that the device has no room for wait instead of being "
                f"lost; run: ethtool -A {port} autoneg off rx off tx off"
            )


def _unknown_tester(facts: Facts) -> Iterator[Said]:
    """A cable of veths ends the search, but says nothing of what the tester can do on a card."""
    measured, parameters = facts.measured, facts.parameters
    top = parameters.get(f"search_top_phase{declared(measured.metric).phase}_rate")
    if not isinstance(top, int | float):
        return
    rate = frames_in_all(measured.summary.median, measured.figures, facts.parameters)
    near = bool(frames_of(measured.metric, parameters)) and rate >= NEAR_TOP * top
    share = f"; the result is {in_percent(rate / top)} of it and may be the tester's" if near else ""
    unit = measured.unit if measured.unit.endswith("/s") else "frames/s"
    text = f"the tester's highest rate on these ports is not known; at most {written(top)} {unit} were tried{share}"
    yield Said(text, grade="answer" if near else "information")


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
    share = _receiver_share(measured, parameters)
    if share is None:
        yield Said(f"{work}, {nanoseconds(receiver_ns)} a frame, which the figure includes as the device's")
    elif share >= LEAST_RECEIVER_SHARE:
        text = f"{work}, {_reception(measured, parameters)}: that alone makes the rate {in_percent(share)} too low"
        yield Said(text, value=share, grade=queues.grade_of(share))


def _receiver_share(measured: MeasurementResult, parameters: Parameters) -> float | None:
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
    hashes, transport = parameters.get("device_flow_hash"), parameters.get("transport")
    if counts != (1, 1) or not isinstance(hashes, list) or parameters.get("device_cores") == 1:
        return
    # What is recorded is the hash of UDP; a card may have another one for TCP.
    if transport == "tcp":
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


def _of_first(metric: str, rate: str) -> Callable[[Facts], Iterator[Said]]:
    """Return what yields the doubt: a wrong rate makes every share of it wrong."""

    def holds(facts: Facts) -> Iterator[Said]:
        others = by_grade(facts.of_first)
        if others and any(result.metric == metric for result in facts.measured.first):
            words = dict.fromkeys(doubt.word for doubt in others)
            text = (
                f"the {rate} was measured first, and has doubts of its own ({', '.join(words)}), so that rates which "
                f"are shares of it may be wrong; measure the metric {metric} to see what they say"
            )
            yield Said(text, grade=others[0].grade)

    return holds


DOUBTS: Final = (
    Doubt(
        word="queues",
        plainly="trials were so short that frames waiting in queues may have raised the rate",
        grade="interval",
        about="trial",
        holds=_queues,
        grades="`answer` if the share is 5 % or more",
        meaning=(
            "trials were so short that frames waiting in queues may have raised the rate by 1 % or more. `value` is "
            "the share"
        ),
        remedy=LONGER_TRIALS,
        share="too high",
        leaves="at most",
        foreseen=True,
    ),
    Doubt(
        word="taking turns",
        plainly="the gateway's process and the sender took turns on one core",
        grade="answer",
        about="result",
        holds=_turns,
        meaning=(
            "shared core: the device's process and the sender took turns on one core (`shared` placement); measure "
            "such a device in `isolated` placement"
        ),
        leaves="at least",
        foreseen=True,
    ),
    Doubt(
        word="real server",
        plainly="a real server answered, which may have been the limit",
        grade="answer",
        about="result",
        holds=_server,
        grades=(
            "`information` if the server had less than 80 % of the queries that it answers alone, unless the device's "
            "cores worked for it"
        ),
        meaning=(
            "a real server answered. The text has its version, its rate without the gateway, and the share of that "
            "rate. In `shared` placement its cores also did the gateway's work on the way back; in `isolated` "
            "placement the gateway's cores did the work of the kernel that takes in the server's queries"
        ),
        remedy="Measure the server alone, or use the tester as the far side.",
        leaves="at least",
    ),
    Doubt(
        word="machine shared",
        plainly="other measurements ran on the same machine",
        grade="interval",
        about="result",
        holds=_workers,
        meaning=(
            "several workers of the campaign were on one machine: each had its own cores, but they shared memory and "
            "the last-level cache"
        ),
    ),
    Doubt(
        word="table not emptied",
        plainly="the gateway's table still held connections of earlier trials",
        grade="answer",
        about="trial",
        holds=_foreign,
        meaning=(
            "on a wire: all connections of a trial were new, but the device's table still held those of earlier "
            "trials. It may have been full if nobody named its limit. Removing old connections cost a Linux NAT44 40 % "
            "of its connection rate (N = 50,000, time-out 10 s)"
        ),
        remedy="Give natgauge a command that empties the table (--empty-command).",
        leaves="at least",
    ),
    Doubt(
        word="tester proof",
        plainly="it is not shown that the tester's own server is fast enough",
        grade="answer",
        about="result",
        holds=_proof,
        grades="`information` if it is proven",
        meaning=(
            "a DNS64 server was measured. RFC 8219 section 9.2 requires that the tester's authoritative server alone "
            "answers 2(1 + 0.1) times the rate within a quarter of the time-out (half of that for queries of type A)"
        ),
        remedy="Give the far side more cores (--server-cores), or use the faster server (--far-side).",
        leaves="at least",
    ),
    Doubt(
        word="names not cached",
        plainly="fewer names were in the cache than intended",
        grade="answer",
        about="trial",
        holds=_missed,
        meaning=(
            "with `--cached-share`: the server asked the far side again for more than 1 % of the queries for names "
            "that should be in its cache, so the share of cached names was smaller"
        ),
        remedy="Use fewer names (--connections), or give the server a larger cache.",
        leaves="at least",
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
    Doubt(
        word="link limited",
        plainly="the link was the limit, so that the gateway may be faster",
        grade="answer",
        about="result",
        holds=_link,
        meaning=(
            "on a wire: the result is the theoretical maximum of the link (98 % or more of it), which counts all "
            "frames of a connection; the gateway may be faster"
        ),
        remedy="Use a faster link, or larger frames if their rate is the question.",
        leaves="at least",
        limit="the link, not the device",
        hides=True,
        ended_by="the link",
    ),
    Doubt(
        word="flow control",
        plainly="flow control let frames wait instead of being lost",
        grade="answer",
        about="result",
        holds=_flow_control,
        meaning=(
            "on a wire: a port obeys or sends PAUSE frames, so frames that the gateway has no room for wait instead of "
            "being lost. The text has the command that turns flow control off"
        ),
        leaves="at most",
    ),
    Doubt(
        word="tester unknown",
        plainly="the tester's own limit is not known",
        grade="information",
        about="result",
        holds=_unknown_tester,
        grades="`answer` if the figure is 80 % or more of the highest rate tried",
        meaning=(
            "on a wire: the tester's own limit on these ports is not known. The text has the highest rate that was "
            "tried, and says whether the result is near it"
        ),
        remedy="Measure with more sending cores (--sender-cores): a rate that stays is the device's.",
        leaves="at least",
    ),
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
    Doubt(
        word="throughput doubted",
        plainly="the throughput, of which the loads are shares, is in doubt itself",
        grade="answer",
        about="result",
        holds=_of_first("throughput", "throughput"),
        grades="`interval` or `information` if the throughput's doubts have no higher grade",
        meaning=(
            "the throughput was measured first, and has the doubts that the text names. So the rates that are shares "
            "of it (`100 %`) may be wrong; measure `throughput` by itself to see these doubts in full"
        ),
        not_stored="the result of a throughput that was measured first is not stored",
    ),
    Doubt(
        word="connection rate doubted",
        plainly="the connection rate, of which the loads are shares, is in doubt itself",
        grade="answer",
        about="result",
        holds=_of_first("connection-rate", "connection rate"),
        grades="`interval` or `information` if the connection rate's doubts have no higher grade",
        meaning=(
            "first-packet delay: the connection rate was measured first, and has the doubts that the text names, or "
            "its trials were too short to measure it. So the rates that are shares of it (`100 %`) may be wrong"
        ),
        not_stored="the result of a connection rate that was measured first is not stored",
    ),
)

# SPDX-License-Identifier: Apache-2.0
"""Doubts: what a reader must know before using a figure, derived from the facts of the measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from natgauge.analysis.unit_frames import frames_of, is_of_frames, most_units
from natgauge.metrics import declared
from natgauge.metrics.shared_figures import CORE_IMBALANCE, IDLE_CORES, IN_ALL
from natgauge.notes import Note, NoteWord, by_grade, count_of
from natgauge.other_traffic import other_traffic_note
from natgauge.procedures.kit.result.notes import excused_text
from natgauge.procedures.kit.result.results import Measurement, MeasurementResult
from natgauge.procedures.kit.search import queues
from natgauge.records.parameters import Parameters, describe, differing, shown
from natgauge.statistics.autocorrelation import are_autocorrelated, autocorrelation
from natgauge.statistics.trend import mann_kendall
from natgauge.words import TESTER, Verdict

#: A doubt reports repetitions whose lowest and highest value differ by more than this share of their median.
WIDE: Final = 0.05
#: Part of the name that QEMU gives to processors that it emulates (TCG).
_EMULATOR: Final = "QEMU TCG"
#: Notes that can occur many times: one doubt summarizes all of them.
_SUMMED: Final[frozenset[NoteWord]] = frozenset({"contradictions"})
#: Largest share of excused trials among the deciding trials; above it, the remaining trials decide nothing.
EXCUSED_TOO_OFTEN: Final = 1 / 3
#: A rate above this share of the highest one that was tried may be the tester's.
NEAR_TOP: Final = 0.8
#: A smaller share of the device's cores, taken by the tester, is less than the error of a search.
LEAST_RECEIVER_SHARE: Final = 0.01
#: Doubts of a throughput that was measured first and that another doubt of the result has already: it is always
#: searched once, and the metric that takes shares of it has a note of its own about the tolerated lag.
_REPORTED_OTHERWISE: Final[frozenset[NoteWord]] = frozenset({"single repetition", "short trials"})
#: Share of the busiest core's frames above the mean from which the cores are uneven: the device reaches less than two
#: thirds of what its working cores can do together. Hashing 10,000 flows over 16 cores stays below 1.15.
UNEVEN: Final = 1.5
#: Clocks may differ by 100 ppm (RFC 5180 appendix A.1), and a search ends within 1 %.
NEAR_LINK: Final = 0.98


def find(measured: MeasurementResult, parameters: Parameters) -> tuple[Note, ...]:
    """Every doubt, by grade; what was measured first adds one doubt of its own."""
    own = _own(measured, parameters)
    return tuple(by_grade([*own, *_measured_first(measured, parameters, own)]))


def _measured_first(measured: MeasurementResult, parameters: Parameters, own: Sequence[Note]) -> Iterator[Note]:
    """A wrong throughput makes every share of it a wrong rate."""
    inner = [doubt for result in measured.first for doubt in find(result, parameters.with_settings(result.parameters))]
    # Doubts that come from the parameters alone are the same for both.
    others = by_grade(doubt for doubt in inner if doubt.word not in _REPORTED_OTHERWISE and doubt not in own)
    if others:
        words = dict.fromkeys(doubt.word for doubt in others)
        text = (
            f"the throughput was measured first, and has doubts of its own ({', '.join(words)}), so that rates which "
            "are shares of it may be wrong; measure the metric throughput to see what they say"
        )
        yield Note("throughput doubted", text, grade=others[0].grade)


def _own(measured: MeasurementResult, parameters: Parameters) -> tuple[Note, ...]:
    """Doubts of the figures themselves."""
    return (
        *_functional(parameters),
        *_mixed(parameters),
        *_quota(parameters),
        *_excused(measured),
        *_limits(measured),
        *_repetitions(measured),
        *_autocorrelated(measured),
        *_drift(measured),
        *_trials(measured),
        *_other_traffic(measured),
        *_queues(measured, parameters),
        *_turns(parameters),
        *_server(measured, parameters),
        *_neighbours(parameters),
        *_foreign(parameters),
        *_link(measured, parameters),
        *_unknown_tester(measured, parameters),
        *_receiver(measured, parameters),
        *_cores(measured, parameters),
    )


def _functional(parameters: Parameters) -> Iterator[Note]:
    """An emulated processor takes as long for an instruction as its emulator does."""
    if parameters.get("emulated"):
        text = "the device ran on an emulated machine, which shows that it works, not how fast it is"
        yield Note("functional", text)
    elif _EMULATOR in str(parameters.get("cpu")):
        yield Note("functional", "the tester ran on an emulated machine, which shows that it works, not any speed")


def _quota(parameters: Parameters) -> Iterator[Note]:
    """A quota stops all of a process's threads for the rest of a period of, usually, 100 ms."""
    if (quota := parameters.get("cpu_quota")) is not None:
        text = (
            f"a CPU quota permitted the time of {shown(quota)} cores to the tester and the gateway together, so rates "
            "may be too low; remove the quota (docker: --cpus)"
        )
        yield Note("CPU quota", text)


def _mixed(parameters: Parameters) -> Iterator[Note]:
    """Repetitions of several devices or machines are several measurements."""
    unlike = [
        f"{describe(name).label} {', then '.join(map(shown, values))}"
        for _, name, value in parameters.items()
        if (values := differing(value))
    ]
    if unlike:
        yield Note("mixed", f"not the same for all repetitions: {'; '.join(unlike)}")


def _excused(measured: MeasurementResult) -> Iterator[Note]:
    """An excused trial is repeated, and one that passes in spite of disturbances counts: the best of several."""
    excused, trials = measured.excused, measured.trials
    if not excused:
        return
    text = excused_text(excused, sum(trials.values()))
    decided = sum(trials.values()) - trials[Verdict.INVALID]
    if excused > EXCUSED_TOO_OFTEN * (decided + excused):
        yield Note("undecided", f"{_between(measured)}{text}")
    else:
        yield Note("excused trials", text)


def _between(measured: MeasurementResult) -> str:
    """Return the remaining interval with a colon, where the metric has one."""
    known = [measurement.upper for measurement in measured.measurements if measurement.upper is not None]
    if len(known) < len(measured.measurements):
        return ""
    lower, upper = (f"{end:,.0f}" if end >= 1e5 else f"{end:,.6g}" for end in (measured.summary.minimum, max(known)))
    return f"between {lower} and {upper} {measured.unit}: "


def _limits(measured: MeasurementResult) -> Iterator[Note]:
    if measured.limited_by == "tester":
        yield Note("tester limited", "the bottleneck was the tester, not the device, which may do better")
    if measured.limited_by == "server":
        yield Note("server limited", "the bottleneck was the real server, not the device, which may do more")
    if measured.limited_by == "host":
        yield Note("host limited", "disturbances of this host were the bottleneck, not the device")
    limits = Counter(measurement.limited_by for measurement in measured.measurements)
    others = {limit: number for limit, number in limits.items() if limit != measured.limited_by}
    if others:
        named = " and ".join(f"of {number} the {limit}" for limit, number in others.items())
        most = f"of {limits[measured.limited_by]} of {limits.total()} repetitions was the {measured.limited_by}"
        text = f"the bottleneck {most}, {named}"
        yield Note("several limits", text)
    yield from (note for note in measured.notes if note.is_doubt and note.word not in _SUMMED)


def _repetitions(measured: MeasurementResult) -> Iterator[Note]:
    summary = measured.summary
    if len(summary.repetitions) == 1 and not measured.is_sampled:
        yield Note("single repetition", "a single repetition says nothing about spread")
    spread = summary.maximum - summary.minimum
    disagree = _disagree(measured.measurements)
    if disagree or spread > WIDE * abs(summary.median):
        share = f"{spread / abs(summary.median):.1%}" if summary.median else "more than all"
        values = ", ".join(f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.6g}" for value in summary.repetitions)
        beyond = f", which is more than the errors of their searches explain: {values}" if disagree else ""
        text = f"{len(summary.repetitions)} repetitions differ by {share} of their median{beyond}; {_causes(measured)}"
        yield Note("wide spread", text)


def _causes(measured: MeasurementResult) -> str:
    """Return the facts of the record that can make repetitions differ."""
    total = f"of {sum(measured.trials.values())} trials were"
    facts = {
        f"{total} disturbed": measured.disturbed,
        f"{total} excused": measured.excused,
        f"{total} INVALID": measured.trials[Verdict.INVALID],
        "loads passed one trial and failed another": count_of(measured.notes, "contradictions"),
    }
    known = [f"{number} {what}" for what, number in facts.items() if number]
    if known:
        return f"possible causes: {', '.join(known)}"
    return "no trial was disturbed: the device itself, or its place in memory, may differ between repetitions"


def _autocorrelated(measured: MeasurementResult) -> Iterator[Note]:
    """A host that drifts makes neighbours alike, and the interval of the median too narrow."""
    values = measured.summary.repetitions
    if are_autocorrelated(values):
        text = (
            f"repetitions resemble the ones before them (lag-1 autocorrelation {autocorrelation(values):.2f}); the "
            "interval of the median assumes that they are independent, and is too narrow"
        )
        yield Note("autocorrelated", text)


def _drift(measured: MeasurementResult) -> Iterator[Note]:
    """A device or a host that changes with time has no single value that more repetitions would find."""
    values = measured.summary.repetitions
    trend = mann_kendall(values)
    if trend is None or not trend.is_significant:
        return
    change, median = trend.slope * (len(values) - 1), measured.summary.median
    share = f", by {abs(change / median):.1%} of their median from the first to the last" if median else ""
    text = (
        f"repetitions {'rose' if trend.tau > 0 else 'fell'} with time{share} (Mann-Kendall test: tau {trend.tau:.2f}, "
        f"p {trend.probability:.2g}): the device or its host changed while it was measured"
    )
    yield Note("drift", text)


def _disagree(measurements: Sequence[Measurement]) -> bool:
    """Whether two searches found values farther apart than both errors together: the device has no single limit."""
    values_and_errors = sorted(
        (measurement.value, measurement.error) for measurement in measurements if measurement.error is not None
    )
    return any(
        other - value > error + its_error for (value, error), (other, its_error) in combinations(values_and_errors, 2)
    )


def _trials(measured: MeasurementResult) -> Iterator[Note]:
    trials: Mapping[str, int] = measured.trials
    total, invalid = sum(trials.values()), trials[Verdict.INVALID]
    yield from _collapsed(measured)
    if invalid:
        yield Note("INVALID trials", f"{invalid} of {total} trials were INVALID and not counted")
    if measured.disturbed:
        yield Note("disturbed trials", f"{measured.disturbed} of {total} trials were disturbed")
    contradictions = count_of(measured.notes, "contradictions")
    if contradictions:
        text = (
            f"{contradictions} loads passed one trial and failed another; the majority counts (--json names each load)"
        )
        yield Note("contradictions", text, contradictions)


def _other_traffic(measured: MeasurementResult) -> Iterator[Note]:
    """Frames that are not the test's take part of the device's time."""
    outcomes = [attempt.outcome for measurement in measured.measurements for attempt in measurement.attempts]
    yield from other_traffic_note(
        (outcome.other_traffic for outcome in outcomes if outcome.verdict is not Verdict.INVALID), "trials"
    )


def _collapsed(measured: MeasurementResult) -> Iterator[Note]:
    """Only trials of which frames were sent show a collapse; a device that did not come back gets no other ones."""
    unbegun = sum(
        attempt.outcome.verdict is Verdict.COLLAPSED and not attempt.outcome.begun
        for measurement in measured.measurements
        for attempt in measurement.attempts
    )
    collapsed = measured.trials[Verdict.COLLAPSED] - unbegun
    if not collapsed:
        return
    text = f"the device collapsed in {collapsed} of {sum(measured.trials.values()) - unbegun} trials"
    if unbegun:
        text += f"; {unbegun} more could not begin, because it did not come back"
    yield Note("collapsed", text)


def _queues(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """Yield a doubt about frames that wait in queues at the end of a short trial and still count as forwarded."""
    limit = parameters.get("frame_timeout_seconds")
    waits = queues.waits(parameters.get("placement"), parameters.get("own_processes"))
    wait = limit if isinstance(limit, int | float) and waits else None
    shortest = queues.shortest_reported(measured.measurements, wait)
    if wait is not None and shortest is not None:
        most = queues.most_share(wait, shortest)
        text = f"queues before the device may have raised the rate by up to {most:.1%}"
        yield Note("queues", text, value=most, grade=queues.grade_of(most))


def _turns(parameters: Parameters) -> Iterator[Note]:
    """`shared` placement means work in the sender's context; a process has one of its own.

    In `isolated` placement only a chain whose devices have cores of their own may have a core of the sender.
    """
    if parameters.get("placement") == "shared" and parameters.get("own_processes"):
        text = (
            "the device's own processes took turns with the tester on one core, half of which is the tester's: the "
            "rate is lower than the device's own, and turns look like stalls; measure it in placement isolated"
        )
        yield Note("taking turns", text)
    devices, senders = parameters.get("cpus_of_devices"), parameters.get("sender_cpus")
    if isinstance(devices, dict) and isinstance(senders, list):
        with_sender = [name for name, cpus in devices.items() if isinstance(cpus, list) and set(cpus) & set(senders)]
        if with_sender:
            text = (
                f"{' and '.join(with_sender)} took turns with the tester on a core: the rate is lower than the "
                "device's own, and turns look like stalls; name sender cores that no device has"
            )
            yield Note("taking turns", text)


def _server(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """Yield a doubt about a real server: it is part of what is measured."""
    name = parameters.get("far_side", TESTER)
    if name == TESTER:
        return
    version, rate = parameters.get("server_version") or name, parameters.get("server_alone")
    text, share = "its own highest rate was not measured", None
    if isinstance(rate, int | float):
        share = measured.summary.median / rate
        text = f"without the device it answered up to {rate:,.0f} queries/s, and this is {share:.0%} of that"
    way_back = (
        ", and its cores did the device's work on the way back" if parameters.get("placement") == "shared" else ""
    )
    full = f"{version} answered and may have been the bottleneck: {text}{way_back}"
    yield Note("real server", full, grade="answer" if share is None or share >= NEAR_TOP else "information")


def _neighbours(parameters: Parameters) -> Iterator[Note]:
    """Yield a doubt about gateways that ran in parallel: they have separate cores, but share caches and memory."""
    others = parameters.get("beside")
    number = max((value for value in differing(others) or [others] if isinstance(value, int)), default=0)
    if number:
        name = "another worker" if number == 1 else f"{number} other workers"
        text = (
            f"{name} of the same machine may have measured at the same time: on other cores, but memory and the last "
            "cache were shared; to see what that costs, measure with --on local:1"
        )
        yield Note("machine shared", text)


def _foreign(parameters: Parameters) -> Iterator[Note]:
    """RFC 9693 section 4.4 requires an empty table, not only without the connections of this trial."""
    if parameters.get("fresh_trials") in ("new-tuples", "no-wait"):
        held = f"connections of earlier trials for up to {parameters.get('device_timeout')} s"
        full = (
            ""
            if parameters.get("table_size")
            else " and may have been full, because its limit was not stated (--table-size)"
        )
        work = "a rate includes the work of forgetting them; --empty-command or --fresh-trials wait excludes it"
        text = f"all connections were new, but the device's table held {held}{full}; {work}"
        yield Note("table not emptied", text)


def _link(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """A full link ends the search, and PAUSE frames (IEEE 802.3 annex 31B) turn a loss into a wait."""
    most = most_units(measured.metric, parameters)
    if most is not None and measured.summary.median >= NEAR_LINK * most:
        what = "frames/s of this size" if is_of_frames(measured.metric, parameters) else measured.unit
        text = f"the link carries no more than {most:,.0f} {what}; the device may do more"
        yield Note("link limited", text)
    ports, flows = parameters.get("ports"), parameters.get("flow_control")
    if not isinstance(ports, list) or not isinstance(flows, list):
        return
    for port, flow in zip(ports, flows, strict=False):
        if flow not in ("off", "not known"):
            text = (
                f"flow control is on at {port} ({flow}): frames that the device has no room for wait instead of being "
                f"lost; run: ethtool -A {port} autoneg off rx off tx off"
            )
            yield Note("flow control", text)


def _unknown_tester(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """A cable of veths ends the search, but says nothing of what the tester can do on a card."""
    top = parameters.get(f"search_top_phase{declared(measured.metric).phase}_rate")
    if not isinstance(top, int | float):
        return
    total = measured.figures.get(IN_ALL)
    rate = measured.summary.median if total is None else total.median
    near = bool(frames_of(measured.metric, parameters)) and rate >= NEAR_TOP * top
    share = f"; the result is {rate / top:.0%} of it and may be the tester's" if near else ""
    unit = measured.unit if measured.unit.endswith("/s") else "frames/s"
    text = f"the tester's highest rate on these ports is not known; at most {top:,.0f} {unit} were tried{share}"
    yield Note("tester unknown", text, grade="answer" if near else "information")


def _receiver(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """The kernel receives a frame on the core that sent it: the tester works on an isolated device's cores, too."""
    without = declared(measured.metric).without_frames and parameters.get("tear_down_by") in {None, "command"}
    if parameters.get("placement") != "isolated" or without:
        return
    work, receiver_ns = "the device's cores also did the tester's receive work", parameters.get("receiver_ns")
    if not isinstance(receiver_ns, int | float):
        yield Note("tester on device cores", f"{work}; how much was not measured")
        return
    share = receiver_share(measured, parameters)
    if share is None:
        text = f"{work}, {receiver_ns:.0f} ns a frame, which the figure includes as the device's"
        yield Note("tester on device cores", text)
    elif share >= LEAST_RECEIVER_SHARE:
        text = f"{work}, {_reception(measured, parameters)}: that alone makes the rate {share:.1%} too low"
        yield Note("tester on device cores", text, value=share, grade=queues.grade_of(share))


def receiver_share(measured: MeasurementResult, parameters: Parameters) -> float | None:
    """Return the share by which the tester's receivers alone make a rate too low; 0 where another limited it.

    None = the value is no rate of frames, or the time of the receivers is not known.
    """
    receiver_ns, cores = parameters.get("receiver_ns"), parameters.get("device_cores")
    frames = _frames_of_unit(measured, parameters)
    if not frames or not isinstance(receiver_ns, int | float) or parameters.get("placement") != "isolated":
        return None
    # What another limited does not come later for that.
    if measured.limited_by not in ("device", "time") or not isinstance(cores, int):
        return 0.0
    return receiver_ns * 1e-9 * frames * measured.summary.median / cores


def _frames_of_unit(measured: MeasurementResult, parameters: Parameters) -> float:
    """Number of frames of one unit of the value, of all directions together; 0 where it is no rate of frames."""
    total, median = measured.figures.get(IN_ALL), measured.summary.median
    if total is not None and median:
        return total.median / median
    return sum(frame.share for frame in frames_of(measured.metric, parameters))


def _reception(measured: MeasurementResult, parameters: Parameters) -> str:
    """The time of the receivers, and the time of all work for a frame, connection or query, in words."""
    number, unit = _frames_of_unit(measured, parameters), measured.unit.removesuffix("/s")
    receiver_ns, cores = parameters.get("receiver_ns"), parameters.get("device_cores")
    if not isinstance(receiver_ns, int | float) or not isinstance(cores, int):
        return ""
    whole = 1e9 * cores / measured.summary.median
    if is_of_frames(measured.metric, parameters):
        return f"{receiver_ns:.0f} ns of {whole / number:,.0f} ns a frame"
    of = {"queries": "query"}.get(unit, unit.removesuffix("s"))
    return f"{number:.0f} x {receiver_ns:.0f} ns of {whole:,.0f} ns a {of}"


def _cores(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """A rate of several cores is the rate of the busiest core: what the others could do in addition is not seen."""
    figures, cores = measured.figures, parameters.get("device_cores")
    if CORE_IMBALANCE not in figures or not isinstance(cores, int):
        return
    busiest, idle = figures[CORE_IMBALANCE].median, round(figures[IDLE_CORES].median)
    if idle:
        text = f"{idle} of the device's {cores} cores did next to nothing; the figure is that of {cores - idle} cores"
        yield Note("idle cores", text, idle, float(idle))
    working = busiest * (cores - idle) / cores
    if working > UNEVEN:
        text = (
            f"the busiest of the device's cores had {working:.2f} times the mean frames of the working cores; a rate "
            f"that this core limits is {1 / working:.0%} of the rate of even cores; check the flow hash (RSS)"
        )
        yield Note("uneven cores", text, value=working)

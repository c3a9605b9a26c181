# SPDX-License-Identifier: Apache-2.0
"""Changes from a first run to a second one: of results, of ratios of comparisons, and of audits.

Two records with the same key have a contrast and a conclusion: of results the ratio of a metric's medians; of
comparisons the factor by which a gateway's cost, relative to the baseline, changed; of audits each verdict and class of
behaviour.

A ratio to a baseline is free of the speed of the host, so the ratio of two such ratios says whether a gateway changed.
It says so only where both comparisons have the same baseline, measured the same way: a changed baseline changes every
ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypeVar

from natgauge.analysis.conditions import COST
from natgauge.analysis.contrast import (
    Contrast,
    LeftEnds,
    Sitting,
    better,
    contrast,
    least_repetitions,
    left,
    sitting_of,
)
from natgauge.analysis.derived import Difference, comparable, different_parameters
from natgauge.analysis.ratio_verdicts import grave_doubts, margin_of
from natgauge.errors import UsageError
from natgauge.figure_text import in_percent
from natgauge.metrics.metric import Better
from natgauge.records.audit import DECIDED, AuditRecord, BehaviourClasses
from natgauge.records.comparison import FRAME_OF, ComparisonRecord, GatewayRecord, RatioEstimate
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.records.parameters import describe
from natgauge.statistics.ranks import ratio_of
from natgauge.statistics.summary import CONFIDENCE, ConfidenceInterval, MedianEstimate

#: Conclusion; "different" = verdicts or classes of behaviour differ, and neither is better.
Outcome = Literal["better", "worse", "changed", "no difference seen", "different", "cannot tell", "not compared"]

#: Reason why there is no conclusion; "" where there is one.
Reason = Literal[
    "", "one lab each", "one sitting each", "few repetitions", "limits", "doubts", "set up differently", "functional",
    "control",
]  # fmt: skip

#: Exit statuses for continuous integration; 2 to 4 are errors, as everywhere.
ALIKE: Final = 0
WORSE: Final = 1
UNKNOWN: Final = 5

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Conclusion from a change.

    Attributes:
        reason: word for the reason why there is none; "" otherwise.
        why: the same as a sentence, or the change that the noise may hide; empty otherwise.
        sitting: word for how results were measured in time; "" where their repetitions alternated.
    """

    outcome: Outcome
    reason: Reason = ""
    why: str = ""
    sitting: Sitting = ""


@dataclass(frozen=True, slots=True)
class Change(Generic[Thing]):
    """What two runs say of one thing, and the conclusion.

    Attributes:
        second: the thing in the second run.
        contrast: the second figure compared with the first; None where they have none, or must not be compared.
        control: factor (1 or more) by which the A/A controls of both runs differ from 1; infinite = not known.
    """

    first: Thing
    second: Thing
    conclusion: Conclusion
    contrast: Contrast | None = None
    differences: tuple[Difference, ...] = ()
    about: tuple[Difference, ...] = ()
    control: float = 1.0

    @property
    def outcome(self) -> Outcome:
        """The conclusion in a word."""
        return self.conclusion.outcome


@dataclass(frozen=True, slots=True)
class Changes(Generic[Thing]):
    """All changes in things of one kind, and the things that only one run has."""

    lines: tuple[Change[Thing], ...] = ()
    only_first: tuple[Thing, ...] = ()
    only_second: tuple[Thing, ...] = ()


def matched(
    first: Sequence[Thing],
    second: Sequence[Thing],
    key: Callable[[Thing], Hashable],
    unlike: Callable[[Thing, Thing], tuple[int, ...]] = lambda _mine, _its: (),
) -> tuple[list[tuple[Thing, Thing]], tuple[Thing, ...], tuple[Thing, ...]]:
    """Give each thing the partner with the same key that is most like it; each thing has at most one partner.

    Returns the pairs in the order of the first run, and the things of each run without a partner.
    """
    candidates = sorted(
        (*unlike(mine, its), abs(at - place), at, place)
        for at, mine in enumerate(first)
        for place, its in enumerate(second)
        if key(mine) == key(its)
    )
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for *_, at, place in candidates:
        if at not in partners and place not in taken:
            partners[at] = place
            taken.add(place)
    return (
        [(first[at], second[partners[at]]) for at in sorted(partners)],
        tuple(mine for at, mine in enumerate(first) if at not in partners),
        tuple(its for place, its in enumerate(second) if place not in taken),
    )


def split(
    kept: Sequence[Difference], every: Sequence[Difference]
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """Return the differences that forbid a comparison, and those of all differences that the comparison allows."""
    return tuple(kept), tuple(difference for difference in every if difference not in kept)


def side(contrast: Contrast, margin: float, control: float = 1.0) -> int:
    """Return 1 where the second figure is larger beyond the margins, -1 where it is smaller, 0 where neither is sure.

    Args:
        margin: share (0 to below 1) by which a figure may change; of a difference, a share of the larger median.
        control: further factor (1 or more) by which a ratio may differ from 1.
    """
    lowest, highest = -margin * contrast.larger, margin * contrast.larger
    if contrast.kind == "ratio":
        lowest, highest = (1 - margin) / control, control / (1 - margin)
    return (contrast.interval.lower > highest) - (contrast.interval.upper < lowest)


def verdict(side: int, wanted: Better | None) -> Outcome:
    """Return the outcome of a figure that is larger (1) or smaller (-1), by the values that are better."""
    if wanted is None:
        return "changed"
    return "better" if (side > 0) == (wanted == "higher") else "worse"


#: A sentence mentions changes from this share on that the noise may hide.
_MUCH: Final = 0.1
_EMULATED: Final = "an emulated machine shows that a device works, and its figures are not compared"
#: Sentence for repetitions that do not sample the differences between runs.
_RESULT_REMEDY: Final = (
    "the interval does not cover the differences between runs of one gateway; measure both in one campaign, whose "
    "repetitions alternate, or state how far runs may differ: --margin"
)
_SITTING: Final[dict[Sitting, str]] = {
    "one lab each": f"repetitions of one or both results share one lab, and {_RESULT_REMEDY}",
    "one sitting each": f"the results were measured at different times, and {_RESULT_REMEDY}",
}


def changes_of_results(
    first: Sequence[Result], second: Sequence[Result], *, about: Collection[str], margin: float
) -> Changes[Result]:
    """Compare results of the same metrics, those with the most similar parameters first.

    Results whose repetitions did not alternate are called better or worse only with a margin, because their repetitions
    do not show how far runs of one gateway differ on this host.
    """

    def unlike(mine: Result, its: Result) -> tuple[int, ...]:
        # Pairs that differ only in what the comparison is about come first.
        return tuple(map(len, _result_differences(mine, its, about)))

    pairs, *alone = matched(first, second, lambda result: result.metric, unlike)
    if first and second and not pairs:
        mine, its = (", ".join(dict.fromkeys(result.metric for result in run)) for run in (first, second))
        raise UsageError(
            f"diff: nothing to compare: the first run has {mine}, the second {its}; name two runs of the same metrics"
        )
    return Changes(tuple(_result_change(*pair, about, margin) for pair in pairs), *alone)


def _result_differences(
    first: Result, second: Result, about: Collection[str]
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    return split(comparable(first, second, except_for=about), comparable(first, second))


def _result_change(first: Result, second: Result, about: Collection[str], margin: float) -> Change[Result]:
    kept, allowed = _result_differences(first, second, about)
    if first.functional or second.functional:
        conclusion = Conclusion("not compared", "functional", f"{FUNCTIONAL}: {_EMULATED}")
    elif kept:
        conclusion = Conclusion("not compared", "set up differently", "; ".join(map(str, kept)))
    else:
        found = contrast(first, second)
        return Change(first, second, _result_conclusion(first, second, found, margin), found, (), allowed)
    return Change(first, second, conclusion, None, kept, allowed)


def _result_conclusion(first: Result, second: Result, found: Contrast, margin: float) -> Conclusion:
    larger, sitting = side(found, margin), sitting_of(first, second)
    if not found.sure:
        return Conclusion("cannot tell", "few repetitions", _few(first, second, found))
    kept = [left(result) for result in (first, second)]
    unknown = dict.fromkeys(word for each in kept for word in each.unknown)
    if unknown:
        return Conclusion("cannot tell", "doubts", f"doubts could change the answer: {', '.join(unknown)}")
    if not larger and not _bounded(found):
        return Conclusion("cannot tell", "limits", _limits(first, second, kept))
    if not larger:
        return Conclusion("no difference seen", why=_hidden(first, second, found), sitting=sitting)
    if sitting and not margin:
        return Conclusion("cannot tell", sitting, _SITTING[sitting], sitting)
    return Conclusion(verdict(larger, better(first.metric)), sitting=sitting)


def _limits(first: Result, second: Result, kept: Sequence[LeftEnds]) -> str:
    limits = dict.fromkeys(result.limited_by for result in (first, second))
    words = dict.fromkeys(word for each in kept for word in each.opened)
    if words and set(limits) == {"device"}:
        return f"doubts make a figure a bound: {', '.join(words)}"
    return f"the bottleneck was {' and '.join(limits)}, not the device alone"


def _few(first: Result, second: Result, found: Contrast) -> str:
    least = least_repetitions()
    return (
        f"{len(first.repetitions)} and {len(second.repetitions)} repetitions give "
        f"{in_percent(found.interval.coverage)} at most; {least} and {least} are enough for {in_percent(CONFIDENCE)}"
    )


def _bounded(found: Contrast) -> bool:
    """Whether both ends of the interval are known; the lower end 0 of a ratio is not."""
    lower, upper = found.interval.lower, found.interval.upper
    return math.isfinite(lower) and math.isfinite(upper) and (found.kind != "ratio" or lower != 0)


def _hidden(first: Result, second: Result, found: Contrast) -> str:
    """Return the change that the noise may hide, where it is large, and the spread of both runs' repetitions."""
    fall, rise = 1 - found.interval.lower, found.interval.upper - 1
    if found.kind != "ratio" or max(fall, rise) < _MUCH:
        return ""
    spreads = [(result.maximum - result.minimum) / result.median for result in (first, second)]
    return (
        f"a fall of up to {in_percent(max(0.0, fall))} or a rise of up to {in_percent(max(0.0, rise))} is possible, "
        f"because repetitions differ by {in_percent(spreads[0])} of their median in the first run and by "
        f"{in_percent(spreads[1])} in the second"
    )


_DEVICE: Final = "device"
_RATIO_REMEDY: Final = (
    "the intervals contain what differs between rounds, not what differs between two runs; compare both versions in "
    "one natgauge compare, or say how far runs may differ: --margin"
)


def changes_of_ratios(
    first: Sequence[ComparisonRecord], second: Sequence[ComparisonRecord], *, about: Collection[str], margin: float
) -> Changes[RatioEstimate]:
    """Compare the comparison of each run, gateway by gateway and quantity by quantity.

    What belongs to the device may differ for a compared gateway, never for the baseline. Ratios are called better or
    worse only with a margin, because their intervals do not contain what differs between two runs.
    """
    if not first or not second:
        return Changes((), *(tuple(each for record in run for each in record.estimates) for run in (first, second)))
    for which, records in (("first", first), ("second", second)):
        if len(records) > 1:
            raise UsageError(f"diff: the {which} run has {len(records)} comparisons; name the folder of one")
    mine, its = first[0], second[0]
    _refuse(mine, its)
    pairs, *alone = matched(mine.estimates, its.estimates, lambda estimate: (estimate.gateway, estimate.quantity))
    if not pairs:
        raise UsageError(
            f"diff: the comparisons share no gateway and quantity: the first has {_named(mine)}, the second "
            f"{_named(its)}; name two comparisons of the same gateways"
        )
    return Changes(tuple(_ratio_change(mine, its, pair, about, margin) for pair in pairs), *alone)


def _refuse(first: ComparisonRecord, second: ComparisonRecord) -> None:
    if first.by != second.by:
        raise UsageError(
            f"diff: the first comparison is by {first.by}, the second by {second.by}, which are different costs; run "
            "both with the same --by"
        )
    if first.baseline.label != second.baseline.label:
        raise UsageError(
            f"diff: the baselines are {first.baseline.label} and {second.baseline.label}; ratios to different "
            "baselines cannot be compared: run both comparisons with one baseline"
        )


def _ratio_change(
    first: ComparisonRecord,
    second: ComparisonRecord,
    pair: tuple[RatioEstimate, RatioEstimate],
    about: Collection[str],
    margin: float,
) -> Change[RatioEstimate]:
    label, quantity = pair[0].gateway, pair[0].quantity
    kept, every = (_ratio_differences(first, second, label, allowed) for allowed in (about, ()))
    known = [_estimate(estimate) for estimate in pair]
    factor = None if known[0] is None or known[1] is None else ratio_of(known[0], known[1])
    found = None if factor is None else Contrast("ratio", factor.value, factor.interval)
    control = math.prod(control_margin(record, quantity) for record in (first, second))
    grave = dict.fromkeys((*grave_doubts(first, pair[:1]), *grave_doubts(second, pair[1:])))
    conclusion = _ratio_conclusion(pair, kept, found, control, margin)
    if grave and conclusion.outcome not in ("not compared", "cannot tell"):
        conclusion = Conclusion("cannot tell", "doubts", f"doubts could change the answer: {', '.join(grave)}")
    return Change(*pair, conclusion, found, *split(kept, every), control)


def _ratio_conclusion(
    pair: tuple[RatioEstimate, RatioEstimate],
    differences: Sequence[Difference],
    found: Contrast | None,
    control: float,
    margin: float,
) -> Conclusion:
    if differences:
        return Conclusion("not compared", "set up differently", "; ".join(map(str, differences)))
    if found is None:
        texts = zip(("first", "second"), pair, strict=True)
        unknown = "; ".join(f"{which}: {estimate.text}" for which, estimate in texts if _estimate(estimate) is None)
        return Conclusion("cannot tell", "limits", unknown)
    larger = side(found, margin)
    if not larger:
        return Conclusion("no difference seen")
    if not side(found, margin, control):
        far = "any factor" if math.isinf(control) else f"up to {in_percent(control - 1)}"
        why = f"the baseline compared with itself (A/A control) differs by {far}, too"
        return Conclusion("cannot tell", "control", why)
    if not margin:
        # Two comparisons are made at different times.
        return Conclusion("cannot tell", "one sitting each", _RATIO_REMEDY)
    return Conclusion(verdict(larger, "lower"))


def _estimate(estimate: RatioEstimate) -> MedianEstimate | None:
    """The ratio with its interval; None where an end is not known."""
    if estimate.ratio is None or not estimate.low or estimate.high is None:
        return None
    interval = ConfidenceInterval(estimate.low, estimate.high, estimate.level)
    return MedianEstimate(estimate.ratio, interval, estimate.blocks)


def control_margin(record: ComparisonRecord, quantity: str) -> float:
    """Return the factor by which a true ratio of 1 seems to differ; 1 where the A/A control's interval contains 1.

    Infinite where the control has no interval: nothing is known of the noise.
    """
    control = next((estimate for estimate in record.control if estimate.quantity == quantity), None)
    if control is None or control.low is None:
        return math.inf
    return margin_of(*control.ends)


def _ratio_differences(
    first: ComparisonRecord, second: ComparisonRecord, label: str, about: Collection[str]
) -> list[Difference]:
    """Return the differences of the baselines, whose devices must not differ, then those of the gateways, each once."""
    strict = {name for name in about if name != _DEVICE and describe(name).group != _DEVICE}
    of_baseline = [
        replace(difference, label=f"baseline's {difference.label}")
        if describe(difference.name).group == _DEVICE
        else difference
        for difference in cost_differences(first.baseline, second.baseline, strict)
    ]
    own = cost_differences(first.gateway(label), second.gateway(label), about)
    return [*of_baseline, *(difference for difference in own if difference not in of_baseline)]


def cost_differences(first: GatewayRecord, second: GatewayRecord, about: Collection[str] = ()) -> list[Difference]:
    """Return the differences that move a cost; parameters and groups in `about` may differ."""
    return different_parameters(first.parameters, second.parameters, COST, except_for=about)


def _named(record: ComparisonRecord) -> str:
    return ", ".join(f"{estimate.gateway} ({FRAME_OF[estimate.quantity]})" for estimate in record.estimates)


#: Outcomes of verdicts that became another one.
_JUDGED: Final[dict[tuple[str | None, str | None], Outcome]] = {
    ("meets", "fails"): "worse",
    ("fails", "meets"): "better",
}
#: What of a change is not of a single verdict or class.
_WHOLE: Final = "audit"
#: Whether an audit saw nothing of UDP and TCP, in words.
_SEEN: Final = {True: "saw almost nothing", False: "saw something"}


@dataclass(frozen=True, slots=True)
class Examined:
    """One verdict or class of an audit.

    Attributes:
        what: requirement, such as "RFC4787-REQ-8", class, such as "mapping", or "audit" = all that it has seen; empty =
            an audit that only one run has.
        seen: verdict or class; None = it was not examined.
        measured: what was measured; empty for classes.
    """

    gateway: str
    what: str = ""
    transport: str = ""
    seen: str | None = None
    measured: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is what the whole audit has seen."""
        return self.what == _WHOLE

    @property
    def is_decided(self) -> bool:
        """Whether it is a verdict, and the audit could tell."""
        return self.seen in DECIDED


@dataclass(frozen=True, slots=True)
class Differing:
    """Verdicts of an audit next to those of another one, each as `RFC4787-REQ-8 (udp)`.

    `fails` and `meets` are those in which the other one differs; of `one_sided` only one audit has a verdict.
    """

    fails: tuple[str, ...]
    meets: tuple[str, ...]
    also_fails: tuple[str, ...]
    one_sided: tuple[str, ...]

    @property
    def number(self) -> int:
        """Number of verdicts that differ."""
        return len(self.fails) + len(self.meets)


def differing(mine: AuditRecord, other: AuditRecord) -> Differing:
    """Return the verdicts in which an audit differs from another one of the same conditions."""
    of_other = {(one.key, one.transport): one for one in other.requirements}
    found: dict[str, list[str]] = {"fails": [], "meets": [], "also_fails": [], "one_sided": []}
    for one in sorted(mine.requirements, key=lambda each: each.urgency):
        its = of_other.get((one.key, one.transport))
        if its is None or one.is_decided != its.is_decided:
            kind = "one_sided"
        elif one.verdict == its.verdict:
            kind = "also_fails" if one.verdict == "fails" else ""
        else:
            kind = one.verdict if one.is_decided else ""
        if kind:
            found[kind].append(f"{one.key} ({one.transport})")
    return Differing(**{kind: tuple(names) for kind, names in found.items()})


def unlike(mine: Mapping[str, object], other: Mapping[str, object], about: Collection[str] = ()) -> list[str]:
    """Return the conditions in which two audits differ, as texts; those that only one of both has are not known."""
    return [
        f"{name} {_shown(value)} and {_shown(other[name])}"
        for name, value in mine.items()
        if name in other and other[name] != value and name not in about
    ]


def _shown(value: object) -> str:
    return "not set" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def changes_of_audits(
    first: Sequence[AuditRecord], second: Sequence[AuditRecord], about: Collection[str]
) -> Changes[Examined]:
    """Compare audits of the same gateways; single audits are compared whatever their gateways are.

    Audits whose conditions differ are refused, unless `about` has the names of these.
    """
    single = len(first) == len(second) == 1
    pairs, *alone = matched(first, second, lambda record: single or record.gateway)
    if first and second and not pairs:
        raise UsageError("diff: the audits have no gateway in common; name two folders with audits of the same one")
    for before, after in pairs:
        if differences := unlike(before.conditions, after.conditions, about):
            raise UsageError(
                f"diff: {before.gateway}: audits with different options are not compared ({'; '.join(differences)}); "
                "audit both with the same ones, or allow a difference by --about"
            )
    lines = tuple(change for pair in pairs for change in _audit_changes(*pair))
    return Changes(lines, *(tuple(Examined(record.gateway) for record in records) for records in alone))


def _audit_changes(first: AuditRecord, second: AuditRecord) -> Iterator[Change[Examined]]:
    """Yield that nothing can be told, where an audit saw nothing; then each class and verdict."""
    if first.saw_nothing or second.saw_nothing:
        before, after = (Examined(one.gateway, _WHOLE, seen=_SEEN[one.saw_nothing]) for one in (first, second))
        yield Change(before, after, Conclusion("cannot tell", why="an audit saw almost nothing"))
    for mine, its in zip(_examined(first), _examined(second), strict=True):
        for key in {**mine, **its}:
            before, after = mine.get(key, Examined(first.gateway, *key)), its.get(key, Examined(second.gateway, *key))
            yield _audit_change(before, after)


def _examined(record: AuditRecord) -> tuple[dict[tuple[str, str], Examined], ...]:
    classes = {
        (name, str(transport)): Examined(record.gateway, name, transport, getattr(each, name))
        for transport, each in record.classes.items()
        for name in BehaviourClasses.model_fields
    }
    verdicts = {
        (one.key, str(one.transport)): Examined(record.gateway, one.key, one.transport, one.verdict, one.measured)
        for one in record.requirements
    }
    return classes, verdicts


def _audit_change(first: Examined, second: Examined) -> Change[Examined]:
    other: Outcome = "no difference seen" if first.seen == second.seen else "different"
    if first.seen == "meets" and not second.is_decided:
        other = "cannot tell"
    return Change(first, second, Conclusion(_JUDGED.get((first.seen, second.seen), other)))

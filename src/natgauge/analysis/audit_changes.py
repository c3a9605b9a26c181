# SPDX-License-Identifier: Apache-2.0
"""Audits of two runs: each verdict and class of behaviour in both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.change import Change, Changes, Conclusion, Outcome, matched
from natgauge.errors import UsageError
from natgauge.records.audit import DECIDED, AuditRecord, BehaviourClasses

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


def changes(
    first: Sequence[AuditRecord], second: Sequence[AuditRecord], about: Collection[str] = ()
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
    lines = tuple(change for pair in pairs for change in (*_unseen(*pair), *_changes(*pair)))
    return Changes(lines, *(tuple(Examined(record.gateway) for record in records) for records in alone))


def _unseen(first: AuditRecord, second: AuditRecord) -> Iterator[Change[Examined]]:
    """Yield that nothing can be told of a pair of audits, where one of them saw nothing."""
    if first.saw_nothing or second.saw_nothing:
        before, after = (Examined(one.gateway, _WHOLE, seen=_SEEN[one.saw_nothing]) for one in (first, second))
        yield Change(before, after, Conclusion("cannot tell", why="an audit saw almost nothing"))


def _changes(first: AuditRecord, second: AuditRecord) -> list[Change[Examined]]:
    return [
        _change(before.get(key, Examined(first.gateway, *key)), after.get(key, Examined(second.gateway, *key)))
        for before, after in zip(_examined(first), _examined(second), strict=True)
        for key in {**before, **after}
    ]


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


def _change(first: Examined, second: Examined) -> Change[Examined]:
    other: Outcome = "no difference seen" if first.seen == second.seen else "different"
    if first.seen == "meets" and not second.is_decided:
        other = "cannot tell"
    return Change(first, second, Conclusion(_JUDGED.get((first.seen, second.seen), other)))

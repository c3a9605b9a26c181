# SPDX-License-Identifier: Apache-2.0
"""Audits for people: classes of behaviour, and a line for each requirement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from typing import Final

from natgauge.analysis.run_changes import differing, unlike
from natgauge.figure_text import with_noun
from natgauge.records.audit import LEVELS, AuditedRequirement, AuditRecord, AuditVerdict, BehaviourClasses
from natgauge.reports.answers import Sentence
from natgauge.reports.labels import grouped
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.reports.text import answered
from natgauge.words import listed

#: Classes of behaviour, in the order of the tables.
CLASSES: Final = tuple(BehaviourClasses.model_fields)
#: Failed requirements that are named, each with its text where the gateway must meet it.
_MOST_FAILED: Final = 10
#: Most frequent reasons that are named where an audit has no verdict; often one for each transport.
_REASONS: Final = 3
#: A class that no examination asks for.
_NOT_EXAMINED: Final = "-"
#: Mark before each verdict, which nobody needs colours for.
MARKS: Final[Mapping[AuditVerdict, str]] = {"fails": "✗", "not seen": "?", "meets": "✓", "not applicable": "-"}
_PORTS: Final = "If its rules accept only some ports, name these in its recipe: destination_ports, below [limits]."
_SAW_NOTHING: Final = f"This audit saw almost nothing: {{}} has no verdict on UDP and TCP. {_PORTS}"
#: Conditions by other words than their names.
_NAMED: Final = {"lab_kind": "lab", "wait": "longest wait"}


def text(records: Sequence[AuditRecord], width: int | None = None) -> str:
    """Return the answer, the verdicts, and the classes of behaviour; of several audits a column for each.

    Args:
        width: most characters of a line; None = any.
    """
    shown = table(records, marked=True)
    evidence = "\n".join(f"Evidence: {record.results}" for record in records)
    return f"{answered(answers(records), shown, width)}\n{evidence}"


def answers(records: Sequence[AuditRecord]) -> list[Sentence]:
    """Return the answer of an audit; of several, how the first one differs from each of the others."""
    first, *others = records
    if not others:
        answer, *rest = sentences(first)
        return [answer, *_untested([first]), *rest, Sentence(f"Conditions: {conditions(first)}.")]
    mine, *its = names_of(records)
    compared = [list(_compared(first, other, mine, name)) for other, name in zip(others, its, strict=True)]
    # Of several, the table has the rest.
    found = compared[0] if len(compared) == 1 else [each[0] for each in compared]
    named = list(zip((mine, *its), records, strict=True))
    doubts = [doubt for name, record in named for doubt in _doubts(record, f" about {name}")]
    by_conditions = grouped((conditions(record), name) for name, record in named)
    shared = (Sentence(f"Conditions of {listed(names)}: {each}.") for each, names in by_conditions.items())
    return [*found, *_untested(records), *doubts, *shared]


def _untested(records: Sequence[AuditRecord]) -> Iterator[Sentence]:
    """Say where no time was given for time-outs."""
    without = [name for name, record in zip(names_of(records), records, strict=True) if not record.wait_seconds]
    if without:
        of = f" of {listed(without)}" if len(without) < len(records) else ""
        yield Sentence(f"Time-outs{of} were not tested (longest wait 0 s).")


def names_of(records: Sequence[AuditRecord]) -> list[str]:
    """Return the names of the gateways; one that occurs twice is numbered."""
    names = [record.gateway for record in records]
    return [f"{name} ({at})" if names.count(name) > 1 else name for at, name in enumerate(names, start=1)]


def table(records: Sequence[AuditRecord], *, marked: bool = False) -> Sheet:
    """Return the table of one audit, or one with a column for each of several.

    Verdicts are `marked` where people read them.
    """
    return sheet(records[0], marked=marked) if len(records) == 1 else chart(records, marked=marked)


def conditions(record: AuditRecord) -> str:
    """Return the choices that a verdict may depend on, and the programs of the device, in words.

    An audit without time-outs has a sentence on that.
    """
    chosen = (
        f"{_NAMED.get(name, name.replace('_', ' '))} {f'{value:g} s' if name == 'wait' else value}"
        for name, value in record.conditions.items()
        if value is not None and not isinstance(value, list | dict) and not (name == "wait" and value == 0)
    )
    versions = (record.device or {}).get("version")
    return ", ".join([*chosen, *(map(str, versions) if isinstance(versions, list) else ())])


def _compared(first: AuditRecord, other: AuditRecord, mine: str, its: str) -> Iterator[Sentence]:
    """Yield the verdicts in which an audit differs from another one."""
    if differences := unlike(first.conditions, other.conditions):
        text = f"{mine} is not compared with {its}, whose audit had other options"
        yield Sentence(f"{text}: {'; '.join(differences)}.", leads=True)
        return
    found = differing(first, other)
    parts = [f"{mine} fails {_counted(found.fails)} that {its} meets"] if found.fails else []
    parts += [f"{mine} meets {_counted(found.meets)} that {its} fails"] if found.meets else []
    verdicts = with_noun(found.number or "No", "verdicts differ", "verdict differs")
    where = ", of those that both have" if found.one_sided else ""
    yield Sentence(f"{verdicts} from {its}{where}{': ' if parts else ''}{'; '.join(parts)}.", leads=True)
    if found.also_fails:
        yield Sentence(f"Both fail {_counted(found.also_fails)}.")
    if found.one_sided:
        yield Sentence(f"Only one of both has a verdict on {_counted(found.one_sided)}.")


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} ({listed(names)})"


def sentences(record: AuditRecord) -> list[Sentence]:
    """Return the answer: how many requirements the gateway meets, and which it fails."""
    decided = [one for one in record.requirements if one.is_decided]
    if not decided:
        reasons = Counter(one.measured for one in record.requirements if one.verdict == "not seen")
        return [
            Sentence(
                f"{record.gateway} has no verdict on any of {with_noun(len(record.requirements), 'requirements')}.",
                leads=True,
            ),
            *(Sentence(f"Reason for {number} of them: {reason}.") for reason, number in reasons.most_common(_REASONS)),
            *([Sentence(_PORTS)] if record.saw_nothing else []),
            *_doubts(record),
        ]
    unseen = [Sentence(_SAW_NOTHING.format(record.gateway))] if record.saw_nothing else []
    found = [*unseen, Sentence(_counts(record))]
    found[0] = replace(found[0], leads=True)
    found += _unseen(record)
    for level in LEVELS:
        failed = [one for one in decided if one.verdict == "fails" and one.level == level]
        if failed:
            named = _subjects(failed) if level == "MUST" else listed([_source(one) for one in failed])
            found.append(Sentence(f"It fails {len(failed)} of level {level}: {named}."))
    return [*found, *_doubts(record)]


def _counts(record: AuditRecord) -> str:
    """Say how many requirements there are, and how many of each verdict; levels where they matter."""
    verdicts = Counter(one.verdict for one in record.requirements)
    levels = Counter((one.verdict, one.level) for one in record.requirements)
    failed = ", ".join(f"{levels['fails', level]} {level}" for level in LEVELS if levels["fails", level])
    fails = f"{verdicts['fails']} ({failed})" if failed else "none"
    musts = levels["not seen", "MUST"]
    left: dict[AuditVerdict, str] = {
        "not seen": f": the audit cannot tell{f', {musts} of them MUST' if musts else ''}",
        "not applicable": "",
    }
    number = sum(verdicts[word] for word in left)
    parts = "; ".join(f"{verdicts[word]} {word}{more}" for word, more in left.items() if verdicts[word])
    of = f"Of {with_noun(len(record.requirements), 'requirements')} {record.gateway} meets {verdicts['meets']}"
    return f"{of} and fails {fails}{f'; no verdict on {number} ({parts})' if number else ''}."


def _source(one: AuditedRequirement) -> str:
    return f"RFC {one.rfc} {one.requirement} ({one.transport.upper()})"


def _subjects(failed: Sequence[AuditedRequirement]) -> str:
    """Return what is required, each once with the requirements that say so."""
    named = ((one.text, f"RFC {one.rfc} {one.requirement} {one.transport.upper()}") for one in failed[:_MOST_FAILED])
    more = len(failed) - _MOST_FAILED
    texts = [f"{text} ({', '.join(sources)})" for text, sources in grouped(named).items()]
    return "; ".join([*texts, *([f"{more} more"] if more > 0 else [])])


def _unseen(record: AuditRecord) -> Iterator[Sentence]:
    """Name the transports whose classes of behaviour the audit did not see, each with the most frequent reason."""
    for transport, behaviour in record.classes.items():
        reasons = Counter(
            one.measured for one in record.requirements if (one.transport, one.verdict) == (transport, "not seen")
        )
        if reasons and not any(getattr(behaviour, name) for name in CLASSES):
            reason, _ = reasons.most_common(1)[0]
            yield Sentence(f"No class of behaviour was seen for {transport.upper()}: {reason}.")


def _doubts(record: AuditRecord, about: str = "") -> list[Sentence]:
    return [Sentence(f"Doubt{about}: {doubt}.") for doubt in record.doubts]


def sheet(record: AuditRecord, *, marked: bool = False) -> Sheet:
    """Return the table of an audit: a line for each requirement and transport, failures first."""
    lines = [SheetRow("requirement", ("verdict", "level", "transport", "what is required; what was measured"))]
    for one in sorted(record.requirements, key=lambda each: each.urgency):
        cells = (said(one, marked=marked), one.level, one.transport, f"{one.text}; measured: {one.measured}")
        lines.append(SheetRow(f"RFC {one.rfc} {one.requirement}", cells))
    behaviour = [_behaviour(transport, seen) for transport, seen in record.classes.items()]
    return Sheet(tuple(lines), tuple(behaviour))


def _behaviour(transport: str, seen: BehaviourClasses) -> str:
    """The classes of a gateway's behaviour that were examined, as a sentence."""
    every = ((name, _class(transport, name, seen)) for name in CLASSES)
    return f"{transport.upper()}: {', '.join(' '.join(each) for each in every if each[1] != _NOT_EXAMINED)}."


def _class(transport: str, name: str, seen: BehaviourClasses | None) -> str:
    """A class of behaviour; echo messages are not examined for hairpinning."""
    is_examined = (transport, name) != ("icmp", "hairpinning")
    return getattr(seen, name, None) or ("not seen" if is_examined else _NOT_EXAMINED)


def said(one: AuditedRequirement, *, marked: bool) -> str:
    """Return the verdict, and what the recipe declares where that differs."""
    declared = "" if not one.differs else f" (declared: {'meets' if one.declared else 'fails'})"
    return f"{MARKS[one.verdict]} {one.verdict}{declared}" if marked else f"{one.verdict}{declared}"


def rows_of(records: Sequence[AuditRecord]) -> list[tuple[str, tuple[AuditedRequirement | None, ...]]]:
    """Return a heading for each requirement, with the verdict of each audit; None = it did not examine the requirement.

    What distinguishes the audits comes first, then failures of the first audit that has it.
    """
    every = [{(one.rfc, one.requirement, one.transport): one for one in record.requirements} for record in records]
    rows = []
    for key in dict.fromkeys(key for each in every for key in each):
        verdicts = tuple(each.get(key) for each in every)
        examined = [one for one in verdicts if one is not None]
        decided, one = {each.verdict for each in examined if each.is_decided}, examined[0]
        heading = f"RFC {one.rfc} {one.requirement}, {one.transport.upper()} ({one.level}): {one.text}"
        rows.append(((len(decided) < 2, *one.urgency), (heading, verdicts)))
    return [row for _, row in sorted(rows, key=itemgetter(0))]


def chart(records: Sequence[AuditRecord], *, marked: bool = False) -> Sheet:
    """Return one table of several audits: a column for each gateway, a row for each requirement and class."""
    lines = [SheetRow("requirement", tuple(names_of(records)))]
    for heading, verdicts in rows_of(records):
        cells = tuple("-" if one is None else said(one, marked=marked) for one in verdicts)
        lines.append(SheetRow(heading, cells))
    lines += classes(records)
    return Sheet(tuple(lines), tuple(_differing(records)))


def classes(records: Sequence[AuditRecord]) -> list[SheetRow]:
    """Return a row for each class of behaviour that an audit saw, with a cell for each audit."""
    lines = []
    for transport in ("udp", "tcp", "icmp"):
        for name in CLASSES:
            seen = [record.classes.get(transport) for record in records]
            if any(getattr(one, name, None) for one in seen):
                cells = (_class(transport, name, one) for one in seen)
                lines.append(SheetRow(f"{name}, {transport.upper()}", tuple(cells)))
    return lines


def behaviour(records: Sequence[AuditRecord]) -> list[SheetRow]:
    """Return the table of the classes with its head: a column for each transport of one audit, for each of several."""
    if len(records) > 1:
        return [SheetRow("behaviour", tuple(names_of(records))), *classes(records)]
    seen = records[0].classes
    lines = [SheetRow(name, tuple(_class(of, name, one) for of, one in seen.items())) for name in CLASSES]
    return [SheetRow("behaviour", tuple(map(str.upper, seen))), *lines]


def differences(records: Sequence[AuditRecord]) -> list[dict[str, object]]:
    """Return, for programs, how the first audit differs from each of the others."""
    first, *others = records
    return [
        {
            "gateway": first.gateway,
            "against": other.gateway,
            "unlike": list(unlike(first.conditions, other.conditions)),
            **asdict(differing(first, other)),
        }
        for other in others
    ]


def _differing(records: Sequence[AuditRecord]) -> Iterator[str]:
    """Yield a sentence for each verdict that is not as the recipe declares."""
    for record in records:
        for one in record.requirements:
            if one.differs:
                says = "meets" if one.declared else "fails"
                yield f"{record.gateway}: its recipe declares that it {says} {one.key}, but: {one.measured}."

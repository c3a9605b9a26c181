# SPDX-License-Identifier: Apache-2.0
"""The head of a page or table: a title in plain words, when and where it was measured, and which gateways there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from natgauge.analysis.unit_frames import mix_of, own_size
from natgauge.figure_text import in_full
from natgauge.metrics import declared
from natgauge.plain_text import one_line
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.records.store import date_of, moment_of
from natgauge.reports import audit, main_figure, markup
from natgauge.reports.collected import StoredAudit, StoredComparison, StoredResults
from natgauge.reports.failures import MeasurementFailure
from natgauge.reports.labels import grouped
from natgauge.reports.markup import plain
from natgauge.reports.rows import open_at_once, unit_of
from natgauge.words import listed


@dataclass(frozen=True, slots=True)
class OwnWords:
    """The user's own words for a report; empty = none."""

    title: str = ""
    note: str = ""

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The note, a line for each paragraph; empty lines are between them."""
        return tuple(" ".join(part.split()) for part in re.split(r"\n\s*\n", self.note) if part.strip())

    def above(self, form: str, text: str) -> str:
        """Return a table as text with these words above it; `form` is that of `natgauge report`."""
        title, note = one_line(self.title), [one_line(part) for part in self.paragraphs]
        if form == "markdown":
            title, note = f"# {markup.escaped(title)}" if title else "", list(map(markup.escaped, note))
        elif form == "latex":
            # The title is the caption of each table.
            title, note = "", list(map(plain, note))
        return "\n\n".join([*filter(None, [title, *note]), text])


NO_WORDS: Final = OwnWords()


#: The figures of comparisons.
_COSTS: Final = "costs"
#: The family of the Initiator's packets, with which the size of the same frame differs.
_FAMILY: Final = "initiator_family"
#: Labels of the rows of a table whose values this line has.
SAID_ROWS: Final = frozenset({"placement", "number of sessions", "frame size", "number of experiments", "device cores"})
#: Parameters of the place and the machine.
_PLACE: Final = {"placement": "placement {}"}
_MACHINE: Final = {"cpu": "{}", "kernel": "Linux {}"}
#: Tool and settings of the caption of a table, from which others measure again.
_SETTINGS: Final = {
    "natgauge": "natgauge {}", "profile": "profile {}", "error": "search error {}", "trial_seconds": "trials of {} s",
}  # fmt: skip
#: More gateways are named by their number.
_MOST_NAMES: Final = 4
#: More metrics are named by their number.
_MOST_METRICS: Final = 2


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a page or table.

    Attributes:
        conditions: numbers that a reader asks for first, the lowest and the highest of each.
        settings: version of natgauge, profile, and the settings that are most often not those of the profile.
    """

    title: str
    measured: str = ""
    conditions: str = ""
    settings: str = ""
    gateways: tuple[tuple[str, str], ...] = ()
    note: tuple[str, ...] = ()

    @property
    def made(self) -> str:
        """Day, machine, tool and settings as a sentence, without conditions; empty where none is known."""
        return _sentence(self.measured, self.settings)

    @property
    def sentence(self) -> str:
        """Day, machine, conditions and settings as a sentence; empty where none is known."""
        return _sentence(self.measured, self.conditions, self.settings)


def _sentence(*parts: str) -> str:
    text = "; ".join(filter(None, parts))
    return f"{text}." if text else ""


def heading(collected: StoredResults, failures: Sequence[MeasurementFailure], own: OwnWords = NO_WORDS) -> Heading:
    """Return the head of a view of these results, with the user's own words."""
    titles = _titles(collected)
    return Heading(
        own.title or _title(collected, failures, titles),
        _measured(collected),
        _conditions(collected),
        ", ".join(_words(_SETTINGS, collected.parameters)).replace("%", " %"),
        tuple(titles.items()) if len(titles) > 1 else (),
        own.paragraphs,
    )


def caption(collected: StoredResults, own: OwnWords) -> tuple[str, str, str]:
    """Return the title of a table of measurements for a paper, the further sentences of its caption, and its label.

    Metrics have the terms of their standards, and gateways the versions of their software.
    """
    head, results = heading(collected, (), own), collected.results
    if not results:
        return head.title, head.sentence, head.title
    title, metrics = own.title, list(dict.fromkeys(result.metric for result in results))
    if not title:
        what = listed([declared(name).cited for name in metrics[:_MOST_METRICS]])
        what = what if len(metrics) <= _MOST_METRICS else f"{len(metrics)} metrics"
        unit = unit_of_caption(results)
        title = f"{what} of {few_of(result.gateway for result in results)}{f', in {unit}' if unit else ''}"
    return title, " ".join(filter(None, [head.sentence, _software(results)])), head.title


def few_of(gateways: Iterable[str]) -> str:
    """Return the names of gateways for a caption, each once; of many the first ones, and the number of others."""
    every = list(dict.fromkeys(gateways))
    names, more = every[:_MOST_NAMES], len(every) - _MOST_NAMES
    return f"{', '.join(names)} and {more} more" if more > 0 else listed(names)


def unit_of_caption(results: Sequence[Result]) -> str:
    """Return the unit that a caption says of all results; empty where they are of several metrics or units."""
    of = {(result.metric, unit_of(result)) for result in results}
    return of.pop()[1] if len(of) == 1 else ""


def _software(results: Sequence[Result]) -> str:
    """The versions of the gateways' software, but for the kernel, which the line on the machine has; as a sentence."""
    found: dict[str, dict[str, None]] = {}
    for result in results:
        versions = result.parameter("version")
        kernel = f"Linux {result.parameter('kernel')}"
        for version in versions if isinstance(versions, list) else []:
            if isinstance(version, str) and version != kernel:
                found.setdefault(result.gateway, {})[version] = None
    texts = [f"{gateway}: {', '.join(versions)}" for gateway, versions in found.items()]
    return f"Software of {'; of '.join(texts)}." if texts else ""


def _titles(collected: StoredResults) -> Mapping[str, str]:
    """Titles of the gateways by their names; gateways of records without a title are left out."""
    named = [(result.gateway, result.parameters) for result in collected.results]
    named += [
        (each.label, each.parameters) for record in collected.records for each in (record.baseline, *record.compared)
    ]
    found = {name: str(title) for name, parameters in named if (title := parameters.get("title"))}
    return found | {each.record.gateway: each.record.title for each in collected.audits if each.record.title}


def _title(collected: StoredResults, failures: Sequence[MeasurementFailure], titles: Mapping[str, str]) -> str:
    """Gateways and metrics; the title of a gateway instead of its name where it is the only one."""
    shown = Counter(titles.values())

    def called(name: str, *, alone: bool) -> str:
        # Two versions of a recipe have one title.
        return titles.get(name, name) if alone and shown[titles.get(name, "")] < 2 else name

    results, parts = collected.results, []
    if results:
        gateways = list(dict.fromkeys(result.gateway for result in results))
        metrics = [declared(name).name_in_sentence for name in dict.fromkeys(result.metric for result in results)]
        more = f" and {len(gateways) - _MOST_NAMES} more" if len(gateways) > _MOST_NAMES else ""
        names = ", ".join(called(name, alone=len(gateways) == 1) for name in gateways[:_MOST_NAMES])
        what = " and ".join(metrics) if len(metrics) <= _MOST_METRICS else ""
        parts.append(f"{names}{more}: {what or f'{len(metrics)} metrics'}")
    if collected.records:
        record, *others = collected.records
        more = f", and {len(others)} more" if others else ""
        alone = len(record.compared) == 1
        compared = listed([called(gateway.label, alone=alone) for gateway in record.compared])
        baseline = called(record.baseline.label, alone=alone)
        parts.append(f"{'costs' if parts else 'Costs'} of {compared} compared with {baseline}{more}")
    audits = ", ".join(audited := audit.names_of([stored.record for stored in collected.audits]))
    if len(audited) == 1 and (title := titles.get(audits, audits)) != audits:
        audits += f" ({title})" if ": " in title else f": {title}"
    parts += [f"{'audit' if parts else 'Audit'} of {audits}"] if audits else []
    parts += [f"No result: {listed([failure.subject for failure in failures])}"] if not parts else []
    return "; ".join(parts)


def _measured(collected: StoredResults) -> str:
    """When and on which machines, such as "Measured on 2026-11-26 on AMD EPYC, Linux 6.18"."""
    days = sorted(set(_days(collected)))
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    machines = [", ".join(_words(_MACHINE, [parameters])) for parameters in collected.parameters]
    where = " and ".join(dict.fromkeys(filter(None, machines)))
    parts = [f"on {when}" if when else "", f"on {where}" if where else ""]
    return f"Measured {', '.join(filter(None, parts))}" if any(parts) else ""


def _days(collected: StoredResults) -> Iterator[str]:
    """Days on which repetitions began (UTC); of records without them the day in the name of their folder."""
    for stored in collected.stored:
        begun = stored.result.parameter("begun")
        times = list(filter(None, map(moment_of, begun))) if isinstance(begun, list) else []
        for time in times:
            yield time.date().isoformat()
        if not times:
            yield from _day(stored.result.results, stored.folder)
    others: list[StoredComparison | StoredAudit] = [*collected.comparisons, *collected.audits]
    for each in others:
        yield from _day(each.record.results, each.folder)


def _day(results: str | None, folder: Path) -> Iterator[str]:
    """The day in the name that the folder of a record had, or has; none where it was named otherwise."""
    date = date_of(Path(results)) if results else None
    date = date or date_of(folder)
    if date is not None:
        yield date.date().isoformat()


def _conditions(collected: StoredResults) -> str:
    """Numbers of the traffic and the device, the lowest and the highest, and the placement."""
    results, every = collected.results, collected.parameters
    found: dict[str, list[object]] = {
        "repetitions": [len(result.repetitions) for result in results],
        "connections": [
            *map(open_at_once, results),
            *(record.baseline.parameters.get("connections") for record in collected.records),
        ],
        "cores": [parameters.get("device_cores") for parameters in every],
    }
    values = {noun: [value for value in own if isinstance(value, int)] for noun, own in found.items()}
    texts = [f"{_ends(own)} {noun if max(own) > 1 else noun[:-1]}" for noun, own in values.items() if own]
    texts += _frames(collected)
    texts += list(dict.fromkeys(f"by {by}" for result in results if (by := main_figure.transport(result))))
    texts += list(dict.fromkeys(f"subscribers{each}" for result in results if (each := main_figure.terms(result))))
    return ", ".join([*texts, *_words(_PLACE, every)])


def _frames(collected: StoredResults) -> list[str]:
    """Sizes of frames; where not all are of one size, or not all are of results, with the figures that have them."""
    named = [(declared(result.metric).name_in_sentence, result.parameters) for result in collected.results]
    named += [(_COSTS, record.baseline.parameters) for record in collected.records]
    by_sizes = grouped((" and ".join(_sizes(own)), name) for name, own in grouped(named).items())
    by_sizes.pop("", None)
    is_mixed = any(mix_of(parameters) for _, parameters in named)
    if len(by_sizes) < 2 or not (is_mixed or (collected.results and collected.records)):
        return _sizes([parameters for _, parameters in named])
    if [*by_sizes.values()][1:] == [[_COSTS]]:
        return [", but ".join(by_sizes) + f" for {_COSTS}"]
    return [f"{sizes} for {listed(names)}" for sizes, names in by_sizes.items()]


def _sizes(every: Sequence[Parameters]) -> list[str]:
    """Sizes of frames in words, the smallest and the largest, by family where they differ; then mixes of sizes."""
    sizes = {
        family: [
            size for each in every if family in ("", each.get(_FAMILY)) and isinstance(size := own_size(each), int)
        ]
        for family in ("", "ipv4", "ipv6")
    }
    ends = {family: _ends(own) for family, own in sizes.items() if own}
    by_family = len(ends) == 3 and ends["ipv4"] != ends["ipv6"]
    texts = [f"{ends['ipv4']} octets ({ends['ipv6']} over IPv6)" if by_family else f"{ends['']} octets"] if ends else []
    mixes = dict.fromkeys(mix for parameters in every if (mix := mix_of(parameters)))
    return [*texts, *([f"frames of {' or '.join(mixes)}"] if mixes else [])]


def _ends(values: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys((in_full(min(values)), in_full(max(values)))))


def _words(wanted: Mapping[str, str], every: Sequence[Parameters]) -> Iterator[str]:
    for name, words in wanted.items():
        found = dict.fromkeys(str(value) for parameters in every if (value := parameters.get(name)))
        if found:
            yield words.format(" and ".join(found))

# SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown: what a job writes under a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from natgauge.notes import Note
from natgauge.reports.markdown import escaped, row

if TYPE_CHECKING:
    from natgauge.comparisons.figures import Figure
    from natgauge.comparisons.running import Compared

_HEADINGS = ("gateway", "of", "cost beside the baseline", "interval", "verdict", "ns a frame", "x forwarding")


def comment(found: Compared) -> str:
    """Headline, a table with a line for each figure, the first gateway against itself, and what must be known."""
    return "\n".join(_lines(found))


def answer(found: Compared) -> str:
    """What --fail-above asked, answered."""
    said = "more" if found.above else "not more" if found.decided else "undecided whether more"
    return f"{said} than {found.document['fail_above']:.1%} above the baseline"


def doubts_told(document: Mapping[str, Any]) -> list[str]:
    """What to know before the rates are trusted, a line for each gateway, quantity and doubt; none by slices."""
    return [
        f"{label} ({quantity}): {doubt['text']}"
        for label, quantities in document.get("doubts", {}).items()
        for quantity, found in quantities.items()
        for doubt in found
    ]


def _lines(found: Compared) -> Iterator[str]:
    document = found.document
    yield f"### natgauge: {_headline(found)}"
    yield ""
    yield row(_HEADINGS)
    yield "|" + " --- |" * len(_HEADINGS)
    for one in document["baseline_costs"]:
        costs = (_number(one["nanoseconds"], 0), _number(one["share_of_forwarding"], 2))
        yield row([f"{_named(document, document['baseline'])} (baseline)", one["quantity"], "1", "", "", *costs])
    for figure in (*found.figures, *found.twin):
        yield row([_named(document, figure.gateway), *_cells(figure)])
    yield ""
    level = (found.figures or found.twin)[0].level
    yield (
        f"Intervals hold the true ratio with {level:.0%}. The last lines are the baseline against itself, which should "
        "show no difference. Nanoseconds change with the host, and so do ratios, but less."
    )
    yield (
        f"{document['seconds']:.0f} s, {document['rounds']} rounds {_where(document)}; evidence: "
        f"{escaped(str(document['evidence']))}"
    )
    for told in (*_open_ends(found), *(str(Note(**note)) for note in document["notes"]), *doubts_told(document)):
        yield f"- {escaped(told)}"


def _open_ends(found: Compared) -> Iterator[str]:
    """Figures that something beside the gateways keeps open, with the reason."""
    return (figure.text for figure in (*found.figures, *found.twin) if figure.limits and figure.ratio is None)


def _where(document: Mapping[str, Any]) -> str:
    return f"on core {document['core']}" if document["by"] == "slices" else "of searches in turn"


def _headline(found: Compared) -> str:
    if found.document["fail_above"] is not None:
        return answer(found)
    words = dict.fromkeys(figure.verdict for figure in found.figures)
    return ", ".join(words)


def _cells(figure: Figure) -> list[str]:
    ratio, ends = "-", "-"
    if figure.ratio is not None and figure.low is not None and figure.high is not None:
        ratio, ends = f"{figure.ratio - 1:+.1%}", f"{figure.low - 1:+.1%} to {figure.high - 1:+.1%}"
    costs = (_number(figure.nanoseconds, 0), _number(figure.share_of_forwarding, 2))
    return [figure.quantity, ratio, ends, figure.verdict, *costs]


def _named(document: Mapping[str, Any], gateway: str) -> str:
    """A gateway's name, with its number of devices where the gateways have unequal numbers."""
    devices = document["devices"]
    if gateway not in devices or len({*devices.values()}) == 1:
        return gateway
    return f"{gateway}, {devices[gateway]} {'device' if devices[gateway] == 1 else 'devices'}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"

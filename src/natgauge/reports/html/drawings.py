# SPDX-License-Identifier: Apache-2.0
"""The figures of the page as files of their own, for papers and slides: light colours, title and legend within."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

from natgauge import file_access
from natgauge.errors import UsageError
from natgauge.reports import markup
from natgauge.reports.heading import NO_WORDS, OwnWords, few_of
from natgauge.reports.html import charts
from natgauge.reports.html.figures import SHAPES, Figure, FigureGroup

Form = Literal["svg", "pdf"]

#: The light colour of a variable of the page's style.
_LIGHT: Final = re.compile(r"(--[\w-]+): light-dark\((#[0-9a-f]+),")
#: Characters in a line of a title.
_TITLE: Final = 48
#: Characters in a line of a note, and of the title of an axis, whose length is that of the axis in any font.
_NOTE: Final = 64
_AXIS: Final = 30
#: Characters in the name of a file.
_LONGEST: Final = 60
_CONVERTERS: Final[Mapping[Form, Callable[[charts.Row], str | bytes]]] = {"svg": charts.svg, "pdf": charts.pdf}


def write(  # noqa: PLR0913 - what belongs to a drawing, by keyword
    groups: Sequence[FigureGroup],
    folder: Path,
    form: Form,
    own: OwnWords = NO_WORDS,
    below: Sequence[str] = (),
    *,
    bare: bool = False,
) -> list[Path]:
    """Write each figure as a file into a folder, which is made if missing; return the files.

    `below` are sentences that follow each caption. Where `bare`, title and caption are in a text beside each drawing
    instead of within it, with the names of its gateways, and beside a PDF also as LaTeX.
    """
    figures = list(_figures(groups, own, below, bare=bare))
    if not figures:
        raise UsageError(f"report: --{form}: the folders hold nothing that is drawn; name results or comparisons")
    contents: list[tuple[str, str | bytes]] = []
    for name, spec, words in figures:
        contents.append((f"{name}.{form}", _CONVERTERS[form](spec)))
        if bare:
            contents.append((f"{name}.txt", "\n\n".join(words) + "\n"))
            # LaTeX takes what follows "%" for a comment, and a caption has no paragraphs.
            contents += [(f"{name}.tex", " ".join(map(markup.plain, words)) + "\n")] if form == "pdf" else []
    return file_access.write_into(folder, contents, what="report", remedy="name a folder of yours")


def _figures(
    groups: Sequence[FigureGroup], own: OwnWords, below: Sequence[str], *, bare: bool
) -> Iterator[tuple[str, charts.Row, list[str]]]:
    """Names of the files, without their end, specifications of the drawings, and their titles with their captions.

    Where `bare`, the titles have the gateways.
    """
    style = resources.files(__package__).joinpath("page.css").read_text("utf-8")
    colours = {f"var({name})": colour for name, colour in _LIGHT.findall(style)}
    every = [(group, figure) for group in groups for figure in group.figures]
    parts_of = [[part for part in (group.cited or group.title, figure.title) if part] for group, figure in every]
    taken: Counter[str] = Counter()
    for (group, figure), parts in zip(every, parts_of, strict=True):
        title = ", ".join(parts)
        # A paper names its files: a further figure of other results leaves their names.
        words = " ".join([group.name, *([figure.title] if len(group.figures) > 1 else [])])
        name = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:_LONGEST].rstrip("-")
        taken[name] += 1
        name += f"-{taken[name]}" if taken[name] > 1 else ""
        # The user's title is of all figures; behind it is what tells one of them from the others.
        apart = ", ".join(part for part in parts if not all(part in others for others in parts_of))
        head = ": ".join(filter(None, [own.title, apart])) if own.title else title
        notes = (*own.paragraphs, " ".join([figure.caption or group.caption, *below]))
        drawn = _alone(group, figure, () if bare else (head, *notes), colours)
        gateways = few_of(_gateways(figure)) if bare else ""
        of = f": {gateways}" if gateways else ""
        yield name, drawn, [f"{head}{of}.", *notes]


def _alone(group: FigureGroup, figure: Figure, words: Sequence[str], colours: Mapping[str, str]) -> charts.Row:
    """A drawing that needs no page around it; `words` are its title and its notes, none where others say them."""
    # The plot keeps its size next to title and legend.
    drawn: dict[str, Any] = {**figure.spec, "autosize": {"type": "pad"}, "background": "var(--paper)"}
    if words:
        title, *notes = words
        drawn["title"] = {
            "text": textwrap.wrap(title, _TITLE),
            "subtitle": [line for part in notes for line in textwrap.wrap(part, _NOTE)],
            "subtitleColor": "var(--muted)",
            "subtitleFontSize": 10,
            "anchor": "start",
            "fontSize": 13,
            "fontWeight": "normal",
            "color": "var(--ink)",
        }
    drawn["layer"] = [_titled(layer, figure.axis) for layer in drawn["layer"]]
    drawn = _painted(drawn, colours)
    if group.legend:
        own_gateways = _gateways(figure)
        # Its names stand within an expression.
        legend = tuple(
            (name, colours[shade], SHAPES[sign]) for name, shade, sign in group.legend if name in own_gateways
        )
        drawn["layer"] = [_with_legend(layer, legend) for layer in drawn["layer"]]
    return drawn


def _gateways(figure: Figure) -> list[str]:
    """The gateways of which a figure has points, once each."""
    rows = (row for layer in figure.spec["layer"] for row in layer["data"]["values"])
    return list(dict.fromkeys(str(row["gateway"]) for row in rows if row.get("gateway")))


def _painted(value: Any, colours: Mapping[str, str]) -> Any:
    """Return a specification with colours in place of the page's variables; a text of which one is a part stays."""
    if isinstance(value, Mapping):
        return {name: _painted(each, colours) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_painted(each, colours) for each in value]
    return colours.get(value, value) if isinstance(value, str) else value


def _titled(layer: charts.Row, title: str) -> charts.Row:
    """A layer whose axis of values has its title: no page around the drawing says it."""
    lines = textwrap.wrap(title, _AXIS) or None
    lacking = (
        (channel, each)
        for channel, each in layer["encoding"].items()
        if channel in ("x", "y") and each.get("type") == "quantitative" and each.get("title") is None
    )
    return {
        **layer,
        "encoding": {**layer["encoding"], **{channel: {**each, "title": lines} for channel, each in lacking}},
    }


def _with_legend(layer: Mapping[str, Any], legend: tuple[tuple[str, str, str], ...]) -> charts.Row:
    """A layer whose colours are explained below the plot."""
    colour = layer["encoding"].get("color")
    if colour is None or colour.get("field") != "colour":
        return layer
    range_of = list(dict.fromkeys(shade for _, shade, _ in legend))
    names = {shade: " / ".join(name for name, own, _ in legend if own == shade) for shade in range_of}
    shapes = {own: shape for _, own, shape in reversed(legend)}
    told = {
        "legend": {
            "title": None, "orient": "bottom", "columns": 2, "labelLimit": 300, "symbolOpacity": 1, "labelOffset": 6,
            "columnPadding": 28, "labelExpr": f"{json.dumps(names)}[datum.label]",
        }
    }  # fmt: skip
    encoding = {**layer["encoding"], "color": {**colour, "scale": {"domain": range_of, "range": range_of}, **told}}
    if "shape" in encoding:
        # One legend has colours and shapes where both are of the same field.
        scale = {"domain": range_of, "range": [shapes[shade] for shade in range_of]}
        encoding["shape"] = {**colour, "scale": scale, **told}
    return {**layer, "encoding": encoding}

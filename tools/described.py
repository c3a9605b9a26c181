# SPDX-License-Identifier: Apache-2.0
"""Makes files of the descriptions of inputs and of the entries of doubts: `python -m tools.described` writes them.

The keywords are for type checkers, docs/inputs.md is for people, and the descriptions of parameters are for whoever
reads records: a record is read without what made it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools import described_doubts

from natgauge import procedures
from natgauge.audits.request import AuditOptions, traffic_inputs
from natgauge.comparisons import request
from natgauge.inputs import options
from natgauge.inputs.checks import spoken
from natgauge.inputs.input import Input, inputs_of
from natgauge.inputs.question import DeviceOptions, LabOptions, TrafficOptions
from natgauge.inputs.types import Flag
from natgauge.known_doubts import DECLARED
from natgauge.labs import kinds
from natgauge.records.parameters import INPUTS
from natgauge.setup.cell import inputs_of_part, place_inputs

_ROOT: Final = Path(__file__).parents[1]
_HEAD: Final = '''\
# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.measure`, `natgauge.compare` and `natgauge.audit`, for type checkers and editors.

Made of the descriptions of inputs by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict
'''


_PAGE: Final = """\
# Inputs

All inputs of `natgauge measure`, `natgauge compare` and `natgauge audit`. The same names are options of the command
line (with `-` for `_`), keys of plans and keywords of Python. `python -m tools.described` makes this page of the
descriptions in the code.

A share is written `1%` or `0.01`; 100 % and more are written with the percent sign. A list of cores is written `0,2-3`.
Times are in seconds. A flag has no value on the command line, and is true or false elsewhere.
`natgauge measure METRIC --help` shows the defaults of a metric.
"""


def page() -> str:
    """The page of all inputs."""
    settings = dict[str, Input]()
    having = dict[str, list[str]]()
    for metric, procedure in procedures.procedures().items():
        for one in procedure.own_inputs():
            settings.setdefault(one.name, one)
            having.setdefault(one.name, []).append(metric)
    every = len(procedures.procedures())
    metrics = {name: "all" if len(found) == every else ", ".join(found) for name, found in having.items()}
    labs = {name: ", ".join(found) for name, (_, found) in place_inputs().items()}
    tables = [
        ("Settings of metrics", "Metrics", [(one, metrics[name]) for name, one in settings.items()]),
        ("Traffic", "", [(one, "") for one in inputs_of_part("traffic")]),
        ("Lab", "Labs", [(one, "all") for one in inputs_of_part("lab")]
         + [(one, labs[name]) for name, (one, _) in place_inputs().items()]),
        ("Device", "", [(one, "") for one in inputs_of_part("device")]),
        ("Comparison", "", [(one, "") for one in inputs_of(request.CompareOptions)]),
        ("Audit", "", [(one, "") for one in inputs_of(AuditOptions)]),
    ]  # fmt: skip
    return "\n".join([_PAGE, *(_table(title, last, rows) for title, last, rows in tables)])


def _table(title: str, last: str, rows: Iterable[tuple[Input, str]]) -> str:
    columns = ["Name", "Value", "Unit", "Default", "Meaning", *([last] if last else [])]
    lines = [f"## {title}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for one, of in rows:
        value = (one.type.metavar or "flag").strip("[]").replace("|", " \\| ")
        on = isinstance(one.type, Flag) and one.default
        cells = [
            f"`{one.name}`",
            value,
            one.unit,
            "on" if on else options.default_shown(one),
            options.sentence(one),
            *([of] if last else []),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def keywords() -> str:
    """The whole module of the keywords."""
    settings = [one for procedure in procedures.procedures().values() for one in procedure.own_inputs()]
    place = [one for one, _ in place_inputs().values()]
    cell = [one for part in ("traffic", "lab", "device") for one in inputs_of_part(part)]
    classes = [
        _typed_dict("MeasureKeywords", "Options of `natgauge measure`; None = not chosen.", [*settings, *cell, *place]),
        _typed_dict(
            "CompareKeywords",
            "Options of `natgauge compare`; None = not chosen.",
            [*inputs_of(request.CompareOptions), *request.gateway_inputs().values()],
        ),
        _typed_dict(
            "AuditKeywords",
            "Options of `natgauge audit`; None = not chosen.",
            [
                *inputs_of(AuditOptions),
                *traffic_inputs(),
                *(one for part in ("lab", "device") for one in inputs_of_part(part)),
                *place,
            ],
        ),
    ]
    return "\n\n".join([_HEAD, *classes])


def _typed_dict(name: str, purpose: str, inputs: Iterable[Input]) -> str:
    fields = dict[str, str]()
    for one in inputs:
        annotation = one.type.annotation.removesuffix(" | None")
        fields.setdefault(one.name, f"    {one.name}: {annotation} | None")
    return "\n".join([f"class {name}(TypedDict, total=False):", f'    """{purpose}"""', "", *fields.values(), ""])


_PARAMETERS: Final = """\
# SPDX-License-Identifier: Apache-2.0
# Parameters of results that are inputs: label, unit, group, and whether another value may make another figure.
# Left out: a label that is the name, no unit, the group "settings", and that it moves figures.
# Made of the descriptions of inputs by `python -m tools.described`; a test holds that it is up to date.

"""


def parameters() -> str:
    """The descriptions of the parameters that are inputs."""
    inputs = [
        *inputs_of(TrafficOptions, "traffic"),
        *inputs_of(LabOptions, "place"),
        *(one for kind in kinds.kinds().values() for one in inputs_of(kind.options, "place")),
        *inputs_of(DeviceOptions, "device"),
        *(one for procedure in procedures.procedures().values() for one in procedure.inputs()),
    ]
    known = dict[str, str]()
    for one in inputs:
        own = {
            "label": "" if one.label == spoken(one.parameter) else one.label,
            "unit": one.unit,
            "group": "" if one.group == "settings" else one.group,
            "moves_figures": None if one.moves_figures else False,
        }
        values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in own.items() if value not in ("", None))
        known.setdefault(one.parameter, f"{one.parameter} = {{ {values} }}" if values else f"{one.parameter} = {{}}")
    return _PARAMETERS + "".join(f"{line}\n" for line in known.values())


#: Each file and what makes it.
FILES: Final = {
    _ROOT / "src" / "natgauge" / "inputs" / "keywords.py": keywords,
    _ROOT / "docs" / "inputs.md": page,
    _ROOT / "src" / "natgauge" / "records" / INPUTS: parameters,
    _ROOT / "src" / "natgauge" / "doubt_words.py": described_doubts.words,
    _ROOT / "src" / "natgauge" / DECLARED: described_doubts.properties,
    described_doubts.PAGE: described_doubts.page,
}

if __name__ == "__main__":
    for path, text in FILES.items():
        path.write_text(text(), encoding="utf-8")

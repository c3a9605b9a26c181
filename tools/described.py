# SPDX-License-Identifier: Apache-2.0
"""Makes files of the descriptions of inputs and of the entries of doubts: `python -m tools.described` writes them.

The keywords are for type checkers, records/inputs.md is for people, and the descriptions of parameters are for whoever
reads records: a record is read without what made it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from tools import described_doubts

from natgauge import procedures
from natgauge.audits.request import AuditOptions, device_inputs, lab_inputs, traffic_inputs
from natgauge.comparisons import request
from natgauge.inputs.input import Flag, Input, inputs_of, spoken
from natgauge.inputs.question import DeviceOptions, LabOptions, TrafficOptions
from natgauge.labs import kinds
from natgauge.notes import DECLARED
from natgauge.records.parameters import INPUTS
from natgauge.setup.cell import inputs_of_part, place_inputs

_ROOT: Final = Path(__file__).parents[1]
_SOURCE: Final = _ROOT / "src" / "natgauge"
_KEYWORDS: Final = '''\
# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.measure`, `natgauge.compare` and `natgauge.audit`, for type checkers and editors.

Made of the descriptions of inputs when natgauge is built, or by `python -m tools.described`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict
'''

_PAGE: Final = """\
# Inputs

*For users who look for an option. 14 minutes.*

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
            "on" if on else one.default_shown,
            one.sentence,
            *([of] if last else []),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _annotations(inputs: Iterable[Input]) -> dict[str, str]:
    return {one.name: f"{one.type.annotation.removesuffix(' | None')} | None" for one in inputs}


def _callers() -> dict[str, dict[str, str]]:
    """Types of all keywords, by name, of each function that measures."""
    place = [one for one, _ in place_inputs().values()]
    beside = [one for part in ("lab", "device") for one in inputs_of_part(part)] + place
    audited = [*inputs_of(AuditOptions), *traffic_inputs(), *lab_inputs(), *device_inputs(), *place]
    settings = [one for procedure in procedures.procedures().values() for one in procedure.own_inputs()]
    compared = [*inputs_of(request.CompareOptions), *request.gateway_inputs().values()]
    return {
        "measure": _annotations([*settings, *inputs_of_part("traffic"), *beside]),
        "compare": _annotations(compared),
        "audit": _annotations(audited),
    }


def keywords() -> str:
    """The module of all keywords: those that all functions have alike, and further ones of each function."""
    callers = _callers()
    first, *others = callers.values()
    shared = dict(pair for pair in first.items() if all(pair in other.items() for other in others))
    every = ", ".join(f"`natgauge.{caller}`" for caller in callers)
    classes = [_typed("SetupKeywords(TypedDict, total=False)", every, shared)]
    for caller, kinds_of in callers.items():
        own = {name: kind for name, kind in kinds_of.items() if name not in shared}
        classes.append(
            _typed(f"{caller.capitalize()}Keywords(SetupKeywords, total=False)", f"`natgauge.{caller}`", own)
        )
    return "\n\n".join([_KEYWORDS, *classes])


def _typed(name: str, whose: str, fields: Mapping[str, str]) -> str:
    lines = "".join(f"    {field}: {kind}\n" for field, kind in fields.items())
    return f'class {name}:\n    """Options of {whose}; None = not chosen."""\n\n{lines}'


def write_keywords(root: Path) -> Path:
    """Write the module of the keywords below a root of sources, and return its path."""
    path = root / KEYWORDS
    path.write_text(keywords(), encoding="utf-8")
    return path


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


#: The module of the keywords, which git ignores.
KEYWORDS: Final = Path("src/natgauge/keywords.py")
#: Each file that is committed, and what makes it.
FILES: Final[Mapping[Path, Callable[[], str]]] = {
    _SOURCE / "records" / INPUTS: parameters,
    _SOURCE / "doubt_words.py": described_doubts.words,
    _SOURCE / DECLARED: described_doubts.properties,
    described_doubts.PAGE: described_doubts.page,
    _ROOT / "records" / "inputs.md": page,
}

if __name__ == "__main__":
    for path, text in FILES.items():
        path.write_text(text(), encoding="utf-8")
    write_keywords(_ROOT)

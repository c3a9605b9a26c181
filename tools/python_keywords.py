# SPDX-License-Identifier: Apache-2.0
"""Makes src/natgauge/inputs/keywords.py of the descriptions of inputs: `python -m tools.python_keywords` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from natgauge import procedures
from natgauge.bench.question import inputs_of_part, place_inputs
from natgauge.comparisons import asked
from natgauge.inputs.input import Input, inputs_of

FILE: Final = Path(__file__).parents[1] / "src" / "natgauge" / "inputs" / "keywords.py"
_HEAD: Final = '''\
# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.measure` and `natgauge.compare`, for type checkers and editors.

Made of the descriptions of inputs by `python -m tools.python_keywords`; a test holds that it is up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict
'''


def text() -> str:
    """The whole file."""
    settings = [one for procedure in procedures.procedures().values() for one in procedure.own_inputs()]
    place = [one for one, _ in place_inputs().values()]
    cell = [one for part in ("traffic", "options", "wishes") for one in inputs_of_part(part)]
    classes = [
        _typed_dict("MeasureKeywords", "Options of `natgauge measure`; None = not chosen.", [*settings, *cell, *place]),
        _typed_dict(
            "CompareKeywords",
            "Options of `natgauge compare`; None = not chosen.",
            [*inputs_of(asked.CompareOptions), *asked.settings().values()],
        ),
    ]
    return "\n\n".join([_HEAD, *classes])


def _typed_dict(name: str, purpose: str, inputs: Iterable[Input]) -> str:
    fields = dict[str, str]()
    for one in inputs:
        annotation = one.type.annotation.removesuffix(" | None")
        fields.setdefault(one.name, f"    {one.name}: {annotation} | None")
    return "\n".join([f"class {name}(TypedDict, total=False):", f'    """{purpose}"""', "", *fields.values(), ""])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")

# SPDX-License-Identifier: Apache-2.0
"""Lists entries of docstrings that only repeat what the names and the types say already.

Blocks (Args, Attributes, Raises, Returns, Yields) of internals are checked by nothing, so they grow stale. An entry
stands where it adds a unit, a range, a value of its own meaning ("None = ...") or a section of a standard, or where it
takes more than a dozen words to say. What an internal function raises is said by the contract that it serves.

What others read has whole blocks: the Python API (docs/python-api.md and the names of `natgauge` itself), the records,
the metrics, and contracts (Protocol, ABC).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).parents[1]
_SOURCES: Final = _ROOT / "src" / "natgauge"
_API: Final = _ROOT / "docs" / "python-api.md"
#: Modules and packages whose types stand in records and schemas, or are contracts.
_READ_BY_ALL: Final = (
    "natgauge.records",
    "natgauge.metrics",
    "natgauge.errors",
    "natgauge.notes",
    "natgauge.causes.cause",
    "natgauge.delays",
    "natgauge.measurer",
    "natgauge.trials",
    "natgauge.labs.contract",
)
_HEAD: Final = re.compile(r"(Args|Attributes|Raises|Returns|Yields):")
_ADDS: Final = re.compile(
    r"\d|=|\b(None|True|False|NaN|unset|unknown|empty|zero|infinite|unlimited|order(ed)?|ascending|sorted|monotonic"
    r"|\w*seconds?|ns|ms|UTC|wall clock|octets?|bits?|KiB|frames/s|per cent|percent|share|ratio"
    r"|at least|at most|inclusive|exclusive|included|RFC|section)\b",
    re.IGNORECASE,
)
_MOST_WORDS: Final = 12


class Idle(NamedTuple):
    """An entry that adds nothing.

    Attributes:
        line: number of the docstring's first line in the file, from 1.
    """

    path: Path
    line: int
    owner: str
    entry: str


def public_modules() -> frozenset[str]:
    """Modules that the page of the Python API names, and those of the names of `natgauge` itself."""
    named = re.findall(r"natgauge(?:\.\w+)+", _API.read_text() + (_SOURCES / "__init__.py").read_text())
    return frozenset(named) | {name.rpartition(".")[0] for name in named}


def idle(source: str, path: Path) -> Iterator[Idle]:
    """Entries of one module's docstrings that add nothing."""
    for node in _internals(ast.parse(source)):
        for kind, entry in _entries(ast.get_docstring(node) or ""):
            if kind == "Raises" or not _adds(entry, returned=kind in {"Returns", "Yields"}):
                yield Idle(path, node.body[0].lineno, node.name, entry)


def _internals(node: ast.AST) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for child in ast.iter_child_nodes(node):
        if not _is_contract(child):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                yield child
            yield from _internals(child)


def _is_contract(node: ast.AST) -> bool:
    if not isinstance(node, ast.ClassDef):
        return False
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return any(isinstance(base, ast.Name) and base.id in {"Protocol", "ABC"} for base in bases)


def _entries(docstring: str) -> Iterator[tuple[str, str]]:
    kind = ""
    found: list[tuple[str, str]] = []
    for line in docstring.split("\n"):
        head = _HEAD.fullmatch(line.strip())
        if head and not line.startswith(" "):
            kind = head[1]
        elif line.strip() and not line.startswith(" "):
            kind = ""
        elif kind and line.startswith("     ") and found:
            found[-1] = (kind, f"{found[-1][1]} {line.strip()}")
        elif kind and line.strip():
            found.append((kind, line.strip()))
    yield from found


def _adds(entry: str, *, returned: bool) -> bool:
    text = entry if returned else entry.partition(":")[2]
    return bool(_ADDS.search(text)) or len(text.split()) > _MOST_WORDS


def main() -> int:
    """Prints each entry that adds nothing; exit status 1 if there is one."""
    public = public_modules()
    found: list[Idle] = []
    for path in sorted(_SOURCES.rglob("*.py")):
        module = ".".join(("natgauge", *path.relative_to(_SOURCES).with_suffix("").parts)).removesuffix(".__init__")
        if module not in public and not module.startswith(_READ_BY_ALL) and path.name != "generated.py":
            found += idle(path.read_text(), path)
    for entry in found:
        print(f"{entry.path.relative_to(_ROOT)}:{entry.line}: {entry.owner}: adds nothing to its name: {entry.entry}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

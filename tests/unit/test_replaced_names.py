# SPDX-License-Identifier: Apache-2.0
"""A constant that a test replaces is replaced wherever it is read: a module that imported it has a copy of its own."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
#: All that stands above the first line of code.
IMPORTS = re.compile(r"\A(?:.*\n)*?from __future__ import annotations\n(?:(?:from |import |    |\)).*\n|\n)*")
#: Copies that play no part in the test: it makes a guest's name of the packages, and asks for no support.
APART = {
    ("test_guest.py", "PACKAGES", "natgauge.gateways.support"),
    # Lab tests shorten the first trial of a search of rates alone.
    ("conftest.py", "FIRST_TRIAL_SECONDS", "natgauge.procedures.kit.validation"),
    ("conftest.py", "FIRST_TRIAL_SECONDS", "natgauge.trial.bench"),
}


def parsed(folder: Path, *words: str) -> Iterator[tuple[Path, ast.Module]]:
    """The files that have one of these words."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        if any(word in text for word in words):
            yield path, ast.parse(text)


def imported(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """The module, the name there, and the name here of all that a file imports by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, one.name, one.asname or one.name) for one in node.names)


def replaced(tree: ast.Module) -> set[tuple[str, str]]:
    """Module and name of each constant that a test replaces."""
    modules = {here: f"{module}.{name}" for module, name, here in imported(tree)}
    loops = {
        node.target.id: node.iter
        for node in ast.walk(tree)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name)
    }
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[ast.Name(id=module), ast.Constant(value=str(name)), _]
            ) if name.isupper():
                each = loops.get(module)
                names = (
                    [one.id for one in each.elts if isinstance(one, ast.Name)]
                    if isinstance(each, ast.Tuple)
                    else [module]
                )
                found |= {(modules.get(one, ""), name) for one in names}
    return found


@pytest.mark.soak  # parses all of natgauge and of its tests
def test_a_constant_is_replaced_in_each_module_that_has_a_copy_of_it() -> None:
    every = {path: replaced(tree) for path, tree in parsed(ROOT / "tests", ".setattr(")}
    copies = defaultdict(set)
    for path, tree in parsed(SRC, *(name for names in every.values() for _, name in names)):
        own = ".".join(path.relative_to(SRC).with_suffix("").parts)
        for module, name, _ in imported(tree):
            copies[module, name].add(own)
    assert sum(map(len, every.values())) > 20
    stale = {
        (path.name, name, module)
        for path, names in every.items()
        for of, name in names
        for module in copies[of, name]
        if (module, name) not in names
    }
    assert stale == APART


def in_strings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of each import of natgauge's in the programs that a file has as strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in re.findall(r"^from (natgauge[\w.]*) import ([\w, ]+)", node.value, re.MULTILINE):
                yield from ((module, name.split(" as ")[0].strip()) for name in names.split(","))


def test_programs_that_tests_hand_to_other_processes_import_what_is_there() -> None:
    files = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    # To parse all takes seconds; most have the word in the imports at their beginning only.
    trees = {path.name: ast.parse(text) for path, text in files.items() if "from natgauge" in IMPORTS.sub("", text)}
    found = {(name, *one) for name, tree in trees.items() for one in in_strings(tree)}
    assert len(found) > 10
    missing = {
        (file, module, name)
        for file, module, name in found
        if not hasattr(import_module(module), name) and find_spec(f"{module}.{name}") is None
    }
    assert missing == set()

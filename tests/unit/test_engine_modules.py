# SPDX-License-Identifier: Apache-2.0
"""Modules of the Rust engine import each other without circles, so each can be read after those it uses."""

from __future__ import annotations

import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final, TypeAlias

import pytest

SOURCES: Final = Path(__file__).parents[2] / "engine" / "src"
COMMENT: Final = re.compile(r"//.*")
#: `use` statements, also `pub use`, up to their semicolon.
USE: Final = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
#: Paths outside of `use` statements, such as `super::parse(...)`.
PATH: Final = re.compile(r"\b((?:crate|super|self)(?:::\w+)+)")
#: Modules inside a file; their `super` is the file.
INNER_MODULE: Final = re.compile(r"^mod \w+ \{.*?^\}", re.MULTILINE | re.DOTALL)

Module: TypeAlias = tuple[str, ...]


def expand(tree: str) -> list[str]:
    """Paths of a `use` tree: `a::{b, c::d}` has `a::b` and `a::c::d`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [tree.split(" as ", maxsplit=1)[0].strip()]
    depth, parts = 0, [""]
    for letter in rest.rsplit("}", 1)[0]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [head.strip() + path for part in parts if part.strip() for path in expand(part)]


def absolute(path: str, here: Module) -> Module:
    """A path from the root of the crate; another crate's is taken for one below `here`, where it finds no module."""
    names = path.split("::")
    if names[0] == "crate":
        return tuple(names[1:])
    levels = names.count("super")
    return (*here[: len(here) - levels], *names[levels + names.count("self") :])


def paths_in(text: str, here: Module) -> set[Module]:
    """Paths that a text without inner modules names."""
    paths = [path for tree in USE.findall(text) for path in expand(tree)] + PATH.findall(USE.sub("", text))
    return {absolute(path, here) for path in paths}


def modules_of(crate: Path) -> dict[Module, str]:
    """Texts of a crate's modules, without comments, by path; without its root and its binaries."""
    modules = {}
    for file in crate.rglob("*.rs"):
        path = file.relative_to(crate).with_suffix("").parts
        if path[0] not in {"lib", "main", "bin"}:
            modules[path[:-1] if path[-1] == "mod" else path] = COMMENT.sub("", file.read_text())
    return modules


def imports(here: Module, modules: dict[Module, str]) -> set[Module]:
    """Modules that a module names; any other name stands for the module that holds it."""
    text = modules[here]
    paths = paths_in(INNER_MODULE.sub("", text), here)
    paths |= {path for inner in INNER_MODULE.findall(text) for path in paths_in(inner, (*here, "inner"))}
    holders = ({path[:end] for end in range(len(path) + 1) if path[:end] in modules} for path in paths)
    return {max(found, key=len) for found in holders if found} - {here}


def circle_in(crate: Path) -> list[Module]:
    """Modules that import each other in a circle; empty where there is none."""
    modules = modules_of(crate)
    try:
        TopologicalSorter({name: imports(name, modules) for name in modules}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("crate", [SOURCES, SOURCES / "bin" / "natgauge-calibrator"], ids=["engine", "calibrator"])
def test_no_module_is_in_a_circle(crate: Path) -> None:
    circle = circle_in(crate)
    assert not circle, " - ".join("::".join(module) for module in circle)


def test_modules_and_their_imports_are_seen() -> None:
    modules = modules_of(SOURCES)
    assert {("programs",), ("programs", "window"), ("request",), ("request", "model")} <= set(modules)
    assert {("failure",), ("flow",), ("programs",), ("shared",)} <= imports(("sender",), modules)
    assert ("request", "bounds") in imports(("request", "model"), modules)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("use crate::b::Thing;", "use crate::a::{Other, self as name};"),
        ("pub use crate::{\n    b,\n};", "fn f() { super::a::g(); }"),
        ("use super::b::{Thing as Name};", "mod tests {\n    use crate::a::Other;\n}"),
        ("mod tests {\n    use super::super::b::Thing;\n}", "pub(crate) use crate::{c::{D, E}, a::{F, G}};"),
    ],
)
def test_a_circle_is_seen_however_it_is_written(tmp_path: Path, one: str, other: str) -> None:
    (tmp_path / "a.rs").write_text(one)
    (tmp_path / "b.rs").write_text(other)
    assert set(circle_in(tmp_path)) == {("a",), ("b",)}


def test_a_module_that_takes_something_from_its_parent_is_in_a_circle_with_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mod.rs").write_text("mod child;\npub use self::child::Thing;")
    (tmp_path / "a" / "child.rs").write_text("use super::helper;")
    assert set(circle_in(tmp_path)) == {("a",), ("a", "child")}


def test_use_in_one_direction_is_no_circle(tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text("// use crate::b;\nuse std::fs;\nmod tests {\n    use super::Thing;\n}")
    (tmp_path / "b.rs").write_text("use crate::a::Thing;")
    assert circle_in(tmp_path) == []


def test_no_test_is_in_a_program_of_which_no_test_program_is_made() -> None:
    """Nor in a comment: documentation is not tested."""
    manifest = tomllib.loads((SOURCES.parent / "Cargo.toml").read_text())
    assert manifest["lib"]["doctest"] is False
    left_out = [SOURCES.parent / each["path"] for each in manifest["bin"] if each["test"] is False]
    assert len(left_out) == 3
    shared = SOURCES / "bin" / "common"
    for path in (*left_out, *shared.rglob("*.rs")):
        assert "#[test]" not in path.read_text(), path
    assert not [path for path in SOURCES.rglob("*.rs") if re.search(r"^\s*//[/!] ```", path.read_text(), re.MULTILINE)]

# SPDX-License-Identifier: Apache-2.0
"""Recipes, servers and plans with one odd value: each is accepted, or refused in one line without a traceback.

`python -m tests.labs.storms mutate-plans mutate-recipes` gives them several odd values, and damages their text.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.mutants import EXAMPLES, FOLDER, PLAN, RECIPES, document, mutants, parsed

from natgauge.cli import run

#: Of more than 50 faults of a plan, the first ones are told.
MOST = 40


def in_one_line(line: str, text: str) -> None:
    assert len(line) < 3000, text[:3000]
    assert re.match("natgauge: .*[^ ]", line)


def refused(mutated: Iterable[dict[str, Any]], file: Path, capsys: pytest.CaptureFixture[str], *words: str) -> int:
    """The number of mutants in `file` that a command refuses."""
    number = 0
    for mutant in mutated:
        text = document(mutant)
        file.write_text(text, encoding="utf-8")
        status, said = run(words), capsys.readouterr().err
        assert status in {0, 2}, f"{said}\nthe file was:\n{text[:3000]}"
        # A plan has a line for each fault.
        assert said.count("\n") == (1 if status else 0) or words[0] == "plan", said
        for line in said.splitlines():
            in_one_line(line, text)
        number += status == 2
    return number


def refused_together(original: Path, folder: Path, ran: Ran, plan_of: Callable[[list[str]], dict[str, Any]]) -> int:
    """The number of mutants of a file that plans refuse, each of which names many."""
    every, number = list(mutants(parsed(original))), 0
    for at, mutant in enumerate(every):
        # A recipe has the name of its file.
        named = {**mutant, "name": f"m{at}"} if mutant.get("name") == original.stem else mutant
        (folder / f"m{at}.toml").write_text(document(named), encoding="utf-8")
    for first in range(0, len(every), MOST):
        names = [str(folder / f"m{at}.toml") for at in range(first, min(first + MOST, len(every)))]
        (folder / "plan").write_text(document(plan_of(names)))
        lines = ran(["plan", "check", "--cores", "2", str(folder / "plan")], 2).err.splitlines()
        for line in lines:
            in_one_line(line, str(names))
        found = [int(re.findall(r": (?:gateways|measure)\[(\d+)\]", line)[0]) for line in lines]
        # Each has one.
        assert len({*found}) == len(found)
        number += len(found)
    # Some are read.
    assert number < len(every)
    return number


def test_the_writer_of_this_test_writes_what_it_read() -> None:
    for path in (*FOLDER.glob("*.toml"), *EXAMPLES.glob("*.toml")):
        assert tomllib.loads(document(parsed(path))) == parsed(path)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_with_one_odd_value_is_read_or_refused_in_one_line(name: str, tmp_path: Path, ran: Ran) -> None:
    def plan_of(names: list[str]) -> dict[str, Any]:
        return {"gateways": names, "measure": [{"metric": "throughput"}]}

    assert refused_together(FOLDER / f"{name}.toml", tmp_path, ran, plan_of) > 50


@pytest.mark.parametrize(
    ("recipe", "inner"), [("map-t-tayga", "parts/tayga-map-ce"), ("nftables-nat44", "common/nftables-masquerade")]
)
def test_a_part_or_fragment_with_one_odd_value_is_read_or_refused_in_one_line(
    recipe: str, inner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outer = tmp_path / f"{recipe}.toml"
    shutil.copy(FOLDER / outer.name, outer)
    file = tmp_path / f"{inner}.toml"
    file.parent.mkdir()
    assert refused(mutants(parsed(FOLDER / f"{inner}.toml")), file, capsys, "gateways", "show", str(outer)) > 50


def test_a_server_with_one_odd_value_is_read_or_refused_in_one_line(tmp_path: Path, ran: Ran) -> None:
    def plan_of(names: list[str]) -> dict[str, Any]:
        measure = [{"metric": "resolution-rate", "far_side": name} for name in names]
        return {"gateways": ["unbound-dns64"], "measure": measure}

    assert refused_together(min((FOLDER / "servers").glob("*.toml")), tmp_path, ran, plan_of) > 50


def test_a_plan_with_one_odd_value_is_read_or_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.toml"
    assert refused(mutants(PLAN), file, capsys, "plan", "check", "--cores", "2", str(file)) > 50


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('device = "ce"', 'device = ""', "chain.0.device: '': has characters, or a length, that it may not have"),
        ('device = "pe"', 'device = "p e"', "chain.1.device: 'p e': has characters, or a length, that it may not have"),
        ("stateful = true", f"stateful = {'9' * 5000}", "is not TOML"),
        ("stateful = true", f"stateful = {'[' * 5000}", "nested too deeply"),
        ("stateful = true", f"stateful = 0x{'f' * 5000}", "an integer of 20000 bits"),
        ("tayga-clat", "\\u0000", "U+0000"),
        ("tayga-clat", "x" * 5000, "(5002 characters): unknown"),
    ],
)
def test_a_chain_with_a_wrong_value_is_refused_in_one_line_without_a_traceback(  # noqa: PLR0917 - one per column
    old: str, new: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (FOLDER / "464xlat-tayga.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "464xlat-tayga.toml").write_text(text.replace(old, new), encoding="utf-8")
    assert run(["gateways", "show", "./464xlat-tayga.toml"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert words in shown.err
    assert [path.name for path in tmp_path.iterdir()] == ["464xlat-tayga.toml"]

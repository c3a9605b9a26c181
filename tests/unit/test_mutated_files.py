# SPDX-License-Identifier: Apache-2.0
"""Recipes, servers and plans with one odd value: each is accepted, or refused in one line without a traceback.

`python -m tests.labs.storms mutate-plans mutate-recipes` gives them several odd values, and damages their text.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.mutants import EXAMPLES, FOLDER, PLAN, RECIPES, document, mutants, parsed

from natgauge.campaigns.cells import points
from natgauge.campaigns.plan import read
from natgauge.cli import run
from natgauge.errors import NatgaugeError
from natgauge.gateways import far_side
from natgauge.gateways.recipe import load
from natgauge.host.cpus import as_if


def assert_in_one_line(error: NatgaugeError, text: str) -> None:
    message = str(error)
    assert len(message) < 3000, text[:3000]
    assert message.strip()


def try_all(mutated: Iterable[dict[str, Any]], file: Path, read_file: Any) -> int:
    """Read every mutant from `file`; the number of those that were refused."""
    refused = 0
    for mutant in mutated:
        text = document(mutant)
        file.write_text(text, encoding="utf-8")
        try:
            read_file(file)
        except NatgaugeError as error:
            assert_in_one_line(error, text)
            refused += 1
        except Exception as error:
            error.add_note(f"the file was:\n{text[:3000]}")
            raise
    return refused


def test_the_writer_of_this_test_writes_what_it_read() -> None:
    for path in (*FOLDER.glob("*.toml"), *EXAMPLES.glob("*.toml")):
        assert tomllib.loads(document(parsed(path))) == parsed(path)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_with_one_odd_value_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    table = parsed(FOLDER / f"{name}.toml")
    assert try_all(mutants(table), tmp_path / f"{name}.toml", load) > 50


@pytest.mark.parametrize(
    ("recipe", "inner"), [("map-t-tayga", "parts/tayga-map-ce"), ("nftables-nat44", "common/nftables-masquerade")]
)
def test_a_part_or_fragment_with_one_odd_value_is_read_or_refused_in_one_line(
    recipe: str, inner: str, tmp_path: Path
) -> None:
    outer = tmp_path / f"{recipe}.toml"
    shutil.copy(FOLDER / outer.name, outer)
    file = tmp_path / f"{inner}.toml"
    file.parent.mkdir()
    assert try_all(mutants(parsed(FOLDER / f"{inner}.toml")), file, lambda _: load(outer)) > 50


def test_a_server_with_one_odd_value_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path = next(iter(far_side.available().values()))
    assert try_all(mutants(parsed(path)), tmp_path / path.name, lambda file: far_side.load(str(file))) > 50


def test_a_plan_with_one_odd_value_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    with as_if(2):
        assert try_all(mutants(PLAN), tmp_path / "plan.toml", lambda file: points(read(file))) > 50


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

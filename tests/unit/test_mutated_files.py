# SPDX-License-Identifier: Apache-2.0
"""Recipes, servers and plans with one odd value: each is accepted, or refused in one line without a traceback."""

from __future__ import annotations

import json
import math
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.labs.moments import Moments

from natgauge.campaigns.cells import points
from natgauge.campaigns.plan import read
from natgauge.cli import run
from natgauge.duts import far_side
from natgauge.duts.recipe import load
from natgauge.errors import NatgaugeError
from natgauge.host.cpus import as_if

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "natgauge" / "duts" / "recipes"
EXAMPLES = ROOT / "examples"
#: Values of every TOML type, and those at which a shell, a path or a number breaks.
ODD: tuple[Any, ...] = (
    *("", " ", "x", "../x", "a/b", "two\nlines", "\u0000", "ü", "x" * 5000, "NG_X"),
    *(0, -1, 2**63, 16**5000, 1.5, math.nan, math.inf, True),
    *([], [[]], [1], [""], [{}], {}, {"": ""}, {"x": {"y": [1]}}),
)
#: Recipes of every shape: a chain, a process, all knobs, another system, port sets.
RECIPES = ("464xlat-tayga", "map-t", "nftables-nat44", "tayga-nat64", "openbsd-pf-nat44")

#: A plan with every part.
PLAN: dict[str, Any] = {
    "name": "small",
    "devices": ["nftables-nat44"],
    "repetitions": "auto",
    "profile": "quick",
    "seed": 1,
    "lab": {"placement": "shared", "cores": "1"},
    "traffic": {"frame_size": 64},
    "device": {"hash_size": "2^ceil(log2(N))"},
    "series": {"udp_timeout": [300], "error": ["5%"]},
    "point": [{"name": "first", "connections": 1000, "repetitions": 1}],
    "measure": [{"metric": "throughput", "devices": ["nftables-nat44"], "points": ["first"], "trial_seconds": 1}],
}

Step = str | int


def written(value: Any) -> str:
    """A value as TOML has it, in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        # Hexadecimal digits have no limit, neither in TOML nor in Python.
        return hex(value) if value >= 0 else str(value)
    if isinstance(value, float):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\u007f", "\\u007f")


def document(table: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(name)} = {written(value)}\n" for name, value in table.items())


def places(value: Any, *above: Step) -> Iterator[tuple[Step, ...]]:
    """The path of every value in a document, the document's own excepted."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield (*above, step)
        yield from places(one, *above, step)


def replaced(value: Any, place: tuple[Step, ...], by: Any) -> Any:
    """A copy with another value at one place."""
    if not place:
        return by
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], by)
    return copy


def removed(value: Any, place: tuple[Step, ...]) -> Any:
    """A copy without the value at one place."""
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if len(place) == 1:
        del copy[place[0]]
    else:
        copy[place[0]] = removed(value[place[0]], place[1:])
    return copy


def mutants(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document with each value removed, and with each value replaced by each odd one."""
    for place in places(table):
        yield removed(table, place)
        for odd in ODD:
            yield replaced(table, place, odd)


def mutant_of_several(table: dict[str, Any], chance: Random) -> dict[str, Any]:
    """The document with two to five of its values removed or replaced by odd ones."""
    mutant: dict[str, Any] = table
    for _ in range(chance.randint(2, 5)):
        if not (known := list(places(mutant))):
            break
        place = chance.choice(known)
        mutant = removed(mutant, place) if chance.random() < 0.2 else replaced(mutant, place, chance.choice(ODD))
    return mutant


def parsed(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


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


@pytest.mark.soak
@pytest.mark.slow("reads 10,000 files")
def test_ten_thousand_plans_and_recipes_with_several_odd_values_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    moments = Moments.of_this_run()
    plan = tmp_path / "plan.toml"
    refused = {}
    try:
        with as_if(2):
            many = (mutant_of_several(PLAN, moments) for _ in range(5000))
            refused["plan"] = try_all(many, plan, lambda file: points(read(file)))
        for name in RECIPES:
            table = parsed(FOLDER / f"{name}.toml")
            many = (mutant_of_several(table, moments) for _ in range(5000 // len(RECIPES)))
            refused[name] = try_all(many, tmp_path / f"{name}.toml", load)
    except Exception as error:
        error.add_note(f"the same files again: {moments.told}")
        raise
    assert min(refused.values()) > 500, moments.told


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('device = "ce"', 'device = ""', "chain.0.device: '': string should match pattern"),
        ('device = "pe"', 'device = "p e"', "chain.1.device: 'p e': string should match pattern"),
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
    assert run(["duts", "show", "./464xlat-tayga.toml"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert words in shown.err
    assert [path.name for path in tmp_path.iterdir()] == ["464xlat-tayga.toml"]

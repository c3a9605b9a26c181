# SPDX-License-Identifier: Apache-2.0
"""What `natgauge duts` prints: a line for each gateway, more with -v, all of it as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from natgauge.cli import run
from natgauge.duts.recipe import available, load
from natgauge.duts.support import last_run, runs_of
from natgauge.duts.toml_layers import BUILT_IN


@pytest.fixture(autouse=True)
def no_recipes_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without recipes, and output of the width that a file gets, also where pytest -s has a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NATGAUGE_DUTS", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert run(["duts", *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_each_gateway_has_one_line_of_at_most_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    heading, *lines = printed(capsys)
    assert heading.split("  ")[0] == "name"
    assert [line.split()[0] for line in lines] == list(available())
    assert max(map(len, [heading, *lines])) <= 100


def test_the_line_has_kind_places_last_run_and_title(capsys: pytest.CaptureFixture[str]) -> None:
    line = next(line for line in printed(capsys) if line.startswith("linux-ipv4 "))
    recipe = load("linux-ipv4")
    run_of_it = last_run(recipe)
    assert run_of_it is not None
    cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
    assert cells[1:4] == [recipe.kind, "here guest ssh", f"{run_of_it.date} {run_of_it.place}"]
    assert recipe.title.startswith(cells[4].removesuffix("…"))
    never = next(line for line in printed(capsys) if line.startswith("freebsd-pf "))
    assert "  ssh  " in never
    assert "  never  " in never


def test_a_wider_terminal_shows_more_of_the_titles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    for line in printed(capsys)[1:]:
        assert line.endswith(load(line.split()[0]).title)


def test_verbose_has_whole_titles_and_what_ran(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(" ".join(printed(capsys, "-v")).split())
    for name in available():
        recipe = load(name)
        assert recipe.title in shown
        if found := last_run(recipe):
            assert ", ".join(found.version) in shown


def test_a_recipe_of_ones_own_has_its_path_and_a_name_used_twice_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ("long-" * 12)
    folder.mkdir()
    monkeypatch.setenv("NATGAUGE_DUTS", str(folder))
    text = (BUILT_IN / "linux-ipv4.toml").read_text()
    (folder / "linux-ipv4.toml").write_text(text)
    (folder / "mine.toml").write_text(text.replace('name = "linux-ipv4"', 'name = "mine"'))
    lines = printed(capsys)
    assert f"{folder}/mine.toml: " in next(line for line in lines if line.startswith("mine "))
    twice = [line for line in lines if line.startswith("linux-ipv4 ")]
    assert len(twice) == 2
    assert all("same name as another, give the path" in line for line in twice)
    assert f"{folder}/linux-ipv4.toml: " in "".join(twice)


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = printed(capsys, "--json")
    found = json.loads(text)["duts"]
    assert [one["name"] for one in found] == list(available())
    assert {"name", "title", "kind", "places", "last_run", "origin"} <= set(found[0])


def test_the_table_of_runs_has_every_run_and_names_the_gateways_never_run(capsys: pytest.CaptureFixture[str]) -> None:
    heading, *lines = printed(capsys, "runs")
    assert heading.split() == ["name", "translates", "where", "date", "system", "software"]
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    expected = []
    for name in available():
        recipe = load(name)
        found = runs_of(recipe)
        expected += [
            [
                *(name, recipe.kind, each.place, each.date, each.system or "not recorded"),
                "; ".join(each.software) or "the kernel alone",
            ]
            for each in found
        ] or [[name, recipe.kind, "never", "-", "-", "-"]]
    assert cells == expected
    assert ["freebsd-pf", "nat44", "never", "-", "-", "-"] in cells
    kernel = [row for row in cells if row[0] == "linux-ipv4"]
    assert all(row[4].startswith("Linux ") and row[5] == "the kernel alone" for row in kernel)


def test_the_table_of_runs_as_markdown_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "runs", "--format", "markdown")
    assert shown[:2] == ["| name | translates | where | date | system | software |", "| --- " * 6 + "|"]
    assert any(line.startswith(f"| tayga-nat64 | nat64: {load('tayga-nat64').title} | here | ") for line in shown)
    assert {line.count(" | ") for line in shown[2:]} == {5}
    (text,) = printed(capsys, "runs", "--json")
    found = {one["name"]: one for one in json.loads(text)["runs"]}
    assert list(found) == list(available())
    assert found["freebsd-pf"]["runs"] == []
    (tayga,) = found["tayga-nat64"]["runs"]
    assert tayga == last_run(load("tayga-nat64")).as_dict() | {"version": list(tayga["version"])}  # type: ignore[union-attr]

# SPDX-License-Identifier: Apache-2.0
"""What `natgauge gateways` prints: a line for each gateway, more with -v, all of it as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
from tests.unit.golden import Golden

from natgauge.cli import run
from natgauge.gateways import support
from natgauge.gateways.recipe import Kind, available, digest, load
from natgauge.gateways.support import KINDS, Run, last_run, runs_of
from natgauge.gateways.toml_layers import BUILT_IN

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_recipes_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without recipes, and output of the width that a file gets, also where pytest -s has a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NATGAUGE_GATEWAYS", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert run(["gateways", *options]) == 0
    return capsys.readouterr().out.splitlines()


def names_by_kind(lines: Iterable[str]) -> dict[str, list[str]]:
    return {kind: names.split(", ") for kind, _, names in (line.partition(": ") for line in lines)}


def test_gateways_are_listed_by_kind_in_a_line_each(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    """Seen: 73 lines of cut titles, before anybody knew which kinds there are."""
    *lines, number, more = printed(capsys)
    found = names_by_kind(lines)
    assert list(found) == [kind for kind in KINDS if kind in found]
    assert sorted(name for names in found.values() for name in names) == sorted(available())
    assert all(load(name).kind == kind for kind, names in found.items() for name in names)
    assert len(lines) < 25
    assert number.startswith(f"{len(available())} gateways")
    golden(more)


def test_verbose_has_whole_titles_and_what_ran(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(" ".join(printed(capsys, "-v")).split())
    for name in available():
        recipe = load(name)
        assert recipe.title in shown
        if found := last_run(recipe):
            assert ", ".join(found.version) in shown


def test_a_recipe_of_ones_own_has_its_path_and_a_name_used_twice_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folder = tmp_path / ("long-" * 12)
    folder.mkdir()
    monkeypatch.setenv("NATGAUGE_GATEWAYS", str(folder))
    text = (BUILT_IN / "linux-ipv4.toml").read_text()
    (folder / "linux-ipv4.toml").write_text(text)
    (folder / "mine.toml").write_text(text.replace('name = "linux-ipv4"', 'name = "mine"'))
    *lines, _, _ = printed(capsys)
    routing = next(line for line in lines if line.startswith("routing: "))
    golden(routing)
    assert f"mine ({folder}/mine.toml)" in routing
    assert f"linux-ipv4 ({folder}/linux-ipv4.toml)" in routing
    assert f"linux-ipv4 ({BUILT_IN}/linux-ipv4.toml)" in routing
    assert "linux-ipv6," in routing or routing.endswith("linux-ipv6")


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = printed(capsys, "--json")
    found = json.loads(text)["gateways"]
    assert [one["name"] for one in found] == list(available())
    assert {"name", "title", "kind", "places", "last_run", "origin", "rules_from"} <= set(found[0])


def software_of(name: str, each: Run) -> str:
    rules = load(name).rules_from
    return "; ".join([*each.software, *([f"rules from {rules}"] if rules else [])]) or "the kernel alone"


def table_of_runs(capsys: pytest.CaptureFixture[str], *names: str) -> tuple[list[str], list[str]]:
    """The table of runs, and the legend below it."""
    lines = printed(capsys, "runs", *names)
    return lines[: lines.index("")], lines[lines.index("") + 1 :]


def test_the_table_of_runs_has_every_run_and_names_the_gateways_never_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    heading, *lines = table_of_runs(capsys)[0]
    assert heading.split() == ["name", "kind", "where", "date", "system", "software"]
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    expected = []
    for name in available():
        recipe = load(name)
        found = runs_of(recipe)
        expected += [
            [*(name, recipe.kind, each.place, each.date, each.system), software_of(name, each)] for each in found
        ] or [[name, recipe.kind, "-", "never", "-", "-"]]
    assert cells == expected
    assert ["freebsd-pf", "nat44", "-", "never", "-", "-"] in cells
    kernel = [row for row in cells if row[0] == "linux-ipv4"]
    assert all(row[4].startswith("Linux ") and row[5] == "the kernel alone" for row in kernel)


def test_the_table_of_runs_as_markdown_and_json(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    shown = printed(capsys, "runs", "--format", "markdown")
    golden(shown[:2])
    assert any(line.startswith(f"| tayga-nat64 | nat64 | {load('tayga-nat64').title} | here | ") for line in shown)
    table, legend = shown[2 : shown.index("")], shown[shown.index("") + 1 :]
    assert {line.count(" | ") for line in table} == {6}
    assert {line[:2] for line in legend} == {"- "}
    (text,) = printed(capsys, "runs", "--json")
    found = {one["name"]: one for one in json.loads(text)["runs"]}
    assert list(found) == list(available())
    assert found["freebsd-pf"]["runs"] == []
    (tayga,) = found["tayga-nat64"]["runs"]
    assert tayga == last_run(load("tayga-nat64")).as_dict() | {"version": list(tayga["version"])}  # type: ignore[union-attr]


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_of_runs_fits_the_terminal_and_loses_nothing(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table, legend = table_of_runs(capsys)
    assert max(map(len, [*table, *legend])) <= width
    flat = " ".join(" ".join(table).split())
    for name in available():
        recipe = load(name)
        for each in runs_of(recipe):
            row = f"{name} {recipe.kind} {each.place} {each.date} {each.system}; {software_of(name, each)}"
            assert row in flat


def test_the_table_of_runs_takes_names(capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = table_of_runs(capsys, "tayga-nat64", "freebsd-pf", "tayga-nat64")
    assert [line.split()[0] for line in table if not line.startswith(" ")] == ["name", "tayga-nat64", "freebsd-pf"]
    (text,) = printed(capsys, "runs", "linux-ipv6", "--json")
    assert [one["name"] for one in json.loads(text)["runs"]] == ["linux-ipv6"]


def test_the_legend_explains_what_is_in_the_table_and_nothing_else(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    def legend(name: str) -> str:
        return " ".join(" ".join(table_of_runs(capsys, name)[1]).split())

    assert "by natgauge's authors" in legend("freebsd-pf")
    assert "softwire by" not in legend("freebsd-pf")
    golden(legend("b4-kernel"))
    golden(legend("b4"))
    golden(legend("ufw-nat44"))


def test_a_rule_set_names_the_software_that_it_is_from(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "gateways.md").read_text().replace("`", "")
    section = page.split("## Rule sets of other software", 1)[1].split("\n## ", 1)[0]
    of_other_software = re.findall(r"[a-z-]+-nat44", section.split("| Recipe |", 1)[1].split("\n\n", 1)[0])
    assert len(of_other_software) == 7
    for name in of_other_software:
        recipe = load(name)
        assert recipe.rules_from, name
        assert recipe.rules_from in section
        assert "rules" in recipe.title[:40], "what differs comes first, because a narrow terminal cuts the rest"
        assert f"  rules     from {recipe.rules_from}" in printed(capsys, "show", name)
    assert {name for name in available() if load(name).rules_from} == set(of_other_software)


def test_the_source_of_a_rule_set_does_not_change_the_digest() -> None:
    recipe = load("docker-nat44")
    assert digest(recipe) == digest(recipe.model_copy(update={"rules_from": None}))


BROKEN = 'name = "mine"\ntitle = "x"\nkind = "nat45"\n'


@pytest.mark.parametrize("options", [(), ("-v",)])
def test_a_broken_file_does_not_hide_the_other_gateways(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    expected = printed(capsys, *options)
    (tmp_path / "gateways").mkdir()
    for name in ("mine", "theirs"):
        (tmp_path / "gateways" / f"{name}.toml").write_text(BROKEN)
    assert run(["gateways", *options]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines() == expected
    first, second = said.err.splitlines()
    assert first.startswith("natgauge: gateways/mine.toml: kind: 'nat45': ")
    assert second.startswith("natgauge: gateways/theirs.toml: kind: 'nat45': ")
    golden(first)
    golden(second)


def test_json_names_the_broken_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "--json")[0])["broken"] == []
    (tmp_path / "gateways").mkdir()
    (tmp_path / "gateways" / "mine.toml").write_text(BROKEN)
    assert run(["gateways", "--json"]) == 2
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert [one["name"] for one in found["gateways"]] == [name for name in available() if name != "mine"]
    (left_out,) = found["broken"]
    assert left_out["file"] == "gateways/mine.toml"
    assert left_out["error"].startswith("gateways/mine.toml: kind: 'nat45': ")
    assert said.err.count("\n") == 1


def test_the_page_on_gateways_explains_every_kind() -> None:
    page = (ROOT / "docs" / "gateways.md").read_text()
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \| (.+) \|$", page.split("## Kinds\n", 1)[1].split("\n## ", 1)[0], re.MULTILINE
    )
    # The page says before its table that the tester emulates the other half.
    assert dict(rows) == {kind: text.split("; the tester emulates")[0] for kind, text in KINDS.items()}
    assert list(KINDS) == list(get_args(Kind))


def without_dates(lines: Iterable[str]) -> list[str]:
    """Lines with each date replaced: the samples in the documentation need no change with each recorded run."""
    return [re.sub(r"\d{4}-\d\d-\d\d", "DATE", line).rstrip() for line in lines]


def test_samples_in_the_page_on_gateways_are_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a machine whose kernel has no modules for gateways; where a gateway runs depends on them."""
    monkeypatch.setattr(support, "places", partial(support.places, has=lambda _module: False))
    page = (ROOT / "docs" / "gateways.md").read_text()
    samples = re.findall(r"^```text\n\$ natgauge (gateways.*)\n((?:.*\n)*?)```$", page, re.MULTILINE)
    assert len(samples) == 1
    for command, sample in samples:
        typed, _, count = command.partition(" | head -n ")
        shown = printed(capsys, *typed.split()[1:])
        assert without_dates(sample.splitlines()) == without_dates(shown[: int(count) if count else None])


def test_one_gateway_is_shown_with_the_meaning_of_its_kind(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    lines = printed(capsys, "show", "tayga-nat64")
    assert f"  kind      nat64: {KINDS['nat64']}" in lines
    golden([line for line in lines if line.startswith("  frames")])

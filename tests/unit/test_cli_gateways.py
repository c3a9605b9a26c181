# SPDX-License-Identifier: Apache-2.0
"""What `natgauge gateways` prints: a line for each gateway, more with -v, all of it as JSON."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.simulated_lab import NAT44, measure
from tests.unit.conftest import Ran
from tests.unit.golden import Golden

from natgauge.cli import run

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "natgauge" / "gateways" / "recipes"
#: What the files of natgauge's own recipes say.
RECIPES: Mapping[str, Any] = {
    path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"), key=lambda path: path.stem)
}
#: The recorded runs, by gateway and place.
RUNS: Mapping[str, Any] = {
    name: {place: places[place] for place in ("here", "guest", "ssh") if place in places}
    for name, places in tomllib.loads((FOLDER / "runs" / "last.toml").read_text()).items()
}
PAGE = (ROOT / "docs" / "gateways.md").read_text()
#: What the page says of each kind.
KINDS = dict(
    re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", PAGE.split("## Kinds\n", 1)[1].split("\n## ", 1)[0], re.MULTILINE)
)


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
    assert sorted(name for names in found.values() for name in names) == sorted(RECIPES)
    assert all(RECIPES[name]["kind"] == kind for kind, names in found.items() for name in names)
    assert len(lines) < 25
    assert number.startswith(f"{len(RECIPES)} gateways")
    golden(more)


def test_verbose_has_whole_titles_and_what_ran(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(" ".join(printed(capsys, "-v")).split())
    for name, recipe in RECIPES.items():
        assert recipe["title"] in shown
        if name in RUNS:
            newest = max(RUNS[name].values(), key=lambda found: found["date"])
            assert ", ".join(newest["version"]) in shown


def test_a_recipe_of_ones_own_has_its_path_and_a_name_used_twice_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folder = tmp_path / ("long-" * 12)
    folder.mkdir()
    monkeypatch.setenv("NATGAUGE_GATEWAYS", str(folder))
    text = (FOLDER / "linux-ipv4.toml").read_text()
    (folder / "linux-ipv4.toml").write_text(text)
    (folder / "mine.toml").write_text(text.replace('name = "linux-ipv4"', 'name = "mine"'))
    *lines, _, _ = printed(capsys)
    routing = next(line for line in lines if line.startswith("routing: "))
    golden(routing)
    assert f"mine ({folder}/mine.toml)" in routing
    assert f"linux-ipv4 ({folder}/linux-ipv4.toml)" in routing
    assert f"linux-ipv4 ({FOLDER}/linux-ipv4.toml)" in routing
    assert "linux-ipv6," in routing or routing.endswith("linux-ipv6")


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = printed(capsys, "--json")
    found = json.loads(text)["gateways"]
    assert [one["name"] for one in found] == list(RECIPES)
    assert {"name", "title", "kind", "places", "last_run", "origin", "rules_from"} <= set(found[0])


def system_and_software(name: str, found: Mapping[str, Any]) -> tuple[str, str]:
    """What the table says of the machine and the programs of a run."""
    kernels = [line for line in found["version"] if re.match(r"(Linux|FreeBSD|OpenBSD) ", line)]
    distribution, rules = found.get("distribution"), RECIPES[name].get("rules_from")
    parts = kernels[0] if kernels else "kernel not recorded", distribution or "distribution not recorded"
    programs = [line for line in found["version"] if line not in kernels] + ([f"rules from {rules}"] if rules else [])
    return ", ".join(parts) if kernels or distribution else "not recorded", "; ".join(programs) or "the kernel alone"


@cache
def rows_of_runs() -> list[list[str]]:
    """Each row of the table as its cells."""
    rows: list[list[str]] = []
    for name, recipe in RECIPES.items():
        rows += [
            [name, recipe["kind"], place, found["date"], *system_and_software(name, found)]
            for place, found in RUNS.get(name, {}).items()
        ] or [[name, recipe["kind"], "-", "never", "-", "-"]]
    return rows


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
    assert cells == rows_of_runs()
    assert ["freebsd-pf", "nat44", "-", "never", "-", "-"] in cells
    kernel = [row for row in cells if row[0] == "linux-ipv4"]
    assert all(row[4].startswith("Linux ") and row[5] == "the kernel alone" for row in kernel)


def test_the_table_of_runs_as_markdown_and_json(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    shown = printed(capsys, "runs", "--format", "markdown")
    golden(shown[:2])
    assert any(
        line.startswith(f"| tayga-nat64 | nat64 | {RECIPES['tayga-nat64']['title']} | here | ") for line in shown
    )
    table, legend = shown[2 : shown.index("")], shown[shown.index("") + 1 :]
    assert {line.count(" | ") for line in table} == {6}
    assert {line[:2] for line in legend} == {"- "}
    (text,) = printed(capsys, "runs", "--json")
    found = {one["name"]: one for one in json.loads(text)["runs"]}
    assert list(found) == list(RECIPES)
    assert found["freebsd-pf"]["runs"] == []
    (tayga,) = found["tayga-nat64"]["runs"]
    assert tayga == {"place": "here", **RUNS["tayga-nat64"]["here"]}


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_of_runs_fits_the_terminal_and_loses_nothing(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table, legend = table_of_runs(capsys)
    assert max(map(len, [*table, *legend])) <= width
    flat = " ".join(" ".join(table).split())
    run_rows = [" ".join(row[:5]) + f"; {row[5]}" for row in rows_of_runs() if row[2] != "-"]
    assert len(run_rows) > 50
    assert [row for row in run_rows if row not in flat] == []


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
    section = PAGE.replace("`", "").split("## Rule sets of other software", 1)[1].split("\n## ", 1)[0]
    of_other_software = re.findall(r"[a-z-]+-nat44", section.split("| Recipe |", 1)[1].split("\n\n", 1)[0])
    assert len(of_other_software) == 7
    for name in of_other_software:
        title, rules = RECIPES[name]["title"], RECIPES[name]["rules_from"]
        assert rules in section
        assert "rules" in title[:40], "what differs comes first, because a narrow terminal cuts the rest"
        assert f"  rules     from {rules}" in printed(capsys, "show", name)
    assert {name for name, recipe in RECIPES.items() if "rules_from" in recipe} == set(of_other_software)


def test_the_source_of_a_rule_set_does_not_change_the_digest(tmp_path: Path) -> None:
    text = NAT44.read_text()
    digests = []
    for number, line in enumerate(["", 'rules_from = "a router"', '[environment]\nOTHER = "1"']):
        file = tmp_path / str(number) / NAT44.name
        file.parent.mkdir()
        file.write_text(text.replace("[verbs]", f"{line}\n\n[verbs]"))
        known = measure("throughput", gateway=file, connections=1000, connection_rate=1e5, most_seconds=10)
        digests.append(known.document["parameters"]["device"]["recipe_digest"])
    assert digests[0] == digests[1] != digests[2]


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


def test_a_chain_without_one_of_its_devices_is_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list called the file of the device left out, which was never in it."""
    (tmp_path / "gateways").mkdir()
    chain = (FOLDER / "464xlat-tayga.toml").read_text().replace('name = "464xlat-tayga"', 'name = "mine"')
    (tmp_path / "gateways" / "mine.toml").write_text(chain.replace('"tayga-clat"', '"./none.toml"'))
    assert run(["gateways"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("natgauge: gateways/none.toml: cannot be read")
    assert said.endswith("; mine.toml is left out of the list\n")


def test_json_names_the_broken_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "--json")[0])["broken"] == []
    (tmp_path / "gateways").mkdir()
    (tmp_path / "gateways" / "mine.toml").write_text(BROKEN)
    assert run(["gateways", "--json"]) == 2
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert [one["name"] for one in found["gateways"]] == list(RECIPES)
    (left_out,) = found["broken"]
    assert left_out["file"] == "gateways/mine.toml"
    assert left_out["error"].startswith("gateways/mine.toml: kind: 'nat45': ")
    assert said.err.count("\n") == 1


def test_the_page_on_gateways_explains_every_kind(tmp_path: Path, ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(BROKEN)
    (refused,) = ran(["gateways", "show", "./mine.toml"], status=2).err.splitlines()
    assert re.findall(r"'([^']+)'", refused.partition(" is not ")[2]) == list(KINDS)
    (tmp_path / NAT44.name).write_text(
        NAT44.read_text().replace('"nat44"', '"softwire"').replace('"ipv4"', '"ipv6"', 1)
    )
    one_of = {recipe["kind"]: name for name, recipe in RECIPES.items()} | {"softwire": f"./{NAT44.name}"}
    assert set(one_of) == set(KINDS)
    for kind, name in one_of.items():
        (line,) = (line for line in printed(capsys, "show", name) if line.startswith("  kind "))
        # The page says before its table that the tester emulates the other half.
        assert line.split("; the tester emulates")[0] == f"  kind      {kind}: {KINDS[kind]}"


def without_dates(lines: Iterable[str]) -> list[str]:
    """Lines with each date replaced: the samples in the documentation need no change with each recorded run."""
    return [re.sub(r"\d{4}-\d\d-\d\d", "DATE", line).rstrip() for line in lines]


def test_samples_in_the_page_on_gateways_are_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    samples = re.findall(r"^```text\n\$ natgauge (gateways.*)\n((?:.*\n)*?)```$", PAGE, re.MULTILINE)
    assert len(samples) == 1
    for command, sample in samples:
        typed, _, count = command.partition(" | head -n ")
        shown = printed(capsys, *typed.split()[1:])
        assert without_dates(sample.splitlines()) == without_dates(shown[: int(count) if count else None])


def test_one_gateway_is_shown_with_the_meaning_of_its_kind(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    lines = printed(capsys, "show", "tayga-nat64")
    assert f"  kind      nat64: {KINDS['nat64']}" in lines
    golden([line for line in lines if line.startswith("  frames")])

# SPDX-License-Identifier: Apache-2.0
"""Published tables: whatever in them follows from other printed figures is what our own formulas make of those.

The known slips of the sources are the only exceptions, and each of them is one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.recompute import TABLES, checks, judged, with_cell

from natgauge.cli import run

NAMES = list(TABLES)
#: What follows from other rows wherever it is printed.
DERIVED = {
    "table-per-connection", "connections-per-bucket", "relative-scale-up", "percent-of-forwarding", "to-previous",
    "deletion-time", "tear-down-rate", "new-connection-share",
}  # fmt: skip
#: Table, row, column and wrong cell.
SLIPS = [
    (name, slip.row, column, printed, right)
    for name, table in TABLES.items()
    for slip in table.slips
    for column, printed, right in zip(slip.columns, slip.printed, slip.right, strict=True)
]


def test_every_table_of_the_sources_is_there() -> None:
    figures = {f"scalability-draft-figure-{number}" for number in (2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 15, 17)}
    tables = {f"nat64-paper-table-{number}" for number in range(2, 24)}
    others = {"scalability-draft-section-2-3", "nat64-paper-figure-2", "csit-nat44-tcp-cps"}
    mails = {"v6ops-mail-table-1", "v6ops-mail-table-2", "v6ops-mail-forwarding"}
    assert set(NAMES) == figures | tables | mails | others


def test_no_two_tables_have_one_title() -> None:
    """Seen: two lines of the list were the same but for the number of the table."""
    titles = Counter((table.source, table.title) for table in TABLES.values())
    assert [title for title, count in titles.items() if count > 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_derived_figure_is_left_out(name: str) -> None:
    table = TABLES[name]
    found = {(check.row, check.column) for check in checks(table)}
    printed = {
        (row.label, column)
        for row in table.rows
        if row.kind in DERIVED
        for column, cell in enumerate(row.cells, start=1)
        if cell != "-"
    }
    assert printed <= found


@pytest.mark.parametrize("name", NAMES)
def test_what_follows_from_other_figures_is_what_we_compute(name: str) -> None:
    right = TABLES[name].corrected(*TABLES[name].slips)
    assert [check for check in checks(right) if check.agreement == "differs"] == []
    assert [check for check in judged(TABLES[name]) if check.agreement == "differs"] == []


@pytest.mark.parametrize(("name", "row", "column", "printed", "right"), SLIPS, ids=str)
def test_each_known_slip_is_one(name: str, row: str, column: int, printed: str, right: str) -> None:
    table = TABLES[name].corrected(*TABLES[name].slips)
    wrong = with_cell(table, row, column, printed)
    differing = [check for check in checks(wrong) if check.agreement == "differs"]
    assert differing, f"{row}, column {column}: {printed} agrees with the rest of the table; {right} is no better"


def test_the_slips_are_these(golden: Golden) -> None:
    golden(Counter((name, row) for name, row, _, _, _ in SLIPS))


def test_figures_agree_to_the_last_digit_or_but_for_the_rounding_of_what_they_follow_from(golden: Golden) -> None:
    found = [check for table in TABLES.values() for check in judged(table)]
    derived = Counter(check.agreement for check in found if check.is_derived)
    assert derived == {"same": 242, "rounding": 8, "slip": 8}
    golden({(check.table, check.row) for check in found if check.agreement == "rounding"})


def test_rates_printed_in_other_units_are_brought_to_one() -> None:
    table = TABLES["scalability-draft-figure-2"]
    forwarding = table.quantities["forwarding"].model_copy(update={"times": 1_000_000})
    other = table.model_copy(update={"quantities": {**table.quantities, "forwarding": forwarding}})
    (plain, million) = (
        [check.recomputed for check in checks(each) if check.rule == "percent-of-forwarding"] for each in (table, other)
    )
    assert plain == pytest.approx([45.5, 48.8, 45.7, 39.5, 39.4], abs=0.07)
    assert million == pytest.approx([share / 1000 for share in plain])


@pytest.mark.parametrize("name", [name for name in NAMES if any(check.is_derived for check in checks(TABLES[name]))])
def test_a_wrong_digit_in_any_derived_figure_is_found(name: str) -> None:
    table = TABLES[name].corrected(*TABLES[name].slips)
    for check in checks(table):
        if check.is_derived:
            cell = check.printed
            at = next(number for number, character in enumerate(cell) if character.isdigit())
            wrong = f"{cell[:at]}{(int(cell[at]) + 1) % 10}{cell[at + 1 :]}"
            found = checks(with_cell(table, check.row, check.column, wrong))
            assert any(each.agreement == "differs" and each.row == check.row for each in found), (check, wrong)


CPS, FPS, RATE = "Median (cps)", "Median (fps)", "Connection tear down rate (cps)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("nat64-paper-table-4", CPS, [5]), ("nat64-paper-table-6", CPS, [2])),
        (("nat64-paper-table-5", FPS, [5]), ("nat64-paper-table-7", FPS, [2])),
        (("nat64-paper-table-5", FPS, [5]), ("nat64-paper-table-8", FPS, [2])),
        (("nat64-paper-table-4", CPS, [5]), ("nat64-paper-table-22", CPS, [2])),
        (("nat64-paper-table-12", CPS, [2]), ("nat64-paper-table-22", CPS, [4])),
        (("nat64-paper-table-18", CPS, [2]), ("nat64-paper-table-22", CPS, [6])),
        (("nat64-paper-table-14", FPS, [2]), ("nat64-paper-table-15", FPS, [2])),
        (("nat64-paper-table-19", FPS, [2]), ("nat64-paper-table-20", FPS, [2])),
        (("nat64-paper-table-18", CPS, [1, 2, 3]), ("scalability-draft-figure-12", CPS, [1, 2, 3])),
        (("nat64-paper-table-19", FPS, [1, 2, 3]), ("scalability-draft-figure-12", FPS, [1, 2, 3])),
        (("nat64-paper-table-21", RATE, [1, 2, 3]), ("scalability-draft-figure-13", RATE, [1, 2, 3])),
    ],
)
def test_a_figure_that_was_printed_twice_is_the_same(
    one: tuple[str, str, list[int]], other: tuple[str, str, list[int]]
) -> None:
    def cells(name: str, label: str, columns: list[int]) -> list[str]:
        row = next(row for row in TABLES[name].rows if row.label == label)
        return [row.cells[column - 1] for column in columns]

    assert cells(*one) == cells(*other)


def test_the_page_counts_what_the_check_counts_and_names_a_table_as_an_example() -> None:
    page = (Path(__file__).parents[2] / "docs" / "published.md").read_text()
    found = Counter(check.agreement for table in TABLES.values() for check in judged(table) if check.is_derived)
    told = {word: int(count) for word, count in re.findall(r"^\| `([a-z]+)` \|.*\| (\d+) \|$", page, re.MULTILINE)}
    assert told == {"differs": 0, **found}
    example = re.search(r"such as `([a-z0-9-]+)\.toml`", page)
    assert example is not None
    assert example[1] in TABLES


def test_numbers_in_json_are_in_the_unit_of_their_quantity(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["published", "--json", "scalability-draft-figure-2", "nat64-paper-table-9"]) == 0
    figure, table = json.loads(capsys.readouterr().out)["tables"]
    values = {row["label"]: row["values"] for row in figure["rows"]}
    assert values["cps median"] == [223_500, 371_100, 708_700, 1_341_000, 2_383_000]
    assert values["error"] == [100, 100, 100, 1000, 1000]
    assert values["cps rel. scale up"] == [1, 0.830, 0.793, 0.750, 0.666]
    assert values["hash table size"] == [2**23] * 5
    latency = {row["label"]: row["values"] for row in table["rows"]}
    assert latency["direction"] is None
    assert latency["Median (ms)"] == pytest.approx([31.6, 92.3, 30.2, 95.7])
    assert table["quantities"]["latency"]["unit"] == "us"


def test_the_check_tells_every_row_every_slip_and_the_sums(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert run(["published", "--check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    golden(lines)
    assert sum(line.startswith("Slip in ") for line in lines) == len(SLIPS)
    assert run(["published", "--check", "--json", "scalability-draft-section-2-3"]) == 0
    found = json.loads(capsys.readouterr().out)["checks"]
    assert [(one["printed"], round(one["recomputed"], 4), one["agreement"]) for one in found] == [
        ("0.52", 0.5124, "slip"),
        ("8.2", 8.1984, "same"),
    ]


def test_a_table_that_is_named_twice_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for times in (1, 2):
        assert run(["published", *(times * ["scalability-draft-section-2-3"]), "--check"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_what_the_command_says_of_the_figures_is_what_we_compute(ran: Ran) -> None:
    """`checks.json` has what `tests/unit/recompute.py` finds."""
    found = [asdict(check) for table in TABLES.values() for check in judged(table)]
    assert json.loads(ran(["published", "--check", "--json"]).out)["checks"] == found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A results folder of a throughput."""
    (tmp_path / "summary.json").write_text(json.dumps(made([5.0]).document()))
    return tmp_path


def test_a_report_lays_published_figures_beside_and_marks_them(
    folder: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert run(["report", "--published", "nat64-paper-table-5", str(folder)]) == 0
    ours, _, theirs = capsys.readouterr().out.partition("Published, on their hardware; not measured here")
    assert ours.startswith("Measured here:\n")
    assert "497,654" not in ours
    assert "497,654" in theirs
    golden(theirs.rstrip())

# SPDX-License-Identifier: Apache-2.0
"""The table of many gateways: a line for each, what has no result, and doubts with names instead of columns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import PLAN, Benches, Dies, Killed, campaign, quick_disk
from tests.unit.golden import Golden
from tests.unit.made_results import keep, made, with_interval
from tests.unit.pages import unmarked

from natgauge.campaigns.status import status
from natgauge.cli import run
from natgauge.errors import BrokenError
from natgauge.notes import Note
from natgauge.records.measurement import Result
from natgauge.records.store import JOURNAL, JOURNAL_SCHEMA, Store
from natgauge.reports import markdown, text
from natgauge.reports.collected import Stored, StoredResults
from natgauge.reports.failures import BrokenMeasurement, broken_of, lacks_of, without_result, without_result_yet
from natgauge.reports.heading import heading
from natgauge.reports.many import doubts_of, is_wanted, sheet
from natgauge.stored.find_results import find

__all__ = ["quick_disk"]

#: Gateways of two works, and the connections/s of each.
RATES = {"a": 3e5, "b": 1e5, "c": 2e5, "d": 4e5, "e": 5e5, "f": 6e5, "g": 7e5, "x": 9e5, "y": 8e5}
UNDECIDED = "between 1 and 2: so it is"


def one(gateway: str, rate: float, **changed: Any) -> Result:
    of_work = {"kind": "nat64" if gateway in "xy" else "nat44"}
    parameters = {"gateway": gateway, "device_cores": 1, **of_work, **changed.pop("parameters", {})}
    values = [rate, rate, rate]
    return made(values, median=rate, metric="connection-rate", unit="connections/s", parameters=parameters, **changed)


def doubted(result: Result, doubt: Note) -> Result:
    return with_interval(result.model_copy(update={"doubts": (doubt,)}))


MANY = [one(*each) for each in RATES.items()]


def test_it_is_for_many_results_that_differ_by_gateway_alone() -> None:
    assert is_wanted(MANY)
    assert not is_wanted(MANY[:8])
    cores = [one("a", 1e5 * number, parameters={"device_cores": number}) for number in range(1, 10)]
    assert not is_wanted(cores)
    metrics = [made(metric=metric, parameters={"gateway": "a"}) for metric in ("latency", "pdv", "throughput") * 3]
    assert not is_wanted(metrics)


def test_a_work_has_its_gateways_in_the_order_of_their_first_metric() -> None:
    head, *lines = sheet(MANY).lines
    assert head.cells[0] == "connection-rate (connections/s)"
    assert [line.heading for line in lines if not line.cells] == ["nat44", "nat64"]
    assert [line.heading for line in lines if line.cells] == ["g", "f", "e", "d", "a", "c", "b", "x", "y"]


def test_what_broke_and_what_is_0_have_lines_with_their_reasons() -> None:
    cause = "connection-rate: no result: " + "it had no time " * 20
    broken = [BrokenMeasurement(gateway, "connection-rate", cause) for gateway in ("b", "new")]
    results = [*(result for result in MANY if result.gateway not in "bc"), one("c", 0.0)]
    lines = sheet(results, broken).lines
    cells = {line.heading: line.cells for line in lines if line.cells}
    assert float(cells["c"][0]) == 0
    assert cells["c"][-1]
    for gateway in ("b", "new"):
        figure, reason = cells[gateway]
        assert figure == "no result"
        assert cause.startswith(reason.removesuffix("..."))
        assert len(reason) <= 60
    assert lines[-1].heading == "new"


def test_a_figure_is_a_bound_where_its_answer_is_one_and_its_doubts_have_their_words() -> None:
    doubt = Note("host limited", "the host was the bottleneck", grade="answer")
    results = [*MANY[1:], doubted(one("a", 3e5, limited_by="host"), doubt)]
    (own,) = (line.cells for line in sheet(results).lines if line.heading == "a")
    assert own == ("at least 300 k†", "host limited")


def test_doubts_are_a_line_for_each_word_with_four_names_at_most() -> None:
    doubts = [Note("undecided", f"{UNDECIDED} {number}", grade="answer") for number in range(len(MANY))]
    results = list(map(doubted, MANY, doubts))
    (line,) = doubts_of(results)
    assert "undecided (9 results: a, b, c and 6 more)" in line
    assert line.count(UNDECIDED) == 1
    every = doubts_of(results, each=True)
    assert [each.count(UNDECIDED) for each in every] == [1] * len(MANY)
    assert "undecided (connection-rate of x)" in every[-2]


def test_text_breaks_no_figure_within_its_interval() -> None:
    doubt = Note("mixed", "not the same for all repetitions", grade="answer")
    units = {"connection-rate": "connections/s", "throughput": "frames/s"}
    wide = [
        doubted(
            made([1e5, 2e5, 3e5], metric=metric, unit=unit, parameters={"gateway": f"{name}-of-a-long-name"}), doubt
        )
        for metric, unit in units.items()
        for name in RATES
    ]
    shown = text.render(sheet(wide), 100)
    assert shown.count("(100 k to 300 k)†") == 2 * len(RATES)
    assert max(map(len, shown.splitlines())) <= 100
    assert "Columns" not in shown


def test_the_words_of_markdown_are_aligned_as_words() -> None:
    assert markdown.render(sheet(MANY)).splitlines()[1] == "| --- | ---: | --- |"


def test_frame_sizes_are_told_by_family() -> None:
    results = [
        one("a", 1e5, parameters={"initiator_family": "ipv4", "frame_size": 64}),
        one("x", 1e5, parameters={"initiator_family": "ipv6", "frame_size": 84}),
    ]
    found = heading(StoredResults(tuple(Stored(Path(), result) for result in results), ()), ())
    assert "64 octets (84 over IPv6)" in found.conditions
    alone = heading(StoredResults((Stored(Path(), results[1]),), ()), ())
    assert "84 octets," in f"{alone.conditions},"


def test_against_metrics_the_table_comes_first_and_nothing_that_it_shows_is_said_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: 25 long lines above the table that an operator asked for."""
    for at in range(4):
        parameters = {"gateway": f"g{at}", "kind": ("nat44", "nat64")[at % 2]}
        doubts = [
            {"word": "single repetition", "text": "one", "grade": "interval"},
            {"word": "disturbed trials", "text": "some", "grade": "information"},
        ]
        keep(
            Store.create(tmp_path, "throughput", f"g{at}"),
            made([1e5 * (at + 1)] * 4, parameters=parameters, doubts=doubts),
        )
    assert run(["report", str(tmp_path)]) == 0
    whole = capsys.readouterr().out
    assert run(["report", str(tmp_path), "--against", "metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = next(at for at, line in enumerate(lines) if line.startswith("gateway"))
    assert table <= 2
    ranked = [at for at, line in enumerate(lines) if "times" in line]
    assert ranked
    assert min(ranked) > table
    assert "disturbed trials" in whole
    below = "\n".join(lines)
    assert "disturbed trials" not in below
    assert "single repetition" in below
    assert "Bottleneck" in whole
    assert "Bottleneck" not in below


def test_many_are_printed_so_and_all_parameters_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for result in MANY:
        keep(Store.create(tmp_path, "connection-rate", result.gateway), result)

    def printed(*options: str) -> list[str]:
        assert run(["report", str(tmp_path), *options]) == 0
        return capsys.readouterr().out.splitlines()

    lines = printed()
    assert "nat64" in lines
    assert lines.index("nat64") + 1 == next(at for at, line in enumerate(lines) if line.startswith("x "))
    assert not any("99th percentile" in line for line in lines)
    assert any("99th percentile" in line for line in printed("-v"))
    # People have the same answers in each form.
    assert printed("--format", "markdown")[0].startswith("- ")
    assert any(line.startswith("| x | ") for line in printed("--format", "markdown"))


def test_what_broke_of_a_campaign_is_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benches = Benches(breaks={"linux-ipv4": BrokenError("linux-ipv4: does not come up")})
    campaign(tmp_path, benches)
    for form in ("text", "markdown"):
        assert run(["report", str(tmp_path / "out"), "--format", form]) == 0
        (line,) = (each for each in capsys.readouterr().out.splitlines() if "No result: " in each)
        assert "of linux-ipv4" in line
        assert "nftables-nat44" not in line
    stored = StoredResults((), (), campaigns=(tmp_path / "out",))
    assert {each.cause for each in broken_of(stored, lacks_of(stored))} == {"linux-ipv4: does not come up"}


@pytest.mark.parametrize("first", ["measurement", "device"])
def test_status_and_report_name_one_cause_of_what_broke_twice(tmp_path: Path, first: str) -> None:
    campaign(tmp_path, Benches(breaks={"linux-ipv4": BrokenError("does not come up")}))
    journal = tmp_path / "out" / JOURNAL
    cell = {"cell": "linux-ipv4-connections-1000", "schema": JOURNAL_SCHEMA, "event": "broken", "at": 1e9}
    nothing = {"trials": 0, "octets": 0, "rounds": 0, "round_octets": 0}
    measurement = {
        "scope": "measurement",
        "measurement": "throughput",
        "repetition": 1,
        "stored": nothing,
        "cause": "A",
    }
    alone = json.dumps({**cell, **measurement})
    lines = [line for line in journal.read_text().splitlines() if '"linux-ipv4' not in line]
    device = json.dumps({**cell, "scope": "device", "device": "linux-ipv4", "cause": "B"})
    journal.write_text("\n".join([*lines, *((alone, device) if first == "measurement" else (device, alone))]) + "\n")
    stored = StoredResults((), (), campaigns=(tmp_path / "out",))
    shown = {each.cause for each in broken_of(stored, lacks_of(stored))}
    assert shown == {one.broken for one in status(tmp_path / "out").measurements if one.broken} == {"B"}


@pytest.mark.parametrize("conditions", ["same", "others"])
def test_what_another_folder_of_the_report_has_under_the_same_conditions_is_not_missing(
    conditions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: "No result" of a gateway whose result stood in the table, from the folder in which it did not break."""
    broke, again = tmp_path / "broke", tmp_path / "again"
    for path, breaks in ((broke, {"linux-ipv4": BrokenError("linux-ipv4: does not come up")}), (again, {})):
        path.mkdir()
        plan = PLAN if conditions == "same" or path == broke else PLAN.replace('error = "30%"', 'error = "40%"')
        campaign(path, Benches(breaks=breaks), plan=plan)
    folders = [broke / "out", again / "out"]
    found = find(folders)
    missing = broken_of(found, lacks_of(found))
    assert len(missing) == (0 if conditions == "same" else 4)
    # Next to the result of other conditions it is said which campaign lacks one.
    assert {one.where for one in missing} <= {f" in {broke / 'out'}"}
    page = tmp_path / "page.html"
    assert run(["report", *map(str, folders), "--html", str(page)]) == 0
    assert ("does not come up" in page.read_text()) == (conditions == "others")
    assert run(["report", *map(str, folders)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert ("No result: " in told) == (conditions == "others")
    assert all(one.where in told for one in missing)
    # Alone, the folder lacks them.
    alone = find([broke / "out"])
    assert len(broken_of(alone, lacks_of(alone))) == 4


def test_what_a_campaign_has_not_begun_is_counted_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: who was given the page did not see that half of the campaign was to come."""
    whole, breaks = Benches(), {"linux-ipv4": BrokenError("does not come up")}
    for name in ("whole", "half"):
        (tmp_path / name).mkdir()
    campaign(tmp_path / "whole", whole)
    with pytest.raises(Killed):
        campaign(tmp_path / "half", Benches(breaks=breaks, killed=Dies(sum(whole.trials.values()) // 6)))
    folder = tmp_path / "half" / "out"
    found = find([folder])
    left = 8 - len(found.results) - len(broken_of(found, lacks_of(found)))
    assert left > 0
    (told,) = without_result_yet(lacks_of(found))
    assert re.findall(r"\d+", told)[:2] == [str(left), "8"]
    # Which they are, told apart.
    assert told.count("nftables-nat44-connections-") == min(left, 4)
    for form in ("text", "markdown", "latex"):
        assert run(["report", str(folder), "--format", form]) == 0
        shown = capsys.readouterr().out
        assert told in shown
        # Readers of a paper have no folder to ask.
        assert ("natgauge status" in shown) == (form != "latex")
        assert "No result: " in shown
    page = tmp_path / "page.html"
    assert run(["report", str(folder), "--html", str(page)]) == 0
    assert told in unmarked(page.read_text())
    golden(told)
    assert run(["report", str(folder), "--svg", str(tmp_path / "figures")]) == 0
    for drawing in (tmp_path / "figures").iterdir():
        words = re.sub(r"\s+", "", "".join(re.findall(r">([^<]+)<", drawing.read_text())))
        assert told.replace(" ", "") in words
    # A second campaign of the same plan has them all.
    assert not list(without_result_yet(lacks_of(find([folder, tmp_path / "whole" / "out"]))))


def test_what_did_not_end_is_named_even_where_its_plan_is_damaged(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("known", "damaged")]
    for folder, plan in zip(
        folders, ('{"schema": "natgauge-plan-1", "metric": "latency", "gateway": "a"}', "{"), strict=True
    ):
        folder.mkdir()
        (folder / "plan.json").write_text(plan)
    (told,) = without_result(StoredResults((), tuple(folders)), [])
    assert told.endswith(": latency of a, damaged.")

# SPDX-License-Identifier: Apache-2.0
"""The table of many gateways: a line for each, what has no result, and doubts with names instead of columns."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import PLAN, Benches, Dies, Killed, campaign, progress, quick_disk
from tests.unit.conftest import Ran, Report
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made
from tests.unit.pages import unmarked

from natgauge import Result
from natgauge.cli import run
from natgauge.errors import BrokenError

__all__ = ["quick_disk"]

#: Gateways of two works, and the connections/s of each.
RATES = {"a": 3e5, "b": 1e5, "c": 2e5, "d": 4e5, "e": 5e5, "f": 6e5, "g": 7e5, "x": 9e5, "y": 8e5}
UNDECIDED = "between 1 and 2: so it is"


def one(gateway: str, rate: float, **changed: Any) -> Result:
    of_work = {"kind": "nat64" if gateway in "xy" else "nat44"}
    parameters = {"gateway": gateway, "device_cores": 1, **of_work, **changed.pop("parameters", {})}
    values = [rate, rate, rate]
    return made(values, median=rate, metric="connection-rate", unit="connections/s", parameters=parameters, **changed)


def lines_of(markdown: str) -> list[list[str]]:
    """The cells of each line of the first table."""
    table = markdown.partition("\n\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()]


def cells_of(markdown: str) -> dict[str, list[str]]:
    """The cells of each gateway."""
    return {name: cells for name, *cells in lines_of(markdown)}


MANY = [one(*each) for each in RATES.items()]


def test_it_is_for_many_results_that_differ_by_gateway_alone(report: Report) -> None:
    cores = [one("a", 1e5 * number, parameters={"device_cores": number}) for number in range(1, 10)]
    units = {"latency": "us", "pdv": "us", "throughput": "frames/s"}
    metrics = [made(metric=name, unit=unit, parameters={"gateway": "a"}) for name, unit in units.items()] * 3
    # The table of few results has all figures of each.
    in_full = ["99th percentile" in report(*each) for each in (MANY, MANY[:8], cores, metrics)]
    assert in_full == [False, True, True, True]


def test_a_work_has_its_gateways_in_the_order_of_their_first_metric(report: Report) -> None:
    head, aligned, *lines = lines_of(report(*MANY, asked=["--format", "markdown"]))
    assert head[:2] == ["gateway", "connection-rate (connections/s)"]
    # Words are aligned as words.
    assert aligned == ["---", "---:", "---"]
    names = ["nat44", "g", "f", "e", "d", "a", "c", "b", "nat64", "x", "y"]
    assert [line[0] for line in lines] == names
    assert [line[0] for line in lines if not any(line[1:])] == ["nat44", "nat64"]


def test_what_broke_and_what_is_0_have_lines_with_their_reasons(tmp_path: Path, ran: Ran) -> None:
    cause = "connection-rate: no result: " + "it had no time " * 20
    plan = PLAN.replace("[1000, 2000]", "[1000]")
    campaign(tmp_path, Benches(breaks={"linux-ipv4": BrokenError(cause)}, refuses="throughput"), plan=plan)
    folders = [str(kept(tmp_path / "others", one("c", 0.0))), str(tmp_path / "out")]
    shown = ran(["report", *folders, "--against", "metrics", "--format", "markdown"]).out
    cells, (head, *_) = cells_of(shown), lines_of(shown)
    assert float(cells["c"][0]) == 0
    assert cells["c"][-1]
    broke = cells["nftables-nat44"]
    assert [broke[at - 1] == "no result" for at in (1, 2)] == ["throughput" in head[at] for at in (1, 2)]
    assert broke[-1].endswith("UDP time-out: too short for it")
    *figures, reason = cells["linux-ipv4"]
    assert figures == ["no result"] * len(figures)
    assert cause.startswith(reason.partition("; ")[0].removesuffix("...").strip())
    assert 40 < len(reason.partition("; ")[0]) <= 60
    assert [*cells][-2:] == ["without any result", "linux-ipv4"]


def test_a_figure_is_a_bound_where_its_answer_is_one_and_its_doubts_have_their_words(report: Report) -> None:
    doubt = {"word": "host limited", "text": "the host was the bottleneck", "grade": "answer"}
    results = [*MANY[1:], one("a", 3e5, limited_by="host", doubts=[doubt])]
    cells = cells_of(report(*results, asked=["--format", "markdown"]))
    assert cells["a"] == ["at least 300 k†", "host limited"]


def test_doubts_are_a_line_for_each_word_with_four_names_at_most(report: Report) -> None:
    results = [
        one(*each, doubts=[{"word": "undecided", "text": f"{UNDECIDED} {number}", "grade": "answer"}])
        for number, each in enumerate(RATES.items())
    ]
    said = (report(*results, asked=asked).splitlines() for asked in ([], ["-v"]))
    brief, each = ([line for line in lines if line.startswith("†")] for lines in said)
    (line,) = brief
    assert "undecided (9 results: a, b, c and 6 more)" in line
    assert line.count(UNDECIDED) == 1
    assert [own.count(UNDECIDED) for own in each] == [1] * len(MANY)
    assert "undecided (connection-rate of x)" in each[-2]


def test_text_breaks_no_figure_within_its_interval(report: Report) -> None:
    doubt = {"word": "mixed", "text": "not the same for all repetitions", "grade": "answer"}
    units = {"connection-rate": "connections/s", "throughput": "frames/s"}
    wide = [
        made(
            [1e5, 2e5, 3e5], metric=metric, unit=unit, parameters={"gateway": f"{name}-of-a-long-name"}, doubts=[doubt]
        )
        for metric, unit in units.items()
        for name in RATES
    ]
    shown = report(*wide, width=100)
    table = shown[shown.index("\ngateway") :]
    assert table.count("(100 k to 300 k)†") == 2 * len(RATES)
    assert max(map(len, table.splitlines())) <= 100
    assert "Columns" not in table


def test_frame_sizes_are_told_by_family(report: Report) -> None:
    results = [
        one("a", 1e5, parameters={"initiator_family": "ipv4", "frame_size": 64}),
        one("x", 1e5, parameters={"initiator_family": "ipv6", "frame_size": 84}),
    ]
    assert ", 64 octets (84 over IPv6), " in report(*results)
    assert ", 84 octets, " in report(results[1])


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
        kept(tmp_path, made([1e5 * (at + 1)] * 4, parameters=parameters, doubts=doubts))
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
    kept(tmp_path, *MANY)

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


def without_result(*folders: Path) -> list[Any]:
    """The measurements without a result, as programs read them."""
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()):
        assert run(["report", *map(str, folders), "--format", "json"]) == 0
    found: list[Any] = json.loads(printed.getvalue())["no_result"]
    return found


def causes_of(missing: list[Any]) -> set[str]:
    return {one["reason"].partition(": ")[2] for one in missing}


def test_what_broke_of_a_campaign_is_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benches = Benches(breaks={"linux-ipv4": BrokenError("linux-ipv4: does not come up")})
    campaign(tmp_path, benches)
    for form in ("text", "markdown"):
        assert run(["report", str(tmp_path / "out"), "--format", form]) == 0
        (line,) = (each for each in capsys.readouterr().out.splitlines() if "No result: " in each)
        assert "of linux-ipv4" in line
        assert "nftables-nat44" not in line
    assert causes_of(without_result(tmp_path / "out")) == {"linux-ipv4: does not come up"}


@pytest.mark.parametrize("first", ["measurement", "device"])
def test_status_and_report_name_one_cause_of_what_broke_twice(tmp_path: Path, first: str) -> None:
    campaign(tmp_path, Benches(breaks={"linux-ipv4": BrokenError("does not come up")}))
    journal = tmp_path / "out" / "journal.jsonl"
    schema = json.loads(journal.read_text().splitlines()[0])["schema"]
    cell = {"cell": "linux-ipv4-connections-1000", "schema": schema, "event": "broken", "at": 1e9}
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
    shown = causes_of(without_result(tmp_path / "out"))
    assert shown == {one.broken for one in progress(tmp_path).measurements if one.broken} == {"B"}


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
    missing = without_result(*folders)
    assert len(missing) == (0 if conditions == "same" else 4)
    page = tmp_path / "page.html"
    assert run(["report", *map(str, folders), "--html", str(page)]) == 0
    assert ("does not come up" in page.read_text()) == (conditions == "others")
    assert run(["report", *map(str, folders)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert ("No result: " in told) == (conditions == "others")
    # Next to the result of other conditions it is said which campaign lacks one.
    assert (f" in {broke / 'out'}" in told) == (conditions == "others")
    # Alone, the folder lacks them.
    assert len(without_result(broke / "out")) == 4


def test_what_a_campaign_has_not_begun_is_counted_in_the_report(
    tmp_path: Path, ran: Ran, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: who was given the page did not see that half of the campaign was to come."""
    whole, breaks = Benches(), {"linux-ipv4": BrokenError("does not come up")}
    for name in ("whole", "half"):
        (tmp_path / name).mkdir()
    campaign(tmp_path / "whole", whole)
    with pytest.raises(Killed):
        campaign(tmp_path / "half", Benches(breaks=breaks, killed=Dies(sum(whole.trials.values()) // 6)))
    folder = tmp_path / "half" / "out"
    left = [one for one in without_result(folder) if one["reason"].endswith(": it has not ended")]
    assert left
    monkeypatch.setenv("COLUMNS", "1000")
    (told,) = (line for line in ran(["report", str(folder)]).out.splitlines() if line.startswith("No result yet: "))
    assert re.findall(r"\d+", told)[:2] == [str(len(left)), "8"]
    # Which they are, told apart.
    assert told.count("nftables-nat44-connections-") == min(len(left), 4)
    for form in ("text", "markdown", "latex"):
        shown = ran(["report", str(folder), "--format", form]).out
        assert told in shown
        # Readers of a paper have no folder to ask.
        assert ("natgauge status" in shown) == (form != "latex")
        assert "No result: " in shown
    page = tmp_path / "page.html"
    ran(["report", str(folder), "--html", str(page)])
    assert told in unmarked(page.read_text())
    golden(told)
    ran(["report", str(folder), "--svg", str(tmp_path / "figures")])
    drawings = list((tmp_path / "figures").iterdir())
    assert drawings
    for drawing in drawings:
        words = re.sub(r"\s+", "", "".join(re.findall(r">([^<]+)<", drawing.read_text())))
        assert told.replace(" ", "") in words
    # A second campaign of the same plan has them all.
    assert without_result(folder, tmp_path / "whole" / "out") == []


def test_what_did_not_end_is_named_even_where_its_plan_is_damaged(tmp_path: Path, ran: Ran) -> None:
    plans = {"known": '{"schema": "natgauge-plan-1", "metric": "latency", "gateway": "a"}', "damaged": "{"}
    for name, plan in plans.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text(plan)
    kept(tmp_path, MANY[0])
    told = " ".join(ran(["report", str(tmp_path)]).out.split())
    assert "No result, because it did not end: damaged, latency of a." in told

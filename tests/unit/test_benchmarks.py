# SPDX-License-Identifier: Apache-2.0
"""What `make bench` makes of its measurements: medians, bounds, ratios, the page and the JSON file."""

from __future__ import annotations

import ipaddress
import itertools
import json
from pathlib import Path

import pytest
from benchmarks import churn, command, published_tables, report, side_by_side, targets, tester
from benchmarks.compare import Row, ratios
from benchmarks.place import Ends
from benchmarks.required import RATES, Figure
from benchmarks.tester import Load
from jsonschema import Draft202012Validator
from tests.unit.campaigning import ONE_CONNECTION_RATE, Benches, Dies, Killed, campaign

ROOT = Path(__file__).parents[2]
MACHINE = {"date": "2026-11-21T09:00:00+00:00", "cpu": "Some CPU"}
FAST = Figure("cable", "frames/s", 14.88e6, "at least", (15e6, 14e6, 16e6), "N = 1")
SLOW = Figure("start", "s", 0.3, "at most", (0.2, 0.5, 0.4), "N = 1")
ROWS = [
    Row("cable", "natgauge", "", [15e6, 10e6, 16e6]),
    Row("cable", "trafgen", "", [1e6, 1.5e6, 2e6]),
    Row("cable", "xdp-trafficgen", "", [], "is not installed"),
    Row("linux-ipv4", "trafgen", "", [1e6]),
]


def test_a_figure_is_judged_by_its_median() -> None:
    assert FAST.median == 15e6
    assert FAST.met
    assert SLOW.median == 0.4
    assert not SLOW.met


def test_ratio_is_ours_over_theirs_and_only_where_both_were_measured() -> None:
    assert ratios(ROWS) == {("cable", "trafgen"): 10.0}


def test_page_shows_what_was_missed_and_what_could_not_be_measured() -> None:
    page = report.markdown(MACHINE, {"cpu": 1}, ROWS, [FAST, SLOW])
    assert "| cable | at least 14,880,000 frames/s | 15,000,000 | 14,000,000 to 16,000,000 | yes | N = 1 |" in page
    assert "| start | at most 0.300 s | 0.400 | 0.200 to 0.500 | **no** | N = 1 |" in page
    assert "| cable | trafgen | 1,500,000 | 1,000,000 to 2,000,000 | 10.0 times as fast |" in page
    assert "| cable | xdp-trafficgen | not measured | | | is not installed |" in page


def test_file_holds_every_repetition(tmp_path: Path) -> None:
    data = report.document(MACHINE, {"cpu": 1}, ROWS, [FAST])
    path = command.write(tmp_path / "new", "name", "# page", data)
    assert path.read_text() == "# page"
    stored = json.loads((tmp_path / "new" / "name.json").read_text())
    assert stored["required"][0]["values"] == [15e6, 14e6, 16e6]
    assert stored["peers"][1]["natgauge_is_times"] == 10.0
    assert stored["peers"][2]["frames_per_second"] is None


class FakePlace:
    """The two ports of a place that is not there."""

    forwards = True
    ends = Ends(initiator_gateway="02:00:00:00:00:01", responder_gateway="02:00:00:00:00:02")


@pytest.mark.parametrize(
    "load",
    [load for *_, load in RATES] + [Load(connections=1_600_000_000, frames=0), Load(both=False)],
    ids=str,
)
def test_every_load_becomes_a_request_that_the_agreement_allows_and_that_holds_n(load: Load) -> None:
    request = json.loads(tester.request(FakePlace(), load, 1).to_json())  # type: ignore[arg-type]
    schema = json.loads((ROOT / "trial" / "request-1.schema.json").read_text())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(request)] == []
    side = request["initiator"]
    sources = side["source_addresses"]
    tuples = int(ipaddress.ip_address(sources["last"])) - int(ipaddress.ip_address(sources["first"])) + 1
    for ports in (side["source_ports"], side["destination_ports"]):
        tuples *= ports["last"] - ports["first"] + 1
    assert tuples >= load.connections


def test_a_generators_turn_is_held_against_the_floors_before_and_after_it() -> None:
    # The host slows down by half meanwhile: 0.8 of the floor all the time.
    floors = [8e6 - 4e5 * at for at in range(11)]
    rates = [0.8 * (before + after) / 2 for before, after in itertools.pairwise(floors)]
    assert side_by_side.beside(rates, floors) == pytest.approx((0.8, 0.8, 0.8))
    assert side_by_side.beside(rates[:3], floors[:4]) is None


def test_page_of_shares_tells_targets_and_what_could_not_be_measured() -> None:
    lines = [
        side_by_side.Line("natgauge", "judged", 3.5e6, 0.5, 0.49, 0.51, 0.75),
        side_by_side.Line("trafgen", "one fixed frame", None, problem="is not installed"),
    ]
    page = side_by_side.page({"date": "2026-11-22", "cpu": "Some CPU"}, lines)
    assert "| natgauge | 3,500,000 | 0.500 | 0.490 to 0.510 | 0.75 | judged |" in page
    assert "| trafgen | not measured |  | is not installed |  | one fixed frame |" in page


def test_a_target_is_reached_by_its_median_on_the_right_side_of_its_bound() -> None:
    share = targets.Target("share", 0.75, "at least", 0.76, 0.74, 0.78, 240, "")
    cost = targets.Target("cost", 1.25, "at most", 1.3, 1.2, 1.4, 240, "two cables")
    few = targets.Target("senders", 1.8, "at least", 1.8, None, None, 3, "")
    assert [one.reached for one in (share, cost, few)] == [True, False, True]
    page = targets.page({"date": "2026-11-22", "cpu": "Some CPU"}, [share, cost, few])
    assert "| share | at least 0.75 | 0.760 | 0.740 to 0.780 | 240 | yes |  |" in page
    assert "| cost | at most 1.25 | 1.300 | 1.200 to 1.400 | 240 | no | two cables |" in page
    assert "| senders | at least 1.8 | 1.800 | too few | 3 | yes |  |" in page


def test_trials_of_a_target_are_sent_from_as_many_cores_as_are_named() -> None:
    assert tester.request(FakePlace(), targets.SHORT, 0, 1).senders.cpus == (0, 1)  # type: ignore[arg-type]


def test_a_published_table_has_a_row_for_each_campaign_or_the_reason_why_there_is_none(tmp_path: Path) -> None:
    name = "nat64-paper-table-22"
    ended = published_tables.Ran(tmp_path, "small", 63.4, 3, {})
    cut = published_tables.Ran(tmp_path, "guest", 12.0, 1, {"no jool": 2, "": 1})
    plan = "`natgauge published --plan --small"
    assert list(published_tables.rows(name, [ended, cut])) == [
        f"| {name} | {plan} {name}` | 63 s | 3 of 3 measurements |",
        f"| {name} | {plan} --lab vm {name}` | 12 s | 1 of 4 measurements; 2: no jool; 1: not measured yet |",
    ]
    (row,) = published_tables.rows("nat64-paper-table-18", [])
    assert row.startswith("| nat64-paper-table-18 |  | | no plan: ")
    assert list(published_tables.rows(name, [])) == [f"| {name} | {plan} {name}` | | not measured |"]


def test_time_of_a_campaign_has_no_pause_between_sessions(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(8)), plan=ONE_CONNECTION_RATE)
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    path = tmp_path / "out" / "journal.jsonl"
    sessions: list[list[dict[str, object]]] = []
    for line in map(json.loads, path.read_text().splitlines()):
        if line["event"] == "session":
            sessions.append([])
        # Two seconds from line to line, and a pause of many.
        sessions[-1].append({**line, "at": 10_000.0 * len(sessions) + 2.0 * len(sessions[-1])})
    path.write_text("".join(json.dumps(line) + "\n" for session in sessions for line in session))
    first, second = (len(session) for session in sessions)
    assert 2 < first < second
    assert list(published_tables.sessions(path.parent)) == [2.0 * (first - 1), 2.0 * (second - 1)]


def test_a_stretch_of_churn_holds_where_nothing_is_lost_and_the_count_is_the_expected_one() -> None:
    def stretch(verdict: str = "PASS", lost: int = 0, count: int | None = 1005, memory: int = 1000) -> churn.Stretch:
        return churn.Stretch(60.0, verdict, "", 500, lost, count, 1000.0, {"natgauge": memory, "engine": 10})

    assert stretch().holds
    wrong = (stretch("FAIL"), stretch(lost=1), stretch(count=1011), stretch(count=None))
    assert not any(one.holds for one in wrong)
    stretches = [stretch(), stretch(memory=2000), stretch(memory=1010)]
    assert churn.grown(stretches) == pytest.approx(0.01)
    text = churn.page(stretches, 5000.0, "some-nat44", MACHINE)
    assert "`some-nat44`: 5,000 frames/s of each direction, 100 new connections/s" in text
    assert "| 60 | PASS | 500 | 0 | 1,005 | 1,000 | +0.50% | engine 0.0, natgauge 0.0 |" in text

# SPDX-License-Identifier: Apache-2.0
"""`natgauge compare` around the measurement: rounds of an engine of known costs, words, JSON, exit status, evidence."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextvars import Context
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.labs.nat44 import variant
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_comparisons import BASELINE, CONTROL, compared, estimate
from tests.unit.made_machine import machine_setting
from tests.unit.made_results import kept
from tests.unit.timed_slices import Engine, failing_in, timed

import natgauge
from natgauge.cli import run
from natgauge.errors import BrokenError, EndedBySignal, HostError
from natgauge.notes import Note
from natgauge.records.comparison import RatioEstimate, SearchLimit
from natgauge.reports.comparison import comment, text
from natgauge.words import Quantity

#: The duration, the core and the folder of a run.
EVIDENCE = r"Measured for .*"
ASKED = ["compare", "nftables-nat44", "iptables-nat44", "--connections", "20000", "--seed", "7"]


@pytest.fixture
def engine(in_an_empty_folder: Path) -> Iterator[Engine]:
    """An engine of known costs in place of labs, gateways and the real one."""
    assert in_an_empty_folder
    with timed() as found:
        yield found


@pytest.fixture
def printed(engine: Engine, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command prints to these words, which ends with this status."""

    def of(*words: str, status: int = 0) -> str:
        assert run([*ASKED, "--quantities", "up", *words]) == status
        assert engine.rounds
        return capsys.readouterr().out

    return of


def test_json_is_one_object_with_the_promised_fields(engine: Engine, ran: Ran, golden: Golden) -> None:
    shown = ran([*ASKED, "--json", "--quantities", "up,new"])
    document = json.loads(shown.out)
    labels = ["nftables-nat44", "iptables-nat44", "nftables-nat44 (A/A control)"]
    assert [one["label"] for one in document["gateways"]] == labels
    assert [one["role"] for one in document["gateways"]] == ["baseline", "compared", "control"]
    for one in document["gateways"]:
        assert one["parameters"]["traffic"]["connections"] == 20_000
        assert one["parameters"]["place"]["kernel"]
        assert one["parameters"]["device"]["gateway"] == one["label"].removesuffix(" (A/A control)")
    promised = {"gateway", "quantity", "ratio", "low", "high", "level", "verdict", "nanoseconds", "ratio_to_forwarding"}
    for figure in document["estimates"]:
        assert promised <= set(figure)
        assert (figure["gateway"], figure["verdict"], figure["level"]) == ("iptables-nat44", "costs more", 0.95)
        assert figure["low"] < 1.1 < figure["high"]
        assert figure["ratio_to_forwarding"] == pytest.approx(2200 / 800, rel=0.01)
    assert [figure["quantity"] for figure in document["estimates"]] == ["new", "up"]
    assert [figure["gateway"] for figure in document["control"]] == ["nftables-nat44 (A/A control)"] * 2
    assert document["decided"] is True
    golden(shown.err, passing=r"\b\d+(?= s, )")
    kept = Path(document["results"])
    assert json.loads((kept / "comparison.json").read_text()) == document
    lines = [json.loads(line) for line in (kept / "rounds.jsonl").read_text().splitlines()]
    assert len(lines) == document["rounds"] == len(engine.rounds)
    assert sum(len(block["ns"]) for line in lines for block in line["result"]["blocks"]) == document["slices"]["slices"]


def test_a_round_visits_the_first_gateway_twice_plain_forwarding_and_a_cable_in_labs_of_its_own(
    engine: Engine, printed: Callable[..., str]
) -> None:
    printed()
    first, second, _ = engine.rounds
    names = [one.name for one in first.contestants]
    again = ["nftables-nat44 (A/A control)", "plain forwarding (linux-ipv4)", "cable"]
    assert names == ["nftables-nat44", "iptables-nat44", *again]
    assert len({one.trial.initiator.netns for one in first.contestants}) == 5
    assert {one.trial.senders.cpus for one in first.contestants} == {(first.cpu,)}
    assert (first.slices.new, first.slices.down) == (0, 0)
    assert first.seed != second.seed
    assert engine.labs == ["made", "round", "undone"] * 3


@pytest.mark.parametrize("rounds", [1, 3])
def test_labs_that_cannot_be_made_again_leave_what_is_known(
    engine: Engine, printed: Callable[..., str], rounds: int, golden: Golden
) -> None:
    """Seen: an error before a further round threw away all rounds before it."""

    def enters() -> None:
        if engine.labs.count("made") == rounds:
            raise HostError("table_size: another natgauge on this machine relies on it; wait until it has ended")

    engine.enters, known = enters, rounds == 3
    document = json.loads(printed("--json", "--resolve", "0.1%", status=0 if known else 11))
    assert (document["rounds"], document["decided"], len(engine.rounds)) == (rounds, known, rounds)
    assert (document["estimates"][0]["low"] is not None) == known
    (note,) = document["notes"]
    golden(note["text"])


def test_between_rounds_nobody_else_lowers_a_setting_of_the_machine(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "nf_conntrack_max"
    file.write_text("1000\n")
    used = []

    def enters() -> None:
        used.append(machine_setting(file))
        used[-1].write(2000)

    def leaves() -> None:
        used[-1].release()
        with pytest.raises(HostError, match="relies on it"):
            Context().run(machine_setting(file).write, 100)

    engine.enters, engine.leaves = enters, leaves
    assert run([*ASKED, "--quantities", "up"]) == 0
    assert len(used) == len(engine.rounds) >= 3
    machine_setting(file).write(100)


@pytest.mark.parametrize(
    "error",
    [HostError("relies on it"), BrokenError("nat: does not forward"), EndedBySignal(signal.SIGTERM), KeyError(1)],
    ids=lambda error: type(error).__name__,
)
def test_a_comparison_that_did_not_come_to_its_end_has_a_comment_with_the_reason_first(
    capsys: pytest.CaptureFixture[str], engine: Engine, error: BaseException
) -> None:
    engine.enters = Mock(side_effect=error)
    for form in (["--format", "markdown"], ["--format=markdown"], []):
        status = run([*ASKED, *form])
        assert status not in (0, 10, 11)
        assert status == getattr(error, "exit_status", status)
        printed = capsys.readouterr()
        line = printed.err.splitlines()[-1].removeprefix("natgauge: ")
        said = printed.out.splitlines()
        if not form:
            assert not said
            continue
        assert [said[0][:3], said[1]] == ["###", ""]
        assert said[2].replace("\\", "").replace("<!-- -->", "") == f"- {line}"


@pytest.mark.parametrize(
    "wrong", [["--fail-above", "x"], ["--nonsense"], ["--quantities", "often"], ["nowhere.toml"]], ids=" ".join
)
def test_a_comparison_that_is_refused_has_a_comment_with_the_reason(ran: Ran, wrong: list[str]) -> None:
    printed = ran([*ASKED, *wrong, "--format", "markdown"], 2)
    assert printed.err.count("\n") == 1
    assert len(printed.out.splitlines()) == 3


@pytest.fixture
def ten_seconds_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds pass from each look at the clock to the next one."""
    clock = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))


@pytest.mark.usefixtures("ten_seconds_each")
def test_time_for_too_few_rounds_says_how_much_it_takes(
    engine: Engine, printed: Callable[..., str], golden: Golden
) -> None:
    document = json.loads(printed("--json", "--most-seconds", "45", status=11))
    assert (document["rounds"], document["decided"], len(engine.rounds)) == (2, False, 2)
    assert document["estimates"][0]["low"] is None
    golden(document["notes"])


@pytest.mark.usefixtures("ten_seconds_each")
def test_an_answer_that_is_left_open_says_that_a_further_round_would_not_have_fitted(
    engine: Engine, printed: Callable[..., str], golden: Golden
) -> None:
    """Seen: "the time ended after 19 s", of 25 s that were given."""
    engine.noise = 0.5
    engine.costs["iptables-nat44"] = engine.costs["nftables-nat44"]
    asked = ("--most-seconds", "205", "--resolve", "0.1%")
    line = printed(*asked, "--format", "markdown", status=11).splitlines()[2]
    golden(line)
    durations = re.findall(r"(?:(\d+) min )?(\d+) s\b", line)
    took, needed, given = (60 * int(minutes or 0) + int(seconds) for minutes, seconds in durations)
    assert took <= given < took + needed
    # One that is answered needs no more time.
    engine.noise, engine.costs["iptables-nat44"] = 0.01, 2 * engine.costs["nftables-nat44"]
    assert json.loads(printed(*asked, "--json"))["notes"] == []


def test_settings_of_one_gateway_have_a_cable_and_forwarding_of_their_own(engine: Engine) -> None:
    assert run(["compare", "nftables-nat44", "nftables-nat44:connections=50000", "--connections", "20000"]) == 0
    connections = [one.trial.connections for one in engine.rounds[0].contestants]
    assert connections == [20_000, 50_000, 20_000, 20_000, 50_000, 20_000, 50_000]


def test_between_two_families_there_is_a_cable_and_forwarding_of_each(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", "jool-nat64", "jool-nat64", "--connections", "20000", "--quantities", "up", "--json"]) == 0
    contestants = engine.rounds[0].contestants
    families = [(one.trial.initiator.family, one.trial.responder.family) for one in contestants]
    within = [("ipv6", "ipv6"), ("ipv4", "ipv4")]
    assert families == [("ipv6", "ipv4")] * 3 + within * 2
    assert [one.trial.frame.size for one in contestants[3:]] == [84, 64] * 2
    document = json.loads(capsys.readouterr().out)
    assert document["estimates"][0]["ratio_to_forwarding"] == pytest.approx(4000 / 800, rel=0.02)


def test_a_nat64_next_to_a_nat44_has_references_of_its_own(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", "nftables-nat44", "jool-nat64", "--connections", "20000", "--quantities", "up"]
    assert run([*asked, "--unlike", "--json"]) == 0
    # The baseline's cable and plain forwarding are those of the NAT64's IPv4 side.
    assert [one.trial.responder.family for one in engine.rounds[0].contestants[3:]] == ["ipv4", "ipv6", "ipv4", "ipv6"]
    assert json.loads(capsys.readouterr().out)["estimates"][0]["ratio"] == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize(("limit", "status"), [("3%", 10), ("30%", 0)])
def test_the_exit_status_tells_whether_it_costs_more_than_it_may(
    engine: Engine, ran: Ran, limit: str, status: int, golden: Golden
) -> None:
    golden(ran([*ASKED, "--fail-above", limit], status).out.splitlines()[0])
    assert len(engine.rounds) == 3


@pytest.mark.parametrize(
    ("above", "word", "doubted", "status"),
    [
        ((None, None), "mixed", "", 0),
        ((None, None), "mixed", "b", 11),
        ((None, None), "mixed", BASELINE, 11),
        ((False, False), "mixed", "", 0),
        ((False, False), "mixed", "b", 11),
        ((True, False), "mixed", "b", 10),
        ((True, False), "mixed", "a", 11),
        ((True, True), "mixed", "a", 10),
        ((True, True), "mixed", "a b", 11),
        # Such a rate may be higher, and the cost lower; that of the baseline may make every cost higher.
        ((None, None), "tester limited", "a", 11),
        ((None, None), "tester limited", BASELINE, 0),
        ((True, False), "tester limited", "a", 11),
        ((True, False), "tester limited", BASELINE, 10),
        ((False, False), "tester limited", "a", 0),
        ((False, False), "tester limited", BASELINE, 11),
        # What its queues did is part of the interval.
        ((True, False), "queues", "a", 10),
    ],
)
def test_an_answer_that_a_doubt_could_change_is_not_told_as_decided(
    *, above: tuple[bool | None, bool | None], word: str, doubted: str, status: int, tmp_path: Path, ran: Ran
) -> None:
    """Seen: "No cost is more than 3 % above" in doubt, and status 0."""
    fail_above = None if None in above else 0.03
    a, b = above
    # Costs of one quantity would be told in their order first.
    ends = {None: (1.1, 1.09, 1.11), True: (1.1, 1.09, 1.11), False: (1.0, 0.99, 1.01)}
    estimates = [estimate("a", *ends[a], above=a), estimate("b", *ends[b], above=b, quantity="down")]
    within = None if fail_above is None else False
    control = [estimate(CONTROL, 1.0, 0.995, 1.005, quantity=one.quantity, above=within) for one in estimates]
    record = compared(estimates, control, fail_above=fail_above)
    doubts = {grade: {"word": word, "text": "x", "grade": grade} for grade in ("answer", "interval")}
    document = record.document()
    for one in document["gateways"]:
        doubt = doubts["answer" if one["label"] in doubted.split() else "interval"]
        one["doubts"] = {"up": [doubt], "down": [doubt]}
    record = record.from_document(document)
    assert record.decided
    assert natgauge.Compared(record, tmp_path).exit_status == status
    (found,) = json.loads(ran(["report", str(kept(tmp_path, record)), "--format", "json"]).out)["comparisons"]
    if fail_above is not None:
        assert (found["answers"][0]["certainty"] == "sure") == (status != 11)


@pytest.mark.parametrize(("cost", "verdict"), [(1.0, "undecided"), (2.0, "costs more")])
def test_when_time_is_over_the_exit_status_says_whether_the_verdict_is_known(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, printed: Callable[..., str], cost: float, verdict: str
) -> None:
    """However wide the interval is: one that leaves out 1 answers the question, and says how wide it is."""
    monkeypatch.setattr(time, "monotonic", lambda: len(engine.rounds) / 10)
    engine.noise = 0.5
    engine.costs["iptables-nat44"] = cost * engine.costs["nftables-nat44"]
    asked = ("--resolve", "0.1%", "--most-seconds", "1", "--json")
    document = json.loads(printed(*asked, status=0 if cost > 1 else 11))
    assert (document["estimates"][0]["verdict"], document["decided"]) == (verdict, cost > 1)
    assert document["estimates"][0]["half_width"] > 0.001


def test_words_name_verdict_interval_and_costs(printed: Callable[..., str], golden: Golden) -> None:
    golden(printed(), passing=EVIDENCE)


def test_a_gateway_that_keeps_losing_frames_ends_it_in_one_line(engine: Engine, ran: Ran, golden: Golden) -> None:
    engine.wrong = {"new.received_frames": 19_995}
    error = ran(ASKED, 4).err
    golden(error)
    assert len(engine.rounds) == 3


@pytest.mark.parametrize(
    ("wrong", "counted"),
    [
        ({"new.received_frames": 19_999}, 20_000),
        ({"responder.received_frames": 19_999, "responder.mistranslated": 1}, 20_000),
        ({"initiator.duplicates": 1}, 20_000),
        ({"initiator.received_frames": 19_998, "initiator.untagged": 2}, 20_000),
        ({"new.fragments": 1}, 20_000),
        ({"refused_frames": 1}, 20_000),
        ({"damaged_unmarked": 1}, 20_000),
        ({"stored": 19_999}, 20_000),
        ({"remapped": 1}, 20_000),
        ({}, 19_999),
    ],
)
def test_slices_count_only_where_every_frame_came_and_came_right(
    wrong: dict[str, int], counted: int, engine: Engine, ran: Ran, golden: Golden
) -> None:
    engine.counted = 20_000
    ran([*ASKED, "--quantities", "new"])
    engine.wrong, engine.counted = wrong, counted
    golden(ran([*ASKED, "--quantities", "new"], 4).err.splitlines()[-1])


def test_settings_of_a_gateway_reach_its_trials_and_the_command_that_measures_it_alone(
    engine: Engine, ran: Ran, golden: Golden
) -> None:
    ours = "iptables-nat44:frame-size=512,udp-timeout=100"
    engine.wrong, engine.spoils = {"new.received_frames": 19_999}, ours
    golden(ran(["compare", "nftables-nat44", ours, *ASKED[3:], "--unlike", "--quantities", "new"], 4).err)
    trial = engine.rounds[0].contestants[1].trial
    assert (trial.frame.size, trial.connections) == (512, 20_000)


@pytest.mark.parametrize("second", [20_001, 30_000])
def test_a_cable_that_is_void_ends_it_whatever_another_cable_does(engine: Engine, ran: Ran, second: int) -> None:
    engine.wrong, engine.spoils = {"new.received_frames": 19_995}, "cable"
    other = f"nftables-nat44:connections={second}"
    assert (
        "compare: cable: " in ran(["compare", "nftables-nat44:connections=20000", other, "--quantities", "up"], 4).err
    )
    assert len(engine.rounds) == 3


def test_markdown_is_a_comment_with_a_table_in_which_no_path_is_a_mark(
    printed: Callable[..., str], tmp_path: Path, golden: Golden
) -> None:
    folder = str(tmp_path / "results_of_me_")
    text = printed("--fail-above", "3%", "--format", "markdown", "--results", folder, status=10)
    assert r"results\_of\_me\_" in text
    golden(text, passing=EVIDENCE)
    table = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len({len(row) for row in table}) == 1
    headings, rule, baseline, other, *folded = table
    assert folded[:2] == [headings, rule]
    (control,) = folded[2:]
    assert text.index("(baseline)") < text.index("<details>") < text.index("(A/A control) |") < text.index("</details>")
    assert baseline[0].strip() == "nftables-nat44 (baseline)"
    assert float(baseline[6].strip()) == pytest.approx(2000 / 800, rel=0.02)
    assert (other[0].strip(), other[1], other[4]) == ("iptables-nat44", "from inside", "costs more")
    assert other[2].startswith("+")
    assert float(other[2].rstrip("%")) == pytest.approx(10, abs=1.5)
    assert control[0].strip() == "nftables-nat44 (A/A control)"


def test_labels_stand_for_the_gateways_in_what_is_said_and_stored(engine: Engine, ran: Ran, tmp_path: Path) -> None:
    """A comment on a change had the paths of the job, which say nothing to its reader."""
    asked = [*ASKED, "--quantities", "up", "--results", str(tmp_path)]
    said = ran([*asked, "--labels", "base, this change", "--format", "markdown"]).out
    assert "nat44" not in said.replace("-compare-nftables-nat44", "")
    assert re.findall(r"^\| (base|this change)\b", said, re.MULTILINE) == ["base", "this change", "base"]
    (plan,) = tmp_path.glob("*/plan.json")
    recipes = {label: Path(own["recipe"]).stem for label, own in json.loads(plan.read_text())["gateways"].items()}
    assert recipes["this change"] == "iptables-nat44"
    done = len(engine.rounds)
    for wrong in ("base", "base,this,change", "base,", ","):
        assert len(ran([*asked, "--labels", wrong], 2).err.splitlines()) == 1
    assert len(engine.rounds) == done


def test_a_core_that_was_often_taken_away_is_noted_once_in_every_form(
    engine: Engine, printed: Callable[..., str], golden: Golden
) -> None:
    assert json.loads(printed("--json"))["notes"] == []
    # Four gateways and cables, so each block has ten slices.
    engine.interrupted = 2
    (note,) = json.loads(printed("--json"))["notes"]
    golden(note["text"])
    for form in ((), ("--format", "markdown")):
        assert printed(*form).count(note["text"]) == 1


UNEQUAL = ["compare", "map-e", "ds-lite", "--connections", "20000", "--seed", "7", "--quantities", "up"]


def test_chains_of_unequal_length_say_so_with_the_cost_of_a_hop(engine: Engine, ran: Ran, golden: Golden) -> None:
    printed = [ran([*UNEQUAL, "--unlike", *form]).out for form in (["--json"], [], ["--format", "markdown"])]
    document = json.loads(printed[0])
    assert [one["devices"] for one in document["gateways"]] == [2, 3, 2]
    # The simulated core changes its speed, so that only ratios are exact.
    of_ds_lite, of_hop = document["estimates"][0]["nanoseconds"], document["forwarding_nanoseconds"]["up"]
    assert of_ds_lite / of_hop == pytest.approx(3400 / 800, rel=0.05)
    (note,) = document["notes"]
    assert f"up {of_hop:,.0f} ns" in note["text"]
    for said in printed[1:]:
        golden(said, passing=EVIDENCE)
    assert "| ds-lite, 3 devices |" in printed[2]
    assert engine.rounds


LONGER = """
[[chain]]
device = "further"
recipe = "linux-ipv4"
"""


def test_the_number_of_devices_makes_gateways_of_one_kind_unlike(
    engine: Engine, ran: Ran, tmp_path: Path, golden: Golden
) -> None:
    variant(tmp_path, "longer", LONGER, of="464xlat-tayga")
    error = ran(["compare", "464xlat-tayga", "./longer.toml"], 2).err
    golden(error)
    assert "--unlike" in error
    assert engine.rounds == []


@pytest.mark.parametrize(
    ("gateways", "label"),
    [
        (["good/gateway.toml", "bad/gateway.toml"], "good/gateway.toml"),
        (["bad/gateway.toml", "good/gateway.toml"], "good/gateway.toml"),
        (["good/gateway.toml", "good/gateway.toml"], "good/gateway.toml"),
    ],
)
@pytest.mark.parametrize("by", ["slices", "rates"])
def test_the_error_names_the_gateway_and_comes_before_what_follows(
    *, by: str, gateways: list[str], label: str, ran: Ran, golden: Golden, in_an_empty_folder: Path
) -> None:
    for folder in ("good", "bad"):
        (in_an_empty_folder / folder).mkdir()
        variant(in_an_empty_folder / folder, "gateway")
    with failing_in("good"):
        line = ran(["compare", *gateways, "--by", by, "--connections", "20000"], 4).err.splitlines()[-1]
    assert label in line
    golden(line)


# The comment


def test_a_comment_mentions_nobody_and_links_nowhere() -> None:
    """Labels of gateways are the author's of the pull request."""
    said = comment(compared([estimate("./@team_a/https://x.y", 1.42, 1.4, 1.45)]))
    assert "@team" not in said
    assert "://" not in said


def headline(*estimates: RatioEstimate, above: bool = True) -> str:
    """The first line of a comment that was asked about 3 %."""
    return comment(compared(estimates, fail_above=0.03, above=above)).splitlines()[0]


def test_a_comment_begins_with_the_costs_above_the_limit_and_says_them_once(golden: Golden) -> None:
    """The heading and the first sentence said "more than 3 % above", and neither said what or how much."""
    dear = estimate("other", 1.213, 1.2, 1.23, quantity="new").model_copy(update={"above": True})
    alike = estimate("other", 1.0, 0.99, 1.01, verdict="no difference").model_copy(update={"above": False})
    least = estimate("third", None, 1.5, None).model_copy(update={"above": True})
    golden(headline(alike, dear))
    assert ("21.3 %" in headline(alike, dear), "third" in headline(alike, dear)) == (True, False)
    several = headline(dear, least)
    golden(several)
    assert several.index("third") < several.index("50") < several.index("other") < several.index("21.3")
    golden(headline(alike, above=False))
    said = comment(compared([alike, dear], fail_above=0.03, above=True))
    assert (said.count("limit"), said.count("3 % above")) == (1, 0)


def test_a_comment_names_the_commit() -> None:
    assert ", commit ab12cd;" in comment(compared([estimate()], commit="ab12cd@2026-01-02T03:04:05+00:00"))
    assert "commit" not in comment(compared([estimate()]))


def test_a_comment_names_what_rules_match_that_no_lab_has(golden: Golden) -> None:
    """Only who made the recipe knew that a list of blocked networks was not tried; who read the comment did not."""

    def said(base: tuple[str, ...], change: tuple[str, ...], more: int = 0) -> list[str]:
        record = compared([estimate()])
        of_base, of_change, control = record.gateways
        of_base = of_base.model_copy(update={"unmatched": base})
        of_change = of_change.model_copy(update={"unmatched": change, "unmatched_more": more})
        own = comment(record.model_copy(update={"gateways": (of_base, of_change, control)}))
        return [line for line in own.splitlines() if line.startswith("- Rules ")]

    assert said((), ()) == []
    both = said(("203.0.113.0/24", "guests"), ("203.0.113.0/24", "guests"))
    unlike = said(("203.0.113.0/24",), ("203.0.113.0/24", "192.168.2.0/24"))
    many = said((), tuple(f"192.0.2.{number}" for number in range(20)), 80)
    assert [len(lines) for lines in (both, unlike, many)] == [1, 2, 1]
    assert "92 more" in many[0]
    golden("\n".join([*both, *unlike, *many]))


@pytest.mark.parametrize("notes", [(), (Note("time used up", "2 rounds; an interval needs 6"),)], ids=["", "note"])
def test_a_comment_without_an_answer_begins_with_what_ended_the_rounds(notes: tuple[Note, ...], golden: Golden) -> None:
    open_one = estimate("other", 1.0, 0.9, 1.2).model_copy(update={"verdict": "undecided"})
    golden(comment(compared([open_one], notes=notes, decided=False)).splitlines()[2])


@pytest.mark.parametrize(
    ("quantity", "said"),
    [("new", "20.1 k connections/s"), ("up", "20.1 k frames/s"), ("both", "20.1 k frames/s in each direction")],
)
def test_what_limited_a_search_has_its_rate_with_unit_and_direction(quantity: Quantity, said: str) -> None:
    limit = SearchLimit(gateway="nat", quantity=quantity, limited_by="the tester", searches=1, of=1, at_least=20_100.0)
    assert said in limit.text


def test_a_comment_has_its_doubts_and_every_note_once_and_the_brief_text_the_table_of_the_whole_one() -> None:
    record = compared([estimate()], notes=[Note("device", "the chains differ"), Note("ended early", "4 rounds: gone")])
    assert [form(record).count("the chains differ") for form in (comment, text)] == [1, 1]
    assert text(record).count("ended early: 4 rounds") == 1
    grave = compared([estimate()], notes=[Note("log dropped", "own text", grade="answer")])
    assert comment(grave).count("own text") == 1
    assert "log dropped" in comment(grave).splitlines()[0]
    assert "log dropped" not in comment(record).splitlines()[0]
    brief, whole = (text(record, brief=brief, width=80).partition("\n\n")[2] for brief in (True, False))
    assert brief.partition("\nns: ")[0] == whole.partition("\nCosts are ")[0] != ""

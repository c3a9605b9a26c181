# SPDX-License-Identifier: Apache-2.0
"""`natgauge run` and `natgauge status`: what is printed, and the exit status."""

from __future__ import annotations

import json
import re
import signal
from functools import partial
from pathlib import Path

import pytest
from tests.unit.campaigning import PLAN, Benches, Dies, Killed, journal_dies, quick_disk

from natgauge.campaigns import campaign
from natgauge.cli import run
from natgauge.errors import BrokenError, EndedBySignal

__all__ = ["quick_disk"]


@pytest.fixture
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benches:
    """Those that the command line measures on; the plan lies beside."""
    made = Benches()
    monkeypatch.setattr(campaign, "run", partial(campaign.run, make_bench=made))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(PLAN)
    return made


def test_a_campaign_ends_with_all_its_values_and_the_way_to_the_table(
    benches: Benches, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "small.toml"]) == 0
    told = capsys.readouterr()
    assert "small: ended; 4 cells, 16 repetitions done, 0 left at most;" in told.out
    assert f"{sum(benches.trials.values())} trials so far" in told.out
    assert "Tables: natgauge report results/small/results/*" in told.out
    assert "cell nftables-nat44-connections-1000, round 2: " in told.err
    assert "throughput 2/2 trial 1: " in told.err
    assert run(["report", *map(str, sorted(Path("results/small/results").iterdir()))]) == 0
    assert "number of sessions" in capsys.readouterr().out


def test_what_broke_is_told_and_ends_with_its_own_status(benches: Benches, capsys: pytest.CaptureFixture[str]) -> None:
    benches.breaks = {"linux-ipv4": BrokenError("linux-ipv4: does not come up")}
    assert run(["run", "small.toml"]) == 4
    assert "broken (4 measurements): linux-ipv4: does not come up" in capsys.readouterr().out


def test_a_signal_names_the_way_on_and_nothing_is_repeated(
    benches: Benches, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    benches.killed = Dies(5)
    monkeypatch.setattr(Killed, "__new__", lambda *_: EndedBySignal(signal.SIGINT))
    assert run(["run", "small.toml", "--out", "here"]) == 130
    assert "continue with: natgauge run small.toml --out here --resume" in capsys.readouterr().err
    assert run(["run", "small.toml", "--out", "here"]) == 2
    assert "holds one already; go on with it by --resume" in capsys.readouterr().err
    benches.killed = Dies()
    assert run(["run", "small.toml", "--out", "here", "--resume"]) == 0
    assert "16 repetitions done" in capsys.readouterr().out


def test_the_status_of_a_killed_campaign_names_the_trial_and_the_bounds(
    benches: Benches, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ninth line would have been the answer to the third trial."""
    with pytest.MonkeyPatch.context() as patch:
        journal_dies(patch, Dies(9), octets=20)
        with pytest.raises(Killed):
            run(["run", "small.toml"])
    assert sum(benches.trials.values()) == 3
    capsys.readouterr()
    assert run(["status", "results/small"]) == 0
    told = capsys.readouterr().out
    assert "small: not running; 4 cells, 0 repetitions done, 16 left at most; 2 trials so far" in told
    (stopped,) = [line for line in told.splitlines() if line.startswith("  stopped in: ")]
    assert re.search(
        r"connection-rate, repetition 1: connection-rate trial 3 at [\d,]+, between [\d,]+ and \?", stopped
    )
    assert run(["status", "results/small", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["name"] == "small"
    assert document["now"]["trial"] == 3
    assert not document["runs"]
    assert len(document["measurements"]) == 8


@pytest.mark.parametrize("command", [["status", "nowhere"], ["run", "small.toml", "--resume"], ["run", "nowhere.toml"]])
def test_where_there_is_no_campaign_one_line_says_so(
    benches: Benches, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    del benches
    assert run(command) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert not Path("results").exists()

# SPDX-License-Identifier: Apache-2.0
"""Another natgauge of this machine needs another value of a global setting: the second one waits for the first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest
from tests.unit.campaigning import Benches, campaign
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory

from natgauge.campaigns.state import status
from natgauge.host import settings
from natgauge.host.settings import LocalSetting, OccupiedError, waits_told

#: Announces as other processes of natgauge do, each with a token, until its input ends.
OTHER = """
import secrets, sys
from pathlib import Path
from natgauge.host.settings import Announcement
path, kinds, token = Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]
secrets.token_hex = lambda _: token
held = [Announcement(path, kind) for kind in kinds]
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def limit(tmp_path: Path) -> LocalSetting:
    """A global setting of this machine that is 1000."""
    path = tmp_path / "nf_conntrack_max"
    path.write_text("1000\n")
    return LocalSetting("table_size", [path], memory=Memory)


@contextmanager
def another(of: LocalSetting, kinds: str, mark: str = "7") -> Iterator[subprocess.Popen[bytes]]:
    """Another process with announcements on a setting."""
    command = [sys.executable, "-c", OTHER, str(of.paths[0]), kinds, mark]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        yield other
        other.kill()


@pytest.mark.parametrize(("kinds", "value"), [("relies", 500), ("lowered", 500), ("lowered", 2000)])
def test_it_says_for_whom_it_waits_and_goes_on_when_that_process_was_killed(
    limit: LocalSetting, kinds: str, value: int
) -> None:
    told: list[str] = []
    with another(limit, kinds) as other:

        def tell(text: str) -> None:
            told.append(text)
            limit.paths[0].write_text("1200")
            other.kill()
            other.wait()

        with waits_told(tell), waits_told(lambda _: pytest.fail("one is told")):
            limit.write(value)
    assert limit.read() == value
    limit.release()
    (line,) = told
    assert "\n" not in line
    assert f"(process {other.pid}: {Path(sys.executable).name} -c" in line


def test_a_second_wait_for_a_setting_is_told_in_a_few_words(limit: LocalSetting) -> None:
    """Seen: the rule, with the other process's whole command, came at each cell of a run."""
    told: list[str] = []
    with waits_told(told.append):
        for value in (500, 400):
            with another(limit, "relies") as other:
                Timer(0.3, other.kill).start()
                limit.write(value)
    limit.release()
    first, second = told
    assert f"process {other.pid}" in second
    assert len(second) < len(first) / 2
    assert "min" not in second


def test_what_is_found_is_not_what_another_natgauge_has_lowered(limit: LocalSetting) -> None:
    limit.paths[0].write_text("10")
    with another(limit, "lowered") as other:

        def restore(_line: str) -> None:
            other.kill()
            other.wait()
            limit.paths[0].write_text("1000")

        with waits_told(restore):
            limit.settle()
    assert limit.read() == 1000


def test_one_that_does_not_end_in_time_is_a_refusal_that_names_it(
    limit: LocalSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PATIENCE_SECONDS", 0.0)
    with another(limit, "relies") as other:
        with pytest.raises(
            OccupiedError, match=rf"relies on it \(process {other.pid}: .*, and has not ended in time; "
        ):
            limit.write(500)
        assert limit.read() == 1000
        limit.write(2000)
    limit.release()


@pytest.mark.parametrize(
    ("relied_on", "said"),
    [("nf_conntrack_max", "and waits for this one, too"), ("other", "and has not ended in time")],
)
def test_of_two_that_wait_for_each_other_one_gives_up_at_once_and_others_are_waited_for(
    relied_on: str, said: str, limit: LocalSetting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").write_text("1\n")
    held = limit if relied_on != "other" else LocalSetting("other", [tmp_path / "other"], memory=Memory)
    held.rely()
    # Who gives up at once needs no patience, and who waits shows it.
    monkeypatch.setattr(settings, "PATIENCE_SECONDS", 60.0 if held is limit else 0.2)
    with another(limit, "relies,waits", "0"), pytest.raises(OccupiedError, match=said):
        limit.write(500)
    held.release()
    limit.release()


def test_a_wait_that_nobody_wants_any_more_ends(limit: LocalSetting) -> None:
    def unwanted() -> None:
        raise InterruptedError

    with another(limit, "relies"), pytest.raises(InterruptedError), waits_told(lambda _: None, unwanted):
        limit.write(500)


def test_a_campaign_that_another_natgauge_is_in_the_way_of_breaks_no_cell(tmp_path: Path, golden: Golden) -> None:
    benches = Benches(breaks={"linux-ipv4": OccupiedError("table_size: another natgauge relies on it")})
    with golden.raises(OccupiedError):
        campaign(tmp_path, benches)
    benches.breaks = {}
    campaign(tmp_path, benches)
    assert [(one.done, one.broken) for one in status(tmp_path / "out").measurements] == [(2, "")] * 8

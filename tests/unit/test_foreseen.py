# SPDX-License-Identifier: Apache-2.0
"""What a plan alone says before it is measured: doubts of its figures, placements, settings of the whole machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.campaigns.cells import points
from natgauge.campaigns.estimate import of_cell
from natgauge.campaigns.plan import read
from natgauge.cli import run

TWO = ("nftables-nat44", "docker-nat44")
MIXED = ("nftables-nat44", "openvswitch-nat44")


def written(folder: Path, gateways: tuple[str, ...], connections: str, lab: str = "", metric: str = "") -> Path:
    """A plan of the connection rate, or of another metric."""
    path = folder / "plan.toml"
    path.write_text(
        f"gateways = {[*gateways]}\nprofile = 'quick'\nrepetitions = 4\n[lab]\n{lab}\n"
        f"[series]\nconnections = [{connections}]\n[[measure]]\nmetric = '{metric or 'connection-rate'}'\n"
    )
    return path


def checked(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `plan check` says of it, without time and memory."""
    assert run(["plan", "check", str(path)]) == 0
    return "\n".join(capsys.readouterr().out.splitlines()[4:]).replace(str(path), "plan.toml")


def numbers(said: str) -> list[int]:
    """The numbers of connections to take."""
    return [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) connections make that", said)]


@pytest.mark.parametrize("gateways", [TWO, ("openvswitch-nat44",)], ids=["kernel", "process"])
def test_a_plan_whose_queues_will_raise_the_rate_says_how_many_connections_to_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gateways: tuple[str, ...], golden: Golden
) -> None:
    """Seen: after six minutes the report said "up to 71.5 %" of each figure, and "at most" in each cell."""
    lab = 'placement = "isolated"'
    said = checked(written(tmp_path, gateways, "10_000, 20_000", lab), capsys)
    golden(said)
    (enough,) = numbers(said)
    assert enough > 20_000
    assert checked(written(tmp_path, gateways, str(enough), lab), capsys) == ""


def test_trials_that_are_too_short_for_the_tester_are_told_with_the_number_that_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: "3 to 8 min" for 1,000 connections and "9 to 22 s" for 10,000: the first were refused, at any length."""
    path = written(tmp_path, TWO, "1_000, 10_000")
    said = checked(path, capsys)
    golden(said)
    enough = int(re.findall(r"choose at least ([\d,]+) connections", said)[0].replace(",", ""))
    assert enough < 10_000
    few, many = (of_cell(cell).seconds for cell in points(read(path))[:2])
    assert few < 2 * many
    assert run(["plan", "show", str(path)]) == 0
    assert capsys.readouterr().out.count("no result: ") == 2
    assert checked(written(tmp_path, TWO, str(enough)), capsys) == ""


def test_a_plan_that_mixes_placements_says_so_and_names_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = written(tmp_path, MIXED, "130_000")
    said = checked(path, capsys)
    golden(said)
    assert 'placement = "isolated"' in said
    assert run(["plan", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert (shown.count(", shared"), shown.count(", isolated")) == (1, 1)
    assert checked(written(tmp_path, MIXED, "130_000", 'placement = "isolated"'), capsys) == ""


def test_a_device_that_would_take_turns_with_the_tester_is_told_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(checked(written(tmp_path, MIXED, "60_000", 'placement = "shared"', "throughput"), capsys))


def test_frames_that_are_too_few_for_a_worst_case_are_told_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(checked(written(tmp_path, TWO, "50", metric="first-packet-delay"), capsys))
    assert checked(written(tmp_path, TWO, "5_000", metric="first-packet-delay"), capsys) == ""


def test_settings_of_the_whole_machine_that_a_plan_sets_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: three waits of a run for a table size of another one, of which the plan's check had said nothing."""
    path = written(tmp_path, TWO, "60_000")
    assert checked(path, capsys) == ""
    path.write_text(f"{path.read_text()}[device]\nhash_size = 65536\nudp_timeout = 60\n")
    golden(checked(path, capsys))


@pytest.mark.parametrize("gateways", [TWO, ("openvswitch-nat44",), MIXED], ids=["kernel", "process", "both"])
def test_the_plan_of_the_template_has_no_doubts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gateways: tuple[str, ...]
) -> None:
    """Seen: its 1,000 and 10,000 connections gave nothing but bounds, and both placements in one table."""
    assert run(["plan", "new", *(word for name in gateways for word in ("--gateway", name))]) == 0
    path = tmp_path / "new.toml"
    path.write_text(capsys.readouterr().out)
    assert checked(path, capsys) == ""

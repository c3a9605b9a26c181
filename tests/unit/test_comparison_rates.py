# SPDX-License-Identifier: Apache-2.0
"""`compare` by rates: simulated gateways of known rates are searched in turn, and their ratio is found or left open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.simulated import Gateway

import natgauge
from natgauge.bench.bench import Bench, Planned
from natgauge.bench.lab_measurer import Recorder
from natgauge.cli import run
from natgauge.comparisons import asked, running
from natgauge.comparisons.asked import CompareOptions
from natgauge.errors import BrokenError, UsageError
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.time_budget import TimeUpError

ASKED = ["compare", "tayga-nat64", "tayga-nat64:udp_timeout=300", "--connections", "20000", "--seed", "7"]


class World:
    """What each gateway is, in the order in which they are started; the last one is the first one again."""

    def __init__(self) -> None:
        self.gateways: list[dict[str, Any]] = [{}, {}, {}]
        self.started: list[Gateway] = []
        self.entered = self.most_entered = 0

    def ready(self, bench: Bench, planned: Planned) -> SimpleNamespace:
        """Stands in for a started gateway; a bench has one, whatever is measured of it."""
        found: Gateway | None = getattr(bench, "simulated", None)
        if found is None:
            number = len(self.started)
            known = {"establishes": 20_000.0, "forwards": 50_000.0, "seed": number, **self.gateways[number]}
            found = Gateway(**known)
            self.started.append(found)
            bench.simulated = found  # type: ignore[attr-defined] # a test's own
        return SimpleNamespace(planned=planned, measurer=found, device=None)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """Gateways of known rates in place of labs."""
    found = World()

    def enter(bench: Bench) -> Bench:
        found.entered += 1
        found.most_entered = max(found.most_entered, found.entered)
        return bench

    def leave(_bench: Bench, *_exception: object) -> None:
        found.entered -= 1

    monkeypatch.setattr(running, "check_host", lambda: None)
    monkeypatch.setattr(Bench, "__enter__", enter)
    monkeypatch.setattr(Bench, "__exit__", leave)

    def ready(bench: Bench, planned: Planned, _recorder: Recorder) -> SimpleNamespace:
        return found.ready(bench, planned)

    monkeypatch.setattr(Bench, "ready", ready)
    monkeypatch.chdir(tmp_path)
    yield found
    assert found.entered == 0


def test_a_known_ratio_lies_in_the_interval_that_is_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.gateways[1] = {"establishes": 16_000.0, "forwards": 40_000.0}
    assert run([*ASKED, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["by"], document["placement"], document["rounds"]) == ("rates", "isolated", 8)
    assert [figure["quantity"] for figure in document["quantities"]] == ["new", "both"]
    for figure in document["quantities"]:
        assert figure["verdict"] == "dearer"
        assert figure["low"] <= 1.25 <= figure["high"]
        # Each search leaves two bounds that are 2 % apart.
        assert figure["high"] / figure["low"] < 1.05
        assert figure["share_of_forwarding"] is None
    assert document["quantities"][0]["nanoseconds"] == pytest.approx(1e9 / 16_000, rel=0.02)
    assert document["quantities"][1]["nanoseconds"] == pytest.approx(1e9 / 80_000, rel=0.02)
    assert document["rates"]["tayga-nat64"]["both"] == pytest.approx(50_000, rel=0.02)
    rounds = [json.loads(line) for line in (Path(document["evidence"]) / "rounds.jsonl").read_text().splitlines()]
    assert len(rounds) == 8
    assert all(low < high for one in rounds for each in one["rates"].values() for low, high in each.values())


def test_the_same_gateway_twice_shows_no_difference(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ASKED, "--quantities", "new"]) == 0
    out = capsys.readouterr().out
    assert "Beside tayga-nat64, of time at the highest rate:" in out
    assert "no difference larger than" in out
    assert "Rates of tayga-nat64 (again): new 2" in out
    assert len(world.started) == 3


def test_noise_makes_the_interval_wider_and_keeps_the_truth_in_it(world: World) -> None:
    world.gateways = [{"noise": 0.05}, {"noise": 0.05, "establishes": 16_000.0}, {"noise": 0.05}]
    found = natgauge.compare(
        *ASKED[1:3], connections=20_000, seed=7, quantities="new", most_seconds=5.0, resolve="0.1%"
    )
    (figure,) = found.figures
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= 1.25 <= figure.high
    assert (figure.verdict, found.decided, found.exit_status) == ("dearer", False, 11)


def test_a_gateway_as_fast_as_the_tester_leaves_its_ratio_open(world: World) -> None:
    world.gateways[1] = {"establishes": 1e6, "ceiling": 30_000.0}
    found = natgauge.compare(*ASKED[1:3], connections=20_000, seed=7, quantities="new", most_seconds=3.0)
    (figure,) = found.figures
    # No rate was found too high for it, so there is no end to how cheap it may be.
    assert figure.low == 0
    assert figure.verdict in ("cheaper", "undecided")
    assert not found.decided


def test_a_gateway_without_any_rate_ends_it_in_one_line(world: World) -> None:
    world.gateways[1] = {"passes": lambda _load: False}
    with pytest.raises(BrokenError, match=r"compare: tayga-nat64:udp_timeout=300: no rate passed, in 3 searches"):
        natgauge.compare(*ASKED[1:3], connections=20_000, seed=7, quantities="new")


def test_a_search_that_runs_out_of_time_before_a_first_bound_is_void(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(procedure: Procedure[Any], *_arguments: object) -> None:
        raise TimeUpError(f"{procedure.metric}: 60 s are over")

    monkeypatch.setattr(Procedure, "once", once)
    # Throughput needs the rate of phase 1, which is searched for first.
    with pytest.raises(BrokenError, match=r"compare: tayga-nat64.*: connection-rate: 60 s are over, in 3 searches"):
        natgauge.compare(*ASKED[1:3], connections=20_000, seed=7, quantities="both")
    assert len(world.started) == 3


@pytest.mark.parametrize(
    ("names", "choices", "words"),
    [
        (("tayga-nat64", "tayga-nat64"), {"by": "slices"}, "works in processes of its own"),
        (("nftables-nat44", "nftables-nat44"), {"by": "turns"}, "by: 'turns' is unknown; choose one of auto, slices"),
        (("nftables-nat44", "nftables-nat44:cores=1"), {"by": "slices"}, "cores: by slices all work on one core"),
        (("nftables-nat44", "nftables-nat44"), {"by": "rates", "core": 1}, "core: 1 is for slices"),
        (("nftables-nat44:lab=wire", "nftables-nat44"), {}, "initiator-port is missing"),
        (("nftables-nat44:lab=moon", "nftables-nat44"), {}, "lab: 'moon' is unknown"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    world: World, names: tuple[str, ...], choices: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        natgauge.compare(*names, **choices)
    assert world.started == []


@pytest.mark.parametrize("number", [2, 5])
def test_each_gateway_has_its_share_of_the_time(number: int) -> None:
    gateways = asked.read(["tayga-nat64"] * number, {}, unlike=False)
    assert asked.filled(CompareOptions(), gateways).most_seconds == 450 * number
    assert asked.filled(CompareOptions(most_seconds=7.0), gateways).most_seconds == 7


def test_a_setting_of_the_whole_machine_may_differ_where_one_stands_at_a_time(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["nftables-nat44:hash_size=1024", "nftables-nat44:hash_size=65536"]
    assert run(["compare", *names, "--connections", "20000", "--quantities", "new", "--seed", "1"]) == 0
    assert "Beside nftables-nat44:hash_size=1024, of time at the highest rate:" in capsys.readouterr().out
    assert (len(world.started), world.most_entered) == (3, 1)
    with pytest.raises(UsageError, match="hash_size: is one setting of the whole machine"):
        natgauge.compare(*names, by="slices")


def test_settings_may_have_colons_and_commas() -> None:
    from natgauge.comparisons.asked import read  # noqa: PLC0415

    name = "nftables-nat44:lab=wire,initiator_gateway=2001:db8::1,empty_command=nft flush table ip a, ip b,cores=1"
    (_, one) = read(["nftables-nat44", name], {}, unlike=False)
    assert one.choices["initiator_gateway"] == "2001:db8::1"
    assert one.choices["empty_command"] == "nft flush table ip a, ip b"
    assert one.choices["cores"] == "1"

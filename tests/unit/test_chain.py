# SPDX-License-Identifier: Apache-2.0
"""Several gateways as one device: who is asked, in which order they come and go, and state where none may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.counted import make_counts, make_trial
from tests.unit.golden import Golden
from tests.unit.test_recipe_contract import PLAN, FakeDevice

from natgauge.cli import run
from natgauge.errors import BrokenError, UsageError
from natgauge.gateways.chain import Chain
from natgauge.gateways.device_settings import DeviceSettings
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.recipe import load
from natgauge.readings import Readings
from natgauge.verdicts import Limits, judge
from natgauge.words import Verdict


class Part(Gateway):
    """A gateway whose table and faults are told, and which writes down what is done with it."""

    def __init__(self, name: str, holds: int, log: list[str], breaks: str = "") -> None:
        super().__init__(load("linux-ipv4"), FakeDevice(name=name))
        self.holds = holds
        self.log = log
        self.breaks = breaks

    def _note(self, what: str) -> None:
        self.log.append(f"{self.device.name} {what}")
        if self.breaks == what:
            raise BrokenError(f"{self.device.name}: out of order")

    def prepare(self, plan: Any) -> None:
        super().prepare(plan)
        self._note("prepare")

    def start(self) -> None:
        self._note("start")

    def stop(self) -> None:
        self._note("stop")

    def fit(self, plan: Any) -> None:
        assert plan
        self._note("fit")

    def empty(self) -> None:
        self._note("empty")

    def empty_timed(self) -> float:
        return float(self.holds)

    def count(self) -> int:
        return self.holds

    def faults(self) -> dict[str, int]:
        return {"drop": self.holds}

    def confirm_ready(self) -> None:
        self._note("confirm")

    def restart(self) -> None:
        self._note("restart")

    def restart_under_load(self) -> None:
        self._note("restart under load")


def chain(log: list[str], ce: int = 0, pe: int = 7, **others: Any) -> Chain:
    return Chain([Part("ce", ce, log), Part("pe", pe, log, **others)], holder=1)


def test_the_one_that_holds_the_state_is_asked_and_all_are_emptied_and_restarted(golden: Golden) -> None:
    log: list[str] = []
    device = chain(log)
    assert (device.count(), device.empty_timed()) == (7, 7.0)
    device.empty()
    device.restart()
    device.confirm_ready()
    device.restart_under_load()
    golden(log)


class Told(Part):
    """A gateway of a recipe of its own that tells its version."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(name, 0, [])
        self.recipe = load("linux-ipv4").model_copy(update={"name": name})
        self._told = version

    def version(self) -> tuple[str, ...]:
        return (self._told,)

    def settings(self) -> DeviceSettings:
        return DeviceSettings(self.recipe.name, self.version(), 1000, {})


def test_the_version_is_that_of_every_gateway_each_once_and_the_holders_first() -> None:
    parts = [Told("ce", "tayga 0.9.2"), Told("nat", "nftables v1.0.6"), Told("br", "tayga 0.9.2")]
    assert Chain(parts, holder=1).settings().version == ("nftables v1.0.6", "tayga 0.9.2")
    assert Chain(parts[:1]).settings().version == ("tayga 0.9.2",)


def test_all_are_checked_before_the_first_is_started_and_the_last_goes_first() -> None:
    log: list[str] = []
    with chain(log) as device:
        device.start(PLAN)
        device.fit(PLAN)
    assert log == [
        *("ce prepare", "pe prepare", "ce start", "pe start", "ce fit", "pe fit", "pe stop", "ce stop"),
    ]


def test_what_was_started_is_stopped_when_a_later_one_does_not_come_up(golden: Golden) -> None:
    log: list[str] = []
    with golden.raises(BrokenError), chain(log, breaks="start") as device:
        device.start(PLAN)
    assert log[-2:] == ["pe stop", "ce stop"]


def test_faults_of_several_bear_their_names_and_those_of_one_do_not() -> None:
    assert chain([], ce=2).faults() == {"ce drop": 2, "pe drop": 7}
    assert Chain([Part("gateway", 3, [])]).faults() == {"drop": 3}


def test_connections_where_none_may_be_are_strays() -> None:
    assert chain([]).strays() == {}
    assert chain([], ce=3).strays() == {"ce": 3}
    assert Chain([Part("gateway", 3, [])]).strays() == {}


@pytest.mark.parametrize(("strays", "verdict"), [({}, Verdict.PASS), ({"ce": 3}, Verdict.FAIL)])
def test_a_chain_that_keeps_state_where_it_must_not_fails(strays: Mapping[str, int], verdict: Verdict) -> None:
    sent = make_counts(intended=10, offered=10, received=10)
    read = Readings(count_after=10, strays=strays)
    judged = judge(
        make_trial(PlanOfTrial(10, 10.0), phase1=sent, stored=10, readings=read, placement="shared"), Limits()
    )
    assert judged.verdict is verdict
    assert judged.reason == ("the device keeps 3 connections at ce, which must hold none" if strays else "")


@pytest.mark.parametrize(
    "change",
    [
        ('recipe = "tayga-nat64"', 'recipe = "464xlat-tayga"'),
        ('recipe = "tayga-clat"', 'recipe = "linux-ipv4"'),
        ('recipe = "tayga-nat64"', 'recipe = "nowhere"'),
        ('device = "pe"', 'device = "ce"'),
        ("stateful = true", "stateful = false"),
        ('kind = "464xlat"', 'kind = "464xlat"\nextends = ["linux-ipv4"]'),
    ],
)
def test_a_chain_that_cannot_be_is_refused_in_one_line(change: tuple[str, str], tmp_path: Path, golden: Golden) -> None:
    good = load("464xlat-tayga").origin.read_text()
    path = tmp_path / "464xlat-tayga.toml"
    path.write_text(good.replace(*change))
    with pytest.raises(UsageError) as refusal:
        load(path)
    golden(str(refusal.value))
    assert "\n" not in str(refusal.value)


def test_the_page_on_gateways_has_a_chain_that_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text()
    (example,) = [text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[[chain]]" in text]
    path = tmp_path / "464xlat-mine.toml"
    path.write_text(example)
    recipe = load(path)
    assert [part.device for part in recipe.chain] == ["ce", "pe"]
    assert recipe.holder == 1
    assert [one.verbs.start[-1] for one in recipe.of_devices(0)] == [
        part.recipe.verbs.start[-1] for part in load("464xlat-tayga").chain
    ]


def test_a_chain_logs_only_where_the_log_names_the_hosts_that_the_tester_knows() -> None:
    """Behind a CLAT the log of a NAT64 names addresses of the CLAT's prefix, of which the tester knows nothing."""
    assert load("jool-nat64").logging
    assert load("464xlat-jool").logging == {}
    assert load("ds-lite").logging.keys() == load("nftables-nat44").logging.keys()


def test_the_devices_of_a_chain_are_shown(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert run(["gateways", "show", "ds-lite"]) == 0
    shown = capsys.readouterr().out
    devices = [line.split()[1].rstrip(":") for line in shown.splitlines() if line.startswith("  device ")]
    assert devices == ["b4", "aftr", "nat"]
    golden([line for line in shown.splitlines() if line.startswith("  device ")])

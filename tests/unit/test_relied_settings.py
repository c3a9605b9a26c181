# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole machine: whoever changes one that a gateway relies on is found, between labs it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Context
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory

from natgauge.errors import HostError
from natgauge.host.settings import LocalSetting, reliance_kept


class Shared(Memory):
    """The register of a lab in a container where another natgauge has set a value."""

    def __init__(self, value: str | None) -> None:
        super().__init__()
        self.value = value

    def value_set(self, _path: str | Path) -> str | None:
        return self.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A global setting of this machine."""
    path = tmp_path / "nf_conntrack_max"
    path.write_text("1000\n")
    return path


@pytest.fixture(params=["set", "relied on"])
def setting(path: Path, request: pytest.FixtureRequest) -> Iterator[LocalSetting]:
    """It is 1000 when the gateway starts: natgauge has set it, or relies on what it found."""
    made = LocalSetting("table_size", [path], memory=Memory)
    if request.param == "set":
        path.write_text("900")
        made.write(1000)
    else:
        made.rely()
    yield made
    made.release()


def test_nothing_is_found_where_nothing_changed(setting: LocalSetting) -> None:
    assert setting.found_changed() == setting.found_changed() == ""


@pytest.mark.parametrize("value", [300, 4000])
def test_the_reason_has_the_setting_and_both_values_until_it_is_put_back(
    setting: LocalSetting, path: Path, value: int, golden: Golden
) -> None:
    path.write_text(str(value))
    for _ in range(2):
        reason = setting.found_changed()
        golden(reason)
        assert f"and is {value} now" in reason
    path.write_text("1000")
    assert setting.found_changed() == ""


def test_what_another_natgauge_of_this_container_raised_spoils_one_trial(path: Path) -> None:
    setting = LocalSetting("table_size", [path], memory=lambda: Shared("4000"))
    setting.rely()
    path.write_text("4000")
    assert "is 4000 now" in setting.found_changed()
    assert setting.found_changed() == ""
    setting.release()


def test_another_gateway_of_this_process_may_raise_it(setting: LocalSetting, path: Path) -> None:
    second = LocalSetting("table_size", [path], memory=Memory)
    Context().run(second.write, 4000)
    assert setting.found_changed() == second.found_changed() == ""
    second.release()


# A process that makes one lab after the other keeps its locks of the machine's settings between them.


def knob(path: Path) -> LocalSetting:
    """As each gateway has one of its own; a lock of one is in the way of all others."""
    return LocalSetting("table_size", [path], memory=Memory)


@pytest.mark.parametrize("value", [2000, 500])
def test_between_two_labs_nobody_else_lowers_what_the_next_one_relies_on(
    path: Path, value: int, golden: Golden
) -> None:
    """Seen: another natgauge took a setting while the labs of a round were made again, and the comparison ended."""
    with reliance_kept():
        first = knob(path)
        first.write(value)
        first.release()
        path.write_text("1000")
        other = knob(path)
        # Another process has no part in what this one keeps.
        with golden.raises(HostError):
            elsewhere(other, 100)
        second = knob(path)
        second.write(value)
        assert second.read() == value
        second.release()
    third = knob(path)
    third.write(100)
    third.release()
    assert path.read_text() == "100"


def elsewhere(other: LocalSetting, value: int) -> None:
    """Write in a context of its own, as another process would."""
    Context().run(other.write, value)


def test_several_gateways_rely_on_one_setting_in_round_after_round(path: Path) -> None:
    with reliance_kept(), reliance_kept():
        for _ in range(3):
            gateways = [knob(path) for _ in range(3)]
            gateways[0].write(2000)
            for gateway in gateways[1:]:
                gateway.rely()
            for gateway in reversed(gateways):
                gateway.release()
            with pytest.raises(HostError, match="relies on it"):
                elsewhere(knob(path), 100)
    lowered = knob(path)
    lowered.write(100)
    lowered.release()


def test_without_labs_that_follow_the_lock_ends_with_the_gateway(path: Path) -> None:
    first = knob(path)
    first.write(2000)
    first.release()
    second = knob(path)
    second.write(100)
    second.release()

# SPDX-License-Identifier: Apache-2.0
"""A process that makes one lab after the other keeps its locks of the machine's settings between them."""

from __future__ import annotations

from contextvars import Context
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory

from natgauge.errors import HostError
from natgauge.host.settings import LocalSetting, reliance_kept


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    """A global setting of this machine."""
    path = tmp_path / "nf_conntrack_max"
    path.write_text("1000\n")
    return path


def knob(path: Path) -> LocalSetting:
    """As each gateway has one of its own; a lock of one is in the way of all others."""
    return LocalSetting("table_size", [path], memory=Memory)


@pytest.mark.parametrize("value", [2000, 500])
def test_between_two_labs_nobody_else_lowers_what_the_next_one_relies_on(
    setting: Path, value: int, golden: Golden
) -> None:
    """Seen: another natgauge took a setting while the labs of a round were made again, and the comparison ended."""
    with reliance_kept():
        first = knob(setting)
        first.write(value)
        first.release()
        setting.write_text("1000")
        other = knob(setting)
        # Another process has no part in what this one keeps.
        with golden.raises(HostError):
            elsewhere(other, 100)
        second = knob(setting)
        second.write(value)
        assert second.read() == value
        second.release()
    third = knob(setting)
    third.write(100)
    third.release()
    assert setting.read_text() == "100"


def elsewhere(other: LocalSetting, value: int) -> None:
    """Write in a context of its own, as another process would."""
    Context().run(other.write, value)


def test_several_gateways_rely_on_one_setting_in_round_after_round(setting: Path) -> None:
    with reliance_kept(), reliance_kept():
        for _ in range(3):
            gateways = [knob(setting) for _ in range(3)]
            gateways[0].write(2000)
            for gateway in gateways[1:]:
                gateway.rely()
            for gateway in reversed(gateways):
                gateway.release()
            with pytest.raises(HostError, match="relies on it"):
                elsewhere(knob(setting), 100)
    lowered = knob(setting)
    lowered.write(100)
    lowered.release()


def test_without_labs_that_follow_the_lock_ends_with_the_gateway(setting: Path) -> None:
    first = knob(setting)
    first.write(2000)
    first.release()
    second = knob(setting)
    second.write(100)
    second.release()

# SPDX-License-Identifier: Apache-2.0
"""The user's command that starts a device anew: run with the number of cores, waited for, and given up in one line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.errors import HostError, UsageError
from natgauge.labs.common import port_options
from natgauge.labs.common.port_options import BootCommand, PortOptions


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is looked at without a pause."""
    monkeypatch.setattr(port_options, "_POLL_SECONDS", 0.01)


def command(text: str, seconds: float = 20.0, settle: float = 0.0) -> BootCommand:
    made = PortOptions(boot_seconds=seconds, boot_settle_seconds=settle).boot("boot command", text)
    assert made is not None
    return made


@pytest.mark.parametrize(("cores", "told"), [(4, "4"), (None, "none")])
def test_the_command_is_told_the_number_of_cores(tmp_path: Path, cores: int | None, told: str) -> None:
    command(f'printf "${{NG_CORES:-none}}" > {tmp_path}/cores').run(cores)
    assert (tmp_path / "cores").read_text() == told


def test_the_device_is_waited_for_and_then_left_alone() -> None:
    looks = iter(["it does not answer", "it has 8 processors online, not 4", ""])
    begun = time.monotonic()
    needed = command("true", settle=0.2).run(4, lambda: next(looks))
    assert next(looks, None) is None
    # The time to settle is no part of what the device needed.
    assert needed <= time.monotonic() - begun - 0.2


@pytest.mark.parametrize(
    ("text", "seconds"), [("sleep 60", 0.1), ("echo no power >&2; exit 3", 9.0), ("exit 3", 9.0), ("true", 0.1)]
)
def test_a_device_that_does_not_come_back_ends_in_one_line(text: str, seconds: float, golden: Golden) -> None:
    with golden.raises(HostError) as refused:
        command(text, seconds).run(2, lambda: "it is silent")
    assert "\n" not in str(refused.value)


def test_an_empty_command_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        command("  ")

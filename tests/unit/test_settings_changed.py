# SPDX-License-Identifier: Apache-2.0
"""A global setting that somebody changes while a gateway relies on it: each reading after a trial finds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Context
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory

from natgauge.host.settings import LocalSetting


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

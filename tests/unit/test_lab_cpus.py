# SPDX-License-Identifier: Apache-2.0
"""Lists of cores: reading, writing, refusing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden import Golden

from natgauge.errors import UsageError
from natgauge.host import cpus
from natgauge.host.cpus import check_cpus, usable_cpus
from natgauge.inputs.cores import format_cores, parse_cores


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", (0,)), ("2,0", (0, 2)), ("0-3", (0, 1, 2, 3)), (" 1-2 , 8\n", (1, 2, 8)), ("5-5", (5,))],
)
def test_reading(text: str, expected: tuple[int, ...]) -> None:
    assert parse_cores(text) == expected


@pytest.mark.parametrize("text", ["", "a", "0,", "-1", "1-", "0x1", "1.5", "3-1", "0,0", "0-2,1", "999999"])
def test_bad_lists_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_cores(text)
    assert f'"{text}"' in str(refusal.value)
    assert "\n" not in str(refusal.value)


@given(st.sets(st.integers(0, 4095), min_size=1))
def test_what_is_written_can_be_read(chosen: set[int]) -> None:
    assert parse_cores(format_cores(chosen)) == tuple(sorted(chosen))


def test_a_usable_core_is_accepted() -> None:
    first = usable_cpus()[0]
    assert check_cpus([first], "sender cores") == (first,)


@pytest.mark.parametrize("chosen", [(), (0, 0), (7,)])
def test_bad_choices_are_refused(chosen: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(cpus, "usable_cpus", lambda: (0, 1))
    with golden.raises(UsageError):
        check_cpus(chosen, "sender cores")


@pytest.mark.parametrize(("isolated", "is_named"), [("2-3\n", True), ("2\n", False), ("\n", False), (None, False)])
def test_the_way_to_a_core_that_the_kernel_isolates_is_named(
    isolated: str | None,
    is_named: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`isolcpus=` takes it from all processes, also where docs/host.md advises it."""
    file = tmp_path / "isolated"
    if isolated is not None:
        file.write_text(isolated)
    monkeypatch.setattr(cpus, "_ISOLATED", file)
    monkeypatch.setattr(cpus, "usable_cpus", lambda: (0, 1))
    monkeypatch.setattr(cpus, "online_cpus", lambda: (0, 1, 2, 3))
    with pytest.raises(UsageError, match="core 3 cannot be used here; choose from 0,1") as refused:
        check_cpus([3], "sender cores")
    assert ("taskset -c 0,1,2,3" in str(refused.value)) is is_named
    assert "\n" not in str(refused.value)

# SPDX-License-Identifier: Apache-2.0
"""The linter of docstrings finds entries that only repeat a name, and lets those stand that add something."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.docstring_blocks import idle

INTERNAL = '''
class Thing:
    """A thing.

    Attributes:
        name: {entry}.
    """
'''


@pytest.mark.parametrize("entry", ["its name", "the thing's name", "whether it has one"])
def test_an_entry_that_repeats_its_name_is_found(entry: str) -> None:
    found = [f"{one.owner}: {one.entry}" for one in idle(INTERNAL.format(entry=entry), Path("thing.py"))]
    assert found == [f"Thing: name: {entry}."]


@pytest.mark.parametrize(
    "entry", ["time, in seconds", "number, >= 1", "its name; None = any", "see RFC 2544", "octets with FCS"]
)
def test_a_unit_a_range_a_sentinel_or_a_standard_lets_an_entry_stand(entry: str) -> None:
    assert not list(idle(INTERNAL.format(entry=entry), Path("thing.py")))


def test_a_long_explanation_stands_over_several_lines() -> None:
    entry = "whether control frames follow,\n            so that no host that stalls is taken for a gateway that drops"
    assert not list(idle(INTERNAL.format(entry=entry), Path("thing.py")))


def test_what_an_internal_function_raises_is_no_block() -> None:
    function = '"""Do it.\n\n    Raises:\n        UsageError: 3 seconds have passed.\n    """'
    assert list(idle(f"def act() -> None:\n    {function}\n", Path("thing.py")))


@pytest.mark.parametrize("base", ["Protocol", "ABC", "Protocol[T]"])
def test_a_contract_has_whole_blocks(base: str) -> None:
    source = INTERNAL.format(entry="its name").replace("class Thing:", f"class Thing({base}):")
    assert not list(idle(source, Path("thing.py")))

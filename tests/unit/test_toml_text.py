# SPDX-License-Identifier: Apache-2.0
"""What natgauge refuses of TOML documents beyond what the parser does."""

from __future__ import annotations

import re

import pytest
from tests.unit.golden import Golden

from natgauge.toml_text import parse


@pytest.mark.parametrize("text", ["a{} = 1", "[a{}]", "x = {{ a{} = 1 }}", "\n[[ a{} ]]"])
def test_a_key_of_very_many_parts_is_refused_before_it_takes_minutes(text: str, golden: Golden) -> None:
    with golden.raises(ValueError):
        parse(text.format(".a" * 300_000))
    assert parse(f'text = "{"a." * 1000}"')
    assert parse("a" + ".a" * 100 + " = 1")


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("a = 1\nb = 2\n a.b = 3\n", "a.b", 3),
        ("a = 1\na = 2", "a", 2),
        ("[x]\na = 1\n[x]\nb = 1", "[x]", 3),
        ('"a b" = 1\n"a b" = 2\n', '"a b"', 2),
        ('a = 1\na = """\nx\n"""\n', "a key", 4),
    ],
)
def test_a_key_that_is_there_twice_is_named_with_its_line(text: str, name: str, line: int) -> None:
    """Seen: `Cannot overwrite a value`, which names neither what is wrong nor what to do."""
    with pytest.raises(ValueError, match=re.escape(f"{name} is there twice (again at line {line}); leave one out")):
        parse(text)

# SPDX-License-Identifier: Apache-2.0
"""Documents that natgauge writes as TOML are read again as they were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natgauge.toml_text import dump, parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PLAIN = st.one_of(
    TEXTS, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.one_of(PLAIN, st.lists(PLAIN))
TABLES = st.dictionaries(TEXTS, VALUES)


@given(st.dictionaries(TEXTS, st.one_of(VALUES, TABLES, st.lists(TABLES, min_size=1))))
def test_a_document_is_read_as_it_was_written(document: dict[str, Any]) -> None:
    assert parse(dump(document)) == document


def test_plain_values_stand_before_the_tables() -> None:
    document = {
        "part": {"a key": "0.01%"},
        "one": [{"x": 1}, {"x": 4_000_000}],
        "name": 'a "b"',
        "alpha": 1.0,
        "on": True,
    }
    assert dump(document) == (
        'name = "a \\"b\\""\nalpha = 1.0\non = true\n'
        '\n[part]\n"a key" = "0.01%"\n'
        "\n[[one]]\nx = 1\n"
        "\n[[one]]\nx = 4_000_000\n"
    )


@pytest.mark.parametrize("text", ["\x7f", "\n\t\\", "\u2028", "é"])
def test_characters_that_toml_escapes_survive(text: str) -> None:
    assert parse(dump({"key": text})) == {"key": text}


@pytest.mark.parametrize("text", ["a{} = 1", "[a{}]", "x = {{ a{} = 1 }}", "\n[[ a{} ]]"])
def test_a_key_of_very_many_parts_is_refused_before_it_takes_minutes(text: str) -> None:
    with pytest.raises(ValueError, match="a key of more than 256 parts"):
        parse(text.format(".a" * 300_000))
    assert parse(f'text = "{"a." * 1000}"')
    assert parse("a" + ".a" * 100 + " = 1")

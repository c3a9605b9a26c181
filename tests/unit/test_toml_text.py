# SPDX-License-Identifier: Apache-2.0
"""What natgauge refuses of TOML documents beyond what the parser does."""

from __future__ import annotations

import pytest
from tests.unit.golden import Golden

from natgauge.toml_text import parse


@pytest.mark.parametrize("text", ["a{} = 1", "[a{}]", "x = {{ a{} = 1 }}", "\n[[ a{} ]]"])
def test_a_key_of_very_many_parts_is_refused_before_it_takes_minutes(text: str, golden: Golden) -> None:
    with golden.raises(ValueError):
        parse(text.format(".a" * 300_000))
    assert parse(f'text = "{"a." * 1000}"')
    assert parse("a" + ".a" * 100 + " = 1")

# SPDX-License-Identifier: Apache-2.0
"""What natgauge refuses of TOML documents beyond what the parser does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.simulated_lab import NAT44
from tests.unit.conftest import Ran
from tests.unit.golden import Golden

WHOLE = NAT44.read_text()


def refusal(ran: Ran, text: str) -> str:
    """The one line about a recipe of this text."""
    Path("mine.toml").write_text(text)
    (said,) = ran(["gateways", "show", "./mine.toml"], status=2).err.splitlines()
    return str(said)


@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize("text", ["a{} = 1", "[a{}]", "x = {{ a{} = 1 }}", "\n[[ a{} ]]"])
def test_a_key_of_very_many_parts_is_refused_before_it_takes_minutes(text: str, ran: Ran, golden: Golden) -> None:
    golden(refusal(ran, text.format(".a" * 300_000)))


@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_long_text_is_no_key_and_a_key_of_a_hundred_parts_is_none_of_very_many(ran: Ran) -> None:
    assert "a key of more than" not in refusal(ran, f"a{'.a' * 100} = 1\n{WHOLE}")
    Path("simulated.toml").write_text(WHOLE.replace("[verbs]", f'[environment]\nTEXT = "{"a." * 1000}"\n\n[verbs]'))
    shown = json.loads(ran(["gateways", "show", "./simulated.toml", "--json"]).out)
    assert shown["environment"] == {"TEXT": "a." * 1000}


@pytest.mark.usefixtures("in_an_empty_folder")
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
def test_a_key_that_is_there_twice_is_named_with_its_line(text: str, name: str, line: int, ran: Ran) -> None:
    """Seen: `Cannot overwrite a value`, which names neither what is wrong nor what to do."""
    assert refusal(ran, text).endswith(f": {name} is there twice (again at line {line}); leave one out")


@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_byte_order_mark_is_no_part_of_a_document(ran: Ran) -> None:
    Path("simulated.toml").write_text(f"\ufeff{WHOLE}")
    assert json.loads(ran(["gateways", "show", "./simulated.toml", "--json"]).out)["name"] == "simulated"

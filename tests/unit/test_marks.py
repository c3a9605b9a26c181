# SPDX-License-Identifier: Apache-2.0
"""Every test that is marked slow says what it needs its seconds for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
#: A reason names something that takes time; one word cannot.
LEAST_WORDS = 3


def unexplained(source: str) -> Iterator[int]:
    """Yield the lines on which `pytest.mark.slow` has no reason of at least `LEAST_WORDS` words."""
    tree = ast.parse(source)
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "slow" and ast.unparse(node.value) == "pytest.mark":
            call = calls.get(id(node))
            reason = call.args[0] if call is not None and len(call.args) == 1 else None
            words = reason.value if isinstance(reason, ast.Constant) else None
            if not isinstance(words, str) or len(words.split()) < LEAST_WORDS:
                yield node.lineno


def test_every_slow_mark_has_a_reason() -> None:
    # To parse a file takes longer than all else; most have no such mark.
    marked = {path: source for path in TESTS.rglob("test_*.py") if "mark.slow" in (source := path.read_text())}
    assert len(marked) > 10
    found = {path.relative_to(TESTS): list(unexplained(source)) for path, source in marked.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("mark", "lines"),
    [
        ('@pytest.mark.slow("waits for a time-out of 3 s")', []),
        ("@pytest.mark.slow", [1]),
        ("@pytest.mark.slow()", [1]),
        ('@pytest.mark.slow("long")', [1]),
        ("@pytest.mark.alone", []),
    ],
)
def test_a_mark_without_a_reason_is_found_wherever_it_is(mark: str, lines: list[int]) -> None:
    assert list(unexplained(f"{mark}\ndef test_it() -> None: ...\n")) == lines
    assert list(unexplained(f"pytestmark = [{mark[1:]}]\n")) == lines

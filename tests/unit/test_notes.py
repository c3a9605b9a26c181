# SPDX-License-Identifier: Apache-2.0
"""Notes are data: programs compare words, and nothing reads a text."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.unit.golden import Golden

import natgauge
from natgauge.doubts.doubt import count_of
from natgauge.notes import Note

ROOT = Path(natgauge.__file__).parent
#: Methods that read a text.
READING = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "partition", "split"})
#: Expressions that stand for a note or its text.
A_NOTE = re.compile(r"\b(note|doubt|remark)s?\b")


def readings(source: str) -> list[str]:
    """Calls in a module that read the text of a note."""
    # To parse a module takes longer than all else; most have none of both.
    if not A_NOTE.search(source) or not any(f".{method}(" in source for method in READING):
        return []
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READING
        and A_NOTE.search(ast.unparse(node.func.value))
    ]


def test_a_reading_of_a_notes_text_is_found() -> None:
    assert readings("curable = not any(note.text.startswith(X) for note in notes)") == ["note.text.startswith(X)"]
    assert readings("curable = not any(note.word == X for note in notes)") == []


def test_no_module_reads_the_text_of_a_note() -> None:
    found = {str(path): readings(path.read_text(encoding="utf-8")) for path in ROOT.glob("**/*.py")}
    assert len(found) > 100
    assert {path: calls for path, calls in found.items() if calls} == {}


def test_a_note_shows_its_word_where_it_is_a_reason_for_doubt(golden: Golden) -> None:
    golden(str(Note("undecided", "above 5 frames/s")))
    assert str(Note("method", "MLRsearch")) == "MLRsearch"


def test_counts_of_one_word_add_up() -> None:
    notes = [Note("contradictions", "a", 2), Note("trials", "b", 7), Note("contradictions", "c")]
    assert (count_of(notes, "contradictions"), count_of(notes, "undecided")) == (3, 0)

# SPDX-License-Identifier: Apache-2.0
"""Tables in pipes: aligned, whole, and without marks of a terminal."""

from __future__ import annotations

import pytest

from natgauge.tables import aligned


def test_columns_are_aligned_left_or_right() -> None:
    rows = [("name", "frames/s", "verdict"), ("nftables-nat44", "1,000", "no"), ("x", "12", "")]
    assert aligned(rows, right={1}) == [
        "name            frames/s  verdict",
        "nftables-nat44     1,000  no",
        "x                     12",
    ]


def test_no_figure_is_wrapped_or_cut_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    row = ["1,234,567,890"] * 12
    assert aligned([row]) == ["  ".join(row)]


def test_what_looks_like_a_mark_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert aligned([("[red]x[/red]", ":warning: 3.5 'a'")]) == ["[red]x[/red]  :warning: 3.5 'a'"]


def test_no_rows_are_no_lines() -> None:
    assert aligned([]) == []

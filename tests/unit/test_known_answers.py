# SPDX-License-Identifier: Apache-2.0
"""The table of known answers itself: which procedures have a row, which rows run when, and what is within a margin."""

from __future__ import annotations

import dataclasses

import pytest
from tests.labs.known_answers import table
from tests.labs.known_answers.devices import Device
from tests.labs.known_answers.harder_rows import EVERY_ROW
from tests.labs.known_answers.rows import Look, Row, Value
from tests.labs.known_answers.tiers import COUNTED, REPEATED, WITHOUT_ROW, tier_of

from natgauge import procedures


def test_every_procedure_has_a_row_in_make_test() -> None:
    """`make soak` runs seldom: a fault of a procedure has to be found before."""
    assert WITHOUT_ROW.keys() <= set(procedures.procedures())
    rows = [row for row in EVERY_ROW if tier_of(row) != "soak"]
    found = {row.metric.partition(",")[0] for row in rows} - {"single trial"}
    assert found == set(procedures.procedures()) - WITHOUT_ROW.keys()


@pytest.mark.parametrize(
    ("truth", "found", "within"),
    [
        (100.0, 97.9, False),
        (100.0, 98.0, True),
        (100.0, 101.0, True),
        (100.0, 101.1, False),
        ("FAIL", "FAIL", True),
        ("FAIL", "PASS", False),
    ],
)
def test_only_what_is_between_the_margins_is_within(truth: Value, found: Value, within: bool) -> None:  # noqa: FBT001 - a parameter of the test
    look = Look("figure", "frames", lambda _: found, truth, (2.0, 1.0), "as an example")
    finding = table.Finding(Row("row", Device(words="device"), "metric", (look,)), look, truth, found, (2.0, 1.0))
    assert finding.within is within
    line = str(finding)
    assert line.startswith("| device | ")
    assert line.endswith("| yes |" if within else "| **no** |")


def test_rows_have_names_of_their_own() -> None:
    assert len({row.name for row in EVERY_ROW}) == len(EVERY_ROW)
    assert all(dataclasses.is_dataclass(row.device) for row in EVERY_ROW)


def test_what_a_tier_names_is_a_row() -> None:
    names = {row.name for row in EVERY_ROW}
    assert (REPEATED.keys() | COUNTED) <= names
    assert not REPEATED.keys() & COUNTED
    assert {tier_of(row) for row in EVERY_ROW} == {"beside others", "alone", "soak"}

# SPDX-License-Identifier: Apache-2.0
"""The real measurer gives every member: no default of the base class takes its place. None hands on to another one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway

import natgauge
from natgauge import procedures
from natgauge.measurer import Measurer
from natgauge.trial.lab_measurer import LabMeasurer

#: Those that make their answers up, for whom a default of the base class is an answer, too.
MADE_UP = {"_Assumed"}
SOURCES = Path(natgauge.__file__).parent


def members(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_the_real_measurer_gives_every_public_member_of_the_base_class() -> None:
    """Seen: a new member was forgotten, and the default of the base class was the answer."""
    assert members(Measurer) - members(LabMeasurer) == set()


def test_no_measurer_of_natgauge_is_missing_above() -> None:
    derived = re.compile(r"^class (\w+)\(Measurer\)", re.MULTILINE)
    found = {name for path in SOURCES.rglob("*.py") for name in derived.findall(path.read_text(encoding="utf-8"))}
    assert found == MADE_UP | {LabMeasurer.__name__}


def test_each_repetition_is_measured_by_the_measurer_that_its_beginning_returned() -> None:
    procedure = procedures.get("connection-rate")
    settings = settings_of(
        procedure,
        {"repeat": 3, "error": "1%"},
        connections=100_000,
        placement="external",
        order="permutation",
        four_tuples=100_000,
    )
    gateways = [Gateway(establishes=rate) for rate in (100_000.0, 200_000.0, 300_000.0)]
    result = procedure.measure(gateways[0], settings, begins=lambda number: gateways[number - 1])
    assert result.values == pytest.approx([100_000, 200_000, 300_000], rel=0.02)

# SPDX-License-Identifier: Apache-2.0
"""A measurer that hands on to another one hands on everything: no default of the base class takes its place."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.fake_engine import FakeEngine
from tests.unit.test_measurer import SETTINGS, measurer

import natgauge
from natgauge.measurer import Measurer
from natgauge.records.store import Memory
from natgauge.trial.bench import Ready
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.renewal import Renewed

#: Measurers that must give every member.
COMPLETE = (Renewed, LabMeasurer)
#: Those that make their answers up, for whom a default of the base class is an answer, too.
MADE_UP = {"_Assumed"}
SOURCES = Path(natgauge.__file__).parent


def members(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize("kind", COMPLETE)
def test_a_measurer_that_hands_on_gives_every_public_member_of_the_base_class(kind: type[Measurer]) -> None:
    """Seen: a new member was forgotten in one of them, and the default of the base class was the answer."""
    assert members(Measurer) - members(kind) == set()


def test_no_measurer_of_natgauge_is_missing_above() -> None:
    derived = re.compile(r"^class (\w+)\(Measurer\)", re.MULTILINE)
    found = {name for path in SOURCES.rglob("*.py") for name in derived.findall(path.read_text(encoding="utf-8"))}
    assert found == MADE_UP | {kind.__name__ for kind in COMPLETE}


def test_the_ring_of_the_present_bench_reaches_the_procedure() -> None:
    meter = measurer(FakeEngine())
    meter.settings = replace(SETTINGS, ring=512)
    bench = cast("Any", SimpleNamespace())
    labs = Renewed(bench, cast("Any", None), Memory(), lambda _number: bench)
    labs.ready = Ready(cast("Any", None), meter, None, cast("Any", None))
    assert labs.ring == 512

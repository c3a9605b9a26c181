# SPDX-License-Identifier: Apache-2.0
"""A new metric is one file: the example of docs/procedures.md, put into a folder of metrics, is found and measured."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.simulated import Gateway

import natgauge.procedures
from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.procedures import get, procedures

PAGE = Path(__file__).parents[2] / "docs" / "procedures.md"
METRIC, MODULE = "loss-at-rate", "natgauge.procedures.loss_at_rate"


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The metric for as long as the test runs."""
    example = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert example is not None
    (tmp_path / "loss_at_rate.py").write_text(example[1])
    monkeypatch.setattr(natgauge.procedures, "__path__", [*natgauge.procedures.__path__, str(tmp_path)])
    procedures.cache_clear()
    yield
    sys.modules.pop(MODULE, None)
    vars(natgauge.procedures).pop("loss_at_rate", None)
    procedures.cache_clear()


def test_without_its_file_there_is_no_such_metric() -> None:
    with pytest.raises(UsageError, match=f"metric: '{METRIC}' is unknown"):
        get(METRIC)


@pytest.mark.usefixtures("added")
def test_it_is_found_by_its_name_with_its_settings_and_its_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert METRIC in procedures()
    settings = get(METRIC).make_settings(
        {"profile": "quick"}, connections=1000, placement="isolated", order="permutation", four_tuples=1000
    )
    assert (settings.at_rate, settings.trial_seconds) == (10_000.0, 0.5)
    with pytest.raises(UsageError, match=r"^at rate: 0\.0 is not a finite number of frames/s above 0$"):
        get(METRIC).make_settings(
            {"at_rate": 0.0}, connections=1000, placement="isolated", order="permutation", four_tuples=1000
        )
    assert run(["measure", METRIC, "--help"]) == 0
    assert "--at-rate" in capsys.readouterr().out


@pytest.mark.usefixtures("added")
def test_it_measures_with_all_that_every_metric_has() -> None:
    procedure = get(METRIC)
    gateway = Gateway(establishes=2e5, forwards=7.5e5, disturbed=0.3, seed=5)
    result = procedure.measure(
        gateway, procedure.settings(connections=1000, placement="isolated", at_rate=1e6, repeat=4)
    )
    assert result.summary.median == pytest.approx(25, abs=0.01)
    assert (result.metric, result.unit, len(result.measurements)) == (METRIC, "%", 4)
    (phase1_rate,) = {plan.phase1_rate for plan in gateway.plans if plan.phase2}
    assert phase1_rate == pytest.approx(1e5, rel=0.1)
    assert any("0.5 of the connection rate" in note.text for note in result.notes)
    assert any("RFC 2544 section 24 requires 60 s" in note.text for note in result.notes)
    assert any("were INVALID and not counted" in note.text for note in result.notes)

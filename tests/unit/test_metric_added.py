# SPDX-License-Identifier: Apache-2.0
"""A new metric is two files: the example of docs/procedures.md, put into both folders, is measured and shown."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_settings import alone, settings_of
from tests.unit.simulated import Gateway

import natgauge.metrics
import natgauge.procedures
from natgauge.campaigns.cells import points
from natgauge.campaigns.plan import read
from natgauge.cli import run
from natgauge.errors import UsageError
from natgauge.measurements.making import make
from natgauge.metrics import declared, metrics
from natgauge.procedures import get, procedures
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.parameters import Parameters, descriptions
from natgauge.records.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "procedures.md"
METRIC, MODULE = "loss-at-rate", "loss_at_rate"
PLAN = """
name = "added"
gateways = ["nftables-nat44"]

[[measure]]
metric = "loss-at-rate"
at_rate = 20000

[[measure]]
metric = "connection-rate"
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The metric for as long as the test runs."""
    files = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    packages = (natgauge.metrics, natgauge.procedures)
    for package, file in zip(packages, files, strict=True):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / f"{MODULE}.py").write_text(file)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    caches = (metrics, procedures, descriptions)
    for cache in caches:
        cache.cache_clear()
    yield
    for package in packages:
        sys.modules.pop(f"{package.__name__}.{MODULE}", None)
        vars(package).pop(MODULE, None)
    for cache in caches:
        cache.cache_clear()


def measured(forwards: float) -> MeasurementResult:
    gateway = Gateway(establishes=2e5, forwards=forwards, disturbed=0.3, seed=5)
    return alone(METRIC, gateway, at_rate=1e6, repeat=4)


def stored(folder: Path, forwards: float) -> str:
    parameters = Parameters.grouped(
        place={"placement": "isolated", "tester_highest_phase2_rate": forwards}, device={"gateway": "mine"}
    )
    folder.mkdir()
    Store(folder).write_summary(make(measured(forwards), parameters).document())
    return str(folder)


def test_without_its_files_there_is_no_such_metric() -> None:
    with pytest.raises(UsageError, match=f"metric: '{METRIC}' is unknown"):
        get(METRIC)
    assert declared(METRIC).summary == ""


@pytest.mark.usefixtures("added")
def test_it_is_found_by_its_name_with_its_settings_and_its_profile(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert METRIC in procedures()
    decided: Any = {"connections": 1000, "placement": "isolated", "order": "permutation", "four_tuples": 1000}
    settings = settings_of(get(METRIC), {"profile": "quick"}, **decided)
    assert (settings.at_rate, settings.trial_seconds) == (10_000.0, 0.5)
    with golden.raises(UsageError):
        settings_of(get(METRIC), {"at_rate": 0.0}, **decided)
    assert run(["measure", "--help"]) == 0
    golden([line for line in capsys.readouterr().out.splitlines() if METRIC in line])
    assert run(["measure", METRIC, "--help"]) == 0
    assert "--at-rate" in capsys.readouterr().out


@pytest.mark.usefixtures("added")
def test_it_measures_with_all_that_every_metric_has(golden: Golden) -> None:
    result = measured(7.5e5)
    assert result.summary.median == pytest.approx(25, abs=0.01)
    assert (result.metric, result.unit, len(result.measurements)) == (METRIC, "%", 4)
    golden(result.notes)


@pytest.mark.usefixtures("added")
def test_a_campaign_plans_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    assert run(["plan", "check", "--cores", "4", str(tmp_path / "plan.toml")]) == 0
    assert "2 measurements" in capsys.readouterr().out
    (cell,) = points(read(tmp_path / "plan.toml"))
    assert [one.metric for one in cell.measurements] == ["connection-rate", METRIC]


@pytest.mark.usefixtures("added")
def test_text_page_and_table_show_it_with_its_doubts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folder = stored(tmp_path / "first", 7.5e5)
    assert run(["report", folder]) == 0
    said = capsys.readouterr().out
    assert run(["report", folder, "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    golden(said)
    for shown in (said, page):
        assert "frames lost" in shown
        assert "INVALID" in shown
    assert run(["report", folder, "--format", "csv"]) == 0
    assert "lost frames" in capsys.readouterr().out


@pytest.mark.usefixtures("added")
def test_two_runs_of_it_differ_in_the_better_direction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tester's highest rates do not move it, as it declares: results with other ones are compared."""
    first, second = stored(tmp_path / "first", 7.5e5), stored(tmp_path / "second", 9e5)
    run(["diff", first, second, "--margin", "5%", "--json"])
    (line,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (line["metric"], line["outcome"]) == (METRIC, "better")

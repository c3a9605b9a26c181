# SPDX-License-Identifier: Apache-2.0
"""A new metric is two files: the example of docs/procedures.md, put into both folders, is measured and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.added import added
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made
from tests.unit.made_settings import alone, metrics_with, settings_for, stored_alone
from tests.unit.simulated import Gateway

from natgauge.errors import UsageError

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
def metric(tmp_path: Path) -> Iterator[None]:
    """The metric for as long as the test runs."""
    files = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    folders = {name: tmp_path / "added" / name for name in ("metrics", "procedures")}
    for folder, file in zip(folders.values(), files, strict=True):
        folder.mkdir(parents=True)
        (folder / f"{MODULE}.py").write_text(file)
    with added(folders):
        yield


def device(forwards: float) -> Gateway:
    return Gateway(establishes=2e5, forwards=forwards, disturbed=0.3, seed=5)


def stored(folder: Path, forwards: float) -> str:
    around = {"placement": "isolated", "tester_highest_phase2_rate": forwards, "gateway": "mine"}
    return str(kept(folder, stored_alone(METRIC, device(forwards), around=around, at_rate=1e6, repeat=4)))


def test_without_its_files_there_is_no_such_metric_and_no_result_of_it(tmp_path: Path, ran: Ran) -> None:
    with pytest.raises(UsageError, match=f"metric: '{METRIC}' is unknown"):
        settings_for(METRIC)
    folder = kept(tmp_path / "of", made(metric=METRIC, unit="%"))
    assert f"metric '{METRIC}' is unknown" in ran(["report", str(folder)], status=2).err


@pytest.mark.usefixtures("metric")
def test_it_is_found_by_its_name_with_its_settings_and_its_profile(ran: Ran, golden: Golden) -> None:
    assert METRIC in metrics_with("at_rate")
    settings = settings_for(METRIC, profile="quick")
    assert (settings.at_rate, settings.trial_seconds) == (10_000.0, 0.5)
    with golden.raises(UsageError):
        settings_for(METRIC, at_rate=0.0)
    golden([line for line in ran(["measure", "--help"]).out.splitlines() if METRIC in line])
    assert "--at-rate" in ran(["measure", METRIC, "--help"]).out


@pytest.mark.usefixtures("metric")
def test_it_measures_with_all_that_every_metric_has(golden: Golden) -> None:
    result = alone(METRIC, device(7.5e5), at_rate=1e6, repeat=4)
    assert result.summary.median == pytest.approx(25, abs=0.01)
    assert (result.metric, result.unit, len(result.measurements)) == (METRIC, "%", 4)
    golden(result.notes)


@pytest.mark.usefixtures("metric")
def test_a_campaign_plans_it_after_the_rate_that_it_needs(tmp_path: Path, ran: Ran) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    assert "2 measurements" in ran(["plan", "check", "--cores", "4", str(tmp_path / "plan.toml")]).out
    _, *planned = ran(["plan", "show", "--cores", "4", str(tmp_path / "plan.toml")]).out.splitlines()
    assert [line.split()[0] for line in planned] == ["connection-rate", METRIC]


@pytest.mark.usefixtures("metric")
def test_text_page_and_table_show_it_with_its_doubts(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    folder = stored(tmp_path / "first", 7.5e5)
    said = ran(["report", folder]).out
    ran(["report", folder, "--html", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text()
    golden(said, passing=r"(?<=Measured on )[\d-]+")
    for shown in (said, page):
        assert "frames lost" in shown
        assert "INVALID" in shown
    assert "lost frames" in ran(["report", folder, "--format", "csv"]).out


@pytest.mark.usefixtures("metric")
def test_two_runs_of_it_differ_in_the_better_direction(tmp_path: Path, ran: Ran) -> None:
    """The tester's highest rates do not move it, as it declares: results with other ones are compared."""
    first, second = stored(tmp_path / "first", 7.5e5), stored(tmp_path / "second", 9e5)
    (line,) = json.loads(ran(["diff", first, second, "--margin", "5%", "--json"]).out)["comparisons"]
    assert (line["metric"], line["outcome"]) == (METRIC, "better")

# SPDX-License-Identifier: Apache-2.0
"""What holds for every procedure: how it presents itself, and that it knows nothing but a measurer."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.unit.simulated import Gateway

import natgauge
from natgauge.errors import UsageError
from natgauge.procedures import get, procedures
from natgauge.procedures.settings import TrialSettings

FOLDER = Path(natgauge.__file__).parent / "procedures"
#: All of natgauge that a procedure may know.
ALLOWED = ("natgauge.procedures", "natgauge.errors")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("**/*.py")), ids=lambda path: path.name)
def test_procedures_import_nothing_of_labs_devices_campaigns_or_engine(path: Path) -> None:
    imported: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports would hide what is imported"
            imported.append(node.module or "")
    own = [name for name in imported if name.split(".")[0] == "natgauge"]
    assert [name for name in own if not name.startswith(ALLOWED)] == []
    assert not {"subprocess", "socket", "os"} & {name.split(".")[0] for name in imported}


def test_the_metrics_of_this_release_are_there() -> None:
    assert {"connection-rate", "throughput"} <= set(procedures())


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"metric: 'speed' is unknown; choose one of connection-rate, .*throughput"):
        get("speed")


@pytest.mark.parametrize("metric", sorted(procedures()))
def test_each_procedure_tells_what_it_is_and_what_it_takes(metric: str) -> None:
    procedure = get(metric)
    assert procedure.metric == metric
    assert procedure.unit
    assert procedure.source.startswith("RFC ")
    assert issubclass(procedure.settings, TrialSettings)
    parameters = procedure.parameters()
    assert {parameter.name for parameter in parameters if parameter.required} >= {"connections", "placement"}
    assert all(parameter.help for parameter in parameters)


@pytest.mark.parametrize("metric", sorted(procedures()))
def test_each_procedure_measures_a_simulated_gateway(metric: str) -> None:
    procedure = get(metric)
    events: list[object] = []
    result = procedure.run(
        Gateway(), procedure.settings(connections=10_000, placement="isolated", repeat=1), events.append
    )
    assert (result.metric, result.unit) == (metric, procedure.unit)
    assert result.summary.median > 0
    assert events

# SPDX-License-Identifier: Apache-2.0
"""Arrows run one way: which package of natgauge may import which, as docs/architecture.md draws it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import natgauge
from natgauge.procedures import procedures

ROOT = Path(natgauge.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"

#: What each package or module may import of the others; whatever stands in no line is on no floor.
MAY_IMPORT: dict[str, set[str]] = {
    "bounded_output": set(),
    "late_delays": {"figure_text"},
    "churn": {"words"},
    "log_counts": {"figure_text", "words"},
    "power": {"errors"},
    "readings": {"churn", "core_work", "log_counts", "power"},
    "causes": {"figure_text", "late_delays", "words"},
    "core_work": set(),
    "plain_text": set(),
    "port_blocks": set(),
    "errors": {"plain_text"},
    "interruption": {"errors"},
    "durations": set(),
    "embedding": set(),
    "ethernet": {"words"},
    "files": set(),
    "figure_text": set(),
    "interval_text": {"figure_text"},
    "finding": set(),
    "foreign": {"errors"},
    "doubt_words": set(),
    "known_doubts": set(),
    "notes": {"doubt_words", "known_doubts"},
    "outputs": {"errors", "files", "foreign", "system_errors"},
    "other_traffic": {"figure_text", "known_doubts", "notes"},
    "statistics": set(),
    "system_errors": {"errors"},
    "table_memory": set(),
    "tables": {"plain_text"},
    "toml_text": set(),
    "version": set(),
    "words": set(),
    # Made by the build.
    "keywords": set(),
    "paired": {"errors", "figure_text", "notes", "other_traffic", "statistics", "words"},
    "inputs": {"errors", "words"},
    "host": {
        "errors", "files", "finding", "foreign", "inputs", "plain_text", "system_errors", "table_memory", "version",
    },
    "metrics": {"figure_text"},
    "subscriber_profiles": {"errors", "ethernet", "figure_text", "foreign", "inputs", "toml_text", "words"},
    "delays": {"agreement"},
    "trials": {"agreement", "causes", "churn", "delays", "errors", "other_traffic", "readings", "words"},
    "measurer": {"delays", "errors", "paired", "trials"},
    "trial_record": {"causes", "readings", "trials"},
    "verdicts": {
        "agreement", "causes", "figure_text", "readings", "trial_record", "trials", "words",
    },
    "records": {
        "causes", "errors", "figure_text", "files", "foreign", "metrics", "notes", "statistics",
        "system_errors", "words",
    },
    "procedures": {
        "agreement", "causes", "churn", "core_work", "delays", "errors", "ethernet", "figure_text", "inputs",
        "known_doubts", "late_delays", "log_counts", "measurer", "metrics", "notes", "paired", "records",
        "statistics", "subscriber_profiles", "trials", "words",
    },
    "analysis": {
        "errors", "ethernet", "figure_text", "known_doubts", "metrics", "notes", "port_blocks", "records", "statistics",
        "words",
    },
    "doubts": {
        "analysis", "figure_text", "interval_text", "known_doubts", "metrics", "notes", "other_traffic", "procedures",
        "records", "statistics", "trials", "words",
    },
    "published": {
        "analysis", "errors", "figure_text", "foreign", "interval_text", "records", "reports", "statistics",
        "tables", "toml_text", "words",
    },
    "agreement": {"bounded_output", "errors", "host", "late_delays", "system_errors", "words"},
    "labs": {
        "bounded_output", "core_work", "embedding", "errors", "files", "finding", "host", "inputs", "interruption",
        "plain_text", "system_errors", "table_memory", "words",
    },
    "cleaning": {"errors", "files", "host", "interruption", "labs"},
    "guest_building": {"errors", "host", "labs"},
    "new_recipe": {"errors", "foreign", "gateways", "labs", "plain_text", "words"},
    "gateways": {
        "embedding", "errors", "figure_text", "foreign", "host", "inputs", "interruption", "labs", "port_blocks",
        "system_errors", "table_memory", "toml_text", "words",
    },
    "tester": {
        "agreement", "cleaning", "delays", "errors", "ethernet", "figure_text", "files", "finding",
        "foreign", "gateways", "host", "inputs", "labs", "paired", "statistics", "trials", "words",
    },
    "setup": {"errors", "ethernet", "figure_text", "gateways", "host", "inputs", "labs", "port_blocks", "words"},
    "trial": {
        "agreement", "causes", "churn", "core_work", "delays", "errors", "ethernet", "figure_text",
        "files", "foreign", "gateways", "host", "inputs", "labs", "log_counts", "measurer",
        "other_traffic", "paired", "power", "procedures", "readings", "setup", "statistics", "table_memory", "tester",
        "trial_record", "trials", "verdicts", "words",
    },
    "measurements": {
        "analysis", "doubts", "ethernet", "figure_text", "gateways", "host", "inputs", "keywords", "labs",
        "measurer", "metrics", "notes", "procedures", "records", "setup", "statistics", "tester", "trial",
        "words",
    },
    "audits": {
        "embedding", "errors", "figure_text", "gateways", "host", "inputs", "keywords", "labs", "notes", "port_blocks",
        "records", "setup", "words",
    },
    "campaigns": {
        "agreement", "cleaning", "delays", "doubts", "durations", "errors", "figure_text", "foreign",
        "gateways", "host", "inputs", "labs", "measurements", "measurer", "metrics", "notes", "paired",
        "plain_text", "procedures", "readings", "records", "setup", "system_errors", "toml_text",
        "trial", "trials", "version", "words",
    },
    "spread": {
        "campaigns", "cleaning", "errors", "files", "gateways", "host", "inputs", "interruption", "labs",
        "measurements", "procedures", "records", "setup", "system_errors", "trial", "version", "words",
    },
    "comparisons": {
        "agreement", "analysis", "doubts", "durations", "errors", "figure_text", "gateways", "host", "inputs",
        "interval_text", "keywords", "labs", "measurements", "metrics", "notes", "paired", "procedures", "records",
        "setup", "statistics", "tester", "trial", "words",
    },
    "reports": {
        "analysis", "causes", "errors", "ethernet", "figure_text", "foreign", "interval_text", "known_doubts",
        "late_delays", "log_counts", "metrics", "notes", "other_traffic", "outputs", "plain_text", "records",
        "statistics", "table_memory", "tables", "words",
    },
    "stored": {
        "analysis", "doubts", "errors", "foreign", "inputs", "labs", "metrics", "notes", "paired",
        "procedures", "records", "reports", "statistics", "words",
    },
}  # fmt: skip
# Whatever can be done can be asked for on the command line.
MAY_IMPORT["cli"] = set(MAY_IMPORT)
# What starts the process stands on the command line.
MAY_IMPORT["entry"] = {"cli"}

#: The public face hands names on from anywhere; nothing of natgauge may import it.
FACE = ROOT / "__init__.py"


def place_of(path: Path) -> str:
    """The package or module of natgauge that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Full names of all modules of natgauge that a file imports anywhere, also late and for types only."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "natgauge")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports would hide what is imported"
            module = node.module or ""
            if module == "natgauge":
                yield from (f"natgauge.{alias.name}" for alias in node.names)
            elif module.startswith("natgauge."):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)


def test_each_file_imports_only_what_its_package_may() -> None:
    wrong = {}
    for path in set(ROOT.glob("**/*.py")) - {FACE}:
        place = place_of(path)
        allowed = MAY_IMPORT[place] | {place}
        wrong[str(path)] = [name for name in imported(path) if name.split(".")[1] not in allowed]
    assert len(wrong) > 100
    assert {path: names for path, names in wrong.items() if names} == {}


def test_every_package_stands_on_a_floor() -> None:
    assert {place_of(path) for path in ROOT.glob("**/*.py") if path != FACE} | {"keywords"} == set(MAY_IMPORT)


def test_the_floors_have_no_circle() -> None:
    assert list(TopologicalSorter(MAY_IMPORT).static_order())


def module_of(path: Path) -> str:
    """The dotted name that a file is imported by."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_package_has_a_circle_inside() -> None:
    """Late imports and those for types only count: who reads two files of a circle has to read all of them."""
    files = {module_of(path): path for path in ROOT.glob("**/*.py")}
    # A file of a package names its neighbours by the package itself, which is no import of what the package holds.
    graph = {name: {one for one in imported(path) if one in files and one != name} for name, path in files.items()}
    for name, path in files.items():
        graph[name] -= {one for one in graph[name] if path.is_relative_to(files[one].parent) and is_package(files[one])}
    assert list(TopologicalSorter(graph).static_order())


def test_folders_of_a_package_have_no_circle() -> None:
    """As between packages: what kinds of labs share imports no kind, and a search imports nothing that uses it."""
    files = {module_of(path): path for path in ROOT.glob("**/*.py")}
    folders = {path.parent for path in files.values()} - {ROOT}
    for folder in folders:
        graph: dict[str, set[str]] = {}
        for path in folder.glob("**/*.py"):
            own = path.relative_to(folder).parts[0].removesuffix(".py")
            within = [files[name] for name in imported(path) if name in files and files[name].is_relative_to(folder)]
            graph.setdefault(own, set()).update(one.relative_to(folder).parts[0].removesuffix(".py") for one in within)
            graph[own] -= {own, "__init__"}
        assert list(TopologicalSorter(graph).static_order())


def is_package(path: Path) -> bool:
    """Whether the file is that of a package itself."""
    return path.name == "__init__.py"


def test_each_file_of_procedures_is_a_metric_named_like_it() -> None:
    files = {path.stem for path in (ROOT / "procedures").glob("*.py")} - {"__init__"}
    assert files == {metric.replace("-", "_") for metric in procedures()}
    assert [path.name for path in (ROOT / "procedures").iterdir() if (path / "__init__.py").exists()] == ["kit"]


def test_the_kit_imports_no_metric_and_a_metric_no_other_one() -> None:
    """Whatever one metric needs of another is asked for by name, so that any of them may be taken away."""
    metrics = {f"natgauge.procedures.{metric.replace('-', '_')}" for metric in procedures()}
    for path in (ROOT / "procedures").glob("**/*.py"):
        assert metrics.isdisjoint(imported(path)), path


def test_procedures_touch_nothing_of_the_machine() -> None:
    """They are tested in milliseconds against simulated gateways, so they may ask nobody but their measurer."""
    for path in (ROOT / "procedures").glob("**/*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not {"subprocess", "socket", "os"} & {name.split(".")[0] for name in names}, path


def test_the_plan_of_the_traffic_has_one_door() -> None:
    inside = {module_of(path) for path in (ROOT / "setup" / "traffic").glob("*.py")} - {"natgauge.setup.traffic"}
    others = [path for path in ROOT.glob("**/*.py") if path.parent.name != "traffic"]
    assert len(inside) > 1
    assert [(str(path), name) for path in others for name in inside & set(imported(path))] == []


def loaded(script: str) -> set[str]:
    """Modules of natgauge that a script loads in a process of its own."""
    asked = [sys.executable, "-c", f"{script}; import sys; print(*sys.modules)"]
    names = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    return {name for name in names if name.startswith("natgauge.")}


def test_who_measures_loads_nothing_that_runs_the_engine() -> None:
    """At run time the front of a package comes along with each of its modules."""
    names = loaded("from natgauge import procedures; procedures.procedures()")
    assert {"natgauge.measurer", "natgauge.procedures.throughput"} <= names
    assert [name for name in names if name.startswith(("natgauge.host", "natgauge.agreement"))] == []
    types = loaded("import natgauge.agreement.generated")
    assert "natgauge.agreement.generated" in types
    assert [name for name in types if name.startswith(("natgauge.host", "natgauge.agreement.process"))] == []


_STATUS = """
from natgauge.campaigns.status import CampaignStatus, MeasurementStatus
from natgauge.cli.status import lines
one = MeasurementStatus("a", "throughput", 0, 1, 1.0, (), 0, "frames/s", "", "does not come up", (), "")
assert "does not come up" in lines(CampaignStatus("b", None, False, (one,), None, (), 0, 0, None))[-1]"""
_PLAN = f"from natgauge.cli import run; assert run(['plan', 'check', {str(EXAMPLES / 'sessions.toml')!r}]) == 0"


@pytest.mark.parametrize("script", [_PLAN, _STATUS], ids=["plan check", "status"])
def test_plans_and_running_campaigns_are_told_of_without_the_views_of_results(script: str) -> None:
    """Seen: a list of names in a sentence loaded all answers, and with them the conclusions from records."""
    names = loaded(script)
    assert "natgauge.campaigns" in names
    assert [name for name in names if name.startswith("natgauge.reports")] == []

# SPDX-License-Identifier: Apache-2.0
"""Arrows run one way: which package of natgauge may import which, as docs/architecture.md draws it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tests.unit import listed

import natgauge

ROOT = Path(natgauge.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"

#: What each package or module may import of the others; whatever stands in no line is on no floor.
MAY_IMPORT: dict[str, set[str]] = {
    "bounded_output": set(),
    "late_delays": {"figure_text"},
    "readings": {"device_work", "errors", "figure_text", "words"},
    "causes": {"figure_text", "late_delays", "words"},
    "device_work": set(),
    "plain_text": set(),
    "port_blocks": set(),
    "errors": {"plain_text"},
    "interruption": {"errors"},
    "figure_text": set(),
    "embedding": set(),
    "ethernet": {"words"},
    "file_access": {"errors"},
    "interval_text": {"figure_text"},
    "finding": set(),
    "doubt_words": set(),
    "notes": {"doubt_words"},
    "other_traffic": {"figure_text", "notes"},
    "statistics": set(),
    "tables": {"plain_text"},
    "toml_text": set(),
    "version": set(),
    "words": set(),
    # Made by the build.
    "keywords": set(),
    "paired": {"errors", "figure_text", "notes", "other_traffic", "statistics", "words"},
    "inputs": {"errors", "words"},
    "host": {"device_work", "errors", "file_access", "finding", "inputs", "plain_text", "version"},
    "metrics": {"figure_text"},
    "subscriber_profiles": {"errors", "ethernet", "figure_text", "file_access", "inputs", "toml_text", "words"},
    "delays": {"agreement"},
    "trials": {"agreement", "causes", "delays", "errors", "other_traffic", "readings", "words"},
    "measurer": {"delays", "errors", "paired", "trials"},
    "trial_record": {"causes", "readings", "trials"},
    "verdicts": {"agreement", "causes", "figure_text", "readings", "trial_record", "trials", "words"},
    "records": {"causes", "errors", "figure_text", "file_access", "metrics", "notes", "statistics", "words"},
    "procedures": {
        "agreement", "causes", "delays", "device_work", "errors", "ethernet", "figure_text", "inputs", "late_delays",
        "measurer", "metrics", "notes", "paired", "readings", "records", "statistics", "subscriber_profiles", "trials",
        "words",
    },
    "analysis": {
        "errors", "ethernet", "figure_text", "metrics", "notes", "port_blocks", "records", "statistics", "words",
    },
    "doubts": {
        "analysis", "figure_text", "interval_text", "metrics", "notes", "other_traffic", "procedures", "records",
        "statistics", "trials", "words",
    },
    "published": {
        "analysis", "errors", "figure_text", "file_access", "interval_text", "records", "reports", "statistics",
        "tables", "toml_text", "words",
    },
    "agreement": {"bounded_output", "errors", "host", "late_delays", "words"},
    "labs": {
        "bounded_output", "device_work", "embedding", "errors", "ethernet", "file_access", "finding", "host", "inputs",
        "interruption", "plain_text", "words",
    },
    "cleaning": {"errors", "file_access", "host", "interruption", "labs"},
    "guest_building": {"errors", "host", "labs"},
    "new_recipe": {"errors", "file_access", "gateways", "labs", "plain_text", "words"},
    "gateways": {
        "device_work", "embedding", "errors", "figure_text", "file_access", "host", "inputs", "interruption", "labs",
        "port_blocks", "toml_text", "words",
    },
    "tester": {
        "agreement", "cleaning", "delays", "errors", "ethernet", "figure_text", "file_access", "finding", "gateways",
        "host", "inputs", "labs", "paired", "statistics", "trials", "words",
    },
    "setup": {"errors", "ethernet", "figure_text", "gateways", "host", "inputs", "labs", "port_blocks", "words"},
    "trial": {
        "agreement", "causes", "delays", "device_work", "errors", "ethernet", "figure_text", "file_access", "gateways",
        "host", "inputs", "labs", "measurer", "other_traffic", "paired", "procedures", "readings", "setup",
        "statistics", "tester", "trial_record", "trials", "verdicts", "words",
    },
    "measurements": {
        "analysis", "doubts", "ethernet", "figure_text", "gateways", "host", "inputs", "keywords", "labs", "measurer",
        "metrics", "notes", "procedures", "records", "setup", "statistics", "tester", "trial", "words",
    },
    "audits": {
        "embedding", "errors", "figure_text", "gateways", "host", "inputs", "keywords", "labs", "notes", "port_blocks",
        "records", "setup", "words",
    },
    "campaigns": {
        "agreement", "cleaning", "delays", "doubts", "errors", "figure_text", "file_access", "gateways", "host",
        "inputs", "labs", "measurements", "measurer", "metrics", "notes", "paired", "plain_text", "procedures",
        "readings", "records", "setup", "toml_text", "trial", "trials", "version", "words",
    },
    "spread": {
        "campaigns", "cleaning", "errors", "file_access", "gateways", "host", "inputs", "interruption", "labs",
        "measurements", "procedures", "records", "setup", "trial", "version", "words",
    },
    "comparisons": {
        "agreement", "analysis", "doubts", "errors", "figure_text", "gateways", "host", "inputs", "interval_text",
        "keywords", "labs", "measurements", "metrics", "notes", "paired", "procedures", "records", "setup",
        "statistics", "tester", "trial", "words",
    },
    "reports": {
        "analysis", "causes", "device_work", "errors", "ethernet", "figure_text", "file_access", "interval_text",
        "late_delays", "metrics", "notes", "other_traffic", "plain_text", "readings", "records", "statistics", "tables",
        "words",
    },
    "stored": {
        "analysis", "doubts", "errors", "file_access", "inputs", "labs", "metrics", "notes", "paired", "procedures",
        "records", "reports", "statistics", "words",
    },
}  # fmt: skip
# Whatever can be done can be asked for on the command line.
MAY_IMPORT["cli"] = set(MAY_IMPORT)
# What starts the process stands on the command line.
MAY_IMPORT["entry"] = {"cli"}

#: The public face hands names on from anywhere; nothing of natgauge may import it.
FACE = ROOT / "__init__.py"

#: Modules of natgauge that unit tests import beside its face.
DOORS = {"natgauge.cli", "natgauge.errors"}
#: Files of unit tests that import more: what they are about no command shows, or only vaguely.
MOST_INSIDE = 64


def module_of(path: Path) -> str:
    """The dotted name that a file is imported by."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in ROOT.glob("**/*.py")}


def place_of(path: Path) -> str:
    """The package or module of natgauge that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imported(path: Path) -> set[str]:
    """Full names of all that a file imports anywhere, also late and for types only; of a module also its package's."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports would hide what is imported"
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def of_natgauge(path: Path) -> set[str]:
    return {name for name in imported(path) if name.startswith("natgauge.")}


def test_each_file_imports_only_what_its_package_may() -> None:
    wrong = {}
    for path in set(FILES.values()) - {FACE}:
        place = place_of(path)
        allowed = MAY_IMPORT[place] | {place}
        wrong[str(path)] = [name for name in of_natgauge(path) if name.split(".")[1] not in allowed]
    assert len(wrong) > 100
    assert {path: names for path, names in wrong.items() if names} == {}


def test_every_package_stands_on_a_floor_and_the_floors_have_no_circle() -> None:
    assert {place_of(path) for path in FILES.values() if path != FACE} | {"keywords"} == set(MAY_IMPORT)
    assert list(TopologicalSorter(MAY_IMPORT).static_order())


def test_no_package_has_a_circle_inside() -> None:
    """Late imports and those for types only count: who reads two files of a circle has to read all of them."""
    # A file of a package names its neighbours by the package itself, which is no import of what the package holds.
    graph = {
        name: {
            one
            for one in of_natgauge(path) & set(FILES) - {name}
            if FILES[one].name != "__init__.py" or not path.is_relative_to(FILES[one].parent)
        }
        for name, path in FILES.items()
    }
    assert list(TopologicalSorter(graph).static_order())


def test_folders_of_a_package_have_no_circle() -> None:
    """As between packages: what kinds of labs share imports no kind, and a search imports nothing that uses it."""
    for folder in {path.parent for path in FILES.values()} - {ROOT}:
        graph: dict[str, set[str]] = {}
        for path in folder.glob("**/*.py"):
            own = path.relative_to(folder).parts[0].removesuffix(".py")
            within = [FILES[name] for name in imported(path) & set(FILES) if FILES[name].is_relative_to(folder)]
            graph.setdefault(own, set()).update(one.relative_to(folder).parts[0].removesuffix(".py") for one in within)
            graph[own] -= {own, "__init__"}
        assert list(TopologicalSorter(graph).static_order())


def test_procedures_are_a_kit_and_one_file_for_each_metric_which_nothing_else_imports() -> None:
    """Whatever one metric needs of another is asked for by name, so that any of them may be taken away.

    They are tested in milliseconds against simulated gateways, so they may ask nobody but their measurer.
    """
    folder = ROOT / "procedures"
    metrics = {metric.replace("-", "_") for metric in listed.metrics()}
    assert {path.stem for path in folder.glob("*.py")} == metrics | {"__init__"}
    assert [path.name for path in folder.iterdir() if (path / "__init__.py").exists()] == ["kit"]
    for path in folder.glob("**/*.py"):
        assert imported(path).isdisjoint(f"natgauge.procedures.{metric}" for metric in metrics), path
        assert not {"subprocess", "socket", "os"} & {name.split(".")[0] for name in imported(path)}, path


def test_the_plan_of_the_traffic_has_one_door() -> None:
    inside = {module_of(path) for path in (ROOT / "setup" / "traffic").glob("*.py")} - {"natgauge.setup.traffic"}
    others = [path for path in FILES.values() if path.parent.name != "traffic"]
    assert len(inside) > 1
    assert [(str(path), name) for path in others for name in inside & imported(path)] == []


def test_unit_tests_enter_at_the_front_door() -> None:
    """What is behind it can be changed without them. Who writes a new one inside asks first which command shows it."""
    tests = sorted(Path(__file__).parent.glob("test_*.py"))
    inside = [path.name for path in tests if not all(map(_is_door, of_natgauge(path)))]
    assert 0 < len(inside) <= MOST_INSIDE, inside


def _is_door(name: str) -> bool:
    """Whether this is what `import natgauge` offers, the command line, an error, or in one of these."""
    face = {f"natgauge.{one}" for one in natgauge.__all__}
    return name in face | DOORS or name.rpartition(".")[0] in DOORS


def test_no_two_public_classes_share_a_name() -> None:
    """A name stands for one class in the whole package, so that a reader never asks which one is meant."""
    files: dict[str, list[str]] = defaultdict(list)
    for module, path in FILES.items():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(module)
    assert len(files) > 500
    assert {name: modules for name, modules in files.items() if len(modules) > 1} == {}


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
from natgauge.campaigns.state import CampaignStatus, MeasurementStatus
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

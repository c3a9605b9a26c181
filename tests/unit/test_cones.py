# SPDX-License-Identifier: Apache-2.0
"""How many lines each package stands on: whoever changes it may have to read what it reaches by imports.

The table of `test_architecture.py` says which arrows are allowed; it can be extended by a word. A budget has to be
argued for: whoever needs a larger one changes it here, with its reason. Each that writes figures for people reaches the
120 lines of `figure_text`. Only written lines count. Types that the build
makes of the engine's schemas are read there.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest
from tests.unit import listed
from tests.unit.test_architecture import FILES, ROOT, imported

#: Metrics that there were when the budget of procedures was set, and lines that each further one may have.
_METRICS: Final = 18
_OF_A_METRIC: Final = 150
#: The same of kinds of labs.
_KINDS: Final = 4
_OF_A_KIND: Final = 250

#: The most lines that each package may reach by imports, its own ones included, and why it needs them.
BUDGETS: dict[str, tuple[int, str]] = {
    "agreement": (1_460, "types of the engine's requests and results, their delays in words, and the process"),
    "analysis": (7_950, "conclusions from records: two runs, many runs, audits, thresholds, scalability, subscribers"),
    # Carrier-grade NATs are audited with a pool, which labs and recipes know.
    "audits": (24_310, "setups, the records, and the requirements; nothing that measures"),
    "campaigns": (49_400, "runs everything that measures: all metrics, labs and gateways; the record of a measurement"),
    "causes": (1_340, "facts about hops and counters, and the delays of late frames, with figures in words"),
    "cli": (80_350, "the edge: reaches everything"),
    "comparisons": (47_600, "measures several gateways, on the bench"),
    "doubts": (8_710, "conditions on what procedures measured, and on the parameters of records; no metric"),
    "gateways": (7_850, "recipes, their drivers, the contract of labs, the guest's image; errors in printable text"),
    "host": (4_680, "this machine, its undo journal, the reader of files of others; settings of a far machine, too"),
    "inputs": (1_530, "descriptions of inputs; words and errors"),
    "labs": (11_700, "all kinds of labs, three systems of far machines, pools; this machine: ports, undo, namespaces"),
    "measurements": (45_480, "one measurement on its own bench, and its record"),
    "metrics": (950, "a declaration for each metric; figures in words"),
    "paired": (1_820, "arithmetic and places of rounds for costs, comparisons and stored ones; statistics; notes"),
    "procedures": (
        17_390,
        "all 18 metrics, their kit, the loop of campaigns; trials and their figures; void rounds; no lab, gateway",
    ),
    "published": (9_610, "tables and their plans as files, and views of results in their shape"),
    "records": (4_060, "types of outcomes, also of a repetition as procedures return it, and their store"),
    "reports": (20_370, "all views of records, also for papers, of subscribers, over commits; nothing that measures"),
    "statistics": (590, "arithmetic; stands on nothing"),
    "stored": (46_960, "checks what strangers may have edited, by the inputs of all labs and metrics, for the views"),
    "spread": (50_930, "campaigns, and the workers that measure their repetitions"),
    "subscriber_profiles": (2_270, "profiles of subscribers; descriptions of inputs; the reader of files of others"),
    "setup": (17_750, "a lab and its gateway: all kinds of labs, all recipes, and the addresses between them"),
    "tester": (20_030, "the tester alone, on cables and labs"),
    "trial": (40_980, "joins setups, the tester and procedures"),
}


def imports_of(module: str) -> set[str]:
    """Modules of natgauge that a module imports, and all below it that it finds by name."""
    path = FILES[module]
    found = imported(path) & set(FILES) - {"natgauge"}
    if "import_module(" in path.read_text(encoding="utf-8"):
        home = module if path.name == "__init__.py" else module.rpartition(".")[0]
        found |= {name for name in FILES if name.startswith(f"{home}.")}
    return found


#: Written by the build.
_GENERATED: Final = {"natgauge.agreement.generated", "natgauge.keywords"}


@cache
def cone(package: str) -> set[str]:
    """All modules that a package reaches, itself included."""
    seen = {name for name in FILES if f"{name}.".startswith(f"natgauge.{package}.")}
    left = list(seen)
    while left:
        new = imports_of(left.pop()) - seen
        seen |= new
        left += new
    return seen


def test_each_package_has_a_budget() -> None:
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(BUDGETS)


@pytest.mark.parametrize("package", BUDGETS)
def test_a_package_reaches_no_more_lines_than_its_budget(package: str) -> None:
    most, why = BUDGETS[package]
    # Who finds metrics by name reaches them all.
    if "procedures" in {name.split(".")[1] for name in cone(package) if "." in name}:
        most += _OF_A_METRIC * max(0, len(listed.metrics()) - _METRICS)
    if "natgauge.labs.kinds" in cone(package):
        most += _OF_A_KIND * max(0, len(listed.lab_kinds()) - _KINDS)
    reached = {name: len(FILES[name].read_text(encoding="utf-8").splitlines()) for name in cone(package) - _GENERATED}
    rooms = {name.split(".")[1] for name in reached} - {package}
    assert sum(reached.values()) <= most, f"{package} ({why}) reaches {sorted(rooms)}"

# SPDX-License-Identifier: Apache-2.0
"""A new doubt is one entry: the example of docs/doubts.md, in a copy of natgauge, is found wherever doubts are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "doubts.md"
ENTRY = "src/natgauge/doubts/duplicates.py"
#: Files that the two commands of the page write.
GENERATED = {
    "records/doubts.md",
    "records/audit-1.schema.json",
    "records/comparison-5.schema.json",
    "records/summary-7.schema.json",
    "src/natgauge/doubt_words.py",
    "src/natgauge/known_doubts.toml",
}
#: Measures a gateway that forwards some frames twice, and another one that does not, and shows both.
SHOWN = """
import sys
from dataclasses import replace
from pathlib import Path
from natgauge.cli import run
from natgauge.measurements.record import make
from natgauge.procedures import get
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from tests.unit.counted import change_counts, change_trial
from tests.unit.simulated import Gateway

class Twice(Gateway):
    def measure(self, plan):
        outcome = super().measure(plan)
        twice = change_counts(outcome.phase1, duplicates=outcome.phase1.offered_frames // 20)
        return change_trial(outcome, phase1=twice)

folder = Path(sys.argv[1])
for name, kind in (("plain", Gateway), ("twice", Twice)):
    (folder / name).mkdir()
    procedure = get("connection-rate")
    settings = procedure.settings(connections=10_000, placement="isolated", repeat=4)
    found = make(procedure.measure(kind(establishes=2e5, seed=5), settings), Parameters(device={"gateway": "mine"}))
    Store(folder / name).write_summary(found.document())
assert run(["report", str(folder / "twice"), "--html", str(folder / "page.html")]) == 0
run(["report", str(folder / "twice")])
print("then", flush=True)
run(["diff", str(folder / "plain"), str(folder / "twice"), "--margin", "1%", "--json"])
"""


def contents(root: Path) -> dict[str, bytes]:
    """Every file that may be written, by its name below the root."""
    files = [path for name in ("src", "docs", "records") for path in (root / name).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in files if "__pycache__" not in path.parts}


def python(root: Path, *words: str) -> str:
    """Run Python with the copy of natgauge, and return what it prints."""
    path = os.pathsep.join(map(str, (root / "src", root, ROOT)))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what is written by hand and of what is made of it, with the new entry."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("src", "docs", "records", "tools"):
        # With what is compiled of it, which the copies of a file have the dates for.
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("example-reports"))
    (entry,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (root / ENTRY).write_text(entry)
    python(root, "-m", "tools.described")
    python(root, "tools/record_schemas.py", "records")
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def shown(copy: Path) -> Mapping[str, str]:
    """What natgauge shows of a result with the doubt."""
    folder = copy / "results"
    folder.mkdir()
    text, _, diff = python(copy, "-c", SHOWN, str(folder)).partition("then\n")
    return {
        "text": text,
        "diff": diff,
        "page": (folder / "page.html").read_text(),
        "json": (folder / "twice" / "summary.json").read_text(),
    }


def test_nothing_but_the_entry_is_written_by_hand(copy: Path) -> None:
    before, after = contents(ROOT), contents(copy)
    changed = {name for name, content in after.items() if before.get(name) != content}
    assert changed == {ENTRY, *GENERATED}


def test_documentation_and_schemas_have_it(copy: Path) -> None:
    assert "| `duplicates` | trial | `interval` | too low |" in (copy / "records" / "doubts.md").read_text()
    schema = json.loads((copy / "records" / "summary-7.schema.json").read_text())
    assert "duplicates" in json.dumps(schema)


def test_text_page_and_json_show_it(shown: Mapping[str, str]) -> None:
    assert "duplicates" in shown["text"]
    assert "too low by at least 5 %" in shown["text"]
    for place in ("page", "json"):
        assert "frames came back twice in" in shown[place]
    (doubt,) = (one for one in json.loads(shown["json"])["doubts"] if one["word"] == "duplicates")
    assert (doubt["grade"], doubt["value"]) == ("interval", pytest.approx(0.05))


def test_a_difference_names_it_and_its_share_widens_the_ratio(shown: Mapping[str, str]) -> None:
    (line,) = json.loads(shown["diff"])["comparisons"]
    assert "duplicates" in line["second"]["doubts"]
    assert "duplicates" not in line["first"]["doubts"]
    # Both gateways are the same, so the ends would be each other's reciprocal.
    assert line["lower"] * line["upper"] > 1.04

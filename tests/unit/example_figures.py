# SPDX-License-Identifier: Apache-2.0
"""Figures that the views print of example results: `python -m tests.unit.example_figures` writes them again.

`example_results/` has the documents of one measurement, comparison or audit of each kind, measured in network
namespaces. `example_results.json` has the figures that text, table, page and `diff` print of them. A change of the code
that means to leave figures as they are leaves this file as it is. After an intended change of figures write the file
again, and read its difference.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from natgauge.cli import run
from natgauge.records.store import AUDIT, COMPARISON, SUMMARY

HERE: Final = Path(__file__).parent
EXAMPLES: Final = HERE / "example_results"
FIGURES: Final = HERE / "example_results.json"
#: Runs that `diff` compares.
PAIRS: Final = (
    ("throughput", "throughput-again"),
    ("comparison", "comparison-again"),
    ("campaign-linux-ipv4-throughput-128", "campaign-map-t-br-throughput-128"),
    ("connection-rate", "connection-rate-tcp"),
)
#: The campaign's results in one table.
CAMPAIGN: Final = "campaign"
#: A number as views print it; digits within a word or a date are none.
_NUMBER: Final = re.compile(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?![\w-])")
_CELL: Final = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)
_FILES: Final = {"natgauge-summary": SUMMARY, "natgauge-comparison": COMPARISON, "natgauge-audit": AUDIT}


def names() -> list[str]:
    """Names of all examples."""
    return sorted(path.stem for path in EXAMPLES.glob("*.json"))


def put(name: str, folder: Path) -> Path:
    """Make the results folder of an example below `folder`."""
    text = (EXAMPLES / f"{name}.json").read_text()
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    (own / _FILES[json.loads(text)["schema"].rpartition("-")[0]]).write_text(text)
    return own


def printed(*words: str | Path, statuses: tuple[int, ...] = (0,)) -> str:
    """Standard output of a command that must end with one of these statuses."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run([str(word) for word in words]) in statuses
    return out.getvalue()


def numbers(text: str) -> list[str]:
    """All numbers of a text, in order."""
    return [found.replace(",", "") for found in _NUMBER.findall(text)]


def of_views(*folders: Path) -> dict[str, Any]:
    """Figures that text, table and page print of results."""
    page = folders[0].parent / "page.html"
    printed("report", *folders, "--html", page)
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in _CELL.findall(page.read_text())]
    rows = list(csv.reader(io.StringIO(printed("report", *folders, "--format", "csv"))))
    shown = [[row[0], *map(figure, row[1:])] for row in rows]
    # A table of results has a column for each figure, in any order. Other tables have a line for each.
    of_results = (folders[0] / SUMMARY).exists()
    columns = {column[0]: list(column[1:]) for column in zip(*shown, strict=True) if any(column[1:])}
    return {
        "text": by_line(printed("report", *folders)),
        "table": columns if of_results else [", ".join(row) for row in shown],
        "page": " ".join(number for cell in cells for number in numbers(cell)),
    }


def figure(cell: str) -> str:
    """A cell that is a number or a word; of sentences only the numbers."""
    return " ".join(numbers(cell)) if cell.count(" ") > 1 else cell


def by_line(text: str) -> list[str]:
    """The numbers of each line that has some."""
    return [" ".join(found) for line in text.splitlines() if (found := numbers(line))]


def of_diff(first: Path, second: Path) -> dict[str, Any]:
    """Figures and conclusions that `diff` prints of two runs."""
    words = ("diff", first, second, "--margin", "5%", "--about", "device", "--about", "traffic")
    document = json.loads(printed(*words, "--json", statuses=(0, 1, 5)))
    kept = ("outcome", "reason", "value", "lower", "upper", "coverage", "control_margin", "what", "before", "after")
    lines = [*document["comparisons"], *document["ratios"], *document["audits"]]
    return {
        "text": by_line(printed(*words, statuses=(0, 1, 5))),
        "exit_status": document["exit_status"],
        "lines": [{name: line[name] for name in kept if name in line} for line in lines],
    }


def figures(folder: Path) -> dict[str, Any]:
    """All figures of all examples."""
    folders = {name: put(name, folder) for name in names()}
    found = {name: of_views(own) for name, own in folders.items()}
    found[CAMPAIGN] = of_views(*(own for name, own in folders.items() if name.startswith(CAMPAIGN)))
    for first, second in PAIRS:
        found[f"{first} and {second}"] = of_diff(folders[first], folders[second])
    return found


def main() -> None:
    """Write the figures of today's code."""
    with tempfile.TemporaryDirectory() as folder:
        FIGURES.write_text(json.dumps(figures(Path(folder)), indent=1) + "\n")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Make the example reports of the documentation: `python -m tools.example_reports [demo] [laptop] [sessions]`.

Without a name, and without root: write the text and the picture of the demo, and its sentence in docs/reports.md, once
more from its stored results, in today's words. With names, as root, on a quiet machine: measure, then write everything
of these examples (demo 2 minutes, laptop 25, sessions 15). Without CHROMIUM the picture of sessions is left.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tools.terminal_picture import picture

from natgauge.cli.demo import shown
from natgauge.errors import NatgaugeError
from natgauge.records.measurement import Result
from natgauge.records.store import SUMMARY
from natgauge.reports.answers import one

ROOT: Final = Path(__file__).parents[1]
EXAMPLES: Final = ROOT / "docs" / "example-reports"
#: The page that shows the picture of the demo.
SHOWN: Final = ROOT / "docs" / "reports.md"
#: Results of the demo by the folder of their evidence.
STORED: Final = EXAMPLES / "demo.json"
_NATGAUGE: Final = Path(sys.executable).with_name("natgauge")
#: Campaigns, and options of their tables as text.
_CAMPAIGNS: Final[Mapping[str, tuple[str, ...]]] = {
    "laptop": ("--format", "draft", "--against", "connections"),
    "sessions": ("--format", "draft", "--against", "connections"),
}
_DESCRIPTION: Final = re.compile(r"What make demo prints: [^\]]*")


def stored() -> dict[str, Result]:
    """Return the results of the demo."""
    documents = json.loads(STORED.read_text())
    return {folder: Result.from_document(document) for folder, document in documents.items()}


def demo_text(found: Mapping[str, Result]) -> str:
    """Return what the demo prints of its results where the output is a file."""
    return "".join(f"\n{part}\n" for part in shown(found))


def described(found: Mapping[str, Result]) -> str:
    """Return the description of the demo's picture: the answers up to their ranges."""
    (gateway,) = {result.gateway for result in found.values()}
    does = [one(result).text.partition(":")[0].removeprefix(f"{gateway} ") for result in found.values()]
    return f"What make demo prints: {gateway} {' and '.join(does)}"


def write_demo() -> None:
    """Write the demo's text, its picture, and the picture's description, from the stored results."""
    found = stored()
    (EXAMPLES / "demo.txt").write_text(demo_text(found))
    (EXAMPLES / "demo.svg").write_text(picture(demo_text(found), "make demo"))
    SHOWN.write_text(_DESCRIPTION.sub(described(found), SHOWN.read_text()))


def measure_demo() -> None:
    """Run the demo, store its results, and write its page."""
    with tempfile.TemporaryDirectory(prefix="natgauge-example-") as scratch:
        _run("demo", "--results", "results", folder=scratch)
        folders = sorted(Path(scratch, "results").iterdir())
        documents: dict[str, Any] = {
            f"results/{each.name}": json.loads((each / SUMMARY).read_text()) for each in folders
        }
        STORED.write_text(json.dumps(documents, indent=1) + "\n")
        _run("report", *map(str, folders), "--html", str(EXAMPLES / "demo.html"), folder=scratch)
    write_demo()


def measure_campaign(name: str) -> None:
    """Run a plan of the examples, and write its page and its tables."""
    with tempfile.TemporaryDirectory(prefix="natgauge-example-") as scratch:
        folder = str(Path(scratch, name))
        _run("run", str(ROOT / "examples" / f"{name}.toml"), "--folder", folder, folder=scratch)
        _run("report", folder, "--html", str(EXAMPLES / f"{name}.html"), folder=scratch)
        (EXAMPLES / f"{name}.txt").write_text(_run("report", folder, *_CAMPAIGNS[name], folder=scratch))


def _run(*words: str, folder: str) -> str:
    """What natgauge prints in a folder.

    Raises:
        NatgaugeError: it fails.
    """
    run = subprocess.run([str(_NATGAUGE), *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        raise NatgaugeError(f"natgauge {words[0]} ended with status {run.returncode}")
    return run.stdout


def main(names: list[str]) -> int:
    """Make the examples with these names, or rewrite the demo; 1 when a name is unknown or natgauge fails."""
    unknown = [name for name in names if name not in ("demo", *_CAMPAIGNS)]
    if unknown:
        print(f"no example is named {unknown[0]!r}; there are demo, {', '.join(_CAMPAIGNS)}", file=sys.stderr)
        return 1
    try:
        for name in names:
            measure_demo() if name == "demo" else measure_campaign(name)
        if not names:
            write_demo()
    except NatgaugeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

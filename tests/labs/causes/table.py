# SPDX-License-Identifier: Apache-2.0
"""Measures gateways with planted faults, and compares what natgauge says with what was planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.labs.causes.gateways import Planted, arguments

from natgauge.causes.cause import kinds

#: How often a gateway is measured again whose trials the host disturbed.
TRIES = 2
Outcome = Literal["right", "not known", "wrong"]


@dataclass(frozen=True)
class Finding:
    """What natgauge says of a gateway.

    Attributes:
        planted: the gateway.
        headline: line that a user reads first: the bottleneck, or the error.
        explained: kind of the cause by `explain`, of which the text has the words.
        recorded: kind of the cause in the JSON of the measurement; empty = there is none, as it failed.
        status: exit status of the measurement.
    """

    planted: Planted
    headline: str
    explained: str
    recorded: str
    status: int

    @property
    def outcome(self) -> Outcome:
        """Whether every form names the planted cause; "not known" where no form names another one."""
        kind = self.planted.kind
        words = {name: row.words for name, row in kinds().items() if row.words and row.words in self.headline}
        said = {self.explained, *([self.recorded] if self.recorded else []), *words} - {"", "not known"}
        if said == {kind} and self.explained == kind and kind in words:
            return "right"
        if said:
            return "wrong"
        return "right" if kind == "not known" else "not known"

    def __str__(self) -> str:
        cells = (
            self.planted.name,
            self.planted.kind,
            self.headline,
            self.explained,
            self.recorded or "-",
            self.outcome,
        )
        return f"| {' | '.join(cells)} |"


def measured(planted: Planted) -> Finding:
    """Measure a gateway, and explain it; again where the host disturbed it."""
    finding = _measured(planted)
    for _ in range(TRIES - 1):
        if finding.outcome == "right":
            break
        finding = _measured(planted)
    return finding


def _measured(planted: Planted) -> Finding:
    with tempfile.TemporaryDirectory(prefix="natgauge-causes-") as scratch:
        folder = Path(scratch)
        recipe = planted.make(folder, planted.name)
        results = folder / "results"
        run = _natgauge(*arguments(planted, recipe, results))
        lines = [*run.stdout.splitlines(), *run.stderr.splitlines()]
        headline = next((line.strip() for line in lines if "Bottleneck:" in line or line.startswith("natgauge:")), "")
        stored = next(results.glob("*"), None) if results.is_dir() else None
        if stored is None:
            return Finding(planted, headline or "nothing was measured", "", "", run.returncode)
        explained = _natgauge("explain", str(stored), "--json")
        document = json.loads(explained.stdout) if not explained.returncode else {}
        summary = stored / "summary.json"
        recorded = json.loads(summary.read_text()).get("cause") if summary.is_file() else None
        cause = document.get("cause")
        return Finding(planted, headline, _kind(cause), _kind(recorded), run.returncode)


def _kind(cause: dict[str, str] | None) -> str:
    return "" if cause is None else cause["kind"]


def _natgauge(*words: str) -> subprocess.CompletedProcess[str]:
    wide = {**os.environ, "COLUMNS": "1000"}
    command = [str(Path(sys.executable).with_name("natgauge")), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, env=wide)


def table(gateways: Iterable[Planted]) -> Iterator[Finding]:
    """Yield what natgauge says of each gateway."""
    yield from map(measured, gateways)


def markdown(findings: Iterable[Finding]) -> str:
    """The whole table."""
    head = ["| gateway | planted | headline | explain | JSON | |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *map(str, findings)])

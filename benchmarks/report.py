# SPDX-License-Identifier: Apache-2.0
"""From what was measured to a Markdown page and a JSON file of the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import command
from benchmarks.compare import Row, ratios
from benchmarks.required import Figure


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3f}"


def _spread(values: Sequence[float]) -> str:
    return f"{_number(min(values))} to {_number(max(values))}"


def _peers_table(rows: Sequence[Row]) -> list[str]:
    times = ratios(rows)
    lines = ["| Place | Generator | Delivered, median | Spread | natgauge is | Note |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        if row.median is None:
            lines.append(f"| {row.place} | {row.name} | not measured | | | {row.problem} |")
            continue
        ratio = times.get((row.place, row.name))
        said = f"{ratio:.1f} times as fast" if ratio else ""
        lines.append(
            f"| {row.place} | {row.name} | {_number(row.median)} | {_spread(row.values)} | {said} | {row.note} |"
        )
    return lines


def _figures_table(figures: Sequence[Figure]) -> list[str]:
    lines = ["| Figure | Required | Median | Spread | Reached | Remark |", "|---|--:|--:|--:|---|---|"]
    return lines + [
        f"| {figure.name} | {figure.bound} {_number(figure.required)} {figure.unit} | {_number(figure.median)} | "
        f"{_spread(figure.values)} | {'yes' if figure.met else '**no**'} | {figure.remark} |"
        for figure in figures
    ]


def markdown(
    machine: Mapping[str, Any], settings: Mapping[str, Any], rows: Sequence[Row], figures: Sequence[Figure]
) -> str:
    """The page: machine, required figures, comparison."""
    parts = command.heading("Benchmark", machine)
    parts += ["Settings: " + ", ".join(f"{name} {value}" for name, value in settings.items()) + ".", ""]
    if figures:
        parts += ["## What the tester has to reach, on one core", "", *_figures_table(figures), ""]
    if rows:
        parts += ["## Beside other generators, one core each, same veth, same run", "", *_peers_table(rows), ""]
    return "\n".join(parts)


def document(
    machine: Mapping[str, Any], settings: Mapping[str, Any], rows: Sequence[Row], figures: Sequence[Figure]
) -> dict[str, Any]:
    """The same as one JSON object, with every repetition's value."""
    times = ratios(rows)
    return {
        "version": 1,
        "machine": dict(machine),
        "settings": dict(settings),
        "required": [
            {
                "name": figure.name,
                "unit": figure.unit,
                "bound": figure.bound,
                "required": figure.required,
                "median": figure.median,
                "values": list(figure.values),
                "reached": figure.met,
                "remark": figure.remark,
            }
            for figure in figures
        ],
        "peers": [
            {
                "place": row.place,
                "name": row.name,
                "frames_per_second": row.median,
                "values": row.values,
                "natgauge_is_times": times.get((row.place, row.name)),
                "note": row.note,
                "problem": row.problem or None,
            }
            for row in rows
        ],
    }

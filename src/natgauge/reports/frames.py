# SPDX-License-Identifier: Apache-2.0
"""Results folders as data frames, for notebooks, and as Parquet files: trials, measurements, series, estimates.

Needs polars, which `pip install 'natgauge[frames]'` brings along.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from natgauge import file_access
from natgauge.errors import UsageError
from natgauge.reports.collected import Stored, StoredComparison, StoredResults, each_trial
from natgauge.reports.optional_deps import need
from natgauge.words import WRONG_FRAMES, Verdict

if TYPE_CHECKING:
    import polars as pl

#: Column -> kind; rates in 1/s, times in s, counts of frames.
_CELL: Final = {"folder": str, "metric": str, "gateway": str}
_PHASES: Final = {
    "phase1": ("phase1",),
    "up": ("phase2", "initiator"),
    "down": ("phase2", "responder"),
}
_COUNTS: Final = (
    "intended_frames", "offered_frames", "received_frames", "duplicates", "reordered", "late", *WRONG_FRAMES,
)  # fmt: skip
TRIAL_COLUMNS: Final[Mapping[str, type]] = {
    **_CELL,
    "trial": int,
    "began": float,
    "seconds": float,
    "verdict": str,
    "reason": str,
    "disturbed": bool,
    "failed_phase": int,
    "connections": int,
    "device_count_before": int,
    "device_count_after": int,
    **{f"{phase}_intended_rate": float for phase in _PHASES},
    **{f"{phase}_{count}": int for phase in _PHASES for count in _COUNTS},
    "request": str,
    "result": str,
}
MEASUREMENT_COLUMNS: Final[Mapping[str, type]] = {
    **_CELL,
    "unit": str,
    "placement": str,
    "device_cores": int,
    "connections": int,
    "frame_size": int,
    "repetition": int,
    "value": float,
    "upper": float,
    "error": float,
    "limited_by": str,
    "doubts": str,
    **{f"trials_{verdict}": int for verdict in Verdict},
    "figures": str,
    "parameters": str,
}
SERIES_COLUMNS: Final[Mapping[str, type]] = {
    **_CELL,
    "repetition": int,
    "row": int,
    "name": str,
    "number": float,
    "text": str,
}
#: Of comparisons; costs in ns a frame, times in s.
ESTIMATE_COLUMNS: Final[Mapping[str, type]] = {
    "folder": str,
    "by": str,
    "baseline": str,
    "gateway": str,
    "role": str,
    "recipe": str,
    "quantity": str,
    "ratio": float,
    "low": float,
    "high": float,
    "half_width": float,
    "level": float,
    "verdict": str,
    "above": bool,
    "nanoseconds": float,
    "ratio_to_forwarding": float,
    "blocks": int,
    "rate": float,
    "rounds": int,
    "seconds": float,
    "notes": str,
    "parameters": str,
}

#: The largest whole number of a column.
_MOST: Final = 2**63 - 1
#: Columns that contain JSON.
_WHOLE: Final = frozenset({"request", "result"})
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Frames:
    """The data frames of results folders; None where a value was not measured.

    Attributes:
        trials: one row per trial, INVALID trials included; `request` and `result` are the whole JSON.
        series: one row per value of a series (loss at each load ...), a number or a text.
        estimates: one row per ratio of a comparison, including ratios of the A/A control; `notes` and `parameters` (of
            the gateway) are JSON.
    """

    trials: pl.DataFrame
    measurements: pl.DataFrame
    series: pl.DataFrame
    estimates: pl.DataFrame


def frames_of(collected: StoredResults) -> Frames:
    """Make data frames of stored results."""
    stored = collected.stored
    return Frames(
        trials=_frame(TRIAL_COLUMNS, map(_trials, stored)),
        measurements=_frame(MEASUREMENT_COLUMNS, map(_measurements, stored)),
        series=_frame(SERIES_COLUMNS, map(_series, stored)),
        estimates=_frame(ESTIMATE_COLUMNS, map(_estimates, collected.comparisons)),
    )


def write(collected: StoredResults, folder: Path) -> list[Path]:
    """Write each frame as a Parquet file into a folder, which is made if missing; return the files."""
    frames = frames_of(collected)
    contents = ((f"{item.name}.parquet", _parquet(getattr(frames, item.name))) for item in fields(frames))
    return file_access.write_into(folder, contents, what="report", remedy="name a folder of yours")


def _parquet(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _frame(columns: Mapping[str, type], every: Iterable[Iterable[_Row]]) -> pl.DataFrame:
    polars, rows = need("polars", "frames", "a data frame"), [row for own in every for row in own]
    kinds = {str: polars.String, int: polars.Int64, float: polars.Float64, bool: polars.Boolean}
    frame: pl.DataFrame = polars.DataFrame(
        {
            name: polars.Series(name, [_as(kind, row.get(name)) for row in rows], dtype=kinds[kind])
            for name, kind in columns.items()
        }
    )
    return frame


def _as(kind: type, value: object) -> object:
    cell = None if value is None else kind(value)
    if isinstance(cell, int) and not -_MOST <= cell <= _MOST:
        raise UsageError(
            f"results: {cell} has more than 64 bits, which no data frame holds: the folder is damaged; leave it out"
        )
    return cell


def _cell(stored: Stored) -> _Row:
    return {"folder": str(stored.folder), "metric": stored.result.metric, "gateway": stored.result.gateway}


def _trials(stored: Stored) -> Iterator[_Row]:
    return each_trial(stored, lambda trial: {**_cell(stored), **_trial(trial)})


def _trial(trial: Mapping[str, Any]) -> _Row:
    row = {name: _as(kind, trial[name]) for name, kind in TRIAL_COLUMNS.items() if name in trial and name not in _WHOLE}
    result = trial.get("result") or {}
    row |= {
        "connections": (trial.get("plan") or {}).get("connections"),
        "request": _text(trial.get("request")),
        "result": _text(result or None),
    }
    for name, path in _PHASES.items():
        counts = result
        for step in path:
            counts = counts.get(step) or {}
        for count in ("intended_rate", *_COUNTS):
            column = f"{name}_{count}"
            row[column] = _as(TRIAL_COLUMNS[column], counts.get(count))
    return row


def _measurements(stored: Stored) -> Iterator[_Row]:
    result = stored.result
    numbers = {name: result.number(name) for name in ("connections", "frame_size", "device_cores")}
    common = {
        **_cell(stored),
        **{name: None if value is None else int(value) for name, value in numbers.items()},
        "unit": result.unit,
        "placement": result.placement,
        "doubts": ", ".join(doubt.word for doubt in result.doubts),
        "parameters": _text(result.parameters.model_dump(mode="json")),
    }
    for number, repetition in enumerate(result.repetitions, start=1):
        yield {
            **common,
            "repetition": number,
            **{name: getattr(repetition, name) for name in ("value", "upper", "error", "limited_by")},
            **{f"trials_{verdict}": count for verdict, count in repetition.trials.items()},
            "figures": _text(repetition.figures),
        }


def _series(stored: Stored) -> Iterator[_Row]:
    for number, repetition in enumerate(stored.result.repetitions, start=1):
        for at, row in enumerate(repetition.series, start=1):
            for name, value in row.items():
                kind = "text" if isinstance(value, str) else "number"
                yield {**_cell(stored), "repetition": number, "row": at, "name": name, kind: value}


def _estimates(comparison: StoredComparison) -> Iterator[_Row]:
    record = comparison.record
    common = {
        "folder": str(comparison.folder),
        "by": record.by,
        "baseline": record.baseline.label,
        "rounds": record.rounds,
        "seconds": record.seconds,
        "notes": _text([asdict(note) for note in record.notes]),
    }
    for estimate in (*record.estimates, *record.control):
        gateway = record.gateway(estimate.gateway)
        yield {
            **common,
            **estimate.model_dump(exclude={"text", "limits"}),
            "role": gateway.role,
            "recipe": gateway.parameters.get("gateway"),
            "rate": gateway.rates.get(estimate.quantity),
            "parameters": _text(gateway.parameters.model_dump(mode="json")),
        }


def _text(value: object) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))

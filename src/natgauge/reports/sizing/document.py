# SPDX-License-Identifier: Apache-2.0
"""How many subscribers gateways carry, as a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import Sizing, Subscribers, Use, addresses_for, sizes_in_words
from natgauge.records.measurement import Result
from natgauge.reports.sizing.chosen import reason_of, unused_of
from natgauge.reports.sizing.facts import most_share
from natgauge.reports.sizing.question import frames_of_all
from natgauge.reports.sizing.verdict import answer_lines
from natgauge.statistics.interval import finite


def document(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = ()) -> dict[str, Any]:
    """Return the answers as JSON objects; an end, and a number of cores, that is not known is null."""
    frames = frames_of_all(found)
    wire = frames and frames.wire
    return {
        "schema": "natgauge-size-1",
        "subscribers": asked.number,
        "each": {
            "connections": asked.connections,
            "new_per_second": asked.new,
            "megabits": asked.megabits,
            "mean_frame": asked.mean_frame,
            "device_timeout": asked.kept,
        },
        "outside_addresses": asked.outside_addresses,
        "all": {
            "megabits": None if asked.megabits is None else asked.number * asked.megabits,
            "wire_megabits": wire and asked.number * wire / 1e6,
            "frames_per_second": frames and asked.number * frames.each,
            "mean_frame": frames and frames.octets,
        },
        "gateways": [_gateway(sizing) for sizing in found],
        "not_used": [
            {
                "metric": result.metric,
                "gateway": result.gateway,
                "result": result.results,
                "reason": reason_of(result, why),
            }
            for result, why in unused_of(given, asked)
        ],
    }


def _gateway(sizing: Sizing) -> dict[str, Any]:
    first, asked = sizing.results[0], sizing.asked
    return {
        "gateway": first.gateway,
        "placement": first.placement,
        "device_cores": first.device_cores or None,
        "logging": first.parameter("logging"),
        "log_tolerance": first.parameter("log_tolerance"),
        "answer": sizing.fits(asked.number),
        "text": " ".join(answer_lines([sizing])),
        "functional": any(result.functional for result in sizing.results),
        "missing": list(sizing.missing),
        "no_limit": list(sizing.no_limit),
        "not_looked_at": list(sizing.not_looked_at),
        "cores": _cores(sizing, None),
        "cores_both_ways_busy": _cores(sizing, "both ways"),
        "cores_one_way_idle": _cores(sizing, "one way"),
        "tester_share": most_share(sizing),
        "least_outside_addresses": addresses_for(sizing),
        "device_timeout": asked.kept,
        "entries_each": asked.entries,
        "least_entries": asked.least_entries,
        "with_fewer_connections": list(sizing.with_fewer),
        "table_limit": sizing.table_limit,
        "limits": [
            {
                "ended": limit.ended,
                "unit": limit.unit,
                "each": limit.each,
                "all": limit.of_all(asked.number),
                "measured": _ends(limit.measured),
                "subscribers": _ends(limit.subscribers),
                "both_ways_busy": _ends(limit.both_ways) if limit.busier_share else None,
                "one_way_idle": _ends(limit.one_way) if limit.busier_share else None,
                "answer": limit.fits(asked.number),
                "metric": limit.result.metric if limit.result else None,
                "result": limit.result.results if limit.result else None,
                "table_connections": limit.result and limit.result.number("connections"),
                "frames": sizes_in_words(limit.result) if limit.result and limit.frame_octets else None,
            }
            for limit in sizing.limits
        ],
        "doubts": [
            {"metric": result.metric, "word": doubt.word, "grade": doubt.grade, "text": doubt.text}
            for result in sizing.results
            for doubt in result.doubts
        ],
    }


def _cores(sizing: Sizing, use: Use | None) -> list[float | None] | None:
    cores = sizing.cores_for(sizing.asked.number, use)
    return None if cores is None else _ends(cores)


def _ends(span: Span) -> list[float | None]:
    return [span.lower, finite(span.upper)]

# SPDX-License-Identifier: Apache-2.0
"""A campaign's folder made up: rates over cores and connections, a curve of losses, delays, trials of every kind."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.unit.made_results import keep, made

from natgauge.records.measurement import Result
from natgauge.records.store import Store

TESTER = {"tester_highest_phase1_rate": 6e6, "tester_highest_phase2_rate": 4e6}
#: When trials began: no two at the same moment.
_MOMENTS = itertools.count(1)
#: Why trials that did not pass ended so.
_REASONS = {"FAIL": "phase 1: 7 of 100 frames lost", "INVALID": "a sender stood still", "COLLAPSED": "it is gone"}
DOUBT = [{"word": "disturbed trials", "text": "1 of 4 trials were disturbed <b>&"}]


def spread(middle: float, number: int = 5) -> list[float]:
    """Repetitions around a value, always the same."""
    chance = random.Random(middle)  # noqa: S311 - made up
    return [middle * chance.uniform(0.97, 1.03) for _ in range(number)]


def rate(gateway: str, middle: float, cores: int, connections: int, metric: str = "connection-rate") -> Result:
    kind = "routing" if gateway.startswith("linux") else "nat44"
    values = spread(middle)
    document = made(
        values,
        median=sorted(values)[2],
        metric=metric,
        unit="connections/s" if metric == "connection-rate" else "frames/s",
        doubts=DOUBT,
        parameters={
            "command": f"natgauge measure connection-rate --gateway {gateway} --empty-command 'x > y'",
            "gateway": gateway, "kind": kind, "device_cores": cores, "sender_cores": 1, "placement": "isolated",
            "connections": connections, "directions": "both", "table_size": 2 * connections, "hash_size": connections,
            "seed": 7, "repeat": 5, "error": "1%", "most_seconds": 600.0, "source_ports": "1024-65535",
            "destination_ports": "1-2", "grace_seconds": 0.3, **TESTER,
        },
    ).document()  # fmt: skip
    for one in document["repetitions"]:
        upper = one["value"] * 1.01
        one |= {"upper": upper, "error": upper - one["value"]}
    document["error"] = max(one["error"] for one in document["repetitions"])
    return Result.from_document(document)


def losses() -> Result:
    curves = [
        [
            {
                "offered_percent": load * 10.0,
                "offered_rate": load * 1e5,
                "lost_percent": max(0.0, (load - 6 + each / 5) * 11),
            }
            for load in range(10, 3, -1)
        ]
        for each in range(3)
    ]
    values = [float(curve[0]["lost_percent"]) for curve in curves]
    parameters = {"placement": "isolated", "directions": "both", **TESTER}
    return made(
        values,
        median=sorted(values)[1],
        metric="frame-loss",
        unit="%",
        series=curves,
        figures={"highest_rate_without_loss": [6e5, 5e5, 5e5]},
        parameters=parameters,
    )


def latency() -> Result:
    series = [[{"load_percent": 100.0, "typical_latency_us": 12.0}]] * 3
    text = "the tester's own part, its ports joined without a device, is 3.21 us; it is not subtracted"
    note = {"word": "own delay", "text": text, "value": 3.21}
    return made([12.0, 12.4, 11.8], median=12.0, metric="latency", unit="us", series=series, notes=[note], doubts=DOUBT)


def trial(verdict: str = "PASS", *, delays: Sequence[tuple[int, int, int]] = (), **changed: Any) -> dict[str, Any]:
    """One trial as it is stored, without what no report reads."""
    counts = dict.fromkeys(("intended_frames", "offered_frames", "received_frames"), 100)
    stream: dict[str, Any] = {"intended_rate": 5e4, **counts, "duplicates": 0, "reordered": 0, "late": 0, "damaged": 0}
    if delays:
        stream["delay"] = {"frames": sum(one[2] for one in delays), "negative": 0, "buckets": delays}
    return {
        "began": float(next(_MOMENTS)), "seconds": 0.5, "verdict": verdict, "reason": _REASONS.get(verdict, ""),
        "disturbed": False, "failed_phase": 1 if verdict == "FAIL" else None,
        "device_count_before": 0, "device_count_after": 100,
        "plan": {"connections": 100, "phase1_rate": 1e5, "phase2": {"initiator_rate": 5e4, "responder_rate": 5e4}},
        "request": {"version": 1}, "result": {"phase1": stream, "phase2": {"initiator": stream, "responder": stream}},
        **changed,
    }  # fmt: skip


def bell(middle: int, seed: int) -> list[tuple[int, int, int]]:
    """Buckets of delays in ns with a long tail."""
    chance = random.Random(seed)  # noqa: S311 - made up
    found: dict[int, int] = {}
    for _ in range(20_000):
        lower = int(middle * chance.lognormvariate(0, 0.3) * (20 if chance.random() < 0.001 else 1)) // 200 * 200
        found[lower] = found.get(lower, 0) + 1
    return [(lower, lower + 200, frames) for lower, frames in sorted(found.items())]


def campaign(path: Path) -> Path:
    """Write all of it, and one measurement that did not end."""
    results = [
        *(rate("nat-a", 2e5 * cores**0.9, cores, 100_000) for cores in (1, 2, 4)),
        *(rate("nat-b", 1.4e5 * cores**0.7, cores, 100_000) for cores in (1, 2, 4)),
        *(rate("nat-a", 2.3e5 / (number / 1e3) ** 0.08, 1, number) for number in (1_000, 10_000, 1_000_000)),
        rate("nat-a", 5e5, 1, 100_000, "throughput"),
        rate("linux-ipv4", 1.1e6, 1, 100_000, "throughput"),
        losses(),
        latency(),
    ]
    for number, one in enumerate(results):
        folder = path / "results" / f"{number:02}-{one.metric}"
        folder.mkdir(parents=True)
        store = Store(folder)
        store.write_plan(one.parameters.flat())
        store.write_environment(
            {"machine": {"kernel": "6.18", "cpu": {"model": "Made <up>"}}, "device": {"gateway": one.gateway}}
        )
        keep(store, one)
        store.add_trial(trial(delays=bell(12_000, number) if one.metric == "latency" else ()))
        store.add_trial(trial("FAIL"))
        store.add_trial(trial(disturbed=True, remarks=["CPU 0 stood still for 3 ms"]))
        store.add_trial(trial("INVALID", reason="a sender stood still <script>alert(1)</script>", disturbed=True))
    unended = path / "results" / "99-unended"
    unended.mkdir()
    Store(unended).write_plan({})
    return path

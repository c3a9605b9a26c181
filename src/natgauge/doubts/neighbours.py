# SPDX-License-Identifier: Apache-2.0
"""Doubts about what shared the work, the machine or the table with what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.doubts.ports import NEAR_TOP
from natgauge.figure_text import in_percent
from natgauge.figure_text import number as written
from natgauge.records.parameters import differing
from natgauge.words import TESTER

TURN: Final = 8


def _server(facts: Facts) -> Iterator[Said]:
    """A real server is part of what is measured."""
    parameters = facts.parameters
    name = parameters.get("far_side", TESTER)
    if name == TESTER:
        return
    version, rate = parameters.get("server_version") or name, parameters.get("server_alone")
    text, share = "its own highest rate was not measured", None
    if isinstance(rate, int | float):
        share = facts.measured.summary.median / rate
        text = (
            f"without the device it answered up to {written(rate)} queries/s, and this is {in_percent(share)} of that"
        )
    way_back = (
        ", and its cores did the device's work on the way back" if parameters.get("placement") == "shared" else ""
    )
    cores = parameters.get("device_cpus")
    of_device = set(map(str, cores)) if isinstance(cores, list | tuple) else set()
    shared = of_device & set(str(parameters.get("server_cpus", "")).split(","))
    if shared:
        way_back = f", and it took turns with the device on core {' and '.join(sorted(shared))}"
    full = f"{version} answered and may have been the bottleneck: {text}{way_back}"
    yield Said(full, grade="answer" if shared or share is None or share >= NEAR_TOP else "information")


def _workers(facts: Facts) -> Iterator[Said]:
    """Gateways that ran in parallel have separate cores, but share caches and memory."""
    others = facts.parameters.get("beside")
    number = max((value for value in differing(others) or [others] if isinstance(value, int)), default=0)
    if number:
        name = "another worker" if number == 1 else f"{number} other workers"
        yield Said(
            f"{name} of the same machine may have measured at the same time: on other cores, but memory and the last "
            "cache were shared; to see what that costs, measure with --on local:1"
        )


def _foreign(facts: Facts) -> Iterator[Said]:
    """RFC 9693 section 4.4 requires an empty table, not only without the connections of this trial."""
    parameters = facts.parameters
    if parameters.get("fresh_trials") in ("new-tuples", "no-wait"):
        held = f"connections of earlier trials for up to {parameters.get('device_timeout')} s"
        full = (
            ""
            if parameters.get("table_size")
            else " and may have been full, because its limit was not stated (--table-size)"
        )
        work = "a rate includes the work of forgetting them; --empty-command or --fresh-trials wait excludes it"
        yield Said(f"all connections were new, but the device's table held {held}{full}; {work}")


DOUBTS: Final = (
    Doubt(
        word="real server",
        grade="answer",
        about="result",
        holds=_server,
        grades="`information` if the figure is less than 80 % of the server's own rate",
        meaning=(
            "a real server answered. The text has its version, its rate without the gateway, and the share of that "
            "rate. In `shared` placement its cores also did the gateway's work on the way back"
        ),
        remedy="Measure the server alone, or use the tester as the far side.",
        leaves="at least",
    ),
    Doubt(
        word="machine shared",
        grade="interval",
        about="result",
        holds=_workers,
        meaning=(
            "several workers of the campaign were on one machine: each had its own cores, but they shared memory and "
            "the last-level cache"
        ),
    ),
    Doubt(
        word="table not emptied",
        grade="answer",
        about="trial",
        holds=_foreign,
        meaning=(
            "on a wire: all connections of a trial were new, but the device's table still held those of earlier "
            "trials. It may have been full if nobody named its limit. Removing old connections cost a Linux NAT44 40 % "
            "of its connection rate (N = 50,000, time-out 10 s)"
        ),
        remedy="Give natgauge a command that empties the table (--empty-command).",
        leaves="at least",
    ),
)

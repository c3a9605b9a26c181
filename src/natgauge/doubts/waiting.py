# SPDX-License-Identifier: Apache-2.0
"""Doubts about frames that wait: in queues before the device, or for the core that the tester uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.figure_text import in_percent
from natgauge.procedures.kit.search import queues

TURN: Final = 7


def _queues(facts: Facts) -> Iterator[Said]:
    """Frames that wait in queues at the end of a short trial still count as forwarded."""
    limit = facts.parameters.get("frame_timeout_seconds")
    waits = queues.waits(facts.parameters.get("placement"), facts.parameters.get("own_processes"))
    wait = limit if isinstance(limit, int | float) and waits else None
    shortest = queues.shortest_reported(facts.measured.measurements, wait)
    if wait is not None and shortest is not None:
        most = queues.most_share(wait, shortest)
        text = f"queues before the device may have raised the rate by up to {in_percent(most)}"
        yield Said(text, value=most, grade=queues.grade_of(most))


def _turns(facts: Facts) -> Iterator[Said]:
    """`shared` placement means work in the sender's context; a process has one of its own.

    In `isolated` placement only a chain whose devices have cores of their own may have a core of the sender.
    """
    parameters = facts.parameters
    if parameters.get("placement") == "shared" and parameters.get("own_processes"):
        yield Said(
            "the device's own processes took turns with the tester on one core, half of which is the tester's: the "
            "rate is lower than the device's own, and turns look like stalls; measure it in placement isolated"
        )
    devices, senders = parameters.get("cpus_of_devices"), parameters.get("sender_cpus")
    if isinstance(devices, dict) and isinstance(senders, list):
        with_sender = [name for name, cpus in devices.items() if isinstance(cpus, list) and set(cpus) & set(senders)]
        if with_sender:
            yield Said(
                f"{' and '.join(with_sender)} took turns with the tester on a core: the rate is lower than the "
                "device's own, and turns look like stalls; name sender cores that no device has"
            )


DOUBTS: Final = (
    Doubt(
        word="queues",
        grade="interval",
        about="trial",
        holds=_queues,
        grades="`answer` if the share is 5 % or more",
        meaning=(
            "trials were so short that frames waiting in queues may have raised the rate by 1 % or more. `value` is "
            "the share"
        ),
        remedy="Use more connections, or longer trials.",
        share="too high",
        leaves="at most",
    ),
    Doubt(
        word="taking turns",
        grade="answer",
        about="result",
        holds=_turns,
        meaning=(
            "shared core: the device's process and the sender took turns on one core (`shared` placement); measure "
            "such a device in `isolated` placement"
        ),
        leaves="at least",
    ),
)

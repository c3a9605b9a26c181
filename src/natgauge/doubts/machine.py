# SPDX-License-Identifier: Apache-2.0
"""Doubts about the machine and its settings: emulated, under a quota, or not the same for all repetitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.records.parameters import describe, differing, separated, shown

#: Part of the name that QEMU gives to processors that it emulates (TCG).
_EMULATOR: Final = "QEMU TCG"


def _functional(facts: Facts) -> Iterator[Said]:
    """An emulated processor takes as long for an instruction as its emulator does."""
    if facts.parameters.get("emulated"):
        yield Said("the device ran on an emulated machine, which shows that it works, not how fast it is")
    elif _EMULATOR in str(facts.parameters.get("cpu")):
        yield Said("the tester ran on an emulated machine, which shows that it works, not any speed")


def _mixed(facts: Facts) -> Iterator[Said]:
    """Repetitions of several devices or machines are several measurements."""
    unlike = [
        f"{describe(name).label} {', then '.join(map(separated, values))}"
        for _, name, value in facts.parameters.items()
        if (values := differing(value))
    ]
    if unlike:
        yield Said(f"not the same for all repetitions: {'; '.join(unlike)}")


def _quota(facts: Facts) -> Iterator[Said]:
    """A quota stops all of a process's threads for the rest of a period of, usually, 100 ms."""
    if (quota := facts.parameters.get("cpu_quota")) is not None:
        yield Said(
            f"a CPU quota permitted the time of {shown(quota)} cores to the tester and the gateway together, so rates "
            "may be too low; remove the quota (docker: --cpus)"
        )


DOUBTS: Final = (
    Doubt(
        word="functional",
        plainly="the gateway ran on an emulated machine, whose speed says nothing",
        grade="answer",
        about="result",
        holds=_functional,
        meaning=(
            "the gateway ran on an emulated machine, which shows that it works, not how fast it is. The first line "
            "says so, too. The figure is compared with no other; `compare` refuses such gateways"
        ),
        remedy="Measure speed on a machine that is not emulated.",
    ),
    Doubt(
        word="mixed",
        plainly="the repetitions had different versions or settings",
        grade="answer",
        about="repetition",
        holds=_mixed,
        meaning=(
            "a parameter that affects the figure was not the same for all repetitions (the device's version, a setting "
            "of the machine, a worker that joined later). Its value is `several`, and the result is compared with "
            "nothing"
        ),
        remedy="Measure all repetitions with the same versions and settings.",
    ),
    Doubt(
        word="CPU quota",
        plainly="a quota of CPU time may have made rates too low",
        grade="interval",
        about="result",
        holds=_quota,
        meaning=(
            "a CPU quota of the control group (a container, a service) permitted the time of so many cores to the "
            "tester and the gateway together. It stops both for the rest of a period, usually of 100 ms, so rates may "
            "be too low"
        ),
    ),
)

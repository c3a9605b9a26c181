# SPDX-License-Identifier: Apache-2.0
"""Notes on a chain of devices: whether they shared cores, and the device that limited the chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from natgauge.analysis.own_work import limiting_device
from natgauge.figure_text import number
from natgauge.metrics.times import FORWARDING
from natgauge.notes import Note
from natgauge.records.parameters import Parameters
from natgauge.statistics.figure import FigureSummary

#: End of the names of figures of the metric cost: work of plain forwarding for the same frames.
_FORWARDING: Final = f"_{FORWARDING}"


def chain_notes(unit: str, figures: Mapping[str, FigureSummary], parameters: Parameters) -> Iterator[Note]:
    """Yield the notes; none for a single device."""
    chain = parameters.get("chain")
    if not isinstance(chain, list):
        return
    names = [str(name) for name in chain]
    if unit.endswith("/s") and parameters.get("cores_of_devices") is None:
        rates = " + ".join(f"1/{name}" for name in names)
        text = (
            f"the devices {_listed(names)} shared their cores: the rate is 1 / ({rates}), where a name is the rate of "
            "that device alone; of devices with cores of their own it is the smallest of these rates"
        )
        yield Note("device", text)
    hops = [
        f"{name.removesuffix(_FORWARDING).replace('_', ' ')} {number(figure.median)} ns"
        for name, figure in figures.items()
        if name.endswith(_FORWARDING)
    ]
    if hops:
        text = (
            f"the cost is that of {len(names)} devices in a row ({_listed(names)}), and each is a hop; the hop of one "
            f"device that only forwards takes {', '.join(hops)} a frame"
        )
        yield Note("device", text)
    if limit := limiting_device({name: figure.median for name, figure in figures.items()}):
        device, share = limit
        of = f"{number(share)} % of the frames lost in deciding trials"
        text = f"the bottleneck of the chain was {device}: it dropped {of}"
        yield Note("device", text, value=share)


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"

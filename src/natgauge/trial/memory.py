# SPDX-License-Identifier: Apache-2.0
"""Refusal of more connections than memory holds, before anything is measured."""

from __future__ import annotations

from typing import Final

from natgauge.errors import HostError
from natgauge.gateways.limits import DeviceDemand, octets_needed, refuse_short_memory
from natgauge.gateways.recipe import Recipe
from natgauge.host.control_groups import ControlGroups
from natgauge.labs.contract import Device

#: Of the tester's own state table with IPv4 (bpf/shared.h); IPv6 takes more.
_OCTETS_PER_CONNECTION: Final = 8


def refuse_large(  # noqa: PLR0913 - what is demanded, and of whom, by keyword
    recipe: Recipe,
    device: Device | None,
    demand: DeviceDemand,
    *,
    stores: bool,
    own_processes: bool,
    groups: ControlGroups | None = None,
) -> None:
    """Refuse a demand that the device's machine, or the memory limit of natgauge's own control group, cannot hold.

    The entries of a kernel's connection tracking table count for no control group, but those of a process do.

    Args:
        device: that device; None = an external one.
    """
    needed = octets_needed(recipe, demand, {}, {})
    if device is not None:
        refuse_short_memory(recipe, demand, needed, device.machine.free_octets())
    left = (groups or ControlGroups()).memory_left()
    charged = demand.connections * _OCTETS_PER_CONNECTION if stores else 0
    if device is not None and device.machine.has_tester_files and own_processes:
        charged += needed
    if left is not None and charged > left:
        raise HostError(
            f"{recipe.name}: {demand.connections} connections take {charged >> 20} MiB, and the memory limit of this "
            f"control group leaves {left >> 20} MiB; raise the limit (docker: --memory), or use fewer connections"
        )

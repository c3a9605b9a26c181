# SPDX-License-Identifier: Apache-2.0
"""Reasons why a device's frames cannot be timed in slices, for costs and for comparisons by slices."""

from __future__ import annotations

from collections.abc import Sequence

from natgauge.words import Placement


def reasons_not_timed(
    name: str, placement: Placement, sender_cpus: Sequence[int] = (), *, own_processes: bool
) -> list[str]:
    """Return the reasons why the frames of a device cannot be timed; empty = they can.

    Args:
        sender_cpus: the tester's sending cores; empty = not chosen yet.
    """
    reasons = []
    if own_processes:
        # In every placement: no remedy for another reason helps.
        reasons.append(
            "works in processes of its own, not in the sender's context, so its frames cannot be timed; its rate can "
            "be measured: connection-rate, throughput"
        )
    if placement != "shared":
        remedy = "; use --placement shared" if placement == "isolated" and not own_processes else ""
        reasons.append(
            f"placement {placement}: the device does not work in the sender's context there, so its frames cannot be "
            f"timed{remedy}"
        )
    if len(sender_cpus) > 1:
        reasons.append(f"cores {','.join(map(str, sender_cpus))}: costs are those of one core; name one")
    return [f"{name}: {reason}" for reason in reasons]

# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.compare`, for type checkers and editors.

Made of the descriptions of inputs by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from typing import Literal

from natgauge.setup.keywords import SetupKeywords


class CompareKeywords(SetupKeywords, total=False):
    """Options of `natgauge.compare`; None = not chosen."""

    by: Literal["auto", "slices", "rates"] | None
    quantities: str | None
    level: float | str | None
    resolve: float | str | None
    fail_above: float | str | None
    most_seconds: float | None
    unlike: bool | None
    loss_tolerance: float | str | None
    slice_frames: int | None
    core: int | None
    commit: str | None
    connections: int | None
    subscribers: int | None
    addresses: Literal["single", "draft"] | None
    source_ports: str | None
    destination_ports: str | None
    frame_size: int | None
    frame_sizes: str | None
    down_frame_sizes: str | None
    frame_side: Literal["initiator", "responder"] | None
    transport: Literal["udp", "icmp", "tcp"] | None
    order: Literal["permutation", "increasing", "decreasing", "with-replacement"] | None

# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.measure`, for type checkers and editors.

Made of the descriptions of inputs by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from natgauge.setup.keywords import SetupKeywords


class MeasureKeywords(SetupKeywords, total=False):
    """Options of `natgauge.measure`; None = not chosen."""

    burst_seconds: float | None
    burst_rate: float | None
    throughput_rate: float | None
    trial_seconds: float | None
    directions: Literal["both", "up", "down"] | None
    down_share: float | str | None
    reading_order: Literal["pseudorandom", "increasing"] | None
    stateless: bool | None
    foreground_share: float | str | None
    connection_rate: float | None
    error: float | str | None
    loss_verifications: int | None
    confirm: bool | None
    repeat: int | Literal["auto"] | None
    profile: Literal["default", "quick", "standard", "rfc"] | None
    loss_tolerance: float | str | None
    zero_checksum: Literal["damaged", "accept"] | None
    frame_timeout_seconds: float | None
    invalid_repeats: int | None
    settle_seconds: float | None
    most_seconds: float | None
    at_least: float | str | None
    draws: int | None
    quantities: str | None
    rounds: int | None
    slice_frames: int | None
    hot_spots: bool | None
    at_most: float | str | None
    state: Literal["established", "half-open", "fin", "rst"] | None
    watch_seconds: float | None
    interval_seconds: float | None
    loads: str | Sequence[float] | None
    step: float | str | None
    full_rate: float | None
    way: Literal["every-frame", "rfc8219"] | None
    tags: int | None
    new_rate: float | None
    new_share: float | str | None
    life_seconds: float | None
    flood_share: float | str | None
    before_seconds: float | None
    load: float | str | None
    reset_kind: Literal["process", "system", "hardware", "power", "failover"] | None
    reset_command: str | None
    power_off_seconds: float | None
    query: Literal["a", "aaaa"] | None
    far_side: str | None
    aaaa_share: float | str | None
    cached_share: float | str | None
    hours: float | None
    subscriber: str | None
    most_subscribers: int | None
    overload: float | None
    after_seconds: float | None
    safe_connections: int | None
    method: Literal["quick", "full"] | None
    beta: float | str | None
    gamma: float | str | None
    capacity_error: int | None
    rate_error: float | str | None
    alpha: float | str | None
    download_rate: float | None
    tear_down_by: Literal["command", "fin", "rst"] | None
    sample: int | None
    search: Literal["binary", "mlrsearch"] | None
    goals: Literal["rfc2544", "ndr-pdr"] | None
    request_octets: int | None
    close: Literal["fin", "rst"] | None
    failed_validation: Literal["repeat-slower", "fail"] | None
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
    lab_name: str | None
    nat64_prefix: str | None
    power_command: str | None

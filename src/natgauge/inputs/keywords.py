# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.measure`, `natgauge.compare` and `natgauge.audit`, for type checkers and editors.

Made of the descriptions of inputs by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class MeasureKeywords(TypedDict, total=False):
    """Options of `natgauge measure`; None = not chosen."""

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
    draws: int | None
    quantities: str | None
    rounds: int | None
    slice_frames: int | None
    hot_spots: bool | None
    state: Literal["established", "half-open", "fin", "rst"] | None
    watch_seconds: float | None
    interval_seconds: float | None
    step: float | str | None
    full_rate: float | None
    loads: str | Sequence[float] | None
    way: Literal["every-frame", "rfc8219"] | None
    tags: int | None
    before_seconds: float | None
    load: float | str | None
    query: Literal["a", "aaaa"] | None
    far_side: str | None
    hours: float | None
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
    source_addresses: str | None
    source_ports: str | None
    destination_addresses: str | None
    destination_ports: str | None
    frame_size: int | None
    frame_side: Literal["initiator", "responder"] | None
    transport: Literal["udp", "icmp", "tcp"] | None
    order: Literal["permutation", "increasing", "decreasing", "with-replacement"] | None
    lab: str | None
    lab_name: str | None
    seed: int | None
    grace_seconds: float | None
    nat64_prefix: str | None
    table_size: int | None
    hash_size: int | None
    timeouts: int | None
    udp_timeout: int | None
    psid_length: int | None
    psid_offset: int | None
    emptying: str | None
    placement: Literal["shared", "isolated"] | None
    cores: str | int | Sequence[int] | dict[str, str] | None
    cores_each: int | None
    sender_cores: str | int | Sequence[int] | None
    server_cores: str | int | Sequence[int] | None
    ring: int | None
    initiator_port: str | None
    initiator_netns: str | None
    responder_port: str | None
    responder_netns: str | None
    allow_addresses: bool | None
    device_cores: int | None
    boot_seconds: float | None
    boot_settle_seconds: float | None
    ssh_host: str | None
    ssh_config: str | None
    ssh_netns: str | None
    device_inside: str | None
    device_outside: str | None
    boot_command: str | None
    tune_device: bool | None
    guest_cores: int | None
    guest_memory: int | None
    guest_accelerator: Literal["kvm", "tcg"] | None
    guest_files: str | None
    initiator_gateway: str | None
    responder_gateway: str | None
    pool: str | None
    mapped_addresses: str | None
    device_timeout: int | None
    fresh_trials: Literal["new-tuples", "wait", "no-wait"] | None
    empty_command: str | None
    count_command: str | None
    reboot_command: str | None


class CompareKeywords(TypedDict, total=False):
    """Options of `natgauge compare`; None = not chosen."""

    by: Literal["auto", "slices", "rates"] | None
    placement: Literal["shared", "isolated"] | None
    quantities: str | None
    level: float | str | None
    resolve: float | str | None
    fail_above: float | str | None
    most_seconds: float | None
    unlike: bool | None
    loss_tolerance: float | str | None
    slice_frames: int | None
    core: int | None
    seed: int | None
    connections: int | None
    subscribers: int | None
    source_addresses: str | None
    source_ports: str | None
    destination_addresses: str | None
    destination_ports: str | None
    frame_size: int | None
    frame_side: Literal["initiator", "responder"] | None
    transport: Literal["udp", "icmp", "tcp"] | None
    order: Literal["permutation", "increasing", "decreasing", "with-replacement"] | None
    table_size: int | None
    hash_size: int | None
    timeouts: int | None
    udp_timeout: int | None
    psid_length: int | None
    psid_offset: int | None
    emptying: str | None
    cores: str | int | Sequence[int] | dict[str, str] | None
    cores_each: int | None
    sender_cores: str | int | Sequence[int] | None
    server_cores: str | int | Sequence[int] | None
    ring: int | None
    initiator_port: str | None
    initiator_netns: str | None
    responder_port: str | None
    responder_netns: str | None
    allow_addresses: bool | None
    device_cores: int | None
    boot_seconds: float | None
    boot_settle_seconds: float | None
    ssh_host: str | None
    ssh_config: str | None
    ssh_netns: str | None
    device_inside: str | None
    device_outside: str | None
    boot_command: str | None
    tune_device: bool | None
    guest_cores: int | None
    guest_memory: int | None
    guest_accelerator: Literal["kvm", "tcg"] | None
    guest_files: str | None
    initiator_gateway: str | None
    responder_gateway: str | None
    pool: str | None
    mapped_addresses: str | None
    device_timeout: int | None
    fresh_trials: Literal["new-tuples", "wait", "no-wait"] | None
    empty_command: str | None
    count_command: str | None
    reboot_command: str | None
    lab: str | None
    grace_seconds: float | None


class AuditKeywords(TypedDict, total=False):
    """Options of `natgauge audit`; None = not chosen."""

    profile: Literal["all", "cgn", "home", "nat64"] | None
    wait: float | None
    long: bool | None
    mappings: int | None
    fail_on: Literal["must", "should"] | None
    source_addresses: str | None
    destination_addresses: str | None
    lab: str | None
    lab_name: str | None
    seed: int | None
    grace_seconds: float | None
    nat64_prefix: str | None
    table_size: int | None
    hash_size: int | None
    timeouts: int | None
    udp_timeout: int | None
    psid_length: int | None
    psid_offset: int | None
    emptying: str | None
    placement: Literal["shared", "isolated"] | None
    cores: str | int | Sequence[int] | dict[str, str] | None
    cores_each: int | None
    sender_cores: str | int | Sequence[int] | None
    server_cores: str | int | Sequence[int] | None
    ring: int | None
    initiator_port: str | None
    initiator_netns: str | None
    responder_port: str | None
    responder_netns: str | None
    allow_addresses: bool | None
    device_cores: int | None
    boot_seconds: float | None
    boot_settle_seconds: float | None
    ssh_host: str | None
    ssh_config: str | None
    ssh_netns: str | None
    device_inside: str | None
    device_outside: str | None
    boot_command: str | None
    tune_device: bool | None
    guest_cores: int | None
    guest_memory: int | None
    guest_accelerator: Literal["kvm", "tcg"] | None
    guest_files: str | None
    initiator_gateway: str | None
    responder_gateway: str | None
    pool: str | None
    mapped_addresses: str | None
    device_timeout: int | None
    fresh_trials: Literal["new-tuples", "wait", "no-wait"] | None
    empty_command: str | None
    count_command: str | None
    reboot_command: str | None

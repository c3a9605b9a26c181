# SPDX-License-Identifier: Apache-2.0
"""Keywords of `natgauge.measure`, `natgauge.compare` and `natgauge.audit`, for type checkers and editors.

Made of the descriptions of inputs by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class SetupKeywords(TypedDict, total=False):
    """Options of `natgauge.measure`, `natgauge.compare` and `natgauge.audit`; None = not chosen."""

    source_addresses: str | None
    destination_addresses: str | None
    lab: str | None
    seed: int | None
    grace_seconds: float | None
    outside_addresses: int | None
    table_size: int | None
    hash_size: int | None
    timeouts: int | None
    udp_timeout: int | None
    psid_length: int | None
    psid_offset: int | None
    emptying: str | None
    logging: str | None
    log_tolerance: float | str | None
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
    initiator_background: str | None
    responder_background: str | None
    device_timeout: int | None
    fresh_trials: Literal["new-tuples", "wait", "no-wait"] | None
    empty_command: str | None
    count_command: str | None
    reboot_command: str | None

# SPDX-License-Identifier: Apache-2.0
"""The command that measures a result again: every option that is not natgauge's own default, in the stored words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from natgauge import procedures
from natgauge.records.measurement import Result

#: Parameters of lab, traffic and device that are options, too -> the option's name.
_OPTIONS: Final = {
    "connections": "connections",
    "order": "order",
    "source_ports": "source-ports",
    "destination_ports": "destination-ports",
    "frame_size": "frame-size",
    "frame_side": "frame-side",
    "grace_seconds": "grace-seconds",
    "seed": "seed",
    "lab_kind": "lab",
    "table_size": "table-size",
    "hash_size": "hash-size",
}
#: Options that only one kind of lab has, and their name on record.
_NETNS: Final = {"placement": "placement", "ring": "ring"}
#: Ranges that the lab fills in itself where they hold one address.
_ADDRESSES: Final = {
    "source_addresses": ("source-addresses", "source_address_count"),
    "destination_addresses": ("destination-addresses", "destination_address_count"),
}
#: What a profile stands for is written out.
_WRITTEN_OUT: Final = frozenset({"profile", "connections", "placement", "order", "four_tuples"})


def command(result: Result) -> str:
    """One line for a shell."""
    return shlex.join(["natgauge", "measure", result.metric, "--dut", result.dut, *_options(result)])


def _options(result: Result) -> Iterator[str]:
    for name, option in _OPTIONS.items():
        yield from _told(option, result.parameter(name))
    if result.parameter("lab_kind") == "netns":
        for name, option in _NETNS.items():
            yield from _told(option, result.parameter(name))
    for name, (option, count) in _ADDRESSES.items():
        if result.number(count) not in (None, 1.0):
            yield from _told(option, result.parameter(name))
    known = procedures.procedures().get(result.metric)
    if known is None:
        return
    usual = {setting.name: setting.default for setting in known.inputs()} | known.with_profile({})
    # The time follows from other settings unless it is told.
    usual.pop("most_seconds", None)
    for setting in known.inputs():
        value = result.parameters.settings.get(setting.name)
        if setting.name not in _WRITTEN_OUT and value != usual.get(setting.name):
            yield from _told(setting.name.replace("_", "-"), value)


def _told(option: str, value: JsonValue) -> Iterator[str]:
    if value is None or isinstance(value, list | dict):
        return
    yield f"--{option}"
    yield str(value).lower() if isinstance(value, bool) else str(value)

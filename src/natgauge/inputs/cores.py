# SPDX-License-Identifier: Apache-2.0
"""Lists of cores, as the kernel writes them, and values for each device of a chain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from natgauge.errors import UsageError
from natgauge.inputs.types import InputType, Text

#: No machine has this many cores.
MOST_CORES: Final = 4096
_CORES_PART: Final = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
#: Begins the value of one device of a chain, as "ce=".
_DEVICE_VALUE: Final = re.compile(r"([a-z0-9]{1,16})=(.*)")
_NEXT_DEVICE: Final = re.compile(r",(?=[a-z0-9]{1,16}=)")


@dataclass(frozen=True)
class CoreList(InputType):
    """Cores, as the kernel writes lists of them: "0,2-3"."""

    metavar: str = "CORES"
    annotation: str = "str | int | Sequence[int]"

    def take(self, name: str, value: object) -> tuple[int, ...]:
        """The cores in ascending order, from a text, a number or a sequence of numbers."""
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = ",".join(map(str, value))
        return parse_cores(Text().take(name, value), spoken_name=name)

    def write(self, value: Any) -> str:
        """Return the cores as a list with commas: "0,2,3"."""
        return format_cores(value)


def parse_cores(text: str, spoken_name: str = "cores") -> tuple[int, ...]:
    """Read a list of cores as the kernel writes it: "0", "0,2", "0-3,8".

    Returns:
        The cores, ascending.
    """
    cores: list[int] = []
    where = f'{spoken_name} "{text}"'.lstrip()
    for part in text.strip().split(","):
        match = _CORES_PART.fullmatch(part.strip())
        if match is None:
            raise UsageError(f'{where}: "{part}" is neither a core nor a range of cores; write e.g. 0,2-3')
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if last < first:
            raise UsageError(f'{where}: range "{part}" is reversed; write {last}-{first}')
        cores.extend(range(first, last + 1))
    if len(set(cores)) != len(cores):
        raise UsageError(f"{where}: a core is named twice; name each once")
    return tuple(sorted(cores))


def format_cores(cores: Iterable[int]) -> str:
    """Write cores as a plain list with commas, e.g. "0,2,3"."""
    return ",".join(str(core) for core in cores)


@dataclass(frozen=True)
class DeviceCoreList(InputType):
    """Cores of all devices together, "0,2-3", or of each device of a chain by its name, "ce=2-3,pe=4,5"."""

    metavar: str = "CORES"
    annotation: str = "str | int | Sequence[int] | dict[str, str]"

    def take(self, name: str, value: object) -> CoreChoice:
        """The cores, from a text, a number, a sequence of numbers, or any of these for each device by its name."""
        if isinstance(value, Mapping):
            value = self.write({device: CoreList().take(f"{name} of {device}", each) for device, each in value.items()})
        named = by_device(name, value) if isinstance(value, str) else None
        if named is None:
            return CoreList().take(name, value)
        return {device: parse_cores(cores, spoken_name=f"{name} of {device}") for device, cores in named.items()}

    def write(self, value: Any) -> str:
        """Return the cores as a list with commas, or such a list for each device: "ce=2,3,pe=4"."""
        if not isinstance(value, Mapping):
            return format_cores(value)
        return ",".join(f"{device}={format_cores(cores)}" for device, cores in value.items())


#: Cores of all devices together, or of each device of a chain by its name.
CoreChoice = tuple[int, ...] | Mapping[str, tuple[int, ...]]


def cores_in(cores: CoreChoice | None) -> tuple[int, ...]:
    """Return every core of a choice once, ascending; empty without a choice."""
    if isinstance(cores, Mapping):
        return tuple(sorted({core for each in cores.values() for core in each}))
    return cores or ()


def by_device(name: str, text: str) -> dict[str, str] | None:
    """Read values of a chain's devices, "ce=A,pe=B", by device; None where the text names no device."""
    if _DEVICE_VALUE.match(text.strip()) is None:
        return None
    values: dict[str, str] = {}
    for part in _NEXT_DEVICE.split(text.strip()):
        device, _, value = part.partition("=")
        if device in values or not value.strip():
            fault = "is named twice; name it once" if device in values else "has no value; write one after the ="
            raise UsageError(f'{name} "{text}": device {device} {fault}'.lstrip())
        values[device] = value.strip()
    return values

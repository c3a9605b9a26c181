# SPDX-License-Identifier: Apache-2.0
"""Settings of a device: its knobs, and what RFC 9693 section 6 requires to be reported with every result.

Knobs of scope "device" are read, set, read back and put back by snippets in the device's own place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from natgauge.gateways.far_side import Playable
from natgauge.gateways.recipe_model import Knob, Knobs
from natgauge.labs.contract import CommandResult


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """Programs and settings of a device, which RFC 9693 section 6 requires to be reported with every result.

    Attributes:
        files: values of settings that are files, by file name; by path where several files have one name.
        of_host: values that settings of the whole machine had before, of those that the user did not choose.
        own_timeout: seconds for which it kept a UDP connection with frames both ways before natgauge set its time-out;
            None = it was not set, or the user chose it.
        emptying: name of the way in which the table is emptied; None = the device keeps no connections.
        logging: name of the way in which the connections are logged; None = they are not.
        log_tolerance: share of the connections that the log of a passing trial may lack.
    """

    gateway: str
    version: tuple[str, ...]
    connections: int
    knobs: Mapping[str, int]
    files: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[str, int] = field(default_factory=dict)
    of_host: Mapping[str, int] = field(default_factory=dict)
    own_timeout: int | None = None
    emptying: str | None = None
    logging: str | None = None
    log_tolerance: float = 0.0

    @property
    def connections_per_bucket(self) -> float | None:
        """Load of the hash table when all connections exist; None when there is no hash table."""
        buckets = self.knobs.get("hash_size")
        return self.connections / buckets if buckets else None

    @property
    def table_filled(self) -> float | None:
        """Share of the table the connections take, 0 to 1; None when it has no limit."""
        size = self.knobs.get("table_size")
        return self.connections / size if size else None

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it; what the gateway does not have is absent."""
        ratios = {"connections_per_bucket": self.connections_per_bucket, "table_filled": self.table_filled}
        return {
            "gateway": self.gateway,
            "version": list(self.version),
            "connections": self.connections,
            "knobs": dict(self.knobs),
            "files": dict(self.files),
            "found": dict(self.found),
            **({} if self.emptying is None else {"emptying": self.emptying}),
            **({} if self.logging is None else {"logging": self.logging, "log_tolerance": self.log_tolerance}),
            **{name: value for name, value in ratios.items() if value is not None},
        }


#: Purpose of a snippet: it must succeed; its output is an answer, and it may be repeated; its status may be a failure;
#: or it undoes something, also on a broken gateway.
How = Literal["must", "ask", "may fail", "undo"]


#: Runs a snippet of a gateway, and breaks the gateway where that fails; see `natgauge.gateways.gateway.Gateway`.
RunSnippet = Callable[..., CommandResult]


class DeviceKnobs:
    """The knobs of one gateway."""

    def __init__(self, recipe: Playable, run: RunSnippet, number: Callable[[str, str], int]) -> None:
        """Store the arguments; nothing is read yet."""
        self._run = run
        self._number = number
        self._before: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._own: dict[tuple[str, ...], int] = {}
        self._knobs: dict[str, Knob] = {}
        self.take(recipe.knobs)

    def take(self, knobs: Knobs) -> None:
        """Use these knobs of the same gateway; if they differ from those before, the files of those are put back."""
        taken = {name: knob for name, knob in knobs.named().items() if knob.scope == "device"}
        if taken != self._knobs:
            self.restore()
        self._knobs = taken

    def unset(self) -> dict[str, int]:
        """Return the minimum of each knob that can be set, for a lab whose knobs have no value yet."""
        return {name: knob.minimum for name, knob in self._knobs.items() if knob.settable}

    def set(self, values: Mapping[str, int], wished: Mapping[str, int], previous: dict[str, int]) -> None:
        """Set the knobs that can be set.

        Args:
            wished: values that the user chose. A knob with more than a value that the user did not choose keeps it.
        """
        for name, knob in self._knobs.items():
            if name not in values:
                continue
            # A second start finds our own value.
            lines = self._lines(name, knob)
            value = min(lines)
            self._own.setdefault(_place(knob), lines[-1])
            previous.setdefault(name, value)
            for path in knob.paths:
                before = self._before.setdefault(path, self._file(path))
                # A larger value that is there already is kept, unless the user chose the value.
                self._put(f'echo "$NG_VALUE" > {path}', values[name] if name in wished else max(values[name], before))
            if knob.write:
                # Other test frames have another time-out under the same name, with a snippet of its own.
                first = self._first.setdefault(knob.write, value)
                self._put(knob.write, values[name] if name in wished else max(values[name], first))

    def restore(self) -> None:
        """Put back the files. A namespace loses its settings when it is deleted, but another device does not."""
        for path, value in self._before.items():
            self._put(f'echo "$NG_VALUE" > {path}', value, "undo")
        self._before.clear()

    def read(self) -> dict[str, int]:
        """Return the value of each knob by name."""
        return {name: min(self._lines(name, knob)) for name, knob in self._knobs.items()}

    def last(self, name: str) -> int | None:
        """Return the last value of a knob that has several, where `read` has the smallest; None = no such knob."""
        return self._lines(name, self._knobs[name])[-1] if name in self._knobs else None

    def own(self, name: str) -> int | None:
        """Return the last value of a knob before natgauge set it first; None = it was not set."""
        return self._own.get(_place(self._knobs[name])) if name in self._knobs else None

    def files(self) -> dict[Path, int]:
        """Return the values of knobs that are files."""
        paths = [path for knob in self._knobs.values() for path in knob.paths]
        # One snippet for all, which prints a line for each: every snippet is a shell of its own over there.
        each = f'for file in {" ".join(paths)}; do value=$(cat "$file"); echo $value; done'
        lines = self._run("read", each).stdout.splitlines() if paths else []
        return {
            Path(path): self._number("read", line)
            for path, line in zip_longest(paths, lines[: len(paths)], fillvalue="")
        }

    def _lines(self, name: str, knob: Knob) -> list[int]:
        lines = self._run("read", knob.read or f"cat {' '.join(knob.paths)}").stdout.split()
        return [self._number(f"read of {name}", line) for line in lines or [""]]

    def _file(self, path: str) -> int:
        return self._number("read", self._run("read", f"cat {path}").stdout)

    def _put(self, snippet: str, value: int, how: How = "must") -> None:
        self._run("set", snippet, variables={"NG_VALUE": str(value)}, how=how)


def _place(knob: Knob) -> tuple[str, ...]:
    """What a knob sets: knobs of other test frames have the same name."""
    return (knob.write or "", *knob.paths)

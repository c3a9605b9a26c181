# SPDX-License-Identifier: Apache-2.0
"""Knobs of scope "device": read, set, read back and put back by snippets in the device's own place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from natgauge.duts.protocol import Playable
from natgauge.duts.recipe_model import Knob
from natgauge.labs.contract import CommandResult

#: What a snippet is run for: its success; an answer, which may be asked for again; its status whatever that is; or the
#: undoing also of a broken gateway.
How = Literal["must", "ask", "may fail", "undo"]


class RunSnippet(Protocol):
    """Runs a snippet of a gateway, and breaks the gateway where that fails."""

    def __call__(
        self, verb: str, snippet: str, *, variables: Mapping[str, str] | None = None, how: How = "must"
    ) -> CommandResult:
        """As `natgauge.duts.gateway.Gateway` does."""
        ...


class DeviceKnobs:
    """Those of one gateway."""

    def __init__(self, recipe: Playable, run: RunSnippet, number: Callable[[str, str], int]) -> None:
        """Nothing is read yet.

        Args:
            recipe: the gateway's.
            run: runs a snippet.
            number: the whole number that a snippet printed; breaks the gateway where it is none.
        """
        self._knobs = {name: knob for name, knob in recipe.knobs.named().items() if knob.scope == "device"}
        self._run = run
        self._number = number
        self._before: dict[str, int] = {}

    def unset(self) -> dict[str, int]:
        """Those that can be set: a fresh one's value does not matter, so the least is taken."""
        return {name: knob.minimum for name, knob in self._knobs.items() if knob.settable}

    def set(self, values: Mapping[str, int], wished: Mapping[str, int], found: dict[str, int]) -> None:
        """Set them.

        Args:
            values: by name; others stay.
            wished: what the user asked for; a file that has more than what nobody asked for stays.
            found: gets what was there, where it has no such name yet.
        """
        for name, knob in self._knobs.items():
            if name not in values:
                continue
            # A second start finds our own value.
            found.setdefault(name, self._value(name, knob))
            for path in knob.paths:
                before = self._before.setdefault(path, self._file(path))
                # What is larger already stays, unless something else was asked for.
                self._put(f'echo "$NG_VALUE" > {path}', values[name] if name in wished else max(values[name], before))
            if knob.write:
                self._put(knob.write, values[name])

    def restore(self) -> None:
        """A namespace forgets its settings when it goes, another device does not."""
        for path, value in self._before.items():
            self._put(f'echo "$NG_VALUE" > {path}', value, "undo")
        self._before.clear()

    def read(self) -> dict[str, int]:
        """Their values, by name."""
        return {name: self._value(name, knob) for name, knob in self._knobs.items()}

    def files(self) -> dict[str, int]:
        """Values of those that are files, by the files' names."""
        return {Path(path).name: self._file(path) for knob in self._knobs.values() for path in knob.paths}

    def _value(self, name: str, knob: Knob) -> int:
        lines = self._run("read", knob.read or f"cat {' '.join(knob.paths)}").stdout.split()
        return min(self._number(f"read of {name}", line) for line in lines or [""])

    def _file(self, path: str) -> int:
        return self._number("read", self._run("read", f"cat {path}").stdout)

    def _put(self, snippet: str, value: int, how: How = "must") -> None:
        self._run("set", snippet, variables={"NG_VALUE": str(value)}, how=how)

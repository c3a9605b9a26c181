# SPDX-License-Identifier: Apache-2.0
"""What stands before a recipe is played: what its device must have, the ways that were chosen, and its settings.

Needs are checked before the recipe changes anything. Ways are those of removing all connections before a trial, and of
logging them. RFC 9693 section 6 requires a report of the settings with every result. Knobs of scope "device" are read,
set and put back by snippets in the device's own place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from natgauge.errors import HostError, UsageError, did_you_mean
from natgauge.gateways.far_side import Playable
from natgauge.gateways.logs import LoggingWay
from natgauge.gateways.recipe import Recipe
from natgauge.gateways.recipe_model import (
    BASE_PACKAGE,
    BY_RESTART,
    BY_VERB,
    Emptying,
    Knob,
    Knobs,
    RequiredPrograms,
    installing,
)
from natgauge.gateways.toml_layers import RECIPE_FOLDER, absent
from natgauge.inputs.input import wrong
from natgauge.labs.contract import CommandResult, Device


def refuse_lacking(recipe: Playable, device: Device, works: Callable[[str], bool]) -> None:
    """Refuse a device that lacks what a recipe requires; `works` says whether a snippet succeeds there."""
    wanted, system = recipe.system, device.machine.system
    if system != wanted:
        raise HostError(
            f"{recipe.name}: is a gateway of {wanted}, and device {device.name} runs {system}; use --lab ssh with a "
            f"machine that runs {wanted}"
        )
    if not device.machine.has_tester_files and any(RECIPE_FOLDER in part for part in _parts(recipe)):
        raise HostError(
            f"{recipe.name}: names files by ${RECIPE_FOLDER}, a folder of this machine, and device {device.name} runs "
            "on another machine; copy the files to that machine and name them by absolute paths"
        )
    refuse_absent_files(recipe)
    for need in recipe.needs:
        for program in need.programs:
            if not works(f"command -v {program}"):
                raise HostError(
                    f'{recipe.name}: program "{program}" is missing on device {device.name}; {_mends(need, recipe)}'
                )
    for module in recipe.modules:
        if not works(module.check or f"modprobe {module.name}"):
            raise HostError(f"{recipe.name}: the kernel of device {device.name} has no {module.name}; {module.mends}")


def refuse_absent_files(recipe: Playable) -> None:
    """Refuse a recipe that names files by $NG_RECIPE_FOLDER that are not there, whichever device plays it."""
    if missing := absent(_parts(recipe), recipe.origin.parent):
        raise UsageError(f"{recipe.name}: names {missing[0]}, which is not there; write the name of a file there")


def _parts(recipe: Playable) -> list[str]:
    """The parts of a recipe that may name files."""
    parts = (recipe.environment, recipe.modules, recipe.process, recipe.verbs, recipe.emptyings, recipe.knobs)
    return [*_texts(parts)]


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, BaseModel):
        yield from _texts(part.model_dump())
    elif isinstance(part, Mapping | tuple | list):
        for each in part.values() if isinstance(part, Mapping) else part:
            yield from _texts(each)


def _mends(need: RequiredPrograms, recipe: Playable) -> str:
    if need.package is None:
        return need.mends or ""
    if need.package == BASE_PACKAGE:
        return f"it is of the base system of {recipe.system}"
    return f"run: {installing([need.package])}"


def emptying_of(recipe: Playable, name: str | None) -> Emptying | None:
    """Return the way of removing all connections; None = the gateway keeps none."""
    verbs = recipe.verbs
    if not recipe.stateful:
        if name is not None:
            raise wrong("emptying", f"{recipe.name} keeps no connections, so there is nothing to empty; leave it out")
        return None
    ways = {
        BY_VERB: Emptying(run=verbs.pieces("empty")),
        BY_RESTART: Emptying(run=stopping(recipe), starts_again=True),
        **recipe.emptyings,
    }
    wanted = name or BY_VERB
    if wanted not in ways:
        raise wrong("emptying", f'"{wanted}": {recipe.name} has no such way; {did_you_mean(wanted, ways)}')
    return ways[wanted]


def starting(recipe: Playable) -> tuple[str, ...]:
    """Return the snippets that start a gateway. Processes are started last and stopped first."""
    return (*recipe.verbs.pieces("start"), *(process.start for process in recipe.process))


def stopping(recipe: Playable) -> tuple[str, ...]:
    """Return the snippets that stop a gateway."""
    return (*(process.stop for process in reversed(recipe.process)), *recipe.verbs.pieces("stop"))


def way_of(recipe: Recipe, name: str) -> LoggingWay:
    """Return the way of this name; refuse one that the gateway has not."""
    if name not in recipe.logging:
        known = "has no way; leave it out, or let the recipe declare one ([logging.NAME])"
        if recipe.logging:
            known = f"has no such way; {did_you_mean(name, recipe.logging)}"
        raise wrong("logging", f'"{name}": {recipe.name} {known}')
    return recipe.logging[name]


def logged(recipe: Recipe, name: str | None, cpus: str | None = None) -> Recipe:
    """Return the gateway with its log, which starts after it and stops before it; None = it does not log.

    `cpus` are cores of what writes the log, such as "0,2"; None = those of the device.
    """
    if name is None:
        return recipe
    way, verbs = way_of(recipe, name), recipe.verbs
    told = {"NG_LOG_PORT": None if way.udp_port is None else str(way.udp_port), "NG_LOG_CPUS": cpus}
    with_log = {
        "start": (*verbs.start, *way.starting),
        "stop": (*verbs.stop, *way.stopping),
        "check": (*verbs.check, *filter(None, [way.check])),
        "faults": (*verbs.faults, *filter(None, [way.dropped])),
    }
    return recipe.model_copy(
        update={
            "environment": {**recipe.environment, **{key: text for key, text in told.items() if text is not None}},
            "needs": (*recipe.needs, *way.needs),
            "modules": (*recipe.modules, *way.modules),
            "process": (*recipe.process, *way.process),
            "verbs": verbs.model_copy(update=with_log),
        }
    )


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

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it; what the gateway does not have is absent."""
        # The load of the hash table when all connections exist, and the share of the table that they take, 0 to 1.
        sizes = {"connections_per_bucket": self.knobs.get("hash_size"), "table_filled": self.knobs.get("table_size")}
        return {
            "gateway": self.gateway,
            "version": list(self.version),
            "connections": self.connections,
            "knobs": dict(self.knobs),
            "files": dict(self.files),
            "found": dict(self.found),
            **({} if self.emptying is None else {"emptying": self.emptying}),
            **({} if self.logging is None else {"logging": self.logging, "log_tolerance": self.log_tolerance}),
            **{name: self.connections / size for name, size in sizes.items() if size},
        }


#: Purpose of a snippet: it must succeed; its output is an answer, and it may be repeated; its status may be a failure;
#: or it undoes something, also on a broken gateway.
How = Literal["must", "ask", "may fail", "undo"]


class DeviceKnobs:
    """The knobs of one gateway."""

    def __init__(self, recipe: Playable, run: Callable[..., CommandResult], number: Callable[[str, str], int]) -> None:
        """Nothing is read yet; `run` and `number` are those of `natgauge.gateways.gateway.Gateway`."""
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

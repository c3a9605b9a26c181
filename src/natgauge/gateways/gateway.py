# SPDX-License-Identifier: Apache-2.0
"""Playing a recipe on a device: the one driver for all gateways, alone or as a chain that is run as one device.

Waiting, time limits and retries live here only. One gateway of a chain between Initiator and Responder holds the state,
the others none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from string import Template
from typing import Any, Final, NoReturn, Self

from natgauge.device_work import ObjectCaches
from natgauge.errors import BrokenError, NatgaugeError, NotEmptyError, in_a_line
from natgauge.gateways.far_side import Playable
from natgauge.gateways.limits import (
    DeviceDemand,
    choose,
    octets_needed,
    refuse_short_memory,
    refuse_unfit,
    within_memory,
)
from natgauge.gateways.preparation import (
    DeviceKnobs,
    DeviceSettings,
    How,
    emptying_of,
    refuse_lacking,
    starting,
    stopping,
)
from natgauge.gateways.recipe_model import BY_VERB, Emptying
from natgauge.gateways.toml_layers import RECIPE_FOLDER, named_in
from natgauge.inputs.question import DeviceOptions
from natgauge.interruption import uninterrupted
from natgauge.labs.contract import CommandResult, Device

_VERB_SECONDS: Final = 60.0
_READY_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.05
#: Of looking whether a process runs; the device may be in trouble already.
_STATUS_SECONDS: Final = 10.0
_EMPTY_TRIES: Final = 5
#: Emptying 10^6 connections takes a Linux kernel 1.3 s; this leaves slower devices some room.
_EMPTY_SECONDS_PER_CONNECTION: Final = 10e-6


class Gateway:
    """One recipe on one device.

    Use it as a context manager and call `prepare`, `start`, then the others as often as needed; leaving stops it and
    puts the knobs back. A start, a stop or a setting that failed leaves the gateway broken, and so does the end of one
    of its processes: every later call repeats the first cause until the gateway is restarted. Any other command that
    failed may be tried again.
    """

    def __init__(self, recipe: Playable, device: Device, wishes: DeviceOptions | None = None) -> None:
        self.recipe = recipe
        self.device = device
        self._wishes = wishes or DeviceOptions()
        self._demand: DeviceDemand | None = None
        self._values: dict[str, int] = {}
        self._found: dict[str, int] = {}
        self._version: tuple[str, ...] | None = None
        self._knobs = DeviceKnobs(recipe, self._run, self._number)
        self._begun = False
        self._emptying: Emptying | None = None
        self._broken: str | None = None
        self._machine = {
            name: device.machine.setting(name, knob.paths, knob.module)
            for name, knob in recipe.knobs.named().items()
            if knob.scope == "machine"
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, first: BaseException | None = None, *_: object) -> None:
        try:
            self.stop()
        except NatgaugeError as error:
            if first is None:
                raise
            # The user must read the first error; this one follows it.
            first.add_note(str(error))

    def prepare(self, demand: DeviceDemand) -> None:
        """See that all is there and large enough for the demand; nothing is changed yet."""
        refuse_lacking(self.recipe, self.device, lambda snippet: not self._run("check", snippet, how="may fail").status)
        for setting in self._machine.values():
            setting.settle()
        self._emptying = emptying_of(self.recipe, self._wishes.emptying)
        self._choose(self._within_memory(demand), {})

    def start(self) -> None:
        """Set the gateway up, wait until it is ready, set its knobs and empty it."""
        if self._demand is None:
            raise RuntimeError("prepare the gateway before it is started")
        self._set_machine()
        self._begun = True
        self._set_up()
        # It has just been started: no other way of emptying would do more.
        self._empty_by(emptying_of(self.recipe, None))

    def fit(self, demand: DeviceDemand) -> None:
        """Set a running gateway for another demand; values raised for an earlier one do not count."""
        self._fit(self._within_memory(demand))

    def _fit(self, demand: DeviceDemand) -> None:
        self._choose(demand, self._machine_found())
        self._set_machine()
        self._set_device()

    def _choose(self, demand: DeviceDemand, found: Mapping[str, int]) -> None:
        """Choose values for a demand, and refuse it where they are not enough; `found` ones count, not present ones."""
        present = {name: knob.read() for name, knob in self._machine.items()}
        self._knobs.take(self.recipe.knobs.in_state(demand.state))
        self._values = choose(self.recipe, demand, self._wishes, {**self._knobs.unset(), **present, **found})
        self._demand = demand
        refuse_unfit(self.recipe, demand, self._certain(demand))
        needed = octets_needed(self.recipe, demand, self._values, present)
        refuse_short_memory(self.recipe, demand, needed, self.device.machine.free_octets())

    def outlive(self, seconds: float) -> int | None:
        """Raise the UDP time-out of a running gateway above the duration of a trial, if natgauge chose the time-out.

        Returns:
            The time-out in s; None where it cannot be raised so far, or where the user chose it.
        """
        if self._demand is None or "udp_timeout" in self._wishes.named() or "udp_timeout" not in self._values:
            return None
        # The table stays as large as it is, though its entries take memory now.
        self._fit(replace(self._demand, longest_seconds=seconds))
        timeout = self._values["udp_timeout"]
        return timeout if timeout > seconds else None

    def found_changed(self) -> str:
        """Return which global setting of its machine was changed by others since it was set; empty = none was."""
        return next(filter(None, (knob.found_changed() for knob in self._machine.values())), "")

    def confirm_ready(self) -> None:
        """Check that the gateway is still ready, for example after a trial in which no frame came through."""
        if why := self._why_not_ready():
            self._fail(f"is not ready any more: {why}")

    def empty(self) -> None:
        """Forget all connections, and see by the gateway's own count that it did."""
        self._empty_by(self._emptying)

    def _empty_by(self, emptying: Emptying | None) -> None:
        if emptying is None:
            return
        for _ in range(_EMPTY_TRIES):
            self._empty_once(emptying)
            left = self._left()
            if not left:
                return
            time.sleep(_RETRY_SECONDS)
        error_text = f"{left} connections are left after {_EMPTY_TRIES} times emptying; is there other traffic?"
        raise NotEmptyError(self._explained(error_text))

    @property
    def empties(self) -> bool:
        """Whether the gateway has connections to forget, and a verb for it."""
        return bool(self.recipe.verbs.pieces("empty"))

    @property
    def counts(self) -> bool:
        """Whether the gateway reports its own number of connections."""
        return bool(self.recipe.verbs.pieces("count"))

    def empty_timed(self) -> float:
        """Forget all connections once; seconds it took, as timed on the device (RFC 9693 section 4.8)."""
        return 0.0 if self._emptying is None else self._empty_once(self._emptying)

    def _empty_once(self, emptying: Emptying) -> float:
        """Remove all connections once; seconds it took, without the time in which the gateway starts again."""
        how: How = "must" if emptying.starts_again else "ask"
        seconds = sum(self._run("empty", piece, self._empty_seconds(), how=how).seconds for piece in emptying.run)
        if emptying.starts_again:
            self._set_up()
        return seconds

    def restart(self) -> None:
        """Stop it, whatever state it is in, and start it with the same settings."""
        demand = self._demand
        if demand is None:
            raise RuntimeError("prepare the gateway before it is restarted")
        self._broken = None
        with suppress(BrokenError):
            # What is left of a collapsed one shows when it is started.
            self.stop()
        self._broken = None
        self.prepare(demand)
        self.start()

    def restart_under_load(self) -> None:
        """Stop it and start it again while frames flow: a reset of its software (RFC 6201 section 4.2).

        The machine's settings stay, and the table is not emptied: it fills as soon as the gateway forwards again.
        """
        if not self._begun:
            raise RuntimeError("start the gateway before it is restarted")
        pieces = [*stopping(self.recipe), *starting(self.recipe)]
        # One shell for all: between two of them the gateway would wait for us.
        self._run("restart", "\n".join(f"(\n{piece}\n)" for piece in pieces), self._empty_seconds())
        self._settle()

    def count(self) -> int | None:
        """Return the gateway's own number of connections; None when it keeps none."""
        return self._counted("count")

    def count_established(self) -> int | None:
        """Return the gateway's own number of open TCP connections; None when its recipe has no command for it."""
        # Walking a table takes at most as long as emptying it.
        return self._counted("count_established", self._empty_seconds())

    def count_unexpired(self) -> int | None:
        """Return the number of connections whose time is not over; None where no command distinguishes them."""
        return self._counted("count_unexpired", self._empty_seconds())

    def _counted(self, verb: str, seconds: float = _VERB_SECONDS) -> int | None:
        pieces = self.recipe.verbs.pieces(verb)
        return self._number(verb, self._run(verb, pieces[0], seconds, how="ask").stdout) if pieces else None

    def faults(self) -> dict[str, int]:
        """Return the frames that the gateway has refused since its start, by its names of causes; empty if unknown.

        Linux: "drop" = no room in the table, "early_drop" = connections removed in favour of new ones, "insert_failed"
        = no free outside port, or two cores entered the same connection.
        """
        return self._numbers("faults")

    def lingering(self) -> dict[str, int]:
        """Return the seconds for which the gateway keeps a closed TCP connection, by the closing segment."""
        return self._numbers("lingering")

    def replied_udp_timeout(self) -> int | None:
        """Return the seconds after which a connection with frames both ways is forgotten; None where not known.

        It is the last of the gateway's UDP time-outs; the smallest of them is its setting.
        """
        return self._knobs.last("udp_timeout")

    def _numbers(self, verb: str) -> dict[str, int]:
        """Return what a verb prints in lines "name number"; empty where the recipe has no such verb."""
        pieces = self.recipe.verbs.pieces(verb)
        lines = [line for piece in pieces for line in self._run(verb, piece, how="ask").stdout.splitlines()]
        return {line.split()[0]: self._number(verb, line.split()[-1]) for line in lines if line.strip()}

    def version(self) -> tuple[str, ...]:
        """Return the versions of the programs on the device, one program per line, and whose rules it has."""
        if self._version is None:
            text = "\n".join(self._run("version", piece).stdout for piece in self.recipe.verbs.pieces("version"))
            # Software whose rules it has does not run there.
            rules = [f"rules of {self.recipe.rules_from}"] if self.recipe.rules_from else []
            self._version = (*(line.strip() for line in text.splitlines() if line.strip()), *rules)
        return self._version

    def settings(self) -> DeviceSettings:
        """Return programs and settings, read back from the device."""
        if self._demand is None:
            raise RuntimeError("prepare the gateway before its settings are read")
        every = [*(machine.values() for machine in self._machine.values()), self._knobs.files()]
        files = {path: value for values in every for path, value in values.items()}
        alike = Counter(path.name for path in files)
        has_own_timeout = self._demand.transport == "udp" and "udp_timeout" not in self._wishes.named()
        knobs = {name: knob.read() for name, knob in self._machine.items()} | self._knobs.read()
        return DeviceSettings(
            self.recipe.name,
            self.version(),
            self._demand.connections,
            knobs,
            {path.name if alike[path.name] == 1 else str(path): value for path, value in files.items()},
            dict(self._found),
            {name: value for name, value in self._machine_found().items() if name not in self._wishes.named()},
            own_timeout=self._knobs.own("udp_timeout") if has_own_timeout else None,
            emptying=None if self._emptying is None else self._wishes.emptying or BY_VERB,
            logging=self._wishes.logging,
            log_tolerance=self._wishes.log_tolerance or 0.0,
        )

    @uninterrupted()
    def stop(self) -> None:
        """Leave nothing of the gateway and put its knobs back, whatever fails; do nothing where it was not started."""
        failed: list[str] = []
        tasks: list[Callable[[], object]] = [knob.release for knob in self._machine.values()]
        if self._begun:
            stop = partial(self._run, "stop", seconds=self._empty_seconds(), how="undo")
            tasks = [self._knobs.restore, *(partial(stop, piece) for piece in stopping(self.recipe)), *tasks]
        self._begun = False
        for task in tasks:
            try:
                task()
            except NatgaugeError as error:
                failed.append(str(error))
        if failed:
            raise BrokenError(f"{self.recipe.name}: cannot be undone: {failed[0]}")

    # What follows is how it is done.

    def _set_up(self) -> None:
        for piece in starting(self.recipe):
            self._run("start", piece)
        self._settle()

    def _settle(self) -> None:
        if self.recipe.process:
            # A process answers no command before it is ready; the kernel can be set at once.
            self._await_ready()
        self._set_device()
        self._await_ready()

    def _left(self) -> int | None:
        """Return the connections that the emptied gateway still counts, after waiting at most `count_lag` seconds."""
        deadline = time.monotonic() + self.recipe.limits.count_lag
        while (left := self.count()) and time.monotonic() < deadline:
            time.sleep(_RETRY_SECONDS)
        return left

    def _within_memory(self, demand: DeviceDemand) -> DeviceDemand:
        if demand.most_held == demand.least_held:
            return demand
        return within_memory(self.recipe, demand, self.device.machine.free_octets())

    def _certain(self, demand: DeviceDemand) -> dict[str, int]:
        """Values that must suffice for a demand.

        The longest time-out of a gateway need not, where the user did not choose it: each trial is checked against it.
        """
        knob = self.recipe.knobs.in_state(demand.state).udp_timeout
        longest = None if knob is None or "udp_timeout" in self._wishes.named() else knob.maximum
        return {name: value for name, value in self._values.items() if (name, value) != ("udp_timeout", longest)}

    def _machine_found(self) -> dict[str, int]:
        """Global settings as they were before natgauge set them."""
        return {name: self._found[name] for name in self._machine if name in self._found}

    def _set_machine(self) -> None:
        for name, knob in self._machine.items():
            present = knob.read()
            self._found.setdefault(name, present)
            # A table that is to be filled has the size that was found.
            wanted = self._values.get(name, self._found[name])
            if wanted == present:
                knob.rely()
                # Another natgauge may have restored it just before this one relied on it.
                present = knob.read()
            if wanted != present:
                knob.write(wanted)

    def _set_device(self) -> None:
        self._knobs.set(self._values, self._wishes.named(), self._found)

    def _ended(self) -> str:
        """Return how one of the gateway's processes ended, in words; empty while all run."""
        for process in self.recipe.process:
            with suppress(BrokenError):
                output = self.device.run(
                    process.status_command, environment=self._environment(), timeout=_STATUS_SECONDS
                ).stdout
                if ended := process.ended(output):
                    return ended
        return ""

    def _why_not_ready(self) -> str:
        """Return what a check says that failed; empty = the gateway is ready."""
        if self._broken:
            raise BrokenError(self._broken)
        if ended := self._ended():
            self._fail(ended)
        for piece in self.recipe.verbs.pieces("check"):
            result = self._run("check", piece, how="may fail")
            if result.status:
                return _said(result, piece)
        return ""

    def _await_ready(self) -> None:
        seconds = max([_READY_SECONDS, *(process.ready_seconds for process in self.recipe.process)])
        deadline = time.monotonic() + seconds
        while why := self._why_not_ready():
            if time.monotonic() > deadline:
                self._break(f"is not ready within {seconds:g} s: {why}")
            time.sleep(_RETRY_SECONDS)

    def _run(
        self,
        verb: str,
        snippet: str,
        seconds: float = _VERB_SECONDS,
        *,
        variables: Mapping[str, str] | None = None,
        how: How = "must",
    ) -> CommandResult:
        """Run a snippet; one that hangs, or fails although it may not, breaks the gateway, unless it only asks."""
        if self._broken and how != "undo":
            raise BrokenError(self._broken)
        give_up = self._break if how in ("must", "undo") else self._fail
        try:
            result = self.device.run(snippet, environment={**self._environment(), **(variables or {})}, timeout=seconds)
        except BrokenError as error:
            give_up(f"{verb}: {error}")
        if result.status and how != "may fail":
            give_up(f"{verb} failed with exit status {result.status}: {_said(result, snippet)}")
        return result

    def _environment(self) -> dict[str, str]:
        demand = self._demand
        ranges = (
            {"NG_CONNECTIONS": demand.connections, "NG_SOURCE_ADDRESSES": demand.source_addresses} if demand else {}
        )
        values = {f"NG_{name.upper()}": value for name, value in self._values.items()}
        sets = demand.port_sets.environment(demand.source_addresses) if demand and demand.port_sets else {}
        blocks = self.recipe.limits.port_blocks
        sets = sets if blocks is None else blocks.environment()
        own = {name: Template(text).safe_substitute(sets) for name, text in self.recipe.environment.items()}
        local = self.device.machine.has_tester_files
        folder = {RECIPE_FOLDER: str(self.recipe.origin.parent.resolve())} if local else {}
        return {**own, **sets, **folder, **{name: str(value) for name, value in {**ranges, **values}.items()}}

    def _empty_seconds(self) -> float:
        connections = self._demand.most_held if self._demand else 0
        return _VERB_SECONDS + connections * _EMPTY_SECONDS_PER_CONNECTION

    def _number(self, verb: str, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            self._fail(f"{verb} printed {text.strip()[:60]!r}, which is no whole number")

    def _break(self, what: str) -> NoReturn:
        """Mark the gateway as broken, because a failed step leaves it in an unknown state; raise the error."""
        message = self._explained(what, self._ended())
        self._broken = self._broken or message
        raise BrokenError(message)

    def _fail(self, what: str) -> NoReturn:
        """Raise the error of a step that changed nothing and may be tried again, unless a process has ended."""
        ended = self._ended()
        message = self._explained(what, ended)
        if ended:
            self._broken = self._broken or message
        raise BrokenError(message)

    def _explained(self, what: str, ended: str = "") -> str:
        end = f"; {ended}" if ended and ended not in what else ""
        return f"{self.recipe.name} on device {self.device.name}: {what}{end}"


def _said(result: CommandResult, snippet: str) -> str:
    """Return the last words of a snippet that failed; of a silent one, its exit status and its text.

    A program that reads the snippet's only file as its input calls it so, and a reader knows it by its name.
    """
    files = named_in(snippet)
    said = result.said.replace("/dev/stdin:", f"{files[0]}:") if len(files) == 1 else result.said
    return said or f"exit status {result.status}, and it said nothing: {in_a_line(snippet)}"


class Chain:
    """Gateways from the Initiator to the Responder (a single one is a chain of one).

    Use it as a context manager: what was started is stopped in reverse order on leaving.
    """

    def __init__(self, gateways: Sequence[Gateway], holder: int = 0) -> None:
        """Nothing is touched."""
        self.gateways = tuple(gateways)
        self.holder = self.gateways[holder]
        self._started = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._started.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def start(self, demand: DeviceDemand) -> None:
        """Check every gateway against the demand, then start them all."""
        for gateway in self.gateways:
            gateway.prepare(demand)
        for gateway in self.gateways:
            self._started.enter_context(gateway)
            gateway.start()

    def fit(self, demand: DeviceDemand) -> None:
        """Set what is started for another demand."""
        for gateway in self.gateways:
            gateway.fit(demand)

    def outlive(self, seconds: float) -> int | None:
        """Raise the UDP time-out of the gateway that holds the state, as `Gateway.outlive` does."""
        return self.holder.outlive(seconds)

    @property
    def empties(self) -> bool:
        """Whether the device has connections to forget."""
        return self.holder.empties

    @property
    def counts(self) -> bool:
        """Whether the device reports its number of connections."""
        return self.holder.counts

    def empty(self) -> None:
        """Forget all connections, everywhere."""
        for gateway in self.gateways:
            gateway.empty()

    def empty_timed(self) -> float:
        """Empty the table that holds the connections with one command; its seconds, as timed on the device."""
        return self.holder.empty_timed()

    def count(self) -> int | None:
        """Return the number of connections in the table that holds them; None where the device cannot report it."""
        return self.holder.count()

    def count_established(self) -> int | None:
        """Return the number of open TCP connections in the table that holds them; None where it cannot be read."""
        return self.holder.count_established()

    def count_unexpired(self) -> int | None:
        """Return the number of connections in the table that holds them whose time is not over; None = not known."""
        return self.holder.count_unexpired()

    def lingering(self) -> dict[str, int]:
        """Return the seconds for which the table keeps a closed TCP connection, by the closing segment."""
        return self.holder.lingering()

    def replied_udp_timeout(self) -> int | None:
        """Return that of the gateway that holds the state, as `Gateway.replied_udp_timeout`."""
        return self.holder.replied_udp_timeout()

    def free_octets(self) -> int:
        """Return the available memory of the machine that holds the connections, in octets."""
        return self.holder.device.machine.free_octets()

    def strays(self) -> dict[str, int]:
        """Return the connections in gateways that must hold none, by the device's name; only where there are any."""
        others = [gateway for gateway in self.gateways if gateway is not self.holder]
        return {gateway.device.name: count for gateway in others if (count := gateway.count())}

    def faults(self) -> dict[str, int]:
        """Return the frames refused so far, by the gateway's own names of causes, with the device's name in a chain."""
        if len(self.gateways) == 1:
            return self.holder.faults()
        return {
            f"{gateway.device.name} {cause}": number
            for gateway in self.gateways
            for cause, number in gateway.faults().items()
        }

    def object_caches(self) -> ObjectCaches:
        """Return the object caches of the kernel of the machine that holds the table; empty where not known."""
        return self.holder.device.machine.object_caches()

    def found_changed(self) -> str:
        """Return which global setting of a gateway was changed by others since it was set; empty = none was."""
        return next(filter(None, (gateway.found_changed() for gateway in self.gateways)), "")

    def confirm_ready(self) -> None:
        """Check that every gateway is still ready."""
        for gateway in self.gateways:
            gateway.confirm_ready()

    def restart(self) -> None:
        """Restart every gateway with the same settings."""
        for gateway in self.gateways:
            gateway.restart()

    def restart_under_load(self) -> None:
        """Stop and start the gateway that holds the state while frames flow (RFC 6201 section 4.2)."""
        self.holder.restart_under_load()

    def settings(self) -> DeviceSettings:
        """Return programs and settings of the gateway that holds the state, with the versions of all gateways."""
        return replace(self.holder.settings(), version=self._versions())

    def _versions(self) -> tuple[str, ...]:
        """Lines of all gateways, each once, the holder's first; gateways of one recipe are of one version."""
        of_recipe: dict[str, tuple[str, ...]] = {}
        for gateway in (self.holder, *self.gateways):
            if gateway.recipe.name not in of_recipe:
                of_recipe[gateway.recipe.name] = gateway.version()
        return tuple(dict.fromkeys(line for lines in of_recipe.values() for line in lines))

    def as_dict(self) -> Mapping[str, Any]:
        """Return the settings of all gateways as plain values; for a single gateway, its own settings."""
        own = self.holder.settings().as_dict()
        if len(self.gateways) == 1:
            return own
        return {**own, "chain": [gateway.settings().as_dict() for gateway in self.gateways]}

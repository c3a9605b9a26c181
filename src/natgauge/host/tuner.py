# SPDX-License-Identifier: Apache-2.0
"""Settings of the tester machine that move figures: looked at, set for measuring, put back as they were found.

Every knob is taken in the order of `KNOBS`; what it had before is in a journal.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

from natgauge.errors import HostError, UsageError
from natgauge.host.knobs import (
    CheckedSetting,
    Coalescing,
    EnergySaving,
    FlowHash,
    Governor,
    IrqAffinity,
    Offloads,
    Pause,
    Queues,
    Smt,
    TunedMachine,
    TuningKnob,
)
from natgauge.host.private_files import FILE_MODE, FOLDER_MODE, RUN, Content, UndoJournal, private, unwritable

_INTERRUPTS: Final = IrqAffinity()
#: SMT first: cores that go have no governor to set and take no interrupts, and those that come back have one. Queues
#: before what belongs to each queue. Interrupts last: both move them.
KNOBS: Final[tuple[TuningKnob, ...]] = (
    Smt(),
    Governor(),
    Queues(),
    FlowHash(),
    Coalescing(),
    Pause(),
    Offloads(),
    EnergySaving(),
    _INTERRUPTS,
)

_BY_NAME: Final[Mapping[str, TuningKnob]] = {knob.name: knob for knob in KNOBS}

Done = Literal["set", "restored", "as found", "gone", "changed", "failed"]
#: After these something is left to do.
UNDONE: Final[frozenset[Done]] = frozenset({"changed", "failed"})


#: In a memory file system: a reboot empties it, and restores most of these settings, too. It has its own folder,
#: because labs have any names in theirs.
STATE: Final = RUN / "host" / "found.json"


@dataclass(frozen=True, slots=True)
class Changed:
    """One setting that was changed."""

    knob: str
    key: str
    found: str
    set: str


class _Content(Content):
    items: list[Changed]


class HiddenStateError(HostError):
    """The file belongs to another user, and only that user may see it."""


class State:
    """The settings to restore, as their file has them; only one process at a time changes it."""

    def __init__(self, path: Path) -> None:
        self._journal = UndoJournal(path, _Content, "put the settings back by hand, then delete it")
        try:
            self._journal.read()
        except PermissionError as error:
            raise HiddenStateError(
                f"{path}: is private; run as root to see what natgauge host tune has changed"
            ) from error

    @property
    def items(self) -> tuple[Changed, ...]:
        """Every change, in the order in which they were made."""
        return tuple(Changed(**item) for item in self._journal.items)

    def of(self, knob: str, key: str) -> Changed | None:
        """Return the stored change of a setting."""
        return next((item for item in self.items if (item.knob, item.key) == (knob, key)), None)

    def take(self, changed: Changed) -> None:
        """Store a change, in place of an earlier change of the same setting."""
        same = (item for item in self._journal.items if (item["knob"], item["key"]) == (changed.knob, changed.key))
        self._journal.record(asdict(changed), instead_of=next(same, None))

    def drop(self, changed: Changed) -> None:
        """Remove the change of a setting; after the last, remove the file."""
        same = (changed.knob, changed.key)
        if left := [item for item in self._journal.items if (item["knob"], item["key"]) != same]:
            self._journal.shorten(left)
        else:
            self._journal.items = []
            self._journal.remove()


def read(path: Path = STATE) -> tuple[Changed, ...]:
    """Return the settings that restoring would put back; empty where there is no file."""
    return State(path).items


@contextmanager
def state(path: Path) -> Iterator[State]:
    """The file, to be changed."""
    try:
        path.parent.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        if path.parent.parent == RUN:
            private(RUN)
        private(path.parent)
        # A file of its own: every user may lock a folder that the user can enter.
        handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise unwritable(path.parent, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError("another natgauge changes settings of this machine now; wait until it has ended") from None
        yield State(path)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class TuningStep:
    """Result of a change of one setting."""

    knob: str
    key: str
    done: Done
    text: str


def check(ports: Sequence[str] | None = None, *, machine: TunedMachine | None = None) -> list[CheckedSetting]:
    """Look at every setting, of these ports or, for None, of all that have a card; nothing is changed."""
    place = machine or TunedMachine()
    chosen = cards(place) if ports is None else _existing(place, ports)
    needed = place.uplinks() if chosen else frozenset[str]()
    return [setting for knob in KNOBS for setting in _checked(knob, place, chosen, needed)]


def cards(machine: TunedMachine) -> list[str]:
    """Interfaces with a device behind them."""
    return sorted(path.parent.name for path in machine.path("/sys/class/net").glob("*/device"))


def _checked(
    knob: TuningKnob, machine: TunedMachine, ports: Sequence[str], needed: Collection[str]
) -> Iterator[CheckedSetting]:
    try:
        for setting in knob.find(machine, ports):
            port = knob.port_of(setting.key)
            if setting.better is None:
                yield setting
            elif port in needed:
                # `tune` refuses it.
                yield replace(setting, what=f"{setting.what}; natgauge leaves the port with the default route as it is")
            else:
                tunes = ["natgauge", "host", "tune", *([] if port is None else ["--ports", port])]
                yield replace(setting, mend=shlex.join(tunes))
    except HostError as error:
        yield CheckedSetting(
            name=knob.name, state="warning", what=str(error), at="-", cause=knob.why, source=knob.source
        )


def tune(ports: Sequence[str] = (), *, machine: TunedMachine | None = None, path: Path = STATE) -> list[TuningStep]:
    """Set recommended values, of the whole machine and of these ports; a file records the present values first."""
    place = machine or TunedMachine()
    chosen = _existing(place, ports)
    needed = place.uplinks() if chosen else frozenset[str]()
    for port in chosen:
        if port in needed:
            raise UsageError(
                f"port {port}: has the default route, and changing it may cut the machine off; name test ports only"
            )
    steps = []
    with state(path) as kept:
        # Of all knobs before any is changed: cores that go take the affinity of interrupts with them.
        looked = check(chosen, machine=place)
        before = {(setting.name, setting.key): setting.value for setting in looked if setting.value is not None}
        if _move_interrupts(setting.name for setting in looked if setting.better is not None):
            _write_down_interrupts(place, chosen, kept)
        for knob in KNOBS:
            try:
                settings = [setting for setting in knob.find(place, chosen) if setting.better is not None]
            except HostError as error:
                steps.append(TuningStep(knob.name, "-", "failed", str(error)))
                continue
            for setting in settings:
                first = before.get((knob.name, setting.key), str(setting.value))
                steps.append(_set(knob, place, setting, first, kept))
        _note_moved_interrupts(place, kept)
    return steps


def _move_interrupts(knobs: Iterable[str]) -> bool:
    """Whether a change of one of these knobs moves interrupts."""
    return any(knob.moves_interrupts for name in knobs if (knob := _BY_NAME.get(name)))


def _write_down_interrupts(machine: TunedMachine, ports: Sequence[str], kept: State) -> None:
    """Write down what interrupts of all cards, and of these ports, have before other changes move them.

    Of such an interrupt the value that was set is the one that was found: whatever it is later, other changes made it.
    """
    for setting in _INTERRUPTS.find(machine, sorted({*cards(machine), *ports})):
        if setting.value is not None and kept.of(setting.name, setting.key) is None:
            kept.take(Changed(setting.name, setting.key, setting.value, setting.value))


def _note_moved_interrupts(machine: TunedMachine, kept: State) -> None:
    """Keep those interrupts that other changes moved or removed, and forget those that are as they were found."""
    for item in kept.items:
        if item.knob == _INTERRUPTS.name and item.set == item.found:
            now = _now(_INTERRUPTS, machine, item.key)
            if now == item.found:
                kept.drop(item)
            elif now is not None:
                kept.take(replace(item, set=now))


def _set(knob: TuningKnob, machine: TunedMachine, setting: CheckedSetting, first: str, kept: State) -> TuningStep:
    """Change one setting, written down before."""
    known = kept.of(knob.name, setting.key)
    first = known.found if known else first
    mine = Changed(knob.name, setting.key, first, str(setting.better))
    kept.take(mine)
    refused = ""
    try:
        knob.put(machine, setting.key, str(setting.better))
    except HostError as error:
        refused = str(error)
    now = _now(knob, machine, setting.key)
    if now == setting.value:
        if known:
            kept.take(known)
        elif now == first:
            kept.drop(mine)
        why = refused or "it was taken for nothing, without a word"
        return TuningStep(knob.name, setting.key, "failed", f"still {setting.value}, not {setting.better}: {why}")
    if now is not None:
        # Drivers round values, so the value that is read afterwards is the one that `tune` set.
        kept.take(Changed(knob.name, setting.key, first, now))
    return TuningStep(knob.name, setting.key, "set", f"{setting.value} -> {now}")


def _now(knob: TuningKnob, machine: TunedMachine, key: str) -> str | None:
    try:
        return knob.read(machine, key)
    except HostError:
        return None


def restore(*, force: bool = False, machine: TunedMachine | None = None, path: Path = STATE) -> list[TuningStep]:
    """Put back previous values. A value that another program changed since is reported and kept.

    Args:
        force: put back what another program changed, too, and forget what a port had that does not exist any more.
    """
    place = machine or TunedMachine()
    order = {knob.name: number for number, knob in enumerate(KNOBS)}
    steps = []
    with state(path) as kept:
        written_down = {(item.knob, item.key) for item in kept.items if item.set == item.found}
        for item in sorted(_released(place, kept), key=lambda item: order.get(item.knob, len(order))):
            done, text = _put_back(item, place, force=force)
            # An interrupt that nobody moved was only written down.
            if done != "as found" or (item.knob, item.key) not in written_down:
                steps.append(TuningStep(item.knob, item.key, done, text))
            if done not in UNDONE:
                kept.drop(item)
    return steps


def _released(machine: TunedMachine, kept: State) -> list[Changed]:
    """Return what is to be put back. Interrupts that are as `tune` left them count as moved by other changes.

    For threads and queues that are put back move them before it is their turn.
    """
    items = list(kept.items)
    if not _move_interrupts(item.knob for item in items):
        return items
    for number, item in enumerate(items):
        if item.knob == _INTERRUPTS.name and _now(_INTERRUPTS, machine, item.key) == item.set:
            items[number] = replace(item, set=item.found)
            # Undoing needs no room on the disk: without it only a kill before the end leaves some to --force.
            with suppress(HostError):
                kept.take(items[number])
    return items


def _put_back(changed: Changed, machine: TunedMachine, *, force: bool) -> tuple[Done, str]:
    knob = _BY_NAME.get(changed.knob)
    if knob is None:
        return "failed", "this natgauge has no such knob; use the one that set it"
    port = knob.port_of(changed.key)
    if port is not None and not machine.has_port(port) and not machine.hides_port(port):
        text = f"port {port}: does not exist here now; was {changed.found}"
        if force:
            return "gone", text
        return "failed", f"{text}; run natgauge host restore where it exists, or with --force, which forgets it"
    try:
        return _returned(knob, machine, changed, force=force)
    except HostError as error:
        return "failed", str(error)


def _returned(knob: TuningKnob, machine: TunedMachine, changed: Changed, *, force: bool) -> tuple[Done, str]:
    now = knob.read(machine, changed.key)
    if not now:
        return "gone", f"is no longer there; was {changed.found}"
    if now == changed.found:
        return "as found", f"{now} already"
    if now != changed.set != changed.found and not force:
        text = f"{now} now, though natgauge had set {changed.set}: somebody else changed it; found was {changed.found}"
        return "changed", text
    knob.put(machine, changed.key, changed.found)
    if (then := knob.read(machine, changed.key)) != changed.found:
        return "failed", f"{then}, though {changed.found} was to be put back"
    return "restored", f"{now} -> {changed.found}"


def _existing(machine: TunedMachine, ports: Sequence[str]) -> list[str]:
    for number, port in enumerate(ports):
        if not port or "/" in port or port.startswith(("-", ".")) or not machine.has_port(port):
            if machine.hides_port(port):
                raise UsageError(
                    f"port {port!r}: exists, but /sys shows the interfaces of another network namespace; enter the "
                    f"namespace with a /sys of its own: ip netns exec, or unshare -m and mount -t sysfs sysfs /sys"
                )
            raise UsageError(f'port {port!r}: does not exist; "ip link" lists those there are')
        if port in ports[:number]:
            raise UsageError(f"port {port!r}: is named twice; name each once")
    return list(ports)

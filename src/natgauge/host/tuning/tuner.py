# SPDX-License-Identifier: Apache-2.0
"""Every knob looked at, set for measuring, or put back, in the order of `KNOBS`; restoring has the reverse order."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from natgauge.errors import HostError, UsageError
from natgauge.host.tuning.changes import STATE, Changed, State, state
from natgauge.host.tuning.contract import CheckedSetting, TunedMachine, TuningKnob
from natgauge.host.tuning.core_knobs import Governor, IrqAffinity, Smt
from natgauge.host.tuning.port_knobs import Coalescing, EnergySaving, FlowHash, Offloads, Pause, Queues

#: SMT first: cores that go have no governor to set and take no interrupts. Queues before what belongs to each queue.
KNOBS: Final[tuple[TuningKnob, ...]] = (
    Smt(),
    Governor(),
    Queues(),
    FlowHash(),
    Coalescing(),
    Pause(),
    Offloads(),
    EnergySaving(),
    IrqAffinity(),
)


_BY_NAME: Final[Mapping[str, TuningKnob]] = {knob.name: knob for knob in KNOBS}

Done = Literal["set", "restored", "as found", "gone", "changed", "failed"]
#: After these something is left to do.
UNDONE: Final[frozenset[Done]] = frozenset({"changed", "failed"})


@dataclass(frozen=True, slots=True)
class TuningStep:
    """Result of a change of one setting."""

    knob: str
    key: str
    done: Done
    text: str


def check(ports: Sequence[str] | None = None, *, machine: TunedMachine | None = None) -> list[CheckedSetting]:
    """Look at every setting; nothing is changed.

    Args:
        ports: to look at; None = all that have a card.
    """
    place = machine or TunedMachine()
    chosen = cards(place) if ports is None else _existing(place, ports)
    return [setting for knob in KNOBS for setting in _checked(knob, place, chosen)]


def cards(machine: TunedMachine) -> list[str]:
    """Interfaces with a device behind them."""
    return sorted(path.parent.name for path in machine.path("/sys/class/net").glob("*/device"))


def _checked(knob: TuningKnob, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
    try:
        for setting in knob.find(machine, ports):
            port = setting.key.split()[0]
            tunes = ["natgauge", "host", "tune", *(["--ports", port] if port in ports else [])]
            yield setting if setting.better is None else replace(setting, mend=shlex.join(tunes))
    except HostError as error:
        yield CheckedSetting(
            name=knob.name, state="warning", what=str(error), at="-", cause=knob.why, source=knob.source
        )


def tune(ports: Sequence[str] = (), *, machine: TunedMachine | None = None, path: Path = STATE) -> list[TuningStep]:
    """Set recommended values; a file records the present values first.

    Args:
        ports: ports whose settings are changed, too; empty = only settings of the whole machine.
    """
    place = machine or TunedMachine()
    chosen = _existing(place, ports)
    for port in chosen:
        if port in _default_routes(place):
            raise UsageError(
                f"port {port}: has the default route, and changing it may cut the machine off; name test ports only"
            )
    steps = []
    with state(path) as kept:
        # Of all knobs before any is changed: cores that go take the affinity of interrupts with them.
        before = {
            (setting.name, setting.key): setting.value
            for setting in check(chosen, machine=place)
            if setting.value is not None
        }
        for knob in KNOBS:
            try:
                settings = [setting for setting in knob.find(place, chosen) if setting.better is not None]
            except HostError as error:
                steps.append(TuningStep(knob.name, "-", "failed", str(error)))
                continue
            for setting in settings:
                first = before.get((knob.name, setting.key), str(setting.value))
                steps.append(_set(knob, place, setting, first, kept))
    return steps


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
    """Put back previous values, last change first. A value that another program changed since is reported and kept."""
    place = machine or TunedMachine()
    steps = []
    with state(path) as kept:
        for item in reversed(list(kept.items)):
            step = _put_back(item, place, force=force)
            steps.append(step)
            if step.done not in UNDONE:
                kept.drop(item)
    return steps


def _put_back(changed: Changed, machine: TunedMachine, *, force: bool) -> TuningStep:
    knob = _BY_NAME.get(changed.knob)
    if knob is None:
        return TuningStep(
            changed.knob, changed.key, "failed", "this natgauge has no such knob; use the one that set it"
        )
    try:
        return _returned(knob, machine, changed, force=force)
    except HostError as error:
        return TuningStep(changed.knob, changed.key, "failed", str(error))


def _returned(knob: TuningKnob, machine: TunedMachine, changed: Changed, *, force: bool) -> TuningStep:
    now = knob.read(machine, changed.key)
    if not now:
        return TuningStep(changed.knob, changed.key, "gone", f"is no longer there; was {changed.found}")
    if now == changed.found:
        return TuningStep(changed.knob, changed.key, "as found", f"{now} already")
    if now != changed.set and not force:
        text = f"{now} now, though natgauge had set {changed.set}: somebody else changed it; found was {changed.found}"
        return TuningStep(changed.knob, changed.key, "changed", text)
    knob.put(machine, changed.key, changed.found)
    if (then := knob.read(machine, changed.key)) != changed.found:
        return TuningStep(changed.knob, changed.key, "failed", f"{then}, though {changed.found} was to be put back")
    return TuningStep(changed.knob, changed.key, "restored", f"{now} -> {changed.found}")


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


def _default_routes(machine: TunedMachine) -> set[str]:
    """Interfaces that have one (proc_net_route: destination and mask are 0; ipv6_route: a prefix of no bits)."""
    four = [line.split() for line in (machine.text("/proc/net/route") or "").splitlines()[1:]]
    six = [line.split() for line in (machine.text("/proc/net/ipv6_route") or "").splitlines()]
    interfaces = {words[0] for words in four if len(words) > 7 and words[1] == words[7] == "00000000"}
    return interfaces | {words[9] for words in six if len(words) > 9 and words[1] == "00" and words[9] != "lo"}

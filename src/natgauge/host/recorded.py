# SPDX-License-Identifier: Apache-2.0
"""Settings that stand in results: of a port of the tester, and of another machine where its devices are.

The knobs are those of `natgauge host tune`. For another machine they read the output of one script and write shell
text; a lab runs both there (`natgauge.labs.contract.FarSettings`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from natgauge.errors import HostError
from natgauge.host.knobs import Coalescing, FlowHash, Governor, IrqAffinity, Queues, TunedMachine, TuningKnob
from natgauge.host.network_ports import FLOWS, Part
from natgauge.host.programs import SECTION, sections_of

#: Name of the parameter in results, and the knob; queues before what belongs to each queue.
_KNOBS: Final[Mapping[str, TuningKnob]] = {
    "device_governor": Governor(),
    "device_queues": Queues(),
    "device_flow_hash": FlowHash(),
}
#: Beginning of a line of ethtool's output, and the letter for it.
_LETTERS: Final = {
    "L2DA": "m", "VLAN tag": "v", "L3 proto": "t", "IP SA": "s", "IP DA": "d", "L4 bytes 0 & 1": "f",
    "L4 bytes 2 & 3": "n", "Discard": "r",
}  # fmt: skip
_HEADINGS: Final = re.compile(r"^(?:Pre-set maximums|Current hardware settings):", re.MULTILINE)
_NUMBER: Final = re.compile(r"^(RX|TX|Combined):\s+(\d+)$", re.MULTILINE)
_FILES: Final = (
    "/sys/devices/system/cpu/online /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor "
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_available_governors"
)
_OF_A_PORT: Final[Mapping[str, TuningKnob]] = {
    "queues": Queues(),
    "flow_hash": FlowHash(),
    "coalescing": Coalescing(),
    "irq_affinity": IrqAffinity(),
}


def script(interfaces: Sequence[str]) -> str:
    """Return shell text that prints what `values` and `changes` read; what a machine lacks is left out."""
    text = [
        f'for file in {_FILES}; do [ ! -r "$file" ] || {{ echo "{SECTION}file $file"; cat "$file"; }}; done',
    ]
    for name in interfaces:
        queries = (("-l", name), *(("-n", name, "rx-flow-hash", flow) for flow in FLOWS))
        text += [f"echo '{SECTION}{shlex.join(query)}'; ethtool {shlex.join(query)} 2> /dev/null" for query in queries]
    return "\n".join([*text, ":"])


def values(text: str, interfaces: Sequence[str]) -> dict[str, object]:
    """Return the settings in the script's output by the names of `_KNOBS`; None = the machine reports none."""
    machine = _Snapshot(sections=sections_of(text))
    governors = {setting.value for setting in _KNOBS["device_governor"].find(machine, ()) if setting.value is not None}

    def of_port(name: str, port: str) -> str | None:
        return ", ".join(setting.value for setting in _KNOBS[name].find(machine, [port]) if setting.value) or None

    return {
        "device_governor": ", ".join(sorted(governors)) or None,
        **{name: [of_port(name, port) for port in interfaces] for name in ("device_queues", "device_flow_hash")},
    }


def changes(text: str, interfaces: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each setting with a better value: its words, and shell text that sets and undoes it."""
    for knob in _KNOBS.values():
        for setting in knob.find(_Snapshot(sections=sections_of(text)), interfaces):
            if setting.value is not None and setting.better is not None:
                yield (
                    f"{knob.name} of {setting.key} from {setting.value} to {setting.better}",
                    _as_shell(knob, setting.key, setting.better),
                    _as_shell(knob, setting.key, setting.value),
                )


@dataclass(frozen=True, slots=True)
class _Snapshot(TunedMachine):
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        lines = self.sections.get(f"file {path}")
        return None if lines is None else "\n".join(lines).strip()

    def port_values(self, port: str, part: Part) -> Mapping[str, str]:
        if part == "hash":
            return {flow: _hashed(self._output("-n", port, "rx-flow-hash", flow)) for flow in FLOWS}
        parts = _HEADINGS.split(self._output("-l", port))
        if part not in ("queues", "most queues") or len(parts) != 3:
            return {}
        return {kind.lower(): number for kind, number in _NUMBER.findall(parts[1 if part == "most queues" else 2])}

    def _output(self, *arguments: str) -> str:
        """Return the output of ethtool; empty where the driver has no such setting."""
        return "\n".join(self.sections.get(shlex.join(arguments), ()))


@dataclass(frozen=True, slots=True)
class _ShellText(TunedMachine):
    """A machine of which nothing is changed: each change becomes a line of shell text."""

    lines: list[str] = field(default_factory=list)

    def write(self, path: str, value: str) -> None:
        quoted = shlex.quote(path)
        self.lines.append(f"[ ! -e {quoted} ] || echo {shlex.quote(value)} > {quoted}")

    def set_port(self, port: str, part: Part, values: Mapping[str, str]) -> None:
        option = {"queues": ["-L", port], "hash": ["-N", port, "rx-flow-hash"]}[part]
        words = [word for pair in values.items() for word in pair]
        interface = shlex.quote(port)
        self.lines.append(f"! ip link show {interface} > /dev/null 2>&1 || ethtool {shlex.join([*option, *words])}")


def _hashed(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    return "".join(letter for words, letter in _LETTERS.items() if any(line.startswith(words) for line in lines))


def _as_shell(knob: TuningKnob, key: str, value: str) -> str:
    text = _ShellText()
    knob.put(text, key, value)
    return "\n".join(text.lines)


def settings_of(port: str, machine: TunedMachine | None = None) -> Mapping[str, str | None]:
    """Return queues, flow hash, coalescing and interrupts of a port in the form of their knobs; None = not reported.

    Interrupt numbers change from boot to boot, so the record contains only the cores, in the order of the numbers.
    """
    place = machine or TunedMachine()
    return {name: _value(knob, place, port) for name, knob in _OF_A_PORT.items()}


def _value(knob: TuningKnob, machine: TunedMachine, port: str) -> str | None:
    try:
        values = [setting.value for setting in knob.find(machine, [port]) if setting.value is not None]
        wait = knob.wait(machine, port) if isinstance(knob, Coalescing) else None
    except HostError:
        return None
    return ", ".join([*values, *([f"rx-usecs {wait}"] if wait is not None else [])]) or None

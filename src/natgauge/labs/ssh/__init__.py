# SPDX-License-Identifier: Apache-2.0
"""`--lab ssh`: two ports of this machine, and between them devices on other ones, reached over OpenSSH."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from natgauge.errors import BrokenError, HostError, NatgaugeError, about
from natgauge.inputs.input import FileText, Text, chosen, spoken, wrong
from natgauge.inputs.measuring_types import by_device
from natgauge.labs.common.port_options import INTERFACE, NAMESPACE, PortOptions
from natgauge.labs.contract import Kind, LabNeeds

if TYPE_CHECKING:
    from natgauge.labs.ssh.lab import ChosenMachine, RemoteLab


@dataclass(frozen=True, kw_only=True, slots=True)
class SshOptions(PortOptions):
    """Options of the lab: the machine, and its two interfaces. They are cabled to the two ports of `PortOptions`."""

    ssh_host: str | None = chosen(
        None,
        "Machine of the device, in ssh syntax: root@HOST or ssh://root@HOST:PORT; of a chain also "
        "ce=root@HOST,pe=root@HOST",
        type=Text("HOST"),
        moves_figures=False,
    )
    ssh_config: str | None = chosen(
        None, "Configuration file for ssh", type=FileText(), moves_figures=False, default="that of ssh"
    )
    ssh_netns: str | None = chosen(None, "Network namespace from which ssh connects", **NAMESPACE)
    device_inside: str | None = chosen(None, "Interface of the device's machine towards the Initiator", **INTERFACE)
    device_outside: str | None = chosen(None, "Interface of the device's machine towards the Responder", **INTERFACE)
    boot_command: str | None = chosen(
        None,
        "Shell command on this host that boots the device's machine with $NG_CORES processors",
        type=Text("CMD"),
        label="command that boots the device's machine",
        moves_figures=False,
    )
    tune_device: bool = chosen(
        False,
        "Set queues, flow hash and governor of the device's machine for measuring, and restore them afterwards",
        label="tuned device",
        # The settings themselves are recorded.
        moves_figures=False,
    )


def plan(name: str, options: SshOptions, need: LabNeeds) -> RemoteLab:
    """Two ports and a machine; they are looked at when the lab is entered."""
    # What may be chosen is known without what looks at ports and machines.
    from natgauge.labs.ssh.lab import RemoteLab  # noqa: PLC0415

    for option in ("ssh_host", "device_inside", "device_outside", "initiator_port", "responder_port"):
        if getattr(options, option) is None:
            raise wrong(
                option,
                "is missing; the ssh lab needs a machine, its two interfaces and the two ports here that they are "
                "cabled to",
            )
    return RemoteLab(
        name,
        need,
        machines=_machines(options, need.devices),
        ports=(
            (options.initiator_port or "", options.initiator_netns),
            (options.responder_port or "", options.responder_netns),
        ),
        sender_cpus=options.sender_cores,
        allow_addresses=options.allow_addresses,
        device_cores=options.device_cores,
        boot=options.boot("boot command", options.boot_command),
        tune_device=options.tune_device,
    )


def _machines(options: SshOptions, devices: Sequence[str]) -> list[ChosenMachine]:
    """Return the machines from the Initiator to the Responder; neighbouring devices on one host share the machine."""
    from natgauge.labs.ssh.lab import ChosenMachine  # noqa: PLC0415
    from natgauge.labs.ssh.remote import SshHost  # noqa: PLC0415

    hosts = _by_device("ssh_host", options.ssh_host, devices)
    networks = _by_device("ssh_netns", options.ssh_netns, devices)
    inside = _by_device("device_inside", options.device_inside, devices)
    outside = _by_device("device_outside", options.device_outside, devices)
    known = [(hosts[device] or "", networks[device]) for device in devices]
    groups = [list(group) for _, group in groupby(range(len(devices)), lambda at: known[at])]
    machines = []
    for group in groups:
        destination, network = known[group[0]]
        if known.count((destination, network)) != len(group):
            raise wrong(
                "ssh_host",
                f"{destination} has the device {devices[group[0]]} and others that are no neighbours of it; give "
                "neighbouring devices of the chain to one machine",
            )
        host = SshHost(destination, options.ssh_config, network).checked()
        interfaces = (inside[devices[group[0]]] or "", outside[devices[group[-1]]] or "")
        machines.append(ChosenMachine(host, interfaces, len(group)))
    return machines


def _by_device(name: str, text: str | None, devices: Sequence[str]) -> dict[str, str | None]:
    """Return the value of each device: its own, "ce=A,pe=B", or the same for all."""
    with about(name):
        named = None if text is None else by_device(spoken(name), text)
    if named is None:
        return dict.fromkeys(devices, text)
    which = f"the chain has {', '.join(devices)}" if len(devices) > 1 else f"the only device is {devices[0]}"
    if unknown := sorted(named.keys() - set(devices)):
        raise wrong(name, f"{unknown[0]} is no device; {which}")
    if without := [device for device in devices if device not in named]:
        raise wrong(name, f"{without[0]} has none; {which}, name one for each")
    return {device: named[device] for device in devices}


def undo(directory: Path, settings: Mapping[str, Any], items: Sequence[Mapping[str, str]]) -> list[str]:
    """Undo on the other machines what a lab recorded; see `natgauge.labs.contract.Kind`."""
    from natgauge.labs.ssh.remote import SshHost, control_of, end_orphans, give_back  # noqa: PLC0415

    done: list[str] = []
    errors: list[NatgaugeError] = []
    for at, (host, token) in enumerate(zip(settings["hosts"], settings["tokens"], strict=True)):
        of_host = [item for item in items if item["at"] == str(at)]
        end_orphans(control_of(directory, at))
        try:
            ours = give_back(SshHost(**host), token, [item["undo"] for item in of_host])
        except (BrokenError, HostError) as error:
            errors.append(error)
        else:
            done += [item["says"] for item in of_host] if ours else []
    if errors:
        raise errors[0]
    return done


KIND = Kind(
    summary="devices on other machines, reached over OpenSSH",
    options=SshOptions,
    plan=plan,
    cores_option="device_cores",
    cores_command="boot_command",
    undo=undo,
)

# SPDX-License-Identifier: Apache-2.0
"""`--lab ssh`: two ports of this machine, and between them devices on another one, reached over OpenSSH."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from natgauge.errors import UsageError
from natgauge.inputs.input import described
from natgauge.inputs.types import Text
from natgauge.labs.common.port_options import PortOptions
from natgauge.labs.contract import Kind, LabNeeds

if TYPE_CHECKING:
    from natgauge.labs.ssh.lab import RemoteLab


@dataclass(frozen=True, kw_only=True, slots=True)
class SshOptions(PortOptions):
    """Options of the lab: the machine, and its two interfaces. They are cabled to the two ports of `PortOptions`.

    Attributes:
        ssh_host: destination for `ssh`; the login must be root.
        ssh_config: the user's own ssh_config; None = the default of `ssh`.
        ssh_netns: local namespace from which the machine is reached; None = the caller's own.
        device_inside: the machine's interface towards the Initiator.
        device_outside: the machine's interface towards the Responder.
        boot_command: shell command on the tester's host that boots the machine with $NG_CORES processors.
        tune_device: queues, flow hash and governor of the machine are set for measuring, and restored afterwards.
    """

    ssh_host: str | None = field(
        default=None,
        metadata=described(
            "Machine of the device, in ssh syntax: root@HOST or ssh://root@HOST:PORT",
            type=Text("HOST"),
            moves_figures=False,
        ),
    )
    ssh_config: str | None = field(
        default=None,
        metadata=described("Configuration file for ssh", type=Text("FILE"), moves_figures=False, default="that of ssh"),
    )
    ssh_netns: str | None = field(
        default=None,
        metadata=described("Network namespace from which ssh connects", type=Text("NETNS"), moves_figures=False),
    )
    device_inside: str | None = field(
        default=None,
        metadata=described(
            "Interface of the device's machine towards the Initiator", type=Text("IFACE"), moves_figures=False
        ),
    )
    device_outside: str | None = field(
        default=None,
        metadata=described(
            "Interface of the device's machine towards the Responder", type=Text("IFACE"), moves_figures=False
        ),
    )
    boot_command: str | None = field(
        default=None,
        metadata=described(
            "Shell command on this host that boots the device's machine with $NG_CORES processors",
            type=Text("CMD"),
            label="command that boots the device's machine",
            moves_figures=False,
        ),
    )
    tune_device: bool = field(
        default=False,
        metadata=described(
            "Set queues, flow hash and governor of the device's machine for measuring, and restore them afterwards",
            label="tuned device",
            # The settings themselves are recorded.
            moves_figures=False,
        ),
    )


def plan(name: str, options: SshOptions, need: LabNeeds) -> RemoteLab:
    """Two ports and a machine; they are looked at when the lab is entered.

    Raises:
        UsageError: something is not named, or is wrong.
    """
    # What may be chosen is known without what looks at ports and machines.
    from natgauge.labs.ssh.lab import RemoteLab  # noqa: PLC0415
    from natgauge.labs.ssh.openssh import SshHost  # noqa: PLC0415

    named = {
        "ssh_host": options.ssh_host,
        "device_inside": options.device_inside,
        "device_outside": options.device_outside,
        "initiator_port": options.initiator_port,
        "responder_port": options.responder_port,
    }
    for option, value in named.items():
        if value is None:
            raise UsageError(
                f"--{option.replace('_', '-')} is missing; the ssh lab needs a machine, its two interfaces and the "
                "two ports here that they are cabled to"
            )
    texts = {option: value or "" for option, value in named.items()}
    return RemoteLab(
        name,
        need,
        host=SshHost(texts["ssh_host"], options.ssh_config, options.ssh_netns).checked(),
        interfaces=(texts["device_inside"], texts["device_outside"]),
        ports=((texts["initiator_port"], options.initiator_netns), (texts["responder_port"], options.responder_netns)),
        sender_cpus=options.sender_cores,
        allow_addresses=options.allow_addresses,
        device_cores=options.device_cores,
        boot=options.boot("boot command", options.boot_command),
        tune_device=options.tune_device,
    )


def undo(directory: Path, settings: Mapping[str, Any], items: Sequence[Mapping[str, str]]) -> list[str]:
    """Undo on the other machine what a lab recorded; see `natgauge.labs.contract.Kind`.

    Raises:
        BrokenError: one of the items could not be undone; all others were tried.
        HostError: the machine cannot be reached.
    """
    from natgauge.labs.ssh.openssh import CONTROL, SshHost, end_orphans  # noqa: PLC0415
    from natgauge.labs.ssh.remote import give_back  # noqa: PLC0415

    end_orphans(directory / CONTROL)
    ours = give_back(SshHost(**settings["host"]), settings["token"], [item["undo"] for item in items])
    return [item["says"] for item in items] if ours else []


KIND = Kind(
    summary="devices on another machine, reached over OpenSSH",
    options=SshOptions,
    plan=plan,
    cores_option="device_cores",
    cores_command="boot_command",
    undo=undo,
)

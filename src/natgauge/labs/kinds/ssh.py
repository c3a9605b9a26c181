# SPDX-License-Identifier: Apache-2.0
"""`--lab ssh`: two ports of this machine, and between them devices on another one, reached over OpenSSH."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from natgauge.errors import UsageError
from natgauge.host.cpus import cpu_list
from natgauge.labs.contract import Kind, Need
from natgauge.options import choice

if TYPE_CHECKING:
    from natgauge.labs.remote_lab import RemoteLab


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the user names: the machine, its two interfaces and the two ports here that they are cabled to.

    Attributes:
        ssh_host: as `ssh` takes it; root is who logs in.
        ssh_config: the user's own ssh_config; None = as `ssh` finds it.
        ssh_netns: namespace of ours from which the machine is reached; None = our own.
        device_inside: the machine's interface towards the Initiator.
        device_outside: the machine's interface towards the Responder.
        initiator_port: interface here on the Initiator's side.
        initiator_netns: namespace that holds the port; None = our own.
        responder_port: as for the Initiator.
        responder_netns: as for the Initiator.
        sender_cores: the tester's; None = the first usable one.
        allow_addresses: the tester's ports may carry IP addresses.
    """

    ssh_host: str | None = field(
        default=None, metadata=choice("The device's machine, as ssh takes it: root@HOST, ssh://root@HOST:PORT", "HOST")
    )
    ssh_config: str | None = field(default=None, metadata=choice("ssh_config to use", "FILE", default="ssh's own"))
    ssh_netns: str | None = field(default=None, metadata=choice("Namespace from which the machine is reached", "NETNS"))
    device_inside: str | None = field(
        default=None, metadata=choice("The machine's interface towards the Initiator", "IFACE")
    )
    device_outside: str | None = field(
        default=None, metadata=choice("The machine's interface towards the Responder", "IFACE")
    )
    initiator_port: str | None = field(
        default=None, metadata=choice("The tester's port on the Initiator's side", "IFACE")
    )
    initiator_netns: str | None = field(default=None, metadata=choice("Namespace that holds the port", "NETNS"))
    responder_port: str | None = field(
        default=None, metadata=choice("The tester's port on the Responder's side", "IFACE")
    )
    responder_netns: str | None = field(default=None, metadata=choice("Namespace that holds the port", "NETNS"))
    sender_cores: str | Sequence[int] | None = field(default=None, metadata=choice("The tester's cores", "LIST"))
    allow_addresses: bool = field(default=False, metadata=choice("The ports may carry IP addresses"))


def plan(name: str, options: Options, need: Need) -> RemoteLab:
    """Two ports and a machine; they are looked at when the lab is entered.

    Raises:
        UsageError: something is not named, or is wrong.
    """
    # What may be chosen is known without what looks at ports and machines.
    from natgauge.labs.openssh import Host  # noqa: PLC0415
    from natgauge.labs.remote_lab import RemoteLab  # noqa: PLC0415

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
    told = {option: value or "" for option, value in named.items()}
    return RemoteLab(
        name,
        need,
        host=Host(told["ssh_host"], options.ssh_config, options.ssh_netns).checked(),
        interfaces=(told["device_inside"], told["device_outside"]),
        ports=((told["initiator_port"], options.initiator_netns), (told["responder_port"], options.responder_netns)),
        sender_cpus=cpu_list(options.sender_cores),
        allow_addresses=options.allow_addresses,
    )


KIND = Kind(summary="devices on another machine, reached over OpenSSH", options=Options, plan=plan)

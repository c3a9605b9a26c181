# SPDX-License-Identifier: Apache-2.0
"""`--lab wire`: two existing ports; the device between them is not ours to touch."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from natgauge.inputs.input import ABOUT_RANGE, Text, chosen, wrong
from natgauge.labs.common.addresses import parse_range
from natgauge.labs.common.port_options import PortOptions
from natgauge.labs.contract import Addresses, ExternalDevice, FreshTrials, Kind, LabNeeds, Port
from natgauge.words import Family

if TYPE_CHECKING:
    from natgauge.labs.wire.lab import WireLab


#: A device that forgets nothing for longer is emptied by a command.
_LONGEST_TIMEOUT: Final = 86_400
_MAC: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
#: Options that name the device on a link, or a command on this host.
_GATEWAY: Final[Mapping[str, Any]] = {"type": Text("MAC|IP"), "moves_figures": False}
_COMMAND: Final[Mapping[str, Any]] = {"type": Text("CMD"), "moves_figures": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class WireOptions(PortOptions):
    """Options of the lab: the device's MAC or IP address on the link of each port, and facts about the device."""

    initiator_gateway: str | None = chosen(None, "Address of the device on the Initiator's link", **_GATEWAY)
    responder_gateway: str | None = chosen(None, "Address of the device on the Responder's link", **_GATEWAY)
    pool: str | None = chosen(None, "Outside addresses of the device", **ABOUT_RANGE)
    mapped_addresses: str | None = chosen(
        None, "Addresses to which a stateless translator maps the source addresses, in the same order", **ABOUT_RANGE
    )
    initiator_background: str | None = chosen(
        None, "IPv6 addresses of the tester for --foreground-share, on the Initiator's side", **ABOUT_RANGE
    )
    responder_background: str | None = chosen(
        None, "IPv6 addresses of the tester for --foreground-share, on the Responder's side", **ABOUT_RANGE
    )
    device_timeout: int | None = chosen(
        None,
        "UDP timeout of the device, after which it has removed a connection",
        "s",
        (1, _LONGEST_TIMEOUT),
        label="time-out of the device",
        moves_figures=False,
    )
    fresh_trials: FreshTrials = chosen(
        "new-tuples", "How a trial avoids the connections of earlier trials", label="new connections of each trial"
    )
    empty_command: str | None = chosen(
        None,
        "Shell command on this host that clears the device's connection table",
        label="command that empties the device",
        **_COMMAND,
    )
    count_command: str | None = chosen(
        None,
        "Shell command on this host that prints the device's number of connections",
        label="command that counts its connections",
        **_COMMAND,
    )
    reboot_command: str | None = chosen(
        None,
        "Shell command on this host that restarts the device, with $NG_CORES cores, and ends when it is ready",
        label="command that restarts the device",
        **_COMMAND,
    )


def plan(name: str, options: WireOptions, need: LabNeeds) -> WireLab:
    """Two ports; they are looked at when the lab is entered."""
    # What may be chosen is known without what looks at ports.
    from natgauge.labs.wire.lab import WireLab  # noqa: PLC0415

    return WireLab(
        _port("initiator", options.initiator_port, options.initiator_gateway, options.initiator_netns),
        _port("responder", options.responder_port, options.responder_gateway, options.responder_netns),
        name=name,
        families=need.families,
        sender_cpus=options.sender_cores,
        allow_addresses=options.allow_addresses,
        pool=_addresses("pool", options.pool, need.families[1]) or need.pool,
        mapped=_addresses("mapped_addresses", options.mapped_addresses, need.families[1]),
        background=_background(options, wanted=need.background),
        **({} if need.nat64_prefix is None else {"nat64_prefix": need.nat64_prefix}),
        external=_external(options),
        device_cores=options.device_cores,
        boot=options.boot("reboot command", options.reboot_command),
    )


def _external(options: WireOptions) -> ExternalDevice:
    for name, command in (("empty", options.empty_command), ("count", options.count_command)):
        if command is not None and not command.strip():
            raise wrong(f"{name}_command", "is empty; name a shell command, or leave it out")
    if options.count_command is not None and options.empty_command is None:
        raise wrong(
            "count_command",
            "without --empty-command its number says nothing of one trial; give that one, too, or leave it out",
        )
    return ExternalDevice(
        timeout=options.device_timeout,
        fresh_trials=options.fresh_trials,
        empty_command=options.empty_command,
        count_command=options.count_command,
    )


def _background(options: WireOptions, *, wanted: bool) -> tuple[Addresses, Addresses] | None:
    """Return the tester's hosts of native IPv6, which only the user knows: the device must route to them."""
    given = {name: getattr(options, name) for name in ("initiator_background", "responder_background")}
    if not wanted:
        for name, text in given.items():
            if text is not None:
                raise wrong(name, f"{text}, but no frames are native IPv6; add --foreground-share, or leave it out")
        return None
    first, last = (_addresses(name, text, "ipv6") for name, text in given.items())
    if first is None or last is None:
        name = "initiator_background" if first is None else "responder_background"
        raise wrong(name, "is missing; native IPv6 frames (foreground share) need addresses on both sides")
    if first.overlaps(last):
        raise wrong("responder_background", f"{last} overlaps {first} of the Initiator's side; name others")
    return first, last


def _addresses(name: str, text: str | None, family: Family) -> Addresses | None:
    return None if text is None else parse_range(name, text, family)


def _port(side: str, interface: str | None, gateway: str | None, netns: str | None) -> Port:
    if interface is None:
        raise wrong(f"{side}_port", "is missing; the wire lab needs both ports and the device's address on each")
    if gateway is None:
        raise wrong(f"{side}_gateway", "is missing; the wire lab needs the port and the device's address on it")
    if _MAC.fullmatch(gateway):
        return Port(interface, netns, gateway.lower(), None)
    try:
        address = ipaddress.ip_address(gateway)
    except ValueError:
        raise wrong(f"{side}_gateway", f"{gateway!r} is neither a MAC nor an IP address") from None
    return Port(interface, netns, None, str(address))


KIND = Kind(
    summary="two existing ports; natgauge does not control the device",
    options=WireOptions,
    plan=plan,
    cores_option="device_cores",
    cores_command="reboot_command",
)

# SPDX-License-Identifier: Apache-2.0
"""`--lab netns`: namespaces of this machine, made for the measurement or kept up by `natgauge lab up`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from natgauge.errors import UsageError
from natgauge.host.machine import check_cpus, usable_cpus
from natgauge.inputs.input import chosen, wrong
from natgauge.inputs.measuring_types import MOST_CORES, CoreChoice, CoreList, DeviceCoreList, cores_in, format_cores
from natgauge.labs.contract import Addresses, Kind, LabNeeds

if TYPE_CHECKING:
    from natgauge.labs.netns.lab import NetnsLab


@dataclass(frozen=True, kw_only=True, slots=True)
class NetnsOptions:
    """Options of the lab; None = the lab's choice."""

    placement: Literal["shared", "isolated"] | None = chosen(
        None,
        "Cores of the device: the sender's (shared), or its own (isolated)",
        label="placement",
        default="shared; isolated for devices with processes",
    )
    cores: CoreChoice | None = chosen(
        None,
        "Cores of the device, e.g. 0,2-3, or of each device of a chain, e.g. ce=2-3,pe=4-5",
        type=DeviceCoreList(),
        label="device CPUs",
        parameter="device_cpus",
        moves_figures=False,
    )
    cores_each: int | None = chosen(
        None,
        "Number of cores that each device of a chain has for itself",
        check=(1, MOST_CORES),
        label="cores of each device",
        # Recorded as `device_cores` and `cores_of_devices`, as cores that are named are.
        moves_figures=False,
        default="the devices share the cores",
    )
    sender_cores: tuple[int, ...] | None = chosen(
        None,
        "Cores of the tester",
        type=CoreList(),
        label="sender CPUs",
        parameter="sender_cpus",
        moves_figures=False,
        default="the least busy core",
    )
    server_cores: tuple[int, ...] | None = chosen(
        None,
        "Cores of a real server behind the device",
        type=CoreList(),
        label="server's cores",
        parameter="server_cpus",
        moves_figures=False,
        default="the cores of neither tester nor device",
    )
    ring: int | None = chosen(
        None, "Size of the receive ring of each core of an isolated device", "frames", default="512"
    )


def plan(name: str, options: NetnsOptions, need: LabNeeds) -> NetnsLab:
    """A lab to be made, or the kept one of this name, with which the options must agree."""
    # What may be chosen is known without what makes namespaces.
    from natgauge.labs.netns.lab import DEFAULT_RING, NetnsLab, arguments_of  # noqa: PLC0415

    kept = NetnsLab.adopt(name)
    if kept is not None:
        _refuse_other(kept, options, need)
        kept.hosts = max(kept.hosts, need.hosts)
        _refuse_xdp_twice(kept.placement, need)
        return kept
    cores_of = _cores_by_device(options, need)
    senders, devices = choose_cores(options, need)
    _refuse_xdp_twice(_placement(options, need), need)
    return NetnsLab(
        name,
        **arguments_of(need),
        placement=_placement(options, need),
        sender_cpus=senders,
        device_cpus=devices,
        cores_of=cores_of,
        server_cpus=options.server_cores,
        ring=DEFAULT_RING if options.ring is None else options.ring,
        idle_core=True,
        asks_server=need.asks_server,
    )


def _refuse_xdp_twice(placement: str, need: LabNeeds) -> None:
    """Refuse the placement whose XDP programs act as the devices' network cards, where a device has its own."""
    if need.own_xdp and placement == "isolated":
        raise UsageError(
            "placement isolated: the device has XDP programs of its own at its interfaces, and this placement puts "
            "others there; use --placement shared"
        )


def _placement(options: NetnsOptions, need: LabNeeds) -> Literal["shared", "isolated"]:
    """A process in user space does not run in the sender's context: on its core the two would push each other aside.

    XDP programs of the device are where placement `isolated` has its own.
    """
    if options.placement is not None:
        return options.placement
    if options.cores_each is not None or isinstance(options.cores, Mapping):
        return "isolated"
    return "isolated" if need.own_processes and not need.own_xdp and len(usable_cpus()) > 1 else "shared"


def _cores_by_device(options: NetnsOptions, need: LabNeeds) -> Mapping[str, tuple[int, ...]] | None:
    """Return the cores of each device by its name; None where all devices share the cores."""
    chosen, each = options.cores, options.cores_each
    if each is None and not isinstance(chosen, Mapping):
        return None
    what = "cores each" if each is not None else "cores by device"
    if options.placement == "shared":
        raise UsageError(
            f"{what}: in the shared placement all devices work on the sender's core; leave them out, or choose "
            "placement isolated",
            at="cores" if each is None else "cores_each",
        )
    if each is None:
        return chosen if isinstance(chosen, Mapping) else None
    if chosen is not None:
        raise wrong("cores_each", "cores names the cores, too; leave one out")
    senders = options.sender_cores or ()
    free = [cpu for cpu in usable_cpus() if cpu not in senders]
    needed, count = each * len(need.devices), len(need.devices)
    if needed + (not senders) > len(free):
        tester = "" if senders else " and 1 of the tester"
        raise wrong(
            "cores_each",
            f"{each} for each of {count} devices{tester} are {needed + (not senders)} cores, this machine has "
            f"{len(free)}{' in addition to those of the tester' if senders else ''}; use fewer",
        )
    own = free[-needed:]
    return {device: tuple(own[at * each : (at + 1) * each]) for at, device in enumerate(need.devices)}


def choose_cores(options: NetnsOptions, need: LabNeeds) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Sender and device cores as asked for; in `shared` placement one choice is both, in `isolated` they differ."""
    by_device = _cores_by_device(options, need)
    senders, devices = options.sender_cores, cores_in(options.cores if by_device is None else by_device) or None
    if _placement(options, need) == "shared":
        return (senders if senders is not None else devices), devices
    if senders is None and devices is not None:
        device_cpus = set(check_cpus(devices, "device cores", "cores"))
        left = [cpu for cpu in usable_cpus() if cpu not in device_cpus]
        senders = tuple(left[:1]) or None
    return senders, devices


def _refuse_other(kept: NetnsLab, options: NetnsOptions, need: LabNeeds) -> None:
    by_device = _cores_by_device(options, need)
    options_of: tuple[tuple[str, Any, Any], ...] = (
        ("placement", options.placement, kept.placement),
        ("cores", choose_cores(options, need)[1], kept.device_cpus),
        ("cores by device", by_device if len(need.devices) > 1 else None, kept.cores_of),
        ("sender cores", options.sender_cores, kept.sender_cpus),
        ("server cores", options.server_cores, kept.server_cpus),
        ("ring", options.ring, kept.ring),
        ("families", need.families, kept.families),
        ("devices", need.devices, tuple(device.name for device in kept.devices)),
        ("native IPv6", need.background or None, kept.background),
        ("NAT64 prefix", need.nat64_prefix, kept.nat64_prefix),
        # A gateway that expects other ones would translate to addresses that the lab does not have.
        ("outside addresses", _outside(need.pool), _outside(kept.pool)),
        ("a server", need.asks_server or None, kept.asks_server),
    )
    for what, wanted, present in options_of:
        if wanted is not None and wanted != present:
            raise UsageError(
                f"lab {kept.name}: is kept with {what} {_words(present)}, not {_words(wanted)}; leave that out, choose "
                f'another --lab-name, or take it down with "natgauge lab down {kept.name}"'
            )


def _outside(pool: Addresses | None) -> str:
    return str(pool or "of the device alone")


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return DeviceCoreList().write(value)
    if isinstance(value, tuple):
        return format_cores(value) if all(isinstance(item, int) for item in value) else " to ".join(value)
    return str(value)


KIND = Kind(
    summary="network namespaces on this host",
    options=NetnsOptions,
    plan=plan,
    quick=True,
    shares_core=True,
    can_be_kept=True,
)

# SPDX-License-Identifier: Apache-2.0
"""A lab with a started gateway: what trials, comparisons and audits stand on.

It knows no question, no metric and no engine. The order is: refuse wrong options before anything starts; check this
host; make the lab; start the device, or adapt its limits to a further demand. At the end everything is undone.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from ipaddress import IPv6Network
from typing import Any, Protocol, Self, TypedDict

from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.gateways.far_side import variables
from natgauge.gateways.gateway import Chain, Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.preparation import DeviceSettings, emptying_of, logged, refuse_absent_files, way_of
from natgauge.gateways.recipe import Recipe, load
from natgauge.host import capabilities, programs, recorded
from natgauge.host.machine import usable_cpus
from natgauge.host.settings import waits_told
from natgauge.inputs.input import inputs_of, percent, wrong
from natgauge.inputs.measuring_types import format_cores
from natgauge.inputs.question import Cell, DeviceOptions
from natgauge.labs import kinds
from natgauge.labs.common.addresses import nat64_prefix as parse_prefix
from natgauge.labs.common.addresses import parse_range, pool_of, refuse_pool, wrong_prefix
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import DEVICES, Addresses, Device, Lab, LabNeeds
from natgauge.setup import log_collector
from natgauge.setup.traffic import address_plan, chosen_sets, hosts_of, make_plan, refuse_sets, vlans, with_pool

#: Makes the gateway that runs a recipe on a device with these options.
Player = Callable[[Recipe, Device, DeviceOptions], Gateway]


class Stages(Protocol):
    """Receives the stages of the work. It must return quickly and never raise."""

    def stage(self, text: str) -> None:
        """A new part of the work begins, for example "building the lab"."""


class SilentStages:
    """Ignores the stages."""

    def stage(self, text: str) -> None:
        """Ignore the stage."""


class SetupChoices(TypedDict, total=False):
    """What a `Setup` can be given beside its cell."""

    lab: Lab | None
    play: Player
    holder: int | None
    processes: tuple[str, ...]


class Setup:
    """The lab, device and traffic of one cell. Use it as a context manager.

    Attributes:
        device: the started devices; None before the first demand, and for external devices.
        processes: processes that were found to handle the device's frames, whatever its recipe says.
        collector: what a device logs to that sends its records; None = it does not, or writes a file.
    """

    def __init__(  # noqa: PLR0913 - one argument per choice, all but the cell by keyword
        self,
        cell: Cell,
        stages: Stages | None = None,
        *,
        lab: Lab | None = None,
        play: Player = Gateway,
        holder: int | None = None,
        processes: tuple[str, ...] = (),
    ) -> None:
        """Plan the setup; nothing is started.

        `lab` is a planned one; None = planned from the cell. `holder` is the index of the device that holds the
        connections, where the lab has several; None = as the recipe says.
        """
        self.cell = cell
        self.recipe: Recipe = load(cell.gateway).carrying(cell.traffic.transport)
        self.processes = processes
        self.holder = self.recipe.holder if holder is None else holder
        self._is_own_lab = lab is None
        self.lab: Lab = self._planned_lab() if lab is None else lab
        for part in self.played if self.lab.devices else ():
            refuse_absent_files(part)
        addresses = address_plan(self.lab.ground, self.recipe)
        addresses = replace(addresses, port_sets=chosen_sets(self.recipe, cell.device))
        if not self.lab.devices and not self.recipe.half:
            # A recipe does not state the port sets of an external device, but the rule of one half.
            refuse_sets(self.recipe, cell.device)
            addresses = replace(addresses, port_sets=None)
        self.traffic = make_plan(cell.traffic, addresses)
        self._vlans = self._taken_vlans()
        self.address_plan = with_pool(addresses, self.traffic)
        self.device: Chain | None = None
        self.collector: log_collector.Collector | None = None
        self._stages = stages or SilentStages()
        self._play = play
        self._made = ExitStack()
        self._fitted: DeviceDemand | None = None
        self._beside = ExitStack()
        if (tolerance := cell.device.log_tolerance) is not None and cell.device.logging is None:
            raise wrong("log_tolerance", f"{percent(tolerance)}, but the gateway does not log; name a way (--logging)")
        if self.lab.devices:
            emptying_of(self.recipe, cell.device.emptying)
            logged(self.recipe, cell.device.logging)
            self._planned_collector()
        else:
            _refuse_settings(self.lab, self.recipe, cell.device)
            if cell.lab.outside_addresses is not None:
                raise wrong(
                    "outside_addresses", f"lab {self.lab.name} has those of the device; give --pool A-B instead"
                )

    def _taken_vlans(self) -> dict[str, str]:
        """Return the VLAN tags as the gateway's snippets know them; a gateway that takes none is refused."""
        tags = vlans(self.traffic.frames)
        if self.cell.background and any(tag.each_source for tag in tags.values()):
            raise wrong("initiator_vlan", "background traffic has hosts of its own without a VLAN; leave out the +")
        for side in tags:
            if len(self.lab.devices) > 1:
                raise wrong(f"{side}_vlan", f"{self.recipe.name} is a chain, whose devices take no tags; leave it out")
            if self.lab.devices and not all(part.limits.takes_vlans for part in self.recipe.of_devices(1)):
                raise wrong(
                    f"{side}_vlan",
                    f"{self.recipe.name} takes no VLAN tags in lab {self.lab.name}; leave it out, measure a device on "
                    "a wire, or let the recipe take them (limits.takes_vlans)",
                )
        named = {"initiator": "NG_INSIDE", "responder": "NG_OUTSIDE"}
        texts = {f"{named[side]}_VLAN": str(tag) for side, tag in tags.items()}
        each = {
            f"{named[side]}_VLANS": str(self.traffic.sources if tag.each_source else 1) for side, tag in tags.items()
        }
        return {**texts, **each}

    def _planned_lab(self) -> Lab:
        traffic, wishes = self.cell.traffic, self.cell.lab
        if self.recipe.relay_alone:
            traffic = replace(traffic, subscribers=None)  # their router is the device's only neighbour there
        hosts = hosts_of(traffic, (self.recipe.initiator_family, self.recipe.responder_family))
        kind, background = kinds.get(wishes.lab), self.cell.background
        need = need_of(self.recipe, hosts=hosts, background=background, outside_addresses=wishes.outside_addresses)
        need = replace(need, own_processes=self.own_processes)
        if wishes.nat64_prefix is not None:
            need = replace(need, nat64_prefix=_fitting_prefix(self.recipe, wishes.nat64_prefix))
        return kind.plan(wishes.lab_name, self.cell.kind_options or kind.options(), need)

    @property
    def own_processes(self) -> bool:
        """Whether the device works in processes of its own: as its recipe says, or as found on the machine."""
        return self.recipe.own_processes or bool(self.processes)

    @property
    def played(self) -> tuple[Recipe, ...]:
        """The recipe of each of the lab's devices."""
        return self.recipe.of_devices(len(self.lab.devices))

    @property
    def known_limits(self) -> dict[str, int]:
        """Knobs whose values the user chose, or stated for an external device."""
        wishes, external = self.cell.device, self.lab.external
        if self.lab.devices:
            return wishes.named()
        every = {"table_size": wishes.table_size, "udp_timeout": None if external is None else external.timeout}
        return {name: value for name, value in every.items() if value is not None}

    # The way up and down

    def __enter__(self) -> Self:
        """Make the lab. The device is started later, for its first demand."""
        check_host()
        self._stages.stage(f"making lab {self.lab.name}")
        self._made.enter_context(self.lab)
        # What runs beside the device is stopped before the lab is removed, also when the lab is kept.
        self._made.enter_context(self._beside)
        return self

    def __exit__(self, *exception: object) -> None:
        self.device, self._fitted, self.collector = None, None, None
        self._made.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def start(self, demand: DeviceDemand) -> DeviceSettings | None:
        """Start the device, or adapt the running device to a demand; None for an external device."""
        if not self.lab.devices:
            return None
        with waits_told(self._stages.stage):
            if self.device is None:
                self._stages.stage(f"starting {self.recipe.name}")
                # It stays where the gateway cannot be started: another demand may be smaller.
                if self.collector is None and (collector := self._planned_collector()) is not None:
                    self.collector = self._made.enter_context(collector)
                chain = self._made.enter_context(Chain(self._gateways(), self.holder))
                chain.start(demand)
                self.device = chain
            elif demand != self._fitted:
                self.device.fit(demand)
        self._fitted = demand
        return self.device.settings()

    def _planned_collector(self) -> log_collector.Collector | None:
        """Return the collector of the log; None where there is none, or it is a file."""
        if (name := self.cell.device.logging) is None:
            return None
        return log_collector.planned(self.lab.devices[self.holder], name, way_of(self.played[self.holder], name))

    def _gateways(self) -> list[Gateway]:
        """Return a gateway for each device; the user's options apply only to the gateway that holds the connections."""
        told = variables([self.address_plan.inside.device]) if self.recipe.answers_queries else {}
        recipes = self.recipe.with_variables({**told, **self._vlans}).of_devices(len(self.lab.devices))
        recipes = tuple(
            logged(recipe, self.cell.device.logging if index == self.holder else None, self._cpus_of_log)
            for index, recipe in enumerate(recipes)
        )
        return [
            self._play(recipe, device, self.cell.device if index == self.holder else DeviceOptions())
            for index, (recipe, device) in enumerate(zip(recipes, self.lab.devices, strict=True))
        ]

    @property
    def _cpus_of_log(self) -> str | None:
        """Cores of what writes the device's log; None = those of the device.

        In `shared` placement the device has the core of the sender. A program there gets half of it in turns of
        milliseconds, which stalls the sender and voids trials.
        """
        return format_cores(usable_cpus()) if self.lab.placement == "shared" else None

    def finds_processes(self) -> bool:
        """Look for processes that handle the device's frames; True = there are some of which nobody knew."""
        if self.device is None or self.lab.placement == "external":
            return False
        known = self.own_processes
        found = [name for device in self.lab.devices for name in device.frame_processes()]
        self.processes = tuple(dict.fromkeys(found)) or self.processes
        return bool(found) and not known

    def remade(self) -> None:
        """Make the lab again for a device that was found to work in processes, where natgauge chose its placement."""
        if not self._is_own_lab or self.lab.is_reused:
            return
        options = self.cell.kind_options or kinds.get(self.cell.lab.lab).options()
        # Not all kinds of labs have placements; None = the user chose none of them.
        if getattr(options, "placement", "") is None:
            names = " and ".join(self.processes)
            self._stages.stage(f"{self.recipe.name} works in a process ({names}): making its lab again for that")
            self.__exit__(None, None, None)
            self.lab = self._planned_lab()
            self.__enter__()


def _refuse_settings(lab: Lab, recipe: Recipe, wishes: DeviceOptions) -> None:
    """Refuse settings of an external device, and statements that do not apply to it; its table's limit is one."""
    if wishes.emptying is not None:
        raise UsageError(
            f"lab {lab.name}: emptying: natgauge does not control the device; leave it out, or give --empty-command"
        )
    if wishes.logging is not None:
        raise UsageError(f"lab {lab.name}: logging: natgauge does not control the device; leave it out", at="logging")
    if set(wishes.named()) - {"table_size"}:
        raise UsageError(
            f"lab {lab.name}: natgauge does not control the device, so its table and time-outs cannot be set; leave "
            "them out, or state what they are (--table-size, --device-timeout)"
        )
    statements = {**wishes.named(), **({} if lab.external is None else lab.external.parameters())}
    if statements and not recipe.stateful:
        raise wrong(min(statements), f"{recipe.name} keeps no connections, so there is nothing to forget; leave it out")


def _fitting_prefix(recipe: Recipe, chosen: str) -> IPv6Network:
    """Return the NAT64 prefix that the user chose; a gateway may have none, know one only, or some lengths only."""
    prefix, known, lengths = parse_prefix(chosen), recipe.nat64_prefix, recipe.nat64_lengths
    rule = None if recipe.port_sets is None else recipe.port_sets.prefix
    what = ""
    if not recipe.embeds:
        what = f"{prefix}, but {recipe.name} has no IPv6 addresses that embed IPv4 ones (RFC 6052); leave it out"
    elif known is not None and parse_prefix(known) != prefix:
        what = f"{recipe.name} knows only {known}, not {prefix}; leave it out"
    elif prefix.prefixlen not in lengths:
        what = f"{recipe.name} takes {' or '.join(map(str, lengths))} bits, and {prefix} has {prefix.prefixlen}"
    elif rule is not None and prefix.overlaps(rule):
        what = f"{prefix} overlaps {rule}, the rule IPv6 prefix of the subscribers; choose another"
    if what:
        raise wrong_prefix(what)
    return prefix


def need_of(
    recipe: Recipe, *, hosts: int = 1, background: bool = False, outside_addresses: int | None = None
) -> LabNeeds:
    """Return a gateway's requirements on a lab; `outside_addresses` None = those of the recipe."""
    return LabNeeds(
        families=(recipe.initiator_family, recipe.responder_family),
        devices=tuple(part.device for part in recipe.chain) or DEVICES,
        own_processes=recipe.own_processes,
        hosts=hosts,
        background=background,
        nat64_prefix=None if recipe.nat64_prefix is None else parse_prefix(recipe.nat64_prefix),
        pool=_pool_for(recipe, outside_addresses),
        own_xdp=any(played.limits.own_xdp for played in recipe.of_devices(1)),
        asks_server=recipe.asks_server,
        far_settings=recorded,
    )


def keep_lab(name: str, gateway: str | None, choices: Mapping[str, object], *, background: bool = False) -> Lab:
    """Make and keep a lab, for the gateway or, without one, with IPv4 on both sides."""
    kind = kinds.kept()
    need = LabNeeds(families=("ipv4", "ipv4"), background=background)
    if gateway is not None:
        need = need_of(load(gateway), background=background)
    inputs = inputs_of(kind.options, "place")
    chosen = {
        input_.name: input_.take(choices[input_.name]) for input_ in inputs if choices.get(input_.name) is not None
    }
    lab: Lab = kind.plan(name, kind.options(**chosen), need)
    with lab:
        lab.keep()
    return lab


def place_parameters(lab: Lab) -> dict[str, Any]:
    """Return the parameters of a lab that is up, by name; the settings of its ports only where these are real."""
    return {**lab.parameters(), **({} if lab.virtual else _of_ports(lab))}


def _of_ports(lab: Lab) -> dict[str, list[str | None]]:
    try:
        ports = (lab.initiator, lab.responder)
        settings = [inside(port.netns, partial(recorded.settings_of, port.interface)) for port in ports]
    except BrokenError:
        return {}
    return {f"port_{name}": [each[name] for each in settings] for name in settings[0]}


def check_host() -> None:
    """Check that this host can measure."""
    release = platform.release()
    version = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    if version < capabilities.LEAST_KERNEL:
        least = ".".join(map(str, capabilities.LEAST_KERNEL))
        raise HostError(f"kernel: Linux {release} is older than {least}; boot a newer one (see `natgauge doctor`)")
    programs.find("natgauge-engine")
    programs.refuse_wrong_path()
    capabilities.require("measuring", *capabilities.MEASURING)
    capabilities.refuse_lacking()


def _pool_for(recipe: Recipe, number: int | None) -> Addresses | None:
    """Return the outside addresses that a lab must have for a gateway; None = that of its interface alone."""
    if recipe.pool4 is not None:
        stated = parse_range("pool4", recipe.pool4, "ipv4")
        refuse_pool(f"pool4 of {recipe.name}", stated)
        if number not in (None, stated.count):
            raise wrong("outside_addresses", f"{number}, but the recipe of {recipe.name} names {stated}; leave it out")
        return stated
    if number in (None, 1):
        return None
    if not recipe.takes_pool:
        raise wrong(
            "outside_addresses",
            f"{number}, but the recipe of {recipe.name} has one outside address; leave it out, or let the recipe "
            "translate to $NG_POOL4_FIRST-$NG_POOL4_LAST",
        )
    return pool_of(number or 1)

# SPDX-License-Identifier: Apache-2.0
"""Recorded conditions of a measurement: each parameter that may move its figure, by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from natgauge.gateways.device_settings import DeviceSettings
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.recipe import Recipe, digest
from natgauge.labs.contract import DeviceCores, Lab
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.records.parameters import OF_HOST, OWN_TIMEOUT, Parameters
from natgauge.records.store import plain
from natgauge.setup.setup import place_parameters
from natgauge.setup.traffic import TrafficPlan
from natgauge.tester.highest import HighestRates
from natgauge.trial.bench import Bench
from natgauge.words import Placement, Side

#: Number of hexadecimal digits of the checksum that distinguishes recipes of one name.
_DIGEST_DIGITS: Final = 12
#: Parameters of the traffic that each search for a rate chooses.
_OF_A_SEARCH: Final = frozenset({"directions", "down_share", "reading_order", "foreground_share", "four_tuples"})
#: Facts of the machine that move figures, by the name they have in `natgauge.host.machine.facts`.
MACHINE: Final = (
    "natgauge", "kernel", "kernel_parameters", "cpus_online", "hypervisor", "cpu_quota", "governor", "smt",
    "mitigations", "clock_source",
)  # fmt: skip
#: Figures that are measured once a trial has passed, by their name in a campaign's journal: what the tester's receiver
#: takes of an isolated device's cores, s a frame, and what the real server answers without a device, queries/s.
RECEIVER_SECONDS: Final = "receiver_seconds"
SERVER_ALONE: Final = "server_alone"


def moving_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a machine that move figures, by the name of the parameter; None where not readable."""
    cpu = facts.get("cpu") or {}
    return {
        **{name: facts.get(name) for name in MACHINE},
        "cpu": cpu.get("model"),
        "microcode": cpu.get("microcode"),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """Conditions of a measurement.

    Attributes:
        own_processes: whether the device works in processes of its own, by its recipe or as found.
        segment_octets: size with FCS of a TCP segment without data on each side; None = frames are no TCP segments.
        rates: the tester's own highest rates, frames/s.
        device: version and knobs of the device; None for an external device.
        port_sets: port sets of its subscribers; None = it has none, or they are not known.
    """

    settings: TrialSettings
    recipe: Recipe
    traffic: TrafficPlan
    frame_octets: Mapping[Side, int]
    lab_kind: str
    lab: str
    chosen: Mapping[str, Any]
    placement: Placement
    emulated: bool
    sender_cpus: tuple[int, ...]
    device_cores: DeviceCores
    grace_seconds: float
    seed: int
    rates: HighestRates
    machine: Mapping[str, object]
    device: DeviceSettings | None
    port_sets: PortSets | None = None
    segment_octets: Mapping[Side, int] | None = None
    own_processes: bool = False


def chain_of(lab: Lab) -> dict[str, Any]:
    """Return the parameter of a chain: the names of its devices, where natgauge runs several."""
    return {"chain": [device.name for device in lab.devices]} if len(lab.devices) > 1 else {}


def record(conditions: Conditions) -> Parameters:
    """Return all parameters that decide the figures (RFC 9693 section 6), defaults filled in."""
    return Parameters.grouped(
        settings=plain(conditions.settings.parameters()),
        traffic=plain(_traffic(conditions)),
        place=plain(
            {
                **_place(conditions.lab_kind, conditions.lab, conditions, conditions.chosen),
                **({"device_caches": conditions.device_cores.caches} if conditions.device_cores.caches else {}),
                **_rates(conditions.rates),
                **moving_facts(conditions.machine),
            }
        ),
        device=plain(
            _device(conditions.recipe, conditions.device, conditions.port_sets, processes=conditions.own_processes)
        ),
    )


def gateway_parameters(bench: Bench, device: DeviceSettings | None, facts: Mapping[str, object]) -> Parameters:
    """Return all that decides the cost of a gateway that is compared in slices; `device` None = it is not ours."""
    traffic, lab, addresses = bench.traffic, bench.lab, bench.address_plan
    octets = bench.on_sides(bench.octets_on)
    return Parameters.grouped(
        traffic=plain(
            {
                "connections": traffic.connections,
                "order": traffic.order,
                "initiator_family": bench.recipe.initiator_family,
                **_ranges(traffic),
                **_sizes(traffic, octets, traffic.frame_size),
                **traffic.frames.stated,
                "seed": bench.seed,
            }
        ),
        place=plain(
            {
                **_place(bench.cell.lab.lab, lab.name, lab, {**place_parameters(lab), **chain_of(lab)}),
                **moving_facts(facts),
            }
        ),
        device=plain(_device(bench.recipe, device, addresses.port_sets, processes=bench.own_processes)),
    )


def without_search(parameters: Parameters) -> Parameters:
    """Return parameters without parameters of a search for a rate, which are equal in all comparisons by rates."""
    traffic = {name: value for name, value in parameters.traffic.items() if name not in _OF_A_SEARCH}
    return parameters.model_copy(update={"settings": {}, "traffic": traffic})


def with_receiver(parameters: Parameters, seconds: float | None) -> Parameters:
    """Add the time of the tester's receiver on an isolated device's cores, s per frame; None = not known."""
    if parameters.get("placement") != "isolated":
        return parameters
    nanoseconds = None if seconds is None else seconds * 1e9
    return parameters.model_copy(update={"place": {**parameters.place, "receiver_ns": nanoseconds}})


def with_server(parameters: Parameters, alone: float | None) -> Parameters:
    """Add the rate of the real server without a device, queries/s; None = not known."""
    if "server_version" not in parameters.place:
        return parameters
    return parameters.model_copy(update={"place": {**parameters.place, "server_alone": alone}})


def with_own_part(parameters: Parameters, own_part: Mapping[str, float]) -> Parameters:
    """Add the tester's own part, by the names of the journal; a missing figure is not known."""
    return with_server(with_receiver(parameters, own_part.get(RECEIVER_SECONDS)), own_part.get(SERVER_ALONE))


def with_neighbours(parameters: Parameters, worker: Mapping[str, Any] | None) -> Parameters:
    """Add the number of other workers that may use other cores of the machine at the same time."""
    others = 0 if worker is None else worker["beside"]
    return parameters.model_copy(update={"place": {**parameters.place, "beside": others}}) if others else parameters


def _traffic(conditions: Conditions) -> dict[str, Any]:
    traffic, octets = conditions.traffic, conditions.frame_octets
    size = traffic.frame_size if conditions.settings.query is None else octets[traffic.frame_side]
    return {
        "initiator_family": conditions.recipe.initiator_family,
        **_ranges(traffic),
        **(_sizes(traffic, octets, size) if _sends_data(conditions.settings, traffic) else {}),
        **({} if conditions.segment_octets is None else {"segment_octets": conditions.segment_octets}),
        **traffic.frames.stated,
        "grace_seconds": conditions.grace_seconds,
        "seed": conditions.seed,
    }


def _sizes(traffic: TrafficPlan, octets: Mapping[Side, int], size: int) -> dict[str, Any]:
    """Return the size of the frames, or the mean sizes of a mix and its least, on both sides.

    `octets` are those of frames without a mix, or of the Initiator's shortest one, which opens connections.
    """
    if not traffic.mixes:
        return {"frame_size": size, "frame_side": traffic.frame_side, "frame_octets": octets}
    own = {
        way: {side: mix.mean + each - traffic.frame_size for side, each in octets.items()}
        for way, mix in traffic.mixes.items()
    }
    return {"frame_side": traffic.frame_side, "mean_frame_octets": own, "least_frame_octets": octets}


def _sends_data(settings: TrialSettings, traffic: TrafficPlan) -> bool:
    """Whether frames of the chosen size are sent: segments that open and close TCP connections differ in size."""
    opened_only = traffic.transport == "tcp" and not settings.phase2_seconds
    return settings.close is None and not settings.half_open and not opened_only


def _ranges(traffic: TrafficPlan) -> dict[str, Any]:
    # A single subscriber is not recorded, so that its results are comparable with those of devices without any.
    shared = {"subscribers": traffic.subscribers} if (traffic.subscribers or 1) > 1 else {}
    addresses, ports = str(traffic.source_addresses), f"{traffic.source_ports.first}-{traffic.source_ports.last}"
    if traffic.edges is not None:
        addresses = f"{traffic.edges.map_address(0)}-{traffic.edges.map_address(traffic.sources - 1)}"
        ports = f"{ports} of each port set"
    return {
        **shared,
        "source_addresses": addresses,
        "source_address_count": traffic.sources,
        "source_ports": ports,
        "source_port_count": traffic.source_ports.count,
        "destination_addresses": str(traffic.responder_addresses),
        "destination_address_count": traffic.responder_addresses.count,
        "destination_ports": f"{traffic.destination_ports.first}-{traffic.destination_ports.last}",
        "destination_port_count": traffic.destination_ports.count,
    }


def _place(kind: str, name: str, lab: Lab | Conditions, chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "lab_kind": kind,
        "lab": name,
        "placement": lab.placement,
        "emulated": lab.emulated,
        **chosen,
        "sender_cores": len(lab.sender_cpus),
        "sender_cpus": lab.sender_cpus,
        "device_cores": lab.device_cores.count,
        "device_cpus": lab.device_cores.numbers,
    }


def _rates(rates: HighestRates) -> dict[str, Any]:
    """The tester's own on these ports; where they are not known, where the search ended at the latest."""
    name = "tester_highest" if rates.own_ports else "search_top"
    known = {f"{name}_phase1_rate": rates.phase1, f"{name}_phase2_rate": rates.phase2}
    return {"tester_highest_phase1_rate": None, "tester_highest_phase2_rate": None, **known}


def _device(recipe: Recipe, device: DeviceSettings | None, sets: PortSets | None, *, processes: bool) -> dict[str, Any]:
    known = {} if device is None else {**device.knobs, "version": device.version}
    if device is not None and device.of_host:
        known[OF_HOST] = device.of_host
    if device is not None and device.own_timeout is not None:
        known[OWN_TIMEOUT] = device.own_timeout
    if device is not None and device.emptying is not None:
        known["emptying"] = device.emptying
    if device is not None and device.logging is not None:
        known |= {"logging": device.logging, "log_tolerance": device.log_tolerance}
    return {
        "gateway": recipe.name,
        "title": recipe.title,
        "kind": recipe.kind,
        "responder_family": recipe.responder_family,
        # The name may belong to another recipe later.
        "recipe_digest": digest(recipe)[:_DIGEST_DIGITS],
        **({"own_processes": True} if processes else {}),
        **({} if sets is None else {"psid_length": sets.psid_length, "psid_offset": sets.psid_offset}),
        **_blocks(recipe, device, sets),
        **known,
    }


def _blocks(recipe: Recipe, device: DeviceSettings | None, sets: PortSets | None) -> dict[str, Any]:
    """Return the blocks of ports that subscribers have; empty where they share all ports, or none are known."""
    if sets is not None and recipe.shares_addresses:
        return {"port_blocks": sets.blocks.model_dump(), "shared_addresses": sets.shared_addresses}
    # A recipe does not state the blocks of an external device.
    blocks = None if device is None else recipe.limits.port_blocks
    return {} if blocks is None else {"port_blocks": blocks.model_dump()}

# SPDX-License-Identifier: Apache-2.0
"""The record of a measurement: its conditions, each parameter that may move the figure, by group, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from natgauge.analysis.contrast import judged, median_interval_of
from natgauge.analysis.unit_frames import (
    frames_in_all,
    frames_of,
    limiting_device,
    log_work,
    most_frames,
    most_units,
    own_work,
    share_of_link,
)
from natgauge.doubts import find
from natgauge.figure_text import in_percent, nanoseconds
from natgauge.figure_text import number as written
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.preparation import DeviceSettings
from natgauge.gateways.recipe import Recipe, as_played, digest
from natgauge.labs.contract import DeviceCores, Lab
from natgauge.metrics.catalogue import FORWARDING
from natgauge.metrics.metric import CORE_IMBALANCE
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.records.measurement import REPETITION, SHARE_OF_LINK, STATISTICS, PublishedCell, Result
from natgauge.records.parameters import GROUPS, METHODS, OF_HOST, OWN_TIMEOUT, RAISED_TIMEOUT, Parameters, joined
from natgauge.records.store import Store, plain
from natgauge.setup.setup import place_parameters
from natgauge.setup.traffic import TrafficPlan
from natgauge.statistics.summary import FigureSummary
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench
from natgauge.words import Placement, Side, enumerated

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
#: End of the names of figures of the metric cost: work of plain forwarding for the same frames.
_FORWARDING: Final = f"_{FORWARDING}"


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
    return _placed(parameters, receiver_ns=None if seconds is None else seconds * 1e9)


def with_neighbours(parameters: Parameters, worker: Mapping[str, Any] | None) -> Parameters:
    """Add the number of other workers that may use other cores of the machine at the same time."""
    others = 0 if worker is None else worker["beside"]
    return _placed(parameters, beside=others) if others else parameters


def _placed(parameters: Parameters, **facts: Any) -> Parameters:
    return parameters.model_copy(update={"place": {**parameters.place, **facts}})


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


def make(
    measured: MeasurementResult,
    parameters: Parameters,
    folder: str | None = None,
    published: tuple[PublishedCell, ...] = (),
) -> Result:
    """Put a measurement and all that was set together; the procedure's own word about its settings goes before."""
    parameters = parameters.with_settings(measured.parameters)
    if measured.raised_timeout is not None:
        parameters = parameters.with_settings({RAISED_TIMEOUT: measured.raised_timeout})
    parameters = _with_link(measured, parameters)
    summary, figures = measured.summary, measured.figures
    if (share := share_of_link(measured.metric, measured.values, parameters, figures)) is not None:
        figures[SHARE_OF_LINK] = share
    found = find(measured, parameters)
    result = Result(
        metric=measured.metric,
        unit=measured.unit,
        **{name: getattr(summary, name) for name in STATISTICS},
        median_interval=median_interval_of(measured.metric, measured.measurements, found),
        error=measured.error,
        limited_by=measured.limited_by,
        cause=measured.cause,
        doubts=found,
        trials=measured.trials,
        disturbed=measured.disturbed,
        figures=figures,
        repetitions=measured.measurements,
        parameters=parameters,
        notes=(
            *measured.notes,
            *_remarks(measured, parameters),
            *_unknown_core_work(measured, parameters),
            *chain_notes(measured.unit, figures, parameters),
        ),
        results=folder,
        published=published,
    )
    threshold = judged(result)
    return result if threshold is None else result.model_copy(update={"threshold": threshold})


def _remarks(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """Yield what follows from the parameters: of the method, the tester's own work, and what lab and device remark."""
    # How the figure follows from the RFC, for test frames that the RFC does not have.
    if (text := METHODS.get(str(parameters.get("transport")))) is not None:
        yield Note("method", text)
    rate = frames_in_all(measured.summary.median, measured.figures, parameters)
    work = own_work(measured.metric, rate, parameters)
    if work is not None:
        text = (
            f"placement shared: {nanoseconds(work.own_ns)} of {nanoseconds(work.whole_ns)} are the tester's own work, "
            f"{in_percent(work.share)}, so the rate is lower than the device's own"
        )
        yield Note("tester", text, value=work.share)
    if (text := log_work(parameters)) is not None:
        yield Note("device", text)
    words: tuple[tuple[str, NoteWord], ...] = (("port_remarks", "tester"), ("device_remarks", "device"))
    for name, word in words:
        remarks = parameters.get(name)
        yield from (Note(word, str(remark)) for remark in remarks) if isinstance(remarks, list) else ()


def _unknown_core_work(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """Yield the reason why the spread of the frames over the cores of a device with several is not known."""
    cores = parameters.get("device_cores")
    attempts = [attempt for measurement in measured.measurements for attempt in measurement.attempts]
    if not isinstance(cores, int) or cores < 2 or not attempts or CORE_IMBALANCE in measured.figures:
        return
    if any(attempt.outcome.readings.core_work for attempt in attempts):
        reason = "the deciding trials had too few frames"
    elif parameters.get("placement") == "shared":
        reason = "in shared placement each core forwards what the sender on the same core sends"
    elif parameters.get("lab_kind") == "wire":
        reason = "natgauge does not reach a device on a wire"
    else:
        reason = "the device's machine did not report its work"
    yield Note("device", f"the spread of the frames over the device's {cores} cores is not known: {reason}")


def _with_link(measured: MeasurementResult, parameters: Parameters) -> Parameters:
    """Add the most that the lab's links carry, if it has any: units of the value, or else frames/s; None = unknown."""
    if "link_speeds" not in parameters.place:
        return parameters
    of_units = bool(frames_of(measured.metric, parameters))
    most = most_units(measured.metric, parameters, measured.figures) if of_units else most_frames(parameters)
    return _placed(parameters, theoretical_maximum=most)


def of_repetitions(
    each: Sequence[Parameters], metric: str, conduct: Mapping[str, Any], own_part: Mapping[str, float]
) -> Parameters:
    """Return the parameters of a result, from those of each of its repetitions.

    `conduct` is the number of labs of the repetitions, and the seed and start time of each. `own_part` is the tester's,
    by the names of the journal; a missing figure is not known.
    """
    every = joined(each, metric)
    groups = {group: getattr(every, group) for group in GROUPS}
    parameters = Parameters.grouped(**{**groups, "place": {**every.place, **plain(conduct)}})
    parameters = with_receiver(parameters, own_part.get(RECEIVER_SECONDS))
    if "server_version" not in parameters.place:
        return parameters
    return _placed(parameters, server_alone=own_part.get(SERVER_ALONE))


def write_conditions(
    store: Store,
    parameters: Parameters,
    recipe: Recipe,
    facts: Mapping[str, object],
    device: Mapping[str, Any] | None,
) -> None:
    """Write the parameters, the recipe, and the facts of the machine and the device."""
    store.write_plan(parameters.flat())
    store.write_recipe(as_played(recipe), digest(recipe))
    store.write_environment({"machine": facts, "device": device})


def keep(
    measured: MeasurementResult,
    parameters: Parameters,
    store: Store,
    folder: Path | None = None,
    published: tuple[PublishedCell, ...] = (),
) -> Result:
    """Make the result, and write it; `folder` is the final name of the folder, None = its present one."""
    result = make(measured, parameters, str(store.folder if folder is None else folder), published)
    lines = []
    for number, (repetition, made) in enumerate(zip(result.repetitions, measured.measurements, strict=True), start=1):
        of_all = {"metric": result.metric, "unit": result.unit, "repetition": number}
        # The summary has only what follows from these.
        more = {"samples": made.sample, "disturbed": made.disturbed}
        lines.append({**of_all, **REPETITION.dump_python(repetition, mode="json"), **more})
    store.add_measurements(lines)
    store.write_summary(result.document())
    return result


def chain_notes(unit: str, figures: Mapping[str, FigureSummary], parameters: Parameters) -> Iterator[Note]:
    """Yield notes on a chain of devices: whether they shared cores, and the device that limited the chain."""
    chain = parameters.get("chain")
    if not isinstance(chain, list):
        return
    names = [str(name) for name in chain]
    if unit.endswith("/s") and parameters.get("cores_of_devices") is None:
        rates = " + ".join(f"1/{name}" for name in names)
        text = (
            f"the devices {enumerated(names)} shared their cores: the rate is 1 / ({rates}), where a name is the rate "
            "of that device alone; of devices with cores of their own it is the smallest of these rates"
        )
        yield Note("device", text)
    hops = [
        f"{name.removesuffix(_FORWARDING).replace('_', ' ')} {nanoseconds(figure.median)}"
        for name, figure in figures.items()
        if name.endswith(_FORWARDING)
    ]
    if hops:
        text = (
            f"the cost is that of {len(names)} devices in a row ({enumerated(names)}), and each is a hop; the hop of "
            f"one device that only forwards takes {', '.join(hops)} a frame"
        )
        yield Note("device", text)
    if limit := limiting_device({name: figure.median for name, figure in figures.items()}):
        device, share = limit
        of = f"{written(share)} % of the frames lost in deciding trials"
        text = f"the bottleneck of the chain was {device}: it dropped {of}"
        yield Note("device", text, value=share)

# SPDX-License-Identifier: Apache-2.0
"""One question about one gateway, answered: from names to a result in a folder, and the host left as it was found.

The order is: refuse all that can be refused without touching anything; see that this host can do it; make the lab;
start the device; prove that it forwards and that its limits fit; run the procedure; keep the result; undo everything.
"""

from __future__ import annotations

import dataclasses
import platform
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from natgauge import procedures
from natgauge.bench.lab_measurer import ABILITIES, TESTER_ABILITIES, LabMeasurer, TrialConstants, refuse_stateless
from natgauge.bench.places import (
    LabKind,
    PlaceOptions,
    WirePort,
    background_hosts,
    device_cpus,
    make_lab,
    refuse_background,
    sender_cpus,
    surroundings,
    with_idle_core,
    with_placement,
)
from natgauge.bench.traffic import LEAST_FRAME, Surroundings, TrafficOptions, TrafficPlan, check_rate, make_plan
from natgauge.bench.watch import Silent, Watch
from natgauge.campaigns.store import Store, plain
from natgauge.duts.fitness import PlanFacts, Wishes, choose, refuse_unfit
from natgauge.duts.gateway import DeviceSettings, Gateway
from natgauge.duts.recipe import Recipe, load
from natgauge.errors import HostError, UsageError
from natgauge.host import capabilities, machine, programs
from natgauge.labs.netns import NetnsLab
from natgauge.labs.wire import WireLab
from natgauge.measurer import Ability, Delays
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import FIRST_TRIAL_SECONDS, LONGEST_TRIAL_SECONDS
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.tester.doctor import LEAST_KERNEL
from natgauge.tester.selftest import FrameKind, HighestRates, highest_rates, own_delays
from natgauge.words import Family, Order

#: RFC 2544 section 23: on a wire, receivers stay open 2 s after the last frame.
WIRE_GRACE_SECONDS: Final = 2.0
#: Between namespaces nothing waits longer than a full ring takes to be worked off.
NETNS_GRACE_SECONDS: Final = 0.3
RESULTS: Final = Path("results")


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is to be measured; None = chosen by natgauge, and told in the result.

    Attributes:
        metric: a procedure's name, for example "connection-rate".
        dut: a recipe's name, or the path of a recipe file.
        traffic: four tuples and frames.
        place: lab, cores, placement.
        settings: the procedure's own, by name, for example {"error": "1%", "repeat": 10, "trial_seconds": 2.0}.
        table_size: the device's connection limit.
        hash_size: buckets of the device's connection table.
        udp_timeout: the device's UDP timeouts in seconds.
        results: folder in which the results folder is made.
        seed: of all pseudorandom choices, 0 to 2**64 - 1.
        grace_seconds: wait for the last frames of each phase, 0 to 60.
    """

    metric: str
    dut: str
    traffic: TrafficOptions = field(default_factory=TrafficOptions)
    place: PlaceOptions = field(default_factory=PlaceOptions)
    settings: Mapping[str, object] = field(default_factory=dict)
    table_size: int | None = None
    hash_size: int | None = None
    udp_timeout: int | None = None
    results: Path = RESULTS
    seed: int | None = None
    grace_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A measurement's result and where its evidence lies.

    Attributes:
        result: every repetition with its evidence, and their summary.
        document: what `--json` prints.
        folder: the results folder.
    """

    result: MeasurementResult
    document: Mapping[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class _Checked:
    """A question that nothing speaks against, as far as can be told without touching anything."""

    question: Question
    procedure: Procedure[Any]
    recipe: Recipe
    around: Surroundings
    traffic: TrafficPlan
    lab: NetnsLab | WireLab
    settings: TrialSettings
    seed: int
    grace_seconds: float


def measure(  # noqa: PLR0913 - each is a thing the user may choose, all but two have defaults
    metric: str,
    dut: str,
    *,
    connections: int | None = None,
    source_addresses: str | None = None,
    source_ports: str | None = None,
    destination_addresses: str | None = None,
    destination_ports: str | None = None,
    frame_size: int | None = None,
    frame_side: Literal["initiator", "responder"] = "initiator",
    order: Order = "permutation",
    lab: LabKind = "netns",
    lab_name: str = "default",
    placement: Literal["shared", "isolated"] | None = None,
    cores: str | Sequence[int] | None = None,
    sender_cores: str | Sequence[int] | None = None,
    ring: int = 512,
    initiator_port: WirePort | None = None,
    responder_port: WirePort | None = None,
    trial_seconds: float | None = None,
    error: str | float | None = None,
    repeat: int | Literal["auto"] | None = None,
    directions: Literal["both", "up", "down"] | None = None,
    table_size: int | None = None,
    hash_size: int | None = None,
    udp_timeout: int | None = None,
    results: str | Path = RESULTS,
    seed: int | None = None,
    grace_seconds: float | None = None,
    observe: Watch | None = None,
    **settings: object,
) -> Answer:
    """Measure one metric of one gateway; everything made on the way is undone.

    Args:
        metric: "connection-rate", "throughput" ...
        dut: name of a gateway's recipe, for example "nftables-nat44", or the path of a recipe file.
        connections: N, 1 to 2**31 (RFC 9693 section 4).
        source_addresses: the Initiator's, "A" or "A-B".
        source_ports: "A-B"; 1024-65535 by default (RFC 4814 section 4.5).
        destination_addresses: the Responder's, "A" or "A-B".
        destination_ports: "A-B"; by default as few as the connections need, from 1 upward (RFC 9693 section 4.1).
        frame_size: octets with FCS on `frame_side`; the family's least by default.
        frame_side: "initiator" or "responder".
        order: how phase 1 enumerates the four tuples (RFC 9693 section 4.4).
        lab: "netns" or "wire".
        lab_name: two measurements at one time need two names.
        placement: "shared" or "isolated"; by default "shared", but "isolated" for devices with processes of their own.
        cores: the device's, "0,2-3" or numbers.
        sender_cores: the tester's.
        ring: frames that wait in front of each core of an isolated device.
        initiator_port: for "wire".
        responder_port: for "wire".
        trial_seconds: length of phase 2, for metrics that have one.
        error: of the search, "1%" or a rate.
        repeat: repetitions; "auto" until the median is known to 2.5 %, at most 20.
        directions: who sends in phase 2, for metrics that have one.
        table_size: connection limit of the device's table.
        hash_size: buckets of the device's table.
        udp_timeout: the device's UDP timeouts in seconds.
        results: folder in which the results folder is made.
        seed: of all pseudorandom choices; random, and told, by default.
        grace_seconds: wait for the last frames of each phase.
        observe: is told what happens.
        **settings: further settings of the procedure, by name.

    Raises:
        UsageError: the question is wrong.
        HostError: this host cannot do it.
        BrokenError: something broke on the way.
    """
    asked = {
        "trial_seconds": trial_seconds,
        "error": None if error is None else str(error),
        "repeat": repeat,
        "directions": directions,
        **settings,
    }
    question = Question(
        metric=metric,
        dut=dut,
        traffic=TrafficOptions(
            connections=connections,
            source_addresses=source_addresses,
            source_ports=source_ports,
            destination_addresses=destination_addresses,
            destination_ports=destination_ports,
            frame_size=frame_size,
            frame_side=frame_side,
            order=order,
        ),
        place=PlaceOptions(
            kind=lab,
            name=lab_name,
            placement=placement,
            cores=cores,
            sender_cores=sender_cores,
            ring=ring,
            initiator_port=initiator_port,
            responder_port=responder_port,
        ),
        settings={name: value for name, value in asked.items() if value is not None},
        table_size=table_size,
        hash_size=hash_size,
        udp_timeout=udp_timeout,
        results=Path(results),
        seed=seed,
        grace_seconds=grace_seconds,
    )
    return answer(question, observe)


def answer(question: Question, watch: Watch | None = None) -> Answer:
    """Measure what is asked.

    Raises:
        UsageError: the question is wrong.
        HostError: this host cannot do it.
        BrokenError: something broke on the way.
    """
    watch = watch if watch is not None else Silent()
    checked = check(question)
    _check_host()
    if (place := with_idle_core(checked.question.place)) != checked.question.place:
        checked = check(dataclasses.replace(checked.question, place=place))
    store = Store.create(question.results, question.metric, checked.recipe.name)
    try:
        return _Run(checked, store, watch).run()
    except BaseException:
        if store.trials == 0:
            # Nothing was measured: leave no folder that looks as if.
            store.discard()
        raise


def check(question: Question) -> _Checked:
    """Refuse all that can be refused without touching anything.

    Raises:
        UsageError: the first thing that is wrong.
    """
    procedure = procedures.get(question.metric)
    recipe = load(question.dut)
    question = dataclasses.replace(question, place=with_placement(question.place, recipe))
    around = surroundings(question.place, recipe)
    traffic = make_plan(question.traffic, around)
    background = question.settings.get("foreground_share", 1.0) != 1.0
    lab = make_lab(question.place, recipe, traffic, background=background)
    settings = make_settings(procedure, question.settings, traffic=traffic, lab=lab)
    if Ability.STATELESS in settings.needs():
        refuse_stateless(
            around.inside.family,
            around.outside.family,
            translated=around.translated,
            mapped=traffic.mapped_addresses is not None,
        )
    if Ability.BACKGROUND in settings.needs():
        refuse_background(around)
    if settings.fills_table and not recipe.stateful:
        raise UsageError(f"{procedure.metric}: {recipe.name} keeps no connections, so it has no table to fill")
    checked = _Checked(
        question=question,
        procedure=procedure,
        recipe=recipe,
        around=around,
        traffic=traffic,
        lab=lab,
        settings=settings,
        seed=_check_seed(question.seed),
        grace_seconds=_check_grace(question.grace_seconds, lab),
    )
    _check_wishes(checked)
    return checked


def _check_wishes(checked: _Checked) -> None:
    """The device's limits as far as they were chosen; what it has of itself is checked when it can be asked."""
    wishes = wishes_of(checked.question)
    if isinstance(checked.lab, WireLab) and wishes.named():
        raise UsageError("lab wire: the device is not ours, so its table and time-outs cannot be set; leave them out")
    facts = plan_facts(checked)
    choose(checked.recipe, facts, wishes, {})
    refuse_unfit(checked.recipe, facts, wishes.named())


def make_settings(
    procedure: Procedure[Any],
    asked: Mapping[str, object],
    *,
    traffic: TrafficPlan,
    lab: NetnsLab | WireLab,
) -> TrialSettings:
    """The procedure's settings from what was asked for, each checked by the procedure itself.

    Raises:
        UsageError: the metric has no such setting, or its value is refused.
    """
    settings: TrialSettings = procedure.make_settings(
        asked,
        connections=traffic.connections,
        placement=lab.placement,
        order=traffic.order,
        four_tuples=traffic.space,
    )
    procedure.refuse_unable(ABILITIES if isinstance(lab, NetnsLab) else TESTER_ABILITIES, settings)
    for name, value in settings.parameters().items():
        if name.endswith("_rate") and isinstance(value, float):
            check_rate(name.replace("_", " "), value)
    return settings


def _check_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(64)
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed: {seed} is outside of 0 to 2^64 - 1")
    return seed


def _check_grace(seconds: float | None, lab: NetnsLab | WireLab) -> float:
    if seconds is None:
        return WIRE_GRACE_SECONDS if lab.placement == "external" else NETNS_GRACE_SECONDS
    if not 0 <= seconds <= 60:
        raise UsageError(f"grace: {seconds:g} is outside of 0 to 60 s")
    return seconds


def _check_host() -> None:
    """See that this host can measure at all.

    Raises:
        HostError: the kernel is too old, the engine or a capability is missing.
    """
    release = platform.release()
    version = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    if version < LEAST_KERNEL:
        least = ".".join(map(str, LEAST_KERNEL))
        raise HostError(f"kernel: Linux {release} is older than {least}; boot a newer one (see `natgauge doctor`)")
    programs.find("natgauge-engine")
    capabilities.require("measuring", "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON")


class _Run:
    """One measurement under way."""

    def __init__(self, checked: _Checked, store: Store, watch: Watch) -> None:
        self._checked = checked
        self._store = store
        self._watch = watch
        self._facts = plan_facts(checked)

    def run(self) -> Answer:
        """Measure and keep the result."""
        checked = self._checked
        with ExitStack() as made:
            self._watch.stage(f"making lab {checked.lab.name}")
            made.enter_context(checked.lab)
            rates = self._tester_rates()
            gateway = self._gateway(checked.lab, made)
            device = None if gateway is None else gateway.settings()
            measurer = self._measurer(gateway, rates, {} if device is None else dict(device.knobs))
            self._watch.stage("checking that the device forwards")
            measurer.check_forwarding()
            parameters = self._parameters(device, rates)
            self._store.write_plan(parameters)
            self._store.write_environment(
                {"machine": machine.facts(), "device": None if device is None else device.as_dict()}
            )
            self._watch.stage(f"measuring {checked.procedure.metric} of {checked.recipe.name}")
            result = checked.procedure.measure(measurer, checked.settings, self._watch.event)
        return self._keep(result, parameters)

    def _tester_rates(self) -> HighestRates:
        """The tester's own highest rates of the frames it will send; the slower family counts where both are used."""
        checked = self._checked
        self._watch.stage("looking up what the tester itself can do (measured once per host and setting)")
        senders = sender_cpus(checked.lab, checked.question.place)
        delays, variation = checked.settings.times_frames, Ability.VARIATION in checked.settings.needs()
        families = {checked.around.inside.family, checked.around.outside.family}
        found = [
            highest_rates(
                FrameKind(family, octets_on(checked.traffic, checked.around, family), delays, variation), senders
            )
            for family in sorted(families)
        ]
        return HighestRates(min(rates.phase1 for rates in found), min(rates.phase2 for rates in found))

    def _gateway(self, lab: NetnsLab | WireLab, made: ExitStack) -> Gateway | None:
        """Start the device; None when it is not ours."""
        if isinstance(lab, WireLab):
            return None
        question = self._checked.question
        gateway = made.enter_context(Gateway(self._checked.recipe, lab.devices[0], lab, wishes=wishes_of(question)))
        self._watch.stage(f"starting {self._checked.recipe.name}")
        gateway.prepare(self._facts)
        gateway.start()
        return gateway

    def _measurer(self, gateway: Gateway | None, rates: HighestRates, knobs: Mapping[str, int]) -> LabMeasurer:
        checked = self._checked
        senders = sender_cpus(checked.lab, checked.question.place)
        return LabMeasurer(
            place=checked.lab,
            device=gateway,
            traffic=checked.traffic,
            settings=TrialConstants(
                initiator_family=checked.around.inside.family,
                responder_family=checked.around.outside.family,
                translated=checked.around.translated,
                pool=checked.around.pool or checked.traffic.mapped_addresses,
                sender_cpus=senders,
                watch_cpus=tuple(cpu for cpu in device_cpus(checked.lab) if cpu not in senders),
                seed=checked.seed,
                first_mark=secrets.randbelow(0xFFFF_FFFF) + 1,
                grace_seconds=checked.grace_seconds,
                table_limit=knobs.get("table_size"),
                udp_timeout=knobs.get("udp_timeout"),
                highest_phase1_rate=rates.phase1,
                highest_phase2_rate=rates.phase2,
                background=background_hosts() if Ability.BACKGROUND in checked.settings.needs() else None,
            ),
            recorder=self._store,
            watch=self._watch,
            phase1_only=checked.settings.phase2_seconds == 0,
            own=self._own_delays if checked.lab.placement != "external" else None,
        )

    def _own_delays(self, rate: float, seconds: float, *, variation: bool) -> Delays:
        checked = self._checked
        family = checked.around.inside.family
        octets = octets_on(checked.traffic, checked.around, family)
        profile = FrameKind(family, octets, delays=True, variation=variation)
        return own_delays(profile, sender_cpus(checked.lab, checked.question.place), rate, seconds)

    def _parameters(self, device: DeviceSettings | None, rates: HighestRates) -> dict[str, Any]:
        """All that decides the figures (RFC 9693 section 6), defaults filled in."""
        checked = self._checked
        traffic = checked.traffic
        return {
            **checked.settings.parameters(),
            "dut": checked.recipe.name,
            "kind": checked.recipe.kind,
            "lab": checked.lab.name,
            "source_addresses": str(traffic.source_addresses),
            "source_address_count": traffic.source_addresses.count,
            "source_ports": f"{traffic.source_ports.first}-{traffic.source_ports.last}",
            "source_port_count": traffic.source_ports.count,
            "destination_addresses": str(traffic.responder_addresses),
            "destination_address_count": traffic.responder_addresses.count,
            "destination_ports": f"{traffic.destination_ports.first}-{traffic.destination_ports.last}",
            "destination_port_count": traffic.destination_ports.count,
            "frame_size": traffic.frame_size,
            "frame_side": traffic.frame_side,
            "frame_octets": {
                "initiator": octets_on(traffic, checked.around, checked.around.inside.family),
                "responder": octets_on(traffic, checked.around, checked.around.outside.family),
            },
            "seed": checked.seed,
            "grace_seconds": checked.grace_seconds,
            "sender_cpus": list(sender_cpus(checked.lab, checked.question.place)),
            "device_cpus": list(device_cpus(checked.lab)),
            "tester_highest_phase1_rate": rates.phase1,
            "tester_highest_phase2_rate": rates.phase2,
            **({} if device is None else {**device.knobs, "version": list(device.version)}),
        }

    def _keep(self, result: MeasurementResult, parameters: Mapping[str, Any]) -> Answer:
        for number, one in enumerate(result.measurements, start=1):
            self._store.add_measurement(
                {
                    "metric": result.metric,
                    "unit": result.unit,
                    "repetition": number,
                    "value": one.value,
                    "upper": one.upper,
                    "error": one.error,
                    "limited_by": one.limited_by,
                    "trials": one.trials,
                    "figures": one.figures,
                    "notes": one.notes,
                    "series": one.series,
                }
            )
        document = {
            **result.as_document(),
            "placement": self._checked.lab.placement,
            "parameters": plain(parameters),
            "results": str(self._store.folder),
        }
        self._store.write_summary(document)
        return Answer(result, document, self._store.folder)


def octets_on(traffic: TrafficPlan, around: Surroundings, family: Family) -> int:
    """Frame size with FCS where this family is spoken: IPv6 frames of the same payload are 20 octets longer."""
    spoken = around.inside.family if traffic.frame_side == "initiator" else around.outside.family
    return traffic.frame_size + LEAST_FRAME[family] - LEAST_FRAME[spoken]


def wishes_of(question: Question) -> Wishes:
    """The knobs the user chose."""
    return Wishes(question.table_size, question.hash_size, question.udp_timeout)


def plan_facts(checked: _Checked) -> PlanFacts:
    """What the device must be fit for.

    Its time-outs, unless the user chose them, outlast the slowest trial a search may try; a chosen one must outlast the
    first trial, and every later one is held against it before it runs. So must those of connections that are to expire.
    """
    connections = checked.traffic.connections
    longest = FIRST_TRIAL_SECONDS
    if checked.question.udp_timeout is None and not checked.settings.waits_for_expiry:
        longest = 2 * LONGEST_TRIAL_SECONDS
    phase2 = checked.settings.phase2_seconds
    return PlanFacts(
        connections=connections,
        phase1_seconds=longest,
        after_seconds=phase2 + 2 * checked.grace_seconds if phase2 else 0.0,
        source_addresses=checked.traffic.source_addresses.count,
        remote_endpoints=checked.traffic.responder_addresses.count * checked.traffic.destination_ports.count,
        outside_addresses=1 if checked.around.pool is None else checked.around.pool.count,
        fills_table=checked.settings.fills_table,
    )

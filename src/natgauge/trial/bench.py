# SPDX-License-Identifier: Apache-2.0
"""The bench: one lab, its started devices and a measurer, on which many procedures run one after the other.

The order is: refuse wrong options before anything starts; check this host; make the lab; start the device. Then, for
each procedure: adapt the device's limits, prove that it forwards, run. At the end everything is undone.

Where a new lab takes a fraction of a second, each repetition has one. Repetitions in one lab share its place in memory
and, with one seed, one permutation of the four tuples. They show how a figure varies within that lab, but not how it
varies between labs. So each has a seed of its own, too.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Self, TypeVar, Unpack

from natgauge import procedures
from natgauge.delays import Delays
from natgauge.errors import BrokenError, UsageError
from natgauge.ethernet import LEAST_OCTETS, QUERY_OCTETS
from natgauge.figure_text import number as written
from natgauge.gateways.far_side import right_answers
from natgauge.gateways.limits import DeviceDemand, choose, refuse_unfit
from natgauge.gateways.preparation import DeviceSettings, way_of
from natgauge.gateways.recipe import rules_of
from natgauge.gateways.rule_sets import AcceptedPorts, having, without_words
from natgauge.inputs.input import wrong
from natgauge.inputs.question import Cell, FrameOptions
from natgauge.labs import kinds
from natgauge.labs.common.namespaces import PREFIX
from natgauge.measurer import Ability, Measurer
from natgauge.procedures.kit.procedure import Procedure, make_settings
from natgauge.procedures.kit.rate_search import FIRST_TRIAL_SECONDS, LONGEST_TRIAL_SECONDS, lowest_rate
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.kit.runner import unheard
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.setup.setup import Setup, SetupChoices
from natgauge.setup.traffic import refuse_flood
from natgauge.tester.cable import FrameKind
from natgauge.tester.own_rates import HighestRates, highest_rates, own_delays
from natgauge.trial import external
from natgauge.trial.connection_log import ConnectionLog, refuse_long_log
from natgauge.trial.controls import Observer, Silent, Unread
from natgauge.trial.forwarding import NotForwardedError, accepted_by, causes
from natgauge.trial.lab_measurer import DEVICE_ABILITIES, OF_TABLE, LabMeasurer, Recorder, SliceRounds, abilities_with
from natgauge.trial.planned import (
    Planned,
    grace_of,
    refuse_large,
    refuse_short_grace,
    refuse_unlike,
    refuse_unlike_queries,
    refuse_unused,
    refuse_wrong_grace,
)
from natgauge.trial.question import reasons_not_timed
from natgauge.trial.requests import TrialConstants, refuse_stateless
from natgauge.trial.rounds import NO_SEARCH, CostRounds, TimedFrames, forwarding_of
from natgauge.trial.server import FarSide, refuse_server, refuse_unanswered, settings_of_kind
from natgauge.words import TESTER, Family, Query, Side, listed

#: The tester's highest rate before it is known, in frames/s; a slower tester is seen when the device is prepared.
ASSUMED_HIGHEST: Final = 4_000_000.0
#: What rules that name ports have, as nftables and iptables write it.
_BY_PORT: Final = re.compile(r"\bdports?\b")
#: A phase 1 that fails is repeated more slowly, and the first one runs at half of the connection rate.
_SLOWER: Final = 4.0


@dataclass(frozen=True, slots=True)
class Ready:
    """A procedure that is ready to run on its bench: the device's limits fit it, and the device forwards.

    Attributes:
        planned: the procedure and its settings.
        measurer: performs its trials.
        device: the device's settings; None for an external device.
        rates: the tester's own highest.
    """

    planned: Planned
    measurer: LabMeasurer
    device: DeviceSettings | None
    rates: HighestRates

    def run(self, begins: Callable[[int], Measurer | None] = unheard) -> MeasurementResult:
        """Run the procedure and return its result; `begins` as of `Procedure.measure`.

        Raises:
            NatgaugeError: the measurement failed.
        """
        planned = self.planned
        return planned.procedure.measure(self.measurer, planned.settings, self.measurer.observer.event, begins=begins)


def _refuse_unlisted(way: str, settings: TrialSettings, modifiers: object) -> None:
    """Refuse a log beside frames whose records would be of no connection that the tester lists."""
    others = {
        "the host that floods it": settings.floods,
        f"modifiers ({modifiers})": modifiers != "none",
        "native IPv6 in the background": Ability.BACKGROUND in settings.needs(),
    }
    if beside := next((what for what, is_there in others.items() if is_there), ""):
        raise wrong(
            "logging", f"{way}, but {beside} may have records of its own, which lead to no subscriber; leave one out"
        )


class Bench(Setup):
    """A setup with the tester, on which procedures run one after the other. Use it as a context manager.

    Attributes:
        seed: seed of all pseudorandom choices.
    """

    def __init__(
        self,
        cell: Cell,
        observer: Observer | None = None,
        *,
        rates: HighestRates | None = None,
        **chosen: Unpack[SetupChoices],
    ) -> None:
        """Plan the bench; nothing is started.

        Args:
            cell: the user's choices.
            observer: receives the progress.
            rates: the tester's own highest; None = measured once per host and setting, then stored.
            chosen: as of `Setup`.

        Raises:
            UsageError: the first thing that is wrong.
        """
        self._observer = observer if observer is not None else Silent()
        super().__init__(cell, self._observer, **chosen)
        if cell.lab.seed is not None and not 0 <= cell.lab.seed < 2**64:
            raise UsageError(f"seed: {cell.lab.seed} is outside of 0 to 2^64 - 1", at="seed")
        self.seed = secrets.randbits(64) if cell.lab.seed is None else cell.lab.seed
        refuse_wrong_grace(cell.lab.grace_seconds)
        self._rates = rates
        self._slice_rounds: CostRounds | None = None
        self._server: FarSide | None = None

    def __exit__(self, *exception: object) -> None:
        self._slice_rounds, self._server = None, None
        super().__exit__(*exception)

    # Before anything is touched

    @property
    def abilities(self) -> frozenset[Ability]:
        """Abilities of a measurer on this bench, as far as lab and recipe decide them."""
        abilities = abilities_with(
            own=self.lab.virtual,
            background=self.lab.ground.background is not None,
            costs=not self.reasons_not_timed(),
            server=self.lab.server is not None,
        )
        return abilities | (DEVICE_ABILITIES if self.lab.devices else external.abilities(self.lab.external))

    def plan(self, metric: str, choices: Mapping[str, object], *, varied: bool = False) -> Planned:
        """Plan a procedure for this bench.

        Args:
            metric: the procedure's name.
            choices: its settings, by name.
            varied: whether others of a series may take what nothing takes beside these settings: it is left out.

        Raises:
            UsageError: the metric or a setting is unknown, a value is refused, or it cannot be measured here.
        """
        procedure = procedures.get(metric)
        chosen = procedure.taken(choices)
        settings = self._settings(procedure, settings_of_kind(self.recipe, procedure, chosen))
        refuse_unanswered(self.recipe, settings)
        if varied and any(name in settings.unused for name in chosen):
            return self.plan(metric, {name: value for name, value in choices.items() if name not in settings.unused})
        refuse_unused(settings, chosen)
        refuse_unlike(procedure.metric, settings, self.cell)
        addresses = self.address_plan
        if Ability.STATELESS in settings.needs():
            refuse_stateless(
                addresses.inside.family,
                addresses.outside.family,
                translated=addresses.translated,
                mapped=self.traffic.mapping_known,
            )
        self._refuse_modifiers(modifiers := settings.parameters().get("modifiers", "none"))
        if self.cell.device.logging is not None:
            _refuse_unlisted(self.cell.device.logging, settings, modifiers)
        if settings.query is not None:
            ports = self.traffic.destination_ports
            refuse_unlike_queries(procedure.metric, ports.first, ports.last)
            refuse_server(settings.far_side, self.lab, self.traffic)
        if settings.zero_checksum == "accept" and "ipv6" not in (addresses.inside.family, addresses.outside.family):
            raise UsageError(
                f"zero checksum: {self.recipe.name} has IPv4 on both sides (RFC 768 allows it); leave it out, or in a "
                "plan give it in a [[measure]] whose `gateways` have IPv6",
                at="zero_checksum",
            )
        # Of loads that come and go a table may be what ends them, or not.
        needs = settings.needs()
        is_of_table = needs & OF_TABLE or (settings.fills_table and Ability.CHURN not in needs)
        if not self.recipe.stateful and is_of_table:
            raise UsageError(
                f"{procedure.metric}: {self.recipe.name} keeps no connections, so it has no table; choose another "
                "metric, such as throughput, or a gateway that keeps connections"
            )
        planned = Planned(procedure, settings, self._demand(settings), chosen)
        if self.lab.devices:
            # Only limits that the user chose can be checked here; the device's own are read when it runs.
            choose(self.recipe, planned.demand, self.cell.device, {})
        else:
            external.refuse_stale(self.lab, self.recipe, procedure.metric, settings)
        refuse_unfit(self.recipe, planned.demand, self.known_limits)
        self._refuse_many(planned)
        if settings.floods:
            refuse_flood(self.traffic, addresses)
        return planned

    def _refuse_many(self, planned: Planned) -> None:
        """Refuse subscribers that would be one inside host, and more connections than fit addresses, table or log."""
        blocks = self.address_plan.port_blocks
        if planned.demand.counts_hosts and blocks is not None and self.traffic.sources == 1:
            raise UsageError(
                f"source addresses: one, but each subscriber is an inside host, and {self.recipe.name} gives each host "
                f"{blocks}; give --source-addresses A-B, or --subscribers N",
                at="source_addresses",
            )
        timeout = {**self.cell.device.named(), **self.known_limits}.get("udp_timeout")
        # That of TCP is of an established connection, and one that leaves is kept for the time after its FIN, which is
        # known when the device runs.
        timeout = None if self.traffic.transport == "tcp" else timeout
        planned.settings.refuse_unlike(self.traffic.sources, timeout)
        if self.cell.device.logging is not None:
            # In the middle of a search the refusal would take its result with it.
            of = (ASSUMED_HIGHEST, self.traffic.sources, timeout)
            settings = planned.settings
            refuse_long_log(settings.most_opened(*of), lambda most: settings.fewer_opened(most, *of))

    def _refuse_modifiers(self, modifiers: object) -> None:
        """Refuse broadcasts and queries beside other frames than datagrams, and queries of a device without address."""
        if modifiers != "none" and self.traffic.transport != "udp":
            raise wrong("modifiers", f"{modifiers}, but the transport is {self.traffic.transport}; choose udp")
        if modifiers in ("management", "both") and self.lab.initiator.gateway_address is None:
            raise wrong("modifiers", f"{modifiers}, but only its MAC is known; give --initiator-gateway an address")

    def _settings(self, procedure: Procedure[Any], chosen: Mapping[str, Any]) -> TrialSettings:
        settings: TrialSettings = make_settings(
            procedure,
            chosen,
            connections=self.traffic.connections,
            placement=self.lab.placement,
            own_processes=self.own_processes,
            order=self.traffic.order,
            four_tuples=self.traffic.space,
            transport=self.traffic.transport,
        )
        self._refuse_untimed(procedure.metric, settings)
        procedure.refuse_unable(self.abilities, settings)
        refuse_short_grace(self.cell.lab.grace_seconds, settings)
        return settings.as_run()

    def _refuse_untimed(self, metric: str, settings: TrialSettings) -> None:
        if Ability.COSTS in settings.needs() and (reasons := self.reasons_not_timed()):
            raise UsageError(f"{metric}: {reasons[0]}")

    def grace_of(self, settings: TrialSettings) -> float:
        """Wait for the last frames of each phase, in seconds."""
        return grace_of(self.cell.lab.grace_seconds, self.lab.grace_seconds, settings)

    def _demand(self, settings: TrialSettings) -> DeviceDemand:
        """Return the requirements of the trials on the device.

        Time-outs that natgauge chooses are longer than the slowest trial of a search, and than a phase 1 at a quarter
        of the connection rate that the user gave. A time-out that the user chose must be longer than the first trial,
        and each later trial is checked before it runs. The same holds where connections are to expire.
        """
        seconds, longest = FIRST_TRIAL_SECONDS, 0.0
        if "udp_timeout" not in self.known_limits and not settings.waits_for_expiry:
            seconds = 2 * LONGEST_TRIAL_SECONDS
            rates = [lowest_rate(settings.phase1_frames, ASSUMED_HIGHEST)]
            if isinstance(given := settings.parameters().get("connection_rate"), float):
                rates.append(given / _SLOWER)
            longest = settings.phase1_frames / min(rates)
        phase2, grace = settings.sent_seconds, self.grace_of(settings)
        # A device that is not ours may have more outside addresses than the one that is assumed.
        known = self.address_plan.pool is not None or self.lab.devices
        return DeviceDemand(
            connections=self.traffic.connections,
            held_at_least=settings.held_at_least,
            held_at_most=settings.held_at_most(ASSUMED_HIGHEST),
            phase1_seconds=seconds,
            after_seconds=phase2 + 2 * grace if phase2 else 0.0,
            longest_seconds=longest,
            source_addresses=self.traffic.sources + settings.floods,
            remote_endpoints=self.traffic.remote_endpoints,
            inside_endpoints=self.traffic.sources * self.traffic.source_ports.count if known else None,
            outside_addresses=1 if self.address_plan.pool is None else self.address_plan.pool.count,
            fills_table=settings.fills_table,
            expires=settings.waits_for_expiry,
            transport=self.traffic.transport,
            state=settings.lasting_state,
            as_found=settings.keeps_limits,
            counts_hosts=settings.fills_table and settings.keeps_limits,
            port_sets=self.address_plan.port_sets,
        )

    def ready(self, planned: Planned, recorder: Recorder, *, prove: bool = True) -> Ready:
        """Prepare a procedure: start the device, or adapt its limits, and prove that it forwards.

        Args:
            planned: by `plan`.
            recorder: stores every trial as it ends.
            prove: whether to prove with a few frames that the device forwards.

        Raises:
            BrokenError: the device does not become ready or does not forward.
            HostError: a program is missing, memory is short, or a global setting cannot be made.
            UsageError: a limit or time-out of the device is too small.
        """
        self._refuse_large(planned)
        rates = self._tester_rates(planned.settings)
        device = self.start(_of_tester(planned, rates))
        if self.finds_processes():
            return self.ready(self._moved(planned), recorder, prove=prove)
        knobs: Mapping[str, int] = self.known_limits if device is None else device.knobs
        lingering = self._lingering(planned.settings, knobs.get("table_size"))
        ground, addresses = self.lab.ground, self.address_plan
        ring = self.lab.parameters().get("ring")
        measurer = self._measurer(
            place=self.lab,
            traffic=self.traffic,
            settings=TrialConstants(
                initiator_family=addresses.inside.family,
                responder_family=addresses.outside.family,
                translated=addresses.translated,
                pool=addresses.seen_pool or self.traffic.mapped_addresses,
                sender_cpus=self.lab.sender_cpus,
                watch_cpus=tuple(cpu for cpu in self.lab.device_cpus if cpu not in self.lab.sender_cpus),
                seed=self.seed,
                first_mark=secrets.randbelow(0xFFFF_FFFF) + 1,
                grace_seconds=self.grace_of(planned.settings),
                table_limit=knobs.get("table_size"),
                udp_timeout=knobs.get("udp_timeout"),
                replied_udp_timeout=None if self.device is None else self.device.replied_udp_timeout(),
                highest_phase1_rate=rates.phase1,
                highest_phase2_rate=rates.phase2,
                ring=ring if isinstance(ring, int) else None,
                lingering_seconds=lingering,
                answers=right_answers(self.recipe, ground.nat64_prefix),
                background=ground.background if Ability.BACKGROUND in planned.settings.needs() else None,
                power_command=self.cell.lab.power_command,
            ),
            recorder=recorder,
            observer=self._observer,
            phase1_only=planned.settings.phase2_seconds == 0,
            own=self._own_delays if self.lab.virtual else None,
            slice_rounds=self._rounds_of_slices(),
            server=self._real_server(planned.settings.far_side),
            log=self._log(planned.settings),
        )
        if prove:
            self._observer.stage("checking that the device forwards")
            # The message of the second check names subscribers.
            if not addresses.half:
                measurer.check_subscribers()
            try:
                measurer.check_forwarding(store=True)
            except NotForwardedError as error:
                raise BrokenError(self._not_forwarded(error), at=error.at) from error
            except BrokenError as error:
                raise BrokenError(f"{error}{self.dropped_traffic(None)}", at=error.at) from error
            if addresses.half:
                measurer.check_subscribers()
        self._observer.stage(f"measuring {planned.procedure.metric} of {self.recipe.name}")
        return Ready(planned, measurer, device, rates)

    def _not_forwarded(self, error: NotForwardedError) -> str:
        """Return the error with its cause: that which the rules name, or what the counters of the lab show."""
        accepted = accepted_by(self.lab.devices[0]) if len(self.lab.devices) == 1 else None
        if known := causes(self.recipe, self.traffic, accepted):
            return "; ".join([error.counted, *known])
        return f"{error}{self.dropped_traffic(accepted)}"

    def dropped_traffic(self, accepted: AcceptedPorts | None) -> str:
        """Return what the frames were, and which of their addresses and whether ports the recipe's rules name.

        Args:
            accepted: what its rules accept, so that no port is the cause; None = not known.
        """
        traffic, rules = self.traffic, rules_of(self.recipe)
        sent = f"the frames were {traffic.transport.upper()} from {traffic.source_addresses.first}"
        to = str(traffic.destination_addresses.first)
        if traffic.transport != "icmp":
            first, last = traffic.destination_ports.first, traffic.destination_ports.last
            to += f", port {first}" if first == last else f", ports {first} to {last}"
        parts = [f"{sent} to {to}"]
        if named := having(rules, (traffic.source_addresses.first, traffic.responder_addresses.first)):
            where = "where the addresses of the test traffic are; look whether a rule drops them"
            parts.append(f"its rules name {', '.join(named)}, {where}")
        if (accepted is None or traffic.transport in accepted.unknown) and _BY_PORT.search(without_words(rules)):
            parts.append(
                "its rules name ports: choose frames that they accept by --destination-ports 443 or --transport tcp, "
                "or for every command by destination_ports in the recipe (docs/recipes.md#limits)"
            )
        if accepted is not None and accepted.elsewhere:
            parts.append(f"its rules accept or translate from {listed(accepted.elsewhere)}, which no lab has")
        if kinds.get(self.cell.lab.lab).can_be_kept and self.recipe.stateful and not self.recipe.half:
            gateway, device = shlex.quote(str(self.cell.gateway)), self.lab.devices[self.holder].name
            parts.append(
                f"to look at the running gateway: natgauge audit --gateway {gateway} --lab-name look, and meanwhile "
                f"ip netns exec {PREFIX}look-{device} sh"
            )
        return "".join(f"; {part}" for part in parts)

    def _log(self, settings: TrialSettings) -> ConnectionLog | None:
        """Return the log of the device that holds the connections; None where it does not log."""
        wishes = self.cell.device
        if wishes.logging is None:
            return None
        return ConnectionLog(
            self.lab.devices[self.holder],
            wishes.logging,
            way_of(self.played[self.holder], wishes.logging),
            self.grace_of(settings),
            wishes.log_tolerance or 0.0,
            collector=self.collector,
        )

    def _real_server(self, name: str) -> FarSide | None:
        """Start the real server; None = the tester answers."""
        if self._server is not None and self._server.name != name:
            self._server = None
            self._beside.close()
        if name != TESTER and self._server is None and self.lab.server is not None:
            self._observer.stage(f"starting {name} as far side")
            family, addresses = self.address_plan.outside.family, self.traffic.responder_addresses
            server = FarSide(name, self.lab.server, family, addresses, with_aaaa=not self.recipe.asks_server)
            self._server = self._beside.enter_context(server)
        return self._server

    def _moved(self, planned: Planned) -> Planned:
        """Return the procedure for a device that was found to work in processes, in a lab that suits these.

        Where natgauge chose the placement, it makes the lab again, with the placement of such devices.
        """
        self.remade()
        settings = replace(planned.settings, placement=self.lab.placement, own_processes=True).as_run()
        self._refuse_untimed(planned.procedure.metric, settings)
        return replace(planned, settings=settings)

    def _refuse_large(self, planned: Planned) -> None:
        """Refuse connections that no memory holds, before anything takes time."""
        recipe, device = self.recipe, None
        if self.lab.devices:
            recipe, device = self.played[self.holder], self.lab.devices[self.holder]
        stores, processes = planned.settings.has_phase1, self.own_processes
        refuse_large(recipe, device, planned.demand, stores=stores, own_processes=processes)

    def _lingering(self, settings: TrialSettings, table_size: int | None) -> int | None:
        """Return the seconds for which the device keeps closed connections, and report the table that they need.

        The table holds the N connections of a trial, closed or not. It is emptied before the next trial.
        """
        if settings.close is None or settings.request_octets is None or self.device is None:
            return None
        seconds = self.device.lingering().get(settings.close)
        if seconds:
            holds = "" if table_size is None else f"; {table_size} entries last for {written(table_size / seconds)}/s"
            self._observer.stage(
                f"{self.recipe.name} keeps a closed connection for {seconds} s: R/s for longer than that need a table "
                f"of {seconds} x R{holds}"
            )
        return seconds

    def _measurer(self, **arguments: Any) -> LabMeasurer:
        if self.lab.devices:
            return LabMeasurer(device=self.device, **arguments)
        named = self.cell.traffic.destination_ports is not None
        return external.measurer(self.lab, self.recipe, named_ports=named, **arguments)

    def reasons_not_timed(self) -> list[str]:
        """Return the reasons why the device's frames cannot be timed in slices; empty = they can."""
        placement, processes = self.lab.placement, self.own_processes
        return reasons_not_timed(self.recipe.name, placement, self.lab.sender_cpus, own_processes=processes)

    @property
    def timed_frames(self) -> tuple[TimedFrames, ...]:
        """Properties of the frames of each address family, for which plain forwarding and a cable are timed."""
        families = dict.fromkeys((self.address_plan.inside.family, self.address_plan.outside.family))
        number = self.traffic.connections
        return tuple(TimedFrames(family, self.octets_on(family), number, self.frames_on(family)) for family in families)

    def _rounds_of_slices(self) -> SliceRounds | None:
        """Rounds that time the device's frames, made once for all procedures; None = they cannot be timed here."""
        if self.reasons_not_timed():
            return None
        if self._slice_rounds is None:
            cpu = self.lab.sender_cpus[0]
            self._slice_rounds = CostRounds(self.timed_frames, cpu, self._plain_forwarding, self._made)
        return self._slice_rounds

    def _plain_forwarding(self, frames: TimedFrames, lab_name: str) -> LabMeasurer:
        """Start plain forwarding of the same frames in its own lab on the device's core."""
        place = {"lab_name": lab_name, "placement": "shared", "cores": str(self.lab.sender_cpus[0])}
        bench = self._made.enter_context(Bench(forwarding_of(frames, place), rates=NO_SEARCH))
        return bench.ready(bench.plan("throughput", {}), Unread(), prove=False).measurer

    def _tester_rates(self, settings: TrialSettings) -> HighestRates:
        """Return the tester's own highest rates for the frames of the trials; of two families, the slower one's."""
        if self._rates is not None:
            return self._rates
        self._observer.stage("looking up what the tester itself can do (measured once per host and setting)")
        delays, variation = settings.times_frames, Ability.VARIATION in settings.needs()
        families = {self.address_plan.inside.family, self.address_plan.outside.family}
        query, transport = settings.query, self.traffic.transport
        kinds_sent = [
            FrameKind(
                family,
                self.octets_on(family, query),
                delays,
                variation,
                query,
                transport,
                settings.close,
                settings.request_octets,
                settings.half_open,
                sizes,
            )
            for family in sorted(families)
            for sizes in {self.frames_on(family).frame_sizes, self.frames_on(family).down_frame_sizes}
        ]
        highest = [highest_rates(kind, self.lab.sender_cpus, self.traffic.connections) for kind in kinds_sent]
        phase1, phase2 = min(rates.phase1 for rates in highest), min(rates.phase2 for rates in highest)
        return HighestRates(phase1, phase2, own_ports=self.lab.virtual)

    def _own_delays(self, rate: float, seconds: float, *, batch: int, variation: bool) -> Delays:
        family = self.address_plan.inside.family
        octets, transport = self.octets_on(family), self.traffic.transport
        sizes = self.frames_on(family).frame_sizes
        kind = FrameKind(family, octets, delays=True, variation=variation, transport=transport, frame_sizes=sizes)
        return own_delays(kind, self.lab.sender_cpus, rate, seconds, batch)

    def frames_on(self, family: Family) -> FrameOptions:
        """Return the options of the frames on links of a family without tags, with the sizes that a mix has there."""
        more = self.octets_on(family) - self.traffic.frame_size
        mixes = {way: str(mix.longer(more)) for way, mix in self.traffic.mixes.items()}
        return replace(
            self.traffic.frames,
            frame_sizes=mixes.get("up"),
            down_frame_sizes=mixes.get("down"),
            initiator_vlan=None,
            responder_vlan=None,
        )

    def on_sides(self, octets: Callable[[Family], int]) -> dict[Side, int]:
        """Return the octets on each side with its VLAN tags, of frames with so many on links of a family without."""
        addresses, tags = self.address_plan, self.traffic.tag_octets
        families: dict[Side, Family] = {"initiator": addresses.inside.family, "responder": addresses.outside.family}
        return {side: octets(family) + tags[side] for side, family in families.items()}

    def octets_on(self, family: Family, query: Query | None = None) -> int:
        """Return the frame size with FCS on links of a family without tags, also of DNS queries of a type."""
        addresses, side = self.address_plan, self.traffic.frame_side
        if query is not None:
            return addresses.octets(QUERY_OCTETS["ipv4"], family)
        named = addresses.inside.family if side == "initiator" else addresses.outside.family
        least = LEAST_OCTETS["udp"]
        untagged = self.traffic.frame_size - self.traffic.tag_octets[side]
        return untagged + addresses.octets(least, family) - addresses.octets(least, named)


def _of_tester(planned: Planned, rates: HighestRates) -> DeviceDemand:
    """Return the demand with the most connections of a faster tester, and the slowest trial where it is foreseen."""
    demand, settings = planned.demand, planned.settings
    demand = replace(demand, held_at_most=max(demand.held_at_most, settings.held_at_most(rates.phase2)))
    if not demand.longest_seconds:
        return demand
    slowest = settings.phase1_frames / lowest_rate(settings.phase1_frames, rates.phase1)
    return replace(demand, longest_seconds=max(demand.longest_seconds, slowest))


def seed_of_repetition(seed: int, number: int) -> int:
    """Return the seed of a repetition, from 1; a measurement's seed always gives the same sequence, of 0 to 2**64 - 1.

    The first repetition has the measurement's seed itself. So a measurement with the seed of any repetition repeats
    that repetition.
    """
    if number == 1:
        return seed
    digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def in_repetition(cell: Cell, seed: int | None, number: int) -> Cell:
    """Return the cell with the seed of this repetition; `seed` of the measurement, None = each bench draws its own."""
    if seed is None:
        return cell
    return replace(cell, lab=replace(cell.lab, seed=seed_of_repetition(seed, number)))


BenchT = TypeVar("BenchT", bound=Bench)


class FreshLabs(Generic[BenchT]):
    """Successive benches of one device; the procedures of the last one are `ready`.

    As a context manager it makes the first one, and removes the last one.

    Attributes:
        has_lab: whether a lab exists now; False also where the lab of a further repetition could not be made.
    """

    def __init__(
        self,
        bench_of: Callable[[int], BenchT],
        start: Callable[[BenchT], Sequence[Ready]],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Make no lab yet.

        `bench_of` plans the bench of a repetition, from 1. `start` starts the device of a new bench, and makes the
        procedures ready that run on it: at least one, always the same. `now` returns seconds since the epoch.
        """
        self._bench_of, self._start, self._now = bench_of, start, now
        self._conducted: list[tuple[int, int, float]] = []
        self._made = ExitStack()
        self._labs = 0
        self.ready: Sequence[Ready] = ()
        self.has_lab = False

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.push(self.__exit__)
            self._set_up(1)
            undo.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self.has_lab = False
        self._made.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def _set_up(self, number: int) -> None:
        before, self.bench = self.ready, self._bench_of(number)
        self._made.enter_context(self.bench)
        self.ready = self._start(self.bench)
        for now, earlier in zip(self.ready, before, strict=False):
            now.measurer.continue_after(earlier.measurer)
        self._labs += 1
        self.has_lab = True
        self._note()

    def begin(self, number: int) -> LabMeasurer:
        """Begin a repetition, from 1, in a new lab, unless there is the lab of the first one or one that must stay."""
        if number > 1 and self.has_lab and self._renewable:
            self.leave()
        if not self.has_lab:
            self._set_up(number)
        elif number > 1:
            self._note()
        return self.ready[0].measurer

    def leave(self) -> None:
        """Remove the lab; the next repetition makes another one."""
        self.has_lab = False
        self._made.close()

    def _note(self) -> None:
        self._conducted.append((self._labs, self.bench.seed, round(self._now(), 3)))

    def conduct(self, repetitions: int) -> Mapping[str, Any]:
        """Return parameters of the first `repetitions` repetitions; one that the time limit cut off has no value."""
        counted = self._conducted[:repetitions]
        return {
            "labs": len({lab for lab, _, _ in counted}),
            "seeds": [seed for _, seed, _ in counted],
            "begun": [began for _, _, began in counted],
        }

    @property
    def _renewable(self) -> bool:
        lab = self.bench.lab
        return kinds.get(self.bench.cell.lab.lab).quick and not lab.is_reused

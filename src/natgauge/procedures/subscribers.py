# SPDX-License-Identifier: Apache-2.0
"""Subscribers: how many of one profile a device carries, with all that they take at once, and what ends it.

docs/method/mixed-load.md has the method. A subscriber has e entries in the device's table: e = max(connections,
new * T), with T the device's time-out. In phase 2, of t seconds, new * min(t, T) leave that the table still holds, and
phase 1 opens the others, so that it holds n * e at the end of a trial. Where a trial is about as long as T, it holds
those of a second more.

Where there are several source addresses, each subscriber has one, and a trial uses no others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

from natgauge.errors import UsageError
from natgauge.ethernet import tag_octets
from natgauge.figure_text import with_noun
from natgauge.inputs.input import FileText, chosen, whole, wrong
from natgauge.inputs.measuring_types import parse_frame_sizes
from natgauge.inputs.question import MIXES, RANGES
from natgauge.measurer import Ability, Measurer
from natgauge.metrics.catalogue import FORGETS, SUBSCRIBER_RATES, SUBSCRIBERS
from natgauge.notes import Note
from natgauge.procedures.kit.binary_search import SearchSpan
from natgauge.procedures.kit.held_connections import FIRST_RATE, unprepared
from natgauge.procedures.kit.mixed_loads import ROOM, CombinedLoad, MixedLoad, MixedSettings, prepared
from natgauge.procedures.kit.procedure import Answered, Procedure
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.readings import IDLE_DRAWS, leaving
from natgauge.subscriber_profiles import Subscriber, load
from natgauge.trials import TrialPlan
from natgauge.words import MAXIMUM_CONNECTIONS, OUTSIDE_PORTS

#: The first trial opens its connections within this share of the device's time-out.
_PHASE1_SHARE = 0.25
#: A table that holds more than so much of the subscribers' entries too many is told.
_TOO_MANY: Final = 0.01
#: What to give where subscribers with an address or a customer edge each are too few. Customer edges, and the hosts of
#: a gateway that shares addresses, have addresses that follow from their number.
_MORE_HOSTS: Final = "more --subscribers, or more --source-addresses where you named these"
#: Longest phase 1 in s where the device's table is no matter: it has room for all.
_LONGEST_PHASE1 = 10.0


@dataclass(frozen=True, kw_only=True)
class SubscribersSettings(MixedSettings):
    """Settings of the subscribers; `most_subscribers` None = as many as there are four tuples for."""

    subscriber: str = chosen(
        "household",
        "profile of a subscriber: a file, or the name of one that comes with natgauge",
        type=FileText("FILE|NAME", or_name=True),
        group="traffic",
        # Its content is compared.
        moves_figures=False,
    )
    most_subscribers: int | None = chosen(
        None,
        "most subscribers that are tried",
        "subscribers",
        partial(whole, lowest=1, highest=MAXIMUM_CONNECTIONS, unit="subscribers"),
        default="as many as the ranges hold",
    )

    # Time-outs that are longer than the device's own would fill its table.
    keeps_limits = True
    # The table may be what ends it.
    fills_table = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.floods and not self.profile_of_one.new_per_second:
            raise wrong(
                "flood_share",
                f"{self.flood_share:g} of all new connections, but {self.subscriber} opens none; leave it out",
            )
        if not self.each(None).frames:
            raise wrong(
                "subscriber",
                f"{self.subscriber} has no frames, so it is a rate of connections; measure connection-rate",
            )

    @classmethod
    def traffic_of(cls, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """Return the transport and the frame sizes of the profile."""
        try:
            profile = load(str(chosen.get("subscriber", "household")))
        except UsageError:
            # The settings refuse it.
            return {}
        tags = tag_octets(chosen.get(f"{chosen.get('frame_side', 'initiator')}_vlan"))
        own: dict[str, object] = {"transport": profile.transport, **profile.frames_of_trials(tags)}
        for name in ("transport", "frame_size", *MIXES):
            _refuse_other(name, chosen.get(name), own)
        named = {name for name in RANGES if chosen.get(name) is not None}
        if named == {"source_addresses"}:
            # Four tuples for all of them, and endpoints that the ports of one outside address are enough for; several
            # hosts leave half of these free, as where natgauge chooses the ports of any other metric.
            number = chosen.get("connections", SUBSCRIBERS.traffic["connections"])
            each = OUTSIDE_PORTS // 2 if "-" in str(chosen["source_addresses"]) else OUTSIDE_PORTS
            if isinstance(number, int):
                own |= {"connections": number, "destination_ports": f"1-{max(1, math.ceil(number / each))}"}
        return {name: value for name, value in own.items() if value is not None}

    def needs(self) -> frozenset[Ability]:
        """Connections that come and go, unless none is new."""
        return super().needs() | ({Ability.CHURN} if self.profile_of_one.new_per_second else set())

    @cached_property
    def profile_of_one(self) -> Subscriber:
        """The profile, as its file was when these settings were made."""
        return load(self.subscriber)

    @property
    def of_file(self) -> str:
        """The profile, with its source."""
        return repr(self.profile_of_one)

    def refuse_unlike(self, sources: int, timeout: int | None) -> None:
        """Refuse more subscribers than the ranges hold, and connections that the device forgets while they are open."""
        if sources > 1 and self.most_subscribers is not None and self.most_subscribers > sources:
            raise wrong(
                "most_subscribers",
                f"{self.most_subscribers}, but the traffic has {sources}, each with an address or a customer edge of "
                f"its own; give {_MORE_HOSTS}, or a smaller number",
            )
        self.refuse_few_four_tuples(sources, timeout)
        profile = self.profile_of_one
        if profile.transport == "tcp":
            # An established connection is kept for longer than any trial.
            return
        idle = IDLE_DRAWS * profile.connections / (profile.up + profile.down)
        if timeout is not None and min(profile.life, idle) > timeout:
            raise wrong(
                "subscriber",
                f"{self.subscriber}: a connection lives {profile.life:g} s and may be without a frame for {idle:.0f} "
                f"s, but the device forgets it after {timeout} s; give more frames, fewer connections, or a longer "
                "--udp-timeout",
            )

    def refuse_few_four_tuples(self, sources: int, timeout: int | None) -> None:
        """Refuse ranges that are too small for the fewest subscribers, or addresses that are for one each."""
        number = self.most_subscribers or 1
        needed = math.ceil(self.each(timeout).times(number).four_tuples(self.trial_seconds))
        if needed > self.space:
            raise UsageError(
                f"connections: {with_noun(number, 'subscribers take', 'subscriber takes')} {needed}, the ranges hold "
                f"{self.space} four tuples; give more connections",
                at="most_subscribers" if self.most_subscribers else "connections",
            )
        all_take = math.ceil(self.each(timeout).times(sources).four_tuples(self.trial_seconds))
        if sources > 1 and all_take > self.space:
            raise wrong(
                "connections",
                f"a subscriber takes {math.ceil(all_take / sources)}, each of the {sources} of the traffic has "
                f"{self.space // sources} four tuples; give at least {all_take} connections, or fewer subscribers",
            )

    def most_opened(self, top: float, sources: int, timeout: int | None) -> int:
        """Those of the most subscribers that the tester, the addresses or the user allow; no more than four tuples."""
        each, hosts = self.each(timeout), math.inf if sources == 1 else sources
        most = min(top / each.made, hosts, self.most_subscribers or math.inf)
        return min(self.space, math.ceil(each.times(most).four_tuples(self.trial_seconds)))

    def fewer_by(self, most: int) -> Mapping[str, Mapping[str, Any]]:
        """The number of subscribers, too."""
        return {**super().fewer_by(most), "a smaller --most-subscribers": {"most_subscribers": 1}}

    def each(self, timeout: int | None) -> CombinedLoad:
        """What one subscriber takes of a device that forgets connections after `timeout` s; None = not known."""
        profile = self.profile_of_one
        held = max(profile.connections, profile.new_per_second * (timeout or 0))
        kept = math.inf if timeout is None else float(timeout)
        leave = leaving(profile.transport)
        return CombinedLoad(profile.new_per_second, held, profile.up, profile.down, leave=leave, kept=kept)

    def forgets_after(self, measurer: Measurer) -> int | None:
        """Return T, the seconds for which the device keeps a connection that left; None = not known."""
        # Before both ways were used, a connection may be forgotten sooner.
        return measurer.replied_timeout_seconds if self.profile_of_one.down else measurer.timeout_seconds

    def facts_of(self, measurer: Measurer) -> Mapping[str, object]:
        """Return T, where it is known and new connections are opened, which others leave for."""
        seconds = self.forgets_after(measurer) if self.profile_of_one.new_per_second else None
        return {} if seconds is None else {FORGETS: seconds}

    def parameters(self) -> dict[str, Any]:
        """The settings, the content of the profile, and what a subscriber takes a second as numbers."""
        profile = self.profile_of_one
        rates = {"up": profile.up, "down": profile.down, "new": float(profile.new_per_second)}
        return {**super().parameters(), "subscriber_profile": str(profile), SUBSCRIBER_RATES: rates}

    def notes(self) -> list[Note]:
        """Return the profile with its source."""
        source = self.profile_of_one.source or "not said"
        text = f"each subscriber: {self.profile_of_one}; source: {source}; no RFC defines this load"
        return [*super().notes(), Note("settings", text)]


def _refuse_other(name: str, given: object, own: Mapping[str, object]) -> None:
    """Refuse an option of the frames with another value than the profile's, which would replace its frames."""
    if given is None:
        return
    value = own.get(name)
    if name == "down_frame_sizes" and value is None:
        # Both directions have the mix.
        value = own.get("frame_sizes")
    if value == (str(parse_frame_sizes(name, given)) if name in MIXES and isinstance(given, str) else given):
        return
    has = value
    if has is None:
        size, mix = own.get("frame_size"), own.get("frame_sizes")
        has = f"the sizes {mix}" if mix else "the least frames" if size is None else f"one size, {size}"
    raise UsageError(
        f"{name.replace('_', ' ')}: {given}, but the profile of the subscriber has {has}; leave it out, or change the "
        "profile",
        at=name,
    )


def _start(runner: TrialRunner, settings: SubscribersSettings) -> _Subscribers | Answered:
    hosts, timeout = runner.measurer.hosts, runner.measurer.timeout_seconds
    kept = settings.forgets_after(runner.measurer)
    settings.refuse_unlike(hosts, kept)
    each = settings.each(kept)
    most = math.ceil(hosts * each.open) if hosts > 1 else settings.connections
    preparation = prepared(runner, settings, most, each.at_first(settings.trial_seconds), grows=True)
    if answered := unprepared(preparation, {}):
        return answered
    found = _Subscribers(runner, settings, preparation)
    found.each, found.timeout = each, timeout
    return found


class _Subscribers(MixedLoad[SubscribersSettings]):
    """The highest number of subscribers."""

    each: CombinedLoad
    timeout: int | None

    def load_of(self, rate: float) -> CombinedLoad:
        return self.each.times(rate)

    def plan_of(self, load: CombinedLoad, seconds: float) -> TrialPlan:
        """The trial of a load; a table that surely has room is not filled for longer than `_LONGEST_PHASE1`."""
        limit, most = self.runner.measurer.table_limit, math.inf
        if limit is not None and load.open <= ROOM * limit:
            profile = self.settings.profile_of_one
            used = profile.connections * load.open / self.each.open
            most = max(used, _LONGEST_PHASE1 * self.preparation.rate)
        plan = load.plan(self.settings, self.preparation.rate, seconds, most)
        return plan if self.hosts == 1 else replace(plan, sources=self._sources(plan, load.open / self.each.open))

    @property
    def hosts(self) -> int:
        return self.runner.measurer.hosts

    def _sources(self, plan: TrialPlan, subscribers: float) -> int:
        """One address for each subscriber, or one more where a rounded number of connections needs it."""
        needed = math.ceil((plan.connections + plan.opened_in_phase2) / max(1, self.settings.space // self.hosts))
        return min(self.hosts, max(1, round(subscribers), needed))

    @property
    def ended_by_ranges(self) -> str:
        most, end = self.settings.most_subscribers, self.span().top
        if most is not None and most <= end:
            tried = with_noun(most, "subscribers that are", "subscriber that is")
            return f"the {tried} tried at most ended the search, not the device"
        if 1 < self.hosts <= end:
            return f"the {self.hosts} subscribers of the traffic ended the search, not the device: give {_MORE_HOSTS}"
        return "the four tuples ended the search, not the device: give more --connections"

    def search_once(self, known: float | None) -> Measurement:
        """Search once, with a note where the trials had fewer or more connections than the subscribers' entries."""
        repetition, seconds = super().search_once(known), self.settings.trial_seconds
        load = self.load_of(repetition.value)
        last, wanted = self.plan_of(load, seconds).connections, load.at_first(seconds)
        if last >= wanted and self.timeout is not None and load.beyond(seconds) > _TOO_MANY * load.open:
            text = (
                f"at the end of a trial the table holds {round(load.beyond(seconds))} connections more than the "
                f"{round(load.open)} of the subscribers: {seconds:g} s of phase 2 are about as long as the device "
                "keeps a connection; use shorter trials"
            )
            return repetition.adding(Note("method", text))
        if last >= wanted:
            return repetition
        text = (
            f"phase 1 opened {last} connections instead of {wanted}, which would have taken longer than "
            f"{_LONGEST_PHASE1:g} s; the table has room for more than twice as many"
        )
        return repetition.adding(Note("method", text))

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        """Return what several source addresses use of their ports, and how long the device keeps what left.

        That decides how many entries each fills. It is a doubt where nobody knows it of a device with a table.
        """
        notes, seconds = [*super().notes(measurements), *self._few_ports(measurements)], self.each.kept
        is_closed, profile = self.settings.profile_of_one.transport == "tcp", self.settings.profile_of_one
        if not self.each.new:
            return notes
        if seconds is not None and math.isfinite(seconds):
            text = (
                f"each subscriber fills {self.each.open:g} table entries, the larger of the {profile.connections:g} of "
                f"its profile and the {profile.new_per_second * seconds:g} that it opens in {seconds:g} s: for so long "
                f"the device keeps a {'closed' if is_closed else 'silent'} connection"
            )
            return [*notes, Note("method", text)]
        if Ability.EMPTY_TIMED not in self.runner.measurer.abilities:
            return notes
        what = "time for which it keeps a closed connection" if is_closed else "time-out"
        text = (
            f"the device's {what} is not known, so of each subscriber the table had the {self.each.open:g} open "
            "connections of the profile, and none that left"
        )
        return [*notes, Note("time-out unknown", text)]

    def _few_ports(self, measurements: Sequence[Measurement]) -> Iterator[Note]:
        """Yield that trials have narrower ranges of ports than the measurement (see `TrafficPlan.of_first`)."""
        loads = [self.load_of(each.value) for each in measurements if each.value]
        if self.hosts == 1 or not loads:
            return
        plans = [self.plan_of(load, self.settings.trial_seconds) for load in loads]
        used = max(plan.of_each_source for plan in plans)
        had = max(map(self.runner.measurer.four_tuples_of_each, plans))
        if had < self.settings.space // self.hosts:
            whole = (
                ", so that all have as many" if had == used else f" for {used} connections, so that none has many more"
            )
            text = (
                f"each subscriber had {had} four tuples in a trial{whole}: of source and destination ports only the "
                "first ones, as few as that needs"
            )
            yield Note("method", text)

    def span(self) -> SearchSpan:
        settings, top, hosts = self.settings, self.top, self.hosts
        top = max(1.0, math.floor(min(top, settings.most_subscribers or top, hosts if hosts > 1 else top)))
        start = min(top, FIRST_RATE / self.each.frames)
        if self.timeout is not None:
            # The device must not forget connections before all are open.
            start = min(start, _PHASE1_SHARE * self.timeout * self.preparation.rate / self.each.open)
        start = max(1.0, start)
        own, unit = self.top_of_tester, SUBSCRIBERS.unit
        return SearchSpan(top=top, floor=1.0, start=start, unit=unit, step=1.0, tester_top=own)


PROCEDURE = Procedure(SUBSCRIBERS, settings=SubscribersSettings, start=_start, profiles={"rfc": {"repeat": 10}})

# SPDX-License-Identifier: Apache-2.0
"""Many flows at once: a crowd of one inside host's flows that grows until the gateway refuses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from natgauge.audits.kit.datagrams import quoting
from natgauge.audits.kit.examiner import PATIENCE_SECONDS, TRIES, Examiner, NotSeenError, rival_of
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.packets import Endpoint, Flow, Packet, UdpSegment, lone_packet
from natgauge.audits.kit.timers import least_udp
from natgauge.words import Address

#: Frames that are sent before any is read: few enough for the queues of a device.
_BATCH: Final = 128
_FIRST_PORT, _LAST_PORT = 1024, 65535
#: Further flows of a host that has been refused some, and how often they are tried. A gateway that chooses ports at
#: random, and that refuses all of them by chance, does not serve another host's flows, either.
_MORE, _MOST_ROUNDS = 64, 4
#: Share of a crowd's flows under which behaviour must not change.
MANY: Final = 15 / 16
#: Flows that are open before the crowd, and flows that another host opens next to it.
OLDER: Final = 4
#: The older flows are used this often.
_USED_EVERY_SECONDS: Final = 4.0
#: After more idle seconds flows may have expired, where nothing is known of the gateway's time-outs.
_MOST_IDLE_SECONDS: Final = 8.0
#: Share of the time for which mappings live, as it was measured, in which none may be gone.
_SURE: Final = 0.9
#: Flows of an examination of a crowd: how many they are depends on the gateway.
CROWD: Final = Flows(OLDER, are_many=True)

Wish = tuple[Endpoint, Endpoint]


def may_have_expired(idle: float, least: float | None) -> bool:
    """Whether flows that were idle for these seconds may have expired; `least` is as of `least_udp`."""
    return idle > (_MOST_IDLE_SECONDS if least is None else _SURE * least)


def open_all(
    examiner: Examiner, wishes: Sequence[Wish], between: Callable[[Examiner], None] = lambda _: None
) -> tuple[dict[Wish, Endpoint], list[Wish]]:
    """Open UDP flows, many at once, until the gateway refuses one; `between` is called before each batch.

    Returns:
        The outside endpoint of each flow, and the flows of the last batch that were not opened by three tries.
    """
    opened: dict[Wish, Endpoint] = {}
    refused: list[Wish] = []
    for start in range(0, len(wishes), _BATCH):
        between(examiner)
        refused = list(wishes[start : start + _BATCH])
        for _ in range(TRIES):
            opened.update(_try(examiner, refused))
            refused = [wish for wish in refused if wish not in opened]
            if not refused:
                break
        else:
            break
    return opened, refused


def _try(examiner: Examiner, wishes: Sequence[Wish]) -> dict[Wish, Endpoint]:
    """Send the first frame of each flow, and return the outside endpoints of those that arrive."""
    waiting = {examiner.tag(): wish for wish in wishes}
    opened, since = dict[Wish, Endpoint](), examiner.mark

    def take(packet: Packet) -> bool:
        segment, mapped = packet.segment, packet.sender
        # A frame that was not translated opened nothing.
        if isinstance(segment, UdpSegment) and mapped and not examiner.is_inside(mapped.address):
            wish = waiting.get(segment.data[:8])
            if wish is not None:
                opened[wish] = mapped
                examiner.inside.opens(wish[0].address, mapped.address)
        return len(opened) == len(waiting)

    with examiner.network.aside():
        for tag, (inside, remote) in waiting.items():
            examiner.send(lone_packet("udp", inside, examiner.written(remote), tag), up=True)
        examiner.network.wait("responder", take, PATIENCE_SECONDS, since=since)
    return opened


class Crowd:
    """UDP flows of one inside host to one outside endpoint.

    Inside hosts that have few flows so far are used, because a gateway can limit the flows of a host.

    Attributes:
        host: the inside host; where there is one, it has the outside address of the older flows.
        kept: how many of the older flows, which were open before the crowd, passed each time.
        is_shared: whether that other host has an outside address of the crowd, as far as it opened a flow.
        is_lasting: whether the flows that were refused are refused again after another host was served.
        evicted: how many of the crowd's first flows, as many as older ones, were gone before their time-out; None = not
            looked for, because the time-out is not known or is over.
    """

    def __init__(self, examiner: Examiner) -> None:
        """Open the older flows."""
        examiner.relieve("udp", for_many=True)
        self.remote, self.since = examiner.remote(transport="udp"), examiner.mark
        self.mapped: dict[Endpoint, Endpoint] = {}
        self.refused: list[Endpoint] = []
        self.kept, self.idle, self._used = OLDER, 0.0, examiner.network.now()
        self.is_fair, self.is_shared, self.is_lasting, self.leaked = True, True, True, False
        self.is_full = False
        self.evicted: int | None = None
        self._least, self._began = least_udp(examiner), 0.0
        self.errors: set[tuple[int, int]] = set()
        self._older = [examiner.flow("udp") for _ in range(OLDER)]
        self.host = self._competitor(examiner)

    @property
    def outside(self) -> Address:
        """Outside address of the older flows."""
        return self._older[0].mapped.address

    def _competitor(self, examiner: Examiner) -> Address:
        """Return another inside host with the outside address of the older flows; if there is none, the last host."""
        own = replace(self._older[0].inside, port=_FIRST_PORT)
        last = examiner.hosts("initiator")[-1]
        outside = examiner.open(replace(own, address=last), self.remote, "udp").mapped.address
        if outside == self.outside or last == own.address:
            return last
        found = rival_of(examiner, own, self.outside, self.remote, "udp")
        return last if found is None else found.inside.address

    @property
    def addresses(self) -> set[Address]:
        """Outside addresses of the crowd."""
        return {end.address for end in self.mapped.values()}

    @property
    def lost(self) -> bool:
        """Whether older flows did not pass, or the first ones of the crowd were gone."""
        if self.evicted:
            return True
        if self.kept < OLDER and may_have_expired(self.idle, self._least):
            raise NotSeenError(
                f"this host did not use the flows from before for {self.idle:.0f} s, so they may have expired"
            )
        return self.kept < OLDER

    @property
    def is_refused(self) -> bool:
        """Whether the one host was refused a flow."""
        return any(inside.address == self.host for inside in self.refused)

    @property
    def words(self) -> str:
        """Where the gateway's limit was, as the beginning of a sentence."""
        other = "another host still opened flows" if self.is_fair else "another host was refused"
        return f"with {len(self.mapped)} flows of one host to one remote endpoint, {other}"

    def grow(self, examiner: Examiner, share: float) -> None:
        """Open flows until there is this share of them, or until one is refused."""
        ports = range(_FIRST_PORT + len(self.mapped), _FIRST_PORT + int(share * examiner.mappings))
        if not self.refused:
            self._began = self._began or examiner.network.now()
            wishes = [(Endpoint(self.host, port), self.remote) for port in ports]
            opened, refused = open_all(examiner, wishes, self._use)
            self.mapped.update({inside: mapped for (inside, _), mapped in opened.items()})
            self.refused = [inside for inside, _ in refused]
        self._use(examiner, at_once=True)

    def look_back(self, examiner: Examiner) -> None:
        """Look whether the crowd's first flows are still open, unless they may have expired.

        A gateway without room can end flows that had no answer, rather than refuse new ones or end those that had one.
        """
        if self._least is None or examiner.network.now() - self._began > _SURE * self._least:
            return
        written = examiner.written(self.remote)
        first = islice(self.mapped.items(), OLDER)
        flows = [Flow("udp", inside, self.remote, written, mapped) for inside, mapped in first]
        gone = [flow for flow in flows if not examiner.passes(flow, up=False)]
        # Each that is gone takes seconds, and the others may have expired by then.
        if examiner.network.now() - self._began <= self._least:
            self.evicted = len(gone)

    def more(self, examiner: Examiner) -> bool:
        """Try to open flows that were refused, and further ones; whether one opens."""
        last = max((inside.port for inside in (*self.mapped, *self.refused)), default=0)
        unused = (Endpoint(self.host, port) for port in range(last + 1, _LAST_PORT + 1))
        again = (inside for inside in self.refused if inside not in self.mapped)
        opened, refused = open_all(examiner, [(one, self.remote) for one in islice(chain(again, unused), _MORE)])
        self.mapped.update({inside: mapped for (inside, _), mapped in opened.items()})
        self.refused = list(dict.fromkeys((*self.refused, *(inside for inside, _ in refused))))
        return bool(opened)

    def elsewhere(self, examiner: Examiner) -> list[Wish]:
        """Return flows of the one host from inside ports without a mapping, to each outside host in turn."""
        ends = (Endpoint(self.host, port) for port in range(_LAST_PORT, 0, -1))
        unused = islice((end for end in ends if end not in self.mapped), _MORE)
        outside = len(examiner.hosts("responder"))
        return [(end, examiner.remote(turn % outside, again=True)) for turn, end in enumerate(unused)]

    def insist(self, examiner: Examiner) -> bool:
        """Whether the one host has reached a limit: of many further flows, none opens.

        A gateway that chooses ports at random can refuse a flow although ports are free, and it finds them later.
        """
        return bool(self.refused) and any(not self.more(examiner) for _ in range(_MOST_ROUNDS))

    def _use(self, examiner: Examiner, *, at_once: bool = False) -> None:
        """Use the older flows now and then, so that they do not expire while a slow host opens others."""
        idle = examiner.network.now() - self._used
        if idle < _USED_EVERY_SECONDS and not at_once:
            return
        self.idle = max(self.idle, idle)
        # What enters shows that a mapping is there; what leaves refreshes it.
        self.kept = min(self.kept, sum(examiner.passes(flow, up=False) for flow in self._older))
        for flow in self._older:
            examiner.passes(flow, up=True)
        self._used = examiner.network.now()


def _others(examiner: Examiner, crowd: Crowd) -> Iterator[Address]:
    """Yield the other inside hosts that the gateway has served; those with an outside address of the crowd come first.

    The host of the older flows comes last: they may be all that it can have.
    """
    first = examiner.host(0)
    for host in examiner.inside.rivals(crowd.host, crowd.outside):
        if host != first and (host in examiner.inside.team or examiner.inside.opened(host)):
            yield host
    if first != crowd.host:
        yield first


def _is_full(examiner: Examiner, crowd: Crowd) -> bool:
    """Whether the outside address of the crowd has no port left, though the gateway has room for flows elsewhere.

    Either the crowd has about as many flows as an address has ports; or another host of the address was refused, and
    one with another address is served. A limit of each host refuses only the first, and others that had about as many
    flows before; a limit of the table refuses all.
    """
    if len(crowd.mapped) >= MANY * (_LAST_PORT - _FIRST_PORT + 1):
        return True
    refused, most = {inside.address for inside in crowd.refused} - {crowd.host}, examiner.inside.opened(crowd.host)
    unlimited = (host for host in refused if examiner.inside.opened(host) + OLDER <= most)
    if not any(examiner.inside.outside(host) in crowd.addresses for host in unlimited):
        return False
    for host in _others(examiner, crowd):
        if host in refused or examiner.inside.outside(host) in (None, *crowd.addresses):
            continue
        opened, _ = open_all(examiner, [(replace(examiner.endpoint(), address=host), crowd.remote)])
        return any(mapped.address not in crowd.addresses for mapped in opened.values())
    return False


def exhausted(examiner: Examiner) -> Crowd:
    """Open as many flows of one inside host as it can have, and then some of another one."""
    crowd = examiner.once(Crowd)
    examiner.host(1)
    crowd.grow(examiner, 1.0)
    crowd.look_back(examiner)
    is_lasting = crowd.insist(examiner)
    for host in _others(examiner, crowd):
        wishes = [(replace(examiner.endpoint(), address=host), crowd.remote) for _ in range(OLDER)]
        opened, refused = open_all(examiner, wishes)
        crowd.is_fair = not refused
        crowd.is_shared = any(mapped.address in crowd.addresses for mapped in opened.values())
        if crowd.is_shared or refused:
            crowd.refused += [inside for inside, _ in refused]
            break
    crowd.is_full = crowd.is_refused and _is_full(examiner, crowd)
    # Flows of the one host that expired meanwhile leave room for others, whose number is then not limited.
    crowd.is_lasting = is_lasting and not (crowd.is_fair and crowd.more(examiner))
    for inside in {end.address: end for end in crowd.refused}.values():
        # One more of each host for the evidence.
        with suppress(NotSeenError):
            examiner.open(inside, crowd.remote, "udp")
    if not crowd.refused and not crowd.lost:
        raise NotSeenError(
            f"{len(crowd.mapped)} flows of one host to one remote endpoint were opened, none was refused"
        )
    # A frame that leaves untranslated is a leak whatever its checksum.
    with examiner.network.damaged_too():
        outside = examiner.network.arrived(crowd.since, "responder")
    crowd.leaked = any(frame.packet.sender in crowd.refused for frame in outside)
    for frame in examiner.network.arrived(crowd.since, "initiator"):
        if (error := quoting(frame.packet, crowd.refused)) is not None:
            examiner.network.received(frame)
            crowd.errors.add((error.kind, error.code))
    return crowd

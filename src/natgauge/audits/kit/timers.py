# SPDX-License-Identifier: Apache-2.0
"""Idle time-outs of all kinds of mappings, measured in one wait.

Many mappings of each kind are opened at once. Each is left idle for a time of its own, and then probed once from
outside. The longest idle time that a mapping survives and the shortest that one does not survive bound the time-out.
Idle times grow by 5 %, so one wait as long as the time-out bounds it to 5 %; a search by bisection would wait many
times (Hätönen et al., "An Experimental Study of Home Gateway Characteristics", IMC 2010).

A gateway without room for so many gives up some of them for others. That is no time-out, but it looks like a short one.
It shows where mappings are gone long before others of their kind, or where none of a kind was ever there. If mappings
that are older lived, there was room, and the gateway removes this kind at once, as some do after a reset. Otherwise few
mappings are watched again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from typing import Final

from natgauge.audits.kit.datagrams import error_about, received
from natgauge.audits.kit.examiner import Examiner, NotSeenError, rival_of
from natgauge.audits.kit.packets import ACK, RST, SYN, Flow, Packet, TcpSegment, UdpSegment, is_same
from natgauge.words import Address, Transport

_RATIO: Final = 1.05
#: Refreshed mappings need an idle time only somewhere below the time-out, which leaves a factor of two.
_COARSE_RATIO: Final = 1.3
_LEAST_SECONDS: Final = 1.0
#: Below this, idle times grow by the coarse ratio.
_FINE_SECONDS: Final = 5.0
#: Time of a refresh and of the probe behind it, as shares of the idle time.
REFRESH_AT, PROBE_AT = 0.6, 1.2
#: A kind is done when so many mappings in a row have expired.
_EXPIRED_IN_A_ROW: Final = 3
#: A mapping is probed just before the time for which it must live: a time-out of just that time is enough.
BELOW: Final = 0.985
#: The longest idle time is this much above what an RFC requires.
_BEYOND: Final = 1.02
_SHOWN_EVERY_SECONDS: Final = 1.0
_STREAM_SECONDS: Final = 3.0
#: Devices have time-outs of 1 s and more.
_STREAM_GAP_SECONDS: Final = 0.5
#: A mapping that is gone before this share of the idle time that another one of its kind survived was not ended by a
#: time-out. A gateway that looks for old mappings now and then ends some up to twice as late as others.
_LONG_BEFORE: Final = 0.5
#: Share of a required time after which a mapping that is gone shows that it did not live for it.
_SURELY_BEFORE: Final = 0.9
#: The shortest idle time of few mappings: a time-out of 1 s is longer.
_SHORTEST_SECONDS: Final = 0.5
_MEANWHILE: Final = "during the idle time of its mapping"
#: The wait ends so long after the time that was told, whatever keeps it: a device that died costs seconds a mapping.
_LATE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class TimerKind:
    """One kind of mapping whose time-out is measured.

    Attributes:
        required: seconds for which the RFCs want such a mapping to live; it is not watched for much longer.
        watched: seconds for which it is watched if that is longer: what must end before another kind is watched as
            long as that kind.
        open: opens a mapping and leaves it in the state that the name says.
        probe: flags of the segment from outside that shows whether the mapping is there; None = data over the flow.
        refresh: what is done during the idle time; None = nothing. It returns the tag by which its frame is known where
            it arrives; empty = nothing shows whether it passed.
        plain: name of the same kind without it, whose time-out decides when this one is done.
        remote_port: destination port of the mapping; None = any.
        again_after: seconds after which both sides send once more, before the idle time begins; 0 = they do not.
            Linux takes a UDP flow for a stream only if it has lasted for two seconds. Until then the inside sends now
            and then, because a mapping may live for less.
    """

    name: str
    transport: Transport
    required: float
    watched: float = field(default=0.0, kw_only=True)
    open: Callable[[Examiner, Flow], None] = lambda _examiner, _flow: None
    probe: int | None = None
    refresh: Callable[[Examiner, Flow], bytes] | None = None
    plain: str = ""
    remote_port: int | None = None
    again_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Refreshed:
    """One mapping with something that happened to it during its idle time, by the clock and not by plan.

    Attributes:
        idled: when the mapping was still there, or was gone at the latest, s after it was opened.
    """

    at: float
    idled: float
    there: bool
    frames: tuple[int, ...]


@dataclass(slots=True)
class TimerSeen:
    """What was seen of the mappings of one kind.

    Attributes:
        alive: longest idle time after which a mapping was there, s; None = none was.
        dead: shortest idle time after which a mapping was not there, s; None = all were.
        probes: all idle times with whether the mapping was there, by planned idle time; of a kind without refresh.
        refreshed: the mappings of a kind with refresh whose refresh passed, in order.
        gone_early: mappings in a row that were gone before their idle time began, or whose refresh did not pass.
        given_again: for each mapping that was gone, whether the next host that asked got its outside endpoint.
        has_room: whether a kind whose mappings were opened before these had room: the oldest ones are given up first.
        few: what was seen of few mappings, where many may have made room for each other; None = they need not have.
    """

    kind: TimerKind
    alive: float | None = None
    dead: float | None = None
    frames: list[int] = field(default_factory=list)
    probes: dict[float, bool] = field(default_factory=dict)
    refreshed: list[Refreshed] = field(default_factory=list)
    gone_early: int = 0
    given_again: list[bool] = field(default_factory=list)
    has_room: bool = False
    few: TimerSeen | None = None

    @property
    def settled(self) -> TimerSeen:
        """What was seen of few mappings, or else of many."""
        return self if self.few is None else self.few

    @property
    def is_odd(self) -> bool:
        """Whether mappings may have made room for others: one was gone long before others, or none was ever there."""
        return not (self.has_room if self.alive is None else self.is_in_order)

    @property
    def is_in_order(self) -> bool:
        """Whether mappings were there, and none was gone long before others."""
        return self.alive is not None and (self.dead is None or self.dead >= _LONG_BEFORE * self.alive)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The longest idle time that mappings survived and the shortest that they did not, s; None = not known.

        Neither is known where one mapping was gone before another that lived longer.
        """
        alive, dead = self.settled.alive, self.settled.dead
        return (None, None) if alive is not None and dead is not None and alive > dead else (alive, dead)

    def lives(self, seconds: float) -> bool | None:
        """Whether a mapping lives for this time, which is one of `_REQUIRED_SECONDS`; None = not known.

        Where many mappings may have made room for each other, few decide, unless some of these did so, too.
        """
        if self.few is None:
            return self._lived(seconds)
        return None if self.few.is_odd else self.few.lives(seconds)

    def gave_way(self, seconds: float) -> bool:
        """Whether mappings live for this time, but not where there are many."""
        return self.lives(seconds) is True and self._lived(seconds) is not True

    def _lived(self, seconds: float) -> bool | None:
        """Whether these mappings lived for this time; None = not known.

        Mappings are probed 1.5 % earlier, because a time-out of just that time is enough. Where some mappings lived
        for it and others were gone before, it is not known; nor where none was seen to live for it, and none was gone
        before it either.
        """
        if self.alive is not None and self.alive >= seconds * BELOW:
            return None if self.dead is not None and self.dead < seconds * BELOW else True
        return False if self.dead is not None and self.dead < seconds else None

    def add(self, idle: float, frames: Iterable[int], *, there: bool) -> None:
        """Note whether a mapping was there after this idle time, which its frames show."""
        before = self.alive if there else self.dead
        if before is not None and (idle > before) != there:
            return
        # Frames of the last mapping that was there before the first one was gone, and of that one.
        self.frames = [*frames] if self.dead is None else [*self.frames, *frames]
        if there:
            self.alive = idle
        else:
            self.dead = idle

    @property
    def words(self) -> str:
        """The time-out as a sentence, without its full stop."""
        if self.few is not None:
            return f"{self._own_words} among many mappings, and {self.few.words} among few"
        return self._own_words

    @property
    def _own_words(self) -> str:
        if self.dead is None and self.gone_early and self.kind.again_after:
            return f"gone within the first {self.kind.again_after:g} s, before the idle time began"
        if self.dead is None:
            return "no mapping was watched" if self.alive is None else f"still there after {self.alive:.1f} s"
        if self.alive is None:
            return f"gone after {self.dead:.1f} s"
        if self.alive > self.dead:
            return f"gone between {self.dead:.1f} and {self.alive:.1f} s, not always at the same time"
        return f"gone between {self.alive:.1f} and {self.dead:.1f} s"


def _must(passed: object, what: str) -> None:
    if not passed:
        raise NotSeenError(f"{what} did not pass")


def _answer(examiner: Examiner, flow: Flow) -> None:
    _must(examiner.passes(flow, up=False), "an answer")


def _stream(examiner: Examiner, flow: Flow) -> None:
    for _ in range(3):
        _answer(examiner, flow)
        _must(examiner.passes(flow, up=True), "a frame of a stream")


def _close(examiner: Examiner, flow: Flow, *, is_acknowledged: bool = True) -> None:
    examiner.shake_hands(flow)
    _must(not examiner.close(flow, is_acknowledged=is_acknowledged), "a segment that closes a connection")


def _reset(examiner: Examiner, flow: Flow) -> None:
    examiner.shake_hands(flow)
    _must(examiner.sends(flow, RST | ACK, up=True), "a reset")


def _send(examiner: Examiner, flow: Flow, *, up: bool, note: str = "") -> bytes:
    tag = examiner.tag()
    examiner.send(flow.packet(tag, up=up), up=up, note=note)
    return tag


_refresh: Final = partial(_send, note=_MEANWHILE)


def _send_error(examiner: Examiner, flow: Flow, *, up: bool) -> bytes:
    """Send an ICMP error twice: a gateway may drop it and act on it, so nothing shows whether it was lost."""
    error = error_about(received(flow, up=up), flow.ends(up=up)[0].address, "port unreachable")
    for _ in range(2):
        examiner.send(error, up=up, note=_MEANWHILE)
    return b""


#: RFC 4787 REQ-5 and REQ-5c, RFC 5508 REQ-2, RFC 5382 REQ-5.
UDP_LEAST, UDP_RECOMMENDED, ICMP_LEAST, TRANSITORY_LEAST, ESTABLISHED_LEAST = 120.0, 300.0, 60.0, 240.0, 7440.0
_REQUIRED_SECONDS: Final = (ICMP_LEAST, UDP_LEAST, TRANSITORY_LEAST, UDP_RECOMMENDED, ESTABLISHED_LEAST)

UDP_OUT, UDP_BOTH, UDP_STREAM = "UDP, one frame out", "UDP, one frame each way", "UDP, several frames each way"
#: Kinds of UDP mappings to any port, without anything that may refresh them.
UDP_KINDS: Final = (UDP_OUT, UDP_BOTH, UDP_STREAM)
ICMP_QUERY, RESET = "ICMP query and reply", "TCP, reset by the inside"
HALF_OPEN, ESTABLISHED, CLOSED = "TCP, SYN and answer", "TCP, established", "TCP, closed by both FINs"
CLOSING: Final = "TCP, both FINs without the last ACK"
REFRESHED_OUT, REFRESHED_IN = "UDP, refreshed from inside", "UDP, refreshed from outside"
UDP_ERROR, ICMP_ERROR = "UDP, then an ICMP error from inside", "ICMP query and reply, then an error"

TIMERS: Final = (
    TimerKind(UDP_OUT, "udp", UDP_RECOMMENDED),
    TimerKind(UDP_BOTH, "udp", UDP_RECOMMENDED, _answer),
    TimerKind(UDP_STREAM, "udp", UDP_RECOMMENDED, _stream, again_after=_STREAM_SECONDS),
    TimerKind("UDP to port 53, one frame each way", "udp", UDP_RECOMMENDED, _answer, remote_port=53),
    TimerKind(REFRESHED_OUT, "udp", UDP_RECOMMENDED, refresh=partial(_refresh, up=True), plain=UDP_OUT),
    TimerKind(REFRESHED_IN, "udp", UDP_RECOMMENDED, _answer, refresh=partial(_refresh, up=False), plain=UDP_BOTH),
    TimerKind(UDP_ERROR, "udp", UDP_RECOMMENDED, _answer, refresh=partial(_send_error, up=True), plain=UDP_BOTH),
    TimerKind(ICMP_QUERY, "icmp", ICMP_LEAST, _answer),
    TimerKind(ICMP_ERROR, "icmp", ICMP_LEAST, _answer, refresh=partial(_send_error, up=False), plain=ICMP_QUERY),
    TimerKind("TCP, SYN", "tcp", TRANSITORY_LEAST, probe=SYN | ACK),
    TimerKind(HALF_OPEN, "tcp", TRANSITORY_LEAST, Examiner.accept, probe=SYN | ACK, watched=ESTABLISHED_LEAST),
    TimerKind(ESTABLISHED, "tcp", ESTABLISHED_LEAST, Examiner.shake_hands),
    TimerKind(CLOSING, "tcp", TRANSITORY_LEAST, partial(_close, is_acknowledged=False), probe=ACK),
    TimerKind(CLOSED, "tcp", TRANSITORY_LEAST, _close, probe=ACK, watched=ESTABLISHED_LEAST),
    TimerKind(RESET, "tcp", TRANSITORY_LEAST, _reset, probe=ACK),
)


def idle_times(kind: TimerKind, wait: float) -> list[float]:
    """Return the idle times of a kind's mappings: from 1 s up to the required time or the longest wait."""
    top = min(max(kind.required, kind.watched) * _BEYOND, wait if kind.refresh is None else wait / PROBE_AT)
    times, now = list[float](), _LEAST_SECONDS
    while now < top:
        times.append(now)
        now *= _RATIO if now >= _FINE_SECONDS and kind.refresh is None else _COARSE_RATIO
    required = (one * BELOW for one in _REQUIRED_SECONDS if one * BELOW < top and kind.refresh is None)
    return sorted({*times, top, *required})


def few_idle_times(kind: TimerKind, wait: float) -> list[float]:
    """Return the idle times of the few mappings of a kind: a short one, and those for which mappings must live."""
    top = min(kind.required * _BEYOND, wait)
    # A mapping that is gone is known to be so some seconds later, which must be before the required time.
    shares = (_SURELY_BEFORE, BELOW)
    required = (one * share for one in _REQUIRED_SECONDS for share in shares if one * share < top)
    return sorted({_SHORTEST_SECONDS, top, *required})


def plan(kinds: Sequence[TimerKind], wait: float) -> tuple[int, float]:
    """Return the number of mappings, and the longest time in seconds that they are watched for."""
    times = [(kind, idle_times(kind, wait)) for kind in kinds]
    longest = max(
        (idle[-1] * (1.0 if kind.refresh is None else PROBE_AT) + kind.again_after for kind, idle in times),
        default=0.0,
    )
    return sum(len(idle) for _, idle in times), longest


def expected(kinds: Sequence[TimerKind], wait: float, timeout: float) -> float:
    """Return about how many seconds pass until the mappings of all kinds have expired, if each lives `timeout` s."""
    ratio = _RATIO if timeout >= _FINE_SECONDS else _COARSE_RATIO
    return plan(kinds, min(wait, timeout * ratio**_EXPIRED_IN_A_ROW))[1]


def least_udp(examiner: Examiner) -> float | None:
    """Return for how many seconds UDP mappings live at least, as they were measured or set; None = not known."""
    lives = [examiner.timers[name].alive or 0.0 for name in UDP_KINDS if name in examiner.timers]
    if "udp_timeout" in examiner.knobs:
        lives.append(examiner.knobs["udp_timeout"])
    return min(lives, default=None)


def set_by_option(examiner: Examiner, transport: Transport) -> tuple[int, str] | None:
    """Return the time-out in s that the user set for mappings of a transport, and the option; None = not set."""
    every, udp = (examiner.knobs.get(name) for name in ("timeouts", "udp_timeout"))
    if transport == "udp" and udp is not None and udp != every:
        return udp, "--udp-timeout"
    return None if every is None else (every, "--timeouts")


def watch(
    examiner: Examiner,
    kinds: Iterable[TimerKind],
    wait: float,
    show: Callable[[str], None] = lambda _: None,
    *,
    times: Callable[[TimerKind, float], list[float]] = idle_times,
) -> dict[str, TimerSeen]:
    """Measure the time-outs of these kinds in one wait of at most `wait` seconds; `show` receives the progress.

    `times` gives the idle times of the mappings of a kind, at most as long as those of `idle_times`.

    Returns:
        What was seen, by the kind's name; a kind that cannot be opened is missing.
    """
    found: dict[str, TimerSeen] = {}
    events: list[tuple[float, int, TimerSeen, Iterator[float]]] = []
    hosts = cycle(examiner.inside.every)
    for kind, host in zip(kinds, hosts, strict=False):
        show(f"time-outs: opening mappings: {kind.name}")
        with suppress(NotSeenError):
            seen, opened = _opened(examiner, kind, times(kind, wait), host)
            events += [(due, number, seen, life) for number, (due, life) in enumerate(opened, start=len(events))]
            found[kind.name] = seen
    heapq.heapify(events)
    begun = examiner.network.now()
    _, longest = plan([seen.kind for seen in found.values()], wait)
    while events:
        due, number, seen, life = heapq.heappop(events)
        if _is_done(seen, found):
            continue
        if examiner.network.now() - begun > longest + _LATE_SECONDS:
            break
        while (now := examiner.network.now()) < due:
            left = sum(not _is_done(one, found) for one in found.values())
            show(f"time-outs: {now - begun:.0f} of at most {longest:.0f} s, {left} of {len(found)} kinds still there")
            examiner.network.pause(min(due, now + _SHOWN_EVERY_SECONDS))
        # A mapping that a host which stalled left undecided is not counted.
        with suppress(NotSeenError, StopIteration):
            heapq.heappush(events, (next(life), number, seen, life))
    has_room = False
    for seen in found.values():
        seen.has_room = has_room
        has_room |= seen.kind.refresh is None and seen.is_in_order
    return found


def crowded(found: Iterable[TimerSeen]) -> list[TimerSeen]:
    """Return what was seen of kinds whose mappings were gone too early, where some may have made room for others."""
    plain = [seen for seen in found if seen.kind.refresh is None]
    if not any(seen.is_odd for seen in plain):
        return []
    return [seen for seen in plain if seen.is_odd or seen.lives(seen.kind.required) is False]


def watch_few(examiner: Examiner, doubtful: Sequence[TimerSeen], wait: float, show: Callable[[str], None]) -> None:
    """Watch few mappings of these kinds, for which there is room where there was none for many; as of `watch`."""
    few = watch(examiner, [seen.kind for seen in doubtful], wait, show, times=few_idle_times)
    for seen in doubtful:
        seen.few = few.get(seen.kind.name, TimerSeen(seen.kind))


def _opened(
    examiner: Examiner, kind: TimerKind, idle_seconds: Sequence[float], host: Address
) -> tuple[TimerSeen, list[tuple[float, Iterator[float]]]]:
    """Open the mappings of a kind from one inside host, because a gateway can limit the flows of a host.

    If the gateway does not serve this host, the first one of the team opens them.
    """
    first, seen = examiner.host(0), TimerSeen(kind)
    lives = [_life(examiner, seen, idle, host) for idle in idle_seconds]
    try:
        return seen, [(next(life), life) for life in lives]
    except NotSeenError:
        if host == first:
            raise
    return _opened(examiner, kind, idle_seconds, first)


def _life(examiner: Examiner, seen: TimerSeen, idle: float, host: Address) -> Iterator[float]:
    """Open a mapping, leave it idle, and probe it; yields the times of the clock at which its next step is due."""
    kind, network, first = seen.kind, examiner.network, examiner.mark
    inside = replace(examiner.endpoint(), address=host)
    flow = examiner.open(
        inside, examiner.remote(0, kind.remote_port, transport=kind.transport, again=True), kind.transport
    )
    began = network.now()
    kind.open(examiner, flow)
    opened, shown = network.now(), range(first, examiner.mark)
    if kind.again_after:
        while (now := network.now()) < opened + kind.again_after:
            yield min(opened + kind.again_after, now + _STREAM_GAP_SECONDS)
            _send(examiner, flow, up=True)
        # Nobody waits for frames of a mapping that is gone: all others would wait as well.
        there = examiner.undisturbed(lambda: _is_there(examiner, kind, flow, "before it is left idle"))
        seen.gone_early = 0 if there else seen.gone_early + 1
        if not there:
            return
        began, first = network.now(), examiner.mark
        _stream(examiner, flow)
        opened, shown = network.now(), range(first, examiner.mark)
    frames, at, words = [*shown], 0.0, "without another frame"
    if kind.refresh is not None:
        yield opened + idle * REFRESH_AT
        first = examiner.mark
        tag = kind.refresh(examiner, flow)
        refreshed, behind = network.now(), examiner.mark
        at = refreshed - began
        yield opened + idle * PROBE_AT
        arrival = _arrival(examiner, tag, behind) if tag else range(0)
        seen.gone_early = 0 if arrival is not None else seen.gone_early + 1
        if arrival is None:
            # A frame that was lost refreshes nothing.
            return
        frames += [*range(first, behind), *arrival]
        words = f"and {network.now() - refreshed:.1f} s after the frame during its idle time"
    else:
        yield opened + idle
    first, sent = examiner.mark, network.now()
    note = f"after {sent - opened:.1f} s {words}"
    there = examiner.undisturbed(lambda: _is_there(examiner, kind, flow, note))
    # A mapping that is there has lived at least from `opened` to `sent`; one that is gone, at most from `began` to now.
    idled = sent - opened if there else network.now() - began
    frames += range(first, examiner.mark)
    if kind.refresh is None:
        seen.probes[idle] = there
        seen.add(idled, frames, there=there)
    else:
        # Several mappings may decide a verdict, each with frames of its own.
        seen.refreshed.append(Refreshed(at, idled, there, tuple(frames)))
        seen.add(idled, (), there=there)
    if not there:
        _ask_again(examiner, seen, flow)


def _arrival(examiner: Examiner, tag: bytes, since: int) -> range | None:
    """Return the number of the frame that arrived with this tag after `since` frames, in a range; None = none did."""
    for number in range(since, examiner.mark):
        frame = examiner.network.frames[number]
        segment = frame.packet.segment
        if not frame.sent and not frame.damaged and isinstance(segment, UdpSegment) and segment.data[:8] == tag:
            examiner.network.received(frame)
            return range(number, number + 1)
    return None


def _is_there(examiner: Examiner, kind: TimerKind, flow: Flow, note: str) -> bool:
    flags = kind.probe
    if flags is None:
        packet = flow.packet(examiner.tag(), up=False)
    else:
        packet = flow.tcp(flags, up=False, back=int(flags != ACK))

    def wanted(seen: Packet) -> bool:
        if flags is None:
            return seen.destination == flow.inside.address and is_same(seen, packet)
        return isinstance(seen.segment, TcpSegment) and seen.receiver == flow.inside

    return examiner.deliver(packet, up=False, wanted=wanted, note=note) is not None


def _is_done(seen: TimerSeen, found: Mapping[str, TimerSeen]) -> bool:
    """Whether the last mappings of a kind had all expired, or could not be kept.

    Refreshed ones are probed for a little longer.
    """
    is_plain = seen.kind.refresh is None
    if is_plain and seen.gone_early >= _EXPIRED_IN_A_ROW:
        return True
    plain = seen if is_plain else found.get(seen.kind.plain)
    probes = [] if plain is None else sorted(plain.probes.items())
    last = [there for _, there in probes][-_EXPIRED_IN_A_ROW:]
    if len(last) < _EXPIRED_IN_A_ROW or any(last):
        return False
    if is_plain or seen.gone_early >= _EXPIRED_IN_A_ROW:
        return True
    return any(one.idled > probes[-1][0] for one in seen.refreshed)


def _ask_again(examiner: Examiner, seen: TimerSeen, flow: Flow) -> None:
    """Let another host open a flow like the one whose mapping is gone."""
    if seen.kind.transport != "udp" or seen.kind.refresh is not None or len(examiner.hosts("initiator")) < 2:
        return
    first = examiner.mark
    with suppress(NotSeenError):
        again = rival_of(examiner, flow.inside, flow.mapped.address, flow.remote, "udp")
        if again is None:
            return
        seen.given_again.append(again.mapped == flow.mapped)
        seen.frames.extend(range(first, examiner.mark))

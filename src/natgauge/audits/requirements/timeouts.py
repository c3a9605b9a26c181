# SPDX-License-Identifier: Apache-2.0
"""Time-outs of mappings: RFC 4787 section 4.3, RFC 5382 section 5, RFC 5508 section 3.2, RFC 7857 sections 2 and 7."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Final

from natgauge.audits.kit import timers
from natgauge.audits.kit.classes import OVERLOADING_FLOWS, PORT_FLOWS, filtering, ports
from natgauge.audits.kit.examiner import Examiner, NotApplicableError, NotSeenError
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.timers import TimerKind, TimerSeen
from natgauge.audits.requirements import CGN, NO_FLOWS, Finding, Source, requires
from natgauge.records.audit import Level

_KINDS: Final = {kind.name: kind for kind in timers.TIMERS}
_UDP: Final = timers.UDP_KINDS
#: Part of the name of the gateway's setting, for kinds that few wait for.
_SETTINGS: Final = {timers.ESTABLISHED: "tcp_timeout_established"}
_TRANSITORY: Final = ("TCP, SYN", timers.HALF_OPEN, timers.CLOSING)
#: A mapping that is gone before this share of a chosen time-out was not ended by it.
_MUCH_BEFORE: Final = 0.9
_TRACKED: Final = (timers.HALF_OPEN, timers.CLOSED, timers.ESTABLISHED)


def _seen(examiner: Examiner, name: str) -> TimerSeen:
    seen = examiner.timers.get(name)
    if not isinstance(seen, TimerSeen):
        raise NotSeenError("no time-out of this kind was measured; --wait gives the longest wait for time-outs")
    examiner.cite(seen.frames)
    if seen.few is not None:
        examiner.cite(seen.few.frames)
    return seen


def _words(*every: TimerSeen) -> str:
    return "; ".join(f"{seen.kind.name}: {seen.words}" for seen in every)


def _refuse_crowded(*every: TimerSeen) -> None:
    """Refuse to conclude from mappings that may have made room for others."""
    if any(seen.settled.is_odd for seen in every):
        raise NotSeenError(
            f"a short time-out cannot be told from a gateway that gives up mappings for others ({_words(*every)})"
        )


def _lived(every: Iterable[TimerSeen], chosen: float) -> bool:
    """Whether no mapping of these kinds was gone much before the time-out that the user chose, which explains none."""
    return all(seen.settled.dead is None or seen.settled.dead >= _MUCH_BEFORE * chosen for seen in every)


def _at_least(seconds: float, names: tuple[str, ...], examiner: Examiner) -> Finding:
    every = [_seen(examiner, name) for name in names]
    lives = [seen.lives(seconds) for seen in every]
    if False in lives:
        chosen = timers.set_by_option(examiner, every[0].kind.transport)
        failed = [seen for seen, lived in zip(every, lives, strict=True) if lived is False]
        if chosen is not None and chosen[0] < seconds and _lived(failed, chosen[0]):
            raise NotSeenError(f"time-outs are set to {chosen[0]} s by {chosen[1]} ({_words(*every)})")
        return False, _words(*every)
    if None not in lives:
        gave_way = any(seen.gave_way(seconds) for seen in every)
        why = "; among many the gateway gave up mappings for others, which is no time-out" if gave_way else ""
        return True, f"{_words(*every)}{why}"
    if any(seen.few is not None for seen in every):
        _refuse_crowded(*every)
    setting = _SETTINGS.get(names[0], "")
    known = [
        f"; {name} is set to {value} s" for name, value in examiner.configured.items() if setting and setting in name
    ]
    if all(seen.dead is not None for seen, lived in zip(every, lives, strict=True) if lived is None):
        raise NotSeenError(f"whether each lives for {seconds:g} s was not seen ({_words(*every)})")
    raise NotSeenError(
        f"needs a wait of {seconds:g} s, the allowed --wait was shorter ({_words(*every)}{''.join(known)})"
    )


def _examine_refresh(
    kind: TimerKind,
    wanted: bool,  # noqa: FBT001 - from a table
    level: Level,
    examiner: Examiner,
) -> Finding:
    """See whether a frame during the idle time keeps a mapping longer than its time-out, or ends it before."""
    timeout, refreshed = _seen(examiner, kind.plain), _seen(examiner, kind.name)
    if timeout.few is not None or timeout.is_odd:
        raise NotSeenError(f"among many mappings the gateway may have given up some for others ({timeout.words})")
    # A gateway that looks for old mappings now and then ends some up to twice as late as others.
    shortest = min(timeout.alive or 0.0, math.inf if timeout.dead is None else timeout.dead)
    early = [one for one in refreshed.refreshed if one.idled < 0.95 * shortest]
    gone = [one for one in early if not one.there]
    # One probe of several can be lost.
    if not wanted and 2 * len(gone) > len(early):
        examiner.cite(gone[-1].frames)
        words = f"{kind.name}: {len(gone)} of {len(early)} mappings were gone long before their time-out"
        if kind.name != timers.ICMP_ERROR:
            raise NotSeenError(f"{words}, as RFC 4787 REQ-12 forbids ({timeout.words})")
        return False, f"{words} ({timeout.words})"
    if timeout.dead is None or timeout.alive is None:
        raise NotSeenError(f"the time-out itself was not seen ({timeout.words})")
    longest = max(timeout.alive, timeout.dead)
    for one in refreshed.refreshed:
        # A mapping that was looked at too late can have expired after it was refreshed.
        is_late = not one.there and one.idled - one.at >= 0.95 * shortest
        if one.at < 0.95 * shortest and one.idled > 1.05 * longest and not (wanted and is_late):
            examiner.cite(one.frames)
            words = f"with a time-out of about {longest:.0f} s, {kind.name} after {one.at:.0f} s: the mapping was "
            words += f"{'there' if one.there else 'gone'} after {one.idled:.0f} s"
            if one.there != wanted and level == "MAY":
                raise NotApplicableError(f"the gateway does without what it may do, which is permitted ({words})")
            return one.there == wanted, words
    raise NotSeenError(f"no mapping was refreshed before the time-out and looked at after it ({timeout.words})")


@requires(
    "half-open and closed TCP connections are forgotten before open ones",
    (7857, "2", "SHOULD", "tcp"),
    flows=NO_FLOWS,
    timers=_TRACKED,
)
def _examine_tracking(examiner: Examiner) -> Finding:
    """Connections that are half open or closed must not live as long as open ones (RFC 6146 section 3.5.2)."""
    every = [_seen(examiner, name) for name in _TRACKED]
    _refuse_crowded(*every)
    half, closed, opened = (seen.settled for seen in every)
    lasting, words = opened.alive or 0.0, _words(*every)
    if all(seen.dead is not None and seen.dead < lasting for seen in (half, closed)):
        return True, words
    # One that was there when it was last looked at may still be gone before open ones are.
    lacking = [seen for seen in (half, closed) if seen.dead is None or seen.dead >= lasting]
    if any(seen.dead is None and (opened.dead is None or (seen.alive or 0.0) < opened.dead) for seen in lacking):
        raise NotSeenError(f"the wait was too short ({words})")
    if (chosen := timers.set_by_option(examiner, "tcp")) is not None and _lived(lacking, chosen[0]):
        raise NotSeenError(f"all time-outs are set to {chosen[0]} s by {chosen[1]} ({words})")
    return False, words


@requires(
    "outside ports are not given again for 120 s",
    (6888, "REQ-8", "SHOULD", "udp"),
    flows=Flows(PORT_FLOWS + OVERLOADING_FLOWS + 1),
    profiles=CGN,
    timers=_UDP,
)
def _examine_again(examiner: Examiner) -> Finding:
    """Look at outside ports of mappings that were gone for a few seconds."""
    every = [_seen(examiner, name) for name in _UDP]
    answers = [again for seen in every for again in seen.given_again]
    if not answers:
        raise NotSeenError(f"no mapping expired, or the tester has one inside address only ({_words(*every)})")
    filtered = examiner.once(filtering)
    if filtered != "endpoint-independent":
        raise NotApplicableError(f"ports with filtering that is {filtered} may be given again at once")
    words = f"{sum(answers)} of {len(answers)} outside ports whose mapping had expired went to the next host that asked"
    if not any(answers) and examiner.once(ports).entropy is not None:
        raise NotSeenError(f"{words}, but the gateway chooses ports by itself")
    return not any(answers), words


_FOUR: Final = "TCP connections that open or close live for 4 minutes"
_OPEN: Final = "open TCP connections live for 2 hours and 4 minutes"
#: Text, source, seconds for which mappings must live, and their kinds.
_LIVES: Final[tuple[tuple[str, Source, float, tuple[str, ...]], ...]] = (
    ("UDP mappings live for 2 minutes", (4787, "REQ-5", "MUST", "udp"), timers.UDP_LEAST, _UDP),
    ("UDP mappings live for 5 minutes", (4787, "REQ-5c", "SHOULD", "udp"), timers.UDP_RECOMMENDED, _UDP),
    # RFC 5382 section 5 leaves out TIME_WAIT, the state after the last ACK.
    (_FOUR, (5382, "REQ-5", "MUST", "tcp"), timers.TRANSITORY_LEAST, _TRANSITORY),
    (_FOUR, (7857, "2.1", "SHOULD", "tcp"), timers.TRANSITORY_LEAST, (*_TRANSITORY, timers.CLOSED)),
    (_OPEN, (5382, "REQ-5-established", "MUST", "tcp"), timers.ESTABLISHED_LEAST, (timers.ESTABLISHED,)),
    (
        "mappings of ICMP queries live for 60 s",
        (5508, "REQ-2", "MUST", "icmp"),
        timers.ICMP_LEAST,
        (timers.ICMP_QUERY,),
    ),
    (
        "reset TCP connections live for 4 minutes",
        (7857, "2.2", "SHOULD", "tcp"),
        timers.TRANSITORY_LEAST,
        (timers.RESET,),
    ),
)
#: Text, source, kind of mapping, and whether what happens during its idle time must refresh it.
_REFRESHES: Final[tuple[tuple[str, Source, str, bool], ...]] = (
    ("frames from inside refresh a mapping", (4787, "REQ-6", "MUST", "udp"), timers.REFRESHED_OUT, True),
    ("frames from outside refresh a mapping", (4787, "REQ-6a", "MAY", "udp"), timers.REFRESHED_IN, True),
    ("ICMP errors refresh no mapping of a query", (5508, "REQ-6", "MUST", "icmp"), timers.ICMP_ERROR, False),
    ("ICMP errors from inside refresh no mapping", (7857, "7.1", "SHOULD", "udp"), timers.UDP_ERROR, False),
)
for _text, _source, _seconds, _names in _LIVES:
    requires(_text, _source, flows=NO_FLOWS, timers=_names)(partial(_at_least, _seconds, _names))
for _text, _source, _name, _wanted in _REFRESHES:
    _kind = _KINDS[_name]
    _look = partial(_examine_refresh, _kind, _wanted, _source[2])
    requires(_text, _source, flows=NO_FLOWS, timers=(_name, _kind.plain))(_look)

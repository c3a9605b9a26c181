# SPDX-License-Identifier: Apache-2.0
"""Time-outs of mappings: RFC 4787 section 4.3, RFC 5382 section 5, RFC 5508 section 3.2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, judged, meets
from natgauge.audits.kit.timers import (
    ESTABLISHED_LEAST,
    ICMP_LEAST,
    TRANSITORY_LEAST,
    UDP_LEAST,
    UDP_RECOMMENDED,
    TimerSeen,
)
from natgauge.audits.kit.undecided import NotSeenError

_UDP: Final = ("UDP, one frame out", "UDP, one frame each way", "UDP, several frames each way")
_TRANSITORY: Final = ("TCP, SYN", "TCP, SYN and answer", "TCP, closed by both FINs")
_ESTABLISHED: Final = ("TCP, established",)
_ICMP: Final = ("ICMP query and reply",)
_OUTBOUND, _INBOUND = "UDP, refreshed from inside", "UDP, refreshed from outside"
_ERROR: Final = "ICMP query and reply, then an error"


def _seen(examiner: Examiner, name: str) -> TimerSeen:
    seen = examiner.timers.get(name)
    if not isinstance(seen, TimerSeen):
        raise NotSeenError("no time-out of this kind was measured; --wait gives the longest wait for time-outs")
    examiner.cite(seen.frames)
    return seen


def _at_least(seconds: float, names: tuple[str, ...], examiner: Examiner, _transport: Transport) -> RequirementFinding:
    """Compare the time-outs of these kinds with the seconds that a mapping must live."""
    every = [_seen(examiner, name) for name in names]
    words = "; ".join(f"{seen.kind.name}: {seen.words}" for seen in every)
    lives = [seen.lives(seconds) for seen in every]
    if False in lives:
        return fails(words)
    if None not in lives:
        return meets(words)
    raise NotSeenError(f"needs a wait of {seconds:g} s, the allowed --wait was shorter ({words})")


def _refreshed(name: str, plain: str, examiner: Examiner) -> tuple[bool, str]:
    """Return whether a frame during the idle time keeps a mapping longer than its time-out.

    Raises:
        NotSeenError: no refreshed mapping shows it.
    """
    timeout, refreshed = _seen(examiner, plain), _seen(examiner, name)
    if timeout.dead is None or timeout.alive is None:
        raise NotSeenError(f"the time-out itself was not seen ({timeout.words})")
    for idle, there in sorted(refreshed.probes.items()):
        if 0.6 * idle < 0.95 * timeout.alive and 1.2 * idle > 1.05 * timeout.dead:
            words = f"a mapping with a time-out of about {timeout.dead:.0f} s and a frame after {0.6 * idle:.0f} s "
            return there, f"{words}was {'there' if there else 'gone'} after {1.2 * idle:.0f} s"
    raise NotSeenError("no mapping was refreshed just before its time-out")


def _examine_refresh(name: str, plain: str, examiner: Examiner, _transport: Transport) -> RequirementFinding:
    return judged(*_refreshed(name, plain, examiner))


def _examine_error(examiner: Examiner, _transport: Transport) -> RequirementFinding:
    """An ICMP error must neither end nor refresh the mapping of a query."""
    kept, words = _refreshed(_ERROR, _ICMP[0], examiner)
    return judged(not kept, f"{words}; the frame was an ICMP error")


_Examine = Callable[[Examiner, Transport], RequirementFinding]
_udp: Final[_Examine] = partial(_at_least, UDP_LEAST, _UDP)
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-5", "MUST", "UDP mappings live for 2 minutes", ("udp",), _udp, timers=_UDP),
    Requirement(
        4787,
        "REQ-5c",
        "SHOULD",
        "UDP mappings live for 5 minutes",
        ("udp",),
        partial(_at_least, UDP_RECOMMENDED, _UDP),
        timers=_UDP,
    ),
    Requirement(
        4787,
        "REQ-6",
        "MUST",
        "frames from inside refresh a mapping",
        ("udp",),
        partial(_examine_refresh, _OUTBOUND, _UDP[0]),
        timers=(_OUTBOUND, _UDP[0]),
    ),
    Requirement(
        4787,
        "REQ-6a",
        "MAY",
        "frames from outside refresh a mapping",
        ("udp",),
        partial(_examine_refresh, _INBOUND, _UDP[1]),
        timers=(_INBOUND, _UDP[1]),
    ),
    Requirement(
        5382,
        "REQ-5",
        "MUST",
        "TCP connections that open or close live for 4 minutes",
        ("tcp",),
        partial(_at_least, TRANSITORY_LEAST, _TRANSITORY),
        timers=_TRANSITORY,
    ),
    Requirement(
        5382,
        "REQ-5-established",
        "MUST",
        "open TCP connections live for 2 hours and 4 minutes",
        ("tcp",),
        partial(_at_least, ESTABLISHED_LEAST, _ESTABLISHED),
        timers=_ESTABLISHED,
    ),
    Requirement(
        5508,
        "REQ-2",
        "MUST",
        "mappings of ICMP queries live for 60 s",
        ("icmp",),
        partial(_at_least, ICMP_LEAST, _ICMP),
        timers=_ICMP,
    ),
    Requirement(
        5508,
        "REQ-6",
        "MUST",
        "an ICMP error does not refresh the mapping of a query",
        ("icmp",),
        _examine_error,
        timers=(_ERROR, _ICMP[0]),
    ),
)

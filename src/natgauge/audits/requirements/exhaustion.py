# SPDX-License-Identifier: Apache-2.0
"""A gateway without room for another mapping: RFC 6888 section 3, RFC 5508 section 6."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.crowd import CROWD, OLDER, Crowd, exhausted, open_all
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import Flows
from natgauge.audits.kit.requirement import CGN, Finding, requires
from natgauge.audits.kit.unseen import NotSeenError

#: Destination Unreachable with the codes of RFC 6888 (host) and RFC 5508 (prohibited); RFC 7915 translates them so.
_HOST_UNREACHABLE: Final = {(3, 1), (1, 0)}
_PROHIBITED: Final = {(3, 13), (1, 1)}
#: Sessions of one mapping.
_SESSIONS: Final = 2048
#: Flows of the examination of sessions.
SESSIONS: Final = Flows(_SESSIONS + 1, are_many=True)


def _refused(examiner: Examiner) -> Crowd:
    """Return the crowd of a gateway that refused a flow."""
    seen = examiner.once(exhausted)
    if not seen.refused:
        raise NotSeenError(f"{seen.words}; none was refused")
    return seen


@requires(
    "the outside ports of a host can be limited", (6888, "REQ-4", "MUST", "udp"), profiles=CGN, flows=CROWD, strain=2
)
def _examine_limit(examiner: Examiner) -> Finding:
    seen = _refused(examiner)
    if not seen.is_fair:
        raise NotSeenError(f"{seen.words}; a limit for each host can be a setting that this gateway does not use")
    if not seen.is_lasting:
        raise NotSeenError(
            f"{seen.words}; the one host opened more flows later: it had reached no limit, or flows had expired"
        )
    if not seen.is_shared:
        raise NotSeenError(f"{seen.words} at another outside address, which the flows of the one host do not use up")
    return True, seen.words


@requires(
    "packets without a mapping are dropped", (6888, "REQ-11a", "MUST", "udp"), profiles=CGN, flows=CROWD, strain=2
)
def _examine_dropped(examiner: Examiner) -> Finding:
    seen = _refused(examiner)
    words = "sent on untranslated" if seen.leaked else "dropped"
    return not seen.leaked, f"{seen.words}; refused frames were {words}"


@requires(
    "existing mappings stay when there is no room",
    (6888, "REQ-11d", "MUST", "udp"),
    profiles=CGN,
    flows=CROWD,
    strain=2,
)
def _examine_kept(examiner: Examiner) -> Finding:
    seen = examiner.once(exhausted)
    return not seen.lost, f"{seen.words}; {seen.kept} of {OLDER} flows from before still passed"


@requires(
    "a host without a mapping gets ICMP code 1", (6888, "REQ-11b", "SHOULD", "udp"), profiles=CGN, flows=CROWD, strain=2
)
def _examine_host_unreachable(examiner: Examiner) -> Finding:
    return _answered(examiner, _HOST_UNREACHABLE)


@requires("a host without a mapping gets ICMP code 13", (5508, "REQ-8", "SHOULD", "udp"), flows=CROWD, strain=2)
def _examine_prohibited(examiner: Examiner) -> Finding:
    return _answered(examiner, _PROHIBITED)


def _answered(examiner: Examiner, wanted: set[tuple[int, int]]) -> Finding:
    seen = _refused(examiner)
    errors = ", ".join(f"a type {kind} code {code}" for kind, code in sorted(seen.errors))
    return bool(seen.errors & wanted), f"a host that was refused received {errors or 'no'} ICMP error"


@requires(
    "the state of a mapping and of a host can be limited",
    (6888, "REQ-5", "SHOULD", "udp"),
    flows=SESSIONS,
    profiles=CGN,
    strain=1,
)
def _examine_sessions(examiner: Examiner) -> Finding:
    """Open many sessions of one inside endpoint."""
    examiner.relieve("udp", for_many=True)
    inside = examiner.flow().inside
    opened, refused = open_all(examiner, [(inside, examiner.remote()) for _ in range(_SESSIONS)])
    if not refused:
        raise NotSeenError(f"{_SESSIONS} sessions of one inside endpoint were open; no limit was reached")
    return True, f"after {len(opened)} sessions of one inside endpoint, one more was refused"

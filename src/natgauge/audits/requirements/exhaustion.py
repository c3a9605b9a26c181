# SPDX-License-Identifier: Apache-2.0
"""A gateway without room for another mapping: RFC 6888 section 3, RFC 5508 section 6."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from natgauge.audits.kit.crowd import OLDER, Crowd, exhausted, open_all
from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.requirement import CGN, EVERY_PROFILE, Finding, Requirement
from natgauge.records.audit import Level
from natgauge.words import Transport

#: Destination Unreachable with the codes of RFC 6888 (host) and RFC 5508 (prohibited); RFC 7915 translates them so.
_HOST_UNREACHABLE: Final = frozenset({(3, 1), (1, 0)})
_PROHIBITED: Final = frozenset({(3, 13), (1, 1)})
#: Sessions of one mapping.
_SESSIONS: Final = 2048


def _examine(judge: Callable[[Crowd], Finding], examiner: Examiner, _: Transport) -> Finding:
    seen = examiner.once(exhausted)
    if not seen.refused and judge is not _is_kept:
        raise NotSeenError(f"{seen.words}; none was refused")
    return judge(seen)


def _is_fair(seen: Crowd) -> Finding:
    if not seen.is_fair:
        raise NotSeenError(f"{seen.words}; a limit for each host can be a setting that this gateway does not use")
    return True, seen.words


def _is_dropped(seen: Crowd) -> Finding:
    return (
        not seen.leaked,
        f"{seen.words}; refused frames were {'sent on untranslated' if seen.leaked else 'dropped'}",
    )


def _is_kept(seen: Crowd) -> Finding:
    return seen.kept == OLDER, f"{seen.words}; {seen.kept} of {OLDER} flows from before still passed"


def _is_answered(wanted: frozenset[tuple[int, int]], seen: Crowd) -> Finding:
    errors = ", ".join(f"a type {kind} code {code}" for kind, code in sorted(seen.errors))
    return bool(seen.errors & wanted), f"a host that was refused received {errors or 'no'} ICMP error"


def _examine_sessions(examiner: Examiner, transport: Transport) -> Finding:
    """Open many sessions of one inside endpoint."""
    inside = examiner.flow(transport).inside
    opened, refused = open_all(examiner, [(inside, examiner.remote()) for _ in range(_SESSIONS)])
    if not refused:
        raise NotSeenError(f"{_SESSIONS} sessions of one inside endpoint were open; no limit was reached")
    return True, f"after {len(opened)} sessions of one inside endpoint, one more was refused"


def _of_limit(rfc: int, name: str, level: Level, text: str, judge: Callable[[Crowd], Finding]) -> Requirement:
    profiles = CGN if rfc == 6888 else EVERY_PROFILE
    return Requirement(rfc, name, level, text, ("udp",), partial(_examine, judge), profiles, strain=2)


REQUIREMENTS: Final = (
    _of_limit(
        5508, "REQ-8", "SHOULD", "a host without a mapping gets ICMP code 13", partial(_is_answered, _PROHIBITED)
    ),
    _of_limit(6888, "REQ-4", "MUST", "the outside ports of a host can be limited", _is_fair),
    Requirement(
        6888,
        "REQ-5",
        "SHOULD",
        "the state of a mapping and of a host can be limited",
        ("udp",),
        _examine_sessions,
        CGN,
        strain=1,
    ),
    _of_limit(6888, "REQ-11a", "MUST", "packets without a mapping are dropped", _is_dropped),
    _of_limit(
        6888, "REQ-11b", "SHOULD", "a host without a mapping gets ICMP code 1", partial(_is_answered, _HOST_UNREACHABLE)
    ),
    _of_limit(6888, "REQ-11d", "MUST", "existing mappings stay when there is no room", _is_kept),
)

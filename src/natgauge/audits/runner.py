# SPDX-License-Identifier: Apache-2.0
"""Run the examinations of an audit one after the other: a verdict and its frames for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from natgauge.audits.kit.classes import filtering, hairpinning, mapping, ports
from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.flows import TRANSPORTS
from natgauge.audits.kit.pcapng import Frame
from natgauge.audits.kit.requirement import NotApplicableError, Requirement
from natgauge.records.audit import AuditVerdict, BehaviourClasses
from natgauge.words import Transport

#: Classes of a transport, by name, with the function that finds each.
_CLASSES: Final[Mapping[str, Callable[..., object]]] = {
    "mapping": mapping,
    "filtering": filtering,
    "ports": ports,
    "hairpinning": hairpinning,
}


@dataclass(frozen=True, slots=True)
class Examined:
    """A requirement, examined for one transport.

    Attributes:
        requirement: the requirement.
        transport: the transport.
        verdict: conclusion.
        measured: what was measured, or why there is no verdict, without a full stop.
        frames: the frames that decided it.
    """

    requirement: Requirement
    transport: Transport
    verdict: AuditVerdict
    measured: str
    frames: tuple[Frame, ...]


def reachable(examiner: Examiner, transport: Transport) -> bool:
    """Open a flow of this transport.

    Raises:
        NotSeenError: the gateway does not forward the transport.
    """
    examiner.open(transport, examiner.endpoint(), examiner.remote())
    return True


def examine(
    examiner: Examiner, requirements: Sequence[Requirement], notify: Callable[[str], None] = lambda _: None
) -> Iterator[Examined]:
    """Examine a gateway for each requirement and transport.

    Args:
        examiner: examines the gateway.
        requirements: what is examined; those that fill the gateway come last.
        notify: receives the name of each examination as it begins.
    """
    for requirement in sorted(requirements, key=lambda one: one.strain):
        for transport in requirement.transports:
            notify(f"{requirement.key} ({transport}): {requirement.text}")
            examiner.begin()
            yield Examined(requirement, transport, *_judged(examiner, requirement, transport), examiner.evidence())


def _judged(examiner: Examiner, requirement: Requirement, transport: Transport) -> tuple[AuditVerdict, str]:
    try:
        examiner.once(reachable, transport)
        examiner.begin()
        met, measured = requirement.examine(examiner, transport)
    except NotSeenError as error:
        return "not seen", str(error)
    except NotApplicableError as error:
        return "not applicable", str(error)
    return "meets" if met else "fails", measured


def classes(examiner: Examiner) -> dict[Transport, BehaviourClasses]:
    """Return the classes by transport."""
    return {
        transport: BehaviourClasses(**{name: _class(examiner, transport, find) for name, find in _CLASSES.items()})
        for transport in TRANSPORTS
    }


def _class(examiner: Examiner, transport: Transport, function: Callable[..., object]) -> str | None:
    if transport == "icmp" and function is hairpinning:
        return None
    try:
        examiner.once(reachable, transport)
        seen: Any = examiner.once(function, transport)
    except NotSeenError:
        return None
    return seen if isinstance(seen, str) else seen.kind

# SPDX-License-Identifier: Apache-2.0
"""Run the examinations of an audit one after the other: a verdict and its frames for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from natgauge.audits.kit.capture import CapturedFrame
from natgauge.audits.kit.classes import filtering, hairpinning, mapping, ports
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import TRANSPORTS
from natgauge.audits.kit.observations import NotApplicableError, NotSeenError
from natgauge.audits.requirements import Requirement
from natgauge.figure_text import in_percent
from natgauge.notes import Note
from natgauge.records.audit import AuditedRequirement, AuditEvidence, AuditVerdict, BehaviourClasses
from natgauge.words import Transport


def reachable(examiner: Examiner) -> bool:
    """Open a flow, or another one if the first is refused."""
    with suppress(NotSeenError):
        examiner.open(examiner.endpoint(), examiner.remote(again=True))
        return True
    examiner.open(examiner.endpoint(), examiner.remote(again=True))
    return True


def forwards(examiner: Examiner, transport: Transport) -> bool:
    """Whether the gateway forwards a transport."""
    examiner.begin(transport)
    try:
        return examiner.once(reachable)
    except NotSeenError:
        return False


def examine(
    examiner: Examiner,
    requirements: Iterable[Requirement],
    *,
    keep: Callable[[str, tuple[CapturedFrame, ...]], str | None] = lambda _name, _frames: None,
    declares: Mapping[str, bool] = MappingProxyType({}),
    notify: Callable[[str], None] = lambda _: None,
) -> Iterator[AuditedRequirement]:
    """Examine a gateway for each requirement and transport.

    Args:
        keep: stores the frames that decided a verdict under a name, and returns their file.
    """
    ordered = [(one, each) for one in sorted(requirements, key=lambda one: one.strain) for each in one.transports]
    for number, (one, transport) in enumerate(ordered, start=1):
        notify(f"examination {number} of {len(ordered)}: {one.key} ({transport}): {one.text}")
        examiner.begin(transport)
        verdict, measured = _judged(examiner, one)
        frames = examiner.evidence()
        if damaged := sum(frame.damaged for frame in frames):
            came = "frame came" if damaged == 1 else "frames came"
            measured += f"; {damaged} {came} with a wrong checksum, so no host takes them"
        file = keep(f"{one.key}-{transport}", frames)
        yield AuditedRequirement(
            rfc=one.rfc,
            requirement=one.name,
            level=one.level,
            text=one.text,
            transport=transport,
            verdict=verdict,
            measured=measured,
            declared=declares.get(one.key),
            evidence=AuditEvidence(file=file, frames=tuple(frame.sentence for frame in frames)),
        )


def _judged(examiner: Examiner, requirement: Requirement) -> tuple[AuditVerdict, str]:
    """Return the verdict and what was measured.

    Earlier examinations may have used up the flows that the gateway allows a host. That must not decide. So other hosts
    go on where these have fewer flows left than are needed, as far as that is known. And a requirement that was not met
    is examined once more with other hosts if the gateway refuses further flows of these.
    """
    if examiner.inside.lack(requirement.flows):
        examiner.relieve(examiner.transport)
    first = examiner.mark
    verdict, measured = _of_these_hosts(examiner, requirement)
    if requirement.strain or verdict not in ("fails", "not seen") or not _is_refused_more(examiner, first):
        return verdict, measured
    examiner.begin(examiner.transport)
    return _of_these_hosts(examiner, requirement)


def _is_refused_more(examiner: Examiner, since: int) -> bool:
    """Go on with other inside hosts if these were examined after `since` frames and open no more flows; whether so."""
    transport = examiner.transport
    if examiner.mark == since or not examiner.inside.has_next(transport, for_many=False):
        return False
    if (transport in examiner.forwarded and examiner.serves(transport)) or not examiner.relieve(transport):
        return False
    examiner.forget(since)
    return True


def _of_these_hosts(examiner: Examiner, requirement: Requirement) -> tuple[AuditVerdict, str]:
    """Return the verdict and what was measured with the inside hosts that examinations use now.

    A gateway that refuses flows at random, or a host that loses a frame, must not decide. So "fails" and "not seen" are
    verdicts only if they come twice, and a requirement that failed once and was met once is not seen.
    """
    if requirement.needs_forwarding:
        try:
            examiner.once(reachable)
        except NotSeenError as error:
            return "not seen", str(error)
    seen: dict[AuditVerdict, str] = {}
    first = examiner.mark
    while True:
        verdict, measured = _examined(examiner, requirement)
        if requirement.strain or verdict in seen:
            return verdict, seen.get(verdict, measured)
        if verdict not in ("fails", "not seen"):
            if "fails" in seen:
                return "not seen", f"failed once: {seen['fails']}; not failed when examined again: {measured}"
            return verdict, measured
        seen[verdict] = measured
        examiner.forget(first)


def _examined(examiner: Examiner, requirement: Requirement) -> tuple[AuditVerdict, str]:
    try:
        met, measured = examiner.undisturbed(lambda: requirement.examine(examiner))
    except NotSeenError as error:
        return "not seen", str(error)
    except NotApplicableError as error:
        return "not applicable", str(error)
    return "meets" if met else "fails", measured


def other_traffic_doubt(examiner: Examiner) -> Iterator[Note]:
    """Yield the doubt about other traffic, if it kept the examiner from verdicts."""
    if not examiner.floods:
        return
    load = examiner.network.load()
    own = min(load.arrived, load.sent)
    text = (
        f"it kept {examiner.floods} observations from a result: {load.arrived:,} frames arrived at the "
        f"tester's ports while the audit sent {load.sent:,}, so at least {in_percent(1 - own / load.arrived)} were "
        "not its "
        f"own; {load.dropped:,} were lost before the audit saw them"
    )
    yield Note("other traffic", text, examiner.floods, float(load.arrived), "answer")


def classes(examiner: Examiner) -> dict[Transport, BehaviourClasses]:
    """Return the classes by transport."""
    found: dict[Transport, BehaviourClasses] = {}
    for transport in TRANSPORTS:
        examiner.begin(transport)
        found[transport] = BehaviourClasses(
            mapping=_class(examiner, mapping),
            filtering=_class(examiner, filtering),
            ports=_class(examiner, ports),
            hairpinning=None if transport == "icmp" else _class(examiner, hairpinning),
        )
    return found


def _class(examiner: Examiner, function: Callable[[Examiner], Any]) -> str | None:
    since = examiner.mark
    try:
        examiner.once(reachable)
        seen = examiner.once(function)
    except NotSeenError:
        return _class(examiner, function) if _is_refused_more(examiner, since) else None
    return seen if isinstance(seen, str) else seen.kind

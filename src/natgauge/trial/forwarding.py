# SPDX-License-Identifier: Apache-2.0
"""Check that a device forwards: send a few frames in each direction, slowly, and see which came back.

A half of a chain that forgets one port set of 60,000 forwards these, and then no trial passes. So each subscriber gets
one frame in each direction; where frames are missing, halves of the subscribers are tried again until single ones are
left, which are named.

Where none come back, recipe and rules may say why: only what they say, without a guess.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from natgauge.agreement.generated import StreamCounts, TrialResult
from natgauge.agreement.trial import phase1_of
from natgauge.causes.cause import Cause
from natgauge.errors import BrokenError
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.recipe import Recipe
from natgauge.gateways.rule_sets import IN_WORDS, NETWORK, AcceptedPorts, accepted_ports, edited, lost
from natgauge.labs.contract import Addresses, Device
from natgauge.setup.traffic import Range, TrafficPlan
from natgauge.trial.trial_run import signs_of
from natgauge.trials import Phase2Plan, TrialPlan
from natgauge.words import SENDING, Query, Transport, listed

#: Number of tries where frames are missing: at first a device may look for its neighbours.
HANDFULS: Final = 3
#: Of the last try's frames this share must come back; what a device loses then is measured.
LEAST_FORWARDED: Final = 0.5
_FRAMES: Final = 8
_RATE: Final = 100.0
#: A device that spoils and copies every frame sends two wrong frames for each.
_MOST_WRONG: Final = 2
#: Counts of frames that anybody may send: where all test frames came back, these are other traffic.
_IN_ADDITION: Final = frozenset({"fragments", "tagged", "untagged"})
#: Most subscribers of one trial: a NAT behind one outside address has a port for each.
MOST_SUBSCRIBERS: Final = 30_000
#: Subscribers that the error names.
_NAMED: Final = 3
#: Tries of a single subscriber: a device that loses one frame in a hundred loses four in a row once in 10^8 cases.
_TRIES: Final = 4
#: Frames/s of a trial of each subscriber.
_EACH_RATE: Final = 20_000.0
_TRANSPORTS: Final[tuple[Transport, ...]] = ("tcp", "udp", "icmp")


def probe(connections: int, query: Query | None = None) -> TrialPlan:
    """Return the plan of a trial with frames of a few connections, or queries that the device answers itself."""
    few = min(_FRAMES, connections)
    if query is not None:
        return TrialPlan(few, _RATE, Phase2Plan(_RATE, 0.0, few / _RATE), stateless=True, query=query)
    return TrialPlan(few, _RATE, Phase2Plan(_RATE, _RATE, few / _RATE))


def whole(result: TrialResult, *, last: bool, faults: Mapping[str, int], stateless: bool = False) -> bool:
    """Return whether every frame of a probe came back.

    Args:
        last: whether this is the last try, so that many missing frames are an error.
        faults: frames that the device refused during the probe, by its own names of causes.
    """
    refused = "".join(f"; the device counted {number} x {cause}" for cause, number in faults.items() if number > 0)
    signs = "".join(f"; {sign}" for sign in signs_of(result))
    for name, counts in _streams(result, stateless=stateless).items():
        if counts is None:
            continue
        if counts.received_frames > counts.offered_frames:
            raise BrokenError(
                f"device sends frames that the tester did not send: {name}: {_received_of(counts)}; "
                "look at what else runs on it"
            )
        # A device that damages some frames can be measured. With a device that damages every frame, every trial fails.
        found = {**counts.wrong_frames, "duplicates": counts.duplicates}
        wrong = sum(number for name, number in found.items() if name not in _IN_ADDITION)
        if counts.received_frames and wrong > _MOST_WRONG * counts.offered_frames:
            raise BrokenError(
                f"device sends more wrong frames than it received: {name}: {_received_of(counts)}; look at what else "
                "runs on it"
            )
        if counts.received_frames and wrong >= counts.offered_frames:
            raise BrokenError(f"device spoils every frame: {name}: {_received_of(counts)}; look at its rules")
        if counts.received_frames < counts.offered_frames:
            enough = counts.received_frames >= LEAST_FORWARDED * counts.offered_frames
            if not counts.received_frames or (last and not enough):
                is_open = counts.arrived >= LEAST_FORWARDED * counts.offered_frames and not signs
                does = "answers wrong" if is_open else "does not forward"
                raise BrokenError(
                    f"device {does}: {name}: {_received_of(counts)}{_port_counts(result)}{refused}{signs}"
                )
            if not last:
                return False
    return True


def _streams(result: TrialResult, *, stateless: bool) -> dict[str, StreamCounts | None]:
    phase2 = result.phase2
    return {
        f"phase 1, {SENDING['up']}": None if stateless else phase1_of(result),
        f"phase 2, {SENDING['up']}": phase2.initiator if phase2 else None,
        f"phase 2, {SENDING['down']}": phase2.responder if phase2 else None,
    }


def _received_of(counts: StreamCounts) -> str:
    found = {
        "late": counts.late,
        **counts.wrong_in_words,
        "with wrong content": counts.wrong_content,
        "duplicated": counts.duplicates,
    }
    faults = "".join(f", {number} {said}" for said, number in found.items() if number)
    if counts.received_frames > counts.offered_frames:
        return f"{counts.received_frames} frames came back, and {counts.offered_frames} were sent{faults}"
    return f"{counts.received_frames} of {counts.offered_frames} frames came back{faults}"


def _port_counts(result: TrialResult) -> str:
    """Return the frames that the tester's ports refused, failed to redirect, or received from others; empty = none."""
    found = []
    for name, port in (("Initiator", result.ports.initiator), ("Responder", result.ports.responder)):
        counts = {"refused": port.refused, "redirect errors": port.redirect_errors, "foreign frames": port.foreign}
        found += [f"; {name} port: {count} {kind}" for kind, count in counts.items() if count]
    return "".join(found)


class NotForwardedError(BrokenError):
    """The device does not forward the frames of a probe; `counted` is the error without its cause."""

    def __init__(self, error: BrokenError, cause: Cause | None) -> None:
        super().__init__(f"{error}{_because(cause)}", at=error.at)
        self.counted = str(error)


def _because(cause: Cause | None) -> str:
    """Return the cause as a part of a sentence, and what changes it; empty = not known."""
    if cause is None or cause.kind == "not known" or not cause.words:
        return ""
    return f"; cause: {cause.words}; to change it: {cause.remedy}"


@dataclass(frozen=True, slots=True)
class Missing:
    """Subscribers without a right frame, of those that were tried once in each direction."""

    number: int
    kinds: tuple[str, ...]
    causes: Mapping[str, int]


#: Tries `number` subscribers from the first one, counted from 0.
Try = Callable[[int, int], Missing]


def trial_of_each(subscribers: int) -> TrialPlan:
    """Return the plan of a trial with one connection for each of these subscribers, used once in each direction."""
    phase2 = Phase2Plan(0.0, _EACH_RATE, subscribers / _EACH_RATE, reading_order="once")
    return TrialPlan(subscribers, _EACH_RATE, phase2, order="increasing")


def traffic_of(plan: TrafficPlan, first: int, number: int, seed: int) -> TrafficPlan:
    """Return traffic whose connection i is that of subscriber `first` + i, with one source port."""
    port = plan.source_ports.first + seed % plan.source_ports.count
    plan = replace(plan, subscribers=number, first_edge=first, source_ports=Range(port, port), connections=number)
    if plan.tested_edges is None:
        return plan
    host = plan.source_addresses.first + first
    return replace(plan, source_addresses=Addresses(host, host + (number - 1)))


def missing_of(result: TrialResult, causes: Mapping[str, int]) -> Missing:
    """Return the subscribers without a right frame in a trial of `trial_of_each`.

    A subscriber whose first frame did not arrive gets none from the Responder, so none is counted twice.
    """
    back = None if result.phase2 is None else result.phase2.responder
    kinds: list[str] = []
    number = 0
    for direction, counts in ((SENDING["up"], phase1_of(result)), (SENDING["down"], back)):
        if counts is None or counts.received_frames >= counts.offered_frames:
            continue
        number += counts.offered_frames - counts.received_frames
        kinds += [f"{kind} {direction}" for kind in _kinds(counts)]
    return Missing(number, tuple(kinds), {cause: count for cause, count in causes.items() if count > 0})


def _kinds(counts: StreamCounts) -> Iterator[str]:
    wrong = {
        "damaged": counts.damaged,
        "untranslated": counts.untranslated,
        "mistranslated": counts.mistranslated,
        "late": counts.late,
    }
    yield from (kind for kind, number in wrong.items() if number)
    if counts.received_frames + sum(wrong.values()) < counts.offered_frames:
        yield "lost"


def check_each(sets: PortSets, number: int, most: int, tried: Try) -> None:
    """Check that a device forwards for each subscriber."""
    parts = [(first, min(most, number - first)) for first in range(0, number, most)]
    faulty = [(first, size, found.number) for first, size in parts if (found := tried(first, size)).number]
    named: list[tuple[int, Missing]] = []
    for first, size, _ in faulty:
        at, end = first, first + size
        while len(named) < _NAMED and (one := _first_missing(at, end, tried)) is not None:
            named.append(one)
            at = one[0] + 1
    if named:
        raise BrokenError(_sentence(sets, number, max(len(named), sum(lost for _, _, lost in faulty)), named))


def _first_missing(first: int, end: int, tried: Try) -> tuple[int, Missing] | None:
    """Return the first subscriber of `first` to `end` - 1 without a right frame; None = no frame is always missing."""
    if first >= end or not tried(first, end - first).number:
        return None
    while end - first > 1:
        middle = (first + end) // 2
        if tried(first, middle - first).number:
            end = middle
        else:
            first = middle
    results = [tried(first, 1) for _ in range(_TRIES)]
    return (first, results[-1]) if all(result.number for result in results) else None


def _sentence(sets: PortSets, number: int, lost: int, named: list[tuple[int, Missing]]) -> str:
    ones = []
    for subscriber, missing in named:
        address, psid = sets.of(subscriber)
        causes = "".join(f", the device counted {cause}" for cause in missing.causes)
        map_address = f", {sets.map_address(subscriber)}" if sets.has_map_addresses else ""
        ones.append(
            f"subscriber {subscriber} ({address}, PSID {psid}{map_address}): {' and '.join(missing.kinds)}{causes}"
        )
    more = "; ..." if lost > len(named) else ""
    return (
        f"device does not forward for {lost} of {number} subscribers: {'; '.join(ones)}{more}; look at its rules or "
        "binding table"
    )


def causes(recipe: Recipe, traffic: TrafficPlan, accepted: AcceptedPorts | None) -> list[str]:
    """Return what surely is wrong, each with what to do; empty = nobody knows.

    Args:
        accepted: what the rules accept that run on the device; None = not known.
    """
    gone = lost(recipe)
    found = [*_lost(recipe, gone)]
    if accepted is None:
        return found
    # Rules for a lost interface accept nothing: that is no second cause.
    if not found or traffic.transport not in accepted.refused or accepted.sources.get(traffic.transport):
        found += _not_accepted(recipe, traffic, accepted, gone)
    return found


def accepted_by(device: Device) -> AcceptedPorts | None:
    """Return what the nftables rules of a running device accept; None = it has none, or nobody can ask."""
    try:
        printed = device.run("nft --json list ruleset")
        return accepted_ports(printed.stdout, device.inside, device.outside) if not printed.status else None
    except (BrokenError, ValueError, KeyError):
        return None


def _lost(recipe: Recipe, gone: Container[str]) -> Iterator[str]:
    """Yield a sentence for each name that the recipe replaces, and that its rules no longer have: `gone`."""
    for edits, files in edited(recipe):
        for own, variable in edits.items():
            if own in gone:
                again = _again(recipe, edits, [*files], gone)
                yield (
                    f"the recipe puts the lab's {IN_WORDS.get(variable, variable)} in the place of {own}, which no "
                    f"rule of {listed([*files])} names any more; make the recipe again{again}"
                )


def _again(recipe: Recipe, edits: Mapping[str, str], files: list[str], gone: Container[str]) -> str:
    """The command that makes a recipe beside its only file of rules again; empty = it is not known."""
    names = {variable: own for own, variable in edits.items() if own not in gone}
    if len(files) != 1 or recipe.length > 1 or recipe.origin.stem != recipe.name:
        return ""
    rules = recipe.origin.parent / files[0]
    sides = f"--inside {shlex.quote(names.get('NG_INSIDE', 'NAME'))} --outside "
    sides += shlex.quote(names.get("NG_OUTSIDE", "NAME"))
    made = f"natgauge gateways new {recipe.name} --from-nft {shlex.quote(str(rules))} {sides} --beside"
    return f": rm {shlex.quote(str(recipe.origin))} && {made}"


def _not_accepted(recipe: Recipe, traffic: TrafficPlan, accepted: AcceptedPorts, gone: Container[str]) -> Iterator[str]:
    """Yield why forward chains do not accept the test traffic."""
    transport, ports = traffic.transport, traffic.destination_ports
    if transport in accepted.refused:
        sources = accepted.sources.get(transport)
        if sources:
            kept = [own for edits, _ in edited(recipe) for own, variable in edits.items() if variable == NETWORK]
            also = "".join(f"; other rules name {own}, which the recipe replaces" for own in kept if own not in gone)
            yield f"the forward chain accepts {transport.upper()} only from {listed(sources)}, which no lab has{also}"
            return
        others = [other for other in _TRANSPORTS if other not in accepted.refused | accepted.unknown]
        yield f"the forward chain accepts no {transport.upper()} to the outside" + "".join(
            f"; it accepts {other.upper()}{_to(accepted, other)}: choose --transport {other}" for other in others[:1]
        )
    elif (let := accepted.ports.get(transport)) and not any(
        first <= ports.last and ports.first <= last for first, last in let
    ):
        yield (
            f"the forward chain accepts {transport.upper()} only{_to(accepted, transport)}: choose them by "
            "--destination-ports, or for every command by destination_ports in the recipe (docs/recipes.md#limits)"
        )


def _to(accepted: AcceptedPorts, transport: Transport) -> str:
    """The ports of a transport that are accepted; empty = all that anybody needs."""
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in accepted.ports.get(transport, ())]
    return f" to port{'' if len(texts) == 1 and '-' not in texts[0] else 's'} {listed(texts)}" if texts else ""

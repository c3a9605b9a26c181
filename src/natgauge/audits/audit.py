# SPDX-License-Identifier: Apache-2.0
"""Audit one gateway: a lab with the started device, the examinations, and the record with its evidence.

Examinations run one after the other, with a verdict and its frames for each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from natgauge.audits.kit.classes import filtering, hairpinning, mapping, ports
from natgauge.audits.kit.examiner import Examiner, NotApplicableError, NotSeenError
from natgauge.audits.kit.hosts import TEAM, HostBlocks, hosts_needed
from natgauge.audits.kit.network import AuditSide, CapturedFrame, Network, PacketSockets, pcapng
from natgauge.audits.kit.timers import TIMERS, crowded, expected, few_idle_times, plan, watch, watch_few
from natgauge.audits.request import audit_request, conditions
from natgauge.audits.requirements import Requirement, in_order, requirements, unknown
from natgauge.errors import BrokenError, UsageError
from natgauge.figure_text import in_percent, with_noun
from natgauge.gateways.limits import DeviceDemand, choose
from natgauge.gateways.recipe import Recipe, as_played, digest
from natgauge.host import machine
from natgauge.labs.contract import Addresses, Link, Port
from natgauge.notes import Note
from natgauge.records.audit import AuditedRequirement, AuditEvidence, AuditRecord, AuditVerdict, BehaviourClasses
from natgauge.records.store import RESULTS, Store
from natgauge.setup.setup import Setup, SilentStages, Stages, check_host, place_parameters
from natgauge.words import Side, Transport

if TYPE_CHECKING:
    from natgauge.keywords import AuditKeywords


_TRANSPORTS: Final[tuple[Transport, ...]] = ("udp", "tcp", "icmp")
#: Exit status of an audit whose gateway fails a requirement of `fail_on`.
_FAILED: Final = 12
#: Exit status of an audit that saw nothing: the gateway does not forward, say, so it did not pass either.
_UNSEEN: Final = 5
#: Addresses of the tester on the outside where natgauge made the links' addresses.
_OUTSIDE_HOSTS: Final = 3
#: Outside addresses of a carrier-grade NAT (RFC 6888 REQ-2 is about several).
_CGN_ADDRESSES: Final = 4
#: Inside hosts of an audit of port blocks at most.
_MOST_HOSTS: Final = 8192
#: Sets the MTU of a device's outside link, where the kernel forwards.
_KERNEL_MTU: Final = 'ip link set dev "$NG_OUTSIDE" mtu "$NG_VALUE"'
#: Mappings for which the gateway must have room; some requirements open as many as there is room for.
_MAPPINGS: Final = 8192


@dataclass(frozen=True, slots=True)
class Audited:
    """An audit.

    Attributes:
        record: its record.
        exit_status: 0; 5 if nothing could be seen; 12 if the gateway fails a requirement of `fail_on`.
        folder: the results folder.
    """

    record: AuditRecord
    exit_status: int
    folder: Path


def audit(
    gateway: str | Path,
    *,
    results: str | Path = RESULTS,
    observe: Stages | None = None,
    notify: Callable[[str], None] = lambda _: None,
    **choices: Unpack[AuditKeywords],
) -> Audited:
    """Examine what one gateway does, requirement by requirement; all changes to the host are undone.

    Args:
        gateway: name of a gateway's recipe, or the path of a recipe file.
        results: folder in which the results folder is made.
        observe: receives the stages of the work.
        notify: receives facts that the user must know beforehand, such as the length of a wait.
        choices: the options of `natgauge audit`, with "_" for "-".

    Raises:
        UsageError: the request is wrong.
        HostError: this host cannot perform the audit.
        BrokenError: the lab or the device failed.
    """
    cell, options = audit_request(gateway, {**choices})
    observer = observe or SilentStages()
    setup = _with_pool(Setup(cell, observer), observer, options.profile)
    refuse(setup.recipe)
    if setup.lab.devices:
        # Values of knobs are refused before there is a lab.
        wished = DeviceDemand(connections=_MAPPINGS, phase1_seconds=0.0, as_found=True)
        choose(setup.recipe.of_devices(len(setup.lab.devices))[setup.holder], wished, cell.device, {})
    check_host()
    profile = options.profile
    chosen = [one for one in requirements() if profile == "all" or profile in one.profiles]
    chosen += unknown(setup.recipe.declares)
    store = Store.create(Path(results), "audit", setup.recipe.name)
    began = time.monotonic()
    with store.evidence(), setup:
        flows = (one.flows for one in chosen for _ in one.transports)
        teams = TEAM if setup.address_plan.port_sets else hosts_needed(flows)
        blocks = _blocks(setup)
        number = teams if blocks is None else min(blocks.hosts_for(teams), _MOST_HOSTS)
        sides = _sides(setup, number)
        device = setup.start(_demand(setup, sides))
        store.write_recipe(as_played(setup.recipe), digest(setup.recipe))
        store.write_environment({"machine": machine.facts(), "device": None if device is None else device.as_dict()})
        with PacketSockets(setup.lab.initiator, setup.lab.responder) as sockets:
            examiner = Examiner(
                Network(sockets, sides),
                prefix=setup.address_plan.prefix,
                narrow=_narrowing(setup),
                mappings=options.mappings,
                blocks=blocks,
                wait=options.wait,
                knobs=cell.device.named(),
                pool=0 if setup.address_plan.pool is None else setup.address_plan.pool.count,
                teams=teams,
                accepted={name: setup.recipe.ports_of(name) for name in _TRANSPORTS},
                control_by=setup.recipe.usual_transport,
                configured={} if device is None else device.files,
            )
            examiner.network.resolve()
            _watch(examiner, chosen, options.wait, observer, notify, timeout=cell.device.timeouts)
            count = sum(len(one.transports) for one in chosen)
            notify(f"{count} examinations follow; on most gateways they take about a minute")
            # Classes come first, because some requirements leave no room for further flows.
            found = classes(examiner)
            declares = setup.recipe.declares
            audited = examine(examiner, chosen, keep=partial(_keep, store), declares=declares, notify=observer.stage)
            verdicts = sorted(audited, key=lambda one: in_order(one.rfc, one.requirement))
            doubts = tuple(other_traffic_doubt(examiner))
        record = AuditRecord(
            gateway=setup.recipe.name,
            title=setup.recipe.title,
            profile=profile,
            classes=found,
            requirements=tuple(verdicts),
            timeouts={name: seen.bounds for name, seen in examiner.timers.items()},
            wait_seconds=options.wait,
            seconds=round(time.monotonic() - began, 3),
            device=None if device is None else device.as_dict(),
            parameters={
                **conditions(cell, options),
                "lab": setup.lab.name,
                "placement": setup.lab.placement,
                **place_parameters(setup.lab),
            },
            doubts=doubts,
            results=str(store.folder),
        )
        store.write_audit(record.document())
    return Audited(record, exit_status(record, options.fail_on), store.folder)


def exit_status(record: AuditRecord, fail_on: Literal["must", "should"] | None) -> int:
    """Return 12 if the gateway fails a requirement of this level, 5 if nothing of it was seen, otherwise 0."""
    if fail_on is not None and record.failed(level=fail_on):
        return _FAILED
    return _UNSEEN if record.saw_nothing else 0


def _with_pool(setup: Setup, observer: Stages, profile: str) -> Setup:
    """Return the setup of a carrier-grade NAT with a pool, where the user chose none and it can have one."""
    cell, lab = setup.cell, setup.lab
    chosen = cell.lab.outside_addresses is not None or setup.recipe.pool4 is not None
    if profile != "cgn" or chosen or not lab.devices or lab.is_reused or not setup.recipe.takes_pool:
        return setup
    return Setup(replace(cell, lab=replace(cell.lab, outside_addresses=_CGN_ADDRESSES)), observer)


def _watch(  # noqa: PLR0913 - what an audit measures time-outs with, each by its name
    examiner: Examiner,
    chosen: Sequence[Requirement],
    wait: float,
    observer: Stages,
    notify: Callable[[str], None],
    *,
    timeout: float | None,
) -> None:
    """Measure the time-outs that the requirements need, after saying how long it takes.

    Args:
        timeout: s, of all mappings, as the user has set it; None = not set.
    """
    needed = wait and any(requirement.timers for requirement in chosen)
    forwarded = [transport for transport in _TRANSPORTS if needed and forwards(examiner, transport)]
    kinds = [kind for kind in TIMERS if kind.transport in forwarded]
    if not kinds:
        return
    mappings, longest = plan(kinds, wait)
    hours = f" ({longest / 3600:.1f} h)" if longest >= 3600 else ""
    notify(
        f"time-outs: {mappings} mappings of {len(kinds)} kinds are watched for at most {longest:.0f} s{hours}, or "
        "until all of them have expired"
        + (f": about {expected(kinds, wait, timeout):.0f} s with time-outs of {timeout:g} s" if timeout else "")
    )
    beyond = ", ".join(f"{kind.name} ({kind.required:g} s)" for kind in kinds if kind.required > wait)
    if beyond:
        notify(
            f"time-outs: the wait is shorter than mappings of these kinds have to live: {beyond}; a longer --wait, or "
            "--long, shows whether one that outlives the wait does"
        )
    found = watch(examiner, kinds, wait, observer.stage)
    if doubtful := crowded(found.values()):
        seconds = max(few_idle_times(seen.kind, wait)[-1] for seen in doubtful)
        notify(
            "time-outs: mappings were gone too early for a time-out, maybe to make room for others: few mappings of "
            f"{len(doubtful)} kinds are watched again, for at most {seconds:.0f} s"
        )
        watch_few(examiner, doubtful, wait, observer.stage)
    examiner.timers.update(found)


def refuse(recipe: Recipe) -> None:
    """Refuse gateways whose behaviour the RFCs do not describe.

    Raises:
        UsageError: the gateway keeps no mappings, or the tester would have to be a part of it.
    """
    if not recipe.stateful:
        raise UsageError(
            f"{recipe.name}: keeps no mappings, so the requirements on NATs do not apply; choose a stateful gateway"
        )
    if recipe.half:
        raise UsageError(
            f"{recipe.name}: is one half of a gateway, whose other half the tester emulates; audit the whole chain"
        )


def _keep(store: Store, name: str, frames: Sequence[CapturedFrame]) -> str | None:
    return store.write_frames(f"{name}.pcapng", pcapng(frames)) if frames else None


def _narrowing(setup: Setup) -> Callable[[int], AbstractContextManager[None]] | None:
    """Return what gives the outside interface of the last device another MTU for a while; None = not possible.

    It raises `BrokenError` if the device refuses.
    """
    devices = setup.lab.devices
    if not devices or devices[-1].machine.system != "Linux":
        return None
    device = devices[-1]
    setting = "\n".join(setup.recipe.of_devices(1)[-1].verbs.outside_mtu) or _KERNEL_MTU

    def ran(snippet: str, mtu: str = "") -> str:
        answer = device.run(snippet, environment={"NG_VALUE": mtu})
        if answer.status:
            raise BrokenError(f"{device.name}: MTU of {device.outside}: {answer.said}")
        return answer.stdout.strip()

    @contextmanager
    def narrow(mtu: int) -> Iterator[None]:
        found = ran('cat "/sys/class/net/$NG_OUTSIDE/mtu"')
        ran(setting, str(mtu))
        try:
            yield
        finally:
            ran(setting, found)

    return narrow


def _blocks(setup: Setup) -> HostBlocks | None:
    sizes, pool = setup.recipe.limits.port_blocks, setup.address_plan.pool
    return None if sizes is None or pool is None else HostBlocks(sizes, setup.address_plan.inside.tester, pool)


def _sides(setup: Setup, inside_hosts: int) -> dict[Side, AuditSide]:
    """Return the tester's addresses on both sides.

    Where natgauge made the links' addresses, the tester may use any of them; on a wire, those that the user named.
    """
    traffic, chosen, ground = setup.traffic, setup.cell.traffic, setup.lab.ground
    sides: tuple[tuple[Side, Addresses, str | None, Link, Port], ...] = (
        ("initiator", traffic.source_addresses, chosen.source_addresses, ground.inside, setup.lab.initiator),
        ("responder", traffic.responder_addresses, chosen.destination_addresses, ground.outside, setup.lab.responder),
    )
    made: dict[Side, AuditSide] = {}
    for side, addresses, text, link, port in sides:
        most = inside_hosts if side == "initiator" else _OUTSIDE_HOSTS
        number = most if text is None and setup.lab.devices else min(addresses.count, most)
        if side == "initiator":
            number = min(number, setup.recipe.limits.source_addresses or number)
        hosts = (addresses.first + index for index in range(number))
        mac = None if port.gateway_mac is None else bytes.fromhex(port.gateway_mac.replace(":", ""))
        made[side] = AuditSide(tuple(islice((one for one in hosts if one in link.network), most)), link.device, mac)
    return made


def _demand(setup: Setup, sides: Mapping[Side, AuditSide]) -> DeviceDemand:
    """Return the demand on the device, whose limits and time-outs stay as they are."""
    return DeviceDemand(
        connections=_MAPPINGS,
        phase1_seconds=0.0,
        source_addresses=min(TEAM, len(sides["initiator"].hosts)),
        fills_table=True,
        as_found=True,
        port_sets=setup.address_plan.port_sets,
    )


# Examinations, one after the other


def forwards(examiner: Examiner, transport: Transport) -> bool:
    """Whether the gateway forwards a transport."""
    examiner.begin(transport)
    try:
        examiner.once(_reach)
    except NotSeenError:
        return False
    return True


def _reach(examiner: Examiner) -> None:
    """Open a flow, or another one if the first is refused."""
    try:
        examiner.open(examiner.endpoint(), examiner.remote(again=True))
    except NotSeenError:
        examiner.open(examiner.endpoint(), examiner.remote(again=True))


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
            came = with_noun(damaged, "frames came", "frame came")
            measured += f"; {came} with a wrong checksum, so no host takes them"
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
    go on where these have fewer flows left than are needed, as far as that is known, for each of two examinations. And
    a requirement that was not met is examined once more with other hosts if the gateway refuses further flows of these.
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
            examiner.once(_reach)
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
        if examiner.inside.lack(requirement.flows):
            examiner.relieve(examiner.transport)


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
    foreign = in_percent(1 - min(load.arrived, load.sent) / load.arrived)
    text = (
        f"it kept {examiner.floods} observations from a result: {load.arrived:,} frames arrived at the tester's ports "
        f"while the audit sent {load.sent:,}, so at least {foreign} were not its own; {load.dropped:,} were lost "
        "before the audit saw them"
    )
    yield Note("other traffic", text, examiner.floods, float(load.arrived), "answer")


def classes(examiner: Examiner) -> dict[Transport, BehaviourClasses]:
    """Return the classes by transport."""
    found: dict[Transport, BehaviourClasses] = {}
    for transport in _TRANSPORTS:
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
        examiner.once(_reach)
        seen = examiner.once(function)
    except NotSeenError:
        return _class(examiner, function) if _is_refused_more(examiner, since) else None
    return seen if isinstance(seen, str) else seen.kind

# SPDX-License-Identifier: Apache-2.0
"""Results folders of every kind, each consistent in itself: a campaign's, comparisons, an audit, a failure."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.unit.campaigning import PLAN, Benches, campaign
from tests.unit.made_campaign import trial
from tests.unit.made_comparisons import compared, compared_by_rates
from tests.unit.made_results import keep, made

from natgauge.analysis.ratio_verdicts import is_decided
from natgauge.audits.kit.network import FORGOTTEN, CapturedFrame, pcapng
from natgauge.comparisons.method import Subject, estimate_of, estimates_of, margin_of
from natgauge.comparisons.request import ComparisonGoal
from natgauge.errors import BrokenError
from natgauge.measurements.record import make
from natgauge.metrics.metric import OCTETS_PER_CONNECTION
from natgauge.paired.ratios import PairedRatios, RateBounds, RateRounds, RoundPlace, ratio_of, work_of_block
from natgauge.procedures.kit.results import Measurement, make_result
from natgauge.records.audit import AuditRecord
from natgauge.records.comparison import BaselineCost, ComparisonRecord, SliceCounts
from natgauge.records.measurement import REPETITION
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.statistics.rounds import alpha_spent
from natgauge.statistics.summary import finite
from natgauge.words import QUANTITIES, Verdict

FRAMES = 128
#: Baseline, gateway, A/A control, plain forwarding, cable: ns of a slice.
_NANOSECONDS = (155_000, 172_000, 155_000, 120_000, 42_000)
_GOAL = ComparisonGoal(0.95, 0.01, None)
_KIND = {"family": "ipv4", "octets": 64, "connections": 4000, "transport": "udp"}


def corpus(folder: Path) -> list[Path]:
    """Make the folders below `folder`; the campaign's is named "campaign"."""
    (folder / "made").mkdir(parents=True)
    campaign(folder / "made", Benches(), plan=PLAN)
    (folder / "made" / "out").rename(folder / "campaign")
    (folder / "made" / "plan.toml").unlink(missing_ok=True)
    with suppress(OSError):
        (folder / "made").rmdir()
    results = sorted((folder / "campaign" / "results").iterdir())
    others = [
        sampled(folder / "sampled"),
        doubted(folder / "doubted"),
        timed(folder / "timed"),
        by_slices(folder / "slices"),
    ]
    others += [by_rates(folder / "rates"), audited(folder / "audit"), failed(folder / "failed")]
    return [folder / "campaign", *results, *others]


def sampled(folder: Path) -> Path:
    """A result with a figure of which each repetition has several values."""
    return _sampled(folder, "tear-down-rate", "full_seconds", ((0.002, 0.003, 0.0025), (0.0021, 0.0032)))


def doubted(folder: Path) -> Path:
    """A result that is doubted, for it has one repetition; each trial has the memory of a connection."""
    return _sampled(folder, "connection-rate", OCTETS_PER_CONNECTION, ((320.0, 330.0, 325.0),))


def _sampled(folder: Path, metric: str, name: str, samples: Sequence[tuple[float, ...]]) -> Path:
    folder.mkdir()
    store = Store(folder)
    measured = make_result(
        metric,
        "connections/s",
        {},
        [
            Measurement(
                4e5, None, "device", {Verdict.PASS: 1}, figures={name: statistics.median(own)}, sample={name: own}
            )
            for own in samples
        ],
    )
    parameters = made().parameters
    store.write_plan(parameters.flat())
    result = make(measured, parameters, str(folder))
    for number, (repetition, own) in enumerate(zip(result.repetitions, samples, strict=True), start=1):
        of_all = {"metric": result.metric, "unit": result.unit, "repetition": number}
        store.add_measurements(
            [{**of_all, **REPETITION.dump_python(repetition, mode="json"), "samples": {name: own}, "disturbed": 0}]
        )
    store.write_summary(result.document())
    for _ in samples:
        store.add_trial(trial())
    return folder


def linked(folder: Path) -> Path:
    """A result over links of known speed, with the share of the frames that they carry at most."""
    families = {"initiator_family": "ipv4", "responder_family": "ipv4"}
    given: dict[str, Any] = {"new_rate": 2e5, "frame_size": 64, "link_speeds": [1000, 1000], "placement": "external"}
    one = Measurement(1_288_000.0, 1_300_000.0, "device", {Verdict.PASS: 1})
    parameters = Parameters.grouped(settings={**given, **families})
    result = make(make_result("mixed-load", "frames/s", {}, [one]), parameters, str(folder))
    folder.mkdir()
    store = Store(folder)
    store.write_plan(parameters.flat())
    keep(store, result)
    return folder


def timed(folder: Path) -> Path:
    """A result of delays, with the buckets of its trials."""
    folder.mkdir()
    store = Store(folder)
    result = made([12.0, 12.5, 11.9], metric="latency", unit="us")
    store.write_plan(result.parameters.flat())
    store.write_environment({"machine": {"kernel": "6.18", "cpu": {"model": "x"}}, "device": {"gateway": "x"}})
    keep(store, result)
    store.add_trial(trial(delays=[(1000, 1200, 50), (1200, 1400, 50)]))
    store.add_trial(trial("FAIL"))
    return folder


def by_slices(folder: Path) -> Path:
    """A comparison whose ratios are those of its rounds."""
    folder.mkdir()
    store, chance = Store(folder), random.Random(5)  # noqa: S311 - made up
    labels = ("nftables-nat44", "other")
    store.write_plan({"gateways": {label: {"recipe": label, "frames": [_KIND]} for label in labels}})
    record = compared(baseline=labels[0])
    places = [
        RoundPlace(label, (at,), (4,), (3,))
        for at, label in enumerate([labels[0], labels[1], record.gateways[-1].label])
    ]
    ratios, counts = PairedRatios(places, QUANTITIES), {"slices": 0, "interrupted": 0, "waited": 0}
    for _ in range(4):
        blocks = [_block(quantity, chance) for quantity in QUANTITIES for _ in range(12)]
        ratios.add(work_of_block(one["quantity"], one["order"], one["ns"], FRAMES) for one in blocks)
        counts["slices"] += sum(len(one["ns"]) for one in blocks)
        contestants = [{"name": name} for name in (*(place.label for place in places), "plain", "cable")]
        request = {"cpu": 1, "contestants": contestants, "slices": {"frames": FRAMES}}
        store.add_round({"request": request, "result": {"blocks": blocks}, "void": {}})
    estimates = estimates_of(ratios, _GOAL, alpha_spent(2, 1 - 0.95, last=True))
    costs = tuple(
        BaselineCost(
            quantity=quantity,
            nanoseconds=ratios.nanoseconds(places[0], quantity),
            ratio_to_forwarding=finite(ratios.ratio_to_forwarding(places[0], quantity)),
            tester_nanoseconds=ratios.tester(quantity),
        )
        for quantity in QUANTITIES
    )
    document = record.document() | {
        "estimates": [one.model_dump(mode="json") for one in estimates[: len(QUANTITIES)]],
        "control": [one.model_dump(mode="json") for one in estimates[len(QUANTITIES) :]],
        "baseline_costs": [one.model_dump(mode="json") for one in costs],
        "forwarding_nanoseconds": {quantity: ratios.forwarding(quantity) for quantity in QUANTITIES},
        "decided": all(is_decided(one, _GOAL.fail_above) for one in estimates[: len(QUANTITIES)]),
        "rounds": 4,
        "slices": SliceCounts(core=1, frames=FRAMES, **counts).model_dump(mode="json"),
    }
    store.write_comparison(ComparisonRecord.from_document(document).document())
    return folder


def _block(quantity: str, chance: random.Random) -> dict[str, Any]:
    order = chance.sample(range(len(_NANOSECONDS)), len(_NANOSECONDS))
    ns = [int(_NANOSECONDS[position] * chance.uniform(0.98, 1.02)) for position in (*order, *reversed(order))]
    return {"quantity": quantity, "order": order, "ns": ns, "waited": 0, "interrupted": 0}


def by_rates(folder: Path) -> Path:
    """A comparison by rates whose ratios are those of its searches."""
    folder.mkdir()
    store, chance = Store(folder), random.Random(7)  # noqa: S311 - made up
    made_up = compared_by_rates()
    labels = [gateway.label for gateway in made_up.gateways]
    searches = {label: RateRounds(label, "new") for label in labels}
    store.write_plan({"gateways": {label: {"recipe": label} for label in labels}, "control": labels[-1]})
    for _ in range(8):
        for label, rate in zip(labels, (100_000, 80_000, 100_000), strict=True):
            found = rate * chance.uniform(0.98, 1.02)
            searches[label].rounds.append(RateBounds(found * 0.99, found, found * 1.02))
        last = {label: searched.rounds[-1] for label, searched in searches.items()}
        rates = {label: {"new": [bounds.lower, bounds.upper]} for label, bounds in last.items() if bounds}
        passed = {label: {"new": bounds.passed} for label, bounds in last.items() if bounds}
        store.add_round({"rates": rates, "passed": passed, "failed": {}})
    baseline, other, control = searches.values()
    goal, alpha = ComparisonGoal(0.95, 0.05, None), alpha_spent(1, 1 - 0.95)
    bias = ratio_of(baseline, control, alpha)
    estimates = [
        estimate_of(Subject(one.label, "new", one.nanoseconds, None, 8), ratio_of(baseline, one, alpha), against, goal)
        for one, against in ((other, margin_of(bias)), (control, 1.0))
    ]
    cost = BaselineCost(
        quantity="new", nanoseconds=baseline.nanoseconds, ratio_to_forwarding=None, tester_nanoseconds=None
    )
    document = made_up.document() | {
        "estimates": [estimates[0].model_dump(mode="json")],
        "control": [estimates[1].model_dump(mode="json")],
        "baseline_costs": [cost.model_dump(mode="json")],
        "decided": is_decided(estimates[0], goal.fail_above),
        "resolve": goal.resolve,
        "rounds": 8,
    }
    for gateway in document["gateways"]:
        gateway["rates"] = {"new": searches[gateway["label"]].rate}
    store.write_comparison(ComparisonRecord.from_document(document).document())
    for label in labels:
        store.add_trial({**trial(), "gateway": label})
    return folder


def audited(folder: Path) -> Path:
    """An audit."""
    folder.mkdir()
    store = Store(folder)
    empty: Mapping[str, Any] = {"file": None, "frames": []}
    requirement = {
        "rfc": 4787, "requirement": "REQ-8", "level": "MUST", "text": "filtering", "transport": "udp",
        "verdict": "meets", "measured": "endpoint-independent", "declared": None, "evidence": empty,
    }  # fmt: skip
    classes = {"mapping": "endpoint-independent", "filtering": None, "ports": None, "hairpinning": None}
    document: dict[str, Any] = {
        "schema": "natgauge-audit-1", "gateway": "mine", "title": "My gateway", "profile": "all",
        "classes": {"udp": classes}, "requirements": [requirement, {**requirement, "requirement": "REQ-9"}],
        "timeouts": {"UDP, one frame out": [29.9, 31.4]}, "wait_seconds": 330.0, "seconds": 2.5, "device": None,
        "parameters": {"lab_kind": "netns"}, "results": "results/1",
    }  # fmt: skip
    store.write_plan({"profile": "all"})
    frame = CapturedFrame("initiator", 1.0, b"x" * 20, FORGOTTEN.packet, sent=True, before="the inside sends ")
    document["requirements"][0]["evidence"] = {
        "file": store.write_frames("one.pcapng", pcapng([frame])), "frames": ["a frame"],
    }  # fmt: skip
    store.write_audit(AuditRecord.from_document(document).document())
    return folder


def failed(folder: Path) -> Path:
    """A measurement that an error ended after some trials."""
    store = Store.create(folder, "throughput", "nftables-nat44")
    with suppress(BrokenError), store.evidence("natgauge measure throughput --gateway nftables-nat44"):
        store.write_plan(
            {"command": "natgauge measure throughput --gateway nftables-nat44", "gateway": "nftables-nat44"}
        )
        store.add_trial(trial())
        lost = trial("FAIL", reason="3 of 100 frames were lost")
        store.add_trial({**lost, "result": {**lost["result"], "ports": {"initiator": {"refused": 3}, "responder": {}}}})
        raise BrokenError("the device is gone")
    return store.folder

# SPDX-License-Identifier: Apache-2.0
"""A border relay or lwAFTR alone, before customer edges that the tester emulates, and faults that it must find."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from tests.labs.program import own
from tests.labs.trying import MOST_TRIALS, passing
from tests.plans import PlanOfTrial

from natgauge.agreement.generated import StreamCounts, TrialResult
from natgauge.errors import BrokenError
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

pytestmark = pytest.mark.waits

EDGES: Final = 1000
RATE, SECONDS = 16_000.0, 0.25
BOTH_WAYS: Final = PlanOfTrial(100_000, 1.0, Phase2Plan(RATE, RATE, SECONDS), stateless=True)

Measured = tuple[Bench, LabMeasurer, Memory]


@pytest.fixture(scope="module")
def measured(request: pytest.FixtureRequest) -> Iterator[Measured]:
    """One relay for all tests, whose faults are added and removed."""
    # With this seed each direction has frames of every subscriber that is treated wrongly.
    asked = {"lab_name": own("e2e-relay"), "subscribers": EDGES, "psid_length": 6, "stateless": True, "seed": 1}
    question = ask("throughput", request.param, asked)
    kept = Memory()
    with Bench(question.cell) as bench:
        yield bench, bench.ready(bench.plan("throughput", question.settings), kept).measurer, kept


def on(*lwaftr: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """For both relays, the lwAFTR with these marks."""
    relays = ["map-t-br", pytest.param("lwaftr", marks=lwaftr)]
    return pytest.mark.parametrize("measured", relays, indirect=True, scope="module")


def phase2(kept: Memory) -> dict[str, StreamCounts]:
    """Counts of both directions of the last trial, which was stateless."""
    result = kept.trials[-1]["result"]
    assert isinstance(result, TrialResult)
    assert result.phase1 is None
    assert result.phase2 is not None
    assert result.phase2.initiator is not None
    assert result.phase2.responder is not None
    return {"up": result.phase2.initiator, "down": result.phase2.responder}


@on()
def test_a_relay_without_faults_passes_for_a_thousand_edges(measured: Measured) -> None:
    bench, measurer, kept = measured
    assert bench.traffic.sources == EDGES
    passing(measurer, BOTH_WAYS)
    for counts in phase2(kept).values():
        assert counts.received_frames == counts.offered_frames == RATE * SECONDS
        assert (counts.untranslated, counts.mistranslated) == (0, 0)


#: Address and ports of every tenth subscriber: 63 sets of 1024 ports on each address.
EVERY_TENTH: Final = ", ".join(
    f"198.18.0.{1 + number // 63} . {1024 * (1 + number % 63)}-{1024 * (2 + number % 63) - 1}"
    for number in range(0, EDGES, 10)
)
#: Subscriber 70 has the eighth set of the second address.
ITS_PORTS: Final = "8192-9215"


@on()
@pytest.mark.parametrize(
    ("direction", "hook", "fault", "counted_as"),
    [
        pytest.param(
            "up", "forward", f"ip saddr . udp sport {{ {EVERY_TENTH} }} COUNT drop", "lost", id="drops every tenth"
        ),
        pytest.param(
            "up", "forward", f"ip saddr 198.18.0.2 udp sport {ITS_PORTS} COUNT drop", "lost", id="forgets a set upwards"
        ),
        pytest.param(
            "down",
            "prerouting",
            f"ip daddr 198.18.0.2 udp dport {ITS_PORTS} COUNT drop",
            "lost",
            id="forgets a set downwards",
        ),
        pytest.param(
            "up",
            "forward",
            f"ip saddr 198.18.0.2 udp sport {ITS_PORTS} COUNT ip saddr set 198.18.0.3",
            "mistranslated",
            id="gives the address of another",
        ),
        pytest.param(
            "down",
            "prerouting",
            f"ip daddr 198.18.0.2 udp dport {ITS_PORTS} COUNT udp dport set 9216",
            "mistranslated",
            id="sends to another",
        ),
    ],
)
def test_each_frame_that_a_relay_treats_wrongly_is_found(
    measured: Measured, direction: str, hook: str, fault: str, counted_as: str
) -> None:
    bench, measurer, kept = measured
    with faulty(bench, hook, fault):
        for _ in range(MOST_TRIALS):
            before = packets(bench)
            outcome = measurer.measure(BOTH_WAYS)
            if outcome.verdict is not Verdict.INVALID:
                break
        wrong = packets(bench) - before
    assert outcome.verdict is Verdict.FAIL
    found = phase2(kept)
    hit, other = found[direction], found["down" if direction == "up" else "up"]
    assert wrong > 0
    assert {"lost": hit.offered_frames - hit.received_frames, "mistranslated": hit.mistranslated}[counted_as] == wrong
    assert other.received_frames == other.offered_frames


@on(pytest.mark.soak)
@pytest.mark.slow("finds one of 1,000 subscribers with a trial for each half")
def test_a_subscriber_that_a_relay_has_forgotten_is_named(measured: Measured) -> None:
    bench, measurer, _ = measured
    measurer.check_subscribers()
    with (
        faulty(bench, "prerouting", f"ip daddr 198.18.0.2 udp dport {ITS_PORTS} COUNT drop"),
        pytest.raises(BrokenError) as refusal,
    ):
        measurer.check_subscribers()
    said = str(refusal.value)
    assert "for 1 of 1000 subscribers: subscriber 70 (198.18.0.2, PSID 8, 2001:db8:0:220:0:c612:2:8): lost" in said
    assert "lost from outside" in said
    assert "\n" not in said


@contextmanager
def faulty(bench: Bench, hook: str, fault: str) -> Iterator[None]:
    """A relay with a rule of nftables that treats some frames wrongly."""
    (device,) = bench.lab.devices
    rule = fault.replace("COUNT", "counter name wrong")
    chain = f"chain fault {{ type filter hook {hook} priority -400; {rule}; }}"
    made = device.run(f"nft -f - <<RULES\ntable inet fault {{\ncounter wrong {{ }}\n{chain}\n}}\nRULES\n")
    assert made.status == 0, made.stderr
    try:
        yield
    finally:
        assert device.run("nft delete table inet fault").status == 0


def packets(bench: Bench) -> int:
    """Frames that the fault has had."""
    answer = bench.lab.devices[0].run("nft -j list counter inet fault wrong")
    return int(json.loads(answer.stdout)["nftables"][1]["counter"]["packets"])

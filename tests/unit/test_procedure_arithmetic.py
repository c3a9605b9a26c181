# SPDX-License-Identifier: Apache-2.0
"""What procedures make of counts and times, by numbers that are known: shares, rates, draws, buffers, survival."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.simulated import Gateway
from tests.unit.simulated_subscribers import Mixed, measure, profile
from tests.unit.test_churn import lost_of
from tests.unit.test_churn import made as churned

from natgauge.errors import BrokenError
from natgauge.inputs.measuring_types import SearchError
from natgauge.measurer import TearDown
from natgauge.notes import Note
from natgauge.procedures.back_to_back import buffer_notes, buffer_times
from natgauge.procedures.frame_loss import shares_of
from natgauge.procedures.kit.frame_counts import few_lost, forwarding_rate, lost_share, shortfall
from natgauge.procedures.kit.losses import Faults
from natgauge.procedures.kit.mixed_loads import beside_flood
from natgauge.procedures.kit.phases import expected_connections, expected_new, safely_below
from natgauge.procedures.kit.queues import least_rate_with_queues, wait_limit
from natgauge.procedures.kit.results import Attempt, Measurement
from natgauge.procedures.reset import Outage, surviving_share
from natgauge.procedures.tear_down_rate import _checked, tear_down
from natgauge.readings import LogCounts
from natgauge.reports.html.charts import limit_of
from natgauge.reports.html.figures import looks_of, question_figures
from natgauge.subscriber_profiles import load, profiles
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Direction, Phase2Plan, Restart
from natgauge.words import LimitedBy, Verdict


def test_draws_hit_as_many_four_tuples_as_chance_expects() -> None:
    """As many draws as four tuples hit 63 % of them, and end with 37 % new ones."""
    assert expected_connections(4_000_000, 4_000_000) / 4_000_000 == pytest.approx(1 - 1 / math.e, abs=1e-6)
    assert expected_new(4_000_000, 4_000_000) == pytest.approx(1 / math.e, abs=1e-6)
    assert expected_connections(10, 1) == 1
    assert expected_connections(1, 10) == pytest.approx(1)
    chance = random.Random(7)  # noqa: S311 - a simulation
    drawn = {chance.randrange(20_000) for _ in range(30_000)}
    assert len(drawn) == pytest.approx(expected_connections(30_000, 20_000), rel=0.01)


def test_frames_lost_and_frames_not_sent_in_time_are_one_share() -> None:
    """A device that drops what exceeds 0.88 of the offered rate forwards 0.88 of it, however slow the sender is."""
    in_time = make_counts(1000, 1000, 880, nominal_seconds=1.0, sending_seconds=1.0)
    slowed = make_counts(1000, 1000, 968, nominal_seconds=1.0, sending_seconds=1.1)
    assert shortfall(in_time) == pytest.approx(0.12)
    assert shortfall(slowed) == pytest.approx(0.12)
    # 200 lost frames are excused, so 120 of 800 are missing.
    assert shortfall(make_counts(1000, 1000, 680, nominal_seconds=1.0, sending_seconds=1.0), 200) == pytest.approx(0.15)


def test_what_was_due_in_stalls_counts_once_where_the_lost_frames_times_are_not_known() -> None:
    """All of 100,000 frames due in stalls were lost, and half of the others; the excused number is an estimate."""
    counts = make_counts(1_000_000, 1_000_000, 450_000).model_copy(update={"due_in_stalls": 100_000})
    assert lost_share(counts, 100_000) == pytest.approx(0.5)


def test_shares_of_a_rate_go_down_in_steps_and_then_by_halves() -> None:
    shares = [share for share, _ in zip(shares_of(0.1), range(13), strict=False)]
    assert shares == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.025, 0.0125])


def test_the_forwarding_rate_is_the_slowest_directions_over_the_time_it_really_took() -> None:
    on_time = make_counts(intended=100, offered=100, received=80, nominal_seconds=2.0, sending_seconds=1.9)
    behind = make_counts(intended=100, offered=100, received=100, nominal_seconds=2.0, sending_seconds=4.0)
    assert forwarding_rate([on_time]) == 40
    assert forwarding_rate([on_time, behind]) == forwarding_rate([behind, on_time]) == 25
    assert forwarding_rate([]) is None
    assert forwarding_rate([make_counts(1, 1, 1)]) is None


@pytest.mark.parametrize(
    ("seconds", "error", "limit"),
    [(60, 0.01, 0.02), (2, 0.01, 0.02), (1, 0.01, 0.01), (0.5, 0.01, 0.01), (0.5, 0.05, 0.02), (2, 0.001, 0.01)],
)
def test_the_limit_of_a_wait_follows_from_length_and_error(seconds: float, error: float, limit: float) -> None:
    assert wait_limit(seconds, SearchError(share=error)) == pytest.approx(limit)


def test_what_a_device_surely_does_is_never_more_than_it_does() -> None:
    """A device of 110,000/s with a queue of 2,048 frames passes 312 frames at any rate."""
    assert least_rate_with_queues(312, 2.3e6, 0.02) < 110_000
    assert least_rate_with_queues(1e6, 100_000, 0.02) == pytest.approx(100_000, rel=0.003)


def test_failures_that_chance_scatters_slow_phase_1_down_to_a_bound() -> None:
    """A device that loses one opening in a million halved the rate of phase 1 until the time was used up."""
    phase2 = Phase2Plan(initiator_rate=1000.0, responder_rate=1000.0, seconds=0.1)
    plan = PlanOfTrial(connections=1000, phase1_rate=100.0, phase2=phase2)
    failed, passed = Gateway(establishes=1).measure(plan), Gateway().measure(plan)
    preparation = safely_below(64_000.0)
    for _ in range(20):
        assert preparation.judge(failed).verdict is Verdict.INVALID
        assert preparation.judge(passed).verdict is Verdict.PASS
        assert not preparation.hopeless
    assert preparation.rate == 32_000 / 2**4


def test_a_share_of_the_connections_that_is_not_opened_takes_the_same_share_of_the_frames() -> None:
    """Frames that were not sent for that are lost, so they are among those of which a share is lost."""
    faults = Faults()
    for rate in (400.0, 800.0, 1600.0, 3200.0):
        down = make_counts(2000, 1000, 800, unopened=1000)
        faults.add(rate, make_outcome("FAIL", "lost", phase2={Direction.RESPONDER: down}, limited_by="device"))
    loss = faults.proven()
    assert loss is not None
    assert (loss.kind, loss.share, loss.kept, loss.frames) == ("lost", 0.6, 800, 2000)


@pytest.mark.parametrize(("failed_phase", "kind"), [(1, "unlogged"), (2, None)])
def test_connections_that_a_log_lacks_are_a_share_of_connections_and_not_of_the_frames_of_phase_2(
    failed_phase: int, kind: str | None
) -> None:
    """The log of a phase 2 that opened connections was compared with its frames, which are as many as its rate."""
    faults = Faults()
    counts = make_counts(4000, 4000, 4000)
    log = LogCounts(connections=4000, records=3960, octets=3960, lost=40)
    lacking = {"phase2": {Direction.RESPONDER: counts}, "limited_by": "log", "log": log, "failed_phase": failed_phase}
    for rate in (400.0, 800.0, 1600.0, 3200.0):
        faults.add(rate, make_outcome("FAIL", "40 of 4000 connections are not in the log", counts, **lacking))
    loss = faults.proven()
    assert (loss and loss.kind) == kind


def test_the_buffer_times_of_rfc_9004() -> None:
    """64-octet frames on 10 Gb/s: a burst of 26,000 lasts 1.747 ms, and 80 % of it was forwarded meanwhile."""
    assert buffer_times(26_000, 14_880_952, 14_880_952 * 0.8) == pytest.approx((1.747e-3, 0.3494e-3), rel=1e-3)
    assert buffer_times(100, 1e6, 2e6) == (1e-4, 0)


@pytest.mark.parametrize(
    ("upper", "longest", "said"),
    [
        (999_600, 1000, ["corrected 0.000400 to 0.0200 ms"]),
        (None, 1000, ["corrected at most 0.0200 ms"]),
        (980_000, 1000, ["corrected 0.02 ms"]),
        # A burst that may be longer leaves no upper end, or another one.
        (999_600, 1100, ["corrected 0.000400 to 0.022"]),
        (990_000, math.inf, ["frames: implied buffer time at least 1", "corrected at least 0.0"]),
        (None, math.inf, []),
    ],
)
def test_a_note_has_the_corrected_buffer_time_as_the_range_that_throughput_and_burst_leave(
    upper: float | None, longest: float, said: list[str]
) -> None:
    (note,) = buffer_notes([1000], 1e6, 980_000, upper, longest=longest)
    assert [text for text in said if text not in note.text] == []
    assert longest != 1000 or note.text.endswith(said[0])
    assert ("corrected" in note.text) == bool(said)
    assert longest < math.inf or " to " not in note.text


def test_a_tear_down_rate_comes_from_unrounded_medians_with_the_scatter_of_empty_tables(golden: Golden) -> None:
    """The published row: 0.16 s and 0.01 s are printed, 2.5 M and 2.67 M would follow; 0.145 s it really was."""
    value, _, _ = tear_down(400_000, [0.158, 0.159, 0.158], [0.013, 0.013, 0.014])
    assert value == pytest.approx(2_758_621, abs=1)
    # A difference within the spread is marked.
    value, _, notes = tear_down(1000, [0.015, 0.018, 0.012], [0.013, 0.014, 0.012])
    assert value == pytest.approx(500_000)
    golden(str(notes[0]))
    # It was a rate without a range: all full tables had taken 20 ms.
    _, figures, _ = tear_down(1000, [0.020, 0.020, 0.020], [0.001, 0.010, 0.010])
    assert (figures["rate_lowest"], figures["rate_highest"]) == pytest.approx((1000 / 0.019, 1000 / 0.010))
    # A full table that empties like an empty one has a least rate.
    value, figures, notes = tear_down(10, [0.01, 0.01], [0.01, 0.02])
    assert (value, figures["difference_seconds"]) == pytest.approx((10 / 0.01, -0.005))
    golden(str(notes[0]))


def test_connections_of_others_in_the_table_are_refused_with_what_to_do() -> None:
    with pytest.raises(BrokenError, match=r"held 7 connections .* instead of 5; end other traffic"):
        _checked(TearDown(0.1, count_before=7, count_after=0), 5)


def survivors(
    received: float, last: float | None, silence: tuple[float, float], command: tuple[float, float], first: Outage
) -> float | Note:
    """Return the share that survives a failover, whose outage the first trial had so.

    In a second trial of 12 s at 1000 frames/s so many seconds of frames arrived, the last one was lost at `last`, and
    the command ran in between.
    """
    nanoseconds = None if last is None else round(last * 1e9)
    counts = make_counts(12_000, 12_000, round(1000 * received), longest_silence=silence, last_lost_ns=nanoseconds)
    trial: Any = SimpleNamespace(
        phase2={Direction.RESPONDER: counts}, restart=Restart(*command), plan=SimpleNamespace(connections=1000)
    )
    return surviving_share(trial, 12.0, 1000.0, first)


@pytest.mark.parametrize(
    ("share", "received", "last", "silence", "command", "first"),
    [
        # A stall of the tester, the longest silence, is no failover of 20 ms.
        (0.5, 2.01 + 0.5 * 9.99, 11.99, (5.0, 5.05), (2.0, 2.02), Outage(0.005, 0.01, lost=True)),
        (1.0, 12.0, 2.01, (11.0, 11.1), (2.0, 2.02), Outage(0.005, 0.01, lost=True)),
        (0.0, 2.01, 11.99, (1.0, 1.5), (2.0, 2.02), Outage(0.005, 0.01, lost=True)),
        # Forwarding stopped 2.5 s after the command had ended, and 26 % of no connections survived.
        (0.0, 5.0, 11.99, (1.0, 1.002), (2.0, 2.5), Outage(3.0, 0.8, lost=True)),
        (0.0, 5.4, 11.99, (3.0, 3.002), (2.0, 2.5), Outage(3.0, 0.8, lost=True)),
        (0.25, 5.0 + 0.25 * 6.2, 11.99, (5.0, 5.8), (2.0, 2.5), Outage(3.0, 0.8, lost=True)),
        (0.25, 5.4 + 0.25 * 5.9, 11.99, (5.4, 6.1), (2.0, 2.5), Outage(3.0, 0.8, lost=True)),
        # Early in a long command fewer frames arrived than are sent until it ends, and 0 % survived.
        (0.3, 2.0 + 0.3 * 9.5, 11.99, (2.0, 2.5), (2.0, 7.0), Outage(0.0, 0.5, lost=True)),
        # Where some frames were not made, the engine does not know when the others were lost.
        (0.0, 2.0, None, (2.0, 2.01), (2.0, 2.02), Outage(0.0, 0.01, lost=True)),
        # A command that interrupts nothing ends no connection.
        (1.0, 12.0, None, (1.0, 1.002), (2.0, 2.5), Outage(0.0, 0.001, lost=False)),
        (1.0, 12.0, 1.5, (1.0, 1.002), (2.0, 2.5), Outage(0.0, 0.001, lost=False)),
    ],
)
def test_connections_survive_an_outage_whose_place_the_first_trial_tells(
    share: float,
    received: float,
    last: float | None,
    *,
    silence: tuple[float, float],
    command: tuple[float, float],
    first: Outage,
) -> None:
    assert survivors(received, last, silence, command, first) == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize(
    ("received", "last", "silence", "first", "said"),
    [
        # A command that moves the traffic to one gateway only let 100 % of the connections survive.
        (12.0, None, (1.0, 1.002), Outage(0.0, 0.5, lost=True), "interrupted nothing when it ran again"),
        (12.0, 1.5, (1.0, 1.002), Outage(0.0, 0.5, lost=True), "interrupted nothing when it ran again"),
        (8.0, 11.99, (10.0, 10.9), Outage(3.0, 0.8, lost=True), "began some time after the reset command had ended"),
    ],
)
def test_an_outage_that_nothing_shows_in_the_second_trial_leaves_the_share_unknown(
    received: float, last: float | None, silence: tuple[float, float], first: Outage, said: str
) -> None:
    found = survivors(received, last, silence, (2.0, 2.5), first)
    assert isinstance(found, Note)
    assert said in found.text


def known_loads(alone: Measurement, beside: Measurement, tried: Sequence[Attempt] = ()) -> Measurement:
    """What is told of a load of 100 without a flood and one of 50 beside it."""
    return beside_flood(alone, tried, beside, wanted=1.0, flood=1.0)


def ended(value: float, upper: float | None, by: LimitedBy, *notes: Note) -> Measurement:
    return Measurement(value, upper, by, {}, notes=notes)


def test_what_is_not_sure_of_the_load_without_the_flood_is_told_with_the_share(golden: Golden) -> None:
    """They were doubts of the first search, and with the first search they were dropped."""
    rare, twice = Note("rare loss", "3 frames of a million were lost"), Note("contradictions", "90 passed and failed")
    known = known_loads(ended(100.0, 101.0, "device", rare, twice), ended(50.0, 50.5, "device"))
    golden([f"{note} ({note.grade})" for note in known.notes])
    # What few lost frames ended may be far too low.
    assert "kept_least_share" not in known.figures
    assert known.figures["kept_most_share"] == pytest.approx(0.505)


def test_each_bound_of_the_share_is_that_of_a_search_that_the_device_ended() -> None:
    known = known_loads(ended(100.0, 125.0, "device"), ended(50.0, None, "tester"))
    assert (known.figures["kept_least_share"], known.figures["kept_share"]) == (0.4, 0.5)
    assert "kept_most_share" not in known.figures
    undecided = known_loads(ended(100.0, 125.0, "host"), ended(50.0, 60.0, "time"))
    assert "kept_least_share" not in undecided.figures
    assert undecided.figures["kept_most_share"] == 0.6


def test_what_the_others_lose_beside_a_flood_is_counted_as_verdicts_count_it() -> None:
    """2,000 of 4,000 frames came back, and 1,000 were never sent: their connections were not opened."""
    outcome = churned(down=make_counts(4000, 3000, 2000, unopened=1000))
    phase2 = outcome.counted.phase2
    assert phase2 is not None
    beside = phase2.model_copy(update={"initiator": None, "flood": lost_of(1000, 999)})
    outcome = replace(
        outcome, result=outcome.counted.model_copy(update={"phase2": beside}), verdict=Verdict.FAIL, limited_by="device"
    )
    tried = Attempt(100.0, short=False, outcome=outcome, is_aside=True)
    known = known_loads(ended(100.0, 101.0, "device"), ended(50.0, 50.5, "device"), [tried])
    assert known.figures["frames_lost_beside_flood_percent"] == 50


@pytest.mark.parametrize(
    ("gateway", "each", "ports"),
    [
        ("nftables-nat44", 250, (10, 25)),
        # A block of 2 x 128 ports for all connections of a host: 8 x 32 gave some more than their 250.
        ("cgn-port-blocks", 250, (10, 25)),
        ("cgn-port-blocks", 256, (8, 32)),
        ("cgn-port-blocks", 251, (9, 28)),
        # Here a block's ports count, whatever the destinations.
        ("cgn-deterministic", 250, (8, 32)),
        ("cgn-deterministic", 100, (4, 25)),
    ],
)
def test_each_address_has_hardly_more_four_tuples_than_its_subscriber_needs(
    gateway: str, each: int, ports: tuple[int, int]
) -> None:
    chosen = {"subscriber": "household", "source_addresses": "10.0.0.2-10.0.0.33"}
    traffic = Bench(ask("subscribers", gateway, chosen).cell).traffic
    assert traffic.destination_ports.count == 32
    for number in (1, 2, 32):
        part = traffic.of_first(number, each)
        assert (part.source_ports.count, part.destination_ports.count) == ports
        assert part.space == number * math.prod(ports)


def test_destinations_stay_as_many_as_the_outside_ports_of_all_addresses_need() -> None:
    """Towards each of 17 destinations 29,000 addresses with two ports each would fill nearly all outside ports."""
    chosen = {"subscriber": "household", "source_addresses": "10.0.0.2-10.0.122.19"}
    traffic = Bench(ask("subscribers", "nftables-nat44", chosen).cell).traffic
    for number, destinations in ((29_000, 31), (25_000, 27), (20_000, 22), (1000, 17)):
        part = traffic.of_first(number, 34)
        assert (part.source_ports.count, part.destination_ports.count) == (2, destinations)


@pytest.mark.parametrize("more", [{"new_rate": 1e5}, {"new_share": 0.05}])
@pytest.mark.parametrize(("transport", "each"), [("udp", 1), ("tcp", 6)])
def test_the_testers_own_limit_on_the_page_is_the_highest_load_that_is_tried(
    transport: str, each: int, more: dict[str, Any]
) -> None:
    """Seen: a result that the tester limited, above the line of its limit."""
    truth = Mixed(forwards=1e9, ceiling=4e6)
    found = measure("mixed-load", truth, connections=2_000_000, four_tuples=20_000_000, transport=transport, **more)
    rate = found.summary.median
    assert found.limited_by == "tester"
    assert 2 * rate + each * more.get("new_rate", 0.05 * 2 * rate) == pytest.approx(4e6)
    figures = {name: figure.median for name, figure in found.figures.items()}
    given = {"tester_highest_phase2_rate": 4e6, "transport": transport, **more}
    limit = limit_of(made([rate], metric="mixed-load", figures=figures, parameters=given))
    assert limit is not None
    assert limit.value == pytest.approx(rate)


def test_openings_that_are_refused_at_every_rate_are_no_share_of_the_frames() -> None:
    found = measure("mixed-load", Mixed(opens=1000), new_rate=1100.0, four_tuples=200_000)
    (one,) = found.measurements
    assert (one.value, one.limited_by) == (0, "new connections")
    assert not {note.word for note in found.notes} & {"rare loss", "loss at every rate"}
    assert not few_lost(one.attempts)


@pytest.mark.parametrize("name", profiles())
def test_a_profile_that_comes_with_natgauge_has_a_source_and_fits_its_own_life(name: str) -> None:
    each = load(name)
    assert each.source
    assert each.up > 0
    assert each.down > 0
    assert each.life > 1


def test_a_series_over_new_connections_is_drawn_from_none_at_all_on() -> None:
    rates = {0.0: 2e5, 1000.0: 1.9e5, 10_000.0: 1e5}
    results = [
        made([value], metric="mixed-load", parameters={"new_rate": new, "new_share": None, "life_seconds": None})
        for new, value in rates.items()
    ]
    (group,) = question_figures(results, [()] * len(results), looks_of(results, []))
    (figure,) = group.figures
    assert [row[:3] for row in figure.data] == [
        ("x", "0", "200 k"),
        ("x", "1,000", "190 k"),
        ("x", "10,000", "100 k"),
    ]


SOURCES = {"source_addresses": "10.0.0.2-10.0.0.9"}


@pytest.mark.parametrize(
    ("chosen", "connections", "destinations"),
    [
        # A million connections of all hosts took 97 % of the ports towards each remote endpoint: half stay free.
        (SOURCES, 1_000_000, 32),
        ({"source_addresses": "10.0.0.2"}, 1_000_000, 16),
        # Ports that the user named decide. Seen: "connections: 1000000 asked for", where nobody had asked for them.
        ({**SOURCES, "destination_ports": "1-2"}, 2 * 64_512, 2),
        ({**SOURCES, "source_ports": "1024-1033"}, 8 * 10, 1),
        ({**SOURCES, "source_ports": "1024-1033", "destination_ports": "1-2"}, 8 * 10 * 2, 2),
    ],
)
def test_the_connections_of_several_addresses_are_those_that_there_are_ports_for(
    tmp_path: Path, chosen: dict[str, str], connections: int, destinations: int
) -> None:
    file = profile(tmp_path, 0.1, 1, 1)
    traffic = Bench(ask("subscribers", "nftables-nat44", {"subscriber": file, **chosen}).cell).traffic
    assert (traffic.connections, traffic.destination_ports.count) == (connections, destinations)

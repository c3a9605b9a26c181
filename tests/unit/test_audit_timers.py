# SPDX-License-Identifier: Apache-2.0
"""Time-outs of NATs whose time-outs are known are bounded to 5 % in one wait."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.simulated_nat import Behaviour, examiner_of

from natgauge.audits import audit
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow, described
from natgauge.audits.kit.packets import ErrorMessage, Packet, read_packet
from natgauge.audits.kit.timers import (
    CLOSED,
    ESTABLISHED,
    HALF_OPEN,
    ICMP_ERROR,
    ICMP_QUERY,
    REFRESHED_OUT,
    TIMERS,
    UDP_BOTH,
    UDP_ERROR,
    UDP_OUT,
    Refreshed,
    TimerKind,
    TimerSeen,
    expected,
    idle_times,
    plan,
    watch,
)
from natgauge.audits.requirements import requirements
from natgauge.audits.runner import examine
from natgauge.records.audit import AuditedRequirement
from natgauge.trial.protocols import Silent
from natgauge.words import Side

UDP = [kind for kind in TIMERS if kind.transport == "udp" and kind.refresh is None]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
@pytest.mark.parametrize("seconds", [30.0, 120.0, 290.0])
def test_a_time_out_is_bounded_to_five_percent(seconds: float, seed: int) -> None:
    found = watch(examiner_of(Behaviour(udp_seconds=seconds), seed=seed), UDP, 330.0)
    assert len(found) == len(UDP)
    for seen in found.values():
        assert seen.alive is not None
        assert seen.dead is not None
        assert seen.alive < seconds + 0.1
        assert seconds < seen.dead < 1.07 * seen.alive


def test_kinds_with_time_outs_of_their_own_are_told_apart() -> None:
    behaviour = Behaviour(
        udp_seconds=30.0,
        udp_answered_seconds=120.0,
        icmp_seconds=20.0,
        transitory_seconds=60.0,
        established_seconds=200.0,
    )
    found = watch(examiner_of(behaviour), TIMERS, 330.0)
    expected = {
        "UDP, one frame out": 30.0, "UDP, one frame each way": 120.0, "UDP, several frames each way": 120.0,
        "UDP to port 53, one frame each way": 120.0, "ICMP query and reply": 20.0, "TCP, SYN": 60.0,
        "TCP, SYN and answer": 60.0, "TCP, both FINs without the last ACK": 60.0, "TCP, closed by both FINs": 60.0,
        "TCP, reset by the inside": 60.0,
        "TCP, established": 200.0,
    }  # fmt: skip
    for name, seconds in expected.items():
        seen = found[name]
        assert seen.alive is not None
        assert seen.dead is not None
        assert seen.alive - 0.2 < seconds < seen.dead + 0.2, name


def test_a_mapping_that_outlives_the_wait_is_said_to_be_there(golden: Golden) -> None:
    found = watch(examiner_of(Behaviour(udp_seconds=300.0)), UDP[:1], 60.0)
    seen = found[UDP[0].name]
    assert seen.dead is None
    golden(seen.words)
    assert seen.lives(60.0)
    assert seen.lives(120.0) is None


def test_the_wait_ends_when_all_have_expired() -> None:
    examiner = examiner_of(Behaviour(udp_seconds=10.0))
    began = examiner.network.now()
    watch(examiner, UDP, 330.0)
    assert examiner.network.now() - began < 20.0


@pytest.fixture(scope="module")
def after_10_seconds() -> tuple[Examiner, float]:
    """The examiner of a NAT that forgets everything after 10 s, with its time-outs, and the seconds of the wait."""
    examiner = examiner_of(brief(10.0))
    began = examiner.network.now()
    examiner.timers.update(watch(examiner, TIMERS, 330.0))
    return examiner, examiner.network.now() - began


def test_refreshed_mappings_make_the_wait_hardly_longer(after_10_seconds: tuple[Examiner, float]) -> None:
    examiner, seconds = after_10_seconds
    assert seconds < 25.0
    refreshed = examiner.timers["UDP, refreshed from inside"]
    assert any(one.there and one.idled > 10.5 for one in refreshed.refreshed)


def test_idle_times_grow_by_five_percent_up_to_what_is_required_or_allowed() -> None:
    times = idle_times(TIMERS[0], 330.0)
    assert times[-1] == pytest.approx(306.0)
    assert all(after <= 1.051 * before for before, after in pairwise(times) if before >= 5.0)
    assert idle_times(TIMERS[0], 20.0)[-1] == 20.0
    number, longest = plan(TIMERS, 330.0)
    assert longest == 330.0
    assert number < 1500


def test_frames_that_are_lost_shorten_no_time_out() -> None:
    found = watch(examiner_of(Behaviour(udp_seconds=30.0, loses=lambda frame: frame % 7 == 3)), UDP[:1], 60.0)
    seen = found[UDP[0].name]
    assert seen.alive is not None
    assert seen.dead is not None
    assert 28.0 < seen.alive < 30.1
    assert 30.0 < seen.dead < 36.0


def test_frames_whose_sentences_nobody_reads_have_none_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """To say of each frame what it is took an eighth of the time of a watch."""
    made: list[Packet] = []

    def counted(packet: Packet) -> str:
        made.append(packet)
        return described(packet)

    monkeypatch.setattr("natgauge.audits.kit.capture.described", counted)
    examiner = examiner_of(Behaviour(udp_seconds=30.0))
    watch(examiner, UDP[:1], 60.0)
    told = [frame for frame in examiner.network.frames if frame.is_told]
    assert told
    assert made == []
    assert described(told[0].packet) in told[0].sentence


def brief(seconds: float) -> Behaviour:
    """A NAT that forgets everything after this time."""
    return Behaviour(udp_seconds=seconds, icmp_seconds=seconds, transitory_seconds=seconds, established_seconds=seconds)


@pytest.mark.parametrize(
    "seconds", [1.0, 2.9, 3.1, *(pytest.param(one, marks=pytest.mark.soak) for one in (2.0, 3.0, 5.0))]
)
def test_time_outs_shorter_than_a_stream_takes_to_begin_keep_no_other_mapping_waiting(seconds: float) -> None:
    """Seen: with time-outs of 3 s each of 95 streams was tried for 3 s, and the others seemed to live for 285 s."""
    examiner = examiner_of(brief(seconds))
    began = examiner.network.now()
    found = watch(examiner, TIMERS, 7600.0)
    assert examiner.network.now() - began < expected(TIMERS, 7600.0, seconds) + 5.0
    for seen in found.values():
        if seen.kind.refresh is None and not seen.gone_early:
            assert seen.alive is None or seen.alive < seconds + 0.1
            assert seen.dead is not None
            assert seconds < seen.dead + 0.1 < 1.3 * seconds + 1.5, seen.words


def test_streams_are_measured_though_the_time_out_is_as_short_as_they_take_to_begin() -> None:
    seen = watch(examiner_of(brief(3.0)), UDP, 330.0)["UDP, several frames each way"]
    assert seen.alive is not None
    assert seen.alive < 3.1


def test_streams_that_cannot_be_kept_are_given_up_and_that_is_said(golden: Golden) -> None:
    (kind,) = (kind for kind in UDP if kind.again_after)
    examiner = examiner_of(brief(0.4))
    began = examiner.network.now()
    (seen,) = watch(examiner, [kind], 330.0).values()
    assert examiner.network.now() - began < 10.0
    assert (seen.alive, seen.dead) == (None, None)
    golden(seen.words)


def test_a_gateway_that_dies_during_the_wait_makes_it_little_longer_than_was_told() -> None:
    """Each mapping of a dead gateway costs seconds, for control frames are tried several times."""
    behaviour = Behaviour(udp_seconds=300.0, loses=lambda frame: frame > 1000)
    examiner = examiner_of(behaviour)
    began = examiner.network.now()
    watch(examiner, UDP, 60.0)
    assert examiner.network.now() - began < plan(UDP, 60.0)[1] + 80.0


@pytest.mark.parametrize(("name", "first"), [("UDP, one frame out", 130), ("UDP, several frames each way", 720)])
def test_a_host_that_stalls_during_the_wait_leaves_the_other_mappings(name: str, first: int) -> None:
    """Thirty frames in a row are lost: while mappings are probed, or while streams are sent again."""
    kinds = [kind for kind in UDP if kind.name == name]
    behaviour = Behaviour(udp_seconds=30.0, loses=lambda frame: first < frame < first + 30)
    (seen,) = watch(examiner_of(behaviour), kinds, 330.0).values()
    assert seen.alive is None or seen.alive < 30.1
    assert seen.dead is not None
    assert seen.dead > 30.0


class Told(Silent):
    """Keeps what is said, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def stage(self, text: str) -> None:
        self.said.append(text)


def test_the_longest_wait_and_what_needs_a_longer_one_are_told_before_the_wait(golden: Golden) -> None:
    told = Told()
    audit._watch(examiner_of(brief(10.0)), requirements(), 270.0, told, told.said.append)
    longest, beyond, *waited = told.said
    golden(longest)
    golden(beyond)
    assert "TCP, SYN" not in beyond
    assert waited[0].startswith("time-outs: opening mappings")
    golden(waited[:3])


def test_the_time_to_expect_is_told_where_the_time_out_was_set(golden: Golden) -> None:
    told = Told()
    audit._watch(examiner_of(brief(3.0)), requirements(), 7600.0, told, told.said.append, timeout=3)
    golden(told.said[0])


#: A table that gives up its oldest mapping for a new one where it is full.
SMALL: dict[str, Any] = {"room": 300, "evicts": True}


def audited(behaviour: Behaviour, *keys: str) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return verdicts with what was measured, by requirement, and what was told."""
    examiner, told = examiner_of(behaviour), Told()
    audit._watch(examiner, requirements(), 330.0, told, told.said.append)
    found = examine(examiner, [each for each in requirements() if each.key in keys])
    return {one.key: (one.verdict, one.measured) for one in found}, told.said


def test_mappings_that_make_room_for_others_are_told_from_a_short_time_out() -> None:
    """A table of 300 for 1023 mappings was a time-out of a second."""
    found, told = audited(Behaviour(**SMALL), "RFC4787-REQ-5", "RFC5382-REQ-5")
    assert {key: verdict for key, (verdict, _) in found.items()} == {"RFC4787-REQ-5": "meets", "RFC5382-REQ-5": "meets"}
    assert all("the gateway gave up mappings for others" in measured for _, measured in found.values())
    assert [line for line in told if "watched again" in line]


def test_a_short_time_out_is_one_although_mappings_make_room_for_others() -> None:
    found, _ = audited(Behaviour(udp_seconds=30.0, icmp_seconds=30.0, **SMALL), "RFC4787-REQ-5", "RFC5508-REQ-2")
    verdict, measured = found["RFC4787-REQ-5"]
    assert (verdict, found["RFC5508-REQ-2"][0]) == ("fails", "fails")
    assert re.search(r"gone between \d\.\d and 5\d\.\d s among few", measured), measured


def test_a_table_without_room_for_a_few_leaves_open_which_it_is() -> None:
    found, _ = audited(Behaviour(room=5, evicts=True), "RFC4787-REQ-5")
    verdict, measured = found["RFC4787-REQ-5"]
    assert verdict == "not seen"
    assert "cannot be told from a gateway that gives up mappings for others" in measured


def test_a_short_time_out_of_a_table_with_room_is_measured_once() -> None:
    found, told = audited(Behaviour(udp_seconds=30.0), "RFC4787-REQ-5")
    assert found["RFC4787-REQ-5"][0] == "fails"
    assert "among" not in found["RFC4787-REQ-5"][1]
    assert not [line for line in told if "watched again" in line]


def test_connections_that_are_removed_at_a_reset_are_no_sign_of_a_table_without_room() -> None:
    found, told = audited(Behaviour(reset_seconds=0.1), "RFC7857-2.2")
    assert found["RFC7857-2.2"][0] == "fails"
    assert "among" not in found["RFC7857-2.2"][1]
    assert not [line for line in told if "watched again" in line]


def test_how_long_a_kind_lives_is_not_known_where_one_mapping_was_gone_before_another() -> None:
    """The results folder was refused, because its time-outs contradicted each other."""
    seen = TimerSeen(UDP[0])
    seen.add(40.0, [], there=False)
    seen.add(300.0, [], there=True)
    assert [seen.lives(seconds) for seconds in (120.0, 40.0, 310.0)] == [None, True, False]
    many = seen.bounds
    assert seen.is_odd
    seen.few = TimerSeen(UDP[0], alive=118.0, dead=124.0)
    assert (many, seen.bounds) == ((None, None), (118.0, 124.0))


def test_no_wait_is_told_where_there_is_none() -> None:
    told = Told()
    audit._watch(examiner_of(Behaviour()), requirements(), 0.0, told, told.said.append)
    audit._watch(
        examiner_of(Behaviour()), [one for one in requirements() if not one.timers], 270.0, told, told.said.append
    )
    audit._watch(examiner_of(Behaviour(forwards=False)), requirements(), 270.0, told, told.said.append)
    assert told.said == []


#: Names of the kinds of open connections, and of those that must end earlier.
TRACKED = (ESTABLISHED, HALF_OPEN, CLOSED)


@pytest.mark.parametrize(
    ("transitory", "established", "verdict"),
    [(300.0, 7440.0, "meets"), (240.0, 300.0, "meets"), (500.0, 400.0, "fails"), (9000.0, 9000.0, "not seen")],
)
def test_half_open_and_closed_connections_are_watched_as_long_as_open_ones(
    transitory: float, established: float, verdict: str
) -> None:
    examiner = examiner_of(Behaviour(transitory_seconds=transitory, established_seconds=established))
    examiner.timers.update(watch(examiner, [kind for kind in TIMERS if kind.name in TRACKED], 7600.0))
    (one,) = examine(examiner, [each for each in requirements() if each.key == "RFC7857-2"])
    assert one.verdict == verdict, one.measured


@pytest.mark.parametrize(
    ("behaviour", "verdicts"),
    [
        (Behaviour(closed_seconds=10.0), {"RFC5382-REQ-5": "meets", "RFC7857-2.1": "fails"}),
        (Behaviour(transitory_seconds=60.0), {"RFC5382-REQ-5": "fails", "RFC7857-2.1": "fails"}),
    ],
)
def test_a_connection_after_its_last_ack_is_no_closing_one(behaviour: Behaviour, verdicts: dict[str, str]) -> None:
    """RFC 5382 section 5 leaves TIME_WAIT open, and counts the time between the FINs and the last ACK."""
    examiner = examiner_of(behaviour)
    examiner.timers.update(watch(examiner, [kind for kind in TIMERS if kind.transport == "tcp"], 330.0))
    found = examine(examiner, [each for each in requirements() if each.key in verdicts])
    assert {one.key: one.verdict for one in found} == verdicts


#: Requirements whose seconds are more than 10.
LONGER = ("RFC4787-REQ-5", "RFC5508-REQ-2", "RFC5382-REQ-5", "RFC5382-REQ-5-established", "RFC7857-2.2", "RFC7857-2")


@pytest.mark.parametrize(
    ("knobs", "of_udp", "of_others", "option"),
    [
        ({}, "fails", "fails", ""),
        ({"timeouts": 10, "udp_timeout": 10}, "not seen", "not seen", "--timeouts"),
        ({"udp_timeout": 10}, "not seen", "fails", "--udp-timeout"),
        # Mappings were gone long before.
        ({"udp_timeout": 200}, "fails", "fails", ""),
        ({"timeouts": 100}, "fails", "fails", ""),
    ],
)
def test_a_time_out_that_an_option_set_is_no_failure_of_the_gateway(
    knobs: dict[str, int],
    of_udp: str,
    of_others: str,
    option: str,
    after_10_seconds: tuple[Examiner, float],
) -> None:
    """RFC 4787 REQ-5b and RFC 5382 REQ-5a allow to configure them."""
    examiner, _ = after_10_seconds
    examiner.knobs = knobs
    for one in examine(examiner, [each for each in requirements() if each.key in LONGER]):
        wanted = of_udp if one.transport == "udp" else of_others
        assert one.verdict == wanted, (one.key, one.measured)
        assert ("set to 10 s by " in one.measured) == (wanted == "not seen"), (one.key, one.measured)
        assert option in one.measured or wanted == "fails"


def kinds_of(*names: str) -> list[TimerKind]:
    return [kind for kind in TIMERS if kind.name in names]


def judged(examiner: Examiner, key: str, kinds: Sequence[TimerKind] = (), wait: float = 60.0) -> AuditedRequirement:
    """The verdict on one requirement, with the time-outs of these kinds."""
    examiner.timers.update(watch(examiner, kinds, wait))
    (one,) = examine(examiner, [each for each in requirements() if each.key == key])
    return one


def test_a_time_out_of_just_the_required_seconds_is_no_failure_where_the_probe_before_it_came_late() -> None:
    """Mappings of 60 s were there after 57.4 s and gone after 60.4 s: that contradicts 60 s by nothing."""
    (kind,) = kinds_of(ICMP_QUERY)
    seen = TimerSeen(kind)
    seen.add(57.4, [], there=True)
    seen.add(60.4, [], there=False)
    assert seen.lives(60.0) is None
    assert seen.lives(61.0) is False
    examiner = examiner_of(Behaviour())
    examiner.timers[ICMP_QUERY] = seen
    one = judged(examiner, "RFC5508-REQ-2")
    assert one.verdict == "not seen"
    assert "gone between 57.4 and 60.4 s" in one.measured
    assert "--wait" not in one.measured


def test_a_refresh_that_is_lost_is_no_gateway_that_does_not_refresh() -> None:
    def lost(examiner: Examiner, _flow: Flow) -> bytes:
        return examiner.tag()

    plain, refreshed = kinds_of(UDP_OUT, REFRESHED_OUT)
    examiner = examiner_of(Behaviour(udp_seconds=20.0))
    began = examiner.network.now()
    one = judged(examiner, "RFC4787-REQ-6", [plain, replace(refreshed, refresh=lost)], 7600.0)
    assert one.verdict == "not seen", one.measured
    assert examiner.network.now() - began < 60.0, "nor is it waited for without end"


def test_a_mapping_that_was_looked_at_long_after_its_refresh_may_have_expired_again() -> None:
    """The host stood still between the refresh and the probe for longer than the time-out."""
    plain, refreshed = (TimerSeen(kind) for kind in kinds_of(UDP_OUT, REFRESHED_OUT))
    plain.add(19.0, [], there=True)
    plain.add(20.0, [], there=False)
    refreshed.refreshed.append(Refreshed(14.0, 40.0, there=False, frames=()))
    examiner = examiner_of(Behaviour())
    examiner.timers.update({UDP_OUT: plain, REFRESHED_OUT: refreshed})
    assert judged(examiner, "RFC4787-REQ-6").verdict == "not seen"
    refreshed.refreshed.append(Refreshed(14.0, 28.0, there=False, frames=()))
    one = judged(examiner, "RFC4787-REQ-6")
    assert one.verdict == "fails"
    assert "after 14 s: the mapping was gone after 28 s" in one.measured


def test_a_mapping_that_a_gateway_had_not_yet_purged_was_not_refreshed() -> None:
    """A gateway that looks for old mappings now and then ended one after 20 s, and another one after 38 s."""
    examiner = examiner_of(Behaviour())
    for name in (UDP_OUT, UDP_BOTH):
        (kind,) = kinds_of(name)
        plain = TimerSeen(kind)
        plain.add(20.0, [], there=False)
        plain.add(38.0, [], there=True)
        examiner.timers[name] = plain
    refreshed, error = (TimerSeen(kind) for kind in kinds_of(REFRESHED_OUT, UDP_ERROR))
    examiner.timers.update({UDP_ERROR: error, REFRESHED_OUT: refreshed})
    error.refreshed.append(Refreshed(15.0, 30.0, there=True, frames=()))
    refreshed.refreshed.append(Refreshed(15.0, 30.0, there=True, frames=()))
    for key in ("RFC7857-7.1", "RFC4787-REQ-6"):
        one = judged(examiner, key)
        assert one.verdict == "not seen", one.measured
        assert "gone between 20.0 and 38.0 s, not always at the same time" in one.measured
    for seen in (error, refreshed):
        seen.refreshed.append(Refreshed(18.0, 41.0, there=True, frames=()))
    assert judged(examiner, "RFC7857-7.1").verdict == "fails"
    assert judged(examiner, "RFC4787-REQ-6").verdict == "meets"


def test_an_error_that_is_lost_is_sent_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = examiner_of(Behaviour(icmp_seconds=20.0, errors_refresh_queries=True))
    send, lost = examiner.network.ports.send, set[bytes]()

    def losing(side: Side, octets: bytes) -> None:
        packet = read_packet(octets[14:])
        error = None if packet is None else packet.segment
        if isinstance(error, ErrorMessage) and error.quoted not in lost:
            lost.add(error.quoted)
        else:
            send(side, octets)

    monkeypatch.setattr(examiner.network.ports, "send", losing)
    one = judged(examiner, "RFC5508-REQ-6", kinds_of(ICMP_QUERY, ICMP_ERROR))
    assert lost
    assert one.verdict == "fails", one.measured


def test_an_error_that_ends_a_query_is_seen_also_where_the_time_out_is_longer_than_the_wait() -> None:
    examiner = examiner_of(Behaviour(icmp_seconds=600.0, query_errors_kill=True))
    one = judged(examiner, "RFC5508-REQ-6", kinds_of(ICMP_QUERY, ICMP_ERROR))
    assert one.verdict == "fails", one.measured
    assert "were gone long before their time-out" in one.measured


def test_a_mapping_that_an_error_ended_does_not_show_that_errors_refresh_none() -> None:
    examiner = examiner_of(Behaviour(udp_seconds=20.0, inside_errors_kill=True))
    one = judged(examiner, "RFC7857-7.1", kinds_of(UDP_BOTH, UDP_ERROR))
    assert one.verdict == "not seen", one.measured
    assert "RFC 4787 REQ-12" in one.measured


def test_the_evidence_of_a_refresh_has_its_frame_and_the_probe_that_the_verdict_names() -> None:
    one = judged(examiner_of(Behaviour(udp_seconds=20.0)), "RFC4787-REQ-6", kinds_of(UDP_OUT, REFRESHED_OUT))
    assert one.verdict == "meets", one.measured
    frames = one.evidence.frames
    (sent,) = (frame for frame in frames if frame.endswith("during the idle time of its mapping"))
    assert sent.startswith("the inside sends UDP")
    assert frames[frames.index(sent) + 1].startswith("the outside receives UDP")
    (probe,) = (frame for frame in frames if frame.endswith("s after the frame during its idle time"))
    (said,) = re.findall(r"there after ([0-9]+) s$", one.measured)
    (seconds,) = re.findall(r"after ([0-9.]+) s and", probe)
    assert abs(float(seconds) - int(said)) < 0.6

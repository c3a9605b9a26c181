# SPDX-License-Identifier: Apache-2.0
"""Time-outs of NATs whose time-outs are known are bounded to 5 % in one wait."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.simulated_audits import UDP, SimulatedAudit
from tests.unit.simulated_nat import Behaviour, forgetful

OUT, BOTH, SEVERAL = "UDP, one frame out", "UDP, one frame each way", "UDP, several frames each way"


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
@pytest.mark.parametrize("seconds", [30.0, 120.0, 290.0])
def test_a_time_out_is_bounded_to_five_percent(seconds: float, seed: int) -> None:
    audit = SimulatedAudit(Behaviour(udp_seconds=seconds), seed=seed).watch(*UDP)
    for alive, dead in map(audit.bounds, UDP):
        assert alive < seconds + 0.1
        assert seconds < dead < 1.07 * alive


def test_kinds_with_time_outs_of_their_own_are_told_apart() -> None:
    behaviour = Behaviour(
        udp_seconds=30.0,
        udp_answered_seconds=120.0,
        icmp_seconds=20.0,
        transitory_seconds=60.0,
        established_seconds=200.0,
    )
    audit = SimulatedAudit(behaviour).watch()
    expected = {
        "UDP, one frame out": 30.0, "UDP, one frame each way": 120.0, "UDP, several frames each way": 120.0,
        "UDP to port 53, one frame each way": 120.0, "ICMP query and reply": 20.0, "TCP, SYN": 60.0,
        "TCP, SYN and answer": 60.0, "TCP, both FINs without the last ACK": 60.0, "TCP, closed by both FINs": 60.0,
        "TCP, reset by the inside": 60.0,
        "TCP, established": 200.0,
    }  # fmt: skip
    for name, seconds in expected.items():
        alive, dead = audit.bounds(name)
        assert alive - 0.2 < seconds < dead + 0.2, name


def test_the_wait_ends_when_all_have_expired() -> None:
    assert 10.0 < SimulatedAudit(Behaviour(udp_seconds=10.0)).watch(*UDP).seconds < 20.0


@pytest.fixture(scope="module")
def after_10_seconds() -> SimulatedAudit:
    """The audit of a NAT that forgets everything after 10 s, with its time-outs."""
    return SimulatedAudit(forgetful(10.0)).watch()


def test_refreshed_mappings_make_the_wait_hardly_longer(after_10_seconds: SimulatedAudit) -> None:
    assert after_10_seconds.seconds < 25.0
    after_10_seconds.know(knobs={})
    (one,) = after_10_seconds.judge("RFC4787-REQ-6")
    assert one.verdict == "meets", one.measured
    (seconds,) = re.findall(r"there after ([0-9]+) s$", one.measured)
    assert int(seconds) > 10


def test_frames_that_are_lost_shorten_no_time_out() -> None:
    behaviour = Behaviour(udp_seconds=30.0, loses=lambda frame: frame % 7 == 3)
    alive, dead = SimulatedAudit(behaviour).watch(OUT, wait=60.0).bounds(OUT)
    assert 28.0 < alive < 30.1
    assert 30.0 < dead < 36.0


def test_streams_are_measured_though_the_time_out_is_as_short_as_they_take_to_begin() -> None:
    alive, _ = SimulatedAudit(forgetful(3.0)).watch(*UDP).bounds(SEVERAL)
    assert alive < 3.1


@pytest.mark.parametrize(("name", "first"), [(OUT, 130), (SEVERAL, 720)])
def test_a_host_that_stalls_during_the_wait_leaves_the_other_mappings(name: str, first: int) -> None:
    """Thirty frames in a row are lost: while mappings are probed, or while streams are sent again."""
    behaviour = Behaviour(udp_seconds=30.0, loses=lambda frame: first < frame < first + 30)
    alive, dead = SimulatedAudit(behaviour).watch(name).bounds(name)
    assert alive is None or alive < 30.1
    assert dead > 30.0


def test_the_longest_wait_and_what_needs_a_longer_one_are_told_before_the_wait(golden: Golden) -> None:
    longest, beyond, *waited = SimulatedAudit(forgetful(10.0)).told_watch(wait=270.0)
    golden(longest)
    golden(beyond)
    assert "TCP, SYN" not in beyond
    assert waited[0].startswith("time-outs: opening mappings")
    golden(waited[:3])


def test_the_time_to_expect_is_told_where_the_time_out_was_set(golden: Golden) -> None:
    golden(SimulatedAudit(forgetful(3.0)).told_watch(wait=7600.0, timeout=3)[0])


#: A table that gives up its oldest mapping for a new one where it is full.
SMALL: dict[str, Any] = {"room": 300, "evicts": True}


def audited(behaviour: Behaviour, *keys: str) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return verdicts with what was measured, by requirement, and what was told."""
    audit = SimulatedAudit(behaviour)
    told = audit.told_watch(wait=330.0)
    return {one.key: (one.verdict, one.measured) for one in audit.judge(*keys)}, told


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


def test_no_wait_is_told_where_there_is_none() -> None:
    assert SimulatedAudit().told_watch(wait=0.0) == []
    assert SimulatedAudit().told_watch("RFC4787-REQ-1", "RFC5382-REQ-1", wait=270.0) == []
    assert SimulatedAudit(Behaviour(forwards=False)).told_watch(wait=270.0) == []
    assert SimulatedAudit().told_watch("RFC4787-REQ-5", wait=10.0) != []


#: Names of the kinds of open connections, and of those that must end earlier.
TRACKED = ("TCP, established", "TCP, SYN and answer", "TCP, closed by both FINs")


@pytest.mark.parametrize(
    ("transitory", "established", "verdict"),
    [(300.0, 7440.0, "meets"), (240.0, 300.0, "meets"), (500.0, 400.0, "fails"), (9000.0, 9000.0, "not seen")],
)
def test_half_open_and_closed_connections_are_watched_as_long_as_open_ones(
    transitory: float, established: float, verdict: str
) -> None:
    behaviour = Behaviour(transitory_seconds=transitory, established_seconds=established)
    (one,) = SimulatedAudit(behaviour).watch(*TRACKED, wait=7600.0).judge("RFC7857-2")
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
    found = SimulatedAudit(behaviour).watch(transport="tcp").judge(*verdicts)
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
    after_10_seconds: SimulatedAudit,
) -> None:
    """RFC 4787 REQ-5b and RFC 5382 REQ-5a allow to configure them."""
    after_10_seconds.know(knobs=knobs)
    found = after_10_seconds.judge(*LONGER, every=True)
    assert {one.key for one in found} == {*LONGER}
    for one in found:
        wanted = of_udp if one.transport == "udp" else of_others
        assert one.verdict == wanted, (one.key, one.measured)
        assert ("set to 10 s by " in one.measured) == (wanted == "not seen"), (one.key, one.measured)
        assert option in one.measured or wanted == "fails"


def test_an_error_that_ends_a_query_is_seen_also_where_the_time_out_is_longer_than_the_wait() -> None:
    audit = SimulatedAudit(Behaviour(icmp_seconds=600.0, query_errors_kill=True))
    audit.watch("ICMP query and reply", "ICMP query and reply, then an error", wait=60.0)
    (one,) = audit.judge("RFC5508-REQ-6")
    assert one.verdict == "fails", one.measured
    assert "were gone long before their time-out" in one.measured


def test_a_mapping_that_an_error_ended_does_not_show_that_errors_refresh_none() -> None:
    audit = SimulatedAudit(Behaviour(udp_seconds=20.0, inside_errors_kill=True))
    (one,) = audit.watch(BOTH, "UDP, then an ICMP error from inside", wait=60.0).judge("RFC7857-7.1")
    assert one.verdict == "not seen", one.measured
    assert "RFC 4787 REQ-12" in one.measured


def test_the_evidence_of_a_refresh_has_its_frame_and_the_probe_that_the_verdict_names() -> None:
    audit = SimulatedAudit(Behaviour(udp_seconds=20.0)).watch(OUT, "UDP, refreshed from inside", wait=60.0)
    (one,) = audit.judge("RFC4787-REQ-6")
    assert one.verdict == "meets", one.measured
    frames = one.evidence.frames
    (sent,) = (frame for frame in frames if frame.endswith("during the idle time of its mapping"))
    assert sent.startswith("the inside sends UDP")
    assert frames[frames.index(sent) + 1].startswith("the outside receives UDP")
    (probe,) = (frame for frame in frames if frame.endswith("s after the frame during its idle time"))
    (said,) = re.findall(r"there after ([0-9]+) s$", one.measured)
    (seconds,) = re.findall(r"after ([0-9.]+) s and", probe)
    assert abs(float(seconds) - int(said)) < 0.6

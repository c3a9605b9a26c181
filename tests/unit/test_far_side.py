# SPDX-License-Identifier: Apache-2.0
"""Real servers as far side: their files, where they can stand, and what is told of them; nothing is started."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns.zone
import pytest
from tests.plans import PlanOfTrial
from tests.unit.counted import make_counts, make_trial
from tests.unit.golden import Golden

from natgauge import doubts
from natgauge.errors import UsageError
from natgauge.gateways import far_side
from natgauge.host.cpus import as_if
from natgauge.labs.netns.lab import NetnsLab
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Attempt, Measurement, make_result
from natgauge.records.parameters import Parameters
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Direction, Phase2Plan
from natgauge.words import LimitedBy, Query, Verdict

#: What lab and measurement give a server; a snippet may use nothing else.
VARIABLES = {
    "NG_WORK", "NG_PORT", "NG_CPUS", "NG_GATEWAY_MAC", "NG_FAMILY", "NG_ADDRESSES", "NG_GATEWAY", "NG_ZONE_NAME",
    "NG_ZONE",
}  # fmt: skip
SERVERS = list(far_side.available())
NO_CORE = "are all there are; "


@pytest.mark.parametrize("name", SERVERS)
def test_each_file_names_its_package_and_uses_what_it_is_given(name: str, tmp_path: Path) -> None:
    server = far_side.load(name)
    assert all(need.package for need in server.needs)
    assert not server.verbs.empty
    assert not server.verbs.count
    snippets = [
        *(piece for verb in ("check", "version", "start", "faults", "stop") for piece in server.verbs.pieces(verb)),
        *(process.command for process in server.process),
    ]
    for snippet in snippets:
        assert set(re.findall(r"NG_[A-Z0-9_]+", snippet)) <= VARIABLES
        file = tmp_path / "snippet"
        file.write_text(f"#!/bin/sh -eu\n{snippet}\n")
        # SC2154: variables that the lab sets. SC2086, SC2046: lists of words.
        checked = ["shellcheck", "--exclude=SC2154,SC2086,SC2046", str(file)]
        done = subprocess.run(checked, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_zone_answers_any_name_with_the_testers_own_addresses() -> None:
    zone = dns.zone.from_text(far_side.zone(), origin=f"{far_side.ZONE_NAME}.", relativize=False)
    engine = (Path(__file__).parents[2] / "engine" / "src" / "dns.rs").read_text()
    assert f'ZONE: &str = "{far_side.ZONE_NAME}"' in engine
    parents = re.search(r'PARENTS: \[&str; 2\] = \["(\w+)", "(\w+)"\]', engine)
    assert parents is not None
    for parent in parents.groups():
        name = f"*.{parent}.{far_side.ZONE_NAME}."
        answers = {str(record) for kind in ("A", "AAAA") for record in zone.find_rdataset(name, kind)}
        assert answers == {"198.18.0.53", "2001:2::53"}
    of_dns64 = dns.zone.from_text(far_side.zone(with_aaaa=False), origin=f"{far_side.ZONE_NAME}.", relativize=False)
    names = [f"*.{parent}.{far_side.ZONE_NAME}." for parent in parents.groups()]
    assert [of_dns64.get_rdataset(name, "AAAA") is not None for name in names] == [False, True]
    octets = re.search(r"ADDRESS6: \[u8; 16\] = \[(.*)\]", engine)
    assert octets is not None
    assert bytes(int(one, 0) for one in octets[1].split(", ")) == ip_address(far_side.ADDRESS6).packed


def plan(gateway: str = "nftables-nat44", **choices: object) -> None:
    question = ask("resolution-rate", gateway, {"far_side": "knot", "connection_rate": 1e5, **choices})
    Bench(question.cell).plan(question.metric, question.settings)


WIRE = {
    "lab": "wire", "initiator_port": "lo", "initiator_gateway": "02:00:00:00:00:01", "responder_port": "other",
    "responder_gateway": "02:00:00:00:00:02",
}  # fmt: skip


@pytest.mark.parametrize(
    ("cores", "choices"),
    [
        (4, {"far_side": "unbound"}),
        (4, {"far_side": "not"}),
        (4, {"far_side": "./nothing.toml"}),
        (2, {"placement": "isolated"}),
        (1, {}),
        (2, {"sender_cores": "0", "server_cores": "0"}),
        (2, {"server_cores": "0-1"}),
        (2, {"server_cores": "7"}),
        (4, {"destination_addresses": "198.19.0.2-198.19.0.101"}),
    ],
)
def test_a_server_that_is_none_or_cannot_stand_there_is_refused_in_one_line(
    cores: int, choices: dict[str, Any], golden: Golden
) -> None:
    with as_if(cores), pytest.raises(UsageError) as refusal:
        plan(**choices)
    golden(str(refusal.value))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("gateway", ["linux-ipv4", "map-t", "tayga-nat64"])
def test_it_can_stand_behind_any_device_that_has_a_core_left_for_it(gateway: str) -> None:
    with as_if(3):
        plan(gateway, placement="isolated", cores="1")
    with as_if(2):
        plan(gateway, placement="shared")
        plan(gateway, placement="isolated", server_cores="1", sender_cores="0")


def test_its_cores_are_those_that_are_left_or_named() -> None:
    def cpus(**asked: object) -> str:
        lab = NetnsLab("planned", initiator_family="ipv4", responder_family="ipv4", **asked)  # type: ignore[arg-type]
        assert lab.server is not None
        return lab.server.environment["NG_CPUS"]

    with as_if(4):
        assert cpus(placement="isolated", sender_cpus=[0], device_cpus=[1]) == "2,3"
        assert cpus(placement="isolated", sender_cpus=[0], device_cpus=[1, 2], server_cpus=[2]) == "2"
        assert cpus(placement="isolated") == ""
        assert cpus() == "1,2,3"


ANSWERED = "Knot 3.2 answered and may have been the bottleneck: "
ALONE: dict[str, Any] = {"server_version": "Knot 3.2", "server_alone": 80_000.0, "placement": "isolated"}


@pytest.mark.parametrize("change", [{}, {"server_alone": None}, {"placement": "shared", "server_alone": None}])
def test_a_result_says_that_the_server_may_be_the_limit(change: dict[str, Any], golden: Golden) -> None:
    found = doubts_of("nat44", "server", {}, {**ALONE, **change})
    golden(found["real server"].text)
    assert "server limited" in found
    assert "real server" not in doubts_of("nat44", "server", {"far_side": "tester"}, {})


def doubts_of(
    kind: str, limited_by: LimitedBy, settings: Mapping[str, Any], place: Mapping[str, Any]
) -> dict[str, Note]:
    """The doubts of a result of 60,000 queries/s by their words."""
    one = Measurement(60_000.0, 61_000.0, limited_by, dict.fromkeys(Verdict, 1))
    measured = make_result("resolution-rate", "queries/s", {}, [one], [])
    parameters = Parameters.grouped(settings={"far_side": "knot", **settings}, place=place, device={"kind": kind})
    return {doubt.word: doubt for doubt in doubts.find(measured, parameters)}


def real_server(place: dict[str, Any], settings: dict[str, Any] | None = None, kind: str = "nat44") -> Note | None:
    """The doubt `real server` of such a result."""
    return doubts_of(kind, "device", settings or {}, {**ALONE, **place}).get("real server")


@pytest.mark.parametrize(("placement", "grade"), [("isolated", "answer"), ("external", "information")])
def test_the_kernel_of_an_isolated_device_takes_in_the_servers_queries(placement: str, grade: str) -> None:
    """Far from its own highest rate, too: the work is that of the device's cores."""
    doubt = real_server({"placement": placement, "server_alone": 600_000.0})
    assert doubt is not None
    assert doubt.grade == grade
    assert ("the kernel took in the server's queries on the device's cores" in doubt.text) is (placement == "isolated")


@pytest.mark.parametrize(
    ("settings", "said", "grade"),
    [
        ({}, "2 queries for each of these, which is 80 % of that", "answer"),
        ({"query": "a"}, "this is 40 % of that", "information"),
        ({"aaaa_share": 0.5}, "1.5 queries for each of these, which is 60 % of that", "information"),
        ({"cached_share": 0.75}, "0.5 queries for each of these, which is 20 % of that", "information"),
    ],
)
def test_a_dns64_server_asks_more_or_fewer_queries_than_it_answers(
    settings: dict[str, Any], said: str, grade: str
) -> None:
    doubt = real_server({"placement": "external", "server_alone": 150_000.0}, settings, "dns64")
    assert doubt is not None
    assert said in doubt.text
    assert doubt.grade == grade


@pytest.mark.parametrize(
    ("kind", "limit", "said"),
    [
        ("nat44", 0.25, "up to 80 k queries/s within 0.25 s, "),
        ("dns64", 1.0, "up to 80 k queries/s within 0.25 s, "),
        ("nat44", None, "up to 80 k queries/s, "),
    ],
)
def test_the_time_in_which_a_server_answered_alone_is_named(kind: str, limit: float | None, said: str) -> None:
    """A DNS64's far side has a quarter of the time (RFC 8219 section 9.2)."""
    doubt = real_server({}, {} if limit is None else {"frame_timeout_seconds": limit}, kind)
    assert doubt is not None
    assert said in doubt.text


def test_a_server_that_is_never_asked_is_not_doubted_and_one_on_the_devices_core_takes_turns_with_it() -> None:
    assert real_server({}, {"cached_share": 1.0}, "dns64") is None
    assert real_server({}, {"cached_share": 0.99}, "dns64") is not None
    doubt = real_server({"device_cpus": [1], "server_cpus": "1"})
    assert doubt is not None
    assert "it took turns with the device on core 1, and the kernel took in the server's queries" in doubt.text


@pytest.mark.parametrize(("alone", "grade"), [(132_000.0, "information"), (131_000.0, "answer"), (None, "answer")])
def test_a_dns64_is_measured_by_a_tester_that_is_proven_at_more_than_twice_the_rate(
    alone: float | None, grade: str, golden: Golden
) -> None:
    place = {**ALONE, "server_alone": alone}
    proof = doubts_of("dns64", "device", {}, place)["tester proof"]
    assert proof.grade == grade
    golden(proof.text)
    assert "tester proof" not in doubts_of("dns", "device", {"far_side": "tester"}, place)


@pytest.mark.parametrize(("query", "grade"), [("a", "information"), ("aaaa", "answer")])
def test_a_dns64_asks_its_server_once_for_a_query_of_type_a(query: str, grade: str) -> None:
    proof = doubts_of("dns64", "device", {"query": query}, {**ALONE, "server_alone": 66_000.0})["tester proof"]
    assert proof.grade == grade
    assert ("1.1 times this rate" in proof.text) is (query == "a")


@pytest.mark.parametrize(
    ("query", "asked", "doubtful"),
    [
        ("aaaa", 1_000, False),
        ("aaaa", 1_009, False),
        ("aaaa", 1_100, True),
        ("a", 500, False),
        ("a", 504, False),
        ("a", 1_000, True),
    ],
)
def test_names_that_are_asked_for_again_were_not_in_the_cache(query: Query, asked: int, *, doubtful: bool) -> None:
    """A thousand queries, half of them for new names, of which none has an AAAA record: two for each, of type A one."""
    plan = PlanOfTrial(100, 1e3, Phase2Plan(1e3, 0.0, 1.0), stateless=True, query=query, cached_share=0.5)
    counts = make_counts(1_000, 1_000, 1_000, asked=asked)
    filled = make_counts(100, 100, 100, asked=200)
    trial = replace(make_trial(plan, phase1=filled, phase2={Direction.INITIATOR: counts}), verdict=Verdict.PASS)
    attempts = (Attempt(1e3, short=False, outcome=trial),)
    one = Measurement(1e3, 1.1e3, "device", dict.fromkeys(Verdict, 1), attempts=attempts)
    measured = make_result("resolution-rate", "queries/s", {}, [one], [])
    words = {doubt.word for doubt in doubts.find(measured, Parameters.grouped(settings={}, place={}, device={}))}
    assert ("names not cached" in words) is doubtful

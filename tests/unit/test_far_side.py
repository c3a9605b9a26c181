# SPDX-License-Identifier: Apache-2.0
"""Real servers as far side: where they can stand, and what is told of them; nothing is started."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.simulated_lab import DNS64, measure
from tests.unit.conftest import Ran
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made
from tests.unit.simulated import Gateway

#: Options of the place of a plan; the others are those of its one measurement, or of the traffic.
OF_LAB = {"placement", "cores", "sender_cores", "server_cores"}


def plan(gateway: str = "nftables-nat44", **choices: object) -> str:
    """The path of a plan that measures the resolution rate behind a device, with a real server."""
    measured: dict[str, object] = {"metric": "resolution-rate", "far_side": "knot", "connection_rate": 1e5}
    parts: dict[str, dict[str, object]] = {"lab": {}, "traffic": {}, "[measure]": measured}
    for name, value in choices.items():
        part = "lab" if name in OF_LAB else "traffic" if name == "destination_addresses" else "[measure]"
        parts[part][name] = value
    lines = ['name = "x"', f'gateways = ["{gateway}"]', 'profile = "quick"', "repetitions = 1"]
    for part, keys in parts.items():
        lines += [f"[{part}]", *(f"{name} = {json.dumps(value)}" for name, value in keys.items())]
    Path("plan.toml").write_text("\n".join(lines))
    return "plan.toml"


@pytest.mark.usefixtures("in_an_empty_folder")
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
    cores: int, choices: dict[str, Any], ran: Ran, golden: Golden
) -> None:
    (said,) = ran(["plan", "check", plan(**choices), "--cores", str(cores)], status=2).err.splitlines()
    golden(said)


@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize("gateway", ["linux-ipv4", "map-t", "tayga-nat64"])
def test_it_can_stand_behind_any_device_that_has_a_core_left_for_it(gateway: str, ran: Ran) -> None:
    for cores, choices in (
        (3, {"placement": "isolated", "cores": "1"}),
        (2, {"placement": "shared"}),
        (2, {"placement": "isolated", "server_cores": "1", "sender_cores": "0"}),
    ):
        shown = ran(["plan", "show", plan(gateway, **choices), "--cores", str(cores)]).out
        assert "far_side knot" in shown


ALONE: dict[str, Any] = {"server_version": "Knot 3.2", "server_alone": 80_000.0, "placement": "isolated"}


#: The doubts of a result of 60,000 queries/s by their words: each with its text and its grade.
Doubts: TypeAlias = Callable[..., Mapping[str, Mapping[str, str]]]


@pytest.fixture
def doubts_of(ran: Ran, tmp_path: Path) -> Doubts:
    def of(kind: str, limited_by: str, parameters: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
        made_up = {"far_side": "knot", "connections": None, "kind": kind, **parameters}
        if made_up.get("placement") == "external":
            made_up["lab_kind"] = "ssh"
        result = made([6e4], metric="resolution-rate", unit="queries/s", limited_by=limited_by, parameters=made_up)
        folder = kept(tmp_path / str(len(list(tmp_path.iterdir()))), result)
        found = json.loads(ran(["report", str(folder), "--format", "json"]).out)["doubts"]
        return {doubt["word"]: doubt for doubt in found}

    return of


@pytest.fixture
def real_server(doubts_of: Doubts) -> Callable[..., Mapping[str, str] | None]:
    """The doubt `real server` of a result that the device limited."""

    def of(parameters: Mapping[str, Any], kind: str = "nat44") -> Mapping[str, str] | None:
        return doubts_of(kind, "device", {**ALONE, **parameters}).get("real server")

    return of


@pytest.mark.parametrize("change", [{}, {"server_alone": None}, {"placement": "shared", "server_alone": None}])
def test_a_result_says_that_the_server_may_be_the_limit(
    change: dict[str, Any], doubts_of: Doubts, golden: Golden
) -> None:
    found = doubts_of("nat44", "server", {**ALONE, **change})
    golden(found["real server"]["text"])
    assert "server limited" in found
    assert "real server" not in doubts_of("nat44", "server", {"far_side": "tester"})


RealServer: TypeAlias = Callable[..., Mapping[str, str] | None]


@pytest.mark.parametrize(("placement", "grade"), [("isolated", "answer"), ("external", "information")])
def test_the_kernel_of_an_isolated_device_takes_in_the_servers_queries(
    placement: str, grade: str, real_server: RealServer
) -> None:
    """Far from its own highest rate, too: the work is that of the device's cores."""
    doubt = real_server({"placement": placement, "server_alone": 600_000.0})
    assert doubt is not None
    assert doubt["grade"] == grade
    said = "the kernel took in the server's queries on the device's cores" in doubt["text"]
    assert said is (placement == "isolated")


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
    settings: dict[str, Any], said: str, grade: str, real_server: RealServer
) -> None:
    doubt = real_server({"placement": "external", "server_alone": 150_000.0, **settings}, "dns64")
    assert doubt is not None
    assert said in doubt["text"]
    assert doubt["grade"] == grade


@pytest.mark.parametrize(
    ("kind", "limit", "said"),
    [
        ("nat44", 0.25, "up to 80 k queries/s within 0.25 s, "),
        ("dns64", 1.0, "up to 80 k queries/s within 0.25 s, "),
        ("nat44", None, "up to 80 k queries/s, "),
    ],
)
def test_the_time_in_which_a_server_answered_alone_is_named(
    kind: str, limit: float | None, said: str, real_server: RealServer
) -> None:
    """A DNS64's far side has a quarter of the time (RFC 8219 section 9.2)."""
    doubt = real_server({} if limit is None else {"frame_timeout_seconds": limit}, kind)
    assert doubt is not None
    assert said in doubt["text"]


def test_a_server_that_is_never_asked_is_not_doubted_and_one_on_the_devices_core_takes_turns_with_it(
    real_server: RealServer,
) -> None:
    assert real_server({"cached_share": 1.0}, "dns64") is None
    assert real_server({"cached_share": 0.99}, "dns64") is not None
    doubt = real_server({"device_cpus": [1], "server_cpus": "1"})
    assert doubt is not None
    assert "it took turns with the device on core 1, and the kernel took in the server's queries" in doubt["text"]


@pytest.mark.parametrize(("alone", "grade"), [(132_000.0, "information"), (131_000.0, "answer"), (None, "answer")])
def test_a_dns64_is_measured_by_a_tester_that_is_proven_at_more_than_twice_the_rate(
    alone: float | None, grade: str, doubts_of: Doubts, golden: Golden
) -> None:
    place = {**ALONE, "server_alone": alone}
    proof = doubts_of("dns64", "device", place)["tester proof"]
    assert proof["grade"] == grade
    golden(proof["text"])
    assert "tester proof" not in doubts_of("dns", "device", {"far_side": "tester", **place})


@pytest.mark.parametrize(("query", "grade"), [("a", "information"), ("aaaa", "answer")])
def test_a_dns64_asks_its_server_once_for_a_query_of_type_a(query: str, grade: str, doubts_of: Doubts) -> None:
    proof = doubts_of("dns64", "device", {**ALONE, "query": query, "server_alone": 66_000.0})["tester proof"]
    assert proof["grade"] == grade
    assert ("1.1 times this rate" in proof["text"]) is (query == "a")


@pytest.mark.parametrize(
    ("query", "asked", "doubtful"),
    [
        ("aaaa", 1.0, False),
        ("aaaa", 1.009, False),
        ("aaaa", 1.1, True),
        ("a", 0.5, False),
        ("a", 0.504, False),
        ("a", 1.0, True),
    ],
)
def test_names_that_are_asked_for_again_were_not_in_the_cache(query: str, asked: float, *, doubtful: bool) -> None:
    """Half of the queries are for new names, of which none has an AAAA record: two for each, of type A one."""

    def asks(_number: int, trial: Any) -> Any:
        """The far side got so many queries for each one of the tester."""
        counts = {
            one: change_counts(each, asked=int(asked * each.offered_frames)) for one, each in trial.phase2.items()
        }
        return change_trial(trial, phase1=change_counts(trial.phase1, asked=200), phase2=counts)

    found = measure(
        "resolution-rate", Gateway(forwards=3e5, alters=asks), gateway=DNS64, query=query, cached_share=0.5, error="50%"
    )
    assert ("names not cached" in found.words()) is doubtful

# SPDX-License-Identifier: Apache-2.0
"""The agreement between engine and Python: the schemas are the engine's own, sound, and refuse what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.unit.engine_check import ABSENT, EDGE_DEVICE, EDGES, EXAMPLE, TRIAL, changed, published, refusals
from tests.unit.golden import Golden
from tools import agreement_types

from natgauge.agreement import generated

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted(TRIAL.glob("*.schema.json"))
EXAMPLES = sorted((TRIAL / "examples").glob("*.json"))


def load(path: Path) -> Any:
    return json.loads(path.read_text())


REQUEST_SCHEMA = load(TRIAL / "request-1.schema.json")
VALIDATOR = Draft202012Validator(REQUEST_SCHEMA)


def test_schemas_and_examples_are_there() -> None:
    assert [path.name for path in SCHEMAS] == [
        "comparison-1.schema.json",
        "comparison-result-1.schema.json",
        "request-1.schema.json",
        "result-1.schema.json",
    ]
    assert EXAMPLES


@pytest.mark.parametrize("name", ["request", "result", "comparison", "comparison-result"])
def test_the_committed_schema_is_the_one_of_the_engines_types(name: str) -> None:
    committed = (TRIAL / f"{name}-1.schema.json").read_text()
    assert committed == published(name), "run `make schemas`"


def test_pythons_types_are_those_of_the_committed_schemas() -> None:
    assert (ROOT / agreement_types.OUTPUT).read_text() == agreement_types.module(TRIAL), "run `make build`"


def test_two_types_of_one_name_in_two_schemas_are_refused(tmp_path: Path, golden: Golden) -> None:
    for path in SCHEMAS:
        (tmp_path / path.name).write_text(path.read_text().replace('"Frame"', '"Clock"').replace("s/Frame", "s/Clock"))
    with golden.raises(ValueError):
        agreement_types.module(tmp_path)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schema_is_a_valid_schema(path: Path) -> None:
    Draft202012Validator.check_schema(load(path))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schema_closes_every_object(path: Path) -> None:
    """An unknown field must be refused, so a misspelt one is never silently ignored."""

    def open_objects(node: Any, where: str) -> list[str]:
        if isinstance(node, list):
            return [found for index, item in enumerate(node) for found in open_objects(item, f"{where}[{index}]")]
        if not isinstance(node, dict):
            return []
        here = [where] if "properties" in node and node.get("additionalProperties") is not False else []
        # Rules between fields say more of an object that is closed already.
        inner = {key: value for key, value in node.items() if key != "allOf"}
        return here + [found for key, value in inner.items() for found in open_objects(value, f"{where}.{key}")]

    assert open_objects(load(path), path.name) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_keeps_the_request_schema(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(load(path))] == []
    assert refusals([load(path)]) == [None]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_python_writes_the_example_as_the_schema_wants_it(path: Path) -> None:
    """The typed request reads an example and writes something the schema still accepts, with nothing changed."""
    read = generated.TrialRequest.model_validate(load(path))
    assert [error.message for error in VALIDATOR.iter_errors(json.loads(read.to_json()))] == []
    assert read.model_dump(exclude_unset=True) == load(path)


#: A request without phase 1 that nothing is wrong with.
STATELESS = changed(EXAMPLE, ("phase1", ABSENT), ("stateless", True))
RESOLVED = changed(
    EXAMPLE,
    ("frame", {"size": 114, "side": "initiator", "query": "aaaa", "resolved": True}),
    ("translation", {"source": "unchanged"}),
    ("stateless", True),
    ("phase1", ABSENT),
    ("record_delays", False),
    ("phase2.responder", ABSENT),
)
SAMPLES = {"from_ms": 0, "frames": 5}
HOSTS = {"first": "198.18.0.2", "last": "198.18.0.2"}
STEP = {"share": 0.5, "seconds": 1}
NATIVE = {"first": "2001:2::2", "last": "2001:2::5"}
ASKING = {"size": 114, "side": "initiator", "query": "aaaa"}
BACKGROUND = {"n": 10, "m": 9, "initiator_addresses": NATIVE, "responder_addresses": NATIVE}
ONCE = {"rate": 1000.0, "frames": EXAMPLE["connections"], "reading_order": "once"}
STREAM = {"rate": 1000.0, "frames": 1000}
TIMED = changed(EXAMPLE, ("delay_samples", SAMPLES))


def judge(request: Any) -> tuple[bool, str | None]:
    """Whether the schema accepts, and what the engine says."""
    return VALIDATOR.is_valid(request), refusals([request])[0]


TRANSACTIONS = changed(
    EXAMPLE, ("frame.size", 88), ("frame.transport", "tcp"), ("frame.closing", {"by": "fin", "request_octets": 0})
)
CLOSES = changed(TRANSACTIONS, ("frame.closing", {"by": "rst"}), ("phase2.responder", ABSENT))
HALF_OPEN = changed(CLOSES, ("frame.closing", ABSENT), ("frame.half_open", True), ("phase2", {"responder": ONCE}))
ECHOES = changed(EXAMPLE, ("frame.transport", "icmp"), ("initiator.destination_ports", {"first": 1, "last": 1}))

CHURN = changed(
    EXAMPLE,
    ("record_delays", ABSENT),
    ("phase2", {"responder": {"rate": 1e3, "frames": 1000}, "churn": {"new_per_second": 50.0, "leave": "silent"}}),
)
FLOOD = changed(
    CHURN, ("frame.size", 88), ("frame.transport", "tcp"), ("phase2.churn", {"new_per_second": 5.0, "leave": "fin"})
)
#: By what the engine says: a request that breaks one rule between fields, which the schema knows as well.
BOTH_KNOW = {
    "phase1: missing: only a stateless trial has none": changed(EXAMPLE, ("phase1", ABSENT)),
    "phase1: {}: a stateless trial has none but with frame.cached_share: leave it out": changed(
        EXAMPLE, ("stateless", True)
    ),
    "phase2: missing: a stateless trial needs it": changed(STATELESS, ("phase2", ABSENT)),
    "phase2: {}: at least one side must send; leave phase2 out otherwise": changed(EXAMPLE, ("phase2", {})),
    "initiator.gateway: {}: needs mac or address": changed(EXAMPLE, ("initiator.gateway", {})),
    "responder.gateway: {}: needs mac or address": changed(EXAMPLE, ("responder.gateway", {})),
    "responder.destination_addresses: {}: only for stateless trials: otherwise they are learned": changed(
        EXAMPLE, ("responder.destination_addresses", HOSTS)
    ),
    "responder.destination_addresses: missing: needed in a stateless trial whose families differ": changed(
        STATELESS, ("initiator.family", "ipv6")
    ),
    "responder.destination_addresses: {}: follow from customer_edges: leave them out": changed(
        EDGES, ("responder.destination_addresses", HOSTS)
    ),
    "responder.customer_edges: {}: the Initiator emulates customer edges, too: leave out one of them": changed(
        EDGES, ("responder.customer_edges", EDGE_DEVICE["responder"]["customer_edges"])
    ),
    "phase2.responder.reading_order: increasing: a stateless trial has no state table to read: leave it out": changed(
        STATELESS, ("phase2.responder.reading_order", "increasing")
    ),
    "phase2.periods: above 1: several periods have counts only: leave out the other records": changed(
        EXAMPLE, ("phase2.periods", 2), ("record_loss_times", True)
    ),
    "phase2.step: {}: reading order once leaves nothing to send after a step": changed(
        EXAMPLE, ("phase2.responder", ONCE), ("phase2.step", STEP)
    ),
    "record_variation: true: differences of delays need record_delays": changed(
        EXAMPLE, ("record_delays", False), ("record_variation", True)
    ),
    "delay_samples: {}: needs record_delays, and no record_variation: samples are not consecutive": changed(
        TIMED, ("record_variation", True)
    ),
    "delay_samples: {}: are frames of phase 2: there is none": changed(TIMED, ("phase2", ABSENT)),
    "background: {}: is part of phase 2: there is none": changed(
        EXAMPLE, ("background", BACKGROUND), ("phase2", ABSENT)
    ),
    "background: {}: reading order once leaves no frames for it": changed(
        EXAMPLE, ("background", BACKGROUND), ("phase2.responder", ONCE)
    ),
    "phase2.responder: {}: with frame.query it only responds: leave it out": changed(EXAMPLE, ("frame", ASKING)),
    "frame.handed_on: true: only queries can be: name frame.query": changed(EXAMPLE, ("frame.handed_on", True)),
    "frame.resolved: true: only queries of a stateless trial can be, and none that are handed on": changed(
        EXAMPLE, ("frame", {**ASKING, "resolved": True}), ("phase2.responder", ABSENT)
    ),
    "frame.aaaa_share: given: needs queries of type aaaa that the device answers: name frame.resolved": changed(
        RESOLVED, ("frame.query", "a"), ("frame.aaaa_share", 0.5)
    ),
    "frame.cached_share: given: needs queries that the device answers, phase 1, and no record_delays: "
    "name frame.resolved and phase1": changed(RESOLVED, ("frame.cached_share", 0.5), ("phase1", ABSENT)),
    "frame.answer: {}: only queries have one: name frame.query": changed(EXAMPLE, ("frame.answer", "198.18.0.53")),
    "frame.query: aaaa: is of transport udp: leave it out": changed(
        EXAMPLE, ("frame", {**ASKING, "transport": "icmp"}), ("phase2.responder", ABSENT)
    ),
    "frame.half_open: true: is of transport tcp, with a phase 1 and without frame.closing: leave it out": changed(
        HALF_OPEN, ("frame.closing", {"by": "fin"}), ("phase2", ABSENT)
    ),
    "phase2: {}: with frame.half_open the Responder alone sends, in reading order once and in one period": changed(
        HALF_OPEN, ("phase2.responder.reading_order", "increasing")
    ),
    "frame.closing: {}: is of transport tcp: leave it out": changed(
        CLOSES, ("frame.transport", "udp"), ("phase2", ABSENT)
    ),
    "frame.closing: {}: closes connections of phase 1, and a stateless trial has none: leave it out": changed(
        CLOSES, ("stateless", True), ("phase1", ABSENT)
    ),
    "phase2: {}: with frame.closing.request_octets connections are closed in phase 1: leave it out": changed(
        TRANSACTIONS, ("phase2.responder", ABSENT)
    ),
    "phase2.responder: {}: with frame.closing it only reacts: leave it out": changed(
        CLOSES, ("phase2.responder", EXAMPLE["phase2"]["responder"])
    ),
    "order: with-replacement: with transport tcp each four tuple is opened once: use another": changed(
        EXAMPLE, ("frame.size", 88), ("frame.transport", "tcp"), ("order", "with-replacement")
    ),
    "background: {}: is of transport udp: leave it out": changed(ECHOES, ("background", BACKGROUND)),
    "background: {}: is not possible with frame.query: leave it out": changed(
        EXAMPLE, ("frame", ASKING), ("phase2.responder", ABSENT), ("background", BACKGROUND)
    ),
    "phase2.modifiers: {}: are of one period of pseudorandom frames, without step, churn, frame.query and "
    "delay_samples": changed(EXAMPLE, ("phase2.modifiers", {}), ("phase2.step", STEP)),
    "phase2.modifiers: {}: only groups begin with transport icmp and tcp: leave broadcast_every and query_ms "
    "out": changed(ECHOES, ("phase2", {"initiator": STREAM, "modifiers": {"query_ms": 1000}})),
    "frame.responder_vlan: given: is not possible where the frames go to the network stack, handed_on and resolved: "
    "leave it out": changed(
        EXAMPLE, ("frame", {**ASKING, "handed_on": True, "responder_vlan": "7"}), ("phase2.responder", ABSENT)
    ),
    "connections_file: a path: lists learned connections: neither of a stateless trial nor of customer edges; leave it "
    "out": changed(STATELESS, ("connections_file", "/dev/null")),
    "phase2.churn.leave: fin: must be fin or reset with transport tcp, and silent with others": changed(
        CHURN, ("phase2.churn.leave", "fin")
    ),
    "phase2.churn: {}: goes with reading order pseudorandom, in one period without a step: leave it out": changed(
        CHURN, ("phase2.responder.reading_order", "increasing")
    ),
    "phase2.churn: {}: floods by hosts without customer edges, of transport udp or icmp: leave flood_per_second "
    "out": changed(FLOOD, ("phase2.churn.flood_per_second", 5.0)),
    "phase2.churn: {}: is of plain frames over connections of phase 1, one for each four tuple: leave it out": changed(
        CHURN, ("order", "with-replacement")
    ),
}


@pytest.mark.parametrize(("says", "request_"), BOTH_KNOW.items(), ids=list(BOTH_KNOW))
def test_a_rule_between_fields_is_kept_by_schema_and_engine_alike(says: str, request_: Any) -> None:
    assert judge(request_) == (False, says)


def test_each_rule_between_fields_has_been_tried() -> None:
    tried = {": ".join(says.split(": ", 2)[::2]) for says in BOTH_KNOW}
    assert {rule["$comment"] for rule in REQUEST_SCHEMA["allOf"]} == tried


def ranges(first: str, last: str, step: int = 1) -> Any:
    return {"first": first, "last": last, "step": step}


def background(first: str, last: str) -> Any:
    return changed(EXAMPLE, ("background", {**BACKGROUND, "initiator_addresses": ranges(first, last)}))


WIDE = changed(
    EXAMPLE,
    ("initiator.source_addresses", ranges("10.0.0.2", "10.255.255.254")),
    ("initiator.destination_ports", {"first": 1, "last": 49151}),
)
NAT64 = changed(
    EXAMPLE,
    ("initiator.family", "ipv6"),
    ("initiator.gateway", {"mac": "02:00:00:00:01:01"}),
    ("initiator.source_addresses", ranges("2001:2::2", "2001:2::2")),
    ("initiator.destination_addresses", ranges("2001:2:0:1::2", "2001:2:0:1::2")),
)
LONG = changed(EXAMPLE, ("phase2", {"initiator": {"rate": 2e8, "frames": 2**32}}))


def edges(field: str, value: object) -> Any:
    return changed(EDGES, (f"initiator.customer_edges.{field}", value))


#: By the rule's text in the schema: a request that the schema accepts and the engine refuses by it.
ENGINE_ALONE = {
    "must be an IPv4 or IPv6 address": changed(EXAMPLE, ("initiator.source_addresses.first", "10.0.0")),
    "must be of the side's family": changed(EXAMPLE, ("translation.pool", ranges("2001:2::2", "2001:2::2"))),
    "must be a unicast address": changed(EXAMPLE, ("responder.addresses", ranges("224.0.0.1", "224.0.0.1"))),
    "both ends must share the upper 64 bits": background("2001:2::2", "2001:2:0:1::2"),
    "both ends must embed an IPv4 address behind the same IPv6 prefix (RFC 6052 section 2.2)": changed(
        EXAMPLE,
        ("background", {**BACKGROUND, "initiator_addresses": {**ranges("2001:2::2", "2001:2::2"), "embedded": 64}}),
    ),
    "first must not be above last": changed(EXAMPLE, ("initiator.source_ports", {"first": 9, "last": 1})),
    "must lead from first to last": changed(EXAMPLE, ("translation.pool", ranges("198.19.0.1", "198.19.0.4", 2))),
    "must hold at most 2^32 addresses": background("2001:2::", "2001:2::1:0:0"),
    "must be as many as": changed(EXAMPLE, ("responder.addresses", ranges("198.19.0.2", "198.19.0.3"))),
    "must be at most 15 octets long": changed(EXAMPLE, ("initiator.interface", "\u00df" * 8)),
    "must differ from initiator.interface": changed(EXAMPLE, ("responder.interface", "ng0i")),
    "lies inside the tester's own range": changed(EXAMPLE, ("initiator.gateway.address", "10.0.0.2")),
    "the ranges hold too many four tuples": changed(WIDE, ("order", "with-replacement")),
    "the ranges hold too few four tuples": changed(EXAMPLE, ("connections", 129_025)),
    "is not possible on both sides (IPv6 = IPv4 + 20, IPv4 in IPv6 = IPv4 + 40, 4 for each VLAN tag)": changed(
        NAT64, ("frame.size", 83)
    ),
    "must be a VLAN from 1 to 4094, such as 100, behind a service tag 9.100, or from 100 on 100+": changed(
        EXAMPLE, ("frame.initiator_vlan", "4095")
    ),
    "each source address needs a VLAN of its own, up to 4094, and the next address the next VLAN": changed(
        EXAMPLE,
        ("frame.initiator_vlan", "4094+"),
        ("frame.size", 68),
        ("initiator.source_addresses", {"first": "10.0.0.2", "last": "10.0.0.3"}),
    ),
    "VLANs of their own have the Initiator's source addresses, without customer_edges and background: name one": (
        changed(EXAMPLE, ("frame.responder_vlan", "7+"))
    ),
    "must be at most 8 sizes with whole weights, 64:7,594:4,1518:1, each once, weights at most 1000 in all": changed(
        EXAMPLE, ("frame.frame_sizes", "64:7,64:4")
    ),
    "needs frames of a chosen size: not queries, half-open or closed connections": changed(
        CLOSES, ("frame.frame_sizes", "88:7,594:4")
    ),
    "takes longer than can be paced": changed(EXAMPLE, ("phase1.rate", 1.0)),
    "leads to a rate or a number of frames out of bounds after the step": changed(
        EXAMPLE, ("phase2.initiator.rate", 2e8), ("phase2.step", {"share": 1.5, "seconds": 1})
    ),
    "reading order once sends one frame a connection": changed(EXAMPLE, ("phase2.responder", {**ONCE, "frames": 5})),
    "with frame.closing each connection is closed at most once": changed(CLOSES, ("connections", 5)),
    "too few frames of the stream are due from then on": changed(TIMED, ("delay_samples.from_ms", 17_000_000)),
    "must be less than n: m of n frames are in the foreground": changed(
        EXAMPLE, ("background", {**BACKGROUND, "m": 10})
    ),
    "must be a basic mapping rule (RFC 7597 section 5)": edges("ipv6_prefix_length", 64),
    "the mapping rule has too few port sets": edges("first_psid", 64),
    "a port set has fewer ports": changed(EDGES, ("initiator.source_ports.last", 1025)),
    "customer edges have one router: must be one address": changed(
        EDGES, ("initiator.source_addresses.last", "2001:2::3")
    ),
    "is the sequence number of transport icmp, which no device has in its table: must be one": changed(
        ECHOES, ("initiator.destination_ports.last", 2)
    ),
    "customer edges send ipv6, and the Responder speaks ipv4": changed(
        EXAMPLE, ("initiator.customer_edges", EDGES["initiator"]["customer_edges"])
    ),
    "customer edges under test take ipv4; the Responder speaks ipv6, or ipv4 behind their relay: without a relay, and "
    "translated": changed(EXAMPLE, ("responder.customer_edges", EDGE_DEVICE["responder"]["customer_edges"])),
    "customer edges choose ports, which a stateless trial does not learn": changed(
        EDGE_DEVICE, ("stateless", True), ("phase1", ABSENT)
    ),
    "must be of the type that frame.query asks for": changed(
        EXAMPLE, ("frame", {**ASKING, "answer": "198.18.0.53"}), ("phase2.responder", ABSENT)
    ),
    "must be at most as many as there are connections": changed(
        EXAMPLE,
        ("phase2", {"initiator": STREAM, "modifiers": {"groups": {"number": 9, "seconds": 5}}}),
        ("connections", 8),
    ),
    "needs initiator.gateway.address, which is asked": changed(
        EXAMPLE,
        ("phase2", {"initiator": STREAM, "modifiers": {"query_ms": 1000}}),
        ("initiator.gateway", {"mac": "02:00:00:00:01:01"}),
    ),
    "must be at most 16777216 with connections_file": changed(
        WIDE, ("connections", (1 << 24) + 1), ("connections_file", "/dev/null")
    ),
    "each connection needs a four tuple of its own: phase 2 opens as many as": changed(
        CHURN, ("phase2.churn.new_per_second", 5e4)
    ),
    "opens no connection while the streams send": changed(CHURN, ("phase2.churn.new_per_second", 0.1)),
    "must open one connection or more, each with a four tuple of the host after the last source address:": changed(
        CHURN, ("phase2.churn.flood_per_second", 0.1)
    ),
    "connections are not open for longer than two guards": changed(
        CHURN, ("connections", 1000), ("phase2.churn.guard_ms", 60_000)
    ),
    "too many frames in one stream to be distinguished": changed(LONG, ("record_loss_times", True)),
}


@pytest.mark.parametrize(("rule", "request_"), ENGINE_ALONE.items(), ids=list(ENGINE_ALONE))
def test_what_the_schema_cannot_say_the_engine_refuses_in_the_words_that_the_schema_names(
    rule: str, request_: Any
) -> None:
    valid, refusal = judge(request_)
    assert valid
    assert refusal is not None
    assert rule in refusal


@pytest.mark.parametrize("request_", [WIDE, LONG, changed(NAT64, ("frame.size", 84))])
def test_what_these_were_made_of_is_right(request_: Any) -> None:
    assert judge(request_) == (True, None)


def test_each_rule_that_the_schema_cannot_say_has_been_tried() -> None:
    assert set(REQUEST_SCHEMA["x-beyond-schema"]) == set(ENGINE_ALONE)

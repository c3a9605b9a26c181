# SPDX-License-Identifier: Apache-2.0
"""The agreement between engine and Python: the schemas are the engine's own, sound, and refuse what it refuses.

Schema and engine agree on every request, right or wrong, but for the rules that the schema names as beyond it.
Requests are right ones with each single change of any field, and then with up to four changes at once.
hypothesis-jsonschema is not used: it knows drafts up to 7 only, and needs a part of jsonschema that is deprecated.
`NATGAUGE_AGREEMENT_REQUESTS` says how many requests `make soak` tries; `make test` tries a quarter of them.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.unit.engine_check import (
    ABSENT,
    EDGE_DEVICE,
    EDGES,
    EDGES_AND_RELAY,
    EXAMPLE,
    TRIAL,
    TUNNELS,
    Judge,
    changed,
    check,
    published,
    refusals,
)
from tests.unit.golden import Golden
from tools import agreement_types

ROOT = Path(__file__).parents[2]
NAMES = ("comparison", "comparison-result", "request", "result")
SCHEMAS = {name: json.loads((TRIAL / f"{name}-1.schema.json").read_text()) for name in NAMES}
SCHEMA = SCHEMAS["request"]
VALIDATOR = Draft202012Validator(SCHEMA)
BEYOND = SCHEMA["x-beyond-schema"]
REQUESTS = int(os.environ.get("NATGAUGE_AGREEMENT_REQUESTS", "1000"))
PHASES = (Phase.generate, Phase.shrink)
KINDS = ("accepted", "engine alone", "refused")

HOST = {"first": "198.18.0.2", "last": "198.18.0.2"}
NATIVE = {"first": "2001:2::2", "last": "2001:2::8", "step": 2}
EMBEDDED = {"first": "2001:db8:1c0:2:21::", "last": "2001:db8:1c0:3:22::", "embedded": 40}
BACKGROUND = {"n": 10, "m": 9, "initiator_addresses": NATIVE, "responder_addresses": EMBEDDED}
STREAM = {"rate": 1000.0, "frames": 1000}
ONCE = {"rate": 1000.0, "frames": EXAMPLE["connections"], "reading_order": "once"}
STEP = {"share": 0.5, "seconds": 1}
TCP = {"size": 88, "side": "initiator", "transport": "tcp"}
ASKING = {"size": 114, "side": "initiator", "query": "aaaa"}
UNTIMED = changed(EXAMPLE, ("record_delays", ABSENT))
STATELESS = changed(EXAMPLE, ("phase1", ABSENT), ("stateless", True))
TIMED = changed(EXAMPLE, ("delay_samples", {"from_ms": 0, "frames": 5}))
RESOLVED = changed(
    STATELESS,
    ("record_delays", ABSENT),
    ("frame", {**ASKING, "resolved": True}),
    ("translation", {"source": "unchanged"}),
    ("phase2.responder", ABSENT),
)
TRANSACTIONS = changed(UNTIMED, ("frame", {**TCP, "closing": {"by": "fin", "request_octets": 100}}), ("phase2", ABSENT))
CLOSES = changed(EXAMPLE, ("frame", {**TCP, "closing": {"by": "rst"}}), ("phase2", {"initiator": STREAM}))
HALF_OPEN = changed(UNTIMED, ("frame", {**TCP, "half_open": True}), ("phase2", {"responder": ONCE}))
ECHOES = changed(
    EXAMPLE,
    ("frame.transport", "icmp"),
    ("initiator.destination_ports", {"first": 1, "last": 1}),
    ("connections", 1000),
)
CHURN = changed(
    UNTIMED, ("phase2", {"responder": STREAM, "churn": {"new_per_second": 50.0, "leave": "silent", "guard_ms": 50}})
)
FLOOD = changed(CHURN, ("phase2.churn.flood_per_second", 500.0))
TCP_CHURN = changed(CHURN, ("frame", TCP), ("phase2.churn.leave", "fin"))
GROUPS = {"broadcast_every": 100, "query_ms": 1000, "groups": {"number": 4, "seconds": 0.2}}
MODIFIED = changed(EXAMPLE, ("phase2", {"initiator": STREAM, "modifiers": GROUPS}))
NAT64 = changed(
    STATELESS,
    ("record_delays", ABSENT),
    ("frame.size", 84),
    ("initiator.family", "ipv6"),
    ("initiator.gateway", {"address": "2001:2::1"}),
    ("initiator.source_addresses", NATIVE),
    ("initiator.destination_addresses", {"first": "2001:2:0:1::2", "last": "2001:2:0:1::2"}),
    ("responder.destination_addresses", {"first": "198.18.0.2", "last": "198.18.0.5", "step": 1}),
)
WIDE = changed(
    EXAMPLE,
    ("initiator.source_addresses.last", "10.255.255.254"),
    ("initiator.destination_ports", {"first": 1, "last": 49151}),
)
LONG = changed(EXAMPLE, ("phase2", {"initiator": {"rate": 2e8, "frames": 2**32}}))
#: Right requests that have every field of the schema among them.
RIGHT = [
    EXAMPLE,
    changed(
        EXAMPLE,
        ("phase1.catch_up_percent", 150),
        ("phase2", {"initiator": STREAM, "responder": {**STREAM, "reading_order": "increasing"}, "step": STEP}),
        ("phase2.grace_ms", 0),
        ("phase2.catch_up_percent", 125),
        ("background", BACKGROUND),
        *((f"record_{name}", True) for name in ("variation", "loss_times", "receiver_time")),
        ("frame_timeout_ms", 10.0),
        ("frame.size", 72),
        *(("frame.frame_sizes", "72:7,594:4"), ("frame.down_frame_sizes", "1518:1")),
        *(("frame.initiator_vlan", "9.100"), ("frame.responder_vlan", "7")),
        ("senders.stall_ns", 500_000),
        ("limits", {"seconds": 60}),
        ("connections_file", "/run/connections"),
        ("stateless", False),
    ),
    changed(
        STATELESS,
        ("phase2", {"responder": STREAM}),
        ("delay_samples", {"from_ms": 0, "frames": 10}),
        ("watch_stall_ns", 2_000_000),
        ("accept_zero_checksum", True),
        ("responder.mac", "02:00:00:00:00:0f"),
        ("responder.destination_addresses", HOST),
        ("initiator.mac", "02:00:00:00:00:0E"),
    ),
    changed(EXAMPLE, ("phase2", {"responder": ONCE})),
    changed(UNTIMED, ("phase2", {"initiator": STREAM, "periods": 3})),
    *(CHURN, FLOOD, TCP_CHURN, MODIFIED),
    changed(EXAMPLE, ("frame", {**ASKING, "side": "responder", "transport": "udp"}), ("phase2", {"initiator": STREAM})),
    changed(RESOLVED, ("frame.answer", "2001:2::53"), ("responder.destination_addresses", HOST)),
    changed(RESOLVED, ("phase1", EXAMPLE["phase1"]), ("frame.aaaa_share", 0.5), ("frame.cached_share", 1.0)),
    *(TRANSACTIONS, HALF_OPEN, NAT64),
    *(EDGES, TUNNELS, EDGE_DEVICE, EDGES_AND_RELAY),
]
#: A right request each with the changes by which it breaks one rule, between fields or beyond the schema.
BROKEN: list[tuple[Any, *tuple[tuple[str, object], ...]]] = [
    (EXAMPLE, ("phase1", ABSENT)),
    (EXAMPLE, ("stateless", True)),
    (STATELESS, ("phase2", ABSENT)),
    (EXAMPLE, ("phase2", {})),
    (EXAMPLE, ("initiator.gateway", {})),
    (EXAMPLE, ("responder.gateway", {})),
    (EXAMPLE, ("responder.destination_addresses", HOST)),
    (STATELESS, ("initiator.family", "ipv6")),
    (EDGES, ("responder.destination_addresses", HOST)),
    (EDGES, ("responder.customer_edges", EDGE_DEVICE["responder"]["customer_edges"])),
    (STATELESS, ("phase2.responder.reading_order", "increasing")),
    (EXAMPLE, ("phase2.periods", 2), ("record_loss_times", True)),
    (EXAMPLE, ("phase2.responder", ONCE), ("phase2.step", STEP)),
    (EXAMPLE, ("record_delays", False), ("record_variation", True)),
    (TIMED, ("record_variation", True)),
    (TIMED, ("phase2", ABSENT)),
    (EXAMPLE, ("background", BACKGROUND), ("phase2", ABSENT)),
    (EXAMPLE, ("background", BACKGROUND), ("phase2.responder", ONCE)),
    (EXAMPLE, ("frame", ASKING)),
    (EXAMPLE, ("frame.handed_on", True)),
    (EXAMPLE, ("frame", {**ASKING, "resolved": True}), ("phase2.responder", ABSENT)),
    (RESOLVED, ("frame.query", "a"), ("frame.aaaa_share", 0.5)),
    (RESOLVED, ("frame.cached_share", 0.5)),
    (EXAMPLE, ("frame.answer", "198.18.0.53")),
    (EXAMPLE, ("frame", {**ASKING, "transport": "icmp"}), ("phase2.responder", ABSENT)),
    (HALF_OPEN, ("frame.closing", {"by": "fin"}), ("phase2", ABSENT)),
    (HALF_OPEN, ("phase2.responder.reading_order", "increasing")),
    (CLOSES, ("frame.transport", "udp"), ("phase2", ABSENT)),
    (CLOSES, ("stateless", True), ("phase1", ABSENT)),
    (TRANSACTIONS, ("phase2", {"initiator": STREAM})),
    (CLOSES, ("phase2.responder", EXAMPLE["phase2"]["responder"])),
    (EXAMPLE, ("frame", TCP), ("order", "with-replacement")),
    (ECHOES, ("background", BACKGROUND)),
    (EXAMPLE, ("frame", ASKING), ("phase2.responder", ABSENT), ("background", BACKGROUND)),
    (EXAMPLE, ("phase2.modifiers", {}), ("phase2.step", STEP)),
    (ECHOES, ("phase2", {"initiator": STREAM, "modifiers": {"query_ms": 1000}})),
    (EXAMPLE, ("frame", {**ASKING, "handed_on": True, "responder_vlan": "7"}), ("phase2.responder", ABSENT)),
    (STATELESS, ("connections_file", "/dev/null")),
    (CHURN, ("phase2.churn.leave", "fin")),
    (CHURN, ("phase2.responder.reading_order", "increasing")),
    (TCP_CHURN, ("phase2.churn.flood_per_second", 5.0)),
    (CHURN, ("order", "with-replacement")),
    # These the schema accepts, and the engine refuses.
    (EXAMPLE, ("initiator.source_addresses.first", "10.0.0")),
    (EXAMPLE, ("translation.pool", NATIVE)),
    (EXAMPLE, ("responder.addresses", {"first": "224.0.0.1", "last": "224.0.0.1"})),
    (EXAMPLE, ("background", BACKGROUND), ("background.initiator_addresses.last", "2001:2:0:1::2")),
    (EXAMPLE, ("background", BACKGROUND), ("background.initiator_addresses.embedded", 64)),
    (EXAMPLE, ("initiator.source_ports", {"first": 9, "last": 1})),
    (EXAMPLE, ("translation.pool", {"first": "198.19.0.1", "last": "198.19.0.4", "step": 2})),
    (EXAMPLE, ("background", {**BACKGROUND, "initiator_addresses": {"first": "2001:2::", "last": "2001:2::1:0:0"}})),
    (EXAMPLE, ("responder.addresses", {"first": "198.19.0.2", "last": "198.19.0.3"})),
    (EXAMPLE, ("initiator.interface", "\u00df" * 8)),
    (EXAMPLE, ("responder.interface", "ng0i")),
    (EXAMPLE, ("initiator.gateway.address", "10.0.0.2")),
    (WIDE, ("order", "with-replacement")),
    (EXAMPLE, ("connections", 129_025)),
    (NAT64, ("frame.size", 83)),
    (EXAMPLE, ("frame.initiator_vlan", "4095")),
    (EXAMPLE, ("frame.size", 68), ("frame.initiator_vlan", "4094+"), ("initiator.source_addresses.last", "10.0.0.3")),
    (EXAMPLE, ("frame.responder_vlan", "7+")),
    (EXAMPLE, ("frame.frame_sizes", "64:7,64:4")),
    (CLOSES, ("frame.frame_sizes", "88:7,594:4")),
    (EXAMPLE, ("phase1.rate", 1.0)),
    (EXAMPLE, ("phase2.initiator.rate", 2e8), ("phase2.step", {**STEP, "share": 1.5})),
    (EXAMPLE, ("phase2.responder", {**ONCE, "frames": 5})),
    (CLOSES, ("connections", 5)),
    (TIMED, ("delay_samples.from_ms", 17_000_000)),
    (EXAMPLE, ("background", {**BACKGROUND, "m": 10})),
    (EDGES, ("initiator.customer_edges.ipv6_prefix_length", 64)),
    (EDGES, ("initiator.customer_edges.first_psid", 64)),
    (EDGES, ("initiator.source_ports.last", 1025)),
    (EDGES, ("initiator.source_addresses.last", "2001:2::3")),
    (ECHOES, ("initiator.destination_ports.last", 2)),
    (EXAMPLE, ("initiator.customer_edges", EDGES["initiator"]["customer_edges"])),
    (EXAMPLE, ("responder.customer_edges", EDGE_DEVICE["responder"]["customer_edges"])),
    (EDGE_DEVICE, ("stateless", True), ("phase1", ABSENT)),
    (EXAMPLE, ("frame", {**ASKING, "answer": "198.18.0.53"}), ("phase2.responder", ABSENT)),
    (MODIFIED, ("phase2.modifiers.groups.number", 9), ("connections", 8)),
    (MODIFIED, ("initiator.gateway", {"mac": "02:00:00:00:01:01"})),
    (WIDE, ("connections", (1 << 24) + 1), ("connections_file", "/dev/null")),
    (CHURN, ("phase2.churn.new_per_second", 5e4)),
    (CHURN, ("phase2.churn.new_per_second", 0.1)),
    (CHURN, ("phase2.churn.flood_per_second", 0.1)),
    (CHURN, ("connections", 1000), ("phase2.churn.guard_ms", 60_000)),
    (LONG, ("record_loss_times", True)),
]
#: Texts that are no request, and the worked example with one field changed.
NO_REQUESTS: list[str | bytes] = [
    *("", "nonsense", json.dumps(EXAMPLE)[:-40], "[]", b"\xff\xfe\x00", json.dumps(EXAMPLE) + "x", "[" * 100_000),
    '{"version": 1, "padding": "' + "x" * 20_000_000 + '"}',
    json.dumps(EXAMPLE).replace("200000.0", "NaN"),
    json.dumps(EXAMPLE).replace('"seed": 1', '"seed": 1, "seed": 2'),
]
WRONG_FIELDS: list[tuple[Any, str, object]] = [
    (EXAMPLE, "mark", ABSENT),
    (EXAMPLE, "surprise", 1),
    (EXAMPLE, "initiator.source_addresses", {"first": "10.0.0.9", "last": "10.0.0.2"}),
    (EXAMPLE, "initiator.source_addresses", {"first": "2001::1", "last": "2001::1"}),
    (EXAMPLE, "frame.size", 63),
    (EXAMPLE, "phase1.rate", -1.0),
    (EXAMPLE, "phase1.rate", "fast"),
    (EXAMPLE, "phase2", None),
    (EXAMPLE, "phase2.responder", None),
    (EXAMPLE, "frame", [64, "initiator"]),
    (EXAMPLE, "senders.cpus", [3, 3]),
    (EXAMPLE, "senders.cpus", [0, -1]),
    (EXAMPLE, "version", 2),
    (EXAMPLE, "initiator.mac", "02:00"),
    (EXAMPLE, "responder.addresses.last", "x"),
    # Long values are cut.
    *((EXAMPLE, where, "x" * 5000) for where in ("initiator.mac", "initiator.family", "frame.size")),
    (EDGES, "initiator.customer_edges.psid_length", 9),
    (EDGES, "initiator.customer_edges.psid_offset", 11),
    (EDGES, "initiator.customer_edges.ipv6_prefix", "198.18.0.0"),
    (EDGES, "initiator.customer_edges.number", 65_536 * 64),
    (EDGE_DEVICE, "responder.customer_edges.number", 2),
    (EDGE_DEVICE, "responder.customer_edges.first_psid", 64),
    (EDGE_DEVICE, "responder.customer_edges.relay", "198.18.0.0"),
]


def test_the_committed_schemas_are_those_of_the_engines_types_and_pythons_types_are_theirs() -> None:
    assert sorted(path.name for path in TRIAL.glob("*.json")) == [f"{name}-1.schema.json" for name in NAMES]
    for name in NAMES:
        assert (TRIAL / f"{name}-1.schema.json").read_text() == published(name), "run `make schemas`"
    assert (ROOT / agreement_types.OUTPUT).read_text() == agreement_types.module(TRIAL), "run `make build`"


def test_two_types_of_one_name_in_two_schemas_are_refused(tmp_path: Path, golden: Golden) -> None:
    for path in TRIAL.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text().replace('"Frame"', '"Clock"').replace("s/Frame", "s/Clock"))
    with golden.raises(ValueError):
        agreement_types.module(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_closes_every_object(name: str) -> None:
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

    Draft202012Validator.check_schema(SCHEMAS[name])
    assert open_objects(SCHEMAS[name], name) == []


def test_each_example_is_tried() -> None:
    examples = [json.loads(path.read_text()) for path in (TRIAL / "examples").iterdir()]
    assert examples
    assert [example for example in examples if example not in RIGHT] == []


def test_each_rule_is_kept_by_schema_and_engine_in_the_same_words(golden: Golden) -> None:
    """A request that breaks one rule between fields breaks no other one, of which the schema has the words."""
    broken = [changed(right, *changes) for right, *changes in BROKEN]
    tried: set[str] = set()
    for request, refusal in zip(broken, refusals(broken), strict=True):
        assert refusal is not None, request
        golden(refusal)
        of_schema = [SCHEMA["allOf"][error.schema_path[1]]["$comment"] for error in VALIDATOR.iter_errors(request)]
        of_engine = [": ".join(refusal.split(": ", 2)[::2])] if of_schema else []
        assert of_schema == of_engine, refusal
        tried |= {*of_schema, *(rule for rule in BEYOND if rule in refusal and not of_schema)}
    assert tried == {*BEYOND, *(rule["$comment"] for rule in SCHEMA["allOf"])}


def test_a_right_request_is_accepted_without_a_word() -> None:
    assert check(json.dumps(EXAMPLE)) == (0, "", "")


def test_a_wrong_request_is_refused_in_one_line_that_names_field_value_and_rule(golden: Golden) -> None:
    wrong = [json.dumps(changed(right, (where, value))) for right, where, value in WRONG_FIELDS]
    for text in (*NO_REQUESTS, *wrong):
        status, out, said = check(text)
        assert (status, out, said.count("\n")) == (2, "", 1), said
        golden(said)


#: Wrong nearly everywhere.
WRONG = [None, True, 0, -1, 0.5, 2**64, 1e300, "", "x", "198.18.0.9", [], [1, 2], [0, 0], {}, {"x": 1}]

Place = tuple[str, ...]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its reference followed."""
    return SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def places(schema: dict[str, Any], place: Place = ()) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Every field by its place, with its schema."""
    for name, field in schema["properties"].items():
        inner = resolved(field)
        yield (*place, name), inner
        if "properties" in inner:
            yield from places(inner, (*place, name))


PLACES = dict(places(SCHEMA))


def at(request: Any, place: Place) -> Any:
    for name in place:
        if not isinstance(request, dict) or name not in request:
            return None
        request = request[name]
    return request


def edges(schema: dict[str, Any]) -> list[Any]:
    """What lies on the bounds of a field, just inside and just outside."""
    least, most = schema.get("minimum", schema.get("exclusiveMinimum", 0)), schema.get("maximum", 0)
    numbers = [least - 1, least, least + 1, float(least), most - 1, most, most + 1, most + 0.5, (least + most) // 2]
    texts = ["x" * length for length in (1, 15, 16)] + ["\u00df" * 8, "\u00df" * 15, "\u00df" * 16]
    macs = ["02:00:00:00:00:01", "02-00-00-00-00-01", "02:00:00:00:00", "+2:00:00:00:00:01", "0g:00:00:00:00:01"]
    lists = [list(range(length)) for length in (0, 1, 64, 65)] + [[5, 5], [0, 0.0], [8191], [8192], [-1], [0.5], ["0"]]
    addresses = ["10.0.0.1", "10.0.0.9", "198.19.0.1", "198.19.0.9", "2001:2::1", "2001:2::9", "ff02::1", "10.0.0.256"]
    kinds = {
        "integer": numbers,
        "number": numbers,
        "string": texts + macs + addresses,
        "array": lists,
        "boolean": [True, False],
    }
    chosen = schema.get("enum") or ([schema["const"], 1.0, 2] if "const" in schema else None)
    return [*(chosen or []), *kinds.get(schema.get("type", ""), [])]


#: For each place what the right requests have there, and what is on its bounds.
COMMON = {place: [value for one in RIGHT if (value := at(one, place)) is not None] for place in PLACES}
COMMON_ONCE = {place: [*{json.dumps(value): value for value in values}.values()] for place, values in COMMON.items()}
ON_BOUNDS = {place: edges(schema) for place, schema in PLACES.items()}
EXTRA = "unheard-of"


def put(request: Any, place: Place, value: Any) -> None:
    """Set one field, where there is a place for it."""
    parent = at(request, place[:-1]) if place[1:] else request
    if isinstance(parent, dict):
        parent[place[-1]] = copy.deepcopy(value)


def remove(request: Any, place: Place) -> None:
    parent = at(request, place[:-1]) if place[1:] else request
    if isinstance(parent, dict):
        parent.pop(place[-1], None)


@st.composite
def requests(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    """A right request with up to four changes."""
    request = copy.deepcopy(draw(st.sampled_from(RIGHT)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.sampled_from(list(PLACES)))
        match draw(st.sampled_from(["fitting", "fitting", "fitting", "wrong", "missing", "extra"])):
            case "fitting":
                put(request, place, draw(st.sampled_from(COMMON[place] + ON_BOUNDS[place])))
            case "wrong":
                put(request, place, draw(st.sampled_from(WRONG)))
            case "missing":
                remove(request, place)
            case _:
                put(request, (*place[:-1], EXTRA), 1)
    return request


def test_right_requests_have_every_field_of_the_schema() -> None:
    right = [*RIGHT, *(right for right, *_ in BROKEN)]
    assert refusals(right) == [None] * len(right)
    assert all(VALIDATOR.is_valid(request) for request in right)
    absent = {place for place in PLACES if all(at(request, place) is None for request in RIGHT)}
    # One range with a step does for all, and one that embeds IPv4 addresses.
    assert {place for place in absent if place[-1] not in {"step", "embedded"}} == set()


def single_changes(every: int) -> Iterator[Any]:
    """Every field of the right requests left out, exchanged, put on its bounds, and made wrong.

    In the first request that has a field it is changed in all these ways, in the others in one of `every`.
    """
    tried: set[Place] = set()
    others = itertools.count()
    for right in RIGHT:
        for place in PLACES:
            new = place not in tried and at(right, place) is not None
            values = [*COMMON_ONCE[place], *(ON_BOUNDS[place] + WRONG if new else [])]
            tried |= {place} if new else set()
            changes = [partial(put, place=place, value=value) for value in values]
            changes += [partial(remove, place=place), partial(put, place=(*place[:-1], EXTRA), value=1)]
            for change in changes:
                if new or next(others) % every == 0:
                    change(request := copy.deepcopy(right))
                    yield request


def judged(request: Any, refusal: str | None) -> str:
    """Which way schema and engine agree."""
    if not VALIDATOR.is_valid(request):
        assert refusal is not None, f"the engine accepts what the schema refuses: {request}"
        return "refused"
    beyond = [rule for rule in BEYOND if refusal is not None and rule in refusal]
    assert refusal is None or beyond, f"the schema accepts what the engine refuses: {refusal}"
    return "engine alone" if beyond else "accepted"


@pytest.mark.parametrize("every", [18, pytest.param(1, marks=pytest.mark.soak)])
def test_schema_and_engine_agree_on_every_single_change(every: int) -> None:
    changed = list({json.dumps(request): request for request in single_changes(every)}.values())
    seen = Counter(map(judged, changed, refusals(changed)))
    assert len(changed) > 2_000
    assert min(seen[kind] for kind in KINDS) > 30, seen


@pytest.mark.parametrize("number", [REQUESTS // 4, pytest.param(REQUESTS, marks=pytest.mark.soak)])
def test_schema_and_engine_agree_on_generated_requests(number: int) -> None:
    seen: Counter[str] = Counter()
    with Judge() as engine:

        @settings(max_examples=number, derandomize=True, database=None, phases=PHASES)
        @given(requests())
        def agree(request: Any) -> None:
            seen[judged(request, engine.refusal(request))] += 1

        agree()
    assert sum(seen.values()) >= number * 0.99
    # All kinds were really tried; a sample has few of the rarest.
    assert min(seen[kind] for kind in KINDS) > (number / 50 if number == REQUESTS else 0), seen

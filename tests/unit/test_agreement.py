# SPDX-License-Identifier: Apache-2.0
"""Schema and engine agree on every request, right or wrong, but for the rules that the schema names as beyond it.

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
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.unit.engine_check import EDGE_DEVICE, EDGES, EDGES_AND_RELAY, EXAMPLE, TRIAL, TUNNELS, Judge, refusals

SCHEMA = json.loads((TRIAL / "request-1.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
REQUESTS = int(os.environ.get("NATGAUGE_AGREEMENT_REQUESTS", "1000"))
PHASES = (Phase.generate, Phase.shrink)
KINDS = ("accepted", "engine alone", "refused")

ADDRESSES = {"first": "198.18.0.2", "last": "198.18.0.2"}
NATIVE = {"first": "2001:2::2", "last": "2001:2::8", "step": 2}
EMBEDDED = {"first": "2001:db8:1c0:2:21::", "last": "2001:db8:1c0:3:22::", "embedded": 40}
STREAM = {"rate": 1000.0, "frames": 1000}
ANY_PHASE2 = {
    "initiator": STREAM,
    "responder": {**STREAM, "reading_order": "increasing"},
    "grace_ms": 0,
    "catch_up_percent": 125,
    "step": {"share": 0.5, "seconds": 1},
}
#: Right requests that have every field of the schema among them.
RIGHT = [
    EXAMPLE,
    {
        **EXAMPLE,
        "phase1": {**EXAMPLE["phase1"], "catch_up_percent": 150},
        "phase2": ANY_PHASE2,
        "background": {"n": 10, "m": 9, "initiator_addresses": NATIVE, "responder_addresses": EMBEDDED},
        "record_variation": True,
        "record_loss_times": True,
        "record_receiver_time": True,
        "frame_timeout_ms": 10.0,
        "frame": {
            **EXAMPLE["frame"],
            "size": 72,
            "frame_sizes": "72:7,594:4",
            "down_frame_sizes": "1518:1",
            "initiator_vlan": "9.100",
            "responder_vlan": "7",
        },
        "senders": {**EXAMPLE["senders"], "stall_ns": 500_000},
        "limits": {"seconds": 60},
        "connections_file": "/run/connections",
        "stateless": False,
    },
    {
        **{name: value for name, value in EXAMPLE.items() if name not in {"phase1", "phase2"}},
        "stateless": True,
        "phase2": {"responder": STREAM},
        "delay_samples": {"from_ms": 0, "frames": 10},
        "watch_stall_ns": 2_000_000,
        "accept_zero_checksum": True,
        "responder": {**EXAMPLE["responder"], "mac": "02:00:00:00:00:0f", "destination_addresses": ADDRESSES},
        "initiator": {**EXAMPLE["initiator"], "mac": "02:00:00:00:00:0E"},
    },
    {**EXAMPLE, "phase2": {"responder": {"rate": 1000.0, "frames": EXAMPLE["connections"], "reading_order": "once"}}},
    {
        **{name: value for name, value in EXAMPLE.items() if name != "record_delays"},
        "phase2": {"initiator": STREAM, "periods": 3},
    },
    {**EXAMPLE, "phase2": {"responder": STREAM, "churn": {"new_per_second": 50.0, "leave": "silent", "guard_ms": 50}}},
    {
        **EXAMPLE,
        "phase2": {
            "responder": STREAM,
            "churn": {"new_per_second": 50.0, "leave": "silent", "flood_per_second": 500.0},
        },
    },
    {
        **EXAMPLE,
        "phase2": {
            "initiator": STREAM,
            "modifiers": {"broadcast_every": 100, "query_ms": 1000, "groups": {"number": 4, "seconds": 0.2}},
        },
    },
    {
        **EXAMPLE,
        "frame": {"size": 88, "side": "initiator", "transport": "tcp"},
        "phase2": {"initiator": STREAM, "churn": {"new_per_second": 50.0, "leave": "fin"}},
    },
    {
        **EXAMPLE,
        "frame": {"size": 114, "side": "responder", "transport": "udp", "query": "aaaa"},
        "phase2": {"initiator": STREAM},
    },
    {
        **{name: value for name, value in EXAMPLE.items() if name not in {"phase1", "record_delays"}},
        "stateless": True,
        "frame": {"size": 114, "side": "initiator", "query": "aaaa", "resolved": True, "answer": "2001:2::53"},
        "responder": {**EXAMPLE["responder"], "destination_addresses": ADDRESSES},
        "phase2": {"initiator": STREAM},
    },
    {
        **{name: value for name, value in EXAMPLE.items() if name != "record_delays"},
        "stateless": True,
        "frame": {
            "size": 114,
            "side": "initiator",
            "query": "aaaa",
            "resolved": True,
            "answer": "2001:2::53",
            "aaaa_share": 0.5,
            "cached_share": 1.0,
        },
        "responder": {**EXAMPLE["responder"], "destination_addresses": ADDRESSES},
        "phase2": {"initiator": STREAM},
    },
    {
        **{name: value for name, value in EXAMPLE.items() if name not in {"phase2", "record_delays"}},
        "frame": {
            "size": 88,
            "side": "initiator",
            "transport": "tcp",
            "closing": {"by": "fin", "request_octets": 100},
        },
    },
    {
        **{name: value for name, value in EXAMPLE.items() if name != "record_delays"},
        "frame": {"size": 88, "side": "initiator", "transport": "tcp", "half_open": True},
        "phase2": {"responder": {"rate": 1000.0, "frames": EXAMPLE["connections"], "reading_order": "once"}},
    },
    {
        **{name: value for name, value in EXAMPLE.items() if name not in {"phase1", "record_delays"}},
        "stateless": True,
        "frame": {"size": 84, "side": "initiator"},
        "initiator": {
            **EXAMPLE["initiator"],
            "family": "ipv6",
            "gateway": {"address": "2001:2::1"},
            "source_addresses": NATIVE,
            "destination_addresses": {"first": "2001:2:0:1::2", "last": "2001:2:0:1::2"},
        },
        "responder": {
            **EXAMPLE["responder"],
            "destination_addresses": {"first": "198.18.0.2", "last": "198.18.0.5", "step": 1},
        },
    },
    EDGES,
    TUNNELS,
    EDGE_DEVICE,
    EDGES_AND_RELAY,
]
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
EDGES = {place: edges(schema) for place, schema in PLACES.items()}
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
                put(request, place, draw(st.sampled_from(COMMON[place] + EDGES[place])))
            case "wrong":
                put(request, place, draw(st.sampled_from(WRONG)))
            case "missing":
                remove(request, place)
            case _:
                put(request, (*place[:-1], EXTRA), 1)
    return request


def test_right_requests_have_every_field_of_the_schema() -> None:
    assert refusals(RIGHT) == [None] * len(RIGHT)
    assert all(VALIDATOR.is_valid(request) for request in RIGHT)
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
            values = [*COMMON_ONCE[place], *(EDGES[place] + WRONG if new else [])]
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
    beyond = [rule for rule in SCHEMA["x-beyond-schema"] if refusal is not None and rule in refusal]
    assert refusal is None or beyond, f"the schema accepts what the engine refuses: {refusal}"
    return "engine alone" if beyond else "accepted"


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.soak)])
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

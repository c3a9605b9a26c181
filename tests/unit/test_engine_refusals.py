# SPDX-License-Identifier: Apache-2.0
"""What the engine says of wrong requests: one line that names field, value and rule, exit status 2, no privilege."""

from __future__ import annotations

import json

import pytest
from tests.unit.engine_check import EDGE_DEVICE, EDGES, EXAMPLE, changed, check
from tests.unit.golden import Golden

from natgauge.agreement.generated import TrialRequest
from natgauge.agreement.process import run
from natgauge.errors import UsageError


def text(where: str, value: object) -> str:
    """The worked example with one field changed."""
    return json.dumps(changed(EXAMPLE, (where, value)))


def test_a_right_request_is_accepted_without_a_word() -> None:
    assert check(json.dumps(EXAMPLE)) == (0, "", "")


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "nonsense",
        json.dumps(EXAMPLE)[:-40],
        "[]",
        b"\xff\xfe\x00",
        json.dumps(EXAMPLE) + "x",
        "[" * 100_000,
        '{"version": 1, "padding": "' + "x" * 20_000_000 + '"}',
        json.dumps(EXAMPLE).replace("200000.0", "NaN"),
        text("initiator.source_addresses", {"first": "10.0.0.9", "last": "10.0.0.2"}),
        text("initiator.source_addresses", {"first": "2001::1", "last": "2001::1"}),
    ],
)
def test_a_wrong_request_is_refused_in_one_line(asked: str | bytes) -> None:
    status, out, err = check(asked)
    assert (status, out) == (2, ""), err
    assert err.startswith("natgauge-engine: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("frame.size", 63),
        ("phase1.rate", -1.0),
        ("phase1.rate", "fast"),
        ("phase2", None),
        ("phase2.responder", None),
        ("frame", [64, "initiator"]),
        ("senders.cpus", [3, 3]),
        ("senders.cpus", [0, -1]),
        ("version", 2),
        ("initiator.mac", "02:00"),
        ("responder.addresses.last", "x"),
    ],
    ids=str,
)
def test_a_refusal_names_field_value_and_rule(where: str, value: object, golden: Golden) -> None:
    golden(check(text(where, value)))


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("initiator.customer_edges.psid_length", 9, "25 embedded address bits: do not fit"),
        ("initiator.customer_edges.psid_offset", 11, "PSID offset 11 and PSID length 6: a port has 16 bits for both"),
        ("initiator.customer_edges.ipv6_prefix", "198.18.0.0", "ipv6_prefix: 198.18.0.0: must be of the side's family"),
        ("initiator.customer_edges.number", 65_536 * 64, "number: 4194304: the mapping rule has too few port sets"),
        ("responder.customer_edges.number", 2, "must be as many as initiator.source_addresses, 1"),
        ("responder.customer_edges.first_psid", 64, "number: 1: the mapping rule has too few port sets"),
        ("responder.customer_edges.relay", "198.18.0.0", "relay: 198.18.0.0: must be of the side's family"),
    ],
    ids=str,
)
def test_customer_edges_that_cannot_be_are_refused(where: str, value: object, said: str) -> None:
    request = EDGES if where.startswith("initiator") else EDGE_DEVICE
    status, _, err = check(json.dumps(changed(request, (where, value))))
    assert (status, said in err) == (2, True), err


@pytest.mark.parametrize("where", ["initiator.mac", "initiator.family", "frame.size"])
def test_an_overlong_value_is_cut_in_the_refusal(where: str) -> None:
    _, _, said = check(text(where, "x" * 5000))
    assert "xxx... (500" in said
    assert len(said) < 300


def test_a_field_that_is_missing_is_named(golden: Golden) -> None:
    _, _, said = check(json.dumps({name: value for name, value in EXAMPLE.items() if name != "mark"}))
    golden(said)


def test_a_field_that_is_unknown_is_named() -> None:
    assert "surprise" in check(text("surprise", 1))[2]


def test_a_field_given_twice_is_refused() -> None:
    _, _, said = check(json.dumps(EXAMPLE).replace('"seed": 1', '"seed": 1, "seed": 2'))
    assert "duplicate field `seed`" in said


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("mark", 0, "mark: 0: "),
        ("phase1", {"rate": 1.0, "grace_ms": -1}, "phase1.grace_ms: -1: "),
        ("watch_cpus", [1, 1], "watch_cpus: 1: "),
    ],
    ids=str,
)
def test_in_python_the_engines_refusal_is_a_usage_error_of_one_line(where: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        run(TrialRequest.model_validate(changed(EXAMPLE, (where, value))))
    assert "\n" not in str(caught.value)

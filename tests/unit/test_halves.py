# SPDX-License-Identifier: Apache-2.0
"""The rates of both halves of a chain next to the chain's rate: which results count, and what is said without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared, estimate, gateway
from tests.unit.made_results import made

from natgauge.analysis.halves import rows_of_halves
from natgauge.analysis.scalability import Comparison
from natgauge.records.comparison import Role
from natgauge.records.measurement import Result
from natgauge.reports.comparison import text as comparison_text
from natgauge.reports.pivot import sheet as against_sheet
from natgauge.reports.text import table
from natgauge.words import LimitedBy

#: Octets with FCS at the Initiator and at the Responder.
OCTETS = {"map-t": (64, 64), "map-t-ce": (64, 84), "map-t-br": (84, 64)}


def result(kind: str, median: float, *, limited_by: LimitedBy = "device", **parameters: Any) -> Result:
    initiator, responder = OCTETS[kind]
    frames = {"frame_octets": {"initiator": initiator, "responder": responder}, "frame_size": initiator}
    relay = {"stateless": True, "source_port_count": 2048, "initiator_family": "ipv6"} if kind == "map-t-br" else {}
    common = {"source_address_count": 1000, "subscribers": 1000, "initiator_family": "ipv4", "source_port_count": 25}
    given = {"gateway": kind, "kind": kind, **common, **frames, **relay, **parameters}
    found = made([median], parameters=given, limited_by=limited_by)
    repetition = replace(found.repetitions[0], limited_by=limited_by)
    return found.model_copy(update={"repetitions": (repetition,)})


CHAIN, EDGE, RELAY = result("map-t", 276_000, psid_length=5), result("map-t-ce", 375_000), result("map-t-br", 775_000)


def of_chain(*results: Result) -> tuple[Comparison, Comparison]:
    """The smallest half and the halves in turns, of the first result."""
    smallest, in_turns = rows_of_halves(results)
    return smallest.comparisons[0], in_turns.comparisons[0]


def test_a_chain_has_the_minimum_of_its_halves_and_their_rate_in_turns(golden: Golden) -> None:
    smallest, in_turns = of_chain(CHAIN, RELAY, EDGE)
    # In shared placement each half contains the tester's own work.
    assert (smallest.value, smallest.bound) == (375_000, ">=")
    assert in_turns.value == pytest.approx(252_717, abs=1)
    golden(smallest.note)
    for row in rows_of_halves([CHAIN, RELAY, EDGE]):
        assert [comparison.value for comparison in row.comparisons[1:]] == [None, None]


def test_the_tables_have_both_rows() -> None:
    for text in (
        table([EDGE, RELAY, CHAIN]),
        "\n".join(map(str, against_sheet([EDGE, RELAY, CHAIN], "gateway").lines)),
    ):
        (smallest,) = (line for line in text.splitlines() if "minimum of the halves" in line)
        (in_turns,) = (line for line in text.splitlines() if "1 / (1/CE + 1/PE)" in line)
        assert "375 k" in smallest
        assert "252 k" in in_turns or "253 k" in in_turns


def test_devices_with_cores_of_their_own_take_no_turns() -> None:
    smallest, in_turns = of_chain(result("map-t", 276_000, cores_of_devices="each its own"), EDGE, RELAY)
    assert (smallest.value, in_turns) == (375_000, Comparison())


def test_a_half_that_the_tester_limited_may_be_faster() -> None:
    tester = result("map-t-br", 300_000, limited_by="tester")
    smallest, in_turns = of_chain(CHAIN, EDGE, tester)
    assert (smallest.value, smallest.bound) == (300_000, ">=")
    assert in_turns.bound == ">="
    # The other half is the smaller one in any case.
    apart = [result(name, value, placement="isolated") for name, value in (("map-t", 276_000), ("map-t-ce", 375_000))]
    relay = result("map-t-br", 775_000, placement="isolated", limited_by="tester")
    assert of_chain(*apart, relay)[0].bound == ""


@pytest.mark.parametrize(
    "halves",
    [
        (EDGE,),
        (result("map-t-ce", 375_000, source_address_count=1), RELAY),
        (EDGE, result("map-t-br", 775_000, psid_length=6)),
        (EDGE, result("map-t-br", 1.0, frame_octets={"initiator": 148, "responder": 128})),
        (EDGE, RELAY, result("map-t-br", 71_900, gateway="map-t-br-tayga")),
    ],
)
def test_without_comparable_halves_there_is_no_value_but_the_reason(halves: tuple[Result, ...], golden: Golden) -> None:
    smallest, _ = of_chain(CHAIN, *halves)
    assert smallest.value is None
    golden(smallest.doubt)


def comparison(**places: Any) -> list[str]:
    """Lines about the halves in a comparison of MAP-T, 500 ns, with both halves, 550 and 300 ns."""
    kinds = ("map-t", "map-t-ce", "map-t-br")
    roles: tuple[Role, ...] = ("baseline", "compared", "compared")
    gateways = [gateway(kind, role, {"kind": kind, **places}) for kind, role in zip(kinds, roles, strict=True)]
    control = gateway("map-t (A/A control)", "control", {"kind": "map-t"})
    estimates = [estimate("map-t-ce"), estimate("map-t-br", 0.6, 0.59, 0.61, nanoseconds=300.0)]
    record = compared(estimates, baseline="map-t", gateways=(*gateways, control))
    return [line for line in comparison_text(record).splitlines() if "halves" in line]


def test_a_comparison_has_the_sum_of_both_halves(golden: Golden) -> None:
    golden(comparison())
    assert comparison(cores_of_devices="each its own") == []


def doubted(kind: str, median: float, word: str, **parameters: Any) -> Result:
    notes = [{"word": word, "text": "x", "grade": "answer"}]
    return Result.from_document({**result(kind, median, **parameters).document(), "doubts": notes})


def test_a_half_that_a_doubt_makes_a_bound_makes_the_figure_of_both_a_bound() -> None:
    apart: dict[str, Any] = {"placement": "isolated"}
    chain, edge = result("map-t", 276_000, **apart), result("map-t-ce", 375_000, **apart)
    smallest, in_turns = of_chain(chain, edge, doubted("map-t-br", 300_000, "link limited", **apart))
    assert (smallest.value, smallest.bound, in_turns.bound) == (300_000, ">=", ">=")
    smallest, _ = of_chain(chain, edge, doubted("map-t-br", 300_000, "flow control", **apart))
    assert (smallest.value, smallest.bound) == (300_000, "<=")
    smallest, _ = of_chain(CHAIN, EDGE, doubted("map-t-br", 300_000, "flow control"))
    assert smallest.value is None
    assert "flow control" in smallest.doubt


def test_halves_that_are_both_lower_bounds_are_a_lower_bound_in_turns() -> None:
    limited = [result(kind, 300_000.0, limited_by="tester") for kind in ("map-t-ce", "map-t-br")]
    _, in_turns = of_chain(CHAIN, *limited)
    assert (in_turns.value, in_turns.bound) == (150_000, ">=")

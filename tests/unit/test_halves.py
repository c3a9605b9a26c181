# SPDX-License-Identifier: Apache-2.0
"""The rates of both halves of a chain next to the chain's rate: which results count, and what is said without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran, Reported
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared, estimate, gateway
from tests.unit.made_results import kept, made

from natgauge import Result

SMALLEST, IN_TURNS = "minimum of the halves", "1 / (1/CE + 1/PE) of the halves"

#: Octets with FCS at the Initiator and at the Responder.
OCTETS = {"map-t": (64, 64), "map-t-ce": (64, 84), "map-t-br": (84, 64)}


def result(kind: str, median: float, *, limited_by: str = "device", doubts: Any = (), **parameters: Any) -> Result:
    initiator, responder = OCTETS[kind]
    frames = {"frame_octets": {"initiator": initiator, "responder": responder}, "frame_size": initiator}
    relay = {"stateless": True, "source_port_count": 2048, "initiator_family": "ipv6"} if kind == "map-t-br" else {}
    common = {"source_address_count": 1000, "subscribers": 1000, "initiator_family": "ipv4", "source_port_count": 25}
    given = {"gateway": kind, "kind": kind, **common, **frames, **relay, **parameters}
    return made([median], parameters=given, limited_by=limited_by, doubts=list(doubts))


CHAIN, EDGE, RELAY = result("map-t", 276_000, psid_length=5), result("map-t-ce", 375_000), result("map-t-br", 775_000)


def of_chain(reported: Reported, *results: Result) -> tuple[Any, Any, list[str]]:
    """The smallest half, the halves in turns, and the notes on them: of a chain, whose result is the first."""
    said = reported(*results)
    cells = {row["row"]: row["cells"] for row in said["table"]["rows"]}
    found = [cells.get(row, [None]) for row in (SMALLEST, IN_TURNS)]
    assert not any(any(others) for _, *others in found)
    return found[0][0], found[1][0], said["notes"]


def bound(sign: str, value: float) -> dict[str, Any]:
    return {"bound": sign, "value": pytest.approx(value, abs=1)}


def test_a_chain_has_the_minimum_of_its_halves_and_their_rate_in_turns(golden: Golden, reported: Reported) -> None:
    smallest, in_turns, notes = of_chain(reported, CHAIN, RELAY, EDGE)
    # In shared placement each half contains the tester's own work.
    assert (smallest, in_turns) == (bound(">=", 375_000), bound(">=", 252_717))
    golden(notes)


@pytest.mark.parametrize("words", [(), ("--against", "gateway")])
def test_the_tables_have_both_rows(words: tuple[str, ...], tmp_path: Path, ran: Ran) -> None:
    text = ran(["report", str(kept(tmp_path, EDGE, RELAY, CHAIN)), *words]).out
    (smallest,) = (line for line in text.splitlines() if line.startswith(SMALLEST))
    (in_turns,) = (line for line in text.splitlines() if line.startswith(IN_TURNS))
    assert ">= 375 k" in smallest
    assert ">= 252 k" in in_turns


def test_devices_with_cores_of_their_own_take_no_turns(reported: Reported) -> None:
    smallest, in_turns, _ = of_chain(reported, result("map-t", 276_000, cores_of_devices="each its own"), EDGE, RELAY)
    assert (smallest, in_turns) == (bound(">=", 375_000), None)


def test_a_half_that_the_tester_limited_may_be_faster(reported: Reported) -> None:
    tester = result("map-t-br", 300_000, limited_by="tester")
    smallest, in_turns, _ = of_chain(reported, CHAIN, EDGE, tester)
    assert smallest == bound(">=", 300_000)
    assert in_turns["bound"] == ">="
    # The other half is the smaller one in any case.
    apart = [result(name, value, placement="isolated") for name, value in (("map-t", 276_000), ("map-t-ce", 375_000))]
    relay = result("map-t-br", 775_000, placement="isolated", limited_by="tester")
    assert of_chain(reported, *apart, relay)[0] == 375_000


@pytest.mark.parametrize(
    "halves",
    [
        (result("map-t-ce", 375_000, source_address_count=1), RELAY),
        (EDGE, result("map-t-br", 775_000, psid_length=6)),
        (EDGE, result("map-t-br", 1.0, frame_octets={"initiator": 148, "responder": 128})),
        (EDGE, RELAY, result("map-t-br", 71_900, gateway="map-t-br-tayga")),
    ],
)
def test_without_comparable_halves_there_is_no_value_but_the_reason(
    halves: tuple[Result, ...], golden: Golden, reported: Reported
) -> None:
    smallest, in_turns, notes = of_chain(reported, CHAIN, *halves)
    assert (smallest, in_turns) == (None, None)
    golden(notes)


def test_a_chain_with_one_half_alone_has_neither_row_nor_reason(reported: Reported) -> None:
    assert of_chain(reported, CHAIN, EDGE) == (None, None, [])


@pytest.mark.parametrize(("places", "lines"), [({}, 1), ({"cores_of_devices": "each its own"}, 0)])
def test_a_comparison_has_the_sum_of_both_halves(
    places: dict[str, str], lines: int, golden: Golden, tmp_path: Path, ran: Ran
) -> None:
    """MAP-T takes 500 ns, its halves 550 and 300 ns."""
    baseline = gateway("map-t", "baseline", {"kind": "map-t", **places})
    others = [gateway(kind, "compared", {"kind": kind, **places}) for kind in ("map-t-ce", "map-t-br")]
    control = gateway("map-t (A/A control)", "control", {"kind": "map-t"})
    estimates = [estimate("map-t-ce"), estimate("map-t-br", 0.6, 0.59, 0.61, nanoseconds=300.0)]
    record = compared(estimates, baseline="map-t", gateways=(baseline, *others, control))
    text = ran(["report", str(kept(tmp_path, record))]).out
    found = [line for line in text.splitlines() if "halves" in line]
    assert len(found) == lines
    golden(found or "nothing of halves")


def doubted(kind: str, median: float, word: str, **parameters: Any) -> Result:
    return result(kind, median, doubts=[{"word": word, "text": "x", "grade": "answer"}], **parameters)


def test_a_half_that_a_doubt_makes_a_bound_makes_the_figure_of_both_a_bound(reported: Reported) -> None:
    apart: dict[str, Any] = {"placement": "isolated"}
    chain, edge = result("map-t", 276_000, **apart), result("map-t-ce", 375_000, **apart)
    smallest, in_turns, _ = of_chain(reported, chain, edge, doubted("map-t-br", 300_000, "link limited", **apart))
    assert (smallest, in_turns["bound"]) == (bound(">=", 300_000), ">=")
    smallest, _, _ = of_chain(reported, chain, edge, doubted("map-t-br", 300_000, "flow control", **apart))
    assert smallest == bound("<=", 300_000)
    smallest, _, notes = of_chain(reported, CHAIN, EDGE, doubted("map-t-br", 300_000, "flow control"))
    assert smallest is None
    assert "flow control" in " ".join(notes)


def test_halves_that_are_both_lower_bounds_are_a_lower_bound_in_turns(reported: Reported) -> None:
    limited = [result(kind, 300_000.0, limited_by="tester") for kind in ("map-t-ce", "map-t-br")]
    assert of_chain(reported, CHAIN, *limited)[1] == bound(">=", 150_000)

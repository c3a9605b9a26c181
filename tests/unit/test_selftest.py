# SPDX-License-Identifier: Apache-2.0
"""The tester's own highest rates: how they are sought, and when they are remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.made_cable import OwnCable

TRANSACTIONS: dict[str, Any] = {"close": "fin", "request_octets": 100}


@pytest.fixture
def cable(tmp_path: Path) -> OwnCable:
    """One on which nothing was measured yet."""
    return OwnCable(tmp_path)


def test_transactions_are_sent_in_phase_1_and_are_no_plain_segments_to_the_memory(cable: OwnCable) -> None:
    assert cable.rate("transaction-rate", **TRANSACTIONS) == pytest.approx(1e6)
    assert cable.times == 1
    for request in cable.requests:
        assert request.phase2 is None
        assert request.frame.closing is not None
        assert (request.frame.closing.by, request.frame.closing.request_octets) == ("fin", 100)
    tcp = cable.rate("connection-rate", transport="tcp")
    octets = cable.requests[-1].frame.size
    rates = [
        tcp,
        cable.rate("connection-rate", frame_size=octets),
        cable.rate("transaction-rate", **TRANSACTIONS),
        cable.rate("transaction-rate", **{**TRANSACTIONS, "request_octets": 1}),
        cable.rate("transaction-rate", **{**TRANSACTIONS, "close": "rst"}),
        *(cable.rate("table-capacity", transport="tcp", state=state) for state in ("established", "half-open")),
    ]
    assert rates == pytest.approx([2e6, 3e6, 1e6, 4e6, 5e6, 2e6, 6e6])


def test_highest_rates_are_remembered_for_the_same_setting_only(cable: OwnCable) -> None:
    assert [cable.rate(), cable.rate()] == pytest.approx([1e6, 1e6])
    cable.cores = (0, 1)
    assert cable.rate() == pytest.approx(2e6)
    cable.cores = (0,)
    (cable.folder / "natgauge-engine").write_text("another build")
    assert cable.rate() == pytest.approx(3e6)
    (cable.folder / "natgauge" / "selftest.json").write_text("damaged {")
    assert cable.rate() == pytest.approx(4e6)
    assert cable.times == 4


@pytest.mark.parametrize("fact", ["governor", "smt", "clock_source", "kernel_parameters", "mitigations"])
def test_highest_rates_of_other_settings_of_the_machine_are_measured_anew(fact: str, cable: OwnCable) -> None:
    """Rates of a slow machine limited every search after its settings were mended."""
    for value, rate in (("before", 1e6), ("after", 2e6), ("before", 1e6)):
        cable.facts = {fact: value, "load_average": [cable.times]}
        assert cable.rate() == pytest.approx(rate)


def test_highest_rates_with_the_compiler_of_programs_are_not_those_without(cable: OwnCable) -> None:
    rates = [cable.rate()]
    for value in ("0\n", "1\n", "0\n"):
        (cable.folder / "bpf_jit_enable").write_text(value)
        rates.append(cable.rate())
    assert rates == pytest.approx([1e6, 2e6, 3e6, 2e6])


def test_highest_rates_are_those_with_as_many_connections_as_the_measurement_has(cable: OwnCable) -> None:
    for connections in (50_000, 2_000_000, 50_000, 100, 1, 20_000_000):
        cable.rate(connections=connections)
    # Too few to be timed count as the fewest that can be.
    assert [one.connections for one in cable.requests[::4]] == [50_000, 2_000_000, 10_000, 10_000_000]
    assert cable.times == 4


def test_the_highest_rate_is_sought_with_the_connections_that_are_named(cable: OwnCable) -> None:
    cable.rate(connections=20_000)
    assert {request.connections for request in cable.requests} == {20_000}
    # Long enough to be timed, however few connections there are.
    last = cable.requests[-1].phase2
    assert last is not None
    assert last.initiator is not None
    assert last.initiator.frames == 500_000


def test_disturbed_rates_are_measured_again_a_few_times_and_the_best_is_kept(cable: OwnCable) -> None:
    cable.is_disturbed = True
    assert [cable.rate() for _ in range(5)] == pytest.approx([1e6, 2e6, 3e6, 3e6, 3e6])
    assert cable.times == 3


def test_rates_measured_in_peace_end_the_trying_and_do_not_fall_below_what_was_seen(cable: OwnCable) -> None:
    cable.is_disturbed, cable.speeds = True, [3e6, 2e6]
    cable.rate()
    cable.is_disturbed = False
    assert [cable.rate() for _ in range(3)] == pytest.approx([3e6, 3e6, 3e6])
    assert cable.times == 2

# SPDX-License-Identifier: Apache-2.0
"""A limit for each inside host is told from other losses by the connections that each host kept."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from math import exp, lgamma, log, log1p
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.test_causes import FEWER, FULL, PORTS
from tests.unit.test_explain import ALL, trial

from natgauge.causes.cause import Cause, of_share
from natgauge.causes.hops import hops_of
from natgauge.causes.hosts import hosts_of
from natgauge.causes.of_trial import TableState, cause_of
from natgauge.procedures.kit.procedure import of_search
from natgauge.reports.explanation import refined

#: Connections of four hosts, as a permutation distributes them.
OPENED = (1016, 983, 1007, 994)


def made(opened: Sequence[int], stored: Sequence[int], network: Mapping[str, int] = FEWER) -> dict[str, Any]:
    """The record of a trial."""
    counts = [{"connections": own, "stored": kept} for own, kept in zip(opened, stored, strict=True)]
    record = trial(300, network)
    addresses = {"first": "10.0.0.2", "last": f"10.0.0.{1 + len(opened)}"}
    initiator = {**(record.get("request") or {}).get("initiator", {}), "family": "ipv4", "source_addresses": addresses}
    request = {**(record.get("request") or {}), "initiator": initiator, "responder": {"family": "ipv4"}}
    result = {**record["result"], "state_table": {"by_source": counts}}
    return {**record, "request": request, "result": result}


def found(opened: Sequence[int], stored: Sequence[int], network: Mapping[str, int] = FEWER) -> Cause:
    return cause_of(hops_of(made(opened, stored, network)), TableState(), opens=True)


def test_hosts_that_keep_equal_numbers_have_a_limit_each(golden: Golden) -> None:
    cause = found(OPENED, (500, 500, 499, 500))
    assert (cause.kind, cause.certainty, cause.each_host, cause.limited_by) == ("host limit", "seen", 500, "device")
    golden(cause.words)


def test_a_limit_of_some_hosts_names_them_and_is_a_guess_where_they_are_few(golden: Golden) -> None:
    cause = found(OPENED, (1016, 983, 500, 500))
    assert (cause.kind, cause.certainty) == ("host limit", "guess")
    golden(cause.hosts)


def test_a_host_below_the_limit_loses_nothing(golden: Golden) -> None:
    cause = found((300, 983, 1007, 994), (300, 500, 500, 500))
    assert (cause.kind, cause.each_host) == ("host limit", 500)
    golden(cause.hosts)


def test_where_one_host_loses_it_is_named_and_no_limit_is(golden: Golden) -> None:
    cause = found(OPENED, (1016, 0, 1007, 994))
    assert (cause.kind, cause.each_host) == ("rule", None)
    golden(cause.hosts)


@cache
def up_to(number: int, share: float) -> Sequence[float]:
    """Probabilities that of this number of connections at most 0, 1, 2 ... are kept where this share is lost."""
    ways = (lgamma(number + 1) - lgamma(kept + 1) - lgamma(number - kept + 1) for kept in range(number))
    chances = (way + (number - kept) * log(share) + kept * log1p(-share) for kept, way in enumerate(ways))
    return list(accumulate(map(exp, chances)))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("hosts", [4, 16])
def test_a_loss_by_share_is_hardly_ever_taken_for_a_limit(share: float, hosts: int) -> None:
    chance, wrong = random.Random(hosts), 0  # noqa: S311 - made up
    for _ in range(200):
        opened = [1000 + chance.randrange(-30, 31) for _ in range(hosts)]
        stored = [bisect(up_to(number, share), chance.random()) for number in opened]
        wrong += found(opened, stored).kind == "host limit"
    assert wrong <= 4


def test_counters_of_the_table_and_of_ports_name_these_causes_nevertheless() -> None:
    assert found(OPENED, (500, 500, 500, 500), PORTS).kind == "port pool"
    assert found(OPENED, (500, 500, 500, 500), FULL).kind == "table"


def test_where_a_lower_rate_passes_the_limit_is_one_of_the_rate_of_each_host(golden: Golden) -> None:
    cause = found(OPENED, (500, 501, 500, 500))
    whole = of_search([cause], passed=True)
    assert whole.kind == "rate limit"
    golden(whole.words)
    assert refined(cause, whole).kind == "rate limit"
    assert of_search([cause], passed=False).kind == "host limit"
    assert of_share([cause], kept=2000, is_number=True).kind == "host limit"


def test_a_loss_without_a_counter_has_a_limit_too_but_no_rate() -> None:
    cause = found(OPENED, (500, 500, 500, 500), ALL)
    assert cause.kind == "host limit"
    assert of_search([cause], passed=True).kind == "not known"


def test_records_without_sources_say_nothing_of_hosts() -> None:
    assert not hosts_of(trial(300, FEWER)).hosts
    assert not cause_of(hops_of(trial(300, FEWER)), TableState(), opens=True).hosts

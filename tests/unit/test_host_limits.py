# SPDX-License-Identifier: Apache-2.0
"""A limit for each inside host is told from other losses by the connections that each host kept."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import kept_trials
from tests.unit.test_explain import ALL, FEWER, FULL, USED_UP, trial

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


#: From the connections that each host opened, and that were stored of it, to the cause that `natgauge explain` names.
Found: TypeAlias = Callable[..., Any]


@pytest.fixture
def explained(tmp_path: Path, ran: Ran) -> Callable[[Any], Any]:
    folders = (tmp_path / f"one-{number}" for number in itertools.count())

    def of(record: Any) -> Any:
        folder = next(folders)
        folder.mkdir()
        return json.loads(ran(["explain", str(kept_trials(folder, record)), "--json"]).out)["cause"]

    return of


@pytest.fixture
def found(explained: Callable[[Any], Any]) -> Found:
    def of(opened: Sequence[int], stored: Sequence[int], network: Mapping[str, int] = FEWER) -> Any:
        return SimpleNamespace(**explained(made(opened, stored, network)))

    return of


def test_hosts_that_keep_equal_numbers_have_a_limit_each(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    folder = str(kept_trials(tmp_path, made(OPENED, (500, 500, 499, 500))))
    cause = json.loads(ran(["explain", folder, "--json"]).out)["cause"]
    assert (cause["kind"], cause["certainty"], cause["each_host"]) == ("host limit", "seen", 500)
    golden([line for line in ran(["explain", folder]).out.splitlines() if line.startswith("Cause: ")])


def test_a_limit_of_some_hosts_names_them_and_is_a_guess_where_they_are_few(found: Found, golden: Golden) -> None:
    cause = found(OPENED, (1016, 983, 500, 500))
    assert (cause.kind, cause.certainty) == ("host limit", "guess")
    golden(cause.hosts)


def test_a_host_below_the_limit_loses_nothing(found: Found, golden: Golden) -> None:
    cause = found((300, 983, 1007, 994), (300, 500, 500, 500))
    assert (cause.kind, cause.each_host) == ("host limit", 500)
    golden(cause.hosts)


def test_where_one_host_loses_it_is_named_and_no_limit_is(found: Found, golden: Golden) -> None:
    cause = found(OPENED, (1016, 0, 1007, 994))
    assert (cause.kind, cause.each_host) == ("rule", None)
    golden(cause.hosts)


def test_counters_of_the_table_and_of_ports_name_these_causes_nevertheless(found: Found) -> None:
    assert found(OPENED, (500, 500, 500, 500), USED_UP).kind == "port pool"
    assert found(OPENED, (500, 500, 500, 500), FULL).kind == "table"


def test_a_loss_without_a_counter_has_a_limit_too(found: Found) -> None:
    assert found(OPENED, (500, 500, 500, 500), ALL).kind == "host limit"


def test_records_without_sources_say_nothing_made(explained: Callable[[Any], Any]) -> None:
    cause = explained(trial(300, FEWER))
    assert (cause["kind"], cause["hosts"], cause["each_host"]) == ("rule", "", None)

# SPDX-License-Identifier: Apache-2.0
"""A NAT44 that is not ours, as a wire has it: every connection of every trial is new to it, by its own count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.labs.external import count_new, external_nat, opened_by
from tests.labs.rough import settings_of, slow_tester

import natgauge
from natgauge.errors import BrokenError
from natgauge.labs.contract import Device
from natgauge.records.record import read_lines
from natgauge.records.store import TRIAL_SCHEMA

pytestmark = [
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="an isolated device needs a core of its own"),
]
NAT = "nftables-nat44"
CONNECTIONS = 1000
TIMEOUT = 10
QUICK: dict[str, Any] = {
    **settings_of("connection-rate"), "connections": CONNECTIONS, "repeat": 3, "seed": 5, "grace_seconds": 0.3,
}  # fmt: skip


@pytest.fixture
def wire() -> Iterator[tuple[Device, dict[str, Any]]]:
    """Three namespaces, a NAT44 with short time-outs in the middle; its device, and the ports as a user names them."""
    with external_nat("external", NAT, TIMEOUT) as (lab, ports):
        yield lab.devices[0], ports | {"lab_name": "external-wire"}


def trials_of(answer: natgauge.Result) -> list[dict[str, Any]]:
    return list(read_lines(answer.folder / "trials.jsonl", TRIAL_SCHEMA))


def test_every_trial_opens_as_many_new_connections_as_it_says(
    wire: tuple[Device, dict[str, Any]], tmp_path: Path
) -> None:
    device, ports = wire
    count_new(device)
    with slow_tester():
        answer = natgauge.measure("connection-rate", NAT, results=tmp_path, device_timeout=TIMEOUT, **ports, **QUICK)
    opened = opened_by(device)
    # The first use is the check that the device forwards.
    assert min(opened.values()) == 8
    trials = trials_of(answer)
    assert len(trials) >= 3
    assert len(opened) == len(trials) + 1
    for trial in trials:
        ports_used = trial["request"]["initiator"]["destination_ports"]
        assert ports_used["first"] == ports_used["last"]
        new = opened[ports_used["first"]]
        assert trial["result"]["phase1"]["received_frames"] <= new <= CONNECTIONS
        assert trial["verdict"] != "PASS" or new == trial["plan"]["connections"]
    place = answer.document()["parameters"]["place"]
    assert (place["fresh_trials"], place["device_timeout"]) == ("new-tuples", TIMEOUT)
    assert "table not emptied" in {doubt["word"] for doubt in answer.document()["doubts"]}


def test_a_stateless_translator_is_judged_by_the_addresses_that_the_user_names(tmp_path: Path) -> None:
    stateless = {"stateless": True, "connection_rate": None}
    asked = {**settings_of("throughput"), "connections": 500, "repeat": 1, **stateless, "trial_seconds": 0.2}
    prefix = "2001:db8:64::/96"
    with external_nat("siit", "tayga-siit", TIMEOUT, prefix) as (_, ports), slow_tester():
        ports |= {"nat64_prefix": prefix, "grace_seconds": 0.3, "lab_name": "external-wire"}
        right = natgauge.measure(
            "throughput", "tayga-siit", results=tmp_path / "right", mapped_addresses="198.18.0.2", **ports, **asked
        )
        assert right.document()["median"] > 0
        assert right.document()["parameters"]["place"]["nat64_prefix"] == prefix
        with pytest.raises(BrokenError, match="mistranslated"):
            natgauge.measure(
                "throughput", "tayga-siit", results=tmp_path / "wrong", mapped_addresses="198.18.0.3", **ports, **asked
            )


def test_the_users_commands_empty_and_count(wire: tuple[Device, dict[str, Any]], tmp_path: Path) -> None:
    _, ports = wire
    enter = "ip netns exec ng-external-gateway"
    answer = natgauge.measure(
        "tear-down-rate",
        NAT,
        results=tmp_path,
        profile="quick",
        connections=2000,
        connection_rate=20_000.0,
        grace_seconds=0.3,
        most_seconds=0,
        invalid_repeats=100,
        empty_command=f"{enter} conntrack -F",
        count_command=f"{enter} cat /proc/sys/net/netfilter/nf_conntrack_count",
        **ports,
    )
    trials = trials_of(answer)
    assert trials
    assert all(trial["device_count_before"] == 0 for trial in trials)
    assert any(trial["device_count_after"] == 2000 for trial in trials)
    assert answer.document()["median"] > 0
    assert answer.document()["parameters"]["place"]["fresh_trials"] == "empty-command"

# SPDX-License-Identifier: Apache-2.0
"""`cost` of real devices: what is known of it is found, and nothing is left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.absent import absent
from tests.plans import with_trials

import natgauge
from natgauge.host.sampling import PROGRAM
from natgauge.labs.common import namespaces

#: All but the refusals judge how long something takes.
alone = pytest.mark.alone


def labs() -> list[str]:
    """Namespaces of costs of this process: tests of other processes may run beside the refusals."""
    return [name for name in namespaces.names() if name.startswith(f"ng-cost-{os.getpid()}-")]


def hot_spots(found: natgauge.Result) -> str:
    """Where a frame from the Initiator spends its time."""
    (told,) = (note.text for note in found.notes if note.text.startswith("hot spots of a frame from inside"))
    return told


@alone
@pytest.mark.slow("three rounds of four quantities")
def test_plain_forwarding_costs_as_much_as_plain_forwarding(tmp_path: Path) -> None:
    found = natgauge.measure(
        "cost", "linux-ipv4", connections=10_000, repeat=1, rounds=3, lab_name="known-cost", results=tmp_path
    )
    assert found.document()["unit"] == "x forwarding"
    for quantity in ("new", "up", "down", "both"):
        assert found.document()["figures"][f"{quantity}_ratio_to_forwarding"]["median"] == pytest.approx(1, abs=0.08)
    rounds = [json.loads(line) for line in (found.folder / "rounds.jsonl").read_text().splitlines()]
    assert len(rounds) == 3
    for one in rounds:
        assert one["void"] == {}
        assert [each["name"] for each in one["result"]["contestants"]] == ["device", "plain forwarding", "cable"]
    assert labs() == []


#: The look-up of its connection, which every frame of a NAT needs and no other.
LOOK_UP = "__nf_conntrack_find_get"


@alone
@pytest.mark.slow("perf samples the core and reads its own file afterwards")
@pytest.mark.skipif(absent(PROGRAM), reason="no perf: apt-get install linux-perf")
@pytest.mark.soak  # unit/test_device_readings.py reads what perf prints
@pytest.mark.parametrize(("gateway", "own"), [("nftables-nat44", True), ("linux-ipv4", False)])
def test_hot_spots_of_a_nat_are_functions_that_plain_forwarding_does_not_run(
    gateway: str, tmp_path: Path, *, own: bool
) -> None:
    found = natgauge.measure(
        "cost", gateway, quantities="up", connections=20_000, repeat=1, rounds=3, hot_spots=True, lab_name="known-cost",
        results=tmp_path,
    )  # fmt: skip
    assert (LOOK_UP in hot_spots(found), "conntrack" in hot_spots(found)) == (own, own)


@alone
def test_the_first_trial_is_near_its_end_where_slices_tell_where_to_begin(tmp_path: Path) -> None:
    found = natgauge.measure(
        "connection-rate", "nftables-nat44", connections=20_000, repeat=1, error="20%", confirm=False,
        lab_name="known-cost", results=tmp_path, grace_seconds=0.1,
    )  # fmt: skip
    first = with_trials(found)[0].attempts[0].load
    assert 0.5 < found.document()["median"] / first < 1.5
    assert len((found.folder / "rounds.jsonl").read_text().splitlines()) == 1

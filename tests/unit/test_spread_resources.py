# SPDX-License-Identifier: Apache-2.0
"""Which cells may be measured where, and which at the same time: what workers offer and cells need."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden

from natgauge import spread
from natgauge.campaigns.cells import points
from natgauge.campaigns.plan import Plan, parse
from natgauge.errors import HostError, UsageError
from natgauge.host import cpus
from natgauge.labs.common import locks
from natgauge.spread import resources
from natgauge.version import exact_version

FACTS = {"kernel": "6.18", "cpu": {"model": "Made up"}}
THROUGHPUT: Mapping[str, object] = {"metric": "throughput"}
WIRE: dict[str, Any] = {
    "lab": "wire", "lab_name": "rack", "initiator_port": "a", "initiator_gateway": "02:00:00:00:00:01",
    "responder_port": "b", "responder_gateway": "02:00:00:00:00:02", "device_timeout": 60,
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks need no privilege there."""
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")


def use(monkeypatch: pytest.MonkeyPatch, number: int, siblings: int = 1) -> None:
    """Make this machine one of `number` cores; each physical core has `siblings` of them."""
    there = tuple(range(number))
    monkeypatch.setattr(cpus, "online_cpus", lambda: there)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(there))
    monkeypatch.setattr(
        resources, "_siblings", lambda cpu: tuple(range(cpu // siblings * siblings, (cpu // siblings + 1) * siblings))
    )


def made(device: str, measure: Mapping[str, object], lab: Mapping[str, Any]) -> Plan:
    plan = {"name": "one", "gateways": [device], "lab": lab, "traffic": {"connections": 1000}, "measure": [measure]}
    return parse({**plan, "seed": 1}, "plan")


def wanted(device: str = "linux-ipv4", measure: Mapping[str, object] = THROUGHPUT, **lab: Any) -> resources.Resources:
    plan = made(device, measure, lab)
    return resources.needs(plan, points(plan)[0])


def offered(
    cores: Sequence[int] = (0,), labs: Sequence[str] = ("default",), *, whole: bool = True
) -> resources.Resources:
    return resources.Offer(name="w", cores=tuple(cores), labs=tuple(labs), machine_wide=whole).resources(FACTS)


def test_a_cell_needs_its_lab_and_its_cores_and_one_worker_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    assert wanted() == {f"natgauge {exact_version()}": 1, "cores": 1, "lab default": 1}
    assert wanted(placement="isolated")["cores"] == 2
    assert wanted(placement="isolated", cores=2)["cores"] == 3
    assert wanted(placement="shared", cores=3)["cores"] == 3
    assert wanted(lab_name="rack")["lab rack"] == 1


def test_a_real_server_wants_a_core_of_its_own_or_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    asking = {"metric": "resolution-rate", "far_side": "knot"}
    assert wanted(measure=asking)["cores"] == 2
    assert wanted(measure=asking, placement="isolated", cores=1)["cores"] == 3
    assert wanted(measure={**asking, "far_side": "tester"})["cores"] == 1
    assert wanted(measure=asking, server_cores="3")["cores"] == 2
    shares = wanted(measure=asking, placement="isolated", cores="2", sender_cores="1", server_cores="2")
    assert (shares["cores"], shares["core 1"], shares["core 2"]) == (2, 1, 1)


def test_cores_that_a_plan_names_are_these_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    found = wanted(placement="isolated", cores="2-3", sender_cores="1")
    assert {name: found[name] for name in found if name.startswith("core")} == {
        "cores": 3,
        "core 1": 1,
        "core 2": 1,
        "core 3": 1,
    }
    assert resources.satisfied(found, offered((1, 2, 3)))
    assert not resources.satisfied(found, offered((0, 1, 2)))


def test_gateways_with_a_setting_of_the_whole_machine_never_run_beside_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, 2)
    assert not resources.satisfied(wanted("nftables-nat44"), offered(whole=False))
    assert resources.satisfied(wanted("nftables-nat44"), offered(whole=True))
    assert resources.satisfied(wanted("linux-ipv4"), offered(whole=False))
    # Its second half is such a gateway.
    assert resources.MACHINE_WIDE in wanted("464xlat-tayga")
    assert resources.MACHINE_WIDE not in wanted("tayga-siit")


@pytest.mark.parametrize("cores", [1, 2])
def test_a_dns64_server_needs_no_core_more_for_the_server_that_it_asks(
    monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    """Seen: on two cores `--on local:1` refused what `natgauge run` measures, with the server on the device's cores."""
    use(monkeypatch, 2)
    needed = wanted("unbound-dns64", {"metric": "resolution-rate"}, placement="shared", cores=cores)
    assert needed["cores"] == cores
    assert resources.satisfied(needed, offered((0, 1)))


@pytest.mark.parametrize(("last", "whole"), [("10.0.0.64", False), ("10.0.0.65", True)])
def test_gateways_with_more_neighbours_than_the_kernel_has_room_for_never_run_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, last: str, *, whole: bool
) -> None:
    use(monkeypatch, 2)
    traffic = {"connections": 1000, "source_addresses": f"10.0.0.2-{last}"}
    plan = parse(
        {"name": "one", "gateways": ["linux-ipv4"], "traffic": traffic, "measure": [THROUGHPUT], "seed": 1}, "plan"
    )
    assert (resources.MACHINE_WIDE in resources.needs(plan, points(plan)[0])) == whole


def test_a_chain_whose_devices_have_their_own_cores_needs_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 6)
    assert wanted("464xlat-tayga", cores_each=2)["cores"] == 5
    named = wanted("464xlat-tayga", cores="ce=2-3,pe=4", sender_cores="1")
    assert named["cores"] == 4
    assert {name for name in named if name.startswith("core ")} == {"core 1", "core 2", "core 3", "core 4"}


def test_ports_of_a_wire_are_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 2)
    found = wanted("nftables-nat44", **WIRE)
    assert resources.MACHINE_WIDE in found
    assert found["lab rack"] == 1


def test_labs_of_one_name_on_one_machine_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    plan = parse({"name": "one", "gateways": ["linux-ipv4"], "measure": [{"metric": "throughput"}], "seed": 1}, "plan")
    cell = points(plan)[0].cell
    one, other = (
        resources.Offer(name="w", cores=(core,), labs=("default",), machine_wide=False).lab_of(cell) for core in (1, 3)
    )
    assert (one.lab.lab_name, other.lab.lab_name) == ("default-c1", "default-c3")
    long = replace(cell, lab=replace(cell.lab, lab_name="a" * 32))
    name = resources.Offer(name="w", cores=(3,), labs=(), machine_wide=False).lab_of(long).lab.lab_name
    assert locks.check_name(name).endswith("-c3")


def test_a_number_of_cores_is_the_last_cores_of_the_worker_that_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    worker = resources.Offer(name="w", cores=(4, 5, 6, 7), labs=("default",), machine_wide=False)

    def placed(device: str = "linux-ipv4", **lab: Any) -> Any:
        plan = made(device, THROUGHPUT, lab)
        point = points(plan)[0]
        return worker.on_own_cores(point.cell, resources.core_counts(plan, point)).kind_options

    assert placed(placement="isolated", cores=2).cores == (6, 7)
    assert placed(placement="isolated", cores="2-3").cores == (2, 3)
    assert placed(placement="isolated").cores is None
    # There the number is an option of the lab, which is no core of the tester's.
    assert placed("nftables-nat44", **WIRE, cores=2).device_cores == 2


def test_a_lab_that_is_kept_up_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 2)
    plan = made("linux-ipv4", THROUGHPUT, {})
    point = points(plan)[0]
    assert resources.MACHINE_WIDE in resources.needs(plan, point, {("default", "netns")})
    assert resources.MACHINE_WIDE not in resources.needs(plan, point, {("other", "netns"), ("default", "vm")})


def test_what_nobody_has_is_named(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    use(monkeypatch, 4)
    every = [offered(), offered((1,), ("rack",), whole=False)]
    golden(resources.lacking(wanted(lab_name="attic"), every))
    golden(resources.lacking(wanted(placement="isolated", cores=3), every))
    assert "at once" in resources.lacking(wanted("nftables-nat44", lab_name="rack"), every)


def test_a_core_and_its_sibling_are_one_workers_alone(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    use(monkeypatch, 4, siblings=2)
    with resources.reserved("a", (0,), ("default",)) as first:
        assert first.machine_wide
        with golden.raises(HostError), resources.reserved("b", (1,), ()):
            pass
        with resources.reserved("b", (2, 3), ("default",)) as second:
            assert not second.machine_wide
    with resources.reserved("b", (1,), ()) as again:
        assert again.machine_wide
    with golden.raises(UsageError), resources.reserved("b", (1,), ("Not one",)):
        pass


def test_workers_of_one_machine_have_as_many_whole_cores_each(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    use(monkeypatch, 8, siblings=2)
    assert resources.shares(1) == [tuple(range(8))]
    assert resources.shares(2) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert resources.shares(3) == [(2, 3), (4, 5), (6, 7)]
    with golden.raises(UsageError):
        resources.shares(5)


def test_alike_are_machines_whose_figures_are_of_one_kind() -> None:
    assert resources.likeness(FACTS, 2) == resources.likeness({**FACTS, "load_average": [1, 2, 3]}, 2)
    assert (
        len(
            {
                resources.likeness(FACTS, 2),
                resources.likeness(FACTS, 4),
                resources.likeness({**FACTS, "kernel": "7"}, 2),
            }
        )
        == 3
    )


def test_workers_are_counted_by_machine() -> None:
    here = offered()
    there = {name: amount for name, amount in here.items() if not name.startswith("machine ")} | {"machine x": 1.0}
    assert resources.workers_on([here, offered((1,)), there]) == {resources.machine_digest(): 2, "x": 1}


@pytest.mark.parametrize(
    ("text", "scheduler", "workers"),
    [
        ("dask://lab1:9000", "lab1:9000", 0),
        ("dask://lab1", "lab1:8786", 0),
        ("dask://[fd00::1]:9000", "[fd00::1]:9000", 0),
        ("local:3", "", 3),
    ],
)
def test_where_says_who_measures(text: str, scheduler: str, workers: int) -> None:
    found = spread.where(text)
    assert (found.scheduler, found.workers) == (scheduler, workers)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "local",
        "local:",
        "local:0",
        "local:-1",
        "local:two",
        "dask://",
        "tcp://a:1",
        "dask://a:b",
        "dask://a:0",
        "dask://a/b",
    ],
)
def test_anything_else_is_refused(text: str, golden: Golden) -> None:
    with golden.raises(UsageError):
        spread.where(text)

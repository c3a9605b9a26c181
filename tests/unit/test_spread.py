# SPDX-License-Identifier: Apache-2.0
"""Workers: what they offer and cells need, and campaigns on workers that are processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import distributed
import pytest
from tests.unit.campaigning import PLAN, asked, events, quick_disk, results
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.spreading import WORKERS, alone, counted_once, make_bench, own_run, spread_out

from natgauge import spread
from natgauge.campaigns.cells import points
from natgauge.campaigns.plan import Plan, parse, read
from natgauge.errors import EndedBySignal, HostError, UsageError
from natgauge.host import machine
from natgauge.labs.common import locks
from natgauge.spread import access, coordinator, worker
from natgauge.spread.cluster import ClosedScheduler, listening, workers_at
from natgauge.spread.cluster import run as run_until_signal
from natgauge.spread.worker import WorkerMachine
from natgauge.version import exact_version

__all__ = ["alone", "own_run", "quick_disk"]


@pytest.mark.slow("starts worker processes, each of which imports Dask")
def test_many_workers_do_what_one_machine_does(alone: Path, tmp_path: Path) -> None:
    spread_out(tmp_path)
    assert results(tmp_path) == results(alone)
    assert asked(tmp_path) == asked(alone)
    counted_once(tmp_path)
    begun = events(tmp_path, "repetition")
    assert {one["worker"]["beside"] for one in begun} == {WORKERS - 1}
    visits = {one["worker"] for one in events(tmp_path, "visit")}
    assert visits == {one["worker"]["name"] for one in begun}
    # The hash table of connections is the whole machine's, so one worker has all cells that have one.
    assert len({one["worker"]["name"] for one in begun if one["cell"].startswith("nftables")}) == 1


def die(*_: Any, **__: Any) -> None:
    """Be a worker that is killed while it plans the cells."""
    os.kill(os.getpid(), signal.SIGKILL)


def samples(*, dask_worker: distributed.Worker) -> bool:
    """Whether Dask takes samples of what a worker does."""
    return "profile" in dask_worker.periodic_callbacks


@pytest.mark.slow("starts a worker process, which imports Dask")
def test_a_worker_plans_what_it_has_a_lab_for_nobody_samples_it_and_its_death_is_no_fault_of_natgauge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    where = spread.where("local:1")

    def plan(**lab: str) -> Any:
        return read(path).model_copy(update={"seed": 1, "lab": lab})

    with workers_at(where, ["attic"], access.client_of(where, None, insecure=False), make_bench=make_bench) as found:
        assert list(found.client.run(samples).values()) == [False]
        with pytest.raises(HostError, match=r'no worker has lab "rack", they have attic .* natgauge worker'):
            found.plan_cells(plan(lab_name="rack"), "plan")
        assert found.plan_cells(plan(lab_name="attic"), "plan")
        with pytest.raises(UsageError, match=r"plan: .*cores"):
            found.plan_cells(plan(lab_name="attic", placement="isolated", cores="0,1"), "plan")
        monkeypatch.setattr(coordinator, "look", die)
        with pytest.raises(HostError, match=r"all at local:1 died while they were looked at"):
            found.plan_cells(plan(lab_name="attic"), "plan")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Certificates of scheduler and campaign."""
    access.make_certificates(tmp_path / "certificates")
    return tmp_path / "certificates"


@pytest.fixture
def scheduler(folder: Path) -> Iterator[str]:
    """One without workers of ours, as `--on` names it."""
    named = {
        f"tls_{role}_{part}": str(folder / f"{role}{ending}.pem")
        for role in ("scheduler", "client")
        for part, ending in (("cert", ""), ("key", "-key"))
    }
    security = distributed.Security(require_encryption=True, tls_ca_file=str(folder / "ca.pem"), **named)
    with distributed.SpecCluster(
        scheduler={"cls": ClosedScheduler, "options": {**listening("127.0.0.1", security), "port": 0}},
        security=security,
        silence_logs=50,
    ) as cluster:
        yield cluster.scheduler_address.replace("tls://", "dask://")


def test_a_scheduler_without_a_worker_or_none_is_told_in_one_line_and_nothing_is_made(
    scheduler: str, folder: Path, in_an_empty_folder: Path, ran: Ran
) -> None:
    (in_an_empty_folder / "small.toml").write_text(PLAN)
    start = f"none is at {scheduler}; start one on each machine that is to measure: natgauge worker {scheduler}"
    nowhere = "dask://127.0.0.1:9"
    for place, said in ((scheduler, start), (nowhere, f"no Dask scheduler answers at {nowhere}")):
        told = ran(["run", "small.toml", "--on", place, "--certificates", str(folder)], 3).err
        assert said in told
        assert told.count("\n") == 1
        assert not (in_an_empty_folder / "results").exists()


def test_without_dask_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Ran) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    (tmp_path / "small.toml").write_text(PLAN)
    for command in (["run", str(tmp_path / "small.toml"), "--on", "local:1"], ["worker", "dask://lab1"]):
        assert "pip install 'natgauge[dask]'" in ran(command, 3).err


class _Scheduler:
    """A scheduler at which these workers are, and its client."""

    def __init__(self, *offered: worker.Resources, python: str = "3.11.0", silent: bool = False) -> None:
        self.workers = {
            f"tcp://w:{number}": {"name": f"w{number}", "resources": one} for number, one in enumerate(offered)
        }
        self.python = python
        self.silent = silent
        self.scheduler = self

    def sync(self, request: Callable[[], Coroutine[Any, Any, Any]], *, callback_timeout: float) -> Any:
        """Run a coroutine within this time, as a client does."""
        return asyncio.run(asyncio.wait_for(request(), callback_timeout))

    async def identity(self, *, n_workers: int) -> Any:
        """Tell all its workers, or nothing ever."""
        assert n_workers == -1
        if self.silent:
            await asyncio.sleep(3600)
        return {"workers": self.workers}

    async def run(self, _function: Any, **_options: Any) -> Any:
        """Look at the machines, whose loads differ."""
        facts = {"kernel": "6.18", "cpu": {"model": "Made up"}}
        return {
            address: WorkerMachine({**facts, "load_average": [number]}, frozenset())
            for number, address in enumerate(self.workers)
        }

    async def get_versions(self) -> Any:
        here = {"packages": {"dask": "1", "distributed": "1", "python": "3.11.7.final.0"}}
        there = {"packages": {**here["packages"], "python": self.python}}
        return {"client": here, "scheduler": here, "workers": dict.fromkeys(self.workers, there)}


def offering(*offered: worker.Resources, **scheduler: Any) -> Any:
    """Workers that offer this."""
    client: Any = _Scheduler(*offered, **scheduler)
    return coordinator.Workers(client, "dask://a", host_name=False)


OURS = {worker.of_worker(): 1.0}


@pytest.mark.parametrize(
    ("offered", "scheduler", "said"),
    [
        ([OURS, {"natgauge 0.0.9": 1.0}], {}, r"w1 at dask://a has natgauge 0\.0\.9, here is .*; .* the same version"),
        ([OURS], {"python": "3.13.1"}, r"worker w0 at dask://a has python 3\.13, here is 3\.11"),
        ([OURS], {"silent": True}, r"the scheduler at dask://a is gone .* --resume"),
    ],
    ids=["another natgauge", "another Python", "a scheduler that answers no more"],
)
def test_workers_that_cannot_measure_for_us_are_refused(
    offered: list[worker.Resources], scheduler: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "ANSWER_SECONDS", 0.05)
    with pytest.raises(HostError, match=said):
        offering(*offered, **scheduler)


def test_cells_are_planned_once_for_the_cores_of_all_workers_and_alike_machines_are_one() -> None:
    shares = [
        worker.Offer(name="w", cores=cores, labs=("default",), machine_wide=True).resources({})
        for cores in ((400, 401), (402, 403))
    ]
    found = offering(*shares, python="3.11.1")

    def planned(**lab: str) -> worker.Resources:
        cell = {"name": "one", "gateways": ["linux-ipv4"], "measure": [{"metric": "throughput"}], "seed": 1}
        (point,) = found.plan_cells(parse({**cell, "lab": {"placement": "isolated", **lab}}, "plan"), "plan")
        needed: worker.Resources = found.needs[point.name]
        return needed

    needs = planned(cores="403", sender_cores="402")
    assert (needs["core 402"], needs["core 403"]) == (1, 1)
    assert [one["load_average"] for one in found.machines] == [[0]]
    with pytest.raises(HostError, match="no worker has all it needs at once"):
        planned(cores="402", sender_cores="401")
    with pytest.raises(UsageError, match="core 0 cannot be used here; choose from 400,401,402,403"):
        planned(cores="0", sender_cores="401")


def test_workers_that_are_none_of_ours_are_left_alone() -> None:
    assert offering(OURS, {"GPU": 1.0}).offers() == [OURS]


# A signal ends a scheduler or worker whatever its event loop does at that moment.


def second(_number: int, _frame: FrameType | None) -> None:
    """Handler of the signals that follow the first."""


def first(number: int, _frame: FrameType | None) -> None:
    """Handler of the first signal, as the command line has it."""
    signal.signal(signal.SIGTERM, second)
    raise EndedBySignal(number)


@pytest.fixture
def handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, first)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_that_arrives_in_a_callback_ends_what_runs_after_its_undoing(times: int) -> None:
    undone = []

    async def main() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(30)
        finally:
            for _ in range(times - 1):
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.01)
            undone.append("all")

    with pytest.raises(EndedBySignal):
        run_until_signal(main())
    assert undone == ["all"]
    assert signal.getsignal(signal.SIGTERM) is second
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("handlers")
def test_without_a_signal_its_handlers_are_those_of_before_and_errors_are_raised() -> None:
    async def main() -> None:
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        run_until_signal(main())
    assert signal.getsignal(signal.SIGTERM) is first


# Which cells may be measured where, and which at the same time: what workers offer and cells need.

FACTS = {"kernel": "6.18", "cpu": {"model": "Made up"}}
THROUGHPUT: Mapping[str, object] = {"metric": "throughput"}
WIRE: dict[str, Any] = {
    "lab": "wire", "lab_name": "rack", "initiator_port": "a", "initiator_gateway": "02:00:00:00:00:01",
    "responder_port": "b", "responder_gateway": "02:00:00:00:00:02", "device_timeout": 60,
}  # fmt: skip


#: A query to a server on its own cores.
ASKING = {"metric": "resolution-rate", "far_side": "knot"}
ISOLATED: dict[str, Any] = {"placement": "isolated"}
DNS64 = {"device": "unbound-dns64", "measure": {"metric": "resolution-rate"}, "placement": "shared"}


def use(monkeypatch: pytest.MonkeyPatch, number: int, siblings: int = 1) -> None:
    """Make this machine one of `number` cores; each physical core has `siblings` of them."""
    there = tuple(range(number))
    monkeypatch.setattr(machine, "online_cpus", lambda: there)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(there))
    monkeypatch.setattr(
        worker, "_siblings", lambda cpu: tuple(range(cpu // siblings * siblings, (cpu // siblings + 1) * siblings))
    )


def made(device: str, measure: Mapping[str, object], lab: Mapping[str, Any]) -> Plan:
    plan = {"name": "one", "gateways": [device], "lab": lab, "traffic": {"connections": 1000}, "measure": [measure]}
    return parse({**plan, "seed": 1}, "plan")


def wanted(device: str = "linux-ipv4", measure: Mapping[str, object] = THROUGHPUT, **lab: Any) -> worker.Resources:
    plan = made(device, measure, lab)
    return worker.needs(plan, points(plan)[0])


def offered(cores: Sequence[int] = (0,), labs: Sequence[str] = ("default",), *, whole: bool = True) -> worker.Resources:
    return worker.Offer(name="w", cores=tuple(cores), labs=tuple(labs), machine_wide=whole).resources(FACTS)


#: Cores of the machine, a cell, and what it needs; of the cores that it names no others than these.
NEEDED: list[tuple[int, dict[str, Any], dict[str, float]]] = [
    (4, {}, {f"natgauge {exact_version()}": 1, "cores": 1, "lab default": 1}),
    (4, ISOLATED, {"cores": 2}),
    (4, {**ISOLATED, "cores": 2}, {"cores": 3}),
    (4, {"placement": "shared", "cores": 3}, {"cores": 3}),
    (4, {"lab_name": "rack"}, {"lab rack": 1}),
    # A real server wants a core of its own, or those that are named.
    (4, {"measure": ASKING}, {"cores": 2}),
    (4, {"measure": ASKING, **ISOLATED, "cores": 1}, {"cores": 3}),
    (4, {"measure": {**ASKING, "far_side": "tester"}}, {"cores": 1}),
    (4, {"measure": ASKING, "server_cores": "3"}, {"cores": 2, "core 3": 1}),
    (
        4,
        {"measure": ASKING, **ISOLATED, "cores": "2", "sender_cores": "1", "server_cores": "2"},
        {"cores": 2, "core 1": 1, "core 2": 1},
    ),
    # Seen: on two cores `--on local:1` refused what `natgauge run` measures, the server being on the device's cores.
    (2, {**DNS64, "cores": 1}, {"cores": 1}),
    (2, {**DNS64, "cores": 2}, {"cores": 2}),
    # A chain whose devices have their own cores needs all of them.
    (6, {"device": "464xlat-tayga", "cores_each": 2}, {"cores": 5, worker.MACHINE_WIDE: 1}),
    (
        6,
        {"device": "464xlat-tayga", "cores": "ce=2-3,pe=4", "sender_cores": "1"},
        {"cores": 4, "core 1": 1, "core 2": 1, "core 3": 1, "core 4": 1, worker.MACHINE_WIDE: 1},
    ),
    # Ports of a wire are there once, and so is a setting of the whole machine; of the chain the second half has one.
    (2, {"device": "nftables-nat44", **WIRE}, {"lab rack": 1, worker.MACHINE_WIDE: 1}),
    (2, {"device": "nftables-nat44"}, {worker.MACHINE_WIDE: 1}),
    (2, {"device": "464xlat-tayga"}, {worker.MACHINE_WIDE: 1}),
]


@pytest.mark.parametrize(("cores", "cell", "needed"), NEEDED)
def test_a_cell_needs(
    cores: int, cell: dict[str, Any], needed: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, cores)
    found = wanted(**cell)
    assert needed.items() <= found.items()
    assert {name for name in found if name.startswith("core ")} == {name for name in needed if name.startswith("core ")}
    assert (worker.MACHINE_WIDE in found) == (worker.MACHINE_WIDE in needed)
    assert worker.satisfied(found, offered(range(cores), ("default", "rack")))


def test_gateways_with_a_setting_of_the_whole_machine_never_run_beside_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, 2)
    assert not worker.satisfied(wanted("nftables-nat44"), offered(whole=False))
    assert worker.satisfied(wanted("linux-ipv4"), offered(whole=False))
    assert worker.MACHINE_WIDE not in wanted("tayga-siit")


def test_the_example_for_workers_has_cells_for_several_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    plan = read(Path(__file__).parents[2] / "examples" / "spread.toml")
    found = [worker.needs(plan, point) for point in points(plan.model_copy(update={"seed": 1}))]
    assert [worker.MACHINE_WIDE in one for one in found] == [True] * 3 + [False] * 6
    assert {one["cores"] for one in found} == {1.0}


def test_cores_that_a_plan_names_are_these_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    found = wanted(placement="isolated", cores="2-3", sender_cores="1")
    assert {name: found[name] for name in found if name.startswith("core")} == {
        "cores": 3, "core 1": 1, "core 2": 1, "core 3": 1,
    }  # fmt: skip
    assert worker.satisfied(found, offered((1, 2, 3)))
    assert not worker.satisfied(found, offered((0, 1, 2)))


@pytest.mark.parametrize(("last", "whole"), [("10.0.0.64", False), ("10.0.0.65", True)])
def test_gateways_with_more_neighbours_than_the_kernel_has_room_for_never_run_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, last: str, *, whole: bool
) -> None:
    use(monkeypatch, 2)
    traffic = {"connections": 1000, "source_addresses": f"10.0.0.2-{last}"}
    plan = parse(
        {"name": "one", "gateways": ["linux-ipv4"], "traffic": traffic, "measure": [THROUGHPUT], "seed": 1}, "plan"
    )
    assert (worker.MACHINE_WIDE in worker.needs(plan, points(plan)[0])) == whole


def test_labs_of_one_name_on_one_machine_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    plan = parse({"name": "one", "gateways": ["linux-ipv4"], "measure": [{"metric": "throughput"}], "seed": 1}, "plan")
    cell = points(plan)[0].cell
    one, other = (
        worker.Offer(name="w", cores=(core,), labs=("default",), machine_wide=False).lab_of(cell) for core in (1, 3)
    )
    assert (one.lab.lab_name, other.lab.lab_name) == ("default-c1", "default-c3")
    long = replace(cell, lab=replace(cell.lab, lab_name="a" * 32))
    name = worker.Offer(name="w", cores=(3,), labs=(), machine_wide=False).lab_of(long).lab.lab_name
    assert locks.check_name(name).endswith("-c3")


def test_a_number_of_cores_is_the_last_cores_of_the_worker_that_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 4)
    offer = worker.Offer(name="w", cores=(4, 5, 6, 7), labs=("default",), machine_wide=False)

    def placed(device: str = "linux-ipv4", **lab: Any) -> Any:
        plan = made(device, THROUGHPUT, lab)
        point = points(plan)[0]
        return offer.on_own_cores(point.cell, worker.core_counts(plan, point)).kind_options

    assert placed(placement="isolated", cores=2).cores == (6, 7)
    assert placed(placement="isolated", cores="2-3").cores == (2, 3)
    assert placed(placement="isolated").cores is None
    # There the number is an option of the lab, which is no core of the tester's.
    assert placed("nftables-nat44", **WIRE, cores=2).device_cores == 2


def test_a_lab_that_is_kept_up_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 2)
    plan = made("linux-ipv4", THROUGHPUT, {})
    point = points(plan)[0]
    assert worker.MACHINE_WIDE in worker.needs(plan, point, {("default", "netns")})
    assert worker.MACHINE_WIDE not in worker.needs(plan, point, {("other", "netns"), ("default", "vm")})


def test_what_nobody_has_is_named(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    use(monkeypatch, 4)
    every = [offered(), offered((1,), ("rack",), whole=False)]
    golden(worker.lacking(wanted(lab_name="attic"), every))
    golden(worker.lacking(wanted(placement="isolated", cores=3), every))
    assert "at once" in worker.lacking(wanted("nftables-nat44", lab_name="rack"), every)


def test_a_core_and_its_sibling_are_one_workers_alone(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    use(monkeypatch, 4, siblings=2)
    with worker.reserved("a", (0,), ("default",)) as first:
        assert first.machine_wide
        with golden.raises(HostError), worker.reserved("b", (1,), ()):
            pass
        with worker.reserved("b", (2, 3), ("default",)) as second:
            assert not second.machine_wide
    with worker.reserved("b", (1,), ()) as again:
        assert again.machine_wide
    with golden.raises(UsageError), worker.reserved("b", (1,), ("Not one",)):
        pass


def test_workers_of_one_machine_have_as_many_whole_cores_each(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    use(monkeypatch, 8, siblings=2)
    assert worker.shares(1) == [tuple(range(8))]
    assert worker.shares(2) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert worker.shares(3) == [(2, 3), (4, 5), (6, 7)]
    with golden.raises(UsageError):
        worker.shares(5)


def test_alike_are_machines_whose_figures_are_of_one_kind() -> None:
    assert worker.likeness(FACTS, 2) == worker.likeness({**FACTS, "load_average": [1, 2, 3]}, 2)
    unlike = [(FACTS, 2), (FACTS, 4), ({**FACTS, "kernel": "7"}, 2)]
    assert len({worker.likeness(facts, cores) for facts, cores in unlike}) == 3


def test_workers_are_counted_by_machine() -> None:
    here = offered()
    there = {name: amount for name, amount in here.items() if not name.startswith("machine ")} | {"machine x": 1.0}
    assert worker.workers_on([here, offered((1,)), there]) == {worker.machine_digest(): 2, "x": 1}


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
        "", "local", "local:", "local:0", "local:-1", "local:two",
        "dask://", "tcp://a:1", "dask://a:b", "dask://a:0", "dask://a/b",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str, golden: Golden) -> None:
    with golden.raises(UsageError):
        spread.where(text)

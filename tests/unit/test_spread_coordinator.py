# SPDX-License-Identifier: Apache-2.0
"""The coordinator of workers, with a Dask whose tasks run in this process or end in every way that Dask's may."""

from __future__ import annotations

import asyncio
import concurrent.futures
import pickle
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dask import config
from distributed import KilledWorker, Reschedule, Status
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.campaigning import (
    OF_SUBSCRIBERS,
    OTHER_SUBSCRIBER,
    PLAN,
    SUBSCRIBER,
    Benches,
    campaign,
    events,
    progress,
    quick_disk,
    results,
    summaries,
)
from tests.unit.simulated import Gateway
from tests.unit.spreading import SMALL, alone, counted_once, own_run, spread_out

from natgauge.campaigns.journal import JournalLine
from natgauge.campaigns.state import CampaignState, EvidenceLines
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host import machine
from natgauge.inputs.question import Cell
from natgauge.spread import cluster, coordinator, worker
from natgauge.spread.coordinator import Workers
from natgauge.spread.worker import NatgaugeWorker, Offer, Resources
from natgauge.trial.controls import Observer, Silent

__all__ = ["alone", "own_run", "quick_disk"]

#: Dask's default: a task that lost its worker four times is given up.
TRIES = 4
ONCE = SMALL.replace("repetitions = 2", "repetitions = 1")


class Future:
    """The future of a task that the worker runs when nothing else is to do.

    Attributes:
        cell: that the task runs.
        priority: of the task.
        released: whether the coordinator no longer wants it.
    """

    def __init__(
        self,
        cell: str,
        priority: int,
        run: Callable[[], Any],
        then: Callable[[Any], None],
    ) -> None:
        self.cell = cell
        self.priority = priority
        self.released = False
        self._run = run
        self._then = then
        self._ended = False

    def end(self) -> None:
        """Run the task, and tell that it has ended."""
        ended = concurrent.futures.Future[Any]()
        try:
            ended.set_result(self._run())
        except (NatgaugeError, KilledWorker, CancelledError, TimeoutError) as error:
            ended.set_exception(error)
        self._ended = True
        self._then(ended)

    @property
    def awaited(self) -> bool:
        """Whether the coordinator waits for its end."""
        return not (self._ended or self.released)

    def release(self) -> None:
        self.released = True


class Dask:
    """A client, its scheduler and its only worker.

    Attributes:
        errors: of the futures, in the order in which tasks are submitted; a future without an error ends well.
        begins: whether a worker begins a task that fails.
        futures: in order.
        joined: whether a second worker of this machine has joined.
        task_state: of each task, as the worker has it.
    """

    def __init__(self, make_bench: Callable[[Cell, Observer], Any]) -> None:
        self.errors: list[Sequence[Exception]] = []
        self.begins = True
        self.futures: list[Future] = []
        self.joined = False
        self.task_state = "executing"
        self.offer = Offer(name="w0", cores=(0,), labs=("default",), machine_wide=True)
        self.scheduler = self
        self.measure_by(make_bench)
        self.status = Status.running
        self.key = ""
        self.messages: list[Any] = []

    def measure_by(self, make_bench: Callable[[Cell, Observer], Any]) -> None:
        """Let the worker measure on other benches."""
        self.plugins = {"natgauge": NatgaugeWorker(self.offer, make_bench)}

    # The client

    def sync(self, request: Callable[[], Coroutine[Any, Any, Any]], *, callback_timeout: float) -> Any:
        return asyncio.run(asyncio.wait_for(request(), callback_timeout))

    async def identity(self, *, n_workers: int) -> Any:
        assert n_workers == -1
        offered = self.offer.resources(machine.facts())
        second = {"tcp://v": {"name": "w1", "resources": offered}} if self.joined else {}
        return {"workers": {"tcp://w": {"name": "w0", "resources": offered}, **second}}

    async def get_versions(self) -> Any:
        here = {"packages": {"dask": "1", "distributed": "1", "python": "3.11"}}
        return {"client": here, "scheduler": here, "workers": {"tcp://w": here}}

    async def run(self, function: Callable[..., Any], *given: Any, host_name: bool, **_: Any) -> Any:
        return {"tcp://w": function(*given, host_name=host_name, dask_worker=self)}

    def subscribe_topic(self, topic: str, handler: Callable[[Any], None]) -> None:
        """Hand on messages, after one of another campaign."""
        assert topic == worker.TOPIC
        self._handler = handler
        handler((0.0, {"run": "another", "name": "w9", "kind": "trial", "content": "{}", "worker": "tcp://w9"}))

    def submit(self, key: str, task: Any, wanted: Resources, priority: int, then: Callable[[Any], None]) -> Future:
        """Take a task; one that fails is begun at most."""
        assert wanted
        sent, errors = pickle.dumps(task), self.errors.pop(0) if self.errors else ()

        def run() -> Any:
            self.key = key
            if not errors:
                return worker.measure(pickle.loads(sent))  # noqa: S301 - as Dask does
            if self.begins:
                worker._Run(self).send("begin", "")  # type: ignore[arg-type]
            raise errors[0]

        self.futures.append(Future(task.point.name, priority, run, then))
        return self.futures[-1]

    def put(self, message: Any) -> None:
        """Keep a message for the coordinator, whose inbox this is, too."""
        self.messages.append(message)

    def get(self, timeout: float) -> Any:
        """The next message; where there is none, the worker runs a task."""
        assert timeout > 0
        if not self.messages:
            max((one for one in self.futures if one.awaited), key=lambda one: one.priority).end()
        return self.messages.pop(0)

    # The worker

    def get_current_task(self) -> str:
        return self.key

    def log_event(self, _topic: str, message: Any) -> None:
        """Send a message, with the worker's address as Dask does."""
        self._handler((0.0, {**message, "worker": "tcp://w"}))

    @property
    def state(self) -> Any:
        return SimpleNamespace(tasks={self.key: SimpleNamespace(state=self.task_state)})


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> Iterator[Dask]:
    """A Dask in place of `--on`."""
    found = Dask(Benches())
    client: Any = found

    @contextmanager
    def workers_at(*_: Any, **__: Any) -> Iterator[Workers]:
        made = Workers(client, "dask://a", host_name=False)
        monkeypatch.setattr(made, "submit", found.submit)
        yield made

    monkeypatch.setattr(cluster, "workers_at", workers_at)
    monkeypatch.setattr(coordinator, "SimpleQueue", lambda: client)
    monkeypatch.setattr(worker, "get_worker", lambda: found)
    with config.set({"distributed.scheduler.allowed-failures": TRIES - 1}):
        yield found


def killed() -> KilledWorker:
    last: Any = SimpleNamespace(name="w0")
    return KilledWorker("task", last, TRIES - 1)


def same(folder: Path, reference: Path) -> bool:
    """Whether results are the same, but for the notes, which speak of the worker's lab."""
    return {name: one[:3] for name, one in results(folder).items()} == {
        name: one[:3] for name, one in results(reference).items()
    }


def test_what_workers_measure_is_what_one_machine_measures(dask: Dask, alone: Path, tmp_path: Path) -> None:
    spread_out(tmp_path)
    assert same(tmp_path, alone)
    counted_once(tmp_path)
    assert len(dask.futures) == len(events(tmp_path, "visit")) == 8


def test_the_command_of_a_result_has_the_lab_of_the_plan(dask: Dask, tmp_path: Path) -> None:
    labs = []

    def in_own_lab(cell: Cell, observer: Observer) -> Any:
        own = dask.offer.lab_of(cell)
        labs.append(own.lab.lab_name)
        return Benches()(own, observer)

    dask.measure_by(in_own_lab)
    spread_out(tmp_path)
    assert set(labs) == {"default-c0"}
    commands = [str(found.parameter("command")) for found in summaries(tmp_path).values()]
    assert len(commands) == 4
    assert not [one for one in commands if "--lab-name" in one]


def test_a_worker_that_joins_while_a_repetition_is_measured_counts_for_it(
    dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: the repetition had the number of workers at its submission, hours before."""

    def gateway(_cell: Cell) -> Gateway:
        dask.joined = True
        return Gateway(establishes=30_000, forwards=60_000)

    dask.measure_by(Benches(gateway=gateway))
    monkeypatch.setattr(coordinator, "POLL_SECONDS", 1e-9)
    spread_out(tmp_path, plan=ONCE)
    assert {one["worker"]["beside"] for one in events(tmp_path, "repetition")} == {1}
    found = summaries(tmp_path).values()
    assert {result.parameter("beside") for result in found} == {1}
    assert all("machine shared" in [doubt.word for doubt in result.doubts] for result in found)


def test_a_worker_with_another_profile_of_subscribers_measures_none(dask: Dask, tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(SUBSCRIBER)

    def make_bench(cell: Cell, observer: Observer) -> Any:
        profile.write_text(OTHER_SUBSCRIBER)
        return Benches()(cell, observer)

    dask.measure_by(make_bench)
    with pytest.raises(UsageError, match="the file that subscribers of cell nftables-nat44 names is another one"):
        spread_out(tmp_path, plan=OF_SUBSCRIBERS)


def test_a_campaign_tells_which_cell_no_worker_that_is_left_can_measure(
    dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: it stood still without a word."""

    def gateway(_cell: Cell) -> Gateway:
        dask.offer = replace(dask.offer, labs=("attic",))
        return Gateway(establishes=30_000, forwards=60_000)

    told: list[str] = []
    observer = Silent()
    monkeypatch.setattr(observer, "stage", told.append)
    dask.measure_by(Benches(gateway=gateway))
    monkeypatch.setattr(coordinator, "POLL_SECONDS", 1e-9)
    spread_out(tmp_path, observer, plan=ONCE)
    waiting = [text for text in told if text.startswith("waiting for a worker: cell ")]
    assert 'no worker has lab "default", they have attic' in waiting[0]


@pytest.mark.usefixtures("dask")
def test_a_line_has_the_time_at_which_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Earlier(CampaignState):
        def line_of(self, event: str, fields: Mapping[str, Any]) -> tuple[JournalLine, EvidenceLines]:
            return super().line_of(event, {**fields, "at": 1000.0})

    monkeypatch.setattr(worker, "CampaignState", Earlier)
    spread_out(tmp_path)
    assert {one["at"] for one in events(tmp_path, "repetition")} == {1000.0}


@pytest.mark.parametrize("begins", [True, False])
def test_a_lost_worker_costs_one_repetition(*, begins: bool, dask: Dask, alone: Path, tmp_path: Path) -> None:
    dask.begins = begins
    dask.errors = [(), (killed(),), (), (killed(),)]
    spread_out(tmp_path)
    assert same(tmp_path, alone)
    counted_once(tmp_path)
    assert len(dask.futures) == 10
    assert len(events(tmp_path, "repetition")) == 8


@pytest.mark.parametrize("begins", [True, False])
def test_a_cell_that_loses_its_worker_again_and_again_is_broken(*, begins: bool, dask: Dask, tmp_path: Path) -> None:
    """Each error stands for one try here, because no message of the other tries comes."""
    dask.begins = begins
    dask.errors = [(), (killed(),), (), *[(killed(),)] * (TRIES - 1)]
    spread_out(tmp_path, plan=ONCE)
    broken = {one.broken for one in progress(tmp_path).measurements} - {""}
    assert broken == {f"the worker died in {TRIES} tries, the last one was w0"}
    assert len(events(tmp_path, "repetition")) == 2


@pytest.mark.parametrize("lost", [CancelledError, TimeoutError])
def test_a_lost_connection_ends_the_session_and_the_next_one_goes_on(
    lost: type[Exception], dask: Dask, alone: Path, tmp_path: Path
) -> None:
    dask.errors = [(), (lost(),)]
    with pytest.raises(HostError, match=rf"scheduler at dask://a is gone \({lost.__name__}\); .* --resume"):
        spread_out(tmp_path)
    before = len(events(tmp_path, "repetition"))
    assert before > 0
    campaign(tmp_path, Benches(), plan=SMALL)
    assert same(tmp_path, alone)
    counted_once(tmp_path)


def test_a_worker_that_cannot_measure_ends_the_session(dask: Dask, tmp_path: Path) -> None:
    dask.errors = [(HostError("no memory"),)]
    with pytest.raises(HostError, match=r"^worker w0: no memory$"):
        spread_out(tmp_path)
    assert not any(future.awaited for future in dask.futures)


class LosesItsHost(Gateway):
    """A gateway whose host runs out of memory after some trials."""

    def __init__(self, trials: int) -> None:
        super().__init__(establishes=30_000, forwards=60_000)
        self.trials_left = trials

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        self.trials_left -= 1
        if self.trials_left < 0:
            raise HostError("no memory")
        return super().measure(plan)


def test_repetitions_that_ended_before_an_error_are_kept(dask: Dask, alone: Path, tmp_path: Path) -> None:
    """The host fails in the second trial of a cell's second measurement; that repetition is measured again."""
    gateways = [Gateway(establishes=30_000, forwards=60_000), LosesItsHost(1)]
    failing = Benches(gateway=lambda _cell: gateways.pop(0))
    dask.measure_by(failing)
    with pytest.raises(HostError, match=r"^worker w0: no memory$"):
        spread_out(tmp_path)
    assert len(events(tmp_path, "repetition")) == 1
    assert not any(future.awaited for future in dask.futures)
    campaign(tmp_path, Benches(), plan=SMALL)
    assert same(tmp_path, alone)
    counted_once(tmp_path)


def test_a_device_that_breaks_in_one_cell_is_not_tried_in_others(dask: Dask, tmp_path: Path) -> None:
    broken = Benches(breaks={"linux-ipv4": BrokenError("linux-ipv4: does not come up")})
    dask.measure_by(broken)
    spread_out(tmp_path, plan=PLAN)
    assert [device for device, _ in broken.cells].count("linux-ipv4") == 2
    found = progress(tmp_path).measurements
    assert {one.cell[:3] for one in found if one.broken} == {"lin"}
    assert all(one.folder or one.broken for one in found)


@pytest.mark.parametrize("why", ["cancelled", "closing"])
def test_a_run_that_is_no_longer_wanted_ends_at_its_next_line(why: str, dask: Dask) -> None:
    if why == "cancelled":
        dask.task_state = "cancelled"
    else:
        dask.status = Status.closing
    with pytest.raises(Reschedule):
        worker._Run(dask).check_wanted()  # type: ignore[arg-type]
    dask.task_state, dask.status = "executing", Status.running
    worker._Run(dask).check_wanted()  # type: ignore[arg-type]

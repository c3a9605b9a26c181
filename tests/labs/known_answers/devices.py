# SPDX-License-Identifier: Apache-2.0
"""Devices of known truth, each standing in a lab of its own with the real tester in front of it.

All share one contract: `stand()` gives the tester, and a way to ask the device afterwards what it did. What a device
knows of itself is told under names that have their units in them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pyroute2 import IPRoute
from tests.labs.calibration import Mode, calibrator, forwarder
from tests.labs.known_costs.devices import program
from tests.labs.program import own
from tests.plans import PlanOfTrial

from natgauge.agreement.generated import Progress
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.recipe import Recipe
from natgauge.host.machine import usable_cpus
from natgauge.inputs.question import DeviceOptions
from natgauge.labs.common import namespaces
from natgauge.labs.common.addresses import INSIDE
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.contract import Device as LabDevice
from natgauge.labs.contract import Lab, LabCounters, Port
from natgauge.setup.setup import Player
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench
from natgauge.trial.controls import Silent
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.planned import Planned
from natgauge.trial.question import ask
from natgauge.words import Placement

LAB_NAME = own("known-answers")
RECIPES = Path(__file__).parent / "recipes"
#: Octets of the tester's least IPv4 frame without FCS, as a queueing discipline counts them.
FRAME_OCTETS = 60
#: A table is filled in this time, and its count looked at this often, in seconds.
FILLING_SECONDS = 0.2
WATCH_SECONDS = 0.002
#: A forwarder whose timer errs by more had no core for itself, in seconds. The 99th percentile matters for few frames.
CALM_MEDIAN, CALM_P99 = 20e-6, 500e-6
#: A stall of the device's core must not lose frames in a short ring: what is known are the device's limits.
RING = 16384
#: Plays no part where a row is about a single trial.
ANY_METRIC = "throughput"

#: What a device did, by name.
Known = Mapping[str, float]


class NotOnTimeError(Exception):
    """The device did not do itself what it should have done, so its truth is not known: it has to stand again."""


@dataclass(slots=True)
class Logbook(Silent):
    """Every trial of a tester, and when what happened on the monotonic clock.

    Attributes:
        trials: as they were recorded.
        phase1_began: of the last trial.
        trial_ended: the last one.
    """

    trials: list[Mapping[str, Any]] = field(default_factory=list)
    phase1_began: float | None = None
    trial_ended: float = 0.0

    def add_trial(self, trial: Mapping[str, Any]) -> None:
        self.trials.append(trial)
        self.trial_ended = time.monotonic()

    def add_round(self, comparison_round: Mapping[str, Any]) -> None: ...

    def running(self, progress: Progress) -> None:
        """The first word of a phase comes at its beginning."""
        if progress.phase == "phase1" and progress.made_frames == 0:
            self.phase1_began = time.monotonic()


@dataclass(frozen=True, slots=True)
class Standing:
    """A device that stands, with the tester in front of it.

    Attributes:
        planned: the procedure that is to be measured, with its settings.
        measurer: the tester.
        logbook: of its trials.
        tell: what the device did; to be asked when the measurement is over. Raises NotOnTimeError.
    """

    planned: Planned
    measurer: LabMeasurer
    logbook: Logbook
    tell: Callable[[], Known]


@dataclass(frozen=True, slots=True)
class Home:
    """What a device of known truth acts on."""

    lab: Lab
    device: NamespaceDevice
    gateway: Gateway
    planned: Planned
    logbook: Logbook

    def standing(self, measurer: LabMeasurer, tell: Callable[[], Known]) -> Standing:
        """The device, when it does what it should."""
        return Standing(self.planned, measurer, self.logbook, tell)

    def must(self, snippet: str) -> None:
        """Run a snippet on the device that has to succeed."""
        answer = self.device.run(snippet)
        if answer.status:
            raise RuntimeError(f"{snippet}: {answer.stderr}")


@contextmanager
def in_background(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run `work` in a thread while the context lasts. It gets an event, and ends when the event is set."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _nothing() -> Known:
    return {}


@dataclass(frozen=True, kw_only=True)
class Device:
    """A gateway of the kernel. As it is, it does nothing of its own to the frames.

    Attributes:
        words: what it does, for the table.
        recipe: what it is played by.
        placement: of the lab.
        connections: N.
        source_ports: of the four tuples, "A-B"; None = the tester's choice.
        wishes: its knobs.
        highest_rate: what the tester is told to be its own highest, in frames/s.
        grace_seconds: how long the tester waits for the last frames of a phase.
        ring: frames that wait before an isolated device's core.
    """

    words: str
    recipe: str | Path = "nftables-nat44"
    placement: Literal["shared", "isolated"] = "shared"
    connections: int = 500
    source_ports: str | None = None
    wishes: DeviceOptions = field(default_factory=DeviceOptions)
    highest_rate: float = 200_000.0
    grace_seconds: float = 0.1
    ring: int = RING

    @contextmanager
    def stand(self, metric: str, settings: Mapping[str, object]) -> Iterator[Standing]:
        """Make a bench for this metric and start the device on it; both are undone at the end."""
        question = ask(
            metric,
            self.recipe,
            {
                "connections": self.connections,
                "source_ports": self.source_ports,
                "lab_name": LAB_NAME,
                "placement": self.placement,
                "ring": self.ring,
                "seed": 1,
                "grace_seconds": self.grace_seconds,
                **self.wishes.named(),
                **settings,
            },
        )
        logbook = Logbook()
        rates = HighestRates(self.highest_rate, self.highest_rate)
        bench = Bench(question.cell, logbook, play=self.player(), rates=rates)
        planned = bench.plan(question.metric, question.settings)
        with bench:
            measurer = bench.ready(planned, logbook).measurer
            assert bench.device is not None
            home = Home(bench.lab, _device_of(bench.lab), bench.device.holder, planned, logbook)
            with self.acting(home, measurer) as standing:
                yield standing

    def player(self) -> Player:
        return Gateway

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Do to the frames what this device does."""
        yield home.standing(measurer, _nothing)


def _device_of(lab: Lab) -> NamespaceDevice:
    (device,) = lab.devices
    assert isinstance(device, NamespaceDevice)
    return device


@dataclass(frozen=True, kw_only=True)
class Changing(Device):
    """Does something to every k-th frame that leaves one of its interfaces.

    Attributes:
        mode: what.
        every: k; of "stop-after": so many frames leave.
        side: the interface.
        offset: frames that are left alone at first.
    """

    mode: Mode
    every: int
    side: Literal["inside", "outside"]
    offset: int = 0

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "acted_frames"."""
        interface = home.device.inside if self.side == "inside" else home.device.outside
        private = str(INSIDE["ipv4"].host(0)) if self.mode == "untranslated" else None
        with calibrator(
            home.device.netns, interface, self.mode, every=self.every, offset=self.offset, octet=13, source=private
        ) as tally:
            yield home.standing(measurer, lambda: {"acted_frames": float(tally().acted)})


@dataclass(frozen=True, kw_only=True)
class Ruled(Device):
    """Has nftables rules of its own for the frames that leave towards the Responder, after the translation.

    Attributes:
        rules: of a chain; `sets` stands before it.
        sets: of the table.
        chains: further rules, by the hook and priority of their chain.
    """

    rules: str = ""
    sets: str = ""
    chains: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells nothing: the rules say it."""
        chains = "".join(
            f"chain further{number} {{ type filter hook {hook};\n{rules}\n}}\n"
            for number, (hook, rules) in enumerate(self.chains.items())
        )
        home.must(f"""
nft -f - <<RULES
table ip known {{
    {self.sets}
    chain leaving {{
        type filter hook postrouting priority srcnat + 100;
        oifname != "$NG_OUTSIDE" accept
        {self.rules}
    }}
    {chains}
}}
RULES
""")
        yield home.standing(measurer, _nothing)


@dataclass(frozen=True, kw_only=True)
class Queueing(Ruled):
    """Lets frames leave on one of its sides at a rate, behind a queue that drops what does not fit.

    Attributes:
        rate: frames/s.
        burst: frames that may leave at once.
        queue: frames that wait besides.
        side: towards the Initiator ("inside") or the Responder.
        octets: of a frame without FCS.
    """

    rate: int
    burst: int
    queue: int
    side: Literal["inside", "outside"] = "outside"
    octets: int = FRAME_OCTETS

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells nothing: the settings say it."""
        bits, burst, limit = (self.rate * self.octets * 8, self.burst * self.octets, self.queue * self.octets)
        interface = home.device.inside if self.side == "inside" else home.device.outside
        home.must(f"tc qdisc add dev {interface} root tbf rate {bits}bit burst {burst}b limit {limit}b")
        with super().acting(home, measurer) as standing:
            yield standing


@dataclass(frozen=True, kw_only=True)
class HalfOpening(Queueing):
    """Queues, and keeps a number of half-open TCP connections.

    Attributes:
        held: how many.
    """

    held: int

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells nothing: the settings say it."""
        with tempfile.TemporaryDirectory(prefix="natgauge-known-") as folder:
            compiled = program(Path(folder), Path(__file__).with_name("half_open.bpf.c"), HELD=self.held)
            home.must(
                f"tc qdisc replace dev {home.device.inside} clsact\n"
                f"tc filter replace dev {home.device.inside} ingress pref 1 handle 1 bpf da obj {compiled} sec tc"
            )
            with super().acting(home, measurer) as standing:
                yield standing


@dataclass(slots=True)
class Across:
    """A lab whose device is a bridge with a core of its own: each port's gateway is the other port."""

    placement: Placement
    initiator: Port
    responder: Port
    counters: Callable[[], LabCounters]
    devices: Sequence[LabDevice] = ()


@dataclass(frozen=True, kw_only=True)
class Holding(Device):
    """A bridge that holds every frame for a known time, and every k-th one longer.

    Attributes:
        delay_us: of every frame.
        jitter_us: how much longer; None = no frame.
        every: k.
    """

    recipe: str | Path = "linux-ipv4"
    connections: int = 100
    delay_us: int
    jitter_us: int | None = None
    every: int | None = None

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "error_..._us", how much later than due it sent."""
        lab, device = home.lab, home.device
        cpu = max(set(usable_cpus()) - set(lab.sender_cpus))
        place = Across(
            "isolated",
            replace(lab.initiator, gateway_mac=_mac_of(lab.responder), gateway_address=None),
            replace(lab.responder, gateway_mac=_mac_of(lab.initiator), gateway_address=None),
            lab.counters,
        )
        with forwarder(
            device.netns,
            device.inside,
            device.outside,
            self.delay_us,
            jitter_us=self.jitter_us,
            every=self.every,
            cpu=cpu,
        ) as running:

            def tell() -> Known:
                held = running.stop()
                error = held.timer_error
                late = error is None or error.median > CALM_MEDIAN or (self.every and error.p99 > CALM_P99)
                if error is None or late or held.refused or held.failed:
                    raise NotOnTimeError(f"the forwarder had no core for itself: {held}")
                return {
                    "error_minimum_us": error.minimum * 1e6,
                    "error_median_us": error.median * 1e6,
                    "error_mean_us": error.mean * 1e6,
                    "error_p99_us": error.p99 * 1e6,
                    "error_maximum_us": error.maximum * 1e6,
                }

            # The tester's own delay is no part of the answer.
            yield home.standing(replace(measurer, place=place, device=None, own=None), tell)


def _mac_of(port: Port) -> str:
    def ask() -> str:
        with IPRoute() as routes:
            (link,) = routes.link("get", ifname=port.interface)
            return str(link.get_attr("IFLA_ADDRESS"))

    return namespaces.inside(port.netns, ask)


class _PausingGateway(Gateway):
    """Forwards nothing for a known time when it is restarted under load."""

    def __init__(self, seconds: float, recipe: Recipe, device: LabDevice, wishes: DeviceOptions) -> None:
        super().__init__(recipe, device, wishes)
        assert isinstance(device, NamespaceDevice)
        self._netns = device.netns
        self._seconds = seconds
        #: Shortest and longest possible time, by the clock before and after each switching.
        self.pauses: list[tuple[float, float]] = []

    def restart_under_load(self) -> None:
        """Switch forwarding off and on again."""

        def switch(value: int) -> tuple[float, float]:
            before = time.monotonic()
            namespaces.write_sysctls({"net/ipv4/ip_forward": value})
            return before, time.monotonic()

        def pause() -> None:
            off = switch(0)
            time.sleep(self._seconds)
            on = switch(1)
            self.pauses.append((on[0] - off[1], on[1] - off[0]))

        namespaces.inside(self._netns, pause)


@dataclass(frozen=True, kw_only=True)
class Pausing(Device):
    """Forwards nothing for a known time when it is restarted under load; its connections stay.

    Attributes:
        pause_seconds: how long.
    """

    pause_seconds: float

    def player(self) -> Player:
        return partial(_PausingGateway, self.pause_seconds)

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "pause_ms", the middle of what is possible, and "pause_doubt_ms", how far it may be off.

        Only of a trial during which no core stood still: on the sender's core the device stands still with it.
        """

        def tell() -> Known:
            assert isinstance(home.gateway, _PausingGateway)
            if home.logbook.trials[-1]["disturbed"]:
                raise NotOnTimeError(f"the core of sender and device stood still: {home.logbook.trials[-1]['remarks']}")
            shortest, longest = (1000 * seconds for seconds in home.gateway.pauses[-1])
            return {"pause_ms": (shortest + longest) / 2, "pause_doubt_ms": (longest - shortest) / 2}

        yield home.standing(measurer, tell)


@dataclass(frozen=True, kw_only=True)
class Expiring(Device):
    """Forgets each connection a known time after it was opened."""

    recipe: str | Path = RECIPES / "lists-connections.toml"

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "watched_from_s", when the watching of its count began after phase 1 had begun."""

        def tell() -> Known:
            book = home.logbook
            assert book.phase1_began is not None
            return {"watched_from_s": book.trial_ended - book.phase1_began}

        yield home.standing(measurer, tell)


@dataclass(frozen=True, kw_only=True)
class SlowToEmpty(Device):
    """Takes its time to empty a table; afterwards the same command is timed from outside of the tester, too.

    Attributes:
        sample: how often a full and an empty table are emptied from outside.
    """

    recipe: str | Path = RECIPES / "slow-to-empty.toml"
    sample: int = 3

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "difference_s", how much longer the command takes with a full table than with an empty one."""
        (command,) = home.gateway.recipe.verbs.pieces("empty")

        def emptied() -> float:
            began = time.perf_counter()
            subprocess.run(
                ["ip", "netns", "exec", home.device.netns, "sh", "-eu", "-c", command], check=True, capture_output=True
            )
            return time.perf_counter() - began

        def tell() -> Known:
            full, empty = [], []
            for _ in range(self.sample):
                stored = measurer.measure(PlanOfTrial(self.connections, self.connections / FILLING_SECONDS)).table_count
                if stored != self.connections:
                    raise NotOnTimeError(f"the table held {stored} connections instead of {self.connections}")
                full.append(emptied())
                empty.append(emptied())
            return {"difference_s": median(full) - median(empty)}

        yield home.standing(measurer, tell)


@dataclass(frozen=True, kw_only=True)
class FallingOver(Device):
    """Takes its inside interface down, and with it itself, when its table holds so many connections.

    Attributes:
        limit: so many.
    """

    recipe: str | Path = RECIPES / "falls-over.toml"
    limit: int

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "falls", how often it fell over."""
        falls: list[float] = []

        def watch(ended: threading.Event) -> None:
            with Path("/proc/sys/net/netfilter/nf_conntrack_count").open("rb", buffering=0) as count, IPRoute() as ip:
                (index,) = ip.link_lookup(ifname=home.device.inside)
                standing = True
                while not ended.wait(WATCH_SECONDS):
                    full = int(os.pread(count.fileno(), 32, 0)) >= self.limit
                    if full and standing:
                        ip.link("set", index=index, state="down")
                        falls.append(time.monotonic())
                    standing = not full

        with in_background(lambda ended: namespaces.inside(home.device.netns, partial(watch, ended))):
            yield home.standing(measurer, lambda: {"falls": float(len(falls))})

# SPDX-License-Identifier: Apache-2.0
"""A lab without a network: its device takes the commands of a recipe, and knows what the gateway on it would say."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from natgauge.device_work import ObjectCaches
from natgauge.host.settings import MachineSetting
from natgauge.labs.common.addresses import INSIDE, NAT64_PREFIX, OUTSIDE
from natgauge.labs.contract import (
    Addresses,
    CommandResult,
    Device,
    DeviceCores,
    ExternalDevice,
    Ground,
    LabCounters,
    LabNeeds,
    Link,
    Port,
)
from natgauge.words import Placement

if TYPE_CHECKING:
    from tests.unit.simulated import Gateway

    from natgauge.labs.common.addresses import LinkSide

#: Labs that are up, by their name, which their Initiator's port has, too: so the engine finds the gateway of a request.
LABS: Final[dict[str, SimulatedLab]] = {}
#: Makes the gateway that is started next in the lab of this name.
STARTS: Final[list[Callable[[str], Gateway]]] = []
#: Are called with the name of a lab before it is made, and may raise.
ENTERS: Final[list[Callable[[str], None]]] = []
#: Gives what is known of the traffic in each lab (`Ground`), beside its families: `mtu`, and addresses as "A-B".
GROUNDS: Final[list[Callable[[], Mapping[str, int | str]]]] = []
#: Gives the file of this machine to which devices log; None = they are on other machines.
LOGS: Final[list[Callable[[], Path | None]]] = []
#: Gives what each lab tells of its ports and links.
LINKS: Final[list[Callable[[], Mapping[str, Any]]]] = []
#: Commands of each device, the newest last.
COMMANDS: Final[list[list[str]]] = []


@dataclass(slots=True)
class Clock:
    """Time that passes only while somebody sleeps, in seconds."""

    seconds: float = 0.0

    def time(self) -> float:
        """The clock of dates is the machine's."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds so far."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


CLOCK: Final = Clock()


class SimulatedSetting(MachineSetting):
    """A setting that is no file."""

    def __init__(self, name: str, paths: Sequence[str], module: str | None) -> None:
        super().__init__(name, paths, module)
        self.held = dict.fromkeys(self.paths, 1024)

    def available(self) -> bool:
        return True

    def values(self) -> dict[Path, int]:
        return dict(self.held)

    def _put(self, path: Path, value: int) -> None:
        self.held[path] = value

    def _remember(self, path: Path, value: int) -> None:
        """Nothing outlives a test."""


@dataclass(slots=True)
class SimulatedMachine:
    """A machine that has nothing but memory."""

    memory: int = 1 << 34
    system: str = "Linux"
    has_tester_files: bool = False

    def free_octets(self) -> int:
        return self.memory

    def object_caches(self) -> ObjectCaches:
        """Its kernel reports none."""
        return {}

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> MachineSetting:
        return SimulatedSetting(name, paths, module)


@dataclass(slots=True)
class SimulatedLog:
    """A file that a device logs to, which natgauge reads by commands, or as `file` where it is of this machine.

    Attributes:
        coming: lines that are not there yet, each with its second of the clock.
    """

    file: Path | None = None
    text: str = ""
    coming: list[tuple[float, str]] = field(default_factory=list)

    def take(self, lines: Sequence[str | tuple[float, str]]) -> None:
        """Log these lines; one with a number before it comes so many seconds later."""
        timed = [(0.0, line) if isinstance(line, str) else line for line in lines]
        self.coming += [(CLOCK.seconds + later, line) for later, line in timed]
        self._come()

    def _come(self) -> None:
        come = "".join(f"{line}\n" for due, line in self.coming if due <= CLOCK.seconds)
        self.coming = [one for one in self.coming if one[0] > CLOCK.seconds]
        self.text += come
        if come and self.file is not None:
            self.file.write_text(self.text)

    def answers(self, snippet: str) -> str | None:
        """What a command on this file prints; None = it is on something else."""
        self._come()
        if snippet.startswith(': > "$NG_WORK/'):
            self.text = ""
            if self.file is not None:
                self.file.write_text("")
            return ""
        if snippet.startswith('wc -c < "$NG_WORK/'):
            return str(len(self.text.encode()))
        if part := re.fullmatch(r'tail -c \+(\d+) "\$NG_WORK/\S+" \| head -c (\d+)', snippet):
            begin = int(part[1]) - 1
            return self.text.encode()[begin : begin + int(part[2])].decode(errors="replace")
        return None


@dataclass(slots=True)
class SimulatedDevice:
    """Takes the words of the recipes in `gateways/` as commands.

    Attributes:
        truth: the gateway that was started; None = none runs.
        held: connections in its table.
        filled: whether a trial filled it since it was emptied, `filled_at` in seconds of the clock.
        faults: frames that it refused so far, by its names of causes.
        log: what it logged since natgauge emptied its log.
        dead: it collapsed, so it neither forwards nor answers until it is started again.
        ran: every command, in order.
    """

    lab: str
    name: str = "gateway"
    inside: str = "inside"
    outside: str = "outside"
    environment: Mapping[str, str] = field(default_factory=dict)
    machine: SimulatedMachine = field(default_factory=SimulatedMachine)
    truth: Gateway | None = None
    held: int = 0
    filled: bool = False
    filled_at: float = 0.0
    dead: bool = False
    faults: dict[str, int] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    log: SimulatedLog = field(default_factory=SimulatedLog)

    def __post_init__(self) -> None:
        COMMANDS.append(self.ran)
        self.log.file = LOGS[-1]() if LOGS else None
        if self.log.file is not None:
            self.machine.has_tester_files = True
            self.environment = {**self.environment, "NG_WORK": str(self.log.file.parent)}

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        del environment, timeout
        if (logged := self.log.answers(snippet)) is not None:
            failed = self._failure(snippet)
            return CommandResult(int(bool(failed)), logged, failed, 0.0)
        self.ran.append(snippet)
        seconds = 0.0
        # A recipe of natgauge has commands of its own.
        if self.truth is None and (snippet == "start" or "\n" in snippet or " " in snippet):
            self.truth = STARTS[-1](self.lab)
        if failed := self._failure(snippet):
            return CommandResult(1, "", failed, 0.0)
        if snippet == "start":
            self.dead = False
        elif self.dead and snippet != "stop":
            return CommandResult(1, "", "it does not answer", 0.0)
        elif snippet == "empty":
            seconds = 0.0 if self.truth is None else self.truth.empties(self.held)
            if self.truth is not None and self.truth.logs_ends is not None:
                self.log.take([(self.truth.logs_ends, "end of it")] * self.held)
            self.held, self.filled = self._kept(), False
        said = {
            "count": str(self._counted),
            "version": "simulated 1",
            "count-established": str(self._open),
            "faults": "\n".join(f"{cause} {number}" for cause, number in self.faults.items()),
            "table-size": "" if self.truth is None else str(self.truth.table_size),
            "lingering": "fin 120\nrst 120",
        }
        if snippet not in said and self.truth is not None:
            return CommandResult(0, self.truth.prints(snippet), "", seconds)
        return CommandResult(0, said.get(snippet, ""), "", seconds)

    def _kept(self) -> int:
        """Return the connections that emptying leaves."""
        if self.truth is not None and self.truth.sticky:
            self.truth.sticky -= 1
            return 3
        return 0 if self.truth is None or not self.filled else self.truth.keeps

    def _failure(self, snippet: str) -> str:
        truth = self.truth
        return "" if truth is None or truth.says is None else truth.says(snippet, len(truth.plans))

    def fill(self, connections: int) -> None:
        """A trial left so many connections."""
        self.held, self.filled, self.filled_at = connections, True, CLOCK.seconds

    @property
    def _counted(self) -> int:
        if self.truth is None or self.truth.expires is None or not self.filled:
            return self.held
        return min(self.held, self.truth.expires(CLOCK.seconds - self.filled_at))

    @property
    def _open(self) -> int:
        return 0 if self.truth is None else self.truth.left_open

    def frame_processes(self) -> tuple[str, ...]:
        return ()


class SimulatedLab:
    """Two ports that do not exist, and one device between them."""

    external: ExternalDevice | None = None
    sender_cpus: tuple[int, ...] = (0,)
    grace_seconds = 0.3
    virtual = True
    emulated = False
    is_reused = False
    changes_machine = False

    def __init__(self, name: str, placement: Placement, need: LabNeeds) -> None:
        self.name = name
        self.placement: Placement = placement
        self.responder = Port(f"{name}-far", "ng-simulated", "02:00:00:00:00:02", None)
        self.server: Device | None = SimulatedDevice(name, "server", environment={"NG_CPUS": "2"})
        self.device = SimulatedDevice(name, need.devices[0])
        self.devices: Sequence[Device] = (self.device,)
        self.device_cpus: tuple[int, ...] = (0,) if placement == "shared" else (1,)
        self.device_cores = DeviceCores.of(self.device_cpus)
        inside, outside = INSIDE[need.families[0]], OUTSIDE[need.families[1]]
        self.initiator = Port(name, "ng-simulated", "02:00:00:00:00:01", str(inside.device.ip))
        known = {"mtu": 3498, **(GROUNDS[-1]() if GROUNDS else {})}
        told: dict[str, Any] = {name: _addresses(one) if isinstance(one, str) else one for name, one in known.items()}
        self.ground = Ground(_link(inside), _link(outside), nat64_prefix=NAT64_PREFIX, **told)

    def __enter__(self) -> Self:
        for enters in ENTERS:
            enters(self.name)
        LABS[self.name] = self
        return self

    def __exit__(self, *_exception: object) -> None:
        del LABS[self.name]

    def dropped(self) -> Mapping[str, int]:
        return {}

    def counters(self) -> LabCounters:
        return LabCounters({})

    def keep(self) -> None: ...

    def parameters(self) -> Mapping[str, Any]:
        """What the tester knows of its links, and of the queue before the device."""
        ring = None if self.device.truth is None else self.device.truth.ring
        return {**(LINKS[-1]() if LINKS else {}), **({} if ring is None else {"ring": ring})}


def _addresses(text: str) -> Addresses:
    first, _, last = text.partition("-")
    return Addresses(ip_address(first), ip_address(last or first))


def _link(side: LinkSide) -> Link:
    return Link(side.device.network, side.device.ip, side.host(0))

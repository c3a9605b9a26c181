# SPDX-License-Identifier: Apache-2.0
"""Readings of one trial: what the bench read of the gateway, the lab and this host, before and after the engine ran.

They travel as a whole, from the bench to the verdict and to the figures. A further reading is a field of `Readings`,
which `natgauge.trial.trial_run` fills in; verdicts, procedures and doubts use it without another copy. Readings with a
type of their own:

- The number of connections that a gateway holds after churn: connections are opened in phase 2 while the oldest leave.
- What a gateway's log has and lacks, and the figures that follow from it.
- Energy that a device takes, from a power meter that a command of the user reads.

draft-ietf-bmwg-powerbench measures the power of a device under the loads of RFC 2544. A meter that counts energy is
read before and after a trial. The power that another meter shows is read throughout, because before and after the trial
the device is idle. A trial that is too short for its meter has no energy: what the meter shows then is an idle device,
or the rounding of its last digit. Nor has one in which a reading failed, or the count began again: RAPL counts to
262 kJ, which takes a busy server minutes.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple, Self

from natgauge.device_work import WorkByCore
from natgauge.errors import BrokenError, HostError
from natgauge.figure_text import with_noun
from natgauge.words import Leave, LimitedBy, Transport

#: The least time for which a new connection gets no frames yet, and one that leaves none any more, in s: the engine's.
LEAST_GUARD_SECONDS: Final = 0.001
#: A connection gets no frame for this many times the mean interval between its frames with a probability of 1e-13.
IDLE_DRAWS: Final = 30.0
#: Deviation of the gateway's own count from the expected one that is doubted.
MOST_DEVIATION: Final = 0.01
#: Prints what a power meter shows.
Meter = Callable[[], str]
_FORM: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([WJ])\s*")
#: Between two readings of a power.
_PAUSE_SECONDS: Final = 0.5
#: A count of energy that grew by fewer of its last digits may be wrong by more than 10 %.
_LEAST_DIGITS: Final = 10
#: What to do where trials are too short for their meter.
_LONGER: Final = "make trials longer (--trial-seconds, or more --connections)"
#: What a server's recipe calls queries that were lost before its sockets (gateways/recipes/common/far-side.toml).
_SOCKET: Final = "socket"


@dataclass(frozen=True, slots=True)
class Churn:
    """New connections in phase 2, and as many that leave: the oldest ones.

    Attributes:
        new_per_second: connections/s that are opened, > 0.
        leave: a connection falls silent (UDP, ICMP), or the Initiator closes it by a FIN or a reset (TCP).
        guard_seconds: a connection gets frames from this time after its opening until this time before it leaves, > 0,
            in ms; longer than a round trip.
        flood_per_second: connections/s that the host after the last source address opens in addition (not TCP); they
            get no further frame, and their loss fails no trial. 0 = it opens none.
    """

    new_per_second: float
    leave: Leave = "silent"
    guard_seconds: float = 0.1
    flood_per_second: float = 0.0

    def openings(self, seconds: float) -> int:
        """Return the connections that a phase 2 of this length opens."""
        return math.floor(self.new_per_second * seconds + 1e-6)


@dataclass(frozen=True, slots=True)
class CountInChurn:
    """The gateway's own count after a phase 2 with churn.

    Attributes:
        seconds: time of the reading since the start of phase 2.
        changing: how far the count may be off: c times the duration of the reading, or for a gateway that does not say
            which connections are forgotten, c times all the time since phase 2.
        expected: number of connections that the gateway should hold then; None = its time-out is not known.
    """

    seconds: float
    count: int
    expected: float | None = None
    changing: float = 0.0

    @property
    def deviation(self) -> float:
        """Difference to the expected number, as a share of that number; 0 where that is not known."""
        return 0.0 if not self.expected else (self.count - self.expected) / self.expected

    @property
    def deviates(self) -> bool:
        """Whether the difference is doubted: beyond what the duration of the reading explains."""
        expected = self.expected or self.count
        return abs(self.count - expected) > MOST_DEVIATION * expected + self.changing


def most_new(connections: int) -> float:
    """Return the most connections/s that the engine opens while so many are open; 0 = none.

    With the least guard c * guard, rounded up, and one more are too young for frames, as many are about to leave, and
    there must be one between them.
    """
    return max(0, (connections - 3) // 2) / LEAST_GUARD_SECONDS


def leaving(transport: Transport) -> Leave:
    """How connections of a transport leave, where nobody says another way."""
    return "fin" if transport == "tcp" else "silent"


def kept_after(churn: Churn, *, connections: int, rate: float, timeout: float) -> float:
    """Return for how many seconds a gateway keeps a connection that has left.

    Frames go to connections at random, so the last one of a silent connection came on average
    N/r * (1 - exp(-r/c)) before the guard. A closed one is forgotten `timeout` after its end.

    Args:
        rate: r, frames/s to the N open ones, both directions together.
        timeout: s after the last frame of a silent connection, or the end of a closed one.
    """
    if churn.leave != "silent":
        return timeout
    fresh = churn.new_per_second
    drawn = connections - 2 * fresh * churn.guard_seconds
    return max(0.0, timeout - churn.guard_seconds - drawn / rate * -math.expm1(-rate / fresh))


def expected_count(churn: Churn, *, connections: int, kept: float, seconds: float, until: float) -> float:
    """Return the connections that a gateway should hold: the open ones, and those that left and are kept.

    Args:
        kept: s from the time at which a connection leaves (`kept_after`); infinite = it is never forgotten.
        seconds: time since the start of phase 2.
        until: end of phase 2, after which none leaves any more.
    """
    return connections + churn.new_per_second * max(0.0, min(seconds, until) - max(0.0, seconds - kept))


@dataclass(frozen=True, slots=True)
class LogCounts:
    """A gateway's log of one trial, next to the connections that it must have.

    Lost are connections that no record names. Lines that are no records are unparsed.

    Attributes:
        wrong: records that name a connection with another outside tuple, or a connection that there was not.
        excused: part of lost, at least 0: connections that were due during a stall, or for its length after it.
        late: right records that were written later than the grace after their connection was due; at least so many
            where records have whole seconds, which are up to 1 s too early.
        ambiguous: records whose outside tuple another subscriber had towards the same remote endpoint within a second.
        outside_named: whether the records name outside tuples; without them none leads back to a subscriber.
        delay_p50_ms: median of the time from a connection to its record; None = the records have no time,
            or whole seconds.
        delay_p999_ms: 99.9th percentile of the same.
    """

    connections: int
    records: int
    octets: int
    lost: int
    wrong: int = 0
    duplicate: int = 0
    late: int = 0
    excused: int = 0
    unparsed: int = 0
    unparsed_line: str = ""
    ambiguous: int = 0
    outside_named: bool = True
    delay_p50_ms: float | None = None
    delay_p999_ms: float | None = None

    @property
    def faulty(self) -> int:
        """Connections without a record, and records that lead to another one than they should."""
        return self.lost + self.wrong

    @property
    def is_odd(self) -> bool:
        """Whether anything but one right record for each connection was found."""
        return bool(self.faulty or self.duplicate or self.late or self.unparsed or self.ambiguous)

    def exceeds(self, tolerance: float) -> bool:
        """Whether more is missing or wrong than a share of the connections."""
        return self.faulty > tolerance * self.connections

    @property
    def words(self) -> str:
        """The counts, those of faults where they are not 0, as a part of a sentence."""
        faults = {
            "without a record": self.lost,
            "wrong": self.wrong,
            "twice": self.duplicate,
            "late": self.late,
            "with an outside port that another subscriber had within a second": self.ambiguous,
            f"unreadable, such as {self.unparsed_line!r}": self.unparsed,
        }
        found = ", ".join(f"{number:,} {name}" for name, number in faults.items() if number)
        records = with_noun(f"{self.records:,}", "records")
        connections = with_noun(f"{self.connections:,}", "connections")
        return f"the log has {records} for {connections}{found and ': '}{found}"


class LogError(NamedTuple):
    """Why a log was not compared with a trial's connections.

    `limited_by` is "tester" where natgauge took the records too slowly: fewer a second it can take.
    """

    text: str
    limited_by: LimitedBy


class LogFigure(NamedTuple):
    """A figure of the log in the deciding trial, which has connections, with the label and the unit of its row.

    `of` returns None where it is not known.
    """

    name: str
    label: str
    unit: str
    of: Callable[[LogCounts], float | None]


#: Every such figure, in the order of the rows.
LOG_FIGURES: Final = (
    LogFigure(
        "log_records_per_connection", "log records of a connection", "", lambda log: log.records / log.connections
    ),
    LogFigure("log_octets_per_connection", "log of a connection", "octets", lambda log: log.octets / log.connections),
    LogFigure("log_delay_p50_ms", "median delay of a log record", "ms", lambda log: log.delay_p50_ms),
    LogFigure(
        "log_delay_p999_ms", "99.9th percentile of the delay of a log record", "ms", lambda log: log.delay_p999_ms
    ),
    LogFigure(
        "log_lost_percent", "connections without a log record", "%", lambda log: 100 * log.lost / log.connections
    ),
    LogFigure("log_wrong", "wrong log records", "", lambda log: float(log.wrong)),
)


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy in a time: of a trial from before its first frame until the last ones have arrived.

    Attributes:
        joules: None = it is not known.
        seconds: > 0.
        why_unknown: why `joules` is None, and what to do, as the rest of a sentence; empty where it is known.
    """

    joules: float | None
    seconds: float
    why_unknown: str = ""


@dataclass(frozen=True, slots=True)
class _Shown:
    number: float
    unit: str
    at: float
    digit: float
    """What one more in the last printed digit is."""


@dataclass(slots=True)
class EnergyOfTrial:
    """Reads a meter during the `with` block.

    Attributes:
        is_proven: whether the meter has been read before: a reading that fails then leaves the trial without energy.
            HostError of the first one of all ends the measurement, because the command is wrong.
    """

    meter: Meter
    clock: Callable[[], float] = time.monotonic
    is_proven: bool = False
    _shown: list[_Shown] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _error: Exception | None = None
    _began: float = 0.0
    _ended: float = 0.0

    def __enter__(self) -> Self:
        self._began = self.clock()
        self._read_if_it_works()
        if self._shown and self._shown[0].unit == "W":
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended = self.clock()
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if raised[0] is None and self._error is None:
            self._read_if_it_works()

    def energy(self) -> Energy:
        """Return the energy; valid after the `with` block."""
        if isinstance(self._error, HostError):
            why = f"a reading failed ({self._error}); see that the command answers each time"
            return Energy(None, self._ended - self._began, why)
        if self._error is not None:
            raise self._error
        first, last = self._shown[0], self._shown[-1]
        if len({shown.unit for shown in self._shown}) > 1:
            raise BrokenError("power command: printed W and J in one trial; print one of them")
        seconds = last.at - first.at
        if first.unit == "W":
            # The first one is that of an idle device, and so may be one that ended after the trial.
            within = [shown.number for shown in self._shown[1:-1] if shown.at <= self._ended]
            if not within:
                why = f"no reading fell into the trial (they are {_PAUSE_SECONDS:g} s apart); {_LONGER}"
                return Energy(None, seconds, why)
            return Energy(sum(within) / len(within) * seconds, seconds)
        joules = last.number - first.number
        if joules < 0:
            why = f"the count of energy began again (from {first.number:g} to {last.number:g} J); measure again"
            return Energy(None, seconds, why)
        # A meter that prints whole numbers at one reading and more at the other is as coarse as the first.
        if joules < _LEAST_DIGITS * max(first.digit, last.digit) * (1 - 1e-9):
            why = f"the count of energy grew by less than {_LEAST_DIGITS} of its last digits; {_LONGER}"
            return Energy(None, seconds, why)
        return Energy(joules, seconds)

    def _read_if_it_works(self) -> None:
        """Read the meter; where it has worked before, a failure is kept for the energy."""
        try:
            self._read()
        except HostError as error:
            if not self.is_proven:
                raise
            self._error = error
        self.is_proven = True

    def _read(self) -> None:
        said = self.meter()
        form = _FORM.fullmatch(said)
        if form is None or math.isinf(float(form[1])):
            shown = said.strip()[:60] or "nothing"
            raise HostError(f"power command: printed {shown!r}; print a power, such as 61.5 W, or an energy, 950 J")
        digit = float(Decimal((0, (1,), int(Decimal(form[1]).as_tuple().exponent))))
        self._shown.append(_Shown(float(form[1]), form[2], self.clock(), digit))

    def _watch(self) -> None:
        try:
            while not self._over.wait(_PAUSE_SECONDS):
                self._read()
        except Exception as error:  # noqa: BLE001 - it is raised again where the energy is asked for
            self._error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Readings of one trial.

    Attributes:
        count_before: the device's own count before phase 1; None where the device does not report it.
        count_after: the same after phase 1, or at the end of a period.
        established: the device's own number of open TCP connections after the trial; None where it is not known.
        strays: connections in parts of the device that must hold none, by name of the part.
        dropped_before: frames dropped at the device's places of the lab before the trial, by the place's name; the
            tester's own ports are in the engine's result. Frames of the engine's self-test are included.
        faults: frames that the device refused during the trial, and other events that it counts, by its own names; 0
            where there were none. Empty = not known.
        device_error: error of the device's controls; empty where they answered, None for an external device.
        forwards: whether single frames came back after the trial; None = not tried, or `unprobed` gives the reason. Of
            a period false: nothing came back in it since a link of the tester's ports went down.
        unprobed: error that kept the tester from sending single frames after the trial; empty = none.
        core_work: work of each core of the devices during the trial; empty = not known.
        octets_per_connection: memory of a connection in the kernel of the device's machine, by its growth during the
            trial; None = not known.
        server_refused: queries that a real server did not answer as it should, by cause; empty without a server.
        free_octets: available memory of the device's machine after a period; None = not read.
        network_counters: counters of the devices' kernels that rose during the trial, by device; None = not read.
        counts_taken: the tester's own ports ("Initiator", "Responder") whose drivers count frames as dropped that a
            receiver took; their received drops say nothing.
        found_changed: global setting of the device's machine that others changed since it was set; empty = none.
        link_losses: how often the link of each of the tester's own ports went down, by port; only where it did.
        throttled_seconds: time for which a CPU quota stopped the tester and the device's processes.
        read_late_seconds: time of a period in which natgauge still read device and lab after the period before it, on
            the device's cores.
        energy: what the device took during the trial; None = no meter was read.
        count_in_churn: the device's own count in a phase 2 with churn; None = it was not read.
        log: the device's log next to the connections of the trial; None = it does not log, or it was not compared.
        log_error: why its log was not compared; None = it was, or nobody tried.
    """

    count_before: int | None = None
    count_after: int | None = None
    established: int | None = None
    strays: Mapping[str, int] = field(default_factory=dict)
    dropped_before: Mapping[str, int] = field(default_factory=dict)
    dropped_after: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    device_error: str | None = None
    forwards: bool | None = None
    unprobed: str = ""
    core_work: WorkByCore = field(default_factory=dict)
    octets_per_connection: float | None = None
    server_refused: Mapping[str, int] = field(default_factory=dict)
    free_octets: int | None = None
    network_counters: Mapping[str, Mapping[str, int]] | None = None
    taps: bool = False
    counts_taken: Sequence[str] = ()
    found_changed: str = ""
    link_losses: Mapping[str, int] = field(default_factory=dict)
    throttled_seconds: float = 0.0
    read_late_seconds: float = 0.0
    energy: Energy | None = None
    count_in_churn: CountInChurn | None = None
    log: LogCounts | None = None
    log_error: LogError | None = None

    @property
    def dropped(self) -> dict[str, int]:
        """Number of frames dropped during the trial, by place, which begins with the device's name."""
        return {place: count - self.dropped_before.get(place, 0) for place, count in self.dropped_after.items()}

    @property
    def device_alive(self) -> bool | None:
        """Whether the device still answers its controls; None where it has none."""
        return None if self.device_error is None else not self.device_error

    @property
    def server_dropped(self) -> int:
        """Queries that a real server behind the device did not read in time."""
        return self.server_refused.get(_SOCKET, 0)

    @property
    def unread(self) -> int:
        """Datagrams that a device which answers queries itself did not read in time."""
        return self.faults.get(_SOCKET, 0)


#: Nothing was read.
NO_READINGS: Final = Readings()

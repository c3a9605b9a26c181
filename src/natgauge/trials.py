# SPDX-License-Identifier: Apache-2.0
"""One trial: the request and the result of `natgauge-engine` as typed values, and how the engine is run.

The agreement itself is `trial/request-1.schema.json` and `trial/result-1.schema.json`; the models below say the same
in Python, so a wrong field is caught before a process is started and an unknown version is refused, never guessed at.
Times of the agreement are integers in nanoseconds (`_ns`) or milliseconds (`_ms`), rates are frames/s.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host import programs
from natgauge.words import MAXIMUM_CONNECTIONS, Family, Order, ReadingOrder, Side

REQUEST_VERSION: Final = 1
RESULT_VERSION: Final = 1

Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, le=200_000_000, allow_inf_nan=False)]
StreamFrames = Annotated[int, Field(ge=1, le=1_099_511_627_775)]
PortNumber = Annotated[int, Field(ge=1, le=65535)]
GraceMs = Annotated[int, Field(ge=0, le=60_000)]
MacAddress = Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")]
InterfaceName = Annotated[str, Field(min_length=1, max_length=15)]
#: (lower_ns, upper_ns, frames) in rising order: lower <= value < upper; below zero lower < value <= upper.
Buckets = tuple[tuple[int, int, Count], ...]


class _Model(BaseModel):
    """What every part of the agreement shares: no unknown fields, no change after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AddressRange(_Model):
    """Addresses `first`, `first + step`, ... up to `last`, both ends included."""

    first: str
    last: str
    step: Annotated[int, Field(ge=1)] | None = None


class PortRange(_Model):
    """UDP ports, both ends included; 1 to 65535."""

    first: PortNumber
    last: PortNumber

    @property
    def count(self) -> int:
        """How many ports the range holds."""
        return self.last - self.first + 1


class GatewaySide(_Model):
    """The device's end of one link, one of the two at least. Without `mac` the engine resolves `address`."""

    mac: MacAddress | None = None
    address: str | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.mac is None and self.address is None:
            raise ValueError("give the device's MAC address, its IP address or both")
        return self


class InitiatorSide(_Model):
    """The tester's port that opens connections (RFC 9693 section 3) and the four ranges of its frames."""

    interface: InterfaceName
    netns: str | None = None
    family: Family
    mac: MacAddress | None = None
    gateway: GatewaySide
    source_addresses: AddressRange
    source_ports: PortRange
    destination_addresses: AddressRange
    destination_ports: PortRange


class ResponderSide(_Model):
    """The tester's port that answers, and its own addresses.

    `destination_addresses` (only in stateless trials): the Initiator's addresses as the Responder writes them, in the
    same order; None = the same addresses.
    """

    interface: InterfaceName
    netns: str | None = None
    family: Family
    mac: MacAddress | None = None
    gateway: GatewaySide
    addresses: AddressRange
    destination_addresses: AddressRange | None = None


class Translation(_Model):
    """What the device must do to the Initiator's source; `pool` = outside addresses it may use."""

    source: Literal["translated", "unchanged"]
    pool: AddressRange | None = None


class Frame(_Model):
    """Octets with FCS on the named side; the other side follows from the families (IPv6 = IPv4 + 20)."""

    size: Annotated[int, Field(ge=64, le=3412)]
    side: Side


class Phase1(_Model):
    """Phase 1 (RFC 9693 section 4.2): `rate` in frames/s, `grace_ms` of waiting for the last frames."""

    rate: Rate
    grace_ms: GraceMs | None = None


class InitiatorStream(_Model):
    """What the Initiator sends in phase 2: `rate` in frames/s."""

    rate: Rate
    frames: StreamFrames


class ResponderStream(InitiatorStream):
    """What the Responder sends in phase 2, and how it reads its state table (RFC 9693 section 4.10)."""

    reading_order: ReadingOrder | None = None


class Step(_Model):
    """Follows without a pause when the streams' frames are sent (RFC 2544 section 26.5): `share` of their rates."""

    share: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    seconds: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class Phase2(_Model):
    """Phase 2 (RFC 9693 section 4.7); a side that is absent is silent."""

    initiator: InitiatorStream | None = None
    responder: ResponderStream | None = None
    grace_ms: GraceMs | None = None
    step: Step | None = None


class Background(_Model):
    """Native IPv6 in phase 2 that the device only routes (RFC 8219 section 5.3): frame i is so unless i mod n < m."""

    n: Annotated[int, Field(ge=2, le=1_000_000)]
    m: Annotated[int, Field(ge=1, le=999_999)]
    initiator_addresses: AddressRange
    responder_addresses: AddressRange


class DelaySamples(_Model):
    """So many frames of each direction are timed, evenly spread over those due from `from_ms` of phase 2 on."""

    from_ms: Annotated[int, Field(ge=0, le=17_000_000)]
    frames: StreamFrames


class Senders(_Model):
    """The tester's sending CPUs, one pinned thread each, and how many frames leave together (1 to 128)."""

    cpus: Annotated[tuple[Count, ...], Field(min_length=1, max_length=64)]
    batch: Annotated[int, Field(ge=1, le=128)] | None = None


class Limits(_Model):
    """The engine breaks the trial off after `seconds`."""

    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class TrialRequest(_Model):
    """One elementary test: phase 1, gap, phase 2. `connections` is N of RFC 9693 section 4.

    A `stateless` one has no phase 1: both sides make their four tuples themselves (RFC 8219 section 5.1).
    """

    version: Literal[1] = REQUEST_VERSION
    mark: Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]
    seed: Annotated[int, Field(ge=0, le=0xFFFF_FFFF_FFFF_FFFF)]
    initiator: InitiatorSide
    responder: ResponderSide
    translation: Translation
    stateless: bool = False
    connections: Annotated[int, Field(ge=1, le=MAXIMUM_CONNECTIONS)]
    order: Order = "permutation"
    frame: Frame
    phase1: Phase1 | None = None
    gap_ms: Annotated[int, Field(ge=0, le=600_000)] | None = None
    phase2: Phase2 | None = None
    background: Background | None = None
    record_delays: bool = False
    delay_samples: DelaySamples | None = None
    record_variation: bool = False
    record_loss_times: bool = False
    frame_timeout_ms: Annotated[float, Field(gt=0, le=60_000, allow_inf_nan=False)] | None = None
    senders: Senders
    watch_cpus: tuple[Count, ...] = ()
    limits: Limits | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        broken = next((rule for applies, rule in self._rules() if applies), None)
        if broken is not None:
            raise ValueError(broken)
        return self

    def _rules(self) -> Iterator[tuple[bool, str]]:
        stateless, sampled = self.stateless, self.delay_samples is not None
        mapped = self.responder.destination_addresses is not None
        yield stateless and self.phase1 is not None, "phase1: a stateless trial has none; leave it out"
        yield stateless and self.phase2 is None, "phase2: it is all there is of a stateless trial; give it"
        yield not stateless and self.phase1 is None, "phase1: only a stateless trial has none; give it"
        yield mapped and not stateless, "responder.destination_addresses: only a stateless trial takes them"
        yield sampled and not self.record_delays, "delay_samples: needs record_delays"
        yield sampled and self.phase2 is None, "delay_samples: these are frames of phase 2; give one"
        yield self.record_variation and not self.record_delays, "record_variation: needs record_delays"
        yield sampled and self.record_variation, "record_variation: samples have no neighbours; leave delay_samples out"

    def to_json(self) -> str:
        """The request as the engine reads it: one line, absent fields left out."""
        return self.model_dump_json(exclude_none=True)

    @property
    def nominal_seconds(self) -> float:
        """How long the trial takes when all goes well: both phases with their graces, and the gap."""
        seconds = (self.gap_ms or 0) / 1e3
        if self.phase1 is not None:
            seconds += self.connections / self.phase1.rate + (self.phase1.grace_ms or 0) / 1e3
        if self.phase2 is not None:
            streams = [s for s in (self.phase2.initiator, self.phase2.responder) if s is not None]
            seconds += max((s.frames / s.rate for s in streams), default=0.0) + (self.phase2.grace_ms or 0) / 1e3
            seconds += self.phase2.step.seconds if self.phase2.step is not None else 0.0
        return seconds


class VariationCounts(_Model):
    """D(i) - D(i-1), signed, of frames that one sender sent one after the other (RFC 5481 section 4.1)."""

    pairs: Count
    minimum_ns: int | None = None
    maximum_ns: int | None = None
    buckets: Buckets = ()


class DelayCounts(_Model):
    """One-way delays of one direction. Negative delays are counted, and are in `minimum_ns`, but in no bucket."""

    frames: Count
    negative: Count
    minimum_ns: int | None = None
    maximum_ns: int | None = None
    sum_ns: int | None = None
    buckets: Buckets = ()
    variation: VariationCounts | None = None


class Silence(_Model):
    """The two arrivals with the longest time between them, since the start of the phase."""

    from_ns: Count
    to_ns: Count


class StreamCounts(_Model):
    """Raw counts of one direction of one phase; a field is None when it was not measured, never zero instead.

    `last_lost_ns`: when the last lost frame was due, since the start of the phase; None also where none was lost.
    """

    intended_frames: Count
    intended_rate: float
    made_frames: Count | None = None
    offered_frames: Count
    received_frames: Count
    duplicates: Count
    reordered: Count
    late: Count
    damaged: Count
    untranslated: Count
    mistranslated: Count
    skipped: Count | None = None
    background_frames: Count | None = None
    background_received: Count | None = None
    nominal_ns: Count | None = None
    sending_ns: Count | None = None
    worst_lag_ns: Count | None = None
    mean_lag_ns: Count | None = None
    final_lag_ns: Count | None = None
    stalled_ns: Count | None = None
    last_lost_ns: Count | None = None
    longest_silence: Silence | None = None
    delay: DelayCounts | None = None


class Phase2Counts(_Model):
    """Counts of phase 2 by who sent; a silent side is absent."""

    initiator: StreamCounts | None = None
    responder: StreamCounts | None = None


class StateTable(_Model):
    """The Responder's state table (RFC 9693 section 4.10): what it learned in phase 1."""

    connections: Count
    stored: Count
    remapped: Count | None = None
    octets: Count


class PortCounters(_Model):
    """What happened at one of the tester's own ports during the trial."""

    refused: Count
    redirect_errors: Count
    foreign: Count
    neighbour_replies: Count
    rx_dropped: Count | None = None
    tx_dropped: Count | None = None
    gateway_mac: str | None = None


class Ports(_Model):
    """Both of the tester's ports."""

    initiator: PortCounters
    responder: PortCounters


class Cpu(_Model):
    """Stalls of one CPU: times it did nothing of its task although it should have."""

    cpu: Count
    role: Literal["sender", "watched"]
    stalls: Count
    stalled_ns: Count
    worst_stall_ns: Count
    stolen_ns: Count | None = None
    waited_ns: Count | None = None


class Clock(_Model):
    """The kernel's clock source, and how often the wall clock was stepped during the trial."""

    source: str
    steps: Count | None = None


class FrameSizes(_Model):
    """Octets with FCS as sent on each side."""

    initiator_octets: Count
    responder_octets: Count


class Progress(_Model):
    """Where a running trial is."""

    event: Literal["progress"]
    phase: Literal["phase1", "gap", "phase2"]
    seconds: float
    intended_frames: Count
    made_frames: Count
    received_frames: Count


class TrialResult(_Model):
    """What the engine counted in one trial: raw integers, nothing derived. A stateless trial has no `phase1`."""

    event: Literal["result"]
    version: Literal[1]
    engine: str
    mark: Count
    seed: Count
    phase1: StreamCounts | None = None
    phase2: Phase2Counts | None = None
    state_table: StateTable
    ports: Ports
    cpus: tuple[Cpu, ...]
    clock: Clock
    start_to_first_frame_ns: Count | None = None
    wall_ns: Count | None = None
    frame: FrameSizes | None = None


def phase1_of(result: TrialResult) -> StreamCounts:
    """Counts of phase 1, for trials that have one.

    Raises:
        BrokenError: the engine left them out.
    """
    if result.phase1 is None:
        raise BrokenError("trial: natgauge-engine left phase 1 out of its result")
    return result.phase1


ProgressCallback = Callable[[Progress], None]

#: The engine's exit statuses and what they mean (design of the agreement: 2 request, 3 host, 4 broke on the way).
_ERRORS: dict[int, type[NatgaugeError]] = {2: UsageError, 3: HostError, 4: BrokenError}

#: Seconds the engine gets to undo everything after SIGTERM before it is killed.
_TERM_PATIENCE_SECONDS = 10.0

#: Beyond its own nominal time a trial may take this long: loading programs, large maps (about 2.5 s a gigabyte).
_SLACK_SECONDS = 60.0


def run(
    request: TrialRequest,
    *,
    progress: ProgressCallback | None = None,
    engine: Path | None = None,
    seconds: float | None = None,
) -> TrialResult:
    """Run one trial and return what the engine counted.

    Args:
        request: what to do.
        progress: called with every progress event, in this thread.
        engine: path of `natgauge-engine`; found by `labs.programs` when absent.
        seconds: wall time after which the engine is stopped; by default the trial's own length and a minute.

    Raises:
        UsageError: the engine refused the request (its exit status 2); the message is the engine's own.
        HostError: this host cannot do it (3), or there is no engine.
        BrokenError: it broke on the way (4), was killed, ran out of time or answered outside the agreement.
    """
    program = engine if engine is not None else programs.find("natgauge-engine")
    limit = seconds if seconds is not None else request.nominal_seconds * 2 + _SLACK_SECONDS
    with tempfile.TemporaryFile() as errors:
        process = _start(program, errors)
        expired = threading.Event()
        timer = threading.Timer(limit, _expire, (process, expired))
        timer.daemon = True
        timer.start()
        try:
            result = _converse(process, request, progress)
            status = process.wait()
        finally:
            timer.cancel()
            _end(process)
        if expired.is_set():
            raise BrokenError(f"trial: natgauge-engine did not end within {limit:.0f} s and was stopped")
        if status != 0:
            raise _error_of(status, errors)
    if result is None:
        raise BrokenError("trial: natgauge-engine ended with status 0 but gave no result")
    return result


def _start(program: Path, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the engine in its own process group: Ctrl-C reaches us alone, and we end it in order."""
    try:
        return subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            process_group=0,
        )
    except OSError as error:
        raise HostError(f"trial: cannot start {program}: {error.strerror}; run `make build`") from error


def _converse(
    process: subprocess.Popen[bytes], request: TrialRequest, progress: ProgressCallback | None
) -> TrialResult | None:
    """Hand the request over and read JSON lines to the end of the stream."""
    if process.stdin is None or process.stdout is None:
        raise BrokenError("trial: natgauge-engine has no pipes")
    try:
        process.stdin.write(request.to_json().encode() + b"\n")
        process.stdin.close()
    except BrokenPipeError:
        # The engine refused before it read all; its exit status and message say why.
        pass
    result: TrialResult | None = None
    for line in process.stdout:
        event = parse_line(line)
        if isinstance(event, TrialResult):
            result = event
        elif progress is not None:
            progress(event)
    return result


def parse_line(line: bytes | str) -> TrialResult | Progress:
    """Read one line of the engine's standard output.

    Raises:
        BrokenError: it is no JSON object, of an unknown event or version, or breaks the agreement.
    """
    try:
        document = json.loads(line)
    except ValueError as error:
        raise BrokenError(f"trial: natgauge-engine wrote a line that is not JSON: {_shorten(line)}") from error
    event = document.get("event") if isinstance(document, dict) else None
    if event == "result" and document.get("version") != RESULT_VERSION:
        raise BrokenError(
            f"trial: natgauge-engine speaks version {document.get('version')!r} of the result, "
            f"this natgauge version {RESULT_VERSION}; rebuild both with `make build`"
        )
    models: dict[object, type[TrialResult | Progress]] = {"result": TrialResult, "progress": Progress}
    model = models.get(event)
    if model is None:
        raise BrokenError(f"trial: natgauge-engine wrote an unknown event: {_shorten(line)}")
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BrokenError(f"trial: natgauge-engine's {event}: {where}: {first['msg']}") from error


def _shorten(line: bytes | str) -> str:
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    return repr(text[:120])


def _expire(process: subprocess.Popen[bytes], expired: threading.Event) -> None:
    if process.poll() is None:
        expired.set()
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the engine: SIGTERM, so that it undoes what it attached, then SIGKILL."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_TERM_PATIENCE_SECONDS)
    except BaseException as error:
        # Also a second Ctrl-C: no engine is left behind, its BPF links die with it.
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Make sure that the engine is gone and its pipes are closed."""
    _stop(process)
    for stream in (process.stdin, process.stdout):
        if stream is not None and not stream.closed:
            try:
                stream.close()
            except BrokenPipeError:
                continue


def _error_of(status: int, errors: IO[bytes]) -> NatgaugeError:
    """The engine's own last message as the error that belongs to its exit status."""
    errors.seek(0)
    lines = [line for line in errors.read()[-65_536:].decode(errors="replace").splitlines() if line.strip()]
    message = lines[-1].strip() if lines else ""
    if status < 0:
        name = signal.Signals(-status).name
        return BrokenError(f"trial: natgauge-engine was ended by {name}" + (f": {message}" if message else ""))
    kind = _ERRORS.get(status, BrokenError)
    return kind(message or f"trial: natgauge-engine ended with status {status} and said nothing")

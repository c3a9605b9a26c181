# SPDX-License-Identifier: Apache-2.0
"""Run `natgauge-engine` for one trial: write the request, read the output, turn exit statuses into errors."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final, get_args

from pydantic import ValidationError

from natgauge.agreement.generated import (
    ComparisonRequest,
    ComparisonResult,
    Failed,
    Progress,
    TrialRequest,
    TrialResult,
)
from natgauge.agreement.trial import nominal_seconds
from natgauge.bounded_output import BoundedOutput, size_in_words
from natgauge.errors import BrokenError, HostError, NatgaugeError, UnreachableError, UsageError, of_host
from natgauge.host import programs

#: Errors by the engine's exit status: 2 wrong request, 3 unsuitable host, 4 failure during the trial, 5 no frame can be
#: sent.
_ERRORS: dict[int, type[NatgaugeError]] = {2: UsageError, 3: HostError, 4: BrokenError, 5: UnreachableError}

#: The lines of the engine's output, by their event.
_EVENTS: Final[dict[str, type[TrialResult | Progress | Failed]]] = {
    "result": TrialResult,
    "progress": Progress,
    "failed": Failed,
}
#: The version of results that this natgauge reads.
(_RESULT_VERSION,) = get_args(TrialResult.model_fields["version"].annotation)

#: Seconds that the engine may take after SIGTERM to undo its changes, before SIGKILL.
_TERM_PATIENCE_SECONDS = 10.0

#: Seconds that a trial may take in addition to its nominal time: loading programs, large maps (about 2.5 s per
#: gigabyte).
_SLACK_SECONDS = 60.0

#: Capacity of a pipe.
_BLOCK_OCTETS = 65_536

#: Octets of the longest line, and of all that a round of a comparison prints. The longest results have a few MiB.
_MOST_OCTETS = 64 * 1024 * 1024


def run(
    request: TrialRequest,
    progress: Callable[[Progress], None] | None = None,
    seconds: float | None = None,
    *,
    engine: Path | None = None,
) -> TrialResult:
    """Run one trial and return the engine's counts.

    The engine is stopped after so many seconds, by default after twice the trial's nominal length and a minute.
    """
    limit = seconds if seconds is not None else nominal_seconds(request) * 2 + _SLACK_SECONDS
    last: TrialResult | None = None

    def read(line: bytes) -> None:
        nonlocal last
        event = parse_line(line)
        if isinstance(event, TrialResult):
            last = event
        elif isinstance(event, Progress) and progress is not None:
            progress(event)

    _perform(request.to_json(), read, limit, engine=engine)
    if last is None:
        raise BrokenError("trial: natgauge-engine ended with status 0 but gave no result")
    return last


def compare(request: ComparisonRequest, *, engine: Path | None = None, seconds: float) -> ComparisonResult:
    """Run one round of a comparison and return the engine's counts."""
    lines: list[bytes] = []
    length = 0

    def read(line: bytes) -> None:
        nonlocal length
        length += len(line)
        if length > _MOST_OCTETS:
            raise _too_long()
        lines.append(line)

    _perform(request.to_json(), read, seconds, "--compare", engine=engine)
    try:
        return ComparisonResult.model_validate_json(b"".join(lines))
    except ValidationError as error:
        raise _outside("comparison", error) from error


def _perform(request: str, read: Callable[[bytes], None], limit: float, *arguments: str, engine: Path | None) -> None:
    """Start the engine, write the request, and pass every line of output to `read`."""
    program = engine if engine is not None else programs.find("natgauge-engine")
    with BoundedOutput() as errors:
        process = _start(program, arguments, errors.fileno())
        expired = threading.Event()
        timer = threading.Timer(limit, _expire, (process, expired))
        timer.daemon = True
        timer.start()
        last = b""

        def read_last(line: bytes) -> None:
            nonlocal last
            last = line
            read(line)

        try:
            _converse(process, request, read_last)
            status = process.wait()
        finally:
            timer.cancel()
            _end(process)
        if expired.is_set():
            raise BrokenError(f"trial: natgauge-engine did not end within {limit:.0f} s and was stopped")
        if status != 0:
            raise _error_of(status, errors, _failed_port(last))


def _start(program: Path, arguments: Sequence[str], errors: int) -> subprocess.Popen[bytes]:
    """Start the engine in its own session: Ctrl-C does not reach it, and its priority counts in the whole machine."""
    try:
        return subprocess.Popen(
            [str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    except OSError as error:
        what = f"trial: cannot start {program}"
        raise of_host(error, what) or HostError(f"{what}: {error.strerror}; run `make build`") from error


def _converse(process: subprocess.Popen[bytes], request: str, read: Callable[[bytes], None]) -> None:
    """Write the request and read lines to the end of the stream."""
    if process.stdin is None or process.stdout is None:
        raise BrokenError("trial: natgauge-engine has no pipes")
    try:
        process.stdin.write(request.encode() + b"\n")
        process.stdin.close()
    except BrokenPipeError:
        # The engine refused the request before it had read all of it; its exit status and message give the reason.
        pass
    for line in _lines(process.stdout):
        read(line)


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Read lines to the end; a signal's handler can run while no line arrives.

    A signal does not interrupt `read` where a library has set SA_RESTART, as polars does for Ctrl-C on import. A
    signal always interrupts `poll` (signal(7)).
    """
    waiting = select.poll()
    waiting.register(stream, select.POLLIN)
    parts: list[bytes] = []
    length = 0
    while True:
        waiting.poll()
        block = os.read(stream.fileno(), _BLOCK_OCTETS)
        if not block:
            break
        *ends, rest = block.split(b"\n")
        for end in ends:
            yield b"".join([*parts, end, b"\n"])
            parts.clear()
            length = 0
        parts.append(rest)
        length += len(rest)
        if length > _MOST_OCTETS:
            raise _too_long()
    if last := b"".join(parts):
        yield last


def _too_long() -> BrokenError:
    return BrokenError(
        f"trial: natgauge-engine printed more than {size_in_words(_MOST_OCTETS)}; rebuild it with `make build`"
    )


def parse_line(line: bytes | str) -> TrialResult | Progress | Failed:
    """Read one line of the engine's standard output."""
    try:
        document = json.loads(line)
    except ValueError as error:
        raise BrokenError(f"trial: natgauge-engine wrote a line that is not JSON: {_shorten(line)}") from error
    event = document.get("event") if isinstance(document, dict) else None
    if event == "result" and document.get("version") != _RESULT_VERSION:
        raise BrokenError(
            f"trial: natgauge-engine writes version {document.get('version')!r} of the result, "
            f"this natgauge version {_RESULT_VERSION}; rebuild both with `make build`"
        )
    model = _EVENTS.get(str(event))
    if model is None:
        raise BrokenError(f"trial: natgauge-engine wrote an unknown event: {_shorten(line)}")
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _outside(str(event), error) from error


def _outside(event: str, error: ValidationError) -> BrokenError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return BrokenError(f"trial: natgauge-engine's {event}: {where}: {first['msg']}")


def _shorten(line: bytes | str) -> str:
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    return repr(text[:120])


def _expire(process: subprocess.Popen[bytes], expired: threading.Event) -> None:
    if process.poll() is None:
        expired.set()
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the engine: SIGTERM, so that it detaches its programs, then SIGKILL."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_TERM_PATIENCE_SECONDS)
    except BaseException as error:
        # A second Ctrl-C must not leave an engine behind, either. The kernel removes its BPF links with it.
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Make sure that the engine has ended and its pipes are closed."""
    _stop(process)
    for stream in (process.stdin, process.stdout):
        if stream is not None and not stream.closed:
            try:
                stream.close()
            except BrokenPipeError:
                continue


def _failed_port(line: bytes) -> str:
    """The port that the engine's last line of output says has failed; empty = it names none."""
    try:
        return Failed.model_validate_json(line).port
    except ValidationError:
        return ""


def _error_of(status: int, errors: BoundedOutput, port: str) -> NatgaugeError:
    """Return the error that belongs to the exit status and the port that failed, with the engine's last message."""
    message = next((line.strip() for line in reversed(errors.text().splitlines()) if line.strip()), "")
    if status < 0:
        name = signal.Signals(-status).name
        return BrokenError(f"trial: natgauge-engine was ended by {name}" + (f": {message}" if message else ""))
    kind = _ERRORS.get(status, BrokenError)
    return kind(message or f"trial: natgauge-engine ended with status {status} and said nothing", at=port)

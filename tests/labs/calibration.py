# SPDX-License-Identifier: Apache-2.0
"""Devices of known truth: what a tester reports of them can be compared with what was really done, frame by frame.

`calibrator` changes every k-th frame that leaves an interface of a forwarding device, `forwarder` holds each frame for
a known time. Both count what they did. They stand where a device stands, so the tester cannot tell.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host import programs

#: The program behind this module.
PROGRAM: Final = "natgauge-calibrator"

Mode = Literal["drop", "duplicate", "swap", "damage", "untranslated", "mistranslate", "stop-after"]

_PATIENCE = 30.0  # seconds for what takes milliseconds
_KINDS: dict[int, type[NatgaugeError]] = {2: UsageError, 3: HostError}


@dataclass(frozen=True, slots=True)
class Tally:
    """Frames since a calibrator was attached.

    Attributes:
        seen: UDP frames of at least 60 octets (without FCS) that left the interface.
        acted: those of them that did not leave as they came.
    """

    seen: int
    acted: int


@dataclass(frozen=True, slots=True)
class TimerError:
    """How much later than due the forwarder sent its frames, in seconds; all >= 0. Ranks are rounded up to 100 ns."""

    minimum: float
    mean: float
    median: float
    p99: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Held:
    """What a forwarder of known delay did.

    Attributes:
        frames: sent on.
        jittered: of these, held longer by the jitter.
        refused: too long, or the ring was full.
        failed: not taken by the outgoing interface.
        kept: still held when it ended.
        timer_error: None when no frame was sent.
    """

    frames: int
    jittered: int
    refused: int
    failed: int
    kept: int
    timer_error: TimerError | None


@contextmanager
def calibrator(
    netns: str | None,
    interface: str,
    mode: Mode,
    *,
    every: int,
    offset: int = 0,
    octet: int = 0,
    bits: int = 0xFF,
    source: str | None = None,
    source_port: int | None = None,
) -> Iterator[Callable[[], Tally]]:
    """Change every k-th test frame that leaves `interface`, while the context lasts.

    Args:
        netns: namespace of the device; None = the caller's own.
        interface: one of the device's interfaces, seen from inside the namespace.
        mode: what happens to a chosen frame: it vanishes ("drop"), leaves twice ("duplicate"), leaves after its
            successor ("swap"), has bits of one octet flipped and its checksums left as they are ("damage"), gets its
            private source back with right checksums ("untranslated"), goes to the neighbouring destination port with
            right checksums ("mistranslate"), or vanishes as all after it do ("stop-after").
        every: k >= 1, for "swap" >= 2: the k-th, 2k-th ... frame is chosen; "stop-after": so many leave.
        offset: so many frames are left alone at first.
        octet: for "damage": which one, from the start of the UDP payload; negative ones are in the headers.
        bits: for "damage": which of its bits, 1 to 255.
        source: for "untranslated": the private address.
        source_port: for "untranslated": the private port; None = it stays.

    Yields:
        A function that reads the tally.

    Raises:
        UsageError: a choice makes no sense, or the interface is unknown or has a calibrator already.
        HostError: this host cannot do it.
    """
    place = [*_netns(netns), "--interface", interface]
    choices = {"mode": mode, "every": every, "offset": offset, "octet": octet, "bits": bits}
    _call("attach", *place, *_options(**choices, source=source, source_port=source_port))
    try:
        yield lambda: Tally(**json.loads(_call("read", *place)))
    finally:
        _call("detach", *place)


class Forwarder:
    """A running forwarder of known delay; see `forwarder`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._held: Held | None = None

    def stop(self) -> Held:
        """End it (once) and tell what it did.

        Raises:
            BrokenError: it ended by itself before, or says nothing.
        """
        if self._held is None:
            self._process.terminate()
            self._held = _parse_held(self._finish())
        return self._held

    def _finish(self) -> dict[str, Any]:
        output, complaint = self._process.communicate(timeout=_PATIENCE)
        if self._process.returncode:
            raise BrokenError(f"{PROGRAM} hold: {complaint.strip() or f'ended with {self._process.returncode}'}")
        line: dict[str, Any] = json.loads(output)
        return line


@contextmanager
def forwarder(
    netns: str | None,
    inside: str,
    outside: str,
    delay_us: int,
    *,
    jitter_us: int | None = None,
    every: int | None = None,
    cpu: int | None = None,
) -> Iterator[Forwarder]:
    """Forward between two interfaces as a transparent bridge, holding each frame, while the context lasts.

    The hold is from the arrival at XDP to the call that sends. The tester's gateway is then the other tester port.

    Args:
        netns: namespace of both interfaces; None = the caller's own.
        inside: one of them.
        outside: the other.
        delay_us: microseconds, 0 to 60 s.
        jitter_us: hold every k-th frame this much longer; needs `every`.
        every: k.
        cpu: which CPU waits; None = any.

    Raises:
        UsageError: a choice makes no sense or an interface is unknown.
        HostError: this host cannot do it.
    """
    choices = _options(inside=inside, outside=outside, delay_us=delay_us, jitter_us=jitter_us, every=every, cpu=cpu)
    command = [str(programs.find(PROGRAM)), "hold", *_netns(netns), *choices]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            _await_ready(process)
            yield Forwarder(process)
        finally:
            process.terminate()


def _await_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if not process.stdout.readline():
        _, complaint = process.communicate(timeout=_PATIENCE)
        raise _failure("hold", process.returncode, complaint)


def _parse_held(line: dict[str, Any]) -> Held:
    error = line.get("timer_error_ns")
    return Held(
        **{name: line[name] for name in ("frames", "jittered", "refused", "failed", "kept")},
        timer_error=None if error is None else _parse_timer_error(error),
    )


def _parse_timer_error(error: dict[str, float]) -> TimerError:
    return TimerError(*(error[name] / 1e9 for name in ("min", "mean", "p50", "p99", "max")))


def _netns(name: str | None) -> Sequence[str]:
    return [] if name is None else ["--netns", name]


def _options(**choices: object) -> Iterator[str]:
    # With "=", because a negative number would be taken for an option.
    return (f"--{name.replace('_', '-')}={value}" for name, value in choices.items() if value is not None)


def _call(verb: str, *arguments: str) -> str:
    command = [str(programs.find(PROGRAM)), verb, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode:
        raise _failure(verb, done.returncode, done.stderr)
    return done.stdout


def _failure(verb: str, status: int, complaint: str) -> NatgaugeError:
    kind = _KINDS.get(status, BrokenError)
    return kind(f"{PROGRAM} {verb}: {complaint.strip() or f'ended with {status}'}")

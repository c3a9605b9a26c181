# SPDX-License-Identifier: Apache-2.0
"""The collector of a gateway's log: sockets in the device's network that receive syslog or IPFIX while trials run.

A thread takes each message as it arrives, and nothing else: the messages are read when a trial has ended. It has the
priority of the device's programs: who writes to a unix socket that is full waits, and loses what comes meanwhile.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Final, Self

from natgauge.errors import BrokenError, HostError, OverrunError
from natgauge.gateways.logs import IpfixLines, LoggingWay
from natgauge.inputs.input import wrong
from natgauge.labs.common import namespaces
from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.contract import Device

#: The unix socket of a syslog collector in the device's private directory.
_SOCKET: Final = "syslog"
#: A unix socket takes one message more than these, as with systemd, before its senders wait.
_QUEUED: Final = 512
_QUEUE: Final = {"net/unix/max_dgram_qlen": _QUEUED}
#: Octets of a UDP socket: some tenths of a second of 100,000 records/s.
_BUFFER: Final = 64 << 20
_LARGEST: Final = 1 << 16
#: Messages that are kept: as many as the connections of the largest trial with a log.
_MOST: Final = 1 << 22
#: Not in Python's module (asm-generic/socket.h).
_SO_RCVBUFFORCE: Final = 33
_SO_TIMESTAMPNS: Final = 35
_SO_MEMINFO: Final = 55
_TIME: Final = struct.Struct("@qq")
#: Nine numbers, of which the last counts what the socket dropped (SK_MEMINFO_DROPS).
_MEMINFO: Final = struct.Struct("@9I")


class Collector:
    """Sockets to which a device logs. Use it as a context manager, around the device.

    Syslog has a unix socket, `$NG_WORK/syslog`, and as IPFIX a UDP port of the device's loopback.
    """

    def __init__(self, device: NamespaceDevice, name: str, way: LoggingWay) -> None:
        self._device, self._name, self._way = device, name, way
        self._made = ExitStack()
        self._sockets: list[socket.socket] = []
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._ipfix = IpfixLines() if way.records == "ipfix" else None
        self._lines: list[str] = []
        self._octets = 0
        self._dropped = self._overrun = self._full = 0
        #: Times at which the latest messages of the unix socket were asked for, s since 1970.
        self._asked: deque[float] = deque(maxlen=_QUEUED + 1)
        self._failed: Exception | None = None

    def __enter__(self) -> Self:
        """Listen; HostError where the port is in use."""
        with ExitStack() as made:
            self._sockets = [
                made.enter_context(closing(each)) for each in namespaces.inside(self._device.netns, self._opened)
            ]
            made.callback(self._path.unlink, missing_ok=True)
            stopped, stopper = map(made.enter_context, socket.socketpair())
            thread = threading.Thread(target=self._receive, args=(stopped,), name="natgauge-log", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise HostError(f"logging {self._name}: no thread can be started; allow more (ulimit -u)") from error
            made.callback(thread.join)
            made.callback(stopper.close)
            self._made = made.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.close()
        self._sockets = []

    def empty(self) -> None:
        """Forget all records so far, but not the templates among them; nothing else of them is read."""
        while self._waiting:
            _, message = self._waiting.popleft()
            if self._ipfix is not None:
                self._ipfix.learn(message)
        self._lines, self._octets, self._dropped, self._full = [], 0, self._dropped_so_far, 0

    def size(self) -> int:
        """Octets of all messages so far."""
        self._read()
        return self._octets

    def text(self) -> str:
        """Return all records so far, each a line with its arrival, in s since 1970, in front.

        OverrunError where the socket dropped messages, so that nobody knows what the device logged.
        """
        self._read()
        if self._failed is not None:
            raise BrokenError(f"logging {self._name}: natgauge's own collector ended: {self._failed}")
        if new := self._dropped_so_far - self._dropped:
            raise OverrunError(
                f"logging {self._name}: natgauge's own socket dropped {new:,} messages, because this machine is too "
                "slow to take them; choose lower rates or fewer connections"
            )
        return "".join(self._lines)

    def confirm_unhindered(self) -> None:
        """Raise OverrunError where the device had to wait for natgauge, which may be why records are missing."""
        if self._full:
            raise OverrunError(
                f"logging {self._name}: records are missing, and natgauge's own socket was full ({self._full:,} x), "
                "so that the gateway's log had to wait for this machine; choose lower rates or fewer connections"
            )

    @property
    def _dropped_so_far(self) -> int:
        return sum(map(_dropped, self._sockets)) + self._overrun

    @property
    def _path(self) -> Path:
        return Path(self._device.environment["NG_WORK"]) / _SOCKET

    def _opened(self) -> list[socket.socket]:
        """Return the sockets. Called in the device's network."""
        port = self._way.udp_port
        found: list[socket.socket] = []
        try:
            found.append(_listening(socket.AF_INET, ("127.0.0.1", port)))
            if self._way.records == "syslog":
                namespaces.write_sysctls(_QUEUE)
                self._path.unlink(missing_ok=True)
                found.append(_listening(socket.AF_UNIX, str(self._path)))
        except OSError as error:
            for made in found:
                made.close()
            used = error.errno == errno.EADDRINUSE
            remedy = f"; end what listens there, or set another port in [logging.{self._name}]" if used else ""
            raise HostError(
                f"logging {self._name}: UDP port {port} of 127.0.0.1 on device {self._device.name}: natgauge cannot "
                f"collect there ({error.strerror or error}){remedy}"
            ) from error
        return found

    def _receive(self, stopped: socket.socket) -> None:
        try:
            self._rank()
            with DefaultSelector() as selector:
                for each in (stopped, *self._sockets):
                    selector.register(each, EVENT_READ)
                while True:
                    for key, _ in selector.select():
                        if key.fileobj is stopped:
                            return
                        messages = _messages(key.fileobj)  # type: ignore[arg-type] # as registered
                        is_unix = key.fileobj.family == socket.AF_UNIX  # type: ignore[union-attr] # as above
                        self._keep(self._watched(messages) if is_unix else messages)
        except Exception as error:  # noqa: BLE001 - told by the thread that reads the records
            self._failed = error

    def _rank(self) -> None:
        """Let this thread run whenever a message comes; without the privilege it stays as it is.

        The device's programs have a higher priority than ours, and a log that waits for us loses records. A nice value
        would count in our session alone (autogroup), and that is the user's.
        """
        if self._device.nice:
            with suppress(OSError):
                os.sched_setscheduler(threading.get_native_id(), os.SCHED_RR, os.sched_param(1))

    def _watched(self, messages: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
        """Yield messages of the unix socket, and count when it was full: one came as many places ahead as it takes.

        Each has the time at which it came into the socket.
        """
        asked = time.time()
        for at, message in messages:
            self._asked.append(asked)
            self._full += len(self._asked) == self._asked.maxlen and at <= self._asked[0]
            yield at, message
            asked = time.time()

    def _keep(self, messages: Iterable[tuple[float, bytes]]) -> None:
        """Keep messages until somebody reads them; slices of costs have a log that nobody reads."""
        for message in messages:
            if len(self._waiting) < _MOST:
                self._waiting.append(message)
            else:
                self._overrun += 1

    def _read(self) -> None:
        """Make lines of the messages that came."""
        while self._waiting:
            at, message = self._waiting.popleft()
            self._octets += len(message)
            lines = [f"{at:.6f} {_text(message)}"] if self._ipfix is None else self._ipfix.of(at, message)
            self._lines += [f"{line}\n" for line in lines]


def _listening(family: int, address: object) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        made.bind(address)  # type: ignore[arg-type] # of this family
    except BaseException:
        made.close()
        raise
    return made


def _messages(of: socket.socket) -> Iterator[tuple[float, bytes]]:
    """Yield all messages that wait, each with its arrival in s since 1970."""
    with suppress(BlockingIOError):
        while True:
            message, controls, _, _ = of.recvmsg(_LARGEST, socket.CMSG_SPACE(_TIME.size))
            seconds, nanoseconds = _TIME.unpack(controls[0][2][: _TIME.size])
            yield seconds + nanoseconds / 1e9, message


def _text(message: bytes) -> str:
    """Return a syslog message as one line."""
    return " ".join(message.decode(errors="replace").splitlines())


def _dropped(of: socket.socket) -> int:
    """Return the messages that found no room in a socket."""
    return int(_MEMINFO.unpack(of.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))[-1])


def planned(device: Device, name: str, way: LoggingWay) -> Collector | None:
    """Return the collector of a way; None where its records come to a file."""
    if not way.collected:
        return None
    if not isinstance(device, NamespaceDevice):
        raise wrong(
            "logging",
            f'"{name}": its records come to a socket of natgauge, and device {device.name} is on another machine; '
            "choose a way that writes a file",
        )
    return Collector(device, name, way)

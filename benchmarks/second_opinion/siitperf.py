# SPDX-License-Identifier: Apache-2.0
"""Run siitperf's elementary trial on two veth ports of this machine.

siitperf (GPL) is not part of this project: the caller names a `siitperf-tp` that exists. It fixes the arguments of
DPDK's EAL, so `eal_arguments.c` is preloaded. It adds DPDK's af_packet driver for the ports, and assigns the lcores to
the processors of this machine.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.place import (
    DEVICE,
    DEVICE_INSIDE,
    DEVICE_OUTSIDE,
    INITIATOR,
    INITIATOR_ADDRESS,
    RESPONDER,
    RESPONDER_ADDRESS,
    TESTER,
    sh,
)

_SHIM: Final = Path(__file__).parents[1] / "eal_arguments.c"
#: siitperf writes frame sizes as those of IPv6; its IPv4 frames are 20 octets shorter.
_FRAME_SIZE: Final = 84
#: Frames in the rings of a port. The driver's default, 512, overflows when a receiver loses its processor for long.
_RING: Final = 16_384
#: Wait for the last frames of either phase, in ms.
_GRACE_MS: Final = 300


class SiitperfError(Exception):
    """siitperf ended without the counts of a trial; the message has its last lines."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Phase 1: `connections` frames at `rate` frames/s, each with another source port."""

    connections: int
    rate: int
    first_port: int
    destination_port: int


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Phase 2: `rate` frames/s in each active direction for `seconds` (whole seconds)."""

    rate: int
    seconds: int
    up: bool
    down: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of siitperf in one trial, by its names of phase and direction: Preliminary, Forward, Reverse."""

    received: dict[str, int]
    invalid: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Siitperf:
    """An existing siitperf, and the processors of its lcores.

    Attributes:
        program: the `siitperf-tp` to run.
        library: `eal_arguments.c` as a shared library.
        sender: processor of a sender.
        receiver: processor of a receiver. With two directions each processor has a sender and a receiver.
    """

    program: Path
    library: Path
    sender: int
    receiver: int

    def trial(self, opening: Opening, forwarding: Forwarding) -> Counts:
        """Run one trial.

        Raises:
            SiitperfError: siitperf failed.
        """
        opening_ms = 1000 * opening.connections // opening.rate + 1
        arguments = [
            *(_FRAME_SIZE, forwarding.rate, forwarding.seconds, _GRACE_MS, 2, 2),
            *(opening.connections, opening.connections, opening.rate, _GRACE_MS, opening_ms + 2 * _GRACE_MS),
        ]
        with TemporaryDirectory() as folder:
            (Path(folder) / "siitperf.conf").write_text(configuration(opening, forwarding))
            done = subprocess.run(
                ["ip", "netns", "exec", TESTER, self.program.resolve(), *map(str, arguments)],
                cwd=folder,
                env=os.environ | {"LD_PRELOAD": str(self.library), "EAL_ARGUMENTS": self._eal(forwarding)},
                capture_output=True,
                text=True,
                check=False,
            )
        counts = read(done.stdout)
        wanted = {"Preliminary", *(["Forward"] if forwarding.up else []), *(["Reverse"] if forwarding.down else [])}
        if missing := wanted - counts.received.keys():
            last = " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
            raise SiitperfError(
                f"siitperf, status {done.returncode}: no counts of {', '.join(sorted(missing))}: {last}"
            )
        return counts

    def _eal(self, forwarding: Forwarding) -> str:
        # Lcores: main, left sender, right receiver, right sender, left receiver. Main does not poll.
        processors = [self.receiver, self.sender, self.receiver]
        if forwarding.down:
            processors += [self.receiver, self.sender] if forwarding.up else [self.sender, self.receiver]
        ports = "".join(
            f" --vdev net_af_packet{number},iface={port},qdisc_bypass=1,framecnt={_RING}"
            for number, port in enumerate((INITIATOR, RESPONDER))
        )
        lcores = ",".join(f"{lcore}@{processor}" for lcore, processor in enumerate(processors))
        return f"--no-huge -m 512 --no-pci --no-telemetry --file-prefix ngopinion --lcores {lcores}{ports}"


def read(text: str) -> Counts:
    """Counts from siitperf's output."""
    received = {name: int(count) for name, count in re.findall(r"(\w+) frames received: (\d+)", text)}
    invalid = re.findall(r"Warning: (\w+) sending .* invalid", text)
    return Counts(received, tuple(invalid))


def configuration(opening: Opening, forwarding: Forwarding) -> str:
    """Write a configuration of siitperf for the ports of `benchmarks.place`, with one address on each side."""
    last_port = opening.first_port + opening.connections - 1
    settings = {
        "IP-L-Vers": 4,
        "IP-R-Vers": 4,
        "IPv4-L-Real": INITIATOR_ADDRESS,
        "IPv4-R-Real": RESPONDER_ADDRESS,
        "IPv6-L-Real": "::",
        "IPv6-R-Real": "::",
        "MAC-L-Tester": _mac(INITIATOR, TESTER),
        "MAC-R-Tester": _mac(RESPONDER, TESTER),
        "MAC-L-DUT": _mac(DEVICE_INSIDE, DEVICE),
        "MAC-R-DUT": _mac(DEVICE_OUTSIDE, DEVICE),
        "Forward": int(forwarding.up),
        "Reverse": int(forwarding.down),
        "Promisc": 0,
        "CPU-L-Send": 1,
        "CPU-R-Recv": 2,
        "CPU-R-Send": 3,
        "CPU-L-Recv": 4,
        "Stateful": 1,
        "Enumerate-ports": 3,
        "Responder-tuples": 1,
        "Fwd-var-sport": 3,
        "Fwd-var-dport": 3,
        "Fwd-sport-min": opening.first_port,
        "Fwd-sport-max": last_port,
        "Fwd-dport-min": opening.destination_port,
        "Fwd-dport-max": opening.destination_port,
    }
    return "".join(f"{name} {value}\n" for name, value in settings.items())


@contextmanager
def built_library() -> Iterator[Path]:
    """`eal_arguments.c` as a shared library, in a temporary folder."""
    with TemporaryDirectory() as folder:
        library = Path(folder) / "eal_arguments.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, _SHIM, "-ldl"], check=True)
        yield library


def _mac(interface: str, netns: str) -> str:
    return sh(f"cat /sys/class/net/{interface}/address", netns=netns).strip()

# SPDX-License-Identifier: Apache-2.0
"""The engine as a judge of requests (`natgauge-engine --check` and `--check-lines`), and requests to be judged."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from natgauge.host import programs

TRIAL = Path(__file__).resolve().parents[2] / "trial"
EXAMPLE = json.loads((TRIAL / "examples" / "nat44-both-phases.json").read_text())
#: The Initiator emulates customer edges.
EDGES = json.loads((TRIAL / "examples" / "map-t-br-stateless.json").read_text())
#: These tunnel IPv4 over IPv6.
TUNNELS = json.loads((TRIAL / "examples" / "map-e-br-stateless.json").read_text())
#: Stands for a part that is left out.
ABSENT = "(absent)"


def changed(request: Any, *changes: tuple[str, object]) -> Any:
    """A copy of the request with parts, named with dots, replaced or left out."""
    request = copy.deepcopy(request)
    for where, value in changes:
        part = request
        *parents, last = where.split(".")
        for key in parents:
            part = part.setdefault(key, {})
        part.pop(last, None)
        if value != ABSENT:
            part[last] = copy.deepcopy(value)
    return request


#: The device is a customer edge that tunnels IPv4 over IPv6, and the Responder is its relay.
EDGE_DEVICE = changed(
    EXAMPLE,
    ("responder.family", "ipv6"),
    ("responder.gateway.address", "2001:2:0:8000::1"),
    ("responder.addresses", {"first": "2001:2:0:1::c613:2", "last": "2001:2:0:1::c613:2"}),
    ("responder.customer_edges", {**TUNNELS["initiator"]["customer_edges"], "number": 1}),
    ("translation.pool", ABSENT),
)

#: The device is customer edges and their relay; each edge has a port set of its own.
EDGES_AND_RELAY = changed(
    EXAMPLE,
    ("responder.customer_edges", {**EDGES["initiator"]["customer_edges"], "number": 1}),
    ("translation.source", "translated"),
)


def built(name: str) -> Path:
    """The program of this name that natgauge would run."""
    return programs.find(name)


def version() -> str:
    """What the engine says of itself."""
    return subprocess.run([built("natgauge-engine"), "--version"], capture_output=True, text=True, check=True).stdout


def check(text: str | bytes, how: str = "--check") -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a check of one request."""
    octets = text if isinstance(text, bytes) else text.encode()
    command = [str(built("natgauge-engine")), how]
    done = subprocess.run(command, input=octets, capture_output=True, check=False, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def refusals(requests: Iterable[Any]) -> list[str | None]:
    """What the engine says of each request; None where it accepts it."""
    text = "".join(json.dumps(request) + "\n" for request in requests)
    command = [str(programs.find("natgauge-engine")), "--check-lines"]
    done = subprocess.run(command, input=text, capture_output=True, check=True, text=True, timeout=60)
    return [_verdict(line) for line in done.stdout.splitlines()]


class Judge:
    """One engine that is asked about one request after the other."""

    def __enter__(self) -> Self:
        command = [str(programs.find("natgauge-engine")), "--check-lines"]
        self._engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_error: object) -> None:
        self._engine.communicate(timeout=60)

    def refusal(self, request: Any) -> str | None:
        """What it says of the request; None where it accepts it."""
        assert self._engine.stdin is not None
        assert self._engine.stdout is not None
        self._engine.stdin.write(json.dumps(request) + "\n")
        self._engine.stdin.flush()
        return _verdict(self._engine.stdout.readline().removesuffix("\n"))


def _verdict(line: str) -> str | None:
    assert line == "accepted" or line.startswith("refused: "), line
    return None if line == "accepted" else line.removeprefix("refused: ")


def published(name: str) -> str:
    """The schema of `request` or `result` as the engine prints it."""
    command = [str(programs.find("natgauge-engine")), "--schema", name]
    return str(subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout)

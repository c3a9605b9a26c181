# SPDX-License-Identifier: Apache-2.0
"""An audit agrees with coturn, a packaged STUN server and client, through the same gateway."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.labs.hosts import hosts

import natgauge
from natgauge.gateways.limits import DeviceDemand
from natgauge.setup.cell import cell_of
from natgauge.trial.bench import Bench

pytestmark = pytest.mark.calm
LAB: Final = "coturn"
INSIDE, OUTSIDE = f"ng-{LAB}-tester", f"ng-{LAB}-far"
SERVER, ALTERNATE = "198.19.0.2", "198.19.0.3"
DEMAND: Final = DeviceDemand(connections=100, phase1_seconds=0.0, fills_table=True, as_found=True)
#: coturn's words for the classes of RFC 4787.
WORDS: Final = {
    "Endpoint Independent": "endpoint-independent",
    "Address Dependent": "address-dependent",
    "Address and Port Dependent": "address and port-dependent",
}


@contextmanager
def stun_server(folder: Path) -> Iterator[None]:
    log = folder / "turnserver.log"
    listening = [word for address in (SERVER, ALTERNATE) for word in ("-L", address)]
    options = ["-n", "--stun-only", "--no-cli", "--no-tls", "--no-dtls", "--log-file", "stdout"]
    options += ["--pidfile", str(folder / "pid"), "--userdb", str(folder / "turndb")]
    with log.open("wb") as out:
        server = subprocess.Popen(["ip", "netns", "exec", OUTSIDE, "turnserver", *listening, *options], stdout=out)
    try:
        # A client whose first request is not answered waits ten seconds.
        for _ in range(100):
            if listens():
                break
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def listens() -> bool:
    """Whether the server listens at both addresses and both ports."""
    command = ["ip", "netns", "exec", OUTSIDE, "ss", "-Hlun"]
    sockets = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return all(f"{address}:{port}" in sockets for address in (SERVER, ALTERNATE) for port in (3478, 3479))


def discovered(folder: Path) -> tuple[str, str]:
    """Mapping and filtering as coturn finds them."""
    with stun_server(folder):
        command = ["ip", "netns", "exec", INSIDE, "turnutils_natdiscovery", "-m", "-f", SERVER]
        for _ in range(10):
            said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            lines = [line for line in said.splitlines() if line.startswith("NAT with ")]
            if len(lines) == 2:
                return tuple(WORDS[line[len("NAT with ") :].rsplit(" ", 1)[0]] for line in lines)  # type: ignore[return-value] # two
            time.sleep(0.5)
    raise AssertionError(said)


@pytest.mark.soak  # test_audit.py has the same classes of the same gateway
@pytest.mark.slow("coturn waits for answers that the gateway drops")
def test_coturn_finds_the_same_mapping_and_filtering(tmp_path: Path) -> None:
    cell, _ = cell_of("nftables-nat44", {"lab_name": LAB})
    with Bench(cell) as bench:
        bench.start(DEMAND)
        with hosts(LAB, ["10.0.0.2"], [SERVER, ALTERNATE], "10.0.0.1"):
            mapped, filtered = discovered(tmp_path)
    record = natgauge.audit("nftables-nat44", results=tmp_path, lab_name=LAB, wait=0.0).record
    assert record.classes["udp"].filtering == filtered
    # coturn has one inside host. The audit has a second one on the same port, which shows another class.
    (seen,) = (one.measured for one in record.requirements if (one.key, one.transport) == ("RFC4787-REQ-1", "udp"))
    assert seen.endswith(f"without another flow on the same port: {mapped}")

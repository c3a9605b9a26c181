# SPDX-License-Identifier: Apache-2.0
"""Wrong input that only root and the real engine meet: one line, the right exit status, nothing left behind."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from natgauge import cleaning
from natgauge.cli import run
from natgauge.host import programs
from natgauge.labs.common import namespaces

pytestmark = pytest.mark.calm

Natgauge = Callable[..., tuple[int, str, str]]
EXAMPLE = json.loads((Path(__file__).parents[2] / "trial" / "examples" / "nat44-both-phases.json").read_text())


#: Other tests make and delete namespaces at the same time, so these tests have a name of their own.
LAB = "bad-input"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a namespace or a lab of ours behind."""
    yield
    assert [name for name in namespaces.names() if name.startswith(f"ng-{LAB}-")] == []
    assert LAB not in [lab.name for lab in cleaning.status()]


def engine(text: str | bytes) -> tuple[int, str, str]:
    octets = text if isinstance(text, bytes) else text.encode()
    done = subprocess.run(
        [programs.find("natgauge-engine")], input=octets, capture_output=True, check=False, timeout=60
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def changed(path: str, value: Any) -> str:
    """The worked example with one field changed."""
    request = copy.deepcopy(EXAMPLE)
    *parents, last = path.split(".")
    place = request
    for name in parents:
        place = place[name]
    place[last] = value
    return json.dumps(request)


def one_line(status: int, shown: tuple[int, str, str], *words: str) -> None:
    assert shown[0] == status, shown
    assert shown[1] == ""
    assert shown[2].strip().count("\n") == 0, shown[2]
    for word in words:
        assert word in shown[2]


def test_the_engine_names_a_cpu_that_this_host_has_not() -> None:
    one_line(2, engine(changed("senders.cpus", [4095])), "senders.cpus", "4095")


def test_the_engine_names_a_namespace_that_is_not_there() -> None:
    status, events, said = engine(changed("initiator.netns", "ng-no-such-namespace"))
    one_line(2, (status, "", said), "ng-no-such-namespace", "no such namespace")
    assert json.loads(events) == {"event": "failed", "port": "initiator"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Natgauge:
    """The command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def natgauge(*arguments: str) -> tuple[int, str, str]:
        status = run(arguments)
        return (status, *capsys.readouterr())

    return natgauge


def withheld(prefix: tuple[str, ...], *arguments: str, cwd: Path) -> tuple[int, str, str]:
    """The command line in a process that has not all that root has."""
    words = [*prefix, sys.executable, "-c", "from natgauge.cli import main; main()", *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def wire(initiator: str, responder: str) -> list[str]:
    return [
        *("measure", "throughput", "--gateway", "linux-ipv4", "--lab", "wire", "--lab-name", LAB),
        *("--initiator-port", initiator, "--initiator-gateway", "02:00:00:00:00:01"),
        *("--responder-port", responder, "--responder-gateway", "02:00:00:00:00:02"),
    ]


def test_ports_that_are_not_there_are_named(tmp_path: Path, here: Natgauge) -> None:
    one_line(2, here(*wire("ngnone0", "ngnone1")), "ngnone0", "does not exist")
    assert list(tmp_path.iterdir()) == []


def test_one_port_for_both_sides_is_refused(here: Natgauge) -> None:
    one_line(2, here(*wire("lo", "lo")), "lo", "two different")


def test_the_port_with_the_default_route_is_refused(here: Natgauge) -> None:
    route = subprocess.run(["ip", "-o", "route", "show", "default"], capture_output=True, text=True, check=True).stdout
    words = route.split()
    if "dev" not in words:
        pytest.skip("this machine has no default route")
    port = words[words.index("dev") + 1]
    one_line(2, here(*wire(port, "lo")), port, "has the default route")


def test_without_root_the_line_says_what_is_missing(tmp_path: Path) -> None:
    # The user ID stays: another user cannot read a checkout below /root.
    unprivileged = ("setpriv", "--clear-groups", "--bounding-set", "-all")
    asked = ["measure", "throughput", "--gateway", "linux-ipv4", "--lab-name", LAB]
    shown = withheld(unprivileged, *asked, "--results", str(tmp_path / "results"), cwd=Path("/"))
    one_line(3, shown, "CAP_")
    assert list(tmp_path.iterdir()) == []


MEASURE = ("measure", "throughput", "--gateway", "nftables-nat44", "--lab-name", LAB, "--results")


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        (("setpriv", "--bounding-set", "-sys_nice"), "needs CAP_SYS_NICE (priorities"),
        (("setpriv", "--bounding-set", "-net_raw"), "needs CAP_NET_RAW (packet sockets"),
        (("unshare", "--user", "--map-root-user", "--net"), "a user namespace cannot measure"),
        (("sh", "-c", 'ulimit -n 20; exec "$@"', "sh"), "may have 20 at once, and 64 are needed"),
        (("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys; exec "$@"', "sh"), "/sys: is not mounted"),
    ],
)
def test_what_a_container_withholds_is_named_before_a_lab_is_made(
    tmp_path: Path, prefix: tuple[str, ...], words: str
) -> None:
    one_line(3, withheld(prefix, *MEASURE, str(tmp_path / "results"), cwd=tmp_path), words)
    assert list(tmp_path.iterdir()) == []


def test_a_gateway_that_prints_without_end_is_refused_in_a_line(tmp_path: Path, here: Natgauge) -> None:
    recipe = tmp_path / "loud.toml"
    recipe.write_text(
        'name = "loud"\ntitle = "Loud"\nkind = "routing"\ninitiator_family = "ipv4"\nresponder_family = "ipv4"\n'
        'stateful = false\nsource = "unchanged"\nextends = ["linux-ipv4"]\n[verbs]\nversion = "yes loud"\n'
    )
    asked = ["measure", "throughput", "--gateway", str(recipe), "--lab-name", LAB, "--profile", "quick", "--stateless"]
    shown = here(*asked, "--results", str(tmp_path / "results"))
    assert (shown[0], shown[1]) == (4, ""), shown
    assert "snippet 'yes loud' printed more than 4 MiB" in shown[2].splitlines()[-1]

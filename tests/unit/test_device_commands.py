# SPDX-License-Identifier: Apache-2.0
"""Commands of users and recipes: how much of what they print is stored, and a device that a command starts anew."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge import bounded_output
from natgauge.bounded_output import MOST_OCTETS, BoundedOutput
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.gateways.processes import Process
from natgauge.labs.common import port_options
from natgauge.labs.common.port_options import BootCommand, PortOptions
from natgauge.labs.common.shell import run_shell

LIMIT = 65_536


@pytest.fixture(params=["own file system", "sealed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the limit is kept; an ordinary user has the second way only."""
    if request.param == "sealed":
        monkeypatch.setattr(bounded_output, "_of_own_file_system", lambda _: None)
    return str(request.param)


def started(script: str, out: int, err: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )


def ran(script: str, output: BoundedOutput) -> int:
    return started(script, output.fileno(), output.fileno()).wait()


@pytest.mark.usefixtures("way")
def test_what_fits_is_stored_as_it_is() -> None:
    with BoundedOutput(LIMIT) as output:
        assert ran("echo one; echo two >&2", output) == 0
        assert (output.text(), output.is_full) == ("one\ntwo\n", False)


@pytest.mark.usefixtures("way")
def test_more_than_the_limit_is_refused_to_the_program_and_not_stored() -> None:
    with BoundedOutput(LIMIT) as output:
        assert ran("head -c 1000000 /dev/zero", output) != 0
        assert output.is_full
        assert len(output.text()) <= LIMIT
    # A program that ignores the refusal ends as it would.
    with BoundedOutput(LIMIT) as output:
        assert ran("head -c 1000000 /dev/zero 2> /dev/null || true; exit 7", output) == 7


@pytest.mark.usefixtures("way")
def test_a_command_that_prints_too_much_is_refused_by_its_name_and_one_that_prints_less_is_not(golden: Golden) -> None:
    too_much = f"head -c {2 * MOST_OCTETS} /dev/zero || true"
    with golden.raises(BrokenError):
        run_shell(lambda out, err: started(too_much, out, err), 30, "device gateway: version")
    result = run_shell(lambda out, err: started("echo out; echo err >&2; exit 3", out, err), 30, "it")
    assert result is not None
    assert (result.status, result.stdout, result.stderr) == (3, "out\n", "err\n")


@pytest.fixture
def chatty(tmp_path: Path) -> Path:
    """The folder of a process that printed 20 MiB, then its last words, and ended."""
    process = Process(name="chatty", command="sh -c 'head -c 20971520 /dev/zero; echo; echo last words; exit 3'")
    environment = {"NG_WORK": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-euc", process.start], env=environment, check=True)
    subprocess.run(
        ["/bin/sh", "-c", "while [ -e chatty.logging ] || [ ! -e chatty.end ]; do sleep 0.05; done"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    said = subprocess.run(
        ["/bin/sh", "-euc", process.status_command], env=environment, check=True, capture_output=True, text=True
    )
    (tmp_path / "ended").write_text(process.ended(said.stdout) or "")
    return tmp_path


def test_the_end_of_a_log_is_kept_and_its_size_is_bounded(chatty: Path, golden: Golden) -> None:
    logs = [chatty / name for name in ("chatty.log", "chatty.log.1", "chatty.log.2")]
    assert sum(log.stat().st_size for log in logs if log.exists()) <= 12 * 1024**2
    golden((chatty / "ended").read_text())


def test_a_core_dump_without_its_end_is_named(golden: Golden) -> None:
    process = Process(name="p", command="p")
    said = process.ended("natgauge-end 139 cut\n/run/core\na\n")
    golden(said)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is looked at without a pause."""
    monkeypatch.setattr(port_options, "_POLL_SECONDS", 0.01)


def command(text: str, seconds: float = 20.0, settle: float = 0.0) -> BootCommand:
    made = PortOptions(boot_seconds=seconds, boot_settle_seconds=settle).boot("boot command", text)
    assert made is not None
    return made


@pytest.mark.parametrize(("cores", "told"), [(4, "4"), (None, "none")])
def test_the_command_is_told_the_number_of_cores(tmp_path: Path, cores: int | None, told: str) -> None:
    command(f'printf "${{NG_CORES:-none}}" > {tmp_path}/cores').run(cores)
    assert (tmp_path / "cores").read_text() == told


def test_the_device_is_waited_for_and_then_left_alone() -> None:
    looks = iter(["it does not answer", "it has 8 processors online, not 4", ""])
    begun = time.monotonic()
    needed = command("true", settle=0.2).run(4, lambda: next(looks))
    assert next(looks, None) is None
    # The time to settle is no part of what the device needed.
    assert needed <= time.monotonic() - begun - 0.2


@pytest.mark.parametrize(
    ("text", "seconds"), [("sleep 60", 0.1), ("echo no power >&2; exit 3", 9.0), ("exit 3", 9.0), ("true", 0.1)]
)
def test_a_device_that_does_not_come_back_ends_in_one_line(text: str, seconds: float, golden: Golden) -> None:
    with golden.raises(HostError) as refused:
        command(text, seconds).run(2, lambda: "it is silent")
    assert "\n" not in str(refused.value)


def test_an_empty_command_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        command("  ")

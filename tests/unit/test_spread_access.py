# SPDX-License-Identifier: Apache-2.0
"""Who may connect to scheduler and workers: holders of certificates, and nobody else."""

from __future__ import annotations

import datetime as dt
import errno
import os
import re
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import distributed
import pytest
from cryptography.hazmat.primitives import serialization
from tests.labs.program import command_line
from tests.unit import strangers
from tests.unit.campaigning import PLAN
from tests.unit.conftest import Ran
from tests.unit.spreading import own_run, work
from tests.unit.strangers import remade

from natgauge.cli import run
from natgauge.errors import HostError

__all__ = ["own_run"]

#: Nothing listens there.
NOBODY = "dask://127.0.0.1:9"
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates as an operator makes them, once for all tests."""
    made = tmp_path_factory.mktemp("made") / "certificates"
    assert run(["certificates", str(made)]) == 0
    return made


@pytest.fixture
def folder(certificates: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return shutil.copytree(certificates, tmp_path / "certificates")


def test_private_keys_are_for_their_owner_alone_and_the_authority_has_none(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {name for name, mode in modes.items() if mode != 0o600} == {
        "ca.pem",
        "client.pem",
        "scheduler.pem",
        "worker.pem",
    }
    assert {name for name in modes if "key" in name} == {"client-key.pem", "scheduler-key.pem", "worker-key.pem"}


def test_no_certificate_is_overwritten(folder: Path, ran: Ran) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert re.fullmatch(r"natgauge: certificates: .* exists already, .*\n", ran(["certificates", str(folder)], 2).err)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_certificates_that_could_not_be_written_leave_no_folder(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _octets: bytes) -> None:
        assert path.parent.exists()
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    said = ran(["certificates", str(tmp_path / "new")], 2).err
    assert re.fullmatch(r"natgauge: certificates: cannot write .*; name another folder\n", said)
    assert not (tmp_path / "new").exists()


@pytest.fixture
def plan_here(in_an_empty_folder: Path) -> None:
    """A plan in the working folder."""
    (in_an_empty_folder / "p.toml").write_text(PLAN)


@pytest.mark.usefixtures("plan_here")
@pytest.mark.parametrize(
    ("role", "command"),
    [
        ("scheduler", ["scheduler", "dask://nowhere.invalid:8786"]),
        ("worker", ["worker", NOBODY]),
        ("client", ["run", "p.toml", "--on", NOBODY]),
    ],
)
def test_certificates_as_made_are_good_for_each_role_which_needs_no_file_of_the_others(
    role: str, command: list[str], folder: Path, ran: Ran
) -> None:
    for file in folder.iterdir():
        if file.name not in {"ca.pem", f"{role}.pem", f"{role}-key.pem"}:
            file.unlink()
    # The next step is to listen or to connect.
    assert "certificates: " not in ran([*command, "--certificates", str(folder)], 3).err
    (folder / f"{role}.pem").unlink()
    assert "certificates: " in ran([*command, "--certificates", str(folder)], 2).err


def with_passphrase(folder: Path) -> None:
    path = folder / "worker-key.pem"
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )


def as_client(folder: Path) -> None:
    for ending in (".pem", "-key.pem"):
        (folder / f"client{ending}").replace(folder / f"worker{ending}")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "ca.pem").unlink(), r"ca\.pem: No such file .*; name the folder"),
        (lambda folder: (folder / "worker.pem").unlink(), r"worker\.pem: No such file"),
        (lambda folder: (folder / "worker-key.pem").unlink(), r"worker-key\.pem: No such file"),
        (lambda folder: a_folder(folder / "worker.pem"), r"cannot read .*worker\.pem: Is a directory"),
        (lambda folder: (folder / "worker.pem").write_text("x"), r"worker\.pem, .*: these are not a certificate"),
        (lambda folder: (folder / "worker-key.pem").write_text("x"), r"worker-key\.pem: these are not a certificate"),
        (lambda folder: (folder / "ca.pem").write_text("x"), r"ca\.pem, .*: these are not a certificate"),
        (lambda folder: (folder / "ca.pem").write_bytes(b"\xff"), r"ca\.pem, .*: these are not a certificate"),
        (lambda folder: (folder / "worker-key.pem").chmod(0o640), r"other users may read this private key \(mode 0640"),
        (lambda folder: (folder / "worker-key.pem").chmod(0o604), r"other users may read this private key \(mode 0604"),
        (lambda folder: (folder / "ca.pem").chmod(0o666), r"ca\.pem: other users may change it \(mode 0666"),
        (lambda folder: folder.chmod(0o770), r"other users may change it \(mode 0770"),
        (lambda folder: remade(folder, DAYS=-0.5), r"worker\.pem: has expired; make new ones"),
        (lambda folder: remade(folder, _CLOCK_SKEW=dt.timedelta(-1)), r"worker\.pem: is not valid yet; set .* clock"),
        (remade, r"worker\.pem: is not of the authority .*ca\.pem"),
        (lambda folder: (folder / "client-key.pem").replace(folder / "worker-key.pem"), "these are not a certificate"),
        (with_passphrase, r"worker-key\.pem: the private key has a passphrase"),
        (as_client, r"worker\.pem: is not of the authority .*\(unsuitable certificate purpose\)"),
    ],
)
def test_certificates_that_cannot_be_used_are_refused_in_a_line(
    damage: Callable[[Path], None], said: str, folder: Path, ran: Ran
) -> None:
    damage(folder)
    told = ran(["worker", NOBODY, "--certificates", str(folder)], 2).err
    assert re.fullmatch(rf"natgauge: certificates: .*{said}.*\n", told), told


@pytest.mark.usefixtures("plan_here")
@pytest.mark.parametrize(
    "command",
    [
        ["worker", NOBODY],
        ["scheduler", NOBODY],
        ["run", "p.toml", "--on", "dask://[::1]:9"],
    ],
)
def test_without_certificates_nothing_connects_and_the_safe_way_is_told(
    command: list[str], monkeypatch: pytest.MonkeyPatch, ran: Ran
) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("it connects"))
    told = ran(command, 2).err
    assert re.fullmatch(r"natgauge: .* make them by natgauge certificates DIR, .* --certificates DIR .*\n", told), told


@pytest.mark.usefixtures("plan_here")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["worker", NOBODY, "--insecure", "--certificates", "x"], "--insecure: contradicts"),
        (["run", "p.toml", "--on", "local:1", "--certificates", "x"], "--certificates: belongs to --on dask"),
        (["run", "p.toml", "--on", "local:1", "--insecure"], "--insecure: belongs to --on dask"),
        (["run", "p.toml", "--insecure"], "--insecure: belongs to --on dask"),
        (["run", "p.toml", "--certificates", "x"], "--certificates: belongs to --on dask"),
        (["scheduler", "local:2"], "'local:2' is no Dask scheduler"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: list[str], said: str, ran: Ran) -> None:
    assert said in ran(arguments, 2).err.splitlines()[-1]


def test_certificates_of_dasks_own_configuration_are_taken_and_checked_alike(folder: Path, ran: Ran) -> None:
    names = {f"worker.{part}": str(folder / name) for part, name in (("cert", "worker.pem"), ("key", "worker-key.pem"))}
    tls = {"ca-file": str(folder / "ca.pem"), **names}
    settings = {"distributed.comm.require-encryption": True}
    with dask.config.set({**settings, **{f"distributed.comm.tls.{name}": value for name, value in tls.items()}}):
        assert "certificates: " not in ran(["worker", NOBODY], 3).err
        (folder / "worker-key.pem").chmod(0o644)
        assert "other users may read this private key" in ran(["worker", NOBODY], 2).err
    with dask.config.set(settings):
        assert "requires encryption and names no authority" in ran(["worker", NOBODY], 2).err


def started(*arguments: str, log: Path) -> subprocess.Popen[bytes]:
    """Start natgauge, and wait until it has said that it waits."""
    with log.open("wb") as file:
        process = subprocess.Popen(command_line(arguments), stdout=file, stderr=file)
    until = time.monotonic() + PATIENCE_SECONDS
    while b" waits for " not in log.read_bytes():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until
        time.sleep(0.05)
    return process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def scheduler(
    certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler as documented; the last test that has it ends it."""
    address, log = f"dask://127.0.0.1:{free_port()}", tmp_path_factory.mktemp("scheduler") / "log"
    process = started("scheduler", address, "--certificates", str(certificates), log=log)
    yield address, process
    if process.poll() is None:
        process.terminate()
    assert process.wait(PATIENCE_SECONDS) == 143
    assert log.read_text().endswith("ended by SIGTERM; everything is undone\n")


@pytest.mark.slow("starts a scheduler, which imports Dask")
@pytest.mark.usefixtures("plan_here")
def test_a_scheduler_of_another_authority_is_told_from_one_that_refuses_us(
    folder: Path, tmp_path: Path, ran: Ran, scheduler: tuple[str, subprocess.Popen[bytes]]
) -> None:
    foreign = tmp_path / "foreign"

    def answer(certificates: Path) -> str:
        return str(ran(["run", "p.toml", "--on", scheduler[0], "--certificates", str(certificates)], 3).err)

    assert f"none is at {scheduler[0]}" in answer(folder)
    ran(["certificates", str(foreign)])
    assert re.search(r"the scheduler at dask://.* has a certificate that is refused", answer(foreign))
    # One that knows our scheduler's authority, too, and is itself of another.
    (foreign / "ca.pem").write_bytes((folder / "ca.pem").read_bytes() + (foreign / "ca.pem").read_bytes())
    assert re.search(r"the scheduler at dask://.* refuses the certificate of this client", answer(foreign))


@pytest.mark.slow("starts a scheduler, which imports Dask")
@pytest.mark.usefixtures("plan_here")
def test_going_without_certificates_does_not_reach_a_scheduler_that_demands_them(
    monkeypatch: pytest.MonkeyPatch, ran: Ran, scheduler: tuple[str, subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr("natgauge.spread.access._SECONDS", 0.5)
    told = ran(["run", "p.toml", "--on", scheduler[0], "--insecure"], 3).err
    assert re.search(r"no Dask scheduler answers at dask://.* \(timed out\)", told)


@pytest.mark.slow("starts a scheduler and a worker, which import Dask")
def test_scheduler_and_worker_listen_at_one_address_and_answer_only_holders_of_certificates(
    folder: Path, scheduler: tuple[str, subprocess.Popen[bytes]]
) -> None:
    address, process = scheduler
    waits, errors = threading.Event(), list[HostError]()
    before = strangers.listening([os.getpid()])

    def work_there() -> None:
        try:
            work(address, folder, lambda _: waits.set())
        except HostError as error:
            errors.append(error)

    worker = threading.Thread(target=work_there)
    worker.start()
    assert waits.wait(PATIENCE_SECONDS), errors
    found = strangers.listening([process.pid]) | (strangers.listening([os.getpid()]) - before)
    assert {host for host, _ in found} == {"127.0.0.1"}
    # Scheduler, nanny and worker, and no port for HTTP.
    assert len(found) == 3
    names = {"tls_ca_file": "ca.pem", "tls_client_cert": "client.pem", "tls_client_key": "client-key.pem"}
    client = distributed.Security(require_encryption=True, **{name: str(folder / file) for name, file in names.items()})
    for place in found:
        assert strangers.greeted(f"tls://127.0.0.1:{place[1]}", client)
        assert strangers.answered(place) == []
    process.terminate()
    process.wait(PATIENCE_SECONDS)
    worker.join(PATIENCE_SECONDS)
    assert "is gone; start it, then this worker again" in str(*errors)


@pytest.fixture
def open_scheduler() -> Iterator[str]:
    """One as `dask scheduler` starts it."""
    with distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as made:
        yield made.scheduler_address.replace("tcp://", "dask://")


@pytest.mark.usefixtures("plan_here")
def test_an_open_scheduler_is_refused_by_who_has_certificates(folder: Path, open_scheduler: str, ran: Ran) -> None:
    told = ran(["run", "p.toml", "--on", open_scheduler, "--certificates", str(folder)], 3).err
    assert re.search(r"what listens at dask://.* does not encrypt .*; start it by natgauge scheduler", told)


@pytest.mark.usefixtures("plan_here")
def test_going_without_certificates_warns_at_each_start(open_scheduler: str, ran: Ran) -> None:
    for _ in range(2):
        warning, told = ran(["run", "p.toml", "--on", open_scheduler, "--insecure"], 3).err.splitlines()
        assert re.match("natgauge: WARNING: --insecure: .* can run programs as root", warning)
        assert "none is at" in told


@pytest.mark.slow("starts a scheduler, which imports Dask")
def test_an_insecure_scheduler_warns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = started("scheduler", f"dask://127.0.0.1:{free_port()}", "--insecure", log=log)
    assert {host for host, _ in strangers.listening([process.pid])} == {"127.0.0.1"}
    process.terminate()
    process.wait(PATIENCE_SECONDS)
    assert log.read_text().startswith("natgauge: WARNING: --insecure: ")


def test_a_scheduler_at_a_foreign_address_or_a_taken_port_is_refused(folder: Path, ran: Ran) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for address in (f"127.0.0.1:{taken.getsockname()[1]}", "192.0.2.1:8786", "nowhere.invalid:8786"):
            told = ran(["scheduler", f"dask://{address}", "--certificates", str(folder)], 3).err
            assert re.fullmatch(rf"natgauge: scheduler: cannot listen at dask://{re.escape(address)}: .*\n", told), told

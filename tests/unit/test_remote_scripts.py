# SPDX-License-Identifier: Apache-2.0
"""What is run on another machine, in every shell that one may find there; and what `ssh` says, in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from tests.absent import absent
from tests.unit.golden import Golden

from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.labs.contract import CommandResult
from natgauge.labs.ssh import remote
from natgauge.labs.ssh.openssh import SshHost, end_orphans, explained

TOKEN = "tester:lab:0123"
SHELLS = ["dash", "busybox sh", "mksh", "bash"]


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a lab on a machine that this lab has taken."""
    folder = tmp_path / "natgauge-device"
    folder.mkdir()
    for name, end in (("DIRECTORY", ""), ("_LOCK", ".lock"), ("_CLOSING", ".closing")):
        monkeypatch.setattr(remote, name, f"{folder}{end}")
    Path(f"{folder}.lock").symlink_to(TOKEN)
    return folder


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """One that is installed here."""
    if absent(request.param.split()[0]):
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def told(shell: str, script: str) -> CommandResult:
    """What a machine with this shell answers."""
    began = time.perf_counter()
    done = subprocess.run(
        [*shell.split(), "-s"],
        input=script.replace("/bin/sh", shell),
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)


def answered(shell: str, snippet: str, number: int = 1, **variables: str) -> CommandResult:
    """What a snippet answers on a machine that is this lab's."""
    variables = {"PATH": os.environ["PATH"], **variables}
    answer = remote._unwrapped(told(shell, remote.wrapped(snippet, TOKEN, number, variables)))
    assert answer is not None
    return answer


def test_a_snippet_leaves_its_status_its_output_and_its_errors(shell: str, far: Path) -> None:
    says = "a 'b' \"c\" $d `e` \\ \nf"
    began = time.perf_counter()
    answer = answered(shell, 'echo "$NG_SAYS"; echo "it\'s wrong" >&2; exit 7', NG_SAYS=says)
    assert (answer.status, answer.stdout, answer.stderr) == (7, f"{says}\n", "it's wrong\n")
    assert 0 < answer.seconds <= time.perf_counter() - began
    answer = answered(shell, "false\necho went on")
    assert (answer.status, answer.stdout) == (1, ""), "it ends at its first failure"
    assert list(far.iterdir()) == []


@pytest.mark.usefixtures("far")
def test_a_snippet_sees_nothing_of_the_login_and_no_input(shell: str) -> None:
    snippet = "cat; env | cut -d= -f1 | sort | grep -v -e '^_$' -e '^PWD$' -e '^SHLVL$' -e '^OLDPWD$' | tr '\\n' ' '"
    assert answered(shell, snippet, LC_ALL="C").stdout.split() == ["LC_ALL", "PATH"]


@pytest.mark.usefixtures("far")
def test_what_a_snippet_leaves_running_does_not_hold_the_answer_up(shell: str) -> None:
    began = time.perf_counter()
    answer = answered(shell, "sleep 60 & echo $!")
    os.kill(int(answer.stdout), 9)
    assert time.perf_counter() - began < 30


def test_nothing_runs_on_a_machine_that_is_not_this_labs(shell: str, far: Path) -> None:
    Path(f"{far}.lock").unlink()
    said = told(shell, remote.wrapped(f"touch {far}/made", TOKEN, 1, {"PATH": os.environ["PATH"]}))
    assert remote._unwrapped(said) is None
    assert remote._NOT_OURS in said.stdout
    assert list(far.iterdir()) == []


def test_a_running_snippet_is_ended_with_what_it_began(shell: str, far: Path) -> None:
    text = remote.wrapped("sleep 61 & sleep 62", TOKEN, 5, {"PATH": os.environ["PATH"]})
    process = subprocess.Popen(
        [*shell.split(), "-s"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.write(text.replace("/bin/sh", shell).encode())
    process.stdin.close()
    deadline = time.monotonic() + 20
    while not _has_text(far / "run.5") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told(shell, remote._grouped(remote._kill_running("5"))).status == 0
    assert process.wait(20) == -9
    assert not (far / "run.5").exists()
    while (left := _members(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []


def test_a_snippet_whose_connection_was_lost_leaves_no_number_of_a_process(shell: str, far: Path) -> None:
    text = remote.wrapped(f"echo y > {far}.made", TOKEN, 5, {"PATH": os.environ["PATH"]})
    nobody, lost = os.pipe()
    os.close(nobody)
    subprocess.run(
        [*shell.split(), "-s"],
        input=text.replace("/bin/sh", shell).encode(),
        stdout=lost,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
        timeout=60,
    )
    os.close(lost)
    assert Path(f"{far}.made").read_text() == "y\n"
    assert list(far.iterdir()) == []


def test_a_later_process_of_the_number_of_a_snippet_lives(shell: str, far: Path) -> None:
    later = subprocess.Popen(["sleep", "63"], start_new_session=True)
    (far / "run.5").write_text(f"{later.pid} 1\n")
    assert told(shell, remote._grouped(remote._kill_running("5"))).status == 0
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            later.wait(0.3)
    finally:
        later.kill()
        later.wait()
    assert list(far.iterdir()) == []


def _members(group: int) -> list[str]:
    """Processes of a group that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
            found += [path.parent.name] if int(pgrp) == group and state != "Z" else []
    return found


def _has_text(path: Path) -> bool:
    return path.exists() and path.read_text().strip() != ""


def test_a_machine_that_another_lab_has_is_refused_with_what_frees_it(
    far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = remote.Remote(SshHost("router"), "another:lab:4567", far.parent / "control")
    monkeypatch.setattr(late._connection, "run", lambda script, _seconds: told("sh", script))
    # The register of a tester that was rebooted is gone, and with it the way to undo anything.
    with pytest.raises(HostError, match=r"natgauge on tester \(lab lab\); .*if tester was rebooted .*reboot router$"):
        late.take()


def test_one_machine_by_two_names_is_taken_once(far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what was made there would never be undone."""
    Path(f"{far}.lock").unlink()
    names = ("router", "10.0.0.1")
    one, other = (remote.Remote(SshHost(name), f"{TOKEN}:{at}", far.parent / name) for at, name in enumerate(names))
    for each in (one, other):
        monkeypatch.setattr(each._connection, "run", lambda script, _seconds: told("sh", script))
    for _ in range(2):
        one.take()
    with pytest.raises(HostError, match=r"ssh host 10\.0\.0\.1: is taken by this lab already, by another name or way"):
        other.take()


def test_a_clock_without_nanoseconds_or_one_that_was_set_is_not_believed() -> None:
    for began, ended in (("1700000000%N", "1700000001%N"), ("", ""), ("2" + "0" * 18, "1" + "0" * 18)):
        text = f"natgauge-answer 0 {began} {ended}\n{remote._BETWEEN}out"
        answer = remote._unwrapped(CommandResult(0, text, "", 0.25))
        assert answer == CommandResult(0, "out", "", 0.25)


@pytest.mark.parametrize(
    "said",
    [
        "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
        "Host key verification failed.\n",
        "root@far: Permission denied (publickey,password).\n",
        "ssh: Could not resolve hostname nowhere.invalid: Name or service not known\n",
        "ssh: connect to host 127.0.0.1 port 9: Connection refused\n",
        "ssh: connect to host 192.0.2.1 port 22: Connection timed out\n",
        "something\nelse\n\n",
    ],
)
def test_what_ssh_says_becomes_one_line(said: str, golden: Golden) -> None:
    line = explained(SshHost("root@far"), said)
    assert line.startswith("ssh host root@far: ")
    golden(line)
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "config", "said"),
    [
        *((name, None, "ssh host") for name in ("", "-oProxyCommand=touch /tmp/x", "a b", "-")),
        ("far", "/nowhere/config", "ssh config"),
        *((name, None, None) for name in ("far", "root@far.example", "ssh://root@[2001:db8::1]:2222", "10.0.0.1")),
    ],
)
def test_destinations_of_every_form_are_taken_and_what_is_none_is_refused(
    name: str, config: str | None, said: str | None
) -> None:
    host = SshHost(name, config)
    with pytest.raises(UsageError, match=said) if said else nullcontext():
        assert host.checked() == host


def test_a_machine_is_given_back_step_by_step_and_only_by_the_lab_that_has_it(
    shell: str, far: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(remote, "run_once", lambda _host, script, _seconds: told(shell, script))
    log = far.parent / "log"
    steps = [f"echo first >> {log}", "exit 9", f"echo last >> {log}"]
    assert remote.give_back(SshHost("far"), "another:lab:4567", steps) is False
    assert not log.exists()
    with golden.raises(BrokenError):
        remote.give_back(SshHost("far"), TOKEN, steps)
    # All others were tried, and nothing new can be made there; the next try begins where this one stopped.
    assert log.read_text() == "first\nlast\n"
    said = told(shell, remote.wrapped(f"touch {far}/made", TOKEN, 1, {"PATH": os.environ["PATH"]}))
    assert remote._unwrapped(said) is None
    assert remote.give_back(SshHost("far"), TOKEN, [steps[0]]) is True
    assert list(far.parent.iterdir()) == [log]


def test_what_a_killed_process_left_of_a_connection_is_ended(tmp_path: Path) -> None:
    ours, other = tmp_path / "ssh", tmp_path / "ssh2"
    script = "import time; print(flush=True); time.sleep(60)"
    left, kept = (
        subprocess.Popen([sys.executable, "-c", script, f"-oControlPath={control}"], stdout=subprocess.PIPE)
        for control in (ours, other)
    )
    for each in (left, kept):
        # Before it runs, its command line may not be there yet.
        assert each.stdout is not None
        with each.stdout:
            assert each.stdout.readline()
    end_orphans(ours)
    assert left.wait(10) != 0
    assert kept.poll() is None
    kept.kill()
    kept.wait()


def test_a_connection_of_another_container_with_the_same_path_lives(tmp_path: Path) -> None:
    """It has a /run of its own, and its processes are visible here (docker run --pid=host)."""
    control = tmp_path / "run" / "ssh"
    control.parent.mkdir()
    sleeping = f"exec {sys.executable} -c 'import time; time.sleep(60)' -oControlPath={control}"
    script = f"mount -t tmpfs none {control.parent} && echo mounted && {sleeping}"
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    command = [*unshare, "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        try:
            assert other.stdout is not None
            if other.stdout.readline() != b"mounted\n":
                pytest.skip("no mount namespace can be made here")
            deadline = time.monotonic() + 20
            while f"-oControlPath={control}" not in _arguments(other.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            end_orphans(control)
            with pytest.raises(subprocess.TimeoutExpired):
                other.wait(0.3)
        finally:
            other.kill()


def _arguments(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")

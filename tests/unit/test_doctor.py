# SPDX-License-Identifier: Apache-2.0
"""The doctor on made-up hosts: each thing in the way has its state and its mend; and what is printed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tools import doctor_packages

from natgauge.agreement.generated import StreamCounts
from natgauge.cleaning import cleanup
from natgauge.cli import run
from natgauge.errors import HostError, UsageError
from natgauge.finding import Finding, State
from natgauge.gateways.recipe import load
from natgauge.host import capabilities, programs
from natgauge.host.private_folder import HiddenLabsError
from natgauge.labs.common import locks, namespaces
from natgauge.labs.netns import lab
from natgauge.tester import doctor
from natgauge.tester.doctor import Host, examine, worst_state

#: The real one, which `root` replaces.
STATUS = cleanup.status

FILES = {
    "sys/kernel/btf/vmlinux": "",
    "proc/sys/net/core/bpf_jit_enable": "1\n",
    "proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
    "sys/module/nf_conntrack/parameters/hashsize": "262144\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
    "sys/devices/system/cpu/smt/active": "0\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "proc/2/comm": "kthreadd\n",
    "proc/stat": "cpu  1000 0 1000 9000 0 0 0 1 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
    "proc/meminfo": "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A healthy host; the few things that are asked of the real one are healthy too."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "proc" / str(os.getpid())).mkdir()
    (tmp_path / "proc/self").symlink_to(str(os.getpid()))
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho program 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(capabilities, "missing", lambda *_: ())
    monkeypatch.setattr(capabilities, "in_user_namespace", lambda: False)
    monkeypatch.setattr(programs, "find", lambda _: program)
    monkeypatch.setattr(doctor, "usable_cpus", lambda: (0, 1))
    monkeypatch.setattr(namespaces, "names", lambda: ("ng-mine-tester", "somebody-elses"))
    mine = cleanup.LabStatus("mine", "netns", "in use", 4711, ("ng-mine-tester",), {})
    monkeypatch.setattr(cleanup, "status", lambda: [mine])
    return tmp_path


def counted(offered: int, received: int) -> StreamCounts:
    return StreamCounts.model_construct(offered_frames=offered, received_frames=received)


def host(root: Path, **changes: object) -> Host:
    """The host, which is asked for one gateway unless a test says otherwise: all take half a second."""
    facts: dict[str, object] = {
        "root": root,
        "release": "6.12.1-amd64",
        "prove": lambda: counted(1000, 1000),
        "find": lambda program: f"/usr/bin/{program}",
        "gateways": ("linux-ipv4",),
    }
    return Host(**(facts | changes))  # type: ignore[arg-type]


def finding(host: Host, name: str) -> Finding:
    return next(one for one in examine(host) if one.name == name)


def test_a_healthy_host_is_all_ok(root: Path) -> None:
    findings = examine(host(root, gateways=()))
    assert [one for one in findings if one.state != "ok"] == []
    assert worst_state(findings) == "ok"
    assert len({one.name for one in findings}) == len(findings)


CLOCKS = "sys/devices/system/clocksource/clocksource0"
JIT = "proc/sys/net/core/bpf_jit_enable"
GOVERNOR = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
CONNTRACK = "proc/sys/net/netfilter/nf_conntrack_max"
#: A folder in a file's place cannot be read by root, either.
FOLDER = ""


def failing() -> StreamCounts:
    raise HostError("interface ng0i: cannot redirect")


@pytest.mark.parametrize(
    ("name", "state", "files", "changes"),
    [
        ("BTF", "missing", {"sys/kernel/btf/vmlinux": None}, {}),
        ("BPF JIT", "warning", {JIT: "0"}, {}),
        ("BPF JIT", "warning", {JIT: "2"}, {}),
        ("BPF JIT", "warning", {JIT: FOLDER}, {}),
        # In a network namespace the file is not there; a kernel without a JIT has the others of its folder.
        ("BPF JIT", "ok", {JIT: None}, {}),
        ("BPF JIT", "warning", {JIT: None, "proc/sys/net/core/netdev_max_backlog": "1000"}, {}),
        ("clock", "warning", {f"{CLOCKS}/current_clocksource": "hpet"}, {}),
        # Its cores differ, so delays between them would be wrong.
        (
            "clock",
            "warning",
            {f"{CLOCKS}/current_clocksource": "hpet", f"{CLOCKS}/available_clocksource": "hpet acpi_pm "},
            {},
        ),
        *(
            ("clock", "ok", {f"{CLOCKS}/current_clocksource": fast}, {})
            for fast in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
        ),
        ("SMT", "warning", {"sys/devices/system/cpu/smt/active": "1"}, {}),
        ("clock speed", "warning", {GOVERNOR: "powersave"}, {}),
        ("real time", "warning", {"proc/sys/kernel/sched_rt_runtime_us": "0"}, {}),
        ("stolen time", "warning", {"proc/stat": "cpu 1000 0 1000 9000 0 0 0 50 0 0"}, {}),
        ("memory", "warning", {"proc/meminfo": "MemAvailable:    524288 kB"}, {}),
        ("conntrack", "ok", {CONNTRACK: None}, {"has": lambda module: module == "nf_conntrack"}),
        # The machine can measure other gateways.
        ("conntrack", "warning", {CONNTRACK: None}, {"has": lambda module: module == "another"}),
        ("conntrack", "ok", {"sys/module/nf_conntrack/parameters/hashsize": FOLDER}, {}),
        ("kernel", "missing", {}, {"release": "6.1.0-32-amd64"}),
        ("kernel", "missing", {}, {"release": "5.19"}),
        ("kernel", "ok", {}, {"release": "6.6"}),
        ("kernel", "ok", {}, {"release": "7.0"}),
        # Frames are tried, not believed.
        ("frames", "warning", {}, {"prove": lambda: counted(1000, 999)}),
        ("frames", "missing", {}, {"prove": lambda: counted(1000, 0)}),
        ("frames", "missing", {}, {"prove": lambda: counted(0, 0)}),
        ("frames", "missing", {}, {"prove": failing}),
        ("natgauge-engine", "missing", {"program": "#!/bin/sh\nexit 3"}, {}),
        # Cores of two kinds; one core is too few for the isolated placement.
        (
            "cores",
            "warning",
            {
                f"sys/devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq": f"{speed}"
                for core, speed in enumerate((5_200_000, 3_900_000))
            },
            {},
        ),
    ],
)
def test_each_thing_in_the_way_is_found_and_mended_and_nothing_else_is(  # noqa: PLR0917 - one argument per column
    name: str,
    state: str,
    files: Mapping[str, str | None],
    changes: Mapping[str, object],
    root: Path,
    golden: Golden,
) -> None:
    for path, text in files.items():
        (root / path).unlink(missing_ok=True)
        if text == FOLDER:
            (root / path).mkdir()
        elif text is not None:
            (root / path).write_text(f"{text}\n")
    (root / "program").chmod(0o755)
    findings = {one.name: one for one in examine(host(root, **changes))}
    found = findings.pop(name)
    assert found.state == state
    assert (found.mend is None) == (state == "ok")
    golden([found.what, found.mend or ""])
    of_programs = {"natgauge-front", "natgauge-softwire"} if "program" in files else set()
    assert {one.name for one in findings.values() if one.state != "ok"} == of_programs


@pytest.mark.parametrize(
    ("states", "worst"),
    [([], "ok"), (["ok", "warning", "ok"], "warning"), (["warning", "missing", "ok"], "missing")],
)
def test_the_worst_state_is_the_one_that_counts(states: list[State], worst: str) -> None:
    assert worst_state([Finding("x", state, "x", "mend it") for state in states]) == worst


def test_the_finding_on_a_gateway_has_the_places_where_it_can_be_played(root: Path) -> None:
    """A module that this kernel lacks can be in a guest's; another system is another machine."""
    names = "linux-ipv4", "jool-nat64", "freebsd-pf"
    findings = {one.name: one for one in examine(host(root, has=lambda module: module != "jool", gateways=names))}
    assert findings["gateway linux-ipv4"].places == ("here", "guest", "ssh")
    assert "here" not in findings["gateway jool-nat64"].places
    assert findings["gateway freebsd-pf"].places == ("ssh",)
    assert findings["kernel"].places == ()


@pytest.mark.parametrize(
    ("gateways", "missing", "packages", "has_own"),
    [
        ((), ("tayga", "conntrack"), ("conntrack", "tayga"), False),
        # A program of natgauge's own does not come from Debian.
        (("map-t", "linux-ipv4"), ("natgauge-softwire", "tc"), ("iproute2",), True),
        (("tayga-nat64", "linux-ipv4"), (), (), False),
    ],
)
def test_programs_that_are_missing_are_told_with_their_packages(  # noqa: PLR0917 - one argument per column
    gateways: tuple[str, ...],
    missing: tuple[str, ...],
    packages: tuple[str, ...],
    has_own: bool,  # noqa: FBT001 - a column
    root: Path,
    golden: Golden,
) -> None:
    place = host(root, find=lambda program: None if program in missing else f"/bin/{program}", gateways=gateways)
    findings = {one.name: one for one in examine(place)}
    of_one = findings[f"gateway {gateways[0] if gateways else 'tayga-nat64'}"]
    of_all = findings["gateway packages"]
    assert of_one.packages == of_all.packages == packages
    assert (of_one.state, of_all.state) == (("missing", "missing") if missing else ("ok", "ok"))
    assert findings["gateway linux-ipv4"].state == "ok"
    golden([of_one.mend or "", of_all.mend or ""])
    assert ("natgauge-*.whl" in (of_one.mend or "")) is has_own


def test_programs_are_looked_for_where_a_device_finds_them(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Continuous integration has no activated virtual environment, and a user's PATH may have folders that devices lack.
    own = root / "natgauge-softwire"
    own.touch(mode=0o755)
    monkeypatch.setattr(programs, "find", lambda _name: own)
    monkeypatch.setenv("PATH", "/nowhere")
    place = Host(root=root)
    assert place.find("sh") is not None
    assert place.find("natgauge-softwire") == str(own)


def test_lacking_capabilities_and_a_single_core_are_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(capabilities, "missing", lambda *_: ("CAP_BPF", "CAP_PERFMON"))
    monkeypatch.setattr(doctor, "usable_cpus", lambda: (3,))
    findings = {one.name: one for one in examine(host(root))}
    assert (findings["capabilities"].state, findings["cores"].state) == ("missing", "warning")
    golden(findings["capabilities"].what)
    golden(findings["capabilities"].mend)
    assert "--placement shared" in (findings["cores"].mend or "")


def test_without_sys_nothing_is_said_of_what_would_be_in_it(root: Path, golden: Golden) -> None:
    shutil.rmtree(root / "sys")
    found = {one.name: one for one in examine(host(root))}
    for name in ("BTF", "clock", "SMT", "clock speed"):
        assert found[name].state == "warning"
        golden(found[name].what)
        golden(found[name].mend)
    assert found["conntrack"].state == "ok"


def test_a_quota_is_found_with_how_often_it_stopped_us(root: Path, golden: Golden) -> None:
    files = {
        "proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/cpu.stat": "nr_throttled 275\nthrottled_usec 1500000\n",
        "sys/fs/cgroup/memory.max": str(200 * 1024**2),
        "sys/fs/cgroup/memory.current": "0\n",
        "sys/fs/cgroup/pids.max": "100\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = {one.name: one for one in examine(host(root))}
    assert found["CPU quota"].state == "warning"
    # Of memory, less than the machine has.
    for name in ("CPU quota", "control group", "memory"):
        golden(found[name].what)


@pytest.mark.parametrize(("path", "text"), [("proc/2/comm", "sh\n"), ("proc/2/comm", None), ("proc/self", "1")])
def test_where_the_kernels_threads_are_not_shown_the_isolated_placement_is_refused_first(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, text: str | None
) -> None:
    """In a PID namespace of its own, or with the /proc of another one."""
    (root / path).unlink()
    if path == "proc/self":
        (root / path).symlink_to(text or "")
    elif text is not None:
        (root / path).write_text(text)
    found = finding(host(root), "kernel threads")
    assert (found.state, "--placement shared" in (found.mend or "")) == ("warning", True)
    monkeypatch.setattr(capabilities, "shows_kernel_threads", lambda: False)
    monkeypatch.setattr(lab, "usable_cpus", lambda: (0, 1))
    isolated = lab.NetnsLab(
        "x", initiator_family="ipv4", responder_family="ipv4", placement="isolated", sender_cpus=(0,), device_cpus=(1,)
    )
    with pytest.raises(HostError, match=r"placement isolated: .*\(docker run --pid=host\), or use --placement shared"):
        isolated._prepare()


def test_what_killed_runs_left_is_found(root: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    dead = cleanup.LabStatus("demo", "netns", "left behind", None, ("ng-demo-tester",), {})
    monkeypatch.setattr(cleanup, "status", lambda: [dead])
    monkeypatch.setattr(cleanup, "ownerless", lambda: ["ng-mine-gateway"])
    monkeypatch.setattr(cleanup, "find_strays", list)
    found = finding(host(root), "leftovers")
    assert (found.state, found.mend) == ("warning", "natgauge lab clean")
    golden(found.what)


@pytest.mark.parametrize("place", ["labs/x.json", "namespaces", ""])
def test_the_remedy_for_what_cleaning_cannot_read_mends_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str, golden: Golden
) -> None:
    monkeypatch.setattr(locks, "RUN", root / "natgauge")
    monkeypatch.setattr(cleanup, "status", STATUS)
    monkeypatch.setattr(namespaces, "names", tuple)
    monkeypatch.setattr(namespaces, "all_processes", tuple)
    path = locks.RUN / place
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text("{")
    found = finding(host(root), "leftovers")
    assert found.state == "warning"
    golden(found.mend)
    with pytest.raises(HostError):
        cleanup.clean()
    clean = str(found.mend).replace("natgauge lab clean", "true")
    subprocess.run(["/bin/sh", "-c", clean], check=True)
    assert cleanup.clean() == []
    assert finding(host(root), "leftovers").state == "ok"


def test_a_namespace_of_others_is_no_remains_of_a_killed_run_and_hidden_labs_are_told(
    root: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(cleanup, "find_strays", lambda: [cleanup.Stray("ng-theirs", ())])
    found = finding(host(root), "leftovers")
    golden(found.what)
    assert "--strays" in found.what

    def hidden() -> list[cleanup.LabStatus]:
        raise HiddenLabsError("labs of root are private: run as root to list them")

    monkeypatch.setattr(cleanup, "status", hidden)
    found = finding(host(root), "leftovers")
    assert found.state == "warning"
    golden(found.what)


def test_a_recipe_of_the_users_that_breaks_a_rule_is_a_finding(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "mine.toml").write_text("name = 3\n")
    monkeypatch.setenv("NATGAUGE_GATEWAYS", str(root))
    found = finding(host(root, gateways=()), "gateway mine")
    assert found.state == "warning"
    assert "mine.toml" in found.what
    assert "mine.toml" in (found.mend or "")


def test_only_the_gateways_that_are_asked_for_are_checked_and_one_without_its_files_is_refused(
    root: Path, tmp_path: Path
) -> None:
    own = tmp_path / "linux-ipv4.toml"
    own.write_text(
        f"{load('linux-ipv4').origin.read_text()}\n[verbs]\nstart = 'nft -f \"$NG_RECIPE_FOLDER/rules.nft\"'\n"
    )
    place = host(root, gateways=(str(own), "tayga-nat64"))
    with pytest.raises(UsageError, match=r"rules\.nft"):
        examine(place)
    (tmp_path / "rules.nft").touch()
    names = [each.name for each in examine(place) if each.name.startswith("gateway ")]
    assert names == ["gateway linux-ipv4", "gateway tayga-nat64", "gateway packages"]
    with pytest.raises(UsageError):
        examine(host(root, gateways=("nope",)))


@pytest.mark.parametrize("variable", ["NATGAUGE_PROGRAMS", "NATGAUGE_PATH", "NATGAUGE_GATEWAYS"])
def test_a_variable_that_names_no_folder_is_told_in_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"{root}/sys:{root}/taiga")
    with pytest.raises(UsageError) as refused:
        examine(host(root))
    assert str(refused.value) == f"{variable}: {root}/taiga is no folder; correct it, or unset {variable}"


GOOD = Finding("kernel", "ok", "Linux 6.18")
SLOW = Finding("clock", "warning", "clock source hpet is slow", "boot with clocksource=tsc")
ABSENT = Finding("capabilities", "missing", "this process lacks CAP_BPF", "sudo natgauge doctor")
GATEWAY = Finding("gateway tayga-nat64", "missing", "needs tayga", "apt-get install tayga", ("tayga",), ("here", "ssh"))
ALL_GATEWAYS = Finding("gateway packages", "missing", "...", "apt-get install nftables tayga", ("nftables", "tayga"))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the host is found to be."""
    findings: list[Finding] = []
    monkeypatch.setattr("natgauge.tester.doctor.examine", lambda _host: findings)
    return findings


@pytest.mark.parametrize(
    ("findings", "status", "state"),
    [([GOOD], 0, "ok"), ([GOOD, SLOW], 0, "warning"), ([GOOD, SLOW, ABSENT], 3, "missing"), ([GOOD, GATEWAY], 0, "ok")],
)
def test_the_worst_finding_decides_the_exit_status_but_for_single_gateways(
    findings: list[Finding],
    status: int,
    state: str,
    told: list[Finding],
    capsys: pytest.CaptureFixture[str],
) -> None:
    told[:] = findings
    assert run(["doctor", "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert document["state"] == state
    assert [finding["name"] for finding in document["findings"]] == [finding.name for finding in findings]


def test_a_gateway_that_is_asked_for_by_its_path_decides_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Seen: an author asked for the own recipe, and was told of an unexpected argument."""
    asked: list[tuple[str, ...]] = []

    def examine(host: Host) -> list[Finding]:
        asked.append(host.gateways)
        return [GOOD, GATEWAY]

    monkeypatch.setattr("natgauge.tester.doctor.examine", examine)
    own = str(tmp_path / "gateway.toml")
    assert [run(["doctor", *words, "--json"]) for words in ([], [own], ["linux-ipv4", own])] == [0, 3, 3]
    assert asked == [(), (own,), ("linux-ipv4", own)]
    capsys.readouterr()


SLOWER = Finding("SMT", "warning", "two threads share each core", "natgauge host tune")
WHOLE = Finding("gateway linux-ipv4", "ok", "all it needs is installed", places=("here", "guest", "ssh"))
FAR = Finding("gateway freebsd-pf", "ok", "runs on FreeBSD, over --lab ssh", places=("ssh",))
#: Its kernel module is in guests only, so programs that this machine lacks are no obstacle.
GUEST = Finding("gateway jool-nat64", "missing", "needs jool", "apt-get install jool-tools", places=("guest", "ssh"))
BROKEN = Finding("gateway mine", "warning", "mine.toml: kind: is missing", "vi mine.toml")
PACKAGES = Finding("gateway packages", "missing", "not installed: tayga", "apt-get install tayga")
KERNEL = Finding("kernel", "missing", "Linux 6.1 is older than 6.6", "reboot")


@pytest.mark.parametrize(
    "findings",
    [
        [GOOD, WHOLE],
        [GOOD, WHOLE, GATEWAY, PACKAGES],
        [GOOD, WHOLE, GATEWAY, FAR, GUEST],
        [GOOD, WHOLE, FAR],
        [GOOD, WHOLE, BROKEN],
        [SLOW, WHOLE],
        [SLOW, SLOWER, WHOLE],
        [SLOW, ABSENT, GATEWAY],
        [KERNEL, ABSENT],
    ],
)
def test_the_first_line_is_the_answer(
    findings: list[Finding], told: list[Finding], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    told[:] = findings
    run(["doctor"])
    golden(capsys.readouterr().out.splitlines()[0])


def test_what_is_missing_or_doubtful_has_a_line_with_its_mend_and_the_rest_is_counted(
    told: list[Finding], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    told[:] = [GOOD, SLOW, WHOLE, ABSENT]
    assert run(["doctor"]) == 3
    golden(capsys.readouterr().out.splitlines()[1:])
    assert run(["doctor", "-v"]) == 3
    lines = capsys.readouterr().out.splitlines()[1:]
    # Seen: 14 lines of what is missing, and which gateways are ready only with -v.
    assert [line.split()[0] for line in lines] == ["ok", "warning", "ok", "missing", "Ready"]
    assert "Linux 6.18" in lines[0]


def test_what_single_gateways_lack_is_one_line_of_names_and_has_its_mends_with_v(
    told: list[Finding], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: 14 long lines of programs to build stood between the first line and what the machine itself lacked."""
    other = Finding("gateway einat-nat44", "missing", "needs einat", "build einat", places=("here",))
    told[:] = [GOOD, SLOW, WHOLE, GATEWAY, other, GUEST, BROKEN]
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    golden(shown)
    _, slow, mine, *_, order = shown.splitlines()
    assert (slow.split()[:2], mine.split()[:3]) == (["warning", "clock"], ["warning", "gateway", "mine"])
    # What runs in guests alone needs nothing here.
    assert "jool" not in shown
    assert "2 of 7" in order
    assert run(["doctor", "-v"]) == 0
    shown = capsys.readouterr().out
    assert all(str(finding.mend) in shown for finding in (GATEWAY, other, GUEST))


def test_json_has_the_packages_as_a_list_which_the_trial_of_the_wheel_installs(
    told: list[Finding], capsys: pytest.CaptureFixture[str]
) -> None:
    told[:] = [GOOD, ABSENT, GATEWAY, ALL_GATEWAYS]
    run(["doctor", "--json"])
    output = capsys.readouterr().out
    packages = [finding["packages"] for finding in json.loads(output)["findings"]]
    assert packages == [[], [], ["tayga"], ["nftables", "tayga"]]
    assert doctor_packages.packages(output) == ["nftables", "tayga"]

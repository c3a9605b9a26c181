# SPDX-License-Identifier: Apache-2.0
"""The doctor on made-up hosts: each thing in the way has its state and its mend; and what is printed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_host import MadeHost, host_with
from tests.unit.made_labs import Machine
from tools import doctor_packages

from natgauge.cli import run

RECIPES = Path(__file__).parents[2] / "src" / "natgauge" / "gateways" / "recipes"
#: What is found, by name.
Findings: TypeAlias = dict[str, dict[str, Any]]


@pytest.fixture
def host(machine: Machine) -> Iterator[MadeHost]:
    """A healthy one."""
    with host_with(machine) as made:
        yield made


@pytest.fixture
def examined(host: MadeHost, capsys: pytest.CaptureFixture[str]) -> Callable[..., Findings]:
    """Ask for gateways; one unless a test says otherwise, because all take half a second."""

    def of(*gateways: str) -> Findings:
        asked = len(host.asked)
        assert run(["doctor", "--json", *(gateways or ("linux-ipv4",))]) in {0, 3}
        assert len(host.asked) == asked + 1
        found = json.loads(capsys.readouterr().out)["findings"]
        findings = {one["name"]: one for one in found}
        assert len(findings) == len(found)
        return findings

    return of


def test_a_healthy_host_is_all_ok(host: MadeHost, ran: Ran) -> None:
    found = json.loads(ran(["doctor", "--json"]).out)
    assert host.asked == [()]
    assert {one["state"] for one in found["findings"]} == {found["state"]} == {"ok"}
    assert len({one["name"] for one in found["findings"]}) == len(found["findings"]) > 20


CLOCKS = "sys/devices/system/clocksource/clocksource0"
JIT = "proc/sys/net/core/bpf_jit_enable"
GOVERNOR = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
CONNTRACK = "proc/sys/net/netfilter/nf_conntrack_max"
#: A folder in a file's place cannot be read by root, either.
FOLDER = ""


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
        ("conntrack", "ok", {CONNTRACK: None}, {}),
        # The machine can measure other gateways.
        ("conntrack", "warning", {CONNTRACK: None}, {"lacks": {"nf_conntrack"}}),
        ("conntrack", "ok", {"sys/module/nf_conntrack/parameters/hashsize": FOLDER}, {}),
        ("kernel", "missing", {}, {"release": "6.1.0-32-amd64"}),
        ("kernel", "missing", {}, {"release": "5.19"}),
        ("kernel", "ok", {}, {"release": "6.6"}),
        ("kernel", "ok", {}, {"release": "7.0"}),
        # Frames are tried, not believed.
        ("frames", "warning", {}, {"came": (1000, 999)}),
        ("frames", "missing", {}, {"came": (1000, 0)}),
        ("frames", "missing", {}, {"came": (0, 0)}),
        ("frames", "missing", {}, {"came": "interface ng0i: cannot redirect"}),
        ("natgauge-engine", "missing", {"programs/natgauge-engine": "#!/bin/sh\nexit 3"}, {}),
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
    host: MadeHost,
    examined: Callable[..., Findings],
    golden: Golden,
) -> None:
    for path, text in files.items():
        (host.root / path).unlink(missing_ok=True)
        if text == FOLDER:
            (host.root / path).mkdir()
        elif text is not None:
            (host.root / path).write_text(f"{text}\n")
    (host.programs / "natgauge-engine").chmod(0o755)
    for attribute, value in changes.items():
        setattr(host, attribute, value)
    findings = examined()
    found = findings.pop(name)
    assert found["state"] == state
    assert (found["mend"] is None) == (state == "ok")
    golden([found["what"], found["mend"] or ""])
    assert {one["name"] for one in findings.values() if one["state"] != "ok"} == set()


def test_the_finding_on_a_gateway_has_the_places_where_it_can_be_played(
    host: MadeHost, examined: Callable[..., Findings], golden: Golden
) -> None:
    """A module that this kernel lacks can be in a guest's; another system is another machine."""
    assert "here" in examined("jool-nat64")["gateway jool-nat64"]["places"]
    host.lacks = {"jool"}
    findings = examined("linux-ipv4", "jool-nat64", "freebsd-pf")
    assert findings["gateway linux-ipv4"]["places"] == ["here", "guest", "ssh"]
    assert "here" not in findings["gateway jool-nat64"]["places"]
    assert findings["gateway freebsd-pf"]["places"] == ["ssh"]
    golden(findings["gateway freebsd-pf"]["what"])
    assert findings["kernel"]["places"] == []


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
    host: MadeHost,
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    host.lacks = set(missing)
    assert run(["doctor", "--json", *gateways]) == (3 if missing and gateways else 0)
    findings = {one["name"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    of_one = findings[f"gateway {gateways[0] if gateways else 'tayga-nat64'}"]
    of_all = findings["gateway packages"]
    assert of_one["packages"] == of_all["packages"] == list(packages)
    assert (of_one["state"], of_all["state"]) == (("missing", "missing") if missing else ("ok", "ok"))
    assert findings["gateway linux-ipv4"]["state"] == "ok"
    golden([of_one["mend"] or "", of_all["mend"] or ""])
    assert ("natgauge-*.whl" in (of_one["mend"] or "")) is has_own


def test_programs_are_looked_for_where_a_device_finds_them(
    host: MadeHost, examined: Callable[..., Findings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Continuous integration has no activated virtual environment, and a user's PATH may have folders that devices lack.
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "natgauge-test-program").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))
    host.lacks = None
    lacks = {}
    for program in ("sh", "natgauge-softwire", "natgauge-test-program"):
        own = tmp_path / "linux-ipv4.toml"
        text = (RECIPES / "linux-ipv4.toml").read_text()
        own.write_text(f'{text}\n[[needs]]\nprograms = ["{program}"]\npackage = "mine"\n')
        lacks[program] = "mine" in examined(str(own))["gateway linux-ipv4"]["packages"]
    assert lacks == {"sh": False, "natgauge-softwire": False, "natgauge-test-program": True}


def test_lacking_capabilities_and_a_single_core_are_named(
    host: MadeHost, machine: Machine, examined: Callable[..., Findings], golden: Golden
) -> None:
    machine.lacks = ("CAP_BPF", "CAP_PERFMON")
    host.cores = (3,)
    findings = examined()
    assert (findings["capabilities"]["state"], findings["cores"]["state"]) == ("missing", "warning")
    golden(findings["capabilities"]["what"])
    golden(findings["capabilities"]["mend"])
    assert "--placement shared" in findings["cores"]["mend"]


def test_without_sys_nothing_is_said_of_what_would_be_in_it(
    host: MadeHost, examined: Callable[..., Findings], golden: Golden
) -> None:
    shutil.rmtree(host.root / "sys")
    found = examined()
    for name in ("BTF", "clock", "SMT", "clock speed"):
        assert found[name]["state"] == "warning"
        golden(found[name]["what"])
        golden(found[name]["mend"])
    assert found["conntrack"]["state"] == "ok"


def test_a_quota_is_found_with_how_often_it_stopped_us(
    host: MadeHost, examined: Callable[..., Findings], golden: Golden
) -> None:
    host.write({
        "proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/cpu.stat": "nr_throttled 275\nthrottled_usec 1500000\n",
        "sys/fs/cgroup/memory.max": str(200 * 1024**2),
        "sys/fs/cgroup/memory.current": "0\n",
        "sys/fs/cgroup/pids.max": "100\n",
    })  # fmt: skip
    found = examined()
    assert found["CPU quota"]["state"] == "warning"
    # Of memory, less than the machine has.
    for name in ("CPU quota", "control group", "memory"):
        golden(found[name]["what"])


@pytest.mark.parametrize(("path", "text"), [("proc/2/comm", "sh\n"), ("proc/2/comm", None), ("proc/self", "1")])
def test_where_the_kernels_threads_are_not_shown_the_isolated_placement_is_refused_first(  # noqa: PLR0917 - two columns
    path: str, text: str | None, host: MadeHost, examined: Callable[..., Findings], ran: Ran, golden: Golden
) -> None:
    """In a PID namespace of its own, or with the /proc of another one."""
    (host.root / path).unlink()
    if path == "proc/self":
        (host.root / path).symlink_to(text or "")
    elif text is not None:
        (host.root / path).write_text(text)
    found = examined()["kernel threads"]
    assert (found["state"], "--placement shared" in found["mend"]) == ("warning", True)
    golden(ran(["lab", "up", "x", "--placement", "isolated", "--sender-cores", "0", "--cores", "1"], status=3).err)


def test_what_killed_runs_left_is_found(
    host: MadeHost, machine: Machine, examined: Callable[..., Findings], golden: Golden
) -> None:
    del host
    machine.leave("demo", "ng-demo-tester")
    machine.namespace("ng-demo-gateway")
    found = examined()["leftovers"]
    assert (found["state"], found["mend"]) == ("warning", "natgauge lab clean")
    golden(found["what"])


@pytest.mark.parametrize("place", ["labs/x.json", "namespaces", ""])
def test_the_remedy_for_what_cleaning_cannot_read_mends_it(
    machine: Machine, place: str, examined: Callable[..., Findings], ran: Ran, golden: Golden
) -> None:
    shutil.rmtree(machine.run)
    (machine.netns / "ng-mine-tester").unlink()
    path = machine.run / place
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text("{")
    found = examined()["leftovers"]
    assert found["state"] == "warning"
    golden(found["mend"])
    golden(ran(["lab", "clean"], status=3).err)
    clean = str(found["mend"]).replace("natgauge lab clean", "true")
    subprocess.run(["/bin/sh", "-c", clean], check=True)
    assert ran(["lab", "clean"]).out == "nothing to clean\n"
    assert examined()["leftovers"]["state"] == "ok"


def test_a_namespace_of_others_is_no_remains_of_a_killed_run_and_hidden_labs_are_told(
    machine: Machine, examined: Callable[..., Findings], monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    machine.namespace("ng-theirs", marked=False)
    found = examined()["leftovers"]
    golden(found["what"])
    assert "--strays" in found["what"]
    monkeypatch.setattr(os, "access", lambda path, *_, **__: path != machine.run)
    found = examined()["leftovers"]
    assert found["state"] == "warning"
    golden(found["what"])


def test_a_recipe_of_the_users_that_breaks_a_rule_is_a_finding(
    host: MadeHost, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host.root / "mine.toml").write_text("name = 3\n")
    monkeypatch.setenv("NATGAUGE_GATEWAYS", str(host.root))
    findings = json.loads(ran(["doctor", "--json"]).out)["findings"]
    (found,) = [one for one in findings if one["name"] == "gateway mine"]
    assert found["state"] == "warning"
    assert "mine.toml" in found["what"]
    assert "mine.toml" in found["mend"]


def test_only_the_gateways_that_are_asked_for_are_checked_and_one_without_its_files_is_refused(
    examined: Callable[..., Findings], ran: Ran, tmp_path: Path
) -> None:
    own = tmp_path / "linux-ipv4.toml"
    recipe = (RECIPES / "linux-ipv4.toml").read_text()
    own.write_text(f"{recipe}\n[verbs]\nstart = 'nft -f \"$NG_RECIPE_FOLDER/rules.nft\"'\n")
    assert "rules.nft" in ran(["doctor", str(own), "tayga-nat64"], status=2).err
    (tmp_path / "rules.nft").touch()
    names = [name for name in examined(str(own), "tayga-nat64") if name.startswith("gateway ")]
    assert names == ["gateway linux-ipv4", "gateway tayga-nat64", "gateway packages"]
    assert "nope" in ran(["doctor", "nope"], status=2).err


@pytest.mark.parametrize("variable", ["NATGAUGE_PROGRAMS", "NATGAUGE_PATH", "NATGAUGE_GATEWAYS"])
def test_a_variable_that_names_no_folder_is_told_in_one_line(host: MadeHost, variable: str, ran: Ran) -> None:
    said = f"natgauge: {variable}: {host.root}/taiga is no folder; correct it, or unset {variable}\n"
    # The host has such a variable of its own, and takes it back before the fixture `monkeypatch` does.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable, f"{host.root}/sys:{host.root}/taiga")
        assert ran(["doctor"], status=2).err == said


#: A finding: name, state, what, mend, packages, places.
Found: TypeAlias = tuple[Any, ...]

GOOD = ("kernel", "ok", "Linux 6.18")
SLOW = ("clock", "warning", "clock source hpet is slow", "boot with clocksource=tsc")
ABSENT = ("capabilities", "missing", "this process lacks CAP_BPF", "sudo natgauge doctor")
GATEWAY = ("gateway tayga-nat64", "missing", "needs tayga", "apt-get install tayga", ("tayga",), ("here", "ssh"))
ALL_GATEWAYS = ("gateway packages", "missing", "...", "apt-get install nftables tayga", ("nftables", "tayga"))


@pytest.mark.parametrize(
    ("findings", "status", "state"),
    [
        ([], 0, "ok"),
        ([GOOD], 0, "ok"),
        ([GOOD, SLOW], 0, "warning"),
        ([GOOD, ABSENT, SLOW], 3, "missing"),
        ([GOOD, GATEWAY], 0, "ok"),
    ],
)
def test_the_worst_finding_decides_the_exit_status_but_for_single_gateways(
    findings: list[Found],
    status: int,
    state: str,
    host: MadeHost,
    capsys: pytest.CaptureFixture[str],
) -> None:
    host.found = findings
    assert run(["doctor", "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert document["state"] == state
    assert [finding["name"] for finding in document["findings"]] == [name for name, *_ in findings]


def test_a_gateway_that_is_asked_for_by_its_path_decides_the_exit_status(
    host: MadeHost, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Seen: an author asked for the own recipe, and was told of an unexpected argument."""
    host.found = [GOOD, GATEWAY]
    own = str(tmp_path / "gateway.toml")
    assert [run(["doctor", *words, "--json"]) for words in ([], [own], ["linux-ipv4", own])] == [0, 3, 3]
    assert host.asked == [(), (own,), ("linux-ipv4", own)]
    capsys.readouterr()


SLOWER = ("SMT", "warning", "two threads share each core", "natgauge host tune")
WHOLE = ("gateway linux-ipv4", "ok", "all it needs is installed", None, (), ("here", "guest", "ssh"))
FAR = ("gateway freebsd-pf", "ok", "runs on FreeBSD, over --lab ssh", None, (), ("ssh",))
#: Its kernel module is in guests only, so programs that this machine lacks are no obstacle.
GUEST = ("gateway jool-nat64", "missing", "needs jool", "apt-get install jool-tools", (), ("guest", "ssh"))
BROKEN = ("gateway mine", "warning", "mine.toml: kind: is missing", "vi mine.toml")
PACKAGES = ("gateway packages", "missing", "not installed: tayga", "apt-get install tayga")
KERNEL = ("kernel", "missing", "Linux 6.1 is older than 6.6", "reboot")


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
    findings: list[Found], host: MadeHost, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    host.found = findings
    run(["doctor"])
    golden(capsys.readouterr().out.splitlines()[0])


def test_what_is_missing_or_doubtful_has_a_line_with_its_mend_and_the_rest_is_counted(
    host: MadeHost, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    host.found = [GOOD, SLOW, WHOLE, ABSENT]
    assert run(["doctor"]) == 3
    golden(capsys.readouterr().out.splitlines()[1:])
    assert run(["doctor", "-v"]) == 3
    lines = capsys.readouterr().out.splitlines()[1:]
    # Seen: 14 lines of what is missing, and which gateways are ready only with -v.
    assert [line.split()[0] for line in lines] == ["ok", "warning", "ok", "missing", "Ready"]
    assert "Linux 6.18" in lines[0]


def test_what_single_gateways_lack_is_one_line_of_names_and_has_its_mends_with_v(
    host: MadeHost, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: 14 long lines of programs to build stood between the first line and what the machine itself lacked."""
    other = ("gateway einat-nat44", "missing", "needs einat", "build einat", (), ("here",))
    host.found = [GOOD, SLOW, WHOLE, GATEWAY, other, GUEST, BROKEN]
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
    assert all(str(mend) in shown for _, _, _, mend, *_ in (GATEWAY, other, GUEST))


def test_json_has_the_packages_as_a_list_which_the_trial_of_the_wheel_installs(
    host: MadeHost, capsys: pytest.CaptureFixture[str]
) -> None:
    host.found = [GOOD, ABSENT, GATEWAY, ALL_GATEWAYS]
    run(["doctor", "--json"])
    output = capsys.readouterr().out
    packages = [finding["packages"] for finding in json.loads(output)["findings"]]
    assert packages == [[], [], ["tayga"], ["nftables", "tayga"]]
    assert doctor_packages.packages(output) == ["nftables", "tayga"]

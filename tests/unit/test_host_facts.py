# SPDX-License-Identifier: Apache-2.0
"""What a machine has: its limits, what is told of it, its programs, and the gateways that can be played on it."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.labs import last_runs
from tests.unit.golden import Golden
from tests.unit.made_results import doubted_for

from natgauge.cli import gateways, run
from natgauge.errors import HostError, UsageError
from natgauge.gateways.recipe import available, load
from natgauge.gateways.support import RUNS, Run, has_module, last_run, places, run_in_words, runs_of
from natgauge.host import machine, programs
from natgauge.host.capabilities import ControlGroups, Throttling
from natgauge.host.programs import find_of_devices
from natgauge.records.parameters import Parameters

SECOND = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
FIRST = (
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
)


def groups(root: Path, mounts: str, own: str, files: Mapping[str, str]) -> ControlGroups:
    for name, text in {"proc/self/mountinfo": mounts, "proc/self/cgroup": own, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ControlGroups(root)


def test_without_limits_there_are_none(tmp_path: Path) -> None:
    found = groups(tmp_path, SECOND, "0::/user\n", {"sys/fs/cgroup/user/cpu.max": "max 100000\n"})
    assert (found.cpu_quota(), found.memory_limit(), found.memory_left(), found.most_processes()) == (None,) * 4
    assert found.throttling() == Throttling()
    # No limit of version 1 is a number, too.
    files = {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}
    assert groups(tmp_path / "first", FIRST, "4:memory:/docker/abc\n", files).memory_limit() is None


def test_the_lowest_limit_of_all_groups_above_counts(tmp_path: Path) -> None:
    top = "sys/fs/cgroup"
    found = groups(
        tmp_path,
        SECOND,
        "0::/pod/box\n",
        {
            f"{top}/pod/cpu.max": "50000 100000\n",
            f"{top}/pod/box/cpu.max": "200000 100000\n",
            f"{top}/pod/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 250000\n",
            f"{top}/pod/box/cpu.stat": "nr_throttled 0\nthrottled_usec 0\n",
            f"{top}/pod/memory.max": "1000000\n",
            f"{top}/pod/memory.current": "400000\n",
            f"{top}/pod/memory.stat": "anon 1\ninactive_file 100000\n",
            f"{top}/pod/box/memory.max": "max\n",
            f"{top}/pod/box/pids.max": "20\n",
            f"{top}/pod/pids.max": "100\n",
        },
    )
    assert found.cpu_quota() == pytest.approx(0.5)
    assert found.throttling() == Throttling(4, 0.25)
    assert (found.memory_limit(), found.memory_left(), found.most_processes()) == (1_000_000, 700_000, 20)


def test_version_1_has_a_hierarchy_for_each_kind_and_docker_shows_its_own_group_as_the_top(tmp_path: Path) -> None:
    own = "5:cpu,cpuacct:/box\n4:memory:/docker/abc\n3:pids:/\n0::/\n"
    found = groups(
        tmp_path,
        FIRST,
        own,
        {
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/box/cpu.stat": "nr_throttled 3\nthrottled_time 2000000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000\n",
            "sys/fs/cgroup/pids/pids.max": "max\n",
        },
    )
    assert found.cpu_quota() == pytest.approx(1.5)
    assert found.throttling() == Throttling(3, 2.0)
    assert (found.memory_limit(), found.memory_left(), found.most_processes()) == (2000, 0, None)


@pytest.mark.parametrize("own", ["0::/../../elsewhere\n", "0::/\n", "nonsense\n0::/gone\n", ""])
def test_groups_that_cannot_be_seen_are_passed_over(tmp_path: Path, own: str) -> None:
    found = groups(tmp_path, SECOND, own, {"sys/fs/cgroup/pids.max": "7\n"})
    assert found.most_processes() == (None if not own else 7)


def test_what_is_new_since_an_earlier_reading() -> None:
    assert Throttling(5, 2.5).since(Throttling(3, 1.0)) == Throttling(2, 1.5)
    assert Throttling().since(Throttling(3, 1.0)) == Throttling(), "the process was moved to another group"


def test_a_quota_is_a_doubt_of_every_result(golden: Golden) -> None:
    (found,) = doubted_for("CPU quota", Parameters(place={"cpu_quota": 0.5}))
    assert (found.word, found.grade) == ("CPU quota", "interval")
    golden(found.text)
    assert doubted_for("CPU quota", Parameters()) == []


CPU = "89 88 0:29 {top} /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"


@pytest.mark.parametrize(
    ("own", "top", "shares", "is_narrow"),
    [
        ("/", "/", {"": 1024}, False),
        ("/box", "/", {"": 1024, "/box": 1024}, True),
        ("/box", "/", {"": 1024, "/box": 262_144}, False),
        ("/pod/box", "/", {"": 1024, "/pod": 1024, "/pod/box": 262_144}, True),
        ("/pod/box", "/", {"": 1024, "/pod": 262_144, "/pod/box": 262_144}, False),
        # A container that sees its own group only.
        ("/box", "/box", {"": 262_144}, False),
        ("/box", "/box", {"": 1024}, True),
        ("/pod/box", "/pod/box", {"": 262_144}, True),
    ],
)
def test_a_cpu_group_with_the_time_of_one_process_outside_is_found(
    own: str, top: str, shares: Mapping[str, int], *, is_narrow: bool, tmp_path: Path
) -> None:
    """Seen: in a container of podman every trial was disturbed, because its parent group had the usual weight."""
    files = {f"sys/fs/cgroup/cpu{group}/cpu.shares": str(share) for group, share in shares.items()}
    found = groups(tmp_path, CPU.format(top=top), f"1:cpu:{own}\n0::/x\n", files)
    assert found.narrow_cpu_group() == (own if is_narrow else "")
    assert groups(tmp_path / "second", SECOND, "0::/pod/box\n", {}).narrow_cpu_group() == ""


COMMAND_LINE = (
    "BOOT_IMAGE=/vmlinuz-6.18 root=UUID=0b5c-11 ro isolcpus=managed_irq,1-3 nohz-full=1-3 rcu_nocbs=1-3 "
    "mitigations=off spectre_v2=off intel_idle.max_cstate=1 systemd.hostname=secret ip=10.0.0.7 luks.uuid=99 quiet "
    '"init_on_alloc=0" dyndbg="file x isolcpus=9" -- token=secret mitigations=auto'
)


def test_of_the_command_line_only_what_moves_figures_is_told() -> None:
    assert machine.moving_parameters(COMMAND_LINE) == [
        "isolcpus=managed_irq,1-3",
        "nohz-full=1-3",
        "rcu_nocbs=1-3",
        "mitigations=off",
        "spectre_v2=off",
        "intel_idle.max_cstate=1",
        '"init_on_alloc=0"',
    ]


def test_the_hosts_name_is_told_only_when_asked_for() -> None:
    assert "host" not in machine.facts()
    assert machine.facts(host_name=True)["host"] == platform.node()
    assert "command_line" not in machine.facts()


def _program(directory: Path, name: str = "natgauge-test-program") -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    beside, named, path = tmp_path / "bin", tmp_path / "named", tmp_path / "path"
    named.mkdir()
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv(programs.VARIABLE, str(named))
    monkeypatch.setenv("PATH", str(path))
    # What the user names comes first.
    return named, beside, path


def test_the_nearest_place_wins(folders: tuple[Path, Path, Path]) -> None:
    for place in reversed(folders):
        expected = _program(place)
        assert programs.find("natgauge-test-program") == expected


def test_a_file_that_cannot_be_run_is_passed_over(folders: tuple[Path, Path, Path]) -> None:
    _program(folders[0]).chmod(0o644)
    expected = _program(folders[1])
    assert programs.find("natgauge-test-program") == expected


@pytest.mark.usefixtures("folders")
def test_a_missing_program_names_what_mends_it(golden: Golden) -> None:
    with golden.raises(HostError):
        programs.find("natgauge-test-program")


@pytest.mark.usefixtures("folders")
def test_devices_find_what_a_user_built_before_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = _program(tmp_path / "own", "sh"), _program(tmp_path / "other", "natgauge-test-program")
    assert shutil.which("sh", path=programs.search_path()) not in (None, str(own))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(programs.PATH_VARIABLE, f"own::{other.parent}")
    path = programs.search_path()
    assert shutil.which("sh", path=path) == str(own)
    assert shutil.which("natgauge-test-program", path=path) == str(other)
    assert all(Path(folder).is_absolute() for folder in path.split(":")), "snippets run in another folder"


def test_a_folder_that_is_none_never_lets_another_program_or_gateway_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = _program(tmp_path / "built", "natgauge-engine")
    for variable, use in (
        (programs.VARIABLE, lambda: programs.find("natgauge-engine")),
        (programs.PATH_VARIABLE, lambda: find_of_devices("sh")),
        ("NATGAUGE_GATEWAYS", available),
    ):
        with monkeypatch.context() as patch:
            for wrong in (tmp_path / "bilt", built):
                patch.setenv(variable, f"{built.parent}:{wrong}")
                with pytest.raises(UsageError, match=f"^{variable}: {wrong} is no folder; correct it, or unset"):
                    use()
            # Undoing goes on, and so does what asks for nothing there.
            assert programs.search_path()
            assert run(["--help"]) == 0
            patch.setenv(variable, f":{built.parent}:")
            use()


#: What the snippet needs besides the program and dpkg-query.
_TOOLS = ("sh", "readlink", "head", "sed", "cut", "sha256sum")
#: Owns every file in folders that end so, and knows one version.
_DPKG = """#!/bin/sh
case "$1 $2" in
"-S "*/packaged/*) echo "mine:amd64: $2" ;;
"-W "*) printf 1.2-3 ;;
*) exit 1 ;;
esac
"""


def version(path: Path, said: str, *, dpkg: bool, recipe: str = "tayga-siit") -> str:
    """The version of a tayga at `path` that prints this."""
    folder = path.parent / "bin"
    folder.mkdir(parents=True)
    for name in _TOOLS:
        (folder / name).symlink_to(shutil.which(name) or name)
    path.mkdir()
    for file, text in ((path / "tayga", f'#!/bin/sh\necho "{said}"\n'), (folder / "dpkg-query", _DPKG)):
        if file.name == "tayga" or dpkg:
            file.write_text(text)
            file.chmod(0o755)
    found = load(recipe)
    pieces = [piece for piece in found.verbs.version if "PROGRAM" in piece]
    run = subprocess.run(
        ["/bin/sh", "-euc", "\n".join(pieces)],
        env={**found.environment, "PATH": f"{path}:{folder}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


@pytest.mark.parametrize(
    ("folder", "said", "dpkg", "expected"),
    [
        ("own", "tayga 0.9.6", True, "tayga 0.9.6"),
        ("packaged", "tayga 0.9.6", True, "tayga 0.9.6"),
        ("packaged", "unknown version", True, "tayga 1.2-3"),
        ("packaged", "Usage:\n\tTAYGA version 0.9.6", True, "tayga 0.9.6"),
        ("own", "unknown version", True, "tayga, SHA-256 of the program "),
        ("packaged", "unknown version", False, "tayga, SHA-256 of the program "),
    ],
)
def test_the_program_that_runs_says_its_version(
    folder: str, said: str, expected: str, tmp_path: Path, *, dpkg: bool
) -> None:
    assert version(tmp_path / folder, said, dpkg=dpkg).startswith(expected)


NOT_LINUX = {"openbsd-pf-nat44", "openbsd-pf-nat64", "freebsd-pf", "freebsd-ipfw-nat64"}


@pytest.mark.parametrize(
    ("name", "modules", "where"),
    [
        ("nftables-nat44", (), ("here", "guest", "ssh")),
        ("tayga-nat64", (), ("here", "guest", "ssh")),
        ("nftables-flowtable-nat44", (), ("guest", "ssh")),
        ("nftables-flowtable-nat44", ("nf_flow_table",), ("here", "guest", "ssh")),
        ("464xlat-jool", ("jool",), ("guest", "ssh")),
        ("464xlat-jool", ("jool", "jool_siit"), ("here", "guest", "ssh")),
        # A guest has no Jool with MAP-T; natgauge's authors ran their own build there.
        ("map-t-jool", (), ("guest", "ssh")),
        ("map-t-jool", ("jool_mapt",), ("here", "guest", "ssh")),
        ("map-t", (), ("here",)),
        ("lw4o6-tunnels", (), ("here", "guest", "ssh")),
        ("openbsd-pf-nat64", ("pf",), ("ssh",)),
    ],
)
def test_a_gateway_runs_where_all_of_it_can_be_had(name: str, modules: tuple[str, ...], where: tuple[str, ...]) -> None:
    assert places(load(name), lambda module: module in modules) == where


def test_what_the_guest_lacks_is_not_promised_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (RUNS.parents[1] / "nftables-nat44.toml").read_text().replace("nftables-nat44", "mine")
    path.write_text(text + '\n[[needs]]\nprograms = ["vpp"]\npackage = "vpp"\n')
    assert places(load(path)) == ("here", "ssh")
    assert last_run(load(path)) is None, "a user's recipe is not one that we have run"


def test_modules_are_looked_for_loaded_built_in_and_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Uname:
        release = "6.1"

    monkeypatch.setattr("os.uname", Uname)
    folder = tmp_path / "lib/modules/6.1"
    assert not has_module("jool", tmp_path)
    folder.mkdir(parents=True)
    (folder / "modules.dep").write_text("updates/dkms/jool-common.ko.xz:\nupdates/dkms/jool.ko.xz: updates/x.ko\n")
    (folder / "modules.builtin").write_text("kernel/net/netfilter/nf-flow-table.ko\n")
    (tmp_path / "sys/module/loaded").mkdir(parents=True)
    names = ("jool", "jool_common", "nf_flow_table", "loaded", "x", "joo")
    assert [has_module(name, tmp_path) for name in names] == [
        True, True, True, True, False, False,
    ]  # fmt: skip


def test_the_latest_run_of_all_places_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    file = tmp_path / "last.toml"
    recipe = load("linux-ipv4")
    assert last_run(recipe, file) is None
    golden(run_in_words(None))
    last_runs.record("linux-ipv4", "here", ["Linux 6"], file)
    assert not file.exists(), "nothing is written down unless that is asked for"
    monkeypatch.setenv(last_runs.VARIABLE, "1")
    last_runs.record("linux-ipv4", "here", ["Linux 6", "Linux 6", 'a "b"'], file)
    last_runs.record("zz", "guest", ["x"], file)
    text = file.read_text()
    file.write_text(text.replace('[zz.guest]\ndate = "2', '[linux-ipv4.guest]\ndate = "1'))
    day = re.search(r"\d{4}-\d\d-\d\d", text)
    assert day
    later = tmp_path / "again.toml"
    later.write_text(file.read_text())
    found = last_run(recipe, later)
    distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
    assert found == Run(day[0], "here", ("Linux 6", 'a "b"'), distribution)
    assert (found.system, found.software) == (f"Linux 6, {distribution}", ('a "b"',))
    assert [each.place for each in runs_of(recipe, later)] == ["here", "guest"]
    last_runs.record("linux-ipv4", "here", ["vpp 1"], unnamed := tmp_path / "unnamed.toml")
    assert runs_of(recipe, unnamed)[0].system == f"Linux {platform.release()}, {distribution}"
    golden(run_in_words(last_run(recipe, later)), passing=r"\d{4}-\d\d-\d\d(?!-)")


def test_what_is_written_down_is_of_gateways_that_are_there_and_of_linux_with_kernel_and_distribution() -> None:
    here = []
    for name, (path,) in available().items():
        recipe = load(path)
        run = last_run(recipe)
        if name in NOT_LINUX:
            assert run is None, "no such machine was ever here"
        elif run is not None:
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", run.date)
            assert run.version
            assert run.place in {"here", *places(recipe)}
        here += [run for run in runs_of(recipe) if run.place == "here"]
    assert len(here) > 40
    assert [run for run in here if "not recorded" in run.system] == []


def test_the_list_stays_readable_and_says_what_was_never_run() -> None:
    said = CliRunner().invoke(gateways.command, ["-v"])
    assert said.exit_code == 0
    assert max(map(len, said.output.splitlines())) <= 100
    flat = re.sub(r"\s+", " ", said.output)
    for name in NOT_LINUX:
        assert name in flat


def test_json_has_places_and_runs() -> None:
    said = CliRunner().invoke(gateways.command, ["--json"])
    found = {one["name"]: one for one in json.loads(said.output)["gateways"]}
    assert found["freebsd-pf"]["places"] == ["ssh"]
    assert found["freebsd-pf"]["system"] == "FreeBSD"
    assert found["freebsd-pf"]["last_run"] is None
    assert "here" in found["nftables-nat44"]["places"]


@pytest.mark.parametrize("name", ["nftables-flowtable-nat44", "map-t-jool"])
def test_one_gateway_tells_what_its_kernel_must_have_and_a_guest_that_needs_an_own_build_the_option(
    name: str, golden: Golden
) -> None:
    said = CliRunner().invoke(gateways.command, ["show", name])
    golden([line for line in said.output.splitlines() if re.match(r"  (kind|runs|needs|kernel) ", line)])
    own = "own build (--guest-files)"
    assert (own in said.output) is (name == "map-t-jool")
    assert own not in CliRunner().invoke(gateways.command, ["show", "jool-nat64"]).output


def test_a_run_has_the_distribution_of_its_guest_and_what_it_lacks_is_called_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv(last_runs.VARIABLE, "1")
    file = tmp_path / "last.toml"
    last_runs.record("jool-nat64", "guest", ["Linux 6.1", "Jool 4"], file)
    (run,) = runs_of(load("jool-nat64"), file)
    golden(run.system)
    golden(Run("2026-11-25", "guest", ("Linux 6.1", "Jool 4")).system)
    assert Run("2026-11-25", "here", ("vpp 1",)).system == "not recorded"
    golden(Run("2026-11-25", "here", ("vpp 1",), "Debian").system)

# SPDX-License-Identifier: Apache-2.0
"""Limits of control groups of both versions; and of a machine, what moves figures and nothing that only names it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import doubted_for

from natgauge.host import machine
from natgauge.host.limits import ControlGroups, Throttling
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

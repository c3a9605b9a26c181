# SPDX-License-Identifier: Apache-2.0
"""Check this host: what works, what is missing, and the command that fixes it. The checks change nothing.

Abilities are tried where possible (a thousand frames over a virtual cable), not guessed from versions.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

from natgauge import cleaning
from natgauge.agreement.generated import StreamCounts
from natgauge.errors import HostError, NatgaugeError, UsageError
from natgauge.figure_text import in_percent, with_noun
from natgauge.finding import Finding, State
from natgauge.gateways.preparation import refuse_absent_files
from natgauge.gateways.recipe import VARIABLE as GATEWAYS
from natgauge.gateways.recipe import Recipe, available, load
from natgauge.gateways.recipe_model import OWN_PACKAGE, RequiredPrograms, installing
from natgauge.gateways.support import has_module, places
from natgauge.host import capabilities, programs
from natgauge.host.capabilities import LEAST_KERNEL, ControlGroups, memory_octets
from natgauge.host.machine import fastest_of, usable_cpus
from natgauge.host.private_files import HiddenLabsError
from natgauge.inputs.measuring_types import format_cores
from natgauge.labs.common.device import ThisMachine
from natgauge.labs.common.shell import run_shell
from natgauge.labs.wire import port_state
from natgauge.tester.cable import CableLab, handful

#: State of the worst finding, best first.
_ORDER: Final[tuple[State, ...]] = ("ok", "warning", "missing")
_LEAST_MEMORY_MIB: Final = 1024
#: Of a NAT44 on this machine: its entry and bucket (recipes/common/conntrack.toml), and the tester's own 8 octets.
_OCTETS_PER_CONNECTION: Final = 384 + 8 + 8
#: Share of stolen time since boot above which many trials will be disturbed.
_STOLEN_SHARE: Final = 0.001
#: Clocks that are read without leaving the program: x86, guests of KVM and Hyper-V on it, ARM, RISC-V.
_FAST_CLOCKS: Final = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource")
_PROGRAMS: Final = ("natgauge-engine", "natgauge-front", "natgauge-softwire")
_VERSION_SECONDS: Final = 5.0


def send_over_a_cable() -> StreamCounts:
    """Make a cable, send 1000 IPv4 frames over it at 100000 frames/s, and remove the cable."""
    # The name contains the process: two processes may probe a host at the same time.
    with CableLab(f"doctor-{os.getpid()}") as cable:
        return handful(cable.initiator, cable.responder, rate=100_000.0, grace_ms=50, seconds=20.0)


class NoText(Enum):
    """Why a file has no text."""

    ABSENT = "is not there"
    REFUSED = "cannot be read by this user"
    NO_SYS = "cannot be read, because /sys is not mounted"


_MENDS = {
    NoText.ABSENT: "natgauge doctor, on the machine itself, outside of containers",
    NoText.REFUSED: "sudo natgauge doctor",
    NoText.NO_SYS: "mount -t sysfs sysfs /sys",
}


@dataclass(frozen=True, slots=True)
class Host:
    """The host to check; tests use a simulated host.

    Attributes:
        prove: sends frames over a cable; None = not tried.
        gateways: names or paths of the gateways that it is checked for; empty = all.
    """

    root: Path = Path("/")
    release: str = field(default_factory=lambda: os.uname().release)
    prove: Callable[[], StreamCounts] | None = send_over_a_cable
    find: Callable[[str], str | None] = programs.find_of_devices
    has: Callable[[str], bool] = has_module
    gateways: tuple[str, ...] = ()

    def path(self, path: str) -> Path:
        """Return where a path of the host is."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | NoText:
        """Return the text of a file, stripped, or why there is none."""
        try:
            return self.path(path).read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            # Every kernel has this folder in its /sys.
            hidden = path.startswith("/sys/") and not self.path("/sys/devices").exists()
            return NoText.NO_SYS if hidden else NoText.ABSENT
        except (OSError, ValueError):
            return NoText.REFUSED


def unknown(name: str, path: str, why: NoText) -> Finding:
    """Return the finding of a check that could not read what it depends on."""
    return Finding(name, "warning", f"not known: {path} {why.value}", _MENDS[why])


def examine(host: Host | None = None) -> list[Finding]:
    """Run all checks, in the order in which findings should be fixed. Takes about half a second.

    Raises:
        UsageError: an environment variable names something else than folders, so other things would be checked; or a
            gateway that the host is checked for is none.
    """
    for variable in (programs.VARIABLE, programs.PATH_VARIABLE, GATEWAYS):
        programs.named_folders(variable)
    place = host or Host()
    for name in place.gateways:
        _recipe(name)
    return [finding for check in _CHECKS for finding in check(place)]


def worst_state(findings: Sequence[Finding]) -> State:
    """Return the worst state; "ok" without findings."""
    return max((finding.state for finding in findings), key=_ORDER.index, default="ok")


def _kernel(host: Host) -> Iterator[Finding]:
    match = re.match(r"(\d+)\.(\d+)", host.release)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version >= LEAST_KERNEL:
        yield Finding("kernel", "ok", f"Linux {host.release}")
    else:
        least = ".".join(map(str, LEAST_KERNEL))
        mend = "apt-get install -t bookworm-backports linux-image-amd64 && reboot"
        yield Finding("kernel", "missing", f"Linux {host.release} is older than {least}", mend)


def _btf(host: Host) -> Iterator[Finding]:
    path = "/sys/kernel/btf/vmlinux"
    if host.path(path).exists():
        yield Finding("BTF", "ok", "the kernel describes its types in /sys/kernel/btf/vmlinux")
    elif not host.path("/sys/devices").exists():
        yield unknown("BTF", path, NoText.NO_SYS)
    else:
        what = "there is no /sys/kernel/btf/vmlinux: the kernel was built without CONFIG_DEBUG_INFO_BTF"
        yield Finding("BTF", "missing", what, "apt-get install linux-image-amd64 && reboot")


def _jit(host: Host) -> Iterator[Finding]:
    # Kernels that always compile (CONFIG_BPF_JIT_ALWAYS_ON) say 1; some without a JIT have no such file.
    path = "/proc/sys/net/core/bpf_jit_enable"
    value = host.read(path)
    if value == "1":
        yield Finding("BPF JIT", "ok", "programs are compiled")
    elif value is NoText.REFUSED:
        yield unknown("BPF JIT", path, value)
    elif value is NoText.ABSENT and host.read("/proc/sys/net/core/netdev_max_backlog") is NoText.ABSENT:
        # The kernel shows settings of the whole machine in its first network namespace only.
        yield Finding("BPF JIT", "ok", "not known in this network namespace: the setting is the machine's")
    else:
        what = "compiles with debug output" if value == "2" else "programs are interpreted, many times slower"
        yield Finding("BPF JIT", "warning", what, "sysctl -w net.core.bpf_jit_enable=1")


def _engine(host: Host) -> Iterator[Finding]:
    for name in _PROGRAMS:
        try:
            answer = _version(name)
        except NatgaugeError as error:
            yield Finding(name, "missing", str(error), "make setup")
        else:
            yield Finding(name, "ok", answer)
    yield from _frames(host)


def _version(name: str) -> str:
    """Return the version that a program of natgauge prints, and its path; HostError: it does not run."""
    try:
        path = programs.find(name)
    except HostError:
        raise HostError(programs.not_found(name)) from None
    try:
        answer = run_shell(partial(_printing_version, path), _VERSION_SECONDS, f"{path}")
    except OSError as error:
        raise HostError(f"{path} does not run: {error.strerror}") from error
    if answer is None:
        raise HostError(f"{path} did not end within {_VERSION_SECONDS:g} s")
    if answer.status:
        raise HostError(f"{path} ended with exit status {answer.status}")
    return f"{answer.stdout.strip()} at {path}"


def _printing_version(program: Path, out: int, err: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program, "--version"], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )


def _frames(host: Host) -> Iterator[Finding]:
    if host.prove is None:
        return
    try:
        proof = host.prove()
    except NatgaugeError as error:
        yield Finding("frames", "missing", f"no trial can be run: {error}", "natgauge selftest --quick")
        return
    received = proof.received_frames
    if received == proof.offered_frames > 0:
        yield Finding("frames", "ok", f"{with_noun(received, 'live frames')} over a virtual cable, none lost")
    else:
        what = f"{received} of {proof.offered_frames} live frames came over a virtual cable"
        yield Finding("frames", "warning" if received else "missing", what, "natgauge selftest --quick")


def _clock(host: Host) -> Iterator[Finding]:
    folder = "/sys/devices/system/clocksource/clocksource0"
    clock = host.read(f"{folder}/current_clocksource")
    if isinstance(clock, NoText):
        yield unknown("clock", f"{folder}/current_clocksource", clock)
        return
    if clock in _FAST_CLOCKS:
        yield Finding("clock", "ok", f"clock source {clock}")
        return
    available = host.read(f"{folder}/available_clocksource")
    known = [] if isinstance(available, NoText) else available.split()
    better = [name for name in known if name in _FAST_CLOCKS]
    # The kernel rejects a TSC whose cores differ: told to trust it, delays would be wrong.
    mend = f"echo {better[0]} > {folder}/current_clocksource" if better else "use a machine whose TSC is stable"
    yield Finding("clock", "warning", f"clock source {clock} is slow to read: lower rates, coarser delays", mend)


def _cpus(host: Host) -> Iterator[Finding]:
    cpus = usable_cpus()
    fast = fastest_of(cpus, host.root)
    if len(cpus) < 2:
        what = f"only core {format_cores(cpus)} can be used: the isolated placement needs two"
        yield Finding("cores", "warning", what, "give the machine more cores; until then use --placement shared")
    elif slow := [cpu for cpu in cpus if cpu not in fast]:
        what = f"{format_cores(slow)} slower than {format_cores(fast)}: rates depend on which of them work"
        # The isolated placement needs two.
        several = f"start natgauge with taskset -c {format_cores(fast)}"
        mend = several if len(fast) > 1 else "name the cores: --sender-cores and --cores"
        yield Finding("cores", "warning", what, mend)
    else:
        yield Finding("cores", "ok", f"cores {format_cores(cpus)} can be used")


def _smt(host: Host) -> Iterator[Finding]:
    path = "/sys/devices/system/cpu/smt/active"
    active = host.read(path)
    if active in (NoText.REFUSED, NoText.NO_SYS):
        yield unknown("SMT", path, active)
    elif active == "1":
        what = "two threads share each core: what the device does slows the tester"
        yield Finding("SMT", "warning", what, "natgauge host tune")
    else:
        yield Finding("SMT", "ok", "no two cores share one")


def _governor(host: Host) -> Iterator[Finding]:
    folder = host.path("/sys/devices/system/cpu")
    if not folder.exists():
        yield unknown("clock speed", "/sys/devices/system/cpu", NoText.NO_SYS)
        return
    cores = sorted(path.parent.parent.name for path in folder.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    read = {host.read(f"/sys/devices/system/cpu/{core}/cpufreq/scaling_governor") for core in cores}
    governors = {governor for governor in read if not isinstance(governor, NoText)}
    slow = sorted(governors - {"performance"})
    if slow:
        what = f"governor {', '.join(slow)} lets the cores slow down"
        yield Finding("clock speed", "warning", what, "natgauge host tune")
    else:
        yield Finding("clock speed", "ok", "governor performance" if governors else "not the kernel's to change")


def _real_time(host: Host) -> Iterator[Finding]:
    # The engine watches cores with real-time priority; without it, the tester's own load would look like stalls.
    path = "/proc/sys/kernel/sched_rt_runtime_us"
    runtime = host.read(path)
    if runtime is NoText.REFUSED:
        yield unknown("real time", path, runtime)
    elif runtime == "0":
        what = "sched_rt_runtime_us is 0: stalls of the device's cores cannot be distinguished from load"
        yield Finding("real time", "warning", what, "sysctl -w kernel.sched_rt_runtime_us=950000")
    else:
        yield Finding("real time", "ok", "real-time priorities can be used")


def _stolen(host: Host) -> Iterator[Finding]:
    text = host.read("/proc/stat")
    if isinstance(text, NoText):
        yield unknown("stolen time", "/proc/stat", text)
        return
    line = text.partition("\n")[0].split()
    ticks = [int(text) for text in line[1:9]]
    total = sum(ticks)
    share = ticks[7] / total if len(ticks) == 8 and total else 0.0
    if share > _STOLEN_SHARE:
        yield Finding(
            "stolen time",
            "warning",
            f"the hypervisor took {in_percent(share)} of the cores' time since boot: disturbed trials will be repeated",
            "use a machine with cores of its own",
        )
    else:
        yield Finding("stolen time", "ok", f"{in_percent(share)} of the cores' time since boot")


def _memory(host: Host) -> Iterator[Finding]:
    text = host.read("/proc/meminfo")
    if isinstance(text, NoText):
        yield unknown("memory", "/proc/meminfo", text)
        return
    available = memory_octets("MemAvailable", text) or 0
    left = ControlGroups(host.root).memory_left()
    mib = (available if left is None else min(available, left)) // 1024**2
    if mib >= _LEAST_MEMORY_MIB:
        millions = mib * 1024**2 // _OCTETS_PER_CONNECTION // 1_000_000
        what = f"{mib} MiB available: enough for about {millions} million connections of a NAT44 on this machine"
        yield Finding("memory", "ok", what)
    else:
        what = f"only {mib} MiB available"
        yield Finding("memory", "warning", what, "end what you do not need; see: ps -e --sort -rss")


def _conntrack(host: Host) -> Iterator[Finding]:
    path = "/proc/sys/net/netfilter/nf_conntrack_max"
    limit = host.read(path)
    buckets = host.read("/sys/module/nf_conntrack/parameters/hashsize")
    if limit is NoText.ABSENT and host.has("nf_conntrack"):
        yield Finding("conntrack", "ok", "module nf_conntrack is loaded when a gateway needs it")
    elif limit is NoText.ABSENT:
        what = "module nf_conntrack is not loaded, and not found in /lib/modules: gateways that need it cannot run here"
        mend = "install the kernel's modules; in a container, modprobe nf_conntrack on its host"
        yield Finding("conntrack", "warning", what, mend)
    elif isinstance(limit, NoText):
        yield unknown("conntrack", path, limit)
    else:
        size = f"its buckets: {buckets.value}" if isinstance(buckets, NoText) else f"{buckets} buckets"
        yield Finding("conntrack", "ok", f"connection tracking table of {limit} connections, {size}")


def _packages(host: Host) -> Iterator[Finding]:
    """Yield a finding for each recipe, the user's invalid recipes included, then one for all their packages."""
    absent: set[str] = set()
    every: Sequence[tuple[str, str | Path]] = [(name, path) for name, paths in available().items() for path in paths]
    for name, path in [(name, name) for name in host.gateways] or every:
        try:
            recipe = _recipe(path)
        except UsageError as error:
            yield Finding(f"gateway {name}", "warning", str(error), f'"${{EDITOR:-vi}}" {shlex.quote(str(path))}')
            continue
        if recipe.system != ThisMachine.system:
            yield Finding(f"gateway {name}", "ok", f"runs on {recipe.system}, over --lab ssh", places=places(recipe))
            continue
        missing = {program: need for need in recipe.needs for program in need.programs if not host.find(program)}
        absent |= {need.package for need in missing.values() if need.package}
        yield _package(recipe, missing, host)
    packages = sorted(absent)
    if packages:
        what = f"not installed: {', '.join(packages)}"
        yield Finding("gateway packages", "missing", what, installing(packages), _of_debian(packages))
    else:
        yield Finding("gateway packages", "ok", "all are installed")


def _recipe(name_or_path: str | Path) -> Recipe:
    recipe = load(name_or_path)
    for part in recipe.of_devices(1):
        refuse_absent_files(part)
    return recipe


def _package(recipe: Recipe, missing: Mapping[str, RequiredPrograms], host: Host) -> Finding:
    """Return the finding of a recipe; `missing` has a message for each program that was not found."""
    name, where = f"gateway {recipe.name}", places(recipe, host.has)
    if not missing:
        return Finding(name, "ok", "all it needs is installed", places=where)
    packages = [need.package for need in missing.values() if need.package]
    mends = [need.mends for need in missing.values() if need.mends]
    mend = "; ".join([*([installing(packages)] if packages else []), *dict.fromkeys(mends)])
    return Finding(name, "missing", f"needs {', '.join(missing)}", mend, _of_debian(packages), where)


def _of_debian(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the packages without natgauge itself, which is a wheel."""
    return tuple(sorted(set(packages) - {OWN_PACKAGE}))


def _ports(host: Host) -> Iterator[Finding]:
    for device in sorted((host.root / "sys/class/net").glob("*/device")):
        name = device.parent.name
        try:
            features = port_state.features(socket.if_nametoindex(name))
        except OSError:
            continue
        if features is None:
            what = "the kernel does not report its XDP features"
            yield Finding(f"port {name}", "warning", what, f"ethtool -i {name}")
        elif port_state.Features.BASIC in features:
            yield Finding(f"port {name}", "ok", "its driver has XDP: it could be a port of the wire lab")
        else:
            yield Finding(f"port {name}", "ok", "its driver has no XDP: it cannot be a port of the wire lab")


def _leftovers(_host: Host) -> Iterator[Finding]:
    try:
        labs = cleaning.status()
        strays, ownerless = cleaning.find_strays(), cleaning.ownerless()
    except HostError as error:
        # Cleaning does not touch what it cannot read.
        mend = "sudo natgauge doctor" if isinstance(error, HiddenLabsError) else error.mend or None
        yield Finding("leftovers", "warning", str(error), mend)
        return
    dead = [f"lab {lab.name}" for lab in labs if lab.state == "left behind"]
    dead += [f"namespace {name}" for name in ownerless]
    for stray in strays:
        yield Finding("leftovers", "warning", stray.text)
    if dead:
        yield Finding("leftovers", "warning", f"a killed run left {', '.join(dead)}", "natgauge lab clean")
    elif not strays:
        yield Finding("leftovers", "ok", "no killed run left anything")


def _privileges(_host: Host) -> Iterator[Finding]:
    absent = capabilities.missing(*capabilities.MEASURING)
    if capabilities.in_user_namespace():
        yield Finding("capabilities", "missing", capabilities.USER_NAMESPACE, "sudo natgauge doctor")
    elif absent:
        what = f"this process lacks {capabilities.described(absent)}"
        mend = f"sudo natgauge doctor; in a container: {capabilities.container_options(absent)}"
        yield Finding("capabilities", "missing", what, mend)
    elif rare := capabilities.missing(*capabilities.PROCESSES):
        what = f"this process lacks {capabilities.described(rare)}, which a few gateways have"
        mend = f"sudo natgauge doctor; in a container: {capabilities.container_options(rare)}"
        yield Finding("capabilities", "warning", what, mend)
    else:
        yield Finding("capabilities", "ok", f"this process has {', '.join(capabilities.MEASURING)}")


def _writable(host: Host) -> Iterator[Finding]:
    # Docker mounts settings of the kernel read-only without --privileged.
    try:
        read_only = os.statvfs(host.path("/proc/sys")).f_flag & os.ST_RDONLY
    except OSError as error:
        yield Finding("/proc/sys", "missing", f"/proc/sys: {error.strerror}", "mount -t proc proc /proc")
        return
    if read_only:
        what = "read-only, as in a container: a device cannot be made to forward"
        yield Finding("/proc/sys", "missing", what, "mount -o remount,rw /proc/sys, or docker run --privileged")
    else:
        yield Finding("/proc/sys", "ok", "can be written")


def _process_limits(_host: Host) -> Iterator[Finding]:
    try:
        capabilities.refuse_lacking()
    except HostError as error:
        yield Finding("limits", "missing", str(error), "natgauge doctor, in an environment that has it")
    else:
        yield Finding("limits", "ok", "enough open files and threads")


def _kernel_threads(host: Host) -> Iterator[Finding]:
    # Placement `isolated` gives them a priority.
    if capabilities.shows_kernel_threads(host.root):
        yield Finding("kernel threads", "ok", "/proc shows them")
    else:
        what = "a PID namespace, as a container has it, does not show them: placement isolated cannot be used"
        yield Finding("kernel threads", "warning", what, "docker run --pid=host; until then use --placement shared")


def _quotas(host: Host) -> Iterator[Finding]:
    groups = ControlGroups(host.root)
    quota, memory, processes = groups.cpu_quota(), groups.memory_limit(), groups.most_processes()
    if quota is not None:
        stopped = groups.throttling()
        what = (
            f"a CPU quota permits {with_noun(f'{quota:g}', 'cores')}, and has stopped this group "
            f"{with_noun(stopped.times, 'times')}, for {stopped.seconds:.1f} s: trials that it stops are INVALID, and "
            "rates may be too low"
        )
        yield Finding("CPU quota", "warning", what, "remove the quota (docker: --cpus; Kubernetes: limits.cpu)")
    else:
        yield Finding("CPU quota", "ok", "there is none")
    bounds = [] if memory is None else [f"{memory >> 20} MiB of memory"]
    bounds += [] if processes is None else [f"{processes} processes and threads"]
    yield Finding("control group", "ok", f"permits {', '.join(bounds)}" if bounds else "sets no other limits")


_CHECKS: Final[tuple[Callable[[Host], Iterator[Finding]], ...]] = (
    _kernel,
    _privileges,
    _writable,
    _process_limits,
    _kernel_threads,
    _quotas,
    _btf,
    _jit,
    _engine,
    _leftovers,
    _conntrack,
    _packages,
    _clock,
    _cpus,
    _smt,
    _governor,
    _real_time,
    _stolen,
    _memory,
    _ports,
)

# SPDX-License-Identifier: Apache-2.0
"""Parts of a recipe: required programs, limits, knobs, verbs and the gateway's own processes (docs/recipes.md).

Shell text starts, watches and ends the processes on the machine that runs the device's snippets. The parent of each
process is a shell that exits with the process and writes down how it ended. So natgauge learns of an end at once and
reliably, also on another machine and after the system has reused the process number. Where the machine has setsid, a
process has a group of its own, and what it forked into that group ends with it: a worker left behind would answer
beside the next server.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from natgauge.labs.common.shell import last_words
from natgauge.port_blocks import PortBlocks
from natgauge.words import TcpState

#: The verbs, in the order a gateway's life has them.
VERBS: Final = (
    "check", "version", "start", "empty", "count", "count_established", "count_unexpired", "lingering", "faults",
    "outside_mtu", "stop",
)  # fmt: skip

#: Emptying by the verb `empty`, and by stopping and starting the gateway: ways that every stateful gateway has.
BY_VERB: Final = "default"
BY_RESTART: Final = "restart"

#: Name for the package of the programs that come with natgauge itself.
OWN_PACKAGE: Final = "natgauge"
#: Name for the package of programs that every installation of the device's system has.
BASE_PACKAGE: Final = "base"

#: What a device's machine runs, as `uname -s` calls it.
System = Literal["Linux", "OpenBSD", "FreeBSD"]

#: Test frames, and states of TCP connections, that have a time-out of their own.
Frames = Literal["icmp", "tcp", "tcp-half-open", "tcp-fin", "tcp-rst"]

_ROOTS: Final = ("/proc/sys/", "/sys/")

Paths = tuple[Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")], ...]
Snippet = Annotated[str, Field(min_length=1)]
Pieces = tuple[Snippet, ...]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
LAST_PORT: Final = 65535
Port = Annotated[int, Field(ge=1, le=LAST_PORT)]


class RecipeTable(BaseModel):
    """Base of every part of a recipe: no unknown keys, no conversions, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RequiredPrograms(RecipeTable):
    """Programs the device must have, and where they come from.

    Attributes:
        package: the Debian package that has them, "natgauge" for natgauge's own, "base" for what every installation of
            the device's system has; None = none has.
    """

    programs: Annotated[tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]+$")], ...], Field(min_length=1)]
    package: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")] | None = None
    mends: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.package is None) == (self.mends is None):
            raise ValueError("name the package that has the programs or, where there is none, what mends")
        return self


class Module(RecipeTable):
    """Something that the kernel of the device's machine must have, beyond what every Linux has.

    Attributes:
        check: snippet that succeeds where it is there; it may load it. None = `modprobe` does.
        package: Debian package that has the module; None = it is one of the kernel's own.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    check: Snippet | None = None
    package: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")] | None = None
    mends: Annotated[str, Field(min_length=1)]


def installing(packages: Iterable[str]) -> str:
    """Return the command that installs packages. natgauge's own programs come from its wheel, not from Debian."""
    wanted = sorted(set(packages))
    debian = [package for package in wanted if package != OWN_PACKAGE]
    commands = [f"apt-get install {' '.join(debian)}"] if debian else []
    if OWN_PACKAGE in wanted:
        commands.append("pip install --force-reinstall natgauge-*.whl")
    return " && ".join(commands)


def _pool(text: str) -> str:
    first, _, last = text.partition("-")
    if IPv4Address(first) > IPv4Address(last or first):
        raise ValueError("is reversed; write the lower address first")
    return text


def _ports(text: str) -> str:
    for first, _, last in (each.partition("-") for each in text.split(",")):
        if not 1 <= int(first) <= int(last or first) <= LAST_PORT:
            raise ValueError(f"ports are 1 to {LAST_PORT}, the lower one of a range first")
    return text


class GatewayLimits(RecipeTable):
    """Limits that no knob changes.

    Attributes:
        source_addresses: most Initiator addresses that the gateway can serve; None = no such limit.
        mapping: allocation of outside ports (RFC 4787 section 4.1): one per connection's remote endpoint, one for all
            remote endpoints, or one that no other connection has; None = the gateway does not translate ports.
        entries_per_connection: entries of a connection, in tables that share their buckets and their memory.
        octets_per_connection: memory of one entry; None = unknown.
        octets_per_bucket: memory of one bucket of the hash table; None = unknown or no hash table.
        count_lag: seconds for which the gateway may still count connections that it has forgotten.
        nat64_prefix: the only NAT64 prefix that the gateway knows; None = it takes any.
        nat64_lengths: lengths of NAT64 prefixes that it takes; empty = all of RFC 6052 section 2.2.
        takes_vlans: whether the gateway takes VLAN tags from its interfaces, and adds them, as $NG_INSIDE_VLAN and
            $NG_OUTSIDE_VLAN say.
        own_xdp: whether the gateway has XDP programs at its interfaces, so that no other program can be there.
        pool4: outside addresses "A-B" that the gateway's rules name, which the lab then has; None = those of the lab.
        port_blocks: blocks of outside ports that it gives to inside hosts; None = its hosts share the ports.
        destination_ports: by transport, the only ports outside to which its rules let connections go, such as
            "443,8000-8080"; test frames go to the first part, flows of audits to all. A transport without goes to any.
    """

    source_addresses: Number | None = None
    mapping: Literal["address-and-port-dependent", "endpoint-independent", "each-connection"] | None = None
    pool_ports: tuple[Port, Port] | None = None
    entries_per_connection: Annotated[int, Field(ge=1, le=64)] = 1
    octets_per_connection: Number | None = None
    octets_per_bucket: Number | None = None
    count_lag: Annotated[int, Field(ge=0, le=600)] = 0
    nat64_prefix: Annotated[str, Field(pattern=r"^[0-9a-f:]+/[0-9]{2}$")] | None = None
    nat64_lengths: tuple[Literal[32, 40, 48, 56, 64, 96], ...] = ()
    takes_vlans: bool = False
    own_xdp: bool = False
    pool4: Annotated[str, AfterValidator(_pool)] | None = None
    port_blocks: PortBlocks | None = None
    destination_ports: dict[
        Literal["udp", "tcp"],
        Annotated[str, Field(pattern=r"^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$"), AfterValidator(_ports)],
    ] = Field(default_factory=dict)

    @property
    def reuses_ports(self) -> bool:
        """Whether an outside port may serve connections to several remote endpoints at a time."""
        return self.mapping in (None, "address-and-port-dependent")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.mapping is None) != (self.pool_ports is None):
            raise ValueError("mapping and pool_ports come together, or not at all")
        if self.pool_ports and self.pool_ports[0] > self.pool_ports[1]:
            raise ValueError("pool_ports is reversed; write the lower port first")
        return self


class KnobSnippets(RecipeTable):
    """Snippets of a knob for test frames, or TCP connections in a state, that have a setting of their own.

    Attributes:
        write: sets it to $NG_VALUE; None = it cannot be set.
    """

    read: Snippet
    write: Snippet | None = None
    minimum: Number = 1


class Knob(RecipeTable):
    """One setting of a gateway.

    Attributes:
        scope: "device" is set inside the device; "machine" is global, written from outside the device and restored
            afterwards; "lab" is decided when the lab is made.
        paths: files that hold the value, each as one decimal number; all are written, the smallest value counts. The
            last one of `udp_timeout` is of connections that had frames both ways; so is the last line of `read`.
        paths_of: files in place of `paths` for other test frames than UDP, and for TCP connections in other states than
            established. A knob without them, and without `snippets_of`, is none of theirs.
        maximum: largest accepted value; None = the gateway has no limit.
    """

    scope: Literal["device", "machine", "lab"]
    paths: Paths = ()
    paths_of: dict[Frames, Paths] = Field(default_factory=dict)
    snippets_of: dict[Frames, KnobSnippets] = Field(default_factory=dict)
    read: Snippet | None = None
    write: Snippet | None = None
    module: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] | None = None
    unit: Annotated[str, Field(min_length=1)]
    minimum: Number = 1
    maximum: Number | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.maximum is not None and self.maximum < self.minimum:
            raise ValueError(f"maximum {self.maximum} is below minimum {self.minimum}")
        if self.scope == "machine" and (self.read or self.write or not self.paths):
            raise ValueError('scope "machine" needs paths, and neither read nor write: snippets run inside the device')
        if self.scope == "machine" and not all(path.startswith(_ROOTS) and ".." not in path for path in self.paths):
            raise ValueError(f'scope "machine" takes only paths below {" and ".join(_ROOTS)}')
        if self.scope == "device" and bool(self.paths) == bool(self.read):
            raise ValueError('scope "device" needs either paths or read')
        if (self.snippets_of and not self.read) or (self.paths_of and not self.paths):
            raise ValueError("snippets_of needs read, and paths_of needs paths")
        if self.scope == "lab" and (self.paths or self.read or self.write):
            raise ValueError('scope "lab" takes no paths, read or write')
        return self

    def of(self, frames: str) -> Self | None:
        """Return the same knob for other test frames or a state, one of `Frames`; None = it is none of theirs."""
        by_name: dict[str, dict[str, object]] = {name: {"paths": paths} for name, paths in self.paths_of.items()}
        by_name |= {name: snippets.model_dump() for name, snippets in self.snippets_of.items()}
        return self.model_copy(update=by_name[frames]) if frames in by_name else None

    @property
    def settable(self) -> bool:
        """Whether the gateway's driver can change it."""
        return bool(self.paths or self.write)


class Knobs(RecipeTable):
    """Knobs that natgauge can set; None = the gateway has no such knob.

    Attributes:
        timeouts: seconds after which any unused entry is forgotten, whatever its protocol and state.
        udp_timeout: seconds after which an unused UDP entry is forgotten.
    """

    table_size: Knob | None = None
    hash_size: Knob | None = None
    # Set before the next one, so that both together mean what they say.
    timeouts: Knob | None = None
    udp_timeout: Knob | None = None
    cores: Knob | None = None

    def of(self, frames: str) -> Self:
        """Return the same knobs with the time-out of other test frames or of a state, one of `Frames`."""
        timeout = None if self.udp_timeout is None else self.udp_timeout.of(frames)
        return self.model_copy(update={"udp_timeout": timeout})

    def in_state(self, state: TcpState) -> Self:
        """Return the same knobs with the time-out of TCP connections in this state."""
        return self if state == "established" else self.of(f"tcp-{state}")

    def named(self) -> dict[str, Knob]:
        """Return the knobs that the gateway has, by name."""
        every = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: knob for name, knob in every.items() if knob is not None}


class Emptying(RecipeTable):
    """A further way of removing all connections, in place of the verb `empty`.

    Attributes:
        starts_again: whether they also end the gateway, so that it must be started again; that time does not count.
    """

    run: Annotated[Pieces, Field(min_length=1)]
    starts_again: bool = False


class Verbs(RecipeTable):
    """Shell snippets (POSIX, run with `sh -eu`); each verb joins the snippets of its fragments and its recipe.

    Attributes:
        start: sets the gateway up; remains of an earlier start do not disturb it.
        count_established: prints the number of TCP connections that the gateway has in its state for open connections;
            it may walk the table.
        count_unexpired: prints the number of connections whose time is not over, where `count` includes others; it may
            walk the table.
        lingering: prints lines "fin SECONDS" and "rst SECONDS": how long the gateway keeps a TCP connection that such
            a segment has closed.
        outside_mtu: sets the MTU of the outside link to $NG_VALUE, for a gateway that does not look at the MTU of the
            kernel's interface.
    """

    check: Annotated[Pieces, Field(min_length=1)]
    version: Annotated[Pieces, Field(min_length=1)]
    start: Annotated[Pieces, Field(min_length=1)]
    stop: Annotated[Pieces, Field(min_length=1)]
    empty: Pieces = ()
    count: Annotated[Pieces, Field(max_length=1)] = ()
    count_established: Annotated[Pieces, Field(max_length=1)] = ()
    count_unexpired: Annotated[Pieces, Field(max_length=1)] = ()
    lingering: Annotated[Pieces, Field(max_length=1)] = ()
    faults: Pieces = ()
    outside_mtu: Annotated[Pieces, Field(max_length=1)] = ()

    def pieces(self, verb: str) -> Pieces:
        """The snippets of a verb in the order they run; empty when the gateway has no such verb."""
        pieces: Pieces = getattr(self, verb)
        # What was made last is removed first.
        return pieces[::-1] if verb == "stop" else pieces


#: Lines of its log that are brought home when it has ended.
_LAST_LINES: Final = 5
_SAID_LENGTH: Final = 200
_MARK: Final = "natgauge-end "
#: Word behind the exit status where the core dump lacks its end.
_CUT: Final = "cut"
#: Octets of a part of the log, at most, and reads that fill it. A log has three parts: the last ones that were printed.
_PART_OCTETS: Final = 4096 * 1024
#: What the names of its files end in: its number, its end, the room for a core dump, and the parts of its log.
_FILES: Final = ("pid", "end", "most", "logging", "log", "log.1", "log.2")
#: Of a core dump, KiB at most, and the share of the room that the private directory has when the process starts.
_CORE_KIB: Final = 256 * 1024
_CORE_PART: Final = 4
#: Signals that dump core unless something is done about them (signal(7)).
_DUMPING: Final = frozenset(
    {"SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGXCPU", "SIGSYS"}
)


class Process(RecipeTable):
    """A program that runs for as long as its gateway.

    Attributes:
        name: name of its files in the device's private directory: NAME.pid, NAME.log (NAME.log.1 and NAME.log.2 are
            what it printed before).
        command: shell text that starts it in the foreground; the last command replaces the shell.
        handles_frames: whether frames go through it; false for a program that only instructs the kernel.
        noise: lines of its log that do not explain its end, an extended regular expression (frames of a stack).
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
    command: Snippet
    ready_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    stop_seconds: Annotated[int, Field(ge=1, le=600)] = 5
    noise: Annotated[str, Field(pattern=r"^[^\n]+$")] | None = None
    handles_frames: bool = True

    @property
    def files(self) -> frozenset[str]:
        """Names of all its files in the device's private directory."""
        return frozenset(f"{self.name}.{kind}" for kind in _FILES)

    @property
    def start(self) -> str:
        """Shell text that starts the program with core dumps enabled, and returns when its number is known."""
        name = self.name
        # Its log is its own: the shell above it has a word for each signal, too.
        run = f"exec 2>&1 < /dev/null\necho $$ > {name}.pid\nexec {self.command.strip()}"
        watched = f"""
own=$(command -v setsid) || own=
$own /bin/sh -euc {shlex.quote(run)} && status=0 || status=$?
{self._end_group}
echo "$status" > {name}.end
"""
        # A shell of its own, not a part of this one: in that mksh would keep the caller's output open, and who reads it
        # would wait until all has ended. `ulimit` counts blocks of 512 octets (POSIX). It waits for the number: a
        # session has a priority of its own (autogroup), written to the processes that are there when this text ends.
        return f"""
cd "$NG_WORK"
rm -f {name}.pid {name}.end {name}.log {name}.log.1 {name}.log.2
room=$(df -Pk . 2> /dev/null | tail -n 1 | {{ read -r _ _ _ free _ && echo "$((free / {_CORE_PART}))"; }}) || room=
case $room in '' | *[!0-9]*) room={_CORE_KIB} ;; esac
if [ "$room" -gt {_CORE_KIB} ]; then room={_CORE_KIB}; fi
echo "$room" > {name}.most
ulimit -c "$((room * 2))" 2> /dev/null || true
: > {name}.logging
/bin/sh -euc {shlex.quote(f"{{ {watched}}} | {{ {self._log}}}")} > /dev/null 2>&1 &
tries=100
while [ ! -s {name}.pid ] && [ ! -e {name}.end ] && [ "$tries" -gt 0 ]; do tries=$((tries - 1)); sleep 0.02; done
"""

    @property
    def _end_group(self) -> str:
        """Shell text that kills what is left of the process's own group; its first process may just have ended.

        A group has the number of a process only if that process made it, and keeps the number as long as a member
        runs. So without a group of its own nothing is killed.
        """
        return f"""
group=$(cat {self.name}.pid 2> /dev/null) || group=
if [ "${{group:-0}}" -gt 1 ]; then kill -s KILL -- "-$group" 2> /dev/null || true; fi
"""

    @property
    def _log(self) -> str:
        """Shell text that stores the end of its input in the log, however long the input is.

        A log that cannot be written does not stop the process.
        """
        log = f"{self.name}.log"
        return f"""
while dd bs=4096 count={_PART_OCTETS // 4096} of={log} 2> /dev/null || {{ cat > /dev/null; false; }}; do
    if [ ! -s {log} ]; then
        if [ -e {log}.1 ]; then mv -f {log}.1 {log}; fi
        break
    fi
    if [ -e {log}.1 ]; then mv -f {log}.1 {log}.2; fi
    mv -f {log} {log}.1
done
rm -f {self.name}.logging
"""

    @property
    def _logged(self) -> str:
        """Shell text that waits until the log has all of an ended process; what it left behind may go on printing."""
        return f"""
tries=10
while [ -e {self.name}.logging ] && [ "$tries" -gt 0 ]; do tries=$((tries - 1)); sleep 0.1; done
"""

    @property
    def status_command(self) -> str:
        """Shell text that prints nothing while it runs, and else what `ended` reads."""
        name = self.name
        words = "grep ." if self.noise is None else f"grep -Ev {shlex.quote(f'^[[:space:]]*$|{self.noise}')}"
        # The kernel stops before the page that does not fit.
        return f"""
cd "$NG_WORK"
if [ ! -e {name}.end ]; then
    if [ ! -s {name}.pid ] || kill -0 "$(cat {name}.pid)" 2> /dev/null; then exit; fi
fi
{self._logged}
core=$(ls -t core* 2> /dev/null | head -n 1)
cut=
if [ -n "$core" ] && [ "$(du -k "$core" | cut -f 1)" -ge "$(($(cat {name}.most) - 64))" ]; then cut=" {_CUT}"; fi
echo "{_MARK}$(cat {name}.end 2> /dev/null)$cut"
if [ -n "$core" ]; then echo "$NG_WORK/$core"; else cat /proc/sys/kernel/core_pattern 2> /dev/null || echo core; fi
cat {name}.log.2 {name}.log.1 {name}.log 2> /dev/null | tr -d '\\000' | {words} | tail -n {_LAST_LINES} || true
"""

    @property
    def stop(self) -> str:
        """Shell text that ends it and its group, and leaves none of its files; succeeds also when there is none."""
        return f"""
cd "$NG_WORK" 2> /dev/null || exit 0
if [ -s {self.name}.pid ] && [ ! -e {self.name}.end ]; then
    pid=$(cat {self.name}.pid)
    kill "$pid" 2> /dev/null || true
    tries={self.stop_seconds * 10}
    while kill -0 "$pid" 2> /dev/null || [ ! -e {self.name}.end ]; do
        if [ "$tries" -eq 0 ]; then kill -s KILL "$pid" 2> /dev/null || true; fi
        if [ "$tries" -le -20 ]; then
            if kill -0 "$pid" 2> /dev/null; then echo "{self.name}, process $pid, does not end" >&2; exit 1; fi
            break
        fi
        tries=$((tries - 1))
        sleep 0.1
    done
    # Nobody else does it where the shell above it was killed.
    if [ ! -e {self.name}.end ]; then {self._end_group} fi
fi
{self._logged}
rm -f {self.name}.pid {self.name}.end {self.name}.most {self.name}.logging
rm -f {self.name}.log {self.name}.log.1 {self.name}.log.2
"""

    def ended(self, text: str) -> str | None:
        """Return how the process ended, in words, from the output of `status_command`; None while it runs."""
        lines = text.splitlines()
        if not lines or not lines[0].startswith(_MARK.strip()):
            return None
        status, _, cut = lines[0].removeprefix(_MARK.strip()).strip().partition(" ")
        core = lines[1] if len(lines) > 1 else ""
        output = last_words("\n".join(lines[2:]))
        last = f"; it last said: {output[:_SAID_LENGTH]}" if output else "; it said nothing"
        return f"{self.name} {_how(status, core, cut=cut == _CUT)}{last}"


def _how(status: str, core: str, *, cut: bool) -> str:
    """Return the end of a process in words: a shell reports a signal as 128 + its number."""
    if not re.fullmatch(r"\d+", status):
        return "is gone, and nobody saw how"
    number = int(status)
    if number <= 128:
        return f"ended with exit status {number}"
    try:
        name = signal.Signals(number - 128).name
    except ValueError:
        name = f"signal {number - 128}"
    if name not in _DUMPING:
        return f"was ended by {name}"
    if core.startswith("/"):
        lacking = ", without its end: there was no room for all of it" if cut else ""
        return f"was ended by {name} (core dump: {core}{lacking})"
    where = "core dump handed to " + core[1:].strip() if core.startswith("|") else f"no core dump found; pattern {core}"
    return f"was ended by {name} ({where})"

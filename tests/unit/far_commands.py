# SPDX-License-Identifier: Apache-2.0
"""Stands in for the commands of OpenBSD and FreeBSD, under whose names it is called; what they print is in their form.

What the machine is like stands in the file `state` beside it. Whatever the real commands would refuse is refused, and
so is whatever nobody has taught it: a recipe that asks for more fails its test.
"""

from __future__ import annotations

import marshal
import sys
import time

# Each command is a process. Importing `json`, `re` or `pathlib` takes as long as the start of Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

HERE, _, NAME = sys.argv[0].rpartition("/")
TIMEOUTS = {
    "tcp.first": 120, "tcp.established": 86400, "udp.first": 60, "udp.single": 30, "udp.multiple": 60,
    "icmp.first": 20, "frag": 60, "interval": 10, "adaptive.start": 60000, "adaptive.end": 120000,
}  # fmt: skip
LIMIT = 100000
#: A purge finds forgotten states one scan after they were forgotten.
PURGE_SECONDS = 0.4
_INTERFACE, _NET4, _NET6 = r"[a-z]+\d+", r"[\d.]+(?:/\d+)?", r"[0-9a-f:]+(?:/\d+)?"
_OPTIONS = (
    rf"set skip on {_INTERFACE}",
    r"set limit states \d+",
    r"set timeout udp\.(?:first|single|multiple) \d+",
    r"set timeout \{ adaptive\.start 0, adaptive\.end 0 \}",
)
_NO_STATE = rf"pass on \{{ {_INTERFACE} {_INTERFACE} \}} no state"
_RULES = {
    "OpenBSD": (
        _NO_STATE,
        rf"pass out on {_INTERFACE} inet proto udp from {_NET4} to any nat-to {_NET4} port \d+:\d+",
        rf"pass in on {_INTERFACE} inet6 proto udp from {_NET6} to {_NET6} af-to inet from {_NET4}",
    ),
    "FreeBSD": (_NO_STATE, rf"pass out on {_INTERFACE} inet proto udp from {_NET4} to any keep state"),
}
_NAT = rf"nat on {_INTERFACE} inet proto udp from {_NET4} to any -> {_NET4} port \d+:\d+"


class Machine:
    """What the file says, written back when the command ends well."""

    def __init__(self) -> None:
        self.file = f"{HERE}/state"
        with open(self.file, "rb") as file:  # noqa: PTH123 - no pathlib, see above
            self.state: dict[str, Any] = marshal.load(file)  # noqa: S302 - our own

    def keep(self) -> None:
        """Write it back."""
        with open(self.file, "wb") as file:  # noqa: PTH123 - no pathlib, see above
            marshal.dump(self.state, file)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern describes all of a text."""
    import re  # noqa: PLC0415 - few commands need it

    return re.fullmatch(pattern, text) is not None


def say(line: object) -> None:
    """Print it; `print` is for nobody else here."""
    sys.stdout.write(f"{line}\n")


def die(what: str, status: int = 1) -> NoReturn:
    sys.stderr.write(what + "\n")
    sys.exit(status)


def pfctl(machine: Machine, arguments: list[str]) -> None:  # noqa: C901, PLR0912 - a case for each
    pf = machine.state["pf"]
    if machine.state["system"] == "FreeBSD" and "pf" not in machine.state["modules"]:
        die("pfctl: /dev/pf: No such file or directory")
    match [one for one in arguments if one != "-q"]:
        case ["-e"]:
            if pf["enabled"]:
                die("pfctl: pf already enabled")
            pf["enabled"] = True
        case ["-d"]:
            if not pf["enabled"]:
                die("pfctl: pf not enabled")
            pf["enabled"] = False
        case ["-F", "states"]:
            pf |= {"forgotten": pf["states"], "forgotten_at": time.time(), "states": 0}
        case ["-f", file]:
            pf |= _loaded(machine.state["system"], file)
        case ["-si"]:
            _status(pf)
        case ["-sm"]:
            for name, limit in (("states", pf["limit"]), ("src-nodes", 10000), ("frags", 65536), ("tables", 1000)):
                say(f"{name:<13} hard limit {limit:8}")
        case ["-st"]:
            for name, value in pf["timeouts"].items():
                say(f"{name:<20} {value:10}{' states' if name.startswith('adaptive') else 's'}")
        case ["-sr"]:
            say("\n".join(pf["rules"]))
        case ["-sn"] if machine.state["system"] == "FreeBSD":
            say("\n".join(pf["nat"]))
        case _:
            die(f"usage: pfctl [-deghNnPqrvz] ... (asked: {arguments})")


def _status(pf: dict[str, Any]) -> None:
    waiting = pf["forgotten"] if time.time() < pf["forgotten_at"] + pf["purge_seconds"] else 0
    status = f"Status: {'Enabled' if pf['enabled'] else 'Disabled'} for 0 days 00:00:09"
    say(f"{status:<44}{'Debug: err':>15}\n")
    say(f"{'State Table':<27} {'Total':>14} {'Rate':>16}")
    say(f"  {'current entries':<25} {pf['states'] + waiting:14} {'':>14}")
    say(f"  {'half-open tcp':<25} {0:14} {'':>14}")
    for name in ("searches", "inserts", "removals"):
        say(f"  {name:<25} {7:14} {0.1:14.1f}/s")
    say("Counters")
    for name in ("match", "fragment", "memory", "congestion", "state-mismatch", "state-insert", "state-limit"):
        say(f"  {name:<25} {pf['counters'].get(name, 0):14} {0.0:14.1f}/s")


def _loaded(system: str, path: str) -> dict[str, Any]:
    """What a file says (pf.conf(5)): options, translation (FreeBSD), rules; what it leaves out is default."""
    found: dict[str, Any] = {"rules": [], "nat": [], "skip": [], "limit": LIMIT, "timeouts": dict(TIMEOUTS)}
    order = 0
    with open(path) as file:  # noqa: PTH123 - no pathlib, see above
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        nat = system == "FreeBSD" and matches(_NAT, line)
        option = any(matches(one, line) for one in _OPTIONS)
        rule = any(matches(one, line) for one in _RULES[system])
        place = 1 if option else 2 if nat else 3
        if not (nat or option or rule) or place < order:
            die(f"{path}:{number}: syntax error\npfctl: Syntax error in config file: pf rules not loaded")
        order = place
        words = line.split()
        if rule or nat:
            found["rules" if rule else "nat"].append(line)
        elif words[1] == "skip":
            found["skip"].append(words[3])
        elif words[1] == "limit":
            found["limit"] = int(words[3])
        elif words[2] == "{":
            found["timeouts"] |= {"adaptive.start": 0, "adaptive.end": 0}
        else:
            found["timeouts"][words[2]] = int(words[3])
    return found


def ipfw(machine: Machine, arguments: list[str]) -> None:  # noqa: C901 - a case for each
    if "ipfw" not in machine.state["modules"]:
        die("ipfw: socket: Protocol not available", 71)
    rules, instances = machine.state["ipfw"]["rules"], machine.state["ipfw"]["instances"]
    match [one for one in arguments if one != "-q"]:
        case ["list", "1-4"]:
            if not any(str(number) in rules for number in range(1, 5)):
                die("ipfw: no rules found for range 1-4", 69)
            for number in sorted(rules, key=int):
                if 1 <= int(number) <= 4:
                    say(f"{int(number):05} {rules[number]}")
        case ["delete", *numbers]:
            missing = [number for number in numbers if rules.pop(number, None) is None]
            machine.keep()
            if missing:
                die(f"ipfw: rule {missing[0]}: setsockopt(IP_FW_DEL): Invalid argument", 69)
        case ["add", number, *body]:
            named = body[1] if body[0] == "nat64lsn" else None
            if named is not None and named not in instances:
                die(f"ipfw: getsockopt(IP_FW_XADD): No such process ({named})", 71)
            if not matches(
                r"(nat64lsn \w+|allow) (ip|ip4|ip6) from \S+ to \S+ (in recv|via) [a-z]+\d+", " ".join(body)
            ):
                die(f"ipfw: unrecognised option {body}", 64)
            rules[number] = " ".join(body)
        case ["nat64lsn", name, verb, *options] if "ipfw_nat64" in machine.state["modules"]:
            _nat64lsn(machine, name, verb, options)
        case _:
            die(f"ipfw: bad command {arguments}", 64)


def _nat64lsn(machine: Machine, name: str, verb: str, options: list[str]) -> None:
    instances = machine.state["ipfw"]["instances"]
    if verb != "create" and name not in instances:
        die(f"ipfw: nat64lsn {name}: No such process", 71)
    match [verb, *options]:
        case ["create", "prefix4", four, "prefix6", six, "states_chunks", chunks, "allow_private"]:
            if name in instances or not matches(r"[\d.]+/\d+", four) or not six.endswith("/96"):
                die("ipfw: nat64lsn instance creation failed: File exists", 71)
            instances[name] = {"four": four, "six": six, "chunks": chunks, "age": 120, "created": 0, "deleted": 0}
        case ["config", "udp_age", age]:
            instances[name]["age"] = int(age)
        case ["destroy"]:
            if any(f"nat64lsn {name} " in rule for rule in machine.state["ipfw"]["rules"].values()):
                die(f"ipfw: failed to destroy nat instance {name}: Device busy", 71)
            del instances[name]
        case ["show"]:
            one = instances[name]
            age = "" if one["age"] == 120 else f" udp_age {one['age']}"
            prefixes = f"prefix4 {one['four']} prefix6 {one['six']}"
            say(f"nat64lsn {name} {prefixes} states_chunks {one['chunks']}{age} allow_private")
        case ["stats"]:
            say(f"nat64lsn {name}")
            for number, what in (
                (5, "packets translated from IPv6 to IPv4"), (0, "packets discarded due to memory allocation problems"),
                (0, "packets discarded due to some errors"), (3, "job requests queue limit reached"),
                (1, "hosts allocated"),
                (0, "host requests failed"), (4, "portgroups allocated for UDP"), (0, "portgroup requests failed"),
                (instances[name]["created"], "states created"), (instances[name]["deleted"], "states deleted"),
            ):  # fmt: skip
                say(f"\t{number} {what}")
        case _:
            die(f"ipfw: nat64lsn: bad command {verb} {options}", 64)


def ifconfig(machine: Machine, arguments: list[str]) -> None:  # noqa: C901 - a case for each
    interfaces = machine.state["interfaces"]
    match arguments:
        case ["-a"]:
            for name in interfaces:
                _shown(name, interfaces[name])
        case [name, *_] if name not in interfaces:
            die(f"ifconfig: {name}: no such interface")
        case [name]:
            _shown(name, interfaces[name])
        case [name, "up" | "down" as wanted]:
            interfaces[name]["up"] = wanted == "up"
        case [name, "inet6", "-ifdisabled" | "ifdisabled" as wanted] if machine.state["system"] == "FreeBSD":
            interfaces[name]["disabled"] = wanted == "ifdisabled"
        case [name, "inet", address, "alias"] if matches(r"[\d.]+/\d+", address):
            interfaces[name]["inet"] = address.partition("/")[0]
        case [name, "inet6", address, "prefixlen", "64", "alias"] if not interfaces[name].get("disabled"):
            interfaces[name]["inet6"] = address
        case [name, "inet" | "inet6" as family, address, "delete"]:
            if interfaces[name].get(family) != address:
                die("ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address")
            del interfaces[name][family]
        case _:
            die(f"ifconfig: bad value {arguments}")


def _shown(name: str, one: dict[str, Any]) -> None:
    flags = "UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST" if one["up"] else "BROADCAST,SIMPLEX,MULTICAST"
    say(f"{name}: flags=8843<{flags}>{one.get('metric', '')} mtu {one.get('mtu', 1500)}")
    for line in one.get("lines", ()):
        say(f"\t{line}")
    if "inet" in one:
        say(f"\tinet {one['inet']} netmask 0xffffff00 broadcast 10.9.0.255")
    if "inet6" in one:
        say(f"\tinet6 fe80::1%{name} prefixlen 64 scopeid 0x1\n\tinet6 {one['inet6']} prefixlen 64")
    if "disabled" in one:
        say(f"\tnd6 options=29<PERFORMNUD,{'IFDISABLED,' if one['disabled'] else ''}AUTO_LINKLOCAL>")


def sysctl(machine: Machine, arguments: list[str]) -> None:
    known = machine.state["sysctl"]
    if "ipfw_nat64" in machine.state["modules"]:
        known.setdefault("net.inet.ip.fw.nat64_direct_output", "0")
    if arguments[0] == "-n":
        (name,) = arguments[1:]
        if name not in known:
            die(f"sysctl: unknown oid '{name}'")
        say(known[name])
        return
    for one in arguments:
        name, _, value = one.partition("=")
        if name not in known or not value.isdigit():
            die(f"sysctl: {one}: value is not available")
        say(f"{name}: {known[name]} -> {value}")
        known[name] = value


def modules(machine: Machine, program: str, arguments: list[str]) -> None:
    loaded = machine.state["modules"]
    match [program, *arguments]:
        case ["kldstat", "-q", "-m", name]:
            sys.exit(int(name not in loaded))
        case ["kldload", "pf" | "ipfw" | "ipfw_nat64" as name] if name not in loaded:
            if name == "ipfw" and machine.state.get("kenv") != "net.inet.ip.fw.default_to_accept=1":
                die("the machine refuses everything now, and you are locked out")
            loaded.append(name)
        case ["kldunload", name] if name in loaded:
            if name == "ipfw" and "ipfw_nat64" in loaded:
                die("kldunload: can't unload file: Device busy")
            loaded.remove(name)
            if name == "pf":
                machine.state["pf"] |= {"enabled": False, "rules": [], "nat": [], "limit": LIMIT, "timeouts": TIMEOUTS}
        case ["kenv", setting]:
            machine.state["kenv"] = setting
            say(setting.replace("=", '="') + '"')
        case _:
            die(f"{program}: {arguments}: not now")


def facts(machine: Machine, program: str, arguments: list[str]) -> None:
    match [program, *arguments]:
        case ["uname", "-s"]:
            say(machine.state["system"])
        case ["uname", "-r"]:
            say("7.6")
        case ["uname", "-sr"]:
            say(f"{machine.state['system']} 7.6")
        case ["id", "-u"]:
            say(0)
        case ["route", "-n", "get", "10.9.0.1" | "default"]:
            say("   route to: 10.9.0.1\ndestination: 10.9.0.0\n       mask: 255.255.255.0")
            say("  interface: em0\n if address: em0")
        case ["vmstat", "-s"]:
            say("     4096 bytes per page\n  2021131 pages managed\n   500000 pages free\n    12345 pages active")
            say("   100000 pages inactive\n        0 pages being paged out")
        case _:
            die(f"{program}: {arguments}: nobody taught me that")


def main() -> None:
    machine, name = Machine(), NAME
    of_name = {"pfctl": pfctl, "ipfw": ipfw, "ifconfig": ifconfig, "sysctl": sysctl}
    if name in of_name:
        of_name[name](machine, sys.argv[1:])
    elif name.startswith("k"):
        modules(machine, name, sys.argv[1:])
    else:
        facts(machine, name, sys.argv[1:])
    machine.keep()

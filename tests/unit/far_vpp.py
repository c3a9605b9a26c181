# SPDX-License-Identifier: Apache-2.0
"""Stands in for VPP, its two tools, `ip` and `ethtool`, under whose names it is called; see far_commands.py.

The process is a real one that listens on no socket: beside the name that it was told to listen on it keeps a file with
its number and all that it was told. It dies as the real one does when it is told to hold more sessions than fit.
"""

from __future__ import annotations

import marshal
import os
import sys
import time

# Each command is a process. Importing `json`, `re` and `pathlib` takes twice as long as the start of Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, NoReturn

HERE, _, NAME = sys.argv[0].rpartition("/")
#: From its start to the first answer; the real one takes 2.4 to 3.5 s.
READY_SECONDS = 0.4
_RINGS = r"cksum-gso-disable rx-size 2048 tx-size 2048( num-rx-queues \d+ num-tx-queues \d+)?"
_PLAIN = (
    rf"create host-interface v2 name \w+ hw-addr [0-9a-f:]{{17}} {_RINGS}",
    r"set interface state host-\w+ up",
    r"set interface ip address host-\w+ [0-9a-f.:]+/\d+",
)


def say(line: object) -> None:
    """Print it; `print` is for nobody else here."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def die(what: str, status: int = 1) -> NoReturn:
    sys.stderr.write(what + "\n")
    sys.exit(status)


def text_of(file: str) -> str:
    with open(file) as opened:  # noqa: PTH123 - no pathlib, see above
        return opened.read()


def kept(file: Path | str) -> dict[str, Any]:
    """What `keep` wrote."""
    with open(file, "rb") as opened:  # noqa: PTH123 - no pathlib, see above
        found: dict[str, Any] = marshal.load(opened)  # noqa: S302 - our own
        return found


def keep(file: Path | str, state: dict[str, Any]) -> None:
    """Write it down at once or not at all, for the process reads it all the time."""
    with open(f"{file}.new", "wb") as opened:  # noqa: PTH123 - no pathlib, see above
        marshal.dump(state, opened)
    os.replace(f"{file}.new", file)  # noqa: PTH105 - no pathlib, see above


def placed(text: str) -> dict[str, Any]:
    """The main thread's core, the workers' cores if they are named, and the number of workers; as vlib/threads.c."""
    import re  # noqa: PLC0415 - the process alone needs it

    words = dict(re.findall(r"(main-core|workers|corelist-workers) (\S+)", text))
    cores = [int(core) for core in words.get("corelist-workers", "").split(",") if core]
    if int(words["main-core"]) in cores or (cores and "workers" in words):
        die(f"vlib_thread_init: cpu {cores[0]} is not available to be used for the 'workers' thread")
    return {"main": int(words["main-core"]), "cores": cores, "workers": int(words.get("workers", len(cores)))}


def name_threads(workers: int) -> None:
    """Start this number of idle threads, and name them and this one as VPP does."""
    # The process alone needs them, not its tools.
    import ctypes  # noqa: PLC0415
    import threading  # noqa: PLC0415

    def named(name: str) -> None:
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME

    def work(number: int) -> None:
        named(f"vpp_wk_{number}")
        while True:
            time.sleep(60)

    for number in range(workers):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    named("vpp_main")


def vpp(arguments: list[str]) -> NoReturn:
    """Run until it is asked to end."""
    # The process alone needs them, not its tools.
    import re  # noqa: PLC0415
    import resource  # noqa: PLC0415
    import signal  # noqa: PLC0415

    if len(arguments) != 2 or arguments[0] != "-c":
        die("vpp: unknown input")
    text = text_of(arguments[1])
    told = dict(re.findall(r"^\s+(cli-listen|exec|socket-name|main-heap-size|prefix) (\S+)$", text, re.MULTILINE))
    threads = placed(text)
    if len(told) != 5 or "nodaemon" not in text or "plugin default { disable }" not in text:
        die(f"vpp: config: {told}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    say("vpp[1]: dpdk not loaded")
    time.sleep(READY_SECONDS)
    plugins = re.findall(r"plugin (\w+)_plugin.so \{ enable \}", text)
    if twice := [one for one in plugins if plugins.count(one) > 1]:
        die(f"config_one_plugin: plugin '{twice[0]}_plugin.so' already configured")
    state: dict[str, Any] = {
        "pid": os.getpid(),
        "plugins": plugins,
        "heap": int(told["main-heap-size"][:-1]),
        "sessions": 0,
        **threads,
    }
    name_threads(threads["workers"])
    for line in text_of(told["exec"]).splitlines():
        said = obey(state, line)
        if said:
            say(f"exec: {said}")
    keep(told["cli-listen"], state)
    with open(told["socket-name"], "w") as socket:  # noqa: PTH123 - no pathlib, see above
        socket.write(told["cli-listen"])
    while True:
        time.sleep(0.05)
        state = kept(told["cli-listen"])
        if state["limit"] > (state["heap"] - 120) * 2600:
            # What the real one writes (v26.10-rc0: vppinfra/unix-misc.c, vlib/unix/main.c).
            sys.stderr.write("Out-of-memory, calling os_panic().\nos_panic() called, aborting.\n")
            sys.stderr.write("received signal SIGABRT, PC 0x7fb6d90a9e3c\n")
            sys.stderr.write("Code:  41 89 c5\n#0  0x00007fb6d905afb2 gsignal + 0x12\n     from /lib/libc.so.6\n")
            sys.stderr.flush()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if os.environ.get("FAR_CORE"):
                with open("core.vpp", "w") as core:  # noqa: PTH123 - no pathlib, see above
                    core.write("a core dump")
            os.abort()


def _is_plain(line: str) -> bool:
    if not line.startswith(("create ", "set interface state ", "set interface ip ")):
        return False
    import re  # noqa: PLC0415 - few commands need it

    return any(re.fullmatch(one, line) for one in _PLAIN)


def obey(state: dict[str, Any], line: str) -> str:  # noqa: C901, PLR0911, PLR0912 - a case for each
    """One command of its command line; what it says."""
    if _is_plain(line):
        state.setdefault("interfaces", []).append(line)
        return ""
    match line.split():
        case ["nat44", "plugin", "enable", "sessions", number] if "nat" in state["plugins"]:
            state |= {"limit": int(number), "nat": "nat44"}
            state["timeouts"] = {"udp": 300, "tcp-established": 7440, "tcp-transitory": 240, "icmp": 60}
        case ["nat44", "add", "address", address]:
            state["pool"] = address
        case ["set", "interface", "nat44", "in", inside, "out", outside] if state.get("pool"):
            state["nat_interfaces"] = [f"{inside} in", f"{outside} out"]
        case ["show", "nat44" | "nat64" as which, "interfaces"]:
            shown = state.get("nat_interfaces", []) if state.get("nat") == which else []
            return "\n ".join([f"{which.upper()} interfaces:", *shown])
        case ["show", "nat44", "summary"]:
            return (
                f"max translations per thread: {state['limit']} fib 0"
                f"\ntotal sessions: {state['sessions']} (timed out: 0)"
                f"\ntcp sessions:\n    total: {state['sessions']} (timed out: 0)"
                f"\n        established: {state.get('open', 0)} (timed out: 0)"
                "\n        transitory: 0 (timed out: 0)\nudp sessions:\n    total: 0 (timed out: 0)"
            )
        case ["set", "nat44", "session", "limit", number]:
            state |= {"limit": int(number), "sessions": 0}
        case ["show", "nat", "timeouts"]:
            return "\n".join(f"{name} timeout: {seconds}sec" for name, seconds in state["timeouts"].items())
        case ["set", "nat", "timeout", *pairs] if set(pairs[::2]) <= set(state["timeouts"]):
            state["timeouts"] |= dict(zip(pairs[::2], map(int, pairs[1::2]), strict=True))
        case ["clear", "nat44", "ed", "sessions"]:
            state["sessions"] = 0
        case ["nat64", "plugin", "enable", "bib-buckets", bib, "bib-memory", _, "st-buckets", st, "st-memory", _] if (
            "nat64" in state["plugins"] and bib == st and state.get("nat") != "nat64"
        ):
            state |= {"nat": "nat64", "limit": int(st) * 10, "sessions": 0}
        case ["nat64", "plugin", "disable"] if state.get("nat") == "nat64":
            state |= {"nat": None, "nat_interfaces": [], "pool": None}
        case ["nat64", "add", "prefix", prefix]:
            state["prefix"] = prefix
        case ["nat64", "add", "pool", "address", address]:
            state["pool"] = address
        case ["set", "interface", "nat64", "in" | "out" as side, interface] if state.get("pool"):
            state.setdefault("nat_interfaces", []).append(f"{interface} {side}")
        case ["set", "interface", "mtu", "packet", mtu, interface] if interface.startswith("host-"):
            state["mtu"] = int(mtu)
        case ["exec", file]:
            return "\n".join(filter(None, (obey(state, one) for one in text_of(file).splitlines())))
        case ["show", "version"]:
            return "vpp v26.10-rc0~374-gb575ec2 built by root on here at 2026-11-01T00:00:00\n"
        case ["show", "errors"]:
            return (
                "   Count  Node  Reason  Severity\n    39999 nat44-ed-in2out-slowpath  maximum sessions exceeded  error"
                "\n       17 nat44-in2out-worker-handoff  congestion drop  error"
            )
        case _:
            return f"unknown input `{line}'"
    return ""


def _alive(file: str, program: str) -> dict[str, Any]:
    """What the process was told; there is none to answer when it is gone, though its socket is still there."""
    try:
        state = kept(file)
        os.kill(state["pid"], 0)
    except (OSError, EOFError, ValueError):
        die(f"{program}: connect: Connection refused")
    return state


def vppctl(arguments: list[str]) -> None:
    """One command."""
    if arguments[0] != "-s":
        die("usage: vppctl -s SOCKET COMMAND")
    file = arguments[1]
    state = _alive(file, "vppctl")
    said = obey(state, " ".join(arguments[2:]))
    if said:
        say(said)
    keep(file, state)


def vpp_get_stats(arguments: list[str]) -> None:
    """The number of sessions, as one thread's counter."""
    match arguments:
        case ["socket-name", file, "dump", "/nat44-ed/total-sessions" | "/nat64/total-sessions" as name]:
            state = _alive(text_of(file), "vpp_get_stats")
            if state["nat"] in name:
                # A counter of each thread; the main thread has none of the sessions if there are workers.
                workers = state["workers"]
                for thread in range(workers + 1):
                    worked = thread > 0 or not workers
                    share = (state["sessions"] + max(0, thread - 1)) // max(1, workers) if worked else 0
                    say(f"[{thread} @ 0]: {share} packets {name}")
        case _:
            die("usage: vpp_get_stats [socket-name <name>] [ls|dump|poll] <patterns> ...")


def taskset(arguments: list[str]) -> None:
    """Write down the core of a thread, which must be there."""
    match arguments:
        case ["-p", "-c", core, thread] if os.path.exists(f"/proc/{thread}/comm"):  # noqa: PTH110 - no pathlib
            with open(f"{HERE}/pinned", "a") as file:  # noqa: PTH123 - no pathlib, see above
                file.write(f"{text_of(f'/proc/{thread}/comm').strip()} {core}\n")
        case _:
            die(f"taskset: {arguments}: nobody taught me that")


def ip(arguments: list[str]) -> None:
    """Of two interfaces what is asked of them."""
    links = kept(f"{HERE}/links")
    match arguments:
        case ["-o", "link", "show", "dev", name]:
            ether = f"link/ether {links[name]['mac']} brd ff:ff:ff:ff:ff:ff"
            say(f"3: {name}: <BROADCAST,UP> mtu 1500 qdisc noqueue state UP \\    {ether}")
        case ["-o", "address", "show", "dev", name]:
            for one in links[name]["addresses"]:
                say(f"3: {name}    inet{'6' if ':' in one else ''} {one} scope global {name}\\       valid_lft forever")
            say(f"3: {name}    inet6 fe80::1/64 scope link \\       valid_lft forever preferred_lft forever")
        case ["address", "flush", "dev", name]:
            links[name]["addresses"] = []
        case ["address", "replace", one, "dev", name]:
            # The one of the link itself is there in any case.
            links[name]["addresses"] += [] if one == "fe80::1/64" else [one]
        case ["link", "set", "dev", name, "address", mac, "promisc", "on" | "off" as promisc]:
            links[name] |= {"mac": mac, "promisc": promisc}
        case _:
            die(f"ip: {arguments}: nobody taught me that")
    keep(f"{HERE}/links", links)


def main() -> None:
    if NAME != "ethtool":
        tools = {"vpp": vpp, "vppctl": vppctl, "vpp_get_stats": vpp_get_stats, "ip": ip, "taskset": taskset}
        tools[NAME](sys.argv[1:])

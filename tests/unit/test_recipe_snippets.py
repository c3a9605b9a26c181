# SPDX-License-Identifier: Apache-2.0
"""Snippets of our recipes, run by a shell next to programs that only write down how they were called."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.unit import listed

#: All that `natgauge gateways show --json` says of a recipe.
Recipe: TypeAlias = Mapping[str, Any]
#: What the lab gives to a device's snippets, as far as those below need it.
LAB = {
    "NG_NAME": f"unit-tests-{os.getpid()}",
    "NG_CPUS": "0,2",
    "NG_INSIDE": "inside",
    "NG_OUTSIDE": "outside",
    "NG_SOURCE_ADDRESSES": "4",
    "NG_INITIATOR_NETWORK4": "10.0.0.0/9",
    "NG_INITIATOR_NETWORK6": "2001:2::/64",
    "NG_RESPONDER_NETWORK4": "198.19.0.0/17",
    "NG_OUTSIDE_ADDRESS4": "198.19.0.1",
    "NG_OUTSIDE_PEER6": "2001:2:0:8000::2",
    "NG_NAT64_PREFIX": "2001:2:0:1::/96",
    "NG_ADDRESSES": "2001:2::1",
    "NG_ZONE_NAME": "test",
    "NG_ZONE": "zone",
}
#: Answers what recipes ask of interfaces, and writes down all else. A link of the name "softwire" is there while a file
#: of this name is.
IP = r"""#!/bin/sh
case "$*" in
"-o link show dev "*) printf '%s\n' '5: port: <UP> mtu 1500 state UP \    link/ether 02:00:00:00:00:05 brd ff' ;;
"-o address show dev "*) printf '%s\n' '5: port    inet 198.19.0.1/17 scope global port \       valid_lft forever' ;;
"link add softwire "*)
    [ ! -e "$NG_WORK/softwire" ] || exit 2
    : > "$NG_WORK/softwire" ;;
"link del softwire")
    [ -e "$NG_WORK/softwire" ] || exit 1
    rm "$NG_WORK/softwire" ;;
esac
echo "ip $*" >> "$NG_WORK/calls"
"""
#: Prints the limits of open files, and the capabilities as a decimal number.
LIMITS = "ulimit -S -n; ulimit -H -n; echo $((0x$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)))"
CAP_SYS_RESOURCE = 24
ETHTOOL = r"""#!/bin/sh
case "$1" in
-k) cat "$NG_WORK/features" ;;
*) echo "ethtool $*" >> "$NG_WORK/calls" ;;
esac
"""
#: What `ethtool -k` of Debian 12 prints.
FEATURES = """Features for port:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
\ttx-checksum-ip-generic: on
scatter-gather: on
tcp-segmentation-offload: on
\ttx-tcp-segmentation: on
generic-segmentation-offload: on
generic-receive-offload: off
large-receive-offload: off [fixed]
"""
CALLED = '#!/bin/sh\necho "${0##*/} $*" >> "$NG_WORK/calls"\n'


def load(name: str) -> Recipe:
    found: Recipe = listed.recipe(name)
    return found


class Place:
    """A device's private directory, and programs in front of those of this machine."""

    def __init__(self, folder: Path) -> None:
        self.work, self.programs = folder / "work", folder / "programs"
        self.work.mkdir()
        self.programs.mkdir()
        self.program("ip", IP)
        self.program("ethtool", ETHTOOL)
        for name in ("taskset", "ovsdb-tool", "setpriv"):
            self.program(name, CALLED)
        self.program("conntrackd", "#!/bin/sh\n")

    def program(self, name: str, text: str) -> None:
        file = self.programs / name
        file.write_text(text)
        file.chmod(0o755)

    def run(
        self, recipe: Recipe, snippet: str, variables: Mapping[str, str] | None = None, *, check: bool = True
    ) -> str:
        """Run a snippet as a device does; what it printed."""
        environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}", "NG_WORK": str(self.work), "LC_ALL": "C", **LAB,
            **recipe["environment"], **(variables or {}),
        }  # fmt: skip
        done = subprocess.run(
            ["sh", "-eu", "-c", snippet], env=environment, cwd=self.work, text=True, capture_output=True, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def start(self, recipe: Recipe) -> None:
        for snippet in recipe["verbs"]["start"]:
            self.run(recipe, snippet)

    def calls(self) -> list[str]:
        """Calls of programs so far, each with its arguments."""
        file = self.work / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def piece(recipe: Recipe, verb: str, part: str) -> str:
    """The one piece of a verb that has this text."""
    (found,) = [text for text in recipe["verbs"][verb] if part in text]
    return str(found)


# What a device of another machine has again afterwards.


@pytest.mark.parametrize("name", ["openvswitch-nat44", "vpp-nat44-ed"])
def test_off_loads_are_after_the_stop_what_they_were_before_the_first_start(name: str, place: Place) -> None:
    recipe = load(name)
    (place.work / "features").write_text(FEATURES)
    place.run(recipe, piece(recipe, "start", "TAKE_INTERFACE"))
    assert "ethtool -K outside tx off gso off tso off gro off" in place.calls()
    # An interrupted start is followed by another one, which finds what the first one has set.
    (place.work / "features").write_text(FEATURES.replace(": on", ": off"))
    place.run(recipe, piece(recipe, "start", "TAKE_INTERFACE"))
    place.run(recipe, piece(recipe, "stop", "GIVE_INTERFACE_BACK"))
    restored = [call for call in place.calls() if call.startswith("ethtool -K outside")][-1]
    assert restored == "ethtool -K outside tx on tso on gso on gro off"
    assert "ip link set dev outside address 02:00:00:00:00:05 promisc off" in place.calls()
    assert "ip address replace 198.19.0.1/17 dev outside" in place.calls()
    # A machine without ethtool gets its addresses back, too.
    (place.work / "calls").unlink()
    place.program("ethtool", "#!/bin/sh\nexit 127\n")
    place.run(recipe, piece(recipe, "start", "TAKE_INTERFACE"))
    place.run(recipe, piece(recipe, "stop", "GIVE_INTERFACE_BACK"))
    assert "ip address replace 198.19.0.1/17 dev outside" in place.calls()


def test_a_tunnel_that_was_left_behind_is_made_again_and_is_no_reason_for_another_kind(place: Place) -> None:
    recipe = load("ds-lite")["chain"][0]["recipe"]
    (place.work / "softwire").touch()
    place.run(recipe, piece(recipe, "start", "ip6tnl"))
    assert "ip link set softwire up" in place.calls()
    assert not [call for call in place.calls() if "seg6" in call]


# Logs


def test_a_message_of_vpp_that_the_kernel_refuses_is_counted_once(place: Place) -> None:
    """Seen: at the sending end, and once more at the other end of the pair of interfaces."""
    way = load("vpp-nat44-ed")["logging"]["syslog"]
    place.program("vppctl", "#!/bin/sh\nprintf '         4   host-vlog-tx   tx queue full   error\\n'\n")
    place.program("cat", '#!/bin/sh\ncase "$1" in */vlog/*/tx_dropped) echo 3 ;; *) echo 2 ;; esac\n')
    assert place.run(load("vpp-nat44-ed"), way["dropped"]) == "log_drops 7\n"


@pytest.mark.parametrize("way", ["session", "bib"])
def test_messages_that_the_kernel_overwrote_before_they_were_read_are_counted(way: str, place: Place) -> None:
    recipe = load("jool-nat64")
    log = place.work / recipe["logging"][way]["records"]
    log.write_text("")
    assert place.run(recipe, recipe["logging"][way]["dropped"]) == "log_drops 0\n"
    # A message can have further lines, which have no number.
    log.write_text("6,402,41,-;Jool\n4,403,52,-;usb 1-1\n SUBSYSTEM=usb,9\n6,407,60,-;Jool\n6,409,61,-;Jool\n")
    assert place.run(recipe, recipe["logging"][way]["dropped"]) == "log_drops 4\n"


@pytest.mark.parametrize("way", ["session", "bib"])
def test_jool_does_not_log_to_the_console_as_well(way: str, place: Place) -> None:
    recipe = load("jool-nat64")
    start = recipe["logging"][way]["start"]
    place.program("jool", CALLED)
    place.program("cut", "#!/bin/sh\necho 7\n")
    said = place.run(recipe, f"( {start} ) 2>&1 || echo refused", check=False)
    assert said.endswith("run there: sysctl kernel.printk=6\nrefused\n")
    assert place.calls() == []
    place.program("cut", "#!/bin/sh\necho 6\n")
    place.run(recipe, start)
    assert place.calls() == [f"jool global update logging-{way} true"]


SOCKETS = r"""#!/bin/sh
printf '%s\n' 'Total: 19923' 'TCP:   64 (estab 0, closed 64, orphaned 0, timewait 0)' ''
printf '%s\n' 'Transport Total IP IPv6' 'RAW 0 0 0' 'UDP 19857 19857 0' 'TCP 0 0 0' 'INET 19857 19857 0'
"""
COUNT = '#!/bin/sh\ncase "$1" in *_count) echo 20000 ;; *) echo 42 ;; esac\n'


@pytest.mark.parametrize("name", ["pasta-nat44", "slirp4netns-nat44", "gvproxy-nat44"])
@pytest.mark.parametrize(("most", "faults"), [("20000", "no_open_file 143"), ("20200", ""), ("unlimited", "")])
def test_connections_that_found_no_open_file_left_are_counted(name: str, most: str, faults: str, place: Place) -> None:
    """Seen: pasta had no sockets for 143 of 20,000 connections that the kernel's NAT44 in front had let through."""
    place.program("ss", SOCKETS)
    place.program("cat", COUNT)
    place.program("prlimit", f'#!/bin/sh\n[ "$2" = 42 ]\necho {most}\n')
    assert place.run(load(name), piece(load(name), "faults", "no_open_file")).strip() == faults


def test_a_user_space_nat_may_have_as_many_files_open_as_its_machine_allows(place: Place) -> None:
    start = piece(load("pasta-nat44"), "start", "ulimit")
    (line,) = (line for line in start.splitlines() if line.startswith("ulimit"))
    soft, hard, most = place.run(load("pasta-nat44"), f"ulimit -S -n 64; {line}; {LIMITS}").split()
    assert soft == hard
    may_raise = int(most) & 1 << CAP_SYS_RESOURCE
    assert not may_raise or hard == Path("/proc/sys/fs/nr_open").read_text().strip()


# Time-outs.


def test_open_vswitch_drops_and_counts_what_it_found_no_outside_port_for(place: Place) -> None:
    """Seen: it sent 1 % of 200,000 connections on untranslated, which was told as rules that nobody had written."""
    recipe = load("openvswitch-nat44")
    flows = [line for line in "\n".join(recipe["verbs"]["start"]).splitlines() if "table=1 " in line]
    (dropping,) = (line.split()[1] for line in flows if "-snat" in line and "drop" in line)
    assert all("+snat" in line for line in flows if "output" in line)
    # As ovs-ofctl writes the flows back.
    shown = f"n_packets=7, n_bytes=0, {dropping.replace('-snat+trk', '+trk-snat')},ip actions=drop"
    other = "n_packets=9, n_bytes=0, ct_state=-inv+trk+snat,ip actions=output:1"
    place.program("ovs-ofctl", f"#!/bin/sh\necho ' duration=4s, table=1, {shown}'\necho ' table=1, {other}'\n")
    place.program("ovs-appctl", "#!/bin/sh\n")
    assert place.run(recipe, piece(recipe, "faults", "ovs-ofctl")).split() == ["out_of_ports", "7"]


def test_open_vswitch_has_the_time_outs_that_it_has_by_itself(place: Place) -> None:
    recipe = load("openvswitch-nat44")
    place.run(recipe, piece(recipe, "start", "vswitchd.sh"))
    script = (place.work / "vswitchd.sh").read_text()
    assert "timeouts:udp_first=60 timeouts:udp_single=60 timeouts:udp_multiple=30" in script


@pytest.mark.parametrize(
    ("name", "program", "text"),
    [
        ("openvswitch-nat44", "ovs-vsctl", "Zone:0, Timeout Policies: udp_first=60 udp_multiple=30 udp_single=50"),
        ("freebsd-pf", "pfctl", "tcp.first 120s\nudp.first 60s\nudp.single 50s\nudp.multiple 30s\nicmp.first 20s"),
    ],
)
def test_the_time_out_of_frames_both_ways_is_read_last(name: str, program: str, text: str, place: Place) -> None:
    recipe = load(name)
    place.program(program, f"#!/bin/sh\ncat <<'SAID'\n{text}\nSAID\n")
    assert place.run(recipe, recipe["knobs"]["udp_timeout"]["read"]).split() == ["60", "50", "30"]


def test_both_time_outs_of_a_pair_are_read(place: Place) -> None:
    recipe = load("nftables-pair-nat44")
    (place.work / "a.pid").write_text("1\n")
    place.program("nsenter", '#!/bin/sh\nfor word; do echo "${word##*/}"; done\n')
    asked = place.run(recipe, recipe["knobs"]["udp_timeout"]["read"]).split()
    assert asked[-2:] == ["nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"]


@pytest.mark.parametrize(("name", "seconds"), [("pasta-nat44", 180), ("slirp4netns-nat44", 240), ("gvproxy-nat44", 90)])
def test_the_kernel_in_front_of_sockets_remembers_no_longer_than_they_live(name: str, seconds: int) -> None:
    knobs = load(name)["knobs"]
    assert {knob: knobs[knob]["maximum"] for knob in knobs if "time" in knob} == {
        "timeouts": seconds,
        "udp_timeout": seconds,
    }


@pytest.mark.parametrize(("transport", "seconds"), [("udp", 300), ("icmp", 60), ("tcp", 7440)])
def test_a_time_out_that_cannot_be_set_is_known(transport: str, seconds: int, place: Place) -> None:
    recipe = load("vpp-nat64")
    knob = recipe["knobs"]["udp_timeout"]
    assert not knob.get("write")
    knob = {"udp": knob, **knob["snippets_of"]}[transport]
    assert (knob.get("write"), knob["paths"] if transport == "udp" else []) == (None, [])
    assert int(place.run(recipe, knob["read"])) == seconds


# Cores.


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("cgn-port-blocks", "conntrack-events"),
        ("cgn-port-blocks", "nflog-ulogd"),
        ("cgn-port-blocks", "nfct-ulogd"),
        ("cgn-port-blocks", "nfct-syslog"),
        ("cgn-port-blocks", "given-blocks"),
        ("jool-nat64", "session"),
        ("jool-nat64", "bib"),
    ],
)
def test_what_writes_a_log_runs_on_the_devices_cores_or_on_those_that_it_is_given(
    name: str, way: str, place: Place
) -> None:
    recipe = load(name)
    (process,) = recipe["logging"][way]["process"]
    assert "taskset" in [program for need in recipe["logging"][way]["needs"] for program in need["programs"]]
    # A way may send its program's output, and so that of this one, to a file.
    place.program("taskset", '#!/bin/sh\necho "$2" > "$NG_WORK/cores"\n')
    for variables, cores in (({}, "0,2"), ({"NG_LOG_CPUS": "0,1,2,3"}, "0,1,2,3")):
        place.run(recipe, f"exec {process['command'].strip()}", variables)
        assert (place.work / "cores").read_text() == f"{cores}\n"


def test_both_daemons_of_a_pair_run_on_the_devices_cores_and_have_room_for_twice_the_table(place: Place) -> None:
    recipe = load("conntrackd-pair-nat44")
    place.run(recipe, piece(recipe, "start", "synchronise.sh"))
    (place.work / "most").write_text("3000000\n")
    for gateway in "ab":
        (place.work / f"{gateway}.pid").write_text("7\n")
    script = (place.work / "synchronise.sh").read_text()
    assert "/proc/sys/net/netfilter/nf_conntrack_max" in script
    place.run(recipe, script.replace("/proc/sys/net/netfilter/nf_conntrack_max", "most") + "\nwait\n")
    assert "HashLimit 6000000" in (place.work / "a.conf").read_text()
    assert "HashLimit 6000000" in (place.work / "b.conf").read_text()
    assert len([call for call in place.calls() if "taskset -c 0,2 conntrackd" in call]) == 2


@pytest.mark.parametrize(("program", "line"), [("Error: invalid value for workers on line", "workers 2"), ("", None)])
def test_a_tayga_that_knows_workers_gets_one_for_each_core_of_the_device(
    program: str, line: str | None, place: Place
) -> None:
    recipe = load("tayga-own-nat64")
    place.program("tayga-own", f"#!/bin/sh\n# {program}\n")
    # There is no interface to set up after this.
    place.run(recipe, piece(recipe, "start", "--mktun"), check=False)
    lines = (place.work / "tayga.conf").read_text().splitlines()
    assert [each for each in lines if each.startswith("workers")] == ([] if line is None else [line])


@pytest.fixture
def many_threads() -> Iterator[None]:
    """This process has more threads than cores."""
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range((os.cpu_count() or 1) + 2)]
    for thread in threads:
        thread.start()
    yield
    end.set()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("many_threads")
def test_the_cores_of_a_tayga_with_many_threads_are_those_that_it_may_use(place: Place) -> None:
    recipe = load("tayga-own-nat64")
    (place.work / "tayga.pid").write_text(f"{os.getpid()}\n")
    allowed, threads = os.sched_getaffinity(0), list(Path(f"/proc/{os.getpid()}/task").iterdir())
    assert int(place.run(recipe, recipe["knobs"]["cores"]["read"])) == min(len(allowed), len(threads))


def test_what_recipes_declare_of_themselves() -> None:
    # Connections of a flow table may be counted until its collector has run.
    assert load("nftables-flowtable-nat44")["limits"]["count_lag"] == 3
    assert load("nftables-nat44")["limits"]["count_lag"] == 0
    # A connection of a pair has an entry in each of both tables.
    assert load("conntrackd-pair-nat44")["limits"]["entries_per_connection"] == 2
    # A program that only instructs the kernel makes no gateway of processes.
    for name, works in (("miniupnpd-nat44", False), ("openvswitch-nat44", True)):
        recipe = load(name)
        assert recipe["process"]
        assert {one["handles_frames"] for one in recipe["process"]} == {works}
        assert (recipe["knobs"]["cores"]["scope"] == "device") == works


# DNS servers.


def test_dns64_servers_have_caches_and_queries_at_once_alike(place: Place) -> None:
    expected: dict[str, tuple[Callable[[Recipe], str], list[str]]] = {
        "unbound-dns64": (
            lambda _: (place.work / "unbound.conf").read_text(),
            ["num-queries-per-thread: 4096\n", "msg-cache-size: 128m\n", "rrset-cache-size: 128m\n"],
        ),
        "bind9-dns64": (
            lambda _: (place.work / "named.conf").read_text(),
            ["recursive-clients 8192;", "max-cache-size 256M;"],
        ),
        "knot-resolver-dns64": (lambda _: (place.work / "kresd.conf").read_text(), ["cache.size = 256 * MB"]),
        "pdns-recursor-dns64": (
            lambda recipe: called(place, recipe),
            ["--threads=2 ", "--max-mthreads=4096 ", "--max-cache-entries=1000000 "],
        ),
    }
    for name, (text, settings) in expected.items():
        recipe = load(name)
        place.start(recipe)
        assert [setting for setting in settings if setting not in text(recipe)] == [], name


def called(place: Place, recipe: Recipe) -> str:
    """The command of the recipe's process, as `taskset` gets it."""
    (process,) = recipe["process"]
    place.run(recipe, f"exec {process['command'].strip()}")
    return place.calls()[-1]


def test_bind_prints_its_errors_and_no_other_messages(place: Place) -> None:
    recipe = load("bind9-dns64")
    place.start(recipe)
    text = (place.work / "named.conf").read_text()
    assert "channel errors { stderr; severity error; };" in text
    assert "category default { errors; };" in text
    # With -g it would ignore both.
    assert called(place, recipe).startswith("taskset -c 0,2 named -f -L /dev/stderr -n 2 -c ")


def test_knot_counts_what_is_read(place: Place) -> None:
    place.start(load("knot-dns"))
    text = (place.work / "knot.conf").read_text()
    counters = {name: state for name, _, state in (line.strip().partition(": ") for line in text.splitlines())}
    wanted = {"server-operation": "on", "response-code": "on"}
    off = {"request-protocol": "off", "request-bytes": "off", "response-bytes": "off"}
    assert {**wanted, **off}.items() <= counters.items()

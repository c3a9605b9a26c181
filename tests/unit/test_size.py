# SPDX-License-Identifier: Apache-2.0
"""Subscribers of a gateway, as `natgauge size` answers: arithmetic whose answer is known beforehand."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared
from tests.unit.made_results import kept, made
from tests.unit.pages import lines_of

from natgauge import Result
from natgauge.cli import run

CARRIED, NOT_CARRIED, REFUSED, UNKNOWN = 0, 1, 2, 5
ANSWERS = {CARRIED: "carries", NOT_CARRIED: "does not carry", UNKNOWN: "cannot tell"}
#: 84 octets with FCS are 66 of the packet: so many Mbit/s are a frame a second, and two.
ONE_FRAME, TWO_FRAMES = "--mbit-each 0.000528", "--mbit-each 0.001056"
#: A subscriber that opens a connection a second, ten of which are open.
OPENING = "--connections-each 10 --new-each 1"
BOTH: dict[str, Any] = {"directions": "both", "frame_octets": {"initiator": 84}}
PLAIN: dict[str, Any] = {"gateway": "linux-ipv4", "kind": "routing"}
MIX: dict[str, Any] = {
    "frame_sizes": "64:7,594:4,1518:1",
    "mean_frame_octets": {way: {"initiator": 361.8, "responder": 361.8} for way in ("up", "down")},
}
EXTERNAL: dict[str, Any] = {"placement": "external", "lab_kind": "wire"}
LOGGED: dict[str, Any] = {"logging": "nfct-syslog", "log_tolerance": 0.0}
#: Port blocks as those of cgn-port-blocks and cgn-deterministic, and the sets of map-e.
ON_DEMAND: dict[str, Any] = {"port_blocks": {"size": 128, "each": 2, "counts_connections": True}}
ODD: dict[str, Any] = {"port_blocks": {"size": 500, "each": 2, "counts_connections": True}}
COMPUTED: dict[str, Any] = {"port_blocks": {"size": 1008, "deterministic": True}}
SETS: dict[str, Any] = {"kind": "map-e", "port_blocks": {"size": 2048, "first_port": 2048}}
#: Sets of a result of an earlier version.
OLD_SETS: dict[str, Any] = {"kind": "map-e", "psid_length": 5}


def opened(*values: float, doubts: Sequence[str] = (), limited_by: str = "device", **parameters: Any) -> Result:
    """A rate of new connections; of one value, two repetitions."""
    of: dict[str, Any] = {"metric": "connection-rate", "unit": "connections/s", "limited_by": limited_by}
    every = values if len(values) > 1 else values * 2
    return made(every, doubts=[doubt(word) for word in doubts], parameters=parameters, **of)


def held(value: float, limited_by: str = "table", **more: Any) -> Result:
    """A capacity of the table; parameters by name."""
    doubts = more.pop("doubts", [])
    of: dict[str, Any] = {"metric": "table-capacity", "unit": "connections", "limited_by": limited_by}
    return made([value] * 2, doubts=doubts, parameters=more, **of)


def collapsed(result: Result) -> Result:
    repetitions = [{**one, "trials": {"COLLAPSED": 1}} for one in result.document()["repetitions"]]
    return Result.from_document({**result.document(), "trials": {"COLLAPSED": 2}, "repetitions": repetitions})


def sent(value: float = 10_000.0, **parameters: Any) -> Result:
    """A throughput, of as many frames of 84 octets from each side unless `parameters` say otherwise."""
    return made([value] * 2, parameters=BOTH | parameters)


def in_table(connections: int, rate: float = 10_000.0, size: int = 84, **parameters: Any) -> Result:
    """A throughput with so many connections in the table."""
    return sent(rate, frame_octets={"initiator": size}, connections=connections, **parameters)


def doubt(word: str) -> dict[str, str]:
    return {"word": word, "text": "x", "grade": "answer"}


NEW, OPEN, FRAMES = opened(1000.0), held(50_000.0), sent()
NEW_OF_PLAIN, FRAMES_OF_PLAIN = opened(1000.0, **PLAIN), sent(**PLAIN)


@dataclass(frozen=True, slots=True)
class Said:
    """What `natgauge size` says, as text and as a document."""

    status: int
    text: str
    document: dict[str, Any]
    err: str

    @property
    def gateways(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["gateways"]
        return found

    def ends(self, ended: str) -> list[float | None]:
        """The numbers of subscribers that reach this limit of the first gateway."""
        (found,) = (limit["subscribers"] for limit in self.gateways[0]["limits"] if limit["ended"] == ended)
        return list(found)


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions about these results."""

    said: Callable[..., Said]
    status: Callable[..., int]


@pytest.fixture
def size(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Asking:
    folders: list[tuple[Sequence[Result], Path]] = []

    def words_of(results: Sequence[Result], number: int, options: str) -> list[str]:
        folder = next((path for given, path in folders if given is results), None)
        if folder is None:
            folder = kept(tmp_path / str(len(folders)), *results)
            folders.append((results, folder))
        return ["size", str(folder), "--subscribers", str(number), *options.split()]

    def said(results: Sequence[Result], number: int, options: str, columns: int = 200) -> Said:
        monkeypatch.setenv("COLUMNS", str(columns))
        words = words_of(results, number, options)
        status = run(words)
        shown = capsys.readouterr()
        if status == REFUSED:
            return Said(status, shown.out, {}, shown.err)
        assert run([*words, "--json"]) == status
        return Said(status, shown.out, json.loads(capsys.readouterr().out), shown.err)

    return Asking(said, lambda *asked: run(words_of(*asked)))


@dataclass(frozen=True, slots=True)
class Case:
    """Results, what a subscriber takes, and what is answered of numbers of subscribers.

    Attributes:
        statuses: exit status by the number of subscribers; the answer to the first number is stored.
        ends: of the first number, subscribers that reach each limit, in the order of the limits.
        gateway: of the first number, members of the document of the only gateway.
        whole: whether all that is printed is stored.
    """

    results: Sequence[Result]
    asked: str
    statuses: Mapping[int, int]
    ends: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)
    gateway: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False


def alike(number: float) -> tuple[float, float]:
    return number, number


EVERY: dict[str, Case] = {
    "the limit that comes first is the least: new connections": Case(
        [NEW, OPEN, FRAMES], f"--new-each 1 {TWO_FRAMES}", {800: 0, 1001: 1},
        {"new connections": alike(1000), "frames": (5000, 10_000)}, {"not_looked_at": ["open connections"]},
    ),
    "the limit that comes first is the least: frames": Case(
        [NEW, OPEN, FRAMES], f"--new-each 0.1 {TWO_FRAMES}", {2400: 0, 5001: 5, 10_001: 1},
        {"frames": (5000, 10_000), "new connections": alike(10_000)},
    ),
    "the limit that comes first is the least: open connections": Case(
        [NEW, OPEN, FRAMES], "--connections-each 6 --new-each 0.1 --device-timeout 60", {8300: 0, 8334: 1},
        {"open connections": alike(50_000 / 6), "new connections": alike(10_000)},
    ),
    "the limit that comes first is the least: open connections before ports": Case(
        [NEW, OPEN, FRAMES], "--connections-each 6 --outside-addresses 1", {10_000: 1},
        {"open connections": alike(50_000 / 6), "outside ports": alike(64_512 / 6)}, {"entries_each": 6},
    ),
    "the other direction has anything between no frame and as many": Case(
        [FRAMES], TWO_FRAMES, {5000: 0, 5001: 5, 10_000: 5, 10_001: 1}, {"frames": (5000, 10_000)},
    ),
    "of frames in one direction half are known": Case(
        [sent(directions="up")], TWO_FRAMES, {2500: 0, 2501: 5, 5000: 5, 5001: 1}, {"frames": (2500, 5000)},
    ),
    "unequal directions say as much as all frames together": Case(
        [made([10_000.0] * 3, parameters={"directions": "both", "down_share": 0.8, "frame_size": 84})], ONE_FRAME,
        {1: 0}, {"frames": (10_000, 20_000)}, whole=True,
    ),
    "what is below each limit may need more together than the cores have": Case(
        [NEW, OPEN, FRAMES], f"--connections-each 2 --new-each 1 {TWO_FRAMES} --device-timeout 2",
        {900: 5, 830: 0, 1001: 1},
        {"new connections": alike(1000), "frames": (5000, 10_000), "open connections": alike(25_000)}, whole=True,
    ),
    "one limit of cores alone needs no more": Case([NEW], "--new-each 1", {1000: 0, 1001: 1}),
    "ports of outside addresses are a limit of what translates ports": Case(
        [OPEN], "--connections-each 10 --outside-addresses 2", {20_000: 1},
        {"open connections": alike(5000), "outside ports": alike(2 * 64_512 / 10)}, {"least_outside_addresses": 4},
    ),
    "ports are no limit of what keeps them": Case(
        [held(50_000.0, kind="routing", emptying="default"), sent(kind="routing")],
        f"--connections-each 10 {ONE_FRAME}", {20_000: 1},
        {"open connections": alike(5000), "frames": (10_000, 20_000)}, {"least_outside_addresses": None},
    ),
    "a subscriber fills the table for a time-out as subscribers say it": Case(
        [OPEN, NEW, made([500.0], metric="subscribers", unit="subscribers", parameters={"forgets_after_seconds": 120})],
        OPENING, {400: 0, 417: 1}, gateway={"entries_each": 120, "least_outside_addresses": 1},
    ),
    "a subscriber fills the table for a time-out as it was before it was raised": Case(
        [OPEN, NEW, opened(1000.0, own_udp_timeout=120)], OPENING, {400: 0, 417: 1}, gateway={"entries_each": 120},
    ),
    "a subscriber fills the table for a time-out as it was stated": Case(
        [OPEN, NEW, made([1000.0], metric="latency", unit="us", parameters={"device_timeout": 120})],
        f"{OPENING} --outside-addresses 9", {5000: 1, 400: 0},
        {"open connections": alike(50_000 / 120), "new connections": alike(1000),
         "outside ports": alike(9 * 64_512 / 120)},
        {"entries_each": 120, "least_outside_addresses": math.ceil(5000 * 120 / 64_512)},
    ),
    "a time-out that is given counts": Case(
        [OPEN, NEW, opened(1000.0, own_udp_timeout=120)], f"{OPENING} --device-timeout 5", {400: 0},
        gateway={"entries_each": 10},
    ),
    "without a time-out nobody can tell how much of the table is filled": Case(
        [OPEN, NEW], OPENING, {400: 5, 1: 5, 5001: 1}, {"new connections": alike(1000), "open connections": (0, 5000)},
        whole=True,
    ),
    "without a time-out nobody can tell how many ports are taken": Case(
        [OPEN, NEW], f"{OPENING} --outside-addresses 100", {400: 5},
        {"new connections": alike(1000), "open connections": (0, 5000), "outside ports": (0, 645_120)},
    ),
    "where nothing is opened no time-out is needed": Case([OPEN, NEW], "--connections-each 10", {400: 0}),
    "a table that was not looked at is named": Case(
        [NEW], "--new-each 1", {400: 0}, gateway={"not_looked_at": ["open connections"]}, whole=True,
    ),
    "a table that was not looked at is named beside frames": Case(
        [NEW, FRAMES], f"--new-each 0.1 {ONE_FRAME}", {400: 0}, gateway={"not_looked_at": ["open connections"]},
    ),
    "a table is looked at where open connections are asked": Case(
        [NEW], "--new-each 1 --connections-each 1", {400: 5, 10**9: 1},
        gateway={"not_looked_at": [], "missing": ["open connections"]},
    ),
    "a table is looked at where a time-out is given": Case(
        [NEW], "--new-each 1 --device-timeout 1", {400: 5},
        gateway={"not_looked_at": [], "missing": ["open connections"]},
    ),
    "a table is looked at where a time-out is known": Case(
        [opened(1000.0, own_udp_timeout=120)], "--new-each 1", {400: 5}, gateway={"not_looked_at": []},
    ),
    "a table is full where nothing is opened": Case(
        [OPEN], "--connections-each 1", {400: 0}, gateway={"not_looked_at": []},
    ),
    "there is no table to look at where no connections are kept": Case(
        [NEW_OF_PLAIN, FRAMES_OF_PLAIN], f"--new-each 1 {ONE_FRAME}", {400: 0}, gateway={"not_looked_at": []},
    ),
    "a limit of the table divided by 1.1 has no digit of floats": Case(
        [opened(1000.0, table_size=33, **EXTERNAL)], "--new-each 1.1 --device-timeout 1", {30: 5, 31: 1},
        {"open connections": (0, 30), "new connections": alike(1000 / 1.1)},
    ),
    "0.1 times 3 has no digit of floats": Case(
        [NEW], "--new-each 0.1 --device-timeout 3 --connections-each 0.1", {3: 5}, gateway={"entries_each": 0.3},
    ),
    "1.1 times 10 has no digit of floats": Case(
        [NEW], "--new-each 1.1 --device-timeout 1", {10: 5},
        gateway={"commands": ["natgauge measure table-capacity --gateway x --connections 11"]}, whole=True,
    ),
    "new connections fill a table of which nothing else is asked": Case(
        [OPEN, NEW], "--new-each 1 --device-timeout 120", {416: 0, 417: 1},
    ),
    "a limit of the table that was raised ends it as it was before": Case(
        [opened(1000.0, table_size=60_000, of_host={"table_size": 48_000})], f"{OPENING} --device-timeout 120",
        {401: 1, 400: 5}, gateway={"missing": ["open connections"]}, whole=True,
    ),
    "a limit of the table that was stated ends it": Case(
        [opened(1000.0, table_size=48_000, **EXTERNAL)], f"{OPENING} --device-timeout 120", {401: 1, 400: 5},
        gateway={"missing": ["open connections"]}, whole=True,
    ),
    "a limit of the table that natgauge made ends nothing": Case(
        [opened(1000.0, table_size=48_000)], f"{OPENING} --device-timeout 120", {401: 5, 400: 5},
        gateway={"missing": ["open connections"], "table_limit": None}, whole=True,
    ),
    "a capacity that ranges ended is at most the limit": Case(
        [held(100_000.0, "ranges", doubts=[doubt("range limited")], table_size=262_144)], "--connections-each 120",
        {5000: 1, 833: 0, 834: 5, 2184: 5, 2185: 1},
        gateway={
            "commands": ["natgauge measure table-capacity --gateway x --connections 600000 --table-size 660000"],
        }, whole=True,
    ),
    "a capacity that ranges ended is measured again within the limit": Case(
        [held(100_000.0, "ranges", doubts=[doubt("range limited")], table_size=262_144)], "--connections-each 120",
        {1000: 5}, gateway={"commands": ["natgauge measure table-capacity --gateway x --connections 120000"]},
    ),
    "a capacity that ranges ended is enough for fewer": Case(
        [held(100_000.0, "ranges", doubts=[doubt("range limited")], table_size=262_144)], "--connections-each 120",
        {100: 0}, gateway={"commands": []}, whole=True,
    ),
    "the table of a measured capacity is the one that it was measured with": Case(
        [sent(table_size=262_144, of_host={"table_size": 262_144}), held(1_900_000.0, table_size=2_000_000)],
        f"--connections-each 60 {ONE_FRAME}", {1: 0}, gateway={"table_limit": 2_000_000},
    ),
    "where nothing passed no subscriber is carried": Case([opened(0.0, 0.0, 0.0)], "--new-each 1", {10: 1}),
    "one of what subscribers take is singular": Case(
        [NEW, held(1.0)], "--connections-each 1 --new-each 1 --device-timeout 1", {1: 0}, whole=True,
    ),
    "cores that are needed are a multiple of those that were measured": Case(
        [sent(device_cores=2)], TWO_FRAMES, {26_000: 1}, {"frames": (5000, 10_000)},
        {"cores": [6, 11], "cores_both_ways_busy": [11, 11], "cores_one_way_idle": [6, 11]}, whole=True,
    ),
    "the larger need is that of the cores": Case(
        [opened(1000.0, device_cores=1)], "--new-each 1 --device-timeout 1", {3500: 1}, gateway={"cores": [4, 4]},
    ),
    "cores are no more than those of both needs": Case(
        # Frames need 0.35 to 0.7 of what new connections need: alone, or beside them.
        [opened(1000.0, device_cores=1), sent(device_cores=1)], f"--new-each 1 {TWO_FRAMES} --device-timeout 1",
        {3500: 1}, gateway={"cores": [4, 5]},
    ),
    "without frames the most cores are not known": Case(
        [opened(1000.0, device_cores=1)], f"--new-each 1 {TWO_FRAMES} --device-timeout 1", {3500: 1},
        gateway={"cores": [4, None]},
    ),
    "a lower bound never says that subscribers are too many": Case(
        [opened(1000.0, limited_by="tester")], "--new-each 1", {10**6: 5, 1000: 0},
    ),
    "what a rule refuses fewer hosts is no full table": Case(
        [held(500.0, "device", source_address_count=1)], "--connections-each 5", {101: 5, 100: 0}, whole=True,
    ),
    "of fewer hosts and more, those of more count": Case(
        [held(2000.0, "device", source_address_count=4), held(500.0, "device", source_address_count=1)],
        "--connections-each 5", {101: 0, 500: 5},
    ),
    "what as many hosts reach ends subscribers": Case(
        [held(500.0, "device", source_address_count=101)], "--connections-each 5", {101: 1, 100: 0},
    ),
    "a full table ends subscribers": Case(
        [held(500.0, "table", source_address_count=1)], "--connections-each 5", {101: 1}, whole=True,
    ),
    "a capacity with a collapse is in doubt": Case(
        [collapsed(held(500.0, "device", source_address_count=1))], "--connections-each 5", {101: 5},
    ),
    **{
        f"a doubt leaves an end: {word}": Case(
            [opened(1000.0, doubts=[word])], "--new-each 1", {2000: above, 900: low}, whole=True,
        )
        for word, low, above in (
            ("one address pair", 0, 5), ("table not emptied", 0, 5), ("flow control", 5, 1), ("unreliable", 5, 5),
        )
    },
    "a log that lacked connections is no full table": Case(
        [held(500.0, "log", **LOGGED)], "--connections-each 5", {101: 5, 100: 0}, whole=True,
    ),
    "a capacity that its log ended says nothing beside one of a full table": Case(
        [held(500.0, "log", **LOGGED), held(2000.0, **LOGGED)], "--connections-each 5", {300: 0},
        {"open connections": alike(400)},
    ),
    "a capacity that its log ended counts where only fewer hosts are beside it": Case(
        [held(1000.0, "log", source_address_count=100, **LOGGED), held(500.0, "device", **LOGGED)],
        "--connections-each 5", {300: 5}, {"open connections": (200, None)},
    ),
    "a rate that the log ended names the log as what to change": Case(
        [opened(1000.0, limited_by="log", **LOGGED)], "--new-each 1", {2000: 1}, whole=True,
    ),
    "a command has the log": Case(
        [opened(2000.0, logging="nfct-ulogd", log_tolerance=0.01)], "--new-each 1 --connections-each 1", {10: 5},
        gateway={
            "commands": [
                "natgauge measure table-capacity --gateway x --logging nfct-ulogd --log-tolerance 0.01 --connections 10"
            ],
            "logging": "nfct-ulogd", "log_tolerance": 0.01,
        },
    ),
    "a command has the log without a tolerance": Case(
        [opened(2000.0, logging="nfct-ulogd", log_tolerance=0.0)], "--new-each 1 --connections-each 1", {10: 5},
        gateway={
            "commands": ["natgauge measure table-capacity --gateway x --logging nfct-ulogd --connections 10"],
        },
    ),
    "what a limit was measured with is named where it is unusual": Case(
        [opened(1000.0, transport="tcp"), held(50_000.0, transport="tcp", state="half-open"),
         sent(loss_tolerance=0.1)],
        f"--connections-each 1 --new-each 0.001 {ONE_FRAME}", {1: 5}, whole=True,
    ),
    "frames of MLRsearch are named": Case(
        [NEW, OPEN, sent(search="mlrsearch", goals="ndr-pdr", trial_seconds=1.0)],
        f"--connections-each 1 --new-each 0.001 {ONE_FRAME}", {1: 5}, whole=True,
    ),
    "a number of cores that is not known is not said to be 0": Case(
        [opened(1000.0, **EXTERNAL)], "--new-each 1", {1: 0}, gateway={"device_cores": None, "cores": None},
    ),
    "a gateway that keeps no connections is limited by none": Case(
        [FRAMES_OF_PLAIN, NEW_OF_PLAIN], f"--connections-each 60 --new-each 0.5 {TWO_FRAMES}", {4000: 0},
        gateway={"missing": [], "no_limit": ["new connections", "open connections"], "commands": []}, whole=True,
    ),
    "frames that drew their four tuples are no connections": Case(
        [opened(1000.0, order="with-replacement"), OPEN], "--new-each 1 --connections-each 1", {1: 5},
        gateway={"missing": ["new connections"]}, whole=True,
    ),
    "a measured number of subscribers is the answer for its own profile": Case(
        [NEW, made([500.0], metric="subscribers", unit="subscribers")], "--new-each 1", {100: 0}, whole=True,
    ),
    "octets of tagged frames are without the tags": Case(
        [sent(5000.0, directions="up", frame_octets={"initiator": 68, "responder": 64}, initiator_vlan="100")],
        ONE_FRAME, {1: 0},
        # 64 octets without the tag have 46 of the packet.
        {"frames": (2500 * 46 / 66, 5000 * 46 / 66)}, whole=True,
    ),
    "octets of a tagged mix are with the tags": Case(
        [made([5000.0] * 2, parameters={
            "directions": "up", "frame_sizes": "68:7,598:4,1522:1", "initiator_vlan": "100",
            "mean_frame_octets": {"up": {"initiator": 365.8, "responder": 361.8}},
        })],
        ONE_FRAME, {1: 0}, whole=True,
    ),
    "addresses times blocks": Case(
        [held(1e6, **ON_DEMAND)], "--connections-each 60", {504: 0, 505: 1},
        {"port blocks": alike(504), "open connections": alike(1e6 / 60)}, {"least_outside_addresses": 1},
    ),
    "as many connections as a block has ports": Case(
        [held(1e6, **ON_DEMAND)], "--connections-each 128", {504: 0, 505: 1},
    ),
    "more connections than a block has ports": Case(
        [held(1e6, **ON_DEMAND)], "--connections-each 129", {252: 0, 253: 1},
    ),
    "as many connections as two blocks have ports": Case(
        [held(1e6, **ON_DEMAND)], "--connections-each 256", {252: 0, 253: 1},
    ),
    "addresses of the result": Case(
        [held(1e6, outside_addresses=4, **ON_DEMAND)], "--connections-each 60", {2016: 0, 2017: 1},
    ),
    "addresses of the question": Case(
        [held(1e6, outside_addresses=2, **ON_DEMAND)], "--connections-each 60 --outside-addresses 4",
        {2016: 0, 2017: 1},
    ),
    # 129 blocks an address, and both blocks of a host are of one address (RFC 6888 REQ-2).
    "both blocks of one address": Case(
        [held(1e6, **ODD)], "--connections-each 600 --outside-addresses 2", {129: 1, 128: 0},
        {"port blocks": alike(128), "outside ports": alike(2 * 64_512 / 600), "open connections": alike(1e6 / 600)},
        {"least_outside_addresses": 3},
    ),
    "computed blocks": Case([held(1e6, **COMPUTED)], "--connections-each 1008", {64: 0, 65: 1}),
    "computed blocks of ten addresses": Case(
        [held(1e6, **COMPUTED)], "--connections-each 1008 --outside-addresses 10", {640: 0, 641: 1},
    ),
    "a limit of one block each is named with what to change": Case(
        [held(1e6, **ON_DEMAND)], "--connections-each 60", {600: 1}, gateway={"least_outside_addresses": 2}, whole=True,
    ),
    "a limit of two blocks each is named with what to change": Case(
        [held(1e6, **ON_DEMAND)], "--connections-each 200", {600: 1}, whole=True,
    ),
    "more connections than blocks have ports": Case(
        [held(1e6, **ON_DEMAND)], "--connections-each 257 --outside-addresses 1000", {1: 1},
        gateway={"least_outside_addresses": None}, whole=True,
    ),
    "connections to several endpoints may share ports of computed blocks": Case(
        [held(1e6, **COMPUTED)], "--connections-each 1009", {1: 5, 64: 5, 65: 1}, whole=True,
    ),
    "connections to several endpoints may share ports of four blocks": Case(
        [held(1e6, port_blocks={"size": 128, "each": 4})], "--connections-each 300",
        {169: 5, 168: 0, 504: 5, 505: 1},
    ),
    "blocks limit subscribers of whom only bits are asked": Case(
        [sent(1e6, **ON_DEMAND)], ONE_FRAME, {505: 1, 504: 0}, gateway={"least_outside_addresses": 2},
    ),
    "outside addresses limit what gives blocks where nothing of connections is asked": Case(
        [sent(1e6, **ON_DEMAND)], f"{ONE_FRAME} --outside-addresses 2", {505: 0, 1009: 1},
    ),
    **{
        f"a {limited_by} that ended a capacity says nothing of the table": Case(
            [held(30_240.0, limited_by, **ON_DEMAND)], "--connections-each 60", {504: 0, 505: 1},
            {"port blocks": alike(504), "open connections": (504, None)},
        )
        for limited_by in ("port pool", "port block")
    },
    **{
        f"of blocks whose number is not known only those of the hosts are sure: {name}": Case(
            [result], asked, {65: 5, 64: 0, 1000: 5},
        )
        for name, result, asked in (
            ("capacity", held(64_000.0, "port block", source_address_count=64), "--connections-each 1"),
            ("sets", sent(1e6, connections=64_000, source_address_count=64, **OLD_SETS), ONE_FRAME),
            ("shared addresses", sent(1e6, connections=64_000, source_address_count=64, **SETS), ONE_FRAME),
            (
                "of a later version",
                sent(1e6, connections=64_000, source_address_count=64, port_blocks={"of": "a later version"}),
                ONE_FRAME,
            ),
        )
    },
    "what fewer hosts kept is told once beside blocks whose number is not known": Case(
        [held(64_000.0, "device", kind="map-e", source_address_count=64)], "--connections-each 1000", {65: 5},
        whole=True,
    ),
    "hosts that fill the table for an unknown time are not sure to have blocks": Case(
        [sent(1e6, connections=64_000, source_address_count=64, **OLD_SETS), opened(1e6, **OLD_SETS)],
        f"{ONE_FRAME} --new-each 1", {64: 5},
    ),
    "a pool that ended a capacity is the limit of its ports and not of the table": Case(
        [held(1000.0, "port pool", outside_addresses=1)], "--connections-each 10", {101: 1, 100: 0},
        {"outside ports": alike(100), "open connections": (100, None)},
    ),
    "a pool of other addresses than are asked for says nothing of their ports": Case(
        [held(1000.0, "port pool", outside_addresses=1)], "--connections-each 10 --outside-addresses 2", {101: 5},
        {"open connections": (100, None), "outside ports": alike(2 * 64_512 / 10)},
    ),
    "addresses follow from connections": Case(
        [held(1e6)], "--connections-each 2000 --outside-addresses 2", {100: 1},
        {"outside ports": alike(64.512), "open connections": alike(500)}, {"least_outside_addresses": 4},
    ),
    "no number of addresses follows from sets whose size is not known": Case(
        [held(1e6, **OLD_SETS)], "--connections-each 2000", {100: 5}, {"open connections": alike(500),
         "port blocks": (0, None)}, {"least_outside_addresses": None}, whole=True,
    ),
    "no block is sure for more connections than hosts had": Case(
        [held(64_000.0, "port block", source_address_count=64)], "--connections-each 1001", {1: 5},
        {"open connections": (64_000 / 1001, None), "port blocks": (0, None)},
    ),
    "no block is sure where a host got none": Case(
        [held(64_000.0, "port pool", kind="map-e", source_address_count=64)], "--connections-each 1", {1: 5},
        {"open connections": (64_000, None), "port blocks": (0, None)},
    ),
    "sets have the addresses of the rule": Case(
        [sent(1e6, shared_addresses=10, **SETS)], ONE_FRAME, {310: 0, 311: 1},
    ),
    "sets have the addresses that are asked for": Case(
        [sent(1e6, shared_addresses=10, **SETS)], f"{ONE_FRAME} --outside-addresses 2", {62: 0, 63: 1},
    ),
    "sets whose addresses are not known have those that are asked for": Case(
        [sent(1e6, **SETS)], f"{ONE_FRAME} --outside-addresses 2", {62: 0, 63: 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_each_limit_is_that_of_arithmetic(name: str, size: Asking, golden: Golden) -> None:
    case = EVERY[name]
    first, *others = case.statuses.items()
    said = size.said(case.results, first[0], case.asked)
    (gateway,) = said.gateways
    assert (said.status, gateway["answer"]) == (first[1], ANSWERS[first[1]])
    answer = said.text.split("\n\n")[1]
    golden(said.text if case.whole else answer)
    # What is printed is what programs read.
    assert " ".join(answer.splitlines()) == gateway["text"]
    if case.ends:
        ends = {limit["ended"]: limit["subscribers"] for limit in gateway["limits"]}
        assert list(ends) == list(case.ends)
        for ended, (lower, upper) in case.ends.items():
            assert ends[ended] == [pytest.approx(lower), None if upper is None else pytest.approx(upper)]
    assert {member: gateway[member] for member in case.gateway} == case.gateway
    for number, status in others:
        assert size.status(case.results, number, case.asked) == status, number


#: A connection a second, each kept for 120 s.
KEPT = "--new-each 1 --device-timeout 120"


@pytest.mark.parametrize(
    ("results", "asked", "fewer"),
    [
        ([in_table(1000)], "--connections-each 14", []),
        ([in_table(1000)], "--connections-each 15", ["frames"]),
        ([in_table(1000), in_table(2000, 20_000.0)], "--connections-each 15", []),
        ([in_table(1000), in_table(2000, 20_000.0)], "--connections-each 60", ["frames"]),
        # Frames of another size with as many connections say nothing of these.
        ([in_table(1000), in_table(9000, 20_000.0, 1518)], "--connections-each 15", ["frames"]),
        # Who moves bits has a connection.
        ([in_table(60)], "", ["frames"]),
        ([in_table(70)], "", []),
        ([in_table(1000, kind="routing")], "--connections-each 15", []),
        ([in_table(1000), NEW], KEPT, ["frames", "new connections"]),
    ],
)
def test_a_rate_of_an_emptier_table_than_subscribers_fill_says_so(
    results: list[Result], asked: str, fewer: list[str], size: Asking
) -> None:
    """Seen: "carries", by rates with 50,000 connections, of subscribers who fill a table with 600,000."""
    said = size.said(results, 100, f"{TWO_FRAMES} {asked}")
    assert sorted(said.gateways[0]["with_fewer_connections"]) == fewer
    assert said.text.count("entries in the table; with ") == bool(fewer)


@pytest.mark.parametrize(
    ("entries", "used", "left"),
    [
        (0.5, 1000, "5,000 and 90,000"),
        (10.0, 1000, "5,000 and 90,000"),
        (10.1, 5000, "1,000 and 90,000"),
        (901.0, 90_000, "1,000 and 5,000"),
    ],
)
def test_of_rates_with_several_tables_the_next_fuller_one_counts(
    entries: float, used: int, left: str, size: Asking
) -> None:
    """Seen: the rate with 1,000,000 connections was that of subscribers who fill a table with 6,000."""
    rates = {1000: 10_000.0, 5000: 8000.0, 90_000: 2000.0}
    results = [in_table(table, rate) for table, rate in rates.items()]
    asked = f"--connections-each {entries} {TWO_FRAMES} --mean-frame 84"
    said = size.said([*results, in_table(2000, 9000.0, 1518)], 100, asked)
    (limit,) = (each for each in said.gateways[0]["limits"] if each["ended"] == "frames")
    assert (limit["measured"][0], limit["table_connections"]) == (rates[used], used)
    assert f"Rates with {left} entries in the table were not used: " in said.text
    # A rate that does not say with how many connections it was measured always counts.
    unsaid = size.said([*results, sent(9500.0, connections=None)], 100, asked)
    (limit,) = (each for each in unsaid.gateways[0]["limits"] if each["ended"] == "frames")
    assert limit["measured"][0] == min(rates[used], 9500.0)


@pytest.mark.parametrize("asked", [ONE_FRAME, f"{ONE_FRAME} --new-each 1"])
def test_where_nobody_knows_how_far_subscribers_fill_the_table_the_lowest_rate_counts(asked: str, size: Asking) -> None:
    said = size.said([in_table(1000), in_table(5000, 8000.0)], 10, asked)
    assert said.gateways[0]["limits"][0]["measured"][0] == 8000
    assert "were not used" not in said.text


@pytest.mark.parametrize(("number", "status"), [(4000, CARRIED), (12_000, NOT_CARRIED)])
def test_an_emptier_table_is_said_with_the_answer_that_it_could_change(number: int, status: int, size: Asking) -> None:
    said = size.said([in_table(1000), held(1e6)], number, f"{TWO_FRAMES} --connections-each 2")
    line = f"1,000 entries in the table; with {2 * number:,} they can be slower"
    assert said.status == status
    assert (line in said.gateways[0]["text"]) == (status == CARRIED)
    assert said.text.count(line) == 1


@pytest.mark.parametrize(
    ("mean", "rate", "larger"),
    [(64, 10_000, False), (65, 8000, False), (594, 8000, False), (1000, 5000, False), (1518, 5000, False),
     (1519, 5000, True)],
)  # fmt: skip
def test_the_throughput_of_the_next_larger_frames_counts(mean: int, rate: float, larger: bool, size: Asking) -> None:  # noqa: FBT001
    sizes = {64: 10_000.0, 594: 8000.0, 1518: 5000.0}
    every = [made([rate], parameters={"directions": "both", "frame_size": octets}) for octets, rate in sizes.items()]
    said = size.said(every, 1, f"--mbit-each 1 --mean-frame {mean}")
    (limit,) = said.gateways[0]["limits"]
    assert limit["each"] == pytest.approx(1e6 / 8 / (mean - 18))
    assert limit["measured"][0] == rate
    assert ("with frames as large as the mean" in said.text) == larger


@pytest.mark.parametrize(
    ("mixes", "mean", "used"),
    [
        ([MIX], "", "64, 594 and 1,518 octets (7:4:1)"),
        ([], "", "64 octets"),
        ([], "--mean-frame 500", "1,518 octets"),
        ([MIX], "--mean-frame 500", "1,518 octets"),
    ],
)
def test_of_several_throughputs_a_mix_counts_and_the_answer_names_the_frames(
    mixes: list[dict[str, Any]], mean: str, used: str, size: Asking, golden: Golden
) -> None:
    """Seen: results of 64 octets were taken where those of a mix were there, too."""
    sizes: list[dict[str, Any]] = [{"frame_size": 64}, {"frame_size": 1518}, *mixes]
    results = [
        made([rate, rate], parameters={"directions": "both", **of_size})
        for rate, of_size in zip((9000.0, 5000.0, 8000.0), sizes, strict=False)
    ]
    said = size.said(results, 10, f"--mbit-each 1 {mean}")
    golden(said.text)
    assert said.gateways[0]["limits"][0]["frames"] == used


@pytest.mark.parametrize(
    ("results", "asked"),
    [
        ([FRAMES_OF_PLAIN, NEW_OF_PLAIN], "--new-each 1"),
        ([NEW_OF_PLAIN], "--new-each 1 --mbit-each 1"),
        ([made([500.0], metric="subscribers", unit="subscribers")], "--new-each 1"),
        ([NEW], "--new-each 1 --mean-frame 500"),
        ([NEW], "--new-each 1 --outside-addresses 4"),
        ([NEW], "--new-each 1 --device-timeout 1e-10"),
        # By so little, a result was more subscribers than a float holds: a traceback.
        *(([NEW, OPEN, FRAMES], f"--{option}-each 1e-305") for option in ("connections", "new", "mbit")),
    ],
)
def test_a_question_that_nothing_answers_is_refused_in_one_line(
    results: list[Result], asked: str, size: Asking, golden: Golden
) -> None:
    said = size.said(results, 10, asked)
    assert (said.status, said.text) == (REFUSED, "")
    golden(said.err)


def test_the_least_of_anything_that_a_subscriber_may_take_is_carried_out(size: Asking) -> None:
    assert size.status([NEW], 10, "--new-each 1e-9") == CARRIED


def test_the_kind_of_each_gateway_says_whether_it_keeps_connections(
    size: Asking, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["gateways", "--json"]) == 0
    recipes = {one["name"]: one for one in json.loads(capsys.readouterr().out)["gateways"]}
    results = [sent(gateway=name, kind=recipe["kind"]) for name, recipe in recipes.items()]
    size.status(results, 1, f"{ONE_FRAME} --connections-each 1 --json")
    gateways = json.loads(capsys.readouterr().out)["gateways"]
    limitless = {each["gateway"]: each["no_limit"] == ["open connections"] for each in gateways}
    assert limitless == {name: not recipe["stateful"] for name, recipe in recipes.items()}


@pytest.mark.parametrize(
    ("named", "command", "given"),
    [
        ("nftables-nat44 (1efa1c)", None, "nftables-nat44"),
        ("mine (unknown recipe)", "natgauge measure cost --gateway ./own/mine.toml --seed 1", "./own/mine.toml"),
        ("nftables-nat44", "natgauge measure cost --gateway another", "nftables-nat44"),
        ("mine", "natgauge measure cost --gateway './a;b/mine.toml'", "mine"),
        ("a;b", "natgauge measure cost --gateway a;b", "'a;b'"),
    ],
)
def test_a_command_has_the_gateway_as_a_command_line_takes_it(
    named: str, command: str | None, given: str, size: Asking
) -> None:
    """Seen: with the digest behind the name, which no command line takes."""
    parameters = {"gateway": named, **({} if command is None else {"command": command})}
    said = size.said([opened(1000.0, **parameters)], 1, "--new-each 1 --connections-each 1")
    assert said.gateways[0]["commands"] == [f"natgauge measure table-capacity --gateway {given} --connections 1"]


def test_results_that_are_left_out_are_named_with_the_reason_in_one_line(size: Asking, golden: Golden) -> None:
    routed = made([9000.0], parameters={"frame_size": 64, "foreground_share": 0.1})
    unknown = made([9000.0], parameters={"frame_size": None})
    latency = made([1.0], metric="latency", unit="us")
    asked = "--connections-each 1 --mbit-each 1"
    said = size.said([NEW, OPEN, routed, unknown, latency, latency], 1, asked)
    golden(said.text.splitlines()[-1])
    assert sorted(each["metric"] for each in said.document["not_used"]) == [
        "connection-rate", "latency", "latency", "throughput", "throughput"
    ]  # fmt: skip
    assert said.gateways[0]["missing"] == ["frames"]
    assert "Not used" not in size.said([OPEN], 1, asked).text


@pytest.mark.parametrize("number", [5000, 30_000])
def test_numbers_of_one_output_are_rounded_alike_and_what_is_near_has_all_digits(
    number: int, size: Asking, golden: Golden
) -> None:
    """Seen: "up to 814" beside "250 to 820" for the same number, and 263 k beside 262,144."""
    golden(
        size.said([held(262_144.0), opened(250_123.4, 814_999.9)], number, "--connections-each 322 --new-each 1").text
    )


def three(undecided: float = 0.1) -> list[Result]:
    """Results of three gateways on one core each, of which the frames of the first are doubtful."""
    results = []
    for name, frames in (("a", 10_000.0), ("b", 8000.0), ("c", 6000.0)):
        of: dict[str, Any] = {"gateway": name, "device_cores": 1}
        own: dict[str, Any] = {"tester_highest_phase1_rate": 20_000.0, "tester_highest_phase2_rate": 200_000.0}
        table: dict[str, Any] = {"of_host": {"table_size": 48_000}, "table_size": 10**6, "own_udp_timeout": 120}
        doubts = [doubt("undecided")] if name == "a" else []
        results += [
            made([frames] * 2, parameters={**of, **own, "directions": "both", **MIX}, doubts=doubts),
            opened(1000.0, **of, **own, **table),
        ]
    uppers = tuple(replace(one, upper=(1 + undecided) * one.value) for one in results[0].repetitions)
    results[0] = results[0].model_copy(update={"repetitions": uppers, "error": 1000.0})
    return results


OF_THREE = f"{OPENING} --mbit-each 1"


def test_gateways_with_the_same_answer_are_told_together_and_what_they_share_once(size: Asking, golden: Golden) -> None:
    """Seen: 988 words on three gateways, of which two thirds were the same but for numbers."""
    said = size.said(three(), 401, OF_THREE)
    golden(said.text)
    assert max(said.text.count(line) for line in said.text.splitlines() if line) == 1
    assert size.said(three(), 401, OF_THREE, columns=60).text == said.text
    assert [each["answer"] for each in said.gateways] == ["does not carry"] * 3
    assert [each["commands"][-1].split()[4] for each in said.gateways] == ["a", "b", "c"]


def test_what_holds_for_some_gateways_names_them_and_a_gateway_without_a_result_says_so(
    size: Asking, golden: Golden
) -> None:
    golden(size.said([*three()[:3], FRAMES_OF_PLAIN], 20, OF_THREE).text)


def test_what_was_not_measured_is_named_with_the_first_limit(size: Asking, golden: Golden) -> None:
    """Seen: "Frames are the first limit; open connections were not measured" below "up to 2,184 subscribers"."""
    unknown = [one for one in three() if one.metric == "throughput"]
    golden(size.said(unknown, 401, OF_THREE).text.split("\n\n")[1])


@pytest.mark.parametrize(("number", "words"), [(5000, False), (10, True)])
def test_a_doubt_that_leaves_the_answer_has_its_mark_alone_and_another_one_its_words(
    number: int,
    words: bool,  # noqa: FBT001
    size: Asking,
) -> None:
    said = size.said(three()[:1], number, OF_THREE)
    assert "† may be another value: " in said.text
    assert ("Could change the answer: undecided" in said.text) == words
    assert said.gateways[0]["doubts"] == [{"metric": "throughput", **doubt("undecided")}]


@pytest.mark.parametrize("rates", [(2000, 500), (2000, 1000, 500), (1000, 500), (2000, 500, 600), (500, 600)], ids=str)
def test_where_answers_differ_the_first_line_names_who_carries_all(
    rates: tuple[float, ...], size: Asking, golden: Golden
) -> None:
    each = [
        opened(0.9 * rate, 1.1 * rate, gateway=name, device_cores=1) for name, rate in zip("abc", rates, strict=False)
    ]
    said = size.said(each, 1000, "--new-each 1")
    golden(said.text.split("\n\n")[1])
    answers = [UNKNOWN if rate == 1000 else CARRIED if rate > 1000 else NOT_CARRIED for rate in rates]
    assert [one["answer"] for one in said.gateways] == [ANSWERS[one] for one in answers]
    assert said.status == NOT_CARRIED


def test_a_command_that_one_of_several_gateways_needs_names_it(size: Asking, golden: Golden) -> None:
    others = [held(50_000.0, gateway="y"), opened(1000.0, gateway="y")]
    said = size.said([NEW, *others], 2000, "--connections-each 1 --new-each 1 --device-timeout 1")
    assert [each["commands"] for each in said.gateways] == [
        ["natgauge measure table-capacity --gateway x --connections 2000"], []
    ]  # fmt: skip
    golden(said.text)


def test_more_gateways_than_there_is_room_for_are_rows(size: Asking, golden: Golden, tmp_path: Path) -> None:
    rates = [opened(1000.0, gateway=f"g{at}") for at in range(5)]
    for columns in (200, 50):
        golden(size.said(rates, 10, "--new-each 1", columns=columns).text)
    page = tmp_path / "size.html"
    for number in (4, 5):
        assert size.status(rates[:number], 10, f"--new-each 1 --html {page}") == CARRIED
        table = page.read_text().partition("<table")[2].partition("</table>")[0]
        assert re.findall(r">(g\d|subscribers at most)<", table)[0] == "subscribers at most"
        assert table.count("<tr") == (2 if number == 4 else 6)


@pytest.mark.parametrize(
    ("results", "lowest"),
    [
        ([opened(1000.0 * cores, device_cores=cores) for cores in (1, 2)], [1000, 2000]),
        ([NEW, opened(2000.0, device_cores=2), opened(3000.0, gateway="y"), OPEN], [1000, 2000, 3000]),
        (
            [
                opened(3000.0),
                opened(2000.0, logging="nfct-ulogd", log_tolerance=0.0),
                opened(1000.0, logging="nfct-ulogd", log_tolerance=0.01),
            ],
            [3000, 2000, 1000],
        ),
        ([opened(1000.0, outside_addresses=number, **ON_DEMAND) for number in (2, 4)], [1000, 1000]),
        (
            [
                opened(1000.0, kind="map-e", psid_length=length, shared_addresses=2,
                       port_blocks={"size": octets, "first_port": octets})
                for length, octets in ((5, 2048), (4, 4096))
            ],
            [1000, 1000],
        ),
    ],
    ids=["cores", "cores and gateways", "logs", "outside addresses", "sets"],
)  # fmt: skip
def test_what_distinguishes_results_of_one_gateway_has_an_answer_each(
    results: list[Result], lowest: list[float], size: Asking, golden: Golden
) -> None:
    """Seen: a capacity without a log and a rate with one were those of one gateway."""
    said = size.said(results, 1500, "--new-each 1 --device-timeout 0.01")
    of_rates = [limit for each in said.gateways for limit in each["limits"] if limit["ended"] == "new connections"]
    assert [limit["measured"][0] for limit in of_rates] == lowest
    golden(said.text)


@pytest.mark.parametrize(
    ("results", "number", "asked"),
    [
        pytest.param([held(1e6, **ON_DEMAND)], 504, "--connections-each 60", id="blocks"),
        pytest.param([opened(1000.0)], 3, "--new-each 0.1", id="openings"),
        pytest.param([FRAMES_OF_PLAIN], 3, TWO_FRAMES, id="frames"),
    ],
)
def test_programs_read_of_each_limit(
    results: Sequence[Result], number: int, asked: str, size: Asking, golden: Golden
) -> None:
    """Seen: 0.30000000000000004 of all, where 3 take 0.1 each."""
    (gateway,) = size.said(results, number, asked).gateways
    golden(json.dumps([{**limit, "result": bool(limit["result"])} for limit in gateway["limits"]], indent=1))


@pytest.mark.parametrize(("vlan", "wire"), [(None, 104), ("100", 108)])
def test_all_subscribers_together_take_these_bits_and_frames(vlan: str | None, wire: int, size: Asking) -> None:
    """A frame of 84 octets has 66 of the packet, and 104 on the wire, or 108 with a tag."""
    octets = {"initiator": 84 + (4 if vlan else 0), "responder": 84}
    together = size.said([sent(frame_octets=octets, initiator_vlan=vlan)], 1000, TWO_FRAMES).document["all"]
    assert together["megabits"] == pytest.approx(1000 * 0.001056)
    assert together["wire_megabits"] == pytest.approx(1000 * 2 * wire * 8 / 1e6)
    assert (together["frames_per_second"], together["mean_frame"]) == (pytest.approx(2000), 84)


def test_a_page_has_the_costs_below_the_answer_and_then_the_rates(tmp_path: Path) -> None:
    folder, path = kept(tmp_path / "results", *three(), compared()), tmp_path / "size.html"
    assert run(["size", str(folder), "--subscribers", "5000", *OF_THREE.split(), "--html", str(path)]) == NOT_CARRIED
    lines = lines_of(path.read_text(encoding="utf-8"))
    assert lines[1] == "Which gateway carries 5,000 subscribers?"
    at = [
        next(number for number, line in enumerate(lines) if part in line)
        for part in (
            "5,000 subscribers, each with",
            "On one core none carries all 5,000: ",
            "Subscribers at most",
            "Needed and carried",
            "Cost of a frame",
            # The figure of what limits first comes first.
            "Frames per second without loss (frames/s in each direction)",
            "New connections per second (connections/s)",
            "To raise the limit of frames",
        )
    ]
    assert at == sorted(at)
    assert re.findall("<caption>([^<]*)</caption>", path.read_text(encoding="utf-8"))[1] == "Needed and carried"


def test_a_page_begins_with_the_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page, folder = tmp_path / "size.html", kept(tmp_path / "results", NEW, OPEN, FRAMES)
    asked = ["size", str(folder), "--subscribers", "1001", "--new-each", "1"]
    assert run([*asked, "--html", str(page)]) == NOT_CARRIED
    out, err = capfd.readouterr()
    question, _, answer, *_ = out.splitlines()
    assert err == f"{page}\n"
    html = page.read_text(encoding="utf-8").replace("\u00a0", " ")
    answers = html.partition('<section id="answers">')[2]
    assert answers.lstrip().startswith(f"<p>{question}</p>")
    assert "<h1>Does x carry 1,001 subscribers?</h1>" in html
    assert f'<ul class="answers"><li class="lead">{answer}</li>' in answers
    assert "To raise the limit of new connections" in answers
    assert run([*asked, "--html", "-"]) == NOT_CARRIED
    assert capfd.readouterr().out.startswith("<!DOCTYPE html>")
    assert run([*asked, "--html", "-", "--json"]) == REFUSED


def test_a_folder_that_is_named_twice_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, link = kept(tmp_path / "results", NEW, OPEN, FRAMES), tmp_path / "link"
    link.symlink_to(folder)
    first = next(folder.iterdir())
    found = []
    for folders in ([folder], [folder, folder], [folder, first], [folder, link], [folder, folder / ".." / folder.name]):
        assert run(["size", *map(str, folders), "--subscribers", "1", "--new-each", "1", "--json"]) == CARRIED
        found.append(json.loads(capsys.readouterr().out)["not_used"])
    assert [len(each) for each in found] == [2] * 5

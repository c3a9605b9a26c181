# SPDX-License-Identifier: Apache-2.0
"""The contract every gateway keeps, over every file of the folder; and what recipes that break it are told."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns.zone
import pytest
from tests.unit.golden import Golden
from tests.unit.made_machine import Memory
from tests.unit.routers import new
from tests.unit.test_accepted_ports import BESIDE, LOSING

from natgauge.cli import run
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.gateways import far_side, limits
from natgauge.gateways import gateway as driver
from natgauge.gateways.gateway import Chain, Gateway
from natgauge.gateways.limits import DeviceDemand, choose, octets_needed, refuse_short_memory, refuse_unfit
from natgauge.gateways.preparation import refuse_absent_files
from natgauge.gateways.recipe import VARIABLE, Recipe, as_played, available, digest, load
from natgauge.gateways.recipe_model import VERBS, GatewayLimits, Knobs
from natgauge.gateways.rule_sets import edit, edits_in, unmatched
from natgauge.gateways.toml_layers import absent, digests
from natgauge.host.settings import LocalSetting
from natgauge.inputs.question import DeviceOptions
from natgauge.labs.common.device import ThisMachine
from natgauge.labs.contract import CommandResult
from natgauge.labs.netns.lab import NetnsLab
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.words import TcpState, Transport

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "natgauge" / "gateways" / "recipes"
FILES = sorted(FOLDER.glob("*.toml"))
PLAN = DeviceDemand(connections=1000, phase1_seconds=10, after_seconds=20, source_addresses=4, remote_endpoints=2)
#: To several endpoints, each from a source address and port of its own.
MANY = {"connections": 100_000, "remote_endpoints": 4, "inside_endpoints": 100_000}


def plan_of(recipe: Recipe) -> DeviceDemand:
    """The plan, with as many sources as the gateway serves."""
    return replace(PLAN, source_addresses=min(4, recipe.limits.source_addresses or 4))


#: What the lab gives and what the driver adds; a snippet may use nothing else (docs/recipes.md).
VARIABLES = {
    "NG_NAME", "NG_WORK", "NG_RECIPE_FOLDER", "NG_CPUS", "NG_INSIDE", "NG_OUTSIDE", "NG_NAT64_PREFIX",
    "NG_BACKGROUND_NETWORKS6",
    "NG_POOL4", "NG_POOL4_FIRST", "NG_POOL4_LAST",
    "NG_BLOCK_SIZE", "NG_BLOCK_FIRST_PORT", "NG_BLOCKS_PER_ADDRESS", "NG_BLOCKS_OF_HOST",
    "NG_MAPPED_NETWORK4", "NG_MAPPED_NETWORK6",
    *(f"NG_{side}_NETWORK{family}" for side in ("INITIATOR", "RESPONDER") for family in "46"),
    *(f"NG_{side}_{what}{family}" for side in ("INSIDE", "OUTSIDE") for what in ("ADDRESS", "PEER") for family in "46"),
    "NG_CONNECTIONS", "NG_SOURCE_ADDRESSES", "NG_TABLE_SIZE", "NG_HASH_SIZE", "NG_UDP_TIMEOUT", "NG_VALUE",
    "NG_SUBSCRIBERS", "NG_SHARED_NETWORK4", "NG_SHARED_ADDRESS4", "NG_PSID_LENGTH", "NG_PSID_OFFSET", "NG_PSID_FIRST",
    "NG_RULE_PREFIX6", "NG_RELAY6", "NG_CUSTOMER_ADDRESS6", "NG_CUSTOMER_PREFIX6",
    "NG_ADDRESSES", "NG_ZONE_NAME", "NG_ZONE",
}  # fmt: skip


#: Parts of snippets that empty a table, that print the number of connections, and a knob's value.
EMPTYING = (
    "conntrack -F", "pool4 flush", "instance remove", "-F states", "ipfw_load", "clear nat44", "plugin disable",
    "empty.cli", "/emptying", "flush-conntrack",
)  # fmt: skip
COUNTING = (
    "nf_conntrack_count", "JSTAT_SESSIONS", "current entries", "created", "dump /nat", "/ 168", "ct-get-nconns",
    "map dump id", "show det44 mappings",
)  # fmt: skip
READING = (
    "jool global display", "pfctl -s", "sysctl -n net.pf", "udp_age", "show nat44 summary", "show nat timeouts",
    "show det44 timeouts", "echo $((1000", "echo 1", "echo 30", 'cat "$NG_WORK/nat.sessions', "ct-get-maxconns",
    "list-zone-tp", "Cpus_allowed_list",
)  # fmt: skip


class FakeMachine(ThisMachine):
    """Ours, or so it says."""

    def __init__(self, system: str = "Linux") -> None:
        super().__init__(Memory)
        self.system = system


@dataclass
class FakeDevice:
    """Answers each snippet by rule and remembers what it was asked; a counter plays the table."""

    name: str = "gateway"
    inside: str = "inside"
    outside: str = "outside"
    environment: Mapping[str, str] = field(default_factory=dict)
    machine: FakeMachine = field(default_factory=FakeMachine)
    entries: int = 7
    left_after_emptying: int = 0
    answers: dict[str, CommandResult | Exception] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def frame_processes(self) -> tuple[str, ...]:
        return ()

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        assert timeout > 0
        self.asked.append((snippet, environment or {}))
        for part, answer in self.answers.items():
            if part in snippet:
                if isinstance(answer, Exception):
                    raise answer
                return answer
        if any(way in snippet for way in EMPTYING):
            self.entries = self.left_after_emptying
        if any(what in snippet for what in COUNTING):
            return said(str(self.entries))
        if any(what in snippet for what in READING):
            return said("300")
        if listed := re.match(r"for file in (.+?); do ", snippet):
            return said("\n".join("30" for _ in listed[1].split()))
        return said("30" if "cat /proc/sys/net/netfilter" in snippet or "threads" in snippet else "Linux 6.18")

    def snippets(self) -> list[str]:
        return [snippet for snippet, _ in self.asked]


def live(gateway: Gateway) -> None:
    """Prepare, start and stop it."""
    with gateway:
        gateway.prepare(PLAN)
        gateway.start()


def started(
    recipe: str | Recipe, device: FakeDevice, wishes: DeviceOptions | None = None, plan: DeviceDemand = PLAN
) -> Gateway:
    """A gateway that is prepared for the plan and started."""
    gateway = Gateway(load(recipe) if isinstance(recipe, str) else recipe, device, wishes or DeviceOptions())
    gateway.prepare(plan)
    gateway.start()
    return gateway


def own_files(folder: Path) -> Path:
    """A recipe in this folder that names a file beside it, which is not there."""
    table = load("linux-ipv4").origin.read_text().replace("linux-ipv4", "mine", 1)
    file = folder / "mine.toml"
    file.write_text(f"{table}\n[verbs]\nstart = 'nft -f \"$NG_RECIPE_FOLDER/rules.nft\"'\n")
    return file


def said(stdout: str = "", stderr: str = "", status: int = 0) -> CommandResult:
    return CommandResult(status, stdout + "\n", stderr, 0.001)


@pytest.fixture
def memory() -> Memory:
    """What a lab found on its machine."""
    return Memory()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Memory) -> Path:
    """Global settings in a folder instead of the kernel."""
    files = {"nf_conntrack_max": "65536\n", "hashsize": "16384\n"}
    for name, value in files.items():
        (tmp_path / name).write_text(value)

    def elsewhere(_machine: ThisMachine, name: str, paths: tuple[str, ...], _module: str | None) -> LocalSetting:
        return LocalSetting(name, [tmp_path / Path(path).name for path in paths], memory=lambda: memory)

    monkeypatch.setattr(ThisMachine, "setting", elsewhere)
    return tmp_path


@cache
def syntax_fault(snippet: str) -> str:
    """What a shell says of it; recipes share most snippets."""
    return subprocess.run(["sh", "-n"], input=snippet, text=True, capture_output=True, check=False).stderr


def scripts(recipe: Recipe) -> list[tuple[str, str]]:
    of_verbs = [(verb, piece) for verb in VERBS for piece in recipe.verbs.pieces(verb)]
    of_knobs = [
        (name, text)
        for name, knob in recipe.knobs.named().items()
        for text in (
            knob.read,
            knob.write,
            *(part for one in knob.snippets_of.values() for part in (one.read, one.write)),
        )
        if text
    ]
    return of_verbs + of_knobs


#: Each gateway as it is played: a chain's devices one by one.
PLAYED = {
    f"{path.stem} {part.device}" if part else path.stem: part.recipe if part else whole
    for path in FILES
    for whole in [load(path)]
    for part in (whole.chain or (None,))
}


@pytest.fixture(params=PLAYED)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    return PLAYED[request.param]


def test_the_gateways_are_there() -> None:
    assert {path.stem for path in FILES} >= {
        "linux-ipv4", "linux-ipv6", "nftables-nat44", "iptables-nat44", "nftables-nat66", "iptables-nat66",
        "tayga-nat64", "tayga-iptables-nat64", "tayga-siit", "nftables-nptv6", "464xlat-tayga", "ds-lite",
    }  # fmt: skip
    assert {path.stem for path in FILES} <= set(available())


def test_every_snippet_is_posix_shell_and_uses_known_variables_only(recipe: Recipe) -> None:
    for verb, text in scripts(recipe):
        assert syntax_fault(text) == "", verb
        assert set(re.findall(r"\bNG_[A-Z0-9_]+", text)) <= VARIABLES, verb
        assert set(re.findall(r"\$\{?([A-Z][A-Z0-9_]+)\b", text)) - VARIABLES <= set(recipe.environment), verb


def test_a_whole_life_in_order(recipe: Recipe, machine: Path) -> None:
    before = {path.name: path.read_text() for path in machine.iterdir()}
    device = FakeDevice(machine=FakeMachine(recipe.system))
    gateway = Gateway(recipe, device)
    with gateway:
        gateway.prepare(plan_of(recipe))
        assert {path.name: path.read_text() for path in machine.iterdir()} == before
        gateway.start()
        assert gateway.count() == (0 if recipe.stateful else None)
        device.entries = 1000
        assert gateway.count() == (1000 if recipe.stateful else None)
        gateway.empty()
        assert gateway.count() == (0 if recipe.stateful else None)
        assert gateway.version()[0] == "Linux 6.18"
        assert (f"rules of {recipe.rules_from}" in gateway.version()) == (recipe.rules_from is not None)
        begin = len(device.asked)
    starts = [device.snippets().index(piece) for piece in recipe.verbs.pieces("start")]
    assert starts == sorted(starts)
    stops = device.snippets()[begin:]
    assert [piece for piece in stops if piece in recipe.verbs.stop] == list(recipe.verbs.pieces("stop"))
    assert {path.name: path.read_text().strip() for path in machine.iterdir()} == {
        name: value.strip() for name, value in before.items()
    }
    environment = device.asked[starts[0]][1]
    assert environment["NG_CONNECTIONS"] == "1000"
    assert environment["NG_SOURCE_ADDRESSES"] == str(plan_of(recipe).source_addresses)


DENIED = said(stderr="table busy\nError: Operation not permitted", status=1)


@pytest.mark.parametrize(
    ("name", "changes", "kind", "is_stopped"),
    [
        ("tayga-nat64", {"answers": {"command -v tayga": said(status=1)}}, HostError, False),
        ("freebsd-pf", {}, HostError, False),
        ("nftables-nat44", {"answers": {"nft -f": DENIED}}, BrokenError, True),
        ("nftables-nat44", {"answers": {"nft list chain": said(status=1)}}, BrokenError, True),
        ("nftables-nat44", {"left_after_emptying": 3}, BrokenError, True),
        ("linux-ipv4", {"answers": {"ip_forward) -eq 1": said(stderr="not yet", status=1)}}, BrokenError, True),
        ("vpp-nat44-ed", {"answers": {"show nat44 summary": CommandResult(0, "", "", 0.0)}}, BrokenError, True),
    ],
    ids=["no program", "other system", "start", "silent check", "not empty", "check", "empty knob"],
)
def test_a_gateway_that_does_not_come_up_says_why_and_what_was_begun_is_undone(  # noqa: PLR0917 - one per column
    name: str,
    changes: dict[str, Any],
    kind: type[NatgaugeError],
    is_stopped: bool,  # noqa: FBT001 - a column
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
) -> None:
    monkeypatch.setattr(driver, "_READY_SECONDS", 0.1)
    device, recipe = FakeDevice(**changes), load(name)
    with golden.raises(kind):
        live(Gateway(recipe, device))
    stops = set(recipe.verbs.pieces("stop"))
    assert stops <= set(device.snippets()) if is_stopped else not stops & set(device.snippets())
    assert (machine / "nf_conntrack_max").read_text().strip() == "65536"
    assert bool(device.asked) is (name != "freebsd-pf"), "a device of another system is not touched"
    if "not yet" in str(changes):
        assert device.snippets().count(recipe.verbs.check[0]) > 1


def test_what_was_made_last_goes_first() -> None:
    verbs = load("tayga-nat64").verbs
    assert "tayga" in verbs.pieces("start")[-1]
    assert "tayga" in verbs.pieces("stop")[0]


def test_a_stop_that_fails_after_a_failed_start_does_not_hide_the_error_of_the_start(
    machine: Path, golden: Golden
) -> None:
    device = FakeDevice(answers={"postrouting {": said(stderr="no such table", status=1)})
    device.answers["nft -f"] = said(stderr="table busy", status=1)
    gateway = Gateway(load("nftables-nat44"), device)
    with golden.raises(BrokenError) as refusal:
        live(gateway)
    (note,) = refusal.value.__notes__
    golden(note)
    assert (machine / "nf_conntrack_max").read_text().strip() == "65536"


@pytest.mark.usefixtures("machine")
def test_a_snippet_finds_the_files_next_to_its_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    (tmp_path / "good").mkdir()
    own = own_files(tmp_path / "good")
    monkeypatch.chdir(tmp_path)
    recipe = load("good/mine.toml")
    device = FakeDevice()
    with golden.raises(UsageError):
        live(Gateway(recipe, device))
    assert device.asked == []
    (own.parent / "rules.nft").touch()
    live(Gateway(recipe, device))
    (variables,) = [values for snippet, values in device.asked if "rules.nft" in snippet]
    assert variables["NG_RECIPE_FOLDER"] == str(own.parent)
    device.machine.has_tester_files = False
    with golden.raises(HostError):
        live(Gateway(recipe, device))
    device.asked.clear()
    live(Gateway(load("linux-ipv4"), device))
    assert not [values for _, values in device.asked if "NG_RECIPE_FOLDER" in values]


@pytest.mark.parametrize(
    "words",
    [
        ["measure", "throughput", "--gateway", "mine.toml"],
        ["compare", "linux-ipv4", "./mine.toml"],
        ["audit", "--gateway", "mine.toml"],
        ["plan", "check", "plan.toml"],
        ["run", "plan.toml"],
    ],
    ids=" ".join,
)
def test_a_missing_file_of_a_recipe_is_refused_before_anything_is_made(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: labs and results folders were made first, and the comparison of an hour ended at its second gateway."""

    def made(_self: object) -> None:
        raise AssertionError

    monkeypatch.setattr(NetnsLab, "__enter__", made)
    monkeypatch.chdir(tmp_path)
    own_files(tmp_path)
    Path("plan.toml").write_text('gateways = ["linux-ipv4", "mine.toml"]\n[[measure]]\nmetric = "throughput"\n')
    assert run(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "rules.nft" in line
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("snippet", "missing"),
    [
        ('nft -f "$NG_RECIPE_FOLDER/rules.nft"', ["rules.nft"]),
        ('nft -f "$NG_RECIPE_FOLDER"/rules.nft', ["rules.nft"]),
        ("nft -f ${NG_RECIPE_FOLDER}/more/rules.nft; true", ["more/rules.nft"]),
        ('nft -f "$NG_RECIPE_FOLDER/here.nft"', []),
        # The name goes on behind a space, or the snippet makes the file.
        ('nft -f "$NG_RECIPE_FOLDER/my rules.nft"', []),
        ("cat $NG_RECIPE_FOLDER/a\\ b.nft", []),
        ("echo > $NG_RECIPE_FOLDER/out.log", []),
        # Comments, and what only looks like one or like a file that is written.
        ("# see $NG_RECIPE_FOLDER/README", []),
        ("true\n  # see $NG_RECIPE_FOLDER/README\ntrue", []),
        ("printf 'a\\n# %s' x; nft -f $NG_RECIPE_FOLDER/rules.nft", ["rules.nft"]),
        ('printf "it\'s\\n# %s" x > /dev/null; nft -f $NG_RECIPE_FOLDER/rules.nft', ["rules.nft"]),
        # A variable or a pattern makes the name longer: nobody knows which file it is.
        ('for at in 1 2; do nft -f "$NG_RECIPE_FOLDER/rules-$at.nft"; done', []),
        ("cat $NG_RECIPE_FOLDER/rules-*.nft | nft -f -", []),
    ],
)
def test_files_that_a_recipe_names_and_that_are_not_there_are_found(
    snippet: str, missing: list[str], tmp_path: Path
) -> None:
    """Seen: a backslash, an n and a "#" in a text of printf made a comment of what followed."""
    (tmp_path / "here.nft").touch()
    assert absent([snippet], tmp_path) == [tmp_path / one for one in missing]
    recipe = load("linux-ipv4")
    verbs = recipe.verbs.model_copy(update={"start": (snippet,)})
    mine = recipe.model_copy(update={"verbs": verbs, "origin": tmp_path / "mine.toml"})
    with pytest.raises(UsageError) if missing else nullcontext():
        refuse_absent_files(mine)


def test_a_restart_under_load_stops_and_starts_and_leaves_the_rest_alone(recipe: Recipe, machine: Path) -> None:
    device = FakeDevice(left_after_emptying=500, machine=FakeMachine(recipe.system))
    gateway = Gateway(recipe, device)
    gateway.prepare(plan_of(recipe))
    with pytest.raises(RuntimeError, match="start the gateway"):
        gateway.restart_under_load()
    device.left_after_emptying = 0
    gateway.start()
    found = dict(gateway.settings().found)
    knobs = {path.name: path.read_text() for path in machine.iterdir()}
    device.entries = device.left_after_emptying = 500
    begin = len(device.asked)
    device.answers["cat /proc/sys/net/netfilter/nf_conntrack_udp"] = said("90")
    # Frames go on opening connections, so that emptying could never end.
    gateway.restart_under_load()
    asked = device.snippets()[begin:]
    end = 0
    for piece in (*recipe.verbs.pieces("stop"), *recipe.verbs.pieces("start")):
        end = asked[0].index(piece, end) + len(piece)
    assert syntax_fault(asked[0]) == ""
    assert not [snippet for snippet in asked if snippet.startswith("command -v")]
    assert {path.name: path.read_text() for path in machine.iterdir()} == knobs
    assert dict(gateway.settings().found) == found, "our own values are not what was found"
    assert gateway.count() == (500 if recipe.stateful else None)
    device.left_after_emptying = 0
    gateway.stop()


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("fails", ["nft list chain", "nft -f"])
def test_a_restart_under_load_that_fails_says_where(
    fails: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(driver, "_READY_SECONDS", 0.1)
    device = FakeDevice()
    gateway = started("nftables-nat44", device)
    device.answers[fails] = said(stderr="out of order", status=1)
    with golden.raises(BrokenError):
        gateway.restart_under_load()
    with golden.raises(BrokenError):
        gateway.count()


def test_a_gateway_that_could_not_be_set_repeats_the_first_cause(machine: Path) -> None:
    device = FakeDevice()
    gateway = started("nftables-nat44", device)
    device.answers["nf_conntrack_udp_timeout"] = BrokenError("did not end within 60 s")
    with pytest.raises(BrokenError) as first:
        gateway.fit(replace(PLAN, phase1_seconds=500))
    device.answers.clear()
    asked = len(device.asked)
    with pytest.raises(BrokenError) as second:
        gateway.empty()
    assert str(second.value) == str(first.value)
    assert len(device.asked) == asked, "a dead device gives one error, not forty time-outs"
    gateway.stop()
    assert (machine / "hashsize").read_text().strip() == "16384"


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("ask", [Gateway.count, Gateway.empty, Gateway.confirm_ready])
def test_a_command_that_only_looks_or_empties_may_be_asked_again(
    ask: Callable[[Gateway], object], golden: Golden
) -> None:
    """One lost connection left the gateway broken, and every later trial was a collapse."""
    device = FakeDevice()
    gateway = started("nftables-nat44", device)
    device.answers[""] = BrokenError("the connection was lost")
    with golden.raises(BrokenError):
        ask(gateway)
    device.answers.clear()
    ask(gateway)


@pytest.mark.usefixtures("machine")
def test_a_gateway_that_is_restarted_for_each_trial_is_stopped_and_started() -> None:
    recipe = load("nftables-nat44")
    device = FakeDevice()
    gateway = started(recipe, device, DeviceOptions(emptying="restart", udp_timeout=500))
    begin = len(device.asked)
    device.entries = 1000
    gateway.empty()
    asked = device.snippets()[begin:]
    ran = [piece for piece in asked if piece in {*recipe.verbs.stop, *recipe.verbs.start}]
    assert ran == [*recipe.verbs.pieces("stop"), *recipe.verbs.pieces("start")]
    assert any(values.get("NG_VALUE") == "500" or "500" in piece for piece, values in device.asked[begin:])
    assert gateway.count() == 0
    assert gateway.settings().as_dict()["emptying"] == "restart"


@pytest.mark.usefixtures("machine")
def test_the_time_of_emptying_is_that_of_the_chosen_way_without_the_start_behind_it() -> None:
    """Figure 10 of the scalability draft timed the removal of Jool's module, and not that it was loaded again."""
    recipe = load("jool-nat64")
    device = FakeDevice(answers={"modprobe -r": CommandResult(0, "", "", 0.46)})
    gateway = started(recipe, device, DeviceOptions(emptying="module"))
    begin = len(device.asked)
    assert gateway.empty_timed() == 0.46
    asked = device.snippets()[begin:]
    assert asked[0] == "modprobe -r jool"
    assert [piece for piece in asked if piece in recipe.verbs.start] == list(recipe.verbs.pieces("start"))
    assert not [piece for piece in asked if "pool4 flush" in piece]


@pytest.mark.parametrize(
    ("name", "emptying"), [("nftables-nat44", "module"), ("linux-ipv4", "restart"), ("jool-nat64", "modul")]
)
def test_a_way_of_emptying_that_a_gateway_lacks_is_refused(name: str, emptying: str, golden: Golden) -> None:
    with golden.raises(UsageError):
        Bench(ask("connection-rate", name, {"emptying": emptying}).cell)


def test_zero_checksums_are_accepted_only_where_there_is_ipv6(golden: Golden) -> None:
    bench = Bench(ask("throughput", "nftables-nat44", {}).cell)
    with golden.raises(UsageError):
        bench.plan("throughput", {"zero_checksum": "accept"})
    planned = Bench(ask("throughput", "tayga-iptables-nat64", {}).cell).plan("throughput", {"zero_checksum": "accept"})
    assert planned.settings.phase1_plan(1.0).accept_zero_checksum


def test_knobs_are_raised_for_the_plan_never_lowered_and_both_time_outs_are_set(machine: Path, memory: Memory) -> None:
    device = FakeDevice()
    plan = DeviceDemand(connections=100_000, phase1_seconds=50, after_seconds=50, remote_endpoints=2)
    gateway = started("nftables-nat44", device, plan=plan)
    assert int((machine / "nf_conntrack_max").read_text()) == 106_250
    assert int((machine / "hashsize").read_text()) == 131_072
    written = [environment["NG_VALUE"] for text, environment in device.asked if text.startswith('echo "$NG_V')]
    assert written == ["230", "230"]
    gateway.stop()
    memory.undo()
    started("nftables-nat44", device, plan=DeviceDemand(connections=1, phase1_seconds=1))
    assert (machine / "nf_conntrack_max").read_text().strip() == "65536"


def test_a_table_of_natgauges_choice_is_no_larger_than_memory_allows_and_holds_what_every_load_opens(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A highest load that nobody asked for demanded 2.5 M connections of memory, and the measurement was refused."""
    limit, octets = machine / "nf_conntrack_max", [2**29]
    monkeypatch.setattr(FakeMachine, "free_octets", lambda _machine: octets[0])
    demand = DeviceDemand(connections=100_000, held_at_most=2_500_000, phase1_seconds=50, remote_endpoints=100)
    gateway = started("nftables-nat44", FakeDevice(), plan=demand)
    # 256 MiB, of entries of 384 octets and two buckets each.
    assert int(limit.read_text()) == 671_088 + 671_088 // 16
    octets[0] = 2**28 + 100_000 * 400
    assert gateway.outlive(10_000.0) is not None
    assert int(limit.read_text()) == 671_088 + 671_088 // 16
    gateway.fit(demand)
    assert int(limit.read_text()) == 106_250
    octets[0] = 2**34
    gateway.fit(demand)
    assert int(limit.read_text()) == 2_656_250


def test_a_gateway_that_stands_is_fit_for_another_plan_and_what_the_first_one_raised_counts_for_nothing(
    machine: Path, golden: Golden
) -> None:
    limit = machine / "nf_conntrack_max"
    large = DeviceDemand(connections=100_000, phase1_seconds=50, remote_endpoints=2)
    with Gateway(load("nftables-nat44"), FakeDevice()) as gateway:
        gateway.prepare(large)
        gateway.start()
        assert int(limit.read_text()) == 106_250
        gateway.fit(replace(large, connections=200_000, remote_endpoints=4))
        assert int(limit.read_text()) == 212_500
        gateway.fit(replace(large, connections=200_000, remote_endpoints=4, fills_table=True))
        assert int(limit.read_text()) == 65_536
        assert gateway.settings().found["table_size"] == 65_536
        assert gateway.settings().of_host["table_size"] == 65_536
        assert "udp_timeout" not in gateway.settings().of_host
        with golden.raises(UsageError):
            gateway.fit(replace(large, connections=1_000_000, remote_endpoints=2))
    assert limit.read_text().strip() == "65536"


@pytest.mark.usefixtures("machine")
def test_a_setting_of_the_machine_that_the_user_chose_is_not_the_hosts() -> None:
    gateway = started("nftables-nat44", FakeDevice(), DeviceOptions(table_size=70_000))
    assert gateway.settings().knobs["table_size"] == 70_000
    assert gateway.settings().of_host.keys() == {"hash_size"}


@pytest.mark.usefixtures("machine")
def test_a_time_out_outlives_a_long_trial_unless_the_user_chose_it() -> None:
    gateway = started("nftables-nat44", FakeDevice())
    assert gateway.outlive(500) == 1030
    # The knob goes no further than a week.
    assert gateway.outlive(604_800) is None
    assert started("nftables-nat44", FakeDevice(), DeviceOptions(udp_timeout=100)).outlive(500) is None


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_a_gateway_carries_every_transport_that_it_names_on_all_its_devices(name: str) -> None:
    """ds-lite named ICMP, and its tunnel ends did not."""
    recipe = load(name)
    assert [recipe.carrying(transport).name for transport in recipe.transports] == [name] * len(recipe.transports)


@pytest.mark.parametrize(("transport", "files"), [("udp", "udp_timeout"), ("icmp", "icmp"), ("tcp", "tcp_timeout")])
def test_each_transport_has_time_outs_of_its_own(transport: str, files: str) -> None:
    for gateway in ("nftables-nat44", "464xlat-tayga"):
        recipe = Bench(ask("throughput", gateway, {"transport": transport, "connections": 100}).cell).recipe
        for one in (recipe, recipe.of_devices(recipe.length)[recipe.holder]):
            assert one.knobs.udp_timeout is not None
            assert all(f"nf_conntrack_{files}" in path for path in one.knobs.udp_timeout.paths)


@pytest.mark.parametrize(
    ("transport", "state", "setting", "least"),
    [
        ("udp", "established", "udp-timeout", 120),
        ("icmp", "established", "icmp-timeout", 1),
        ("tcp", "established", "tcp-est-timeout", 7200),
        ("tcp", "half-open", "tcp-trans-timeout", 240),
        ("tcp", "fin", "tcp-trans-timeout", 240),
        ("tcp", "rst", "tcp-trans-timeout", 240),
    ],
)
def test_a_knob_of_snippets_is_that_of_the_test_frames_and_of_the_state(
    transport: Transport, state: TcpState, setting: str, least: int
) -> None:
    # A longer time-out than needed would be kept.
    device = FakeDevice(answers={"global display": said("10")})
    plan = replace(PLAN, state=state, phase1_seconds=5, after_seconds=5)
    gateway = started(load("jool-nat64").carrying(transport), device, plan=plan)
    knob = gateway.recipe.knobs.in_state(state).udp_timeout
    assert knob is not None
    assert knob.minimum == least
    updates = [(text, given["NG_VALUE"]) for text, given in device.asked if "global update" in text]
    # Twice the trial and 30 s, or the least that the gateway accepts.
    assert [(f" {setting} " in text, value) for text, value in updates] == [(True, str(max(least, 50)))]


def test_all_time_outs_include_those_of_udp_unless_they_were_chosen(golden: Golden) -> None:
    assert DeviceOptions(timeouts=10).named() == {"timeouts": 10, "udp_timeout": 10}
    assert DeviceOptions(timeouts=10, udp_timeout=60).named() == {"timeouts": 10, "udp_timeout": 60}
    knobs = load("nftables-nat44").knobs.named()
    assert set(knobs["udp_timeout"].paths) < set(knobs["timeouts"].paths)
    with golden.raises(UsageError):
        choose(load("jool-nat64"), DeviceDemand(connections=1000, phase1_seconds=10), DeviceOptions(timeouts=10), {})


@pytest.mark.usefixtures("machine")
def test_the_longest_trial_is_outlived_as_far_as_the_knob_goes() -> None:
    recipe = load("nftables-nat44")
    for longest, chosen in ((0.0, 50), (100.0, 230), (1e6, 604_800)):
        demand = DeviceDemand(connections=1000, phase1_seconds=10, longest_seconds=longest)
        assert choose(recipe, demand, DeviceOptions(), {"udp_timeout": 30})["udp_timeout"] == chosen
        refuse_unfit(recipe, demand, {"udp_timeout": chosen})


def test_a_pair_has_a_bucket_and_room_for_each_of_a_connections_two_entries() -> None:
    demand = DeviceDemand(connections=4096, phase1_seconds=1)
    found = {"hash_size": 1024}
    names = "nftables-nat44", "conntrackd-pair-nat44"
    sizes = [choose(load(name), demand, DeviceOptions(), found)["hash_size"] for name in names]
    assert sizes == [4096, 8192]
    assert octets_needed(load("conntrackd-pair-nat44"), demand, {}, {}) == 4096 * 2 * 384


@pytest.mark.usefixtures("machine")
def test_the_smallest_time_out_is_the_setting_and_the_last_one_is_of_frames_both_ways() -> None:
    gateway = started("nftables-nat44", FakeDevice(answers={BOTH: said("30\n120")}), plan=replace(PLAN, as_found=True))
    assert gateway.settings().knobs["udp_timeout"] == 30
    assert gateway.replied_udp_timeout() == Chain([gateway]).replied_udp_timeout() == 120
    assert Gateway(load("linux-ipv4"), FakeDevice()).replied_udp_timeout() is None


#: What reads both time-outs of UDP.
BOTH = "cat /proc/sys/net/netfilter/nf_conntrack_udp_timeout /proc"


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("transport", "chosen", "own"), [("udp", None, 120), ("udp", 300, None), ("tcp", None, None)])
def test_the_time_out_before_natgauge_raised_it_is_known(
    transport: Transport, chosen: int | None, own: int | None
) -> None:
    device, plan = FakeDevice(answers={BOTH: said("30\n120")}), replace(PLAN, transport=transport)
    recipe = load("nftables-nat44").carrying(transport)
    gateway = started(recipe, device, DeviceOptions(udp_timeout=chosen), plan)
    assert gateway.settings().own_timeout == own
    device.answers = {BOTH: said("500\n500")}
    gateway.fit(plan)
    assert gateway.settings().own_timeout == own


@pytest.mark.usefixtures("machine")
def test_wishes_win_and_are_checked(golden: Golden) -> None:
    recipe = load("nftables-nat44")
    assert choose(recipe, PLAN, DeviceOptions(table_size=2000), {"table_size": 65536}) == {"table_size": 2000}
    for wishes in (DeviceOptions(hash_size=12), DeviceOptions(udp_timeout=0), DeviceOptions(udp_timeout=604_801)):
        with golden.raises(UsageError):
            Gateway(recipe, FakeDevice(), wishes=wishes).prepare(PLAN)
    with golden.raises(UsageError):
        choose(load("linux-ipv4"), PLAN, DeviceOptions(table_size=5), {})


@pytest.mark.parametrize(
    ("name", "facts", "values", "fits"),
    [
        ("nftables-nat44", {"connections": 1000}, {"table_size": 999}, False),
        ("nftables-nat44", {"connections": 1000}, {"table_size": 1000}, True),
        ("nftables-nat44", {"phase1_seconds": 30.0}, {"udp_timeout": 30}, False),
        ("nftables-nat44", {"phase1_seconds": 29.9}, {"udp_timeout": 30}, True),
        ("nftables-nat44", {"phase1_seconds": 5, "after_seconds": 25}, {"udp_timeout": 30}, False),
        # A short time-out is named with the state of its connections.
        (
            "nftables-nat44",
            {"phase1_seconds": 30, "transport": "tcp", "state": "half-open"},
            {"udp_timeout": 30},
            False,
        ),
        ("nftables-nat44", {"connections": 129_025, "remote_endpoints": 2}, {}, False),
        ("nftables-nat44", {"connections": 129_024, "remote_endpoints": 2}, {}, True),
        ("nftables-nat44", {"connections": 70_000}, {}, False),
        # 100,000 connections of 4 addresses to 4 ports passed, and Jool's pool has 64,512 ports.
        ("jool-nat64", MANY, {}, False),
        ("jool-nat64", {**MANY, "inside_endpoints": 64_512}, {}, True),
        ("jool-nat64", {**MANY, "outside_addresses": 2}, {}, True),
        ("jool-nat64", {**MANY, "fills_table": True}, {}, True),
        ("nftables-nat44", MANY, {}, True),
        # A port for each connection, whatever the endpoints.
        *(
            (name, {"connections": number, "remote_endpoints": 10, "inside_endpoints": 6_000}, {}, number == 28_000)
            for name in ("ebpf-nat64", "gvproxy-nat44")
            for number in (60_000, 28_000)
        ),
        ("tayga-nat64", {"connections": 5_000_000, "source_addresses": 4_194_302, "remote_endpoints": 1000}, {}, False),
        ("pasta-nat44", {"connections": 70_000, "inside_endpoints": 70_000}, {}, False),
        ("vpp-det44", {"connections": 9_000}, {}, False),
        ("cgn-port-blocks", {"source_addresses": 70_000}, {}, False),
        ("cgn-port-blocks", {"connections": 60_000}, {}, False),
    ],
)
def test_plans_that_do_not_fit_are_refused_with_the_numbers(
    name: str, facts: dict[str, Any], values: dict[str, int], golden: Golden, *, fits: bool
) -> None:
    plan = DeviceDemand(**{"connections": 1, "phase1_seconds": 1, **facts})
    if fits:
        refuse_unfit(load(name), plan, values)
        return
    with golden.raises(UsageError) as refusal:
        refuse_unfit(load(name), plan, values)
    # What there is one of is told in the singular.
    assert not re.search(
        r"(?<![\d.,])1 (\w+ )?(addresses|blocks|connections|endpoints|hosts|ports)\b", str(refusal.value)
    )


@pytest.mark.parametrize(
    ("sharing", "found", "needed", "short"),
    [
        (1, {"hash_size": 2**18}, 384_000_000 + 8 * (2**20 - 2**18), 476 * 2**20),
        # Gateways that share a table need memory for the entries of all.
        (4, {"hash_size": 2**20}, 4 * 384_000_000, 2**30),
    ],
)
def test_memory_is_reckoned_before_it_is_gone(
    sharing: int, found: dict[str, int], needed: int, short: int, golden: Golden
) -> None:
    recipe, plan = load("nftables-nat44"), DeviceDemand(connections=1_000_000, phase1_seconds=1, sharing=sharing)
    assert octets_needed(recipe, plan, {"hash_size": 2**20}, found) == needed
    refuse_short_memory(recipe, plan, needed, 2**32)
    with golden.raises(HostError):
        refuse_short_memory(recipe, plan, needed, short)
    assert octets_needed(load("linux-ipv4"), plan, {}, {}) == 0


def test_a_table_of_its_own_holds_the_entries_of_one_gateway() -> None:
    recipe, alone = load("vpp-nat44-ed"), DeviceDemand(connections=1_000_000, phase1_seconds=1, held_at_most=9_000_000)
    both = alone, replace(alone, sharing=4)
    assert [octets_needed(recipe, plan, {}, {}) for plan in both] == [400_000_000] * 2
    assert len({limits.within_memory(recipe, plan, 2**32).held_at_most for plan in both}) == 1


# What people get to read who write recipes.

GOOD = (FOLDER / "nftables-nat44.toml").read_text().replace("nftables-nat44", "mine")


def broken(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


@pytest.mark.parametrize(
    "change",
    [
        broken('kind = "nat44"', 'kind = "nat46"'),
        broken('"translated"', '"mapped"'),
        broken('kind = "nat44"', 'kind = "siit"'),
        lambda text: text.replace('"nat44"', '"siit"').replace('initiator_family = "ipv4', 'initiator_family = "ipv6'),
        broken("stateful = true", 'stateful = "yes"'),
        broken("stateful = true", "stateful = true\ncolour = 1"),
        broken('name = "mine"', 'name = "other"'),
        broken('responder_family = "ipv4"', 'responder_family = "ipv6"'),
        broken('"nftables-masquerade"', '"nftable-masq"'),
        broken('"linux-ipv4", "conntrack", ', '"linux-ipv4", '),
        broken("NFT_FAMILY", "NG_FAMILY"),
        broken("= true", "="),
        lambda text: text + "\n[verbs]\ncheck = 3\n",
        lambda text: text + '\n[knobs.table_size]\npaths = ["/etc/passwd"]\n',
        lambda text: text + "\n[limits]\npool_ports = [9, 8]\n",
        lambda text: text + '\n[knobs.udp_timeout.snippets_of.tcp]\nread = "true"\n',
        lambda text: text + '\n[emptyings.restart]\nrun = ["true"]\n',
    ],
)
def test_a_broken_recipe_is_refused_in_one_line(tmp_path: Path, change: Callable[[str], str], golden: Golden) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(change(GOOD))
    with golden.raises(UsageError) as refusal:
        load(path)
    assert "\n" not in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_recipes_of_ones_own_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gateways").mkdir()
    (tmp_path / "more").mkdir()
    (tmp_path / "gateways" / "mine.toml").write_text(GOOD)
    (tmp_path / "more" / "theirs.toml").write_text(GOOD.replace("mine", "theirs"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "more"))
    assert load("mine").origin == Path("gateways/mine.toml")
    assert load("theirs").kind == "nat44"
    assert {"mine", "theirs", "linux-ipv4"} <= set(available())


def test_no_recipe_silently_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """A file in the folder that one stands in was run as root in the place of natgauge's own."""
    (tmp_path / "gateways").mkdir()
    (tmp_path / "gateways" / "linux-ipv4.toml").write_text(GOOD.replace("mine", "linux-ipv4"))
    monkeypatch.chdir(tmp_path)
    with golden.raises(UsageError):
        load("linux-ipv4")
    assert load("gateways/linux-ipv4.toml").kind == "nat44"
    assert len(available()["linux-ipv4"]) == 2
    # The same folder named twice holds the same recipes.
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gateways"))
    assert len(available()["linux-ipv4"]) == 2


def test_a_recipe_has_the_same_digest_wherever_it_lies_and_its_files_are_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "mine.toml").write_text(GOOD)
    here, there = load(tmp_path / "mine.toml"), load(tmp_path / "more" / "mine.toml")
    assert digest(here) == digest(there)
    assert digest(here) != digest(here.model_copy(update={"environment": {"EXTRA": "1"}}))
    (tmp_path / "rules.nft").touch()
    for snippet in ('nft -f "$NG_RECIPE_FOLDER"/rules.nft', 'nft -f "$NG_RECIPE_FOLDER/rules.nft"'):
        assert list(digests(json.dumps(snippet), tmp_path)) == ["rules.nft"]


def test_a_recipe_with_another_rule_set_is_another_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in (
        ("rules.nft", "# one\n"),
        ("mine.toml", f"{GOOD}\n[verbs]\nstop = 'nft -f \"$NG_RECIPE_FOLDER/rules.nft\"'"),
    ):
        (tmp_path / name).write_text(content)
    before = load("./mine.toml")
    assert as_played(before)["files"] == {"rules.nft": hashlib.sha256(b"# one\n").hexdigest()}
    whole = digest(before)
    (tmp_path / "rules.nft").write_text("# one more\n")
    assert digest(load("./mine.toml")) != whole
    (tmp_path / "rules.nft").unlink()
    assert "files" not in as_played(load("./mine.toml"))


@pytest.mark.parametrize("name", ["", "../part", "x" * 5000], ids=["empty", "path", "long"])
def test_a_fragment_has_a_name_and_no_path(tmp_path: Path, name: str, golden: Golden) -> None:
    """A recipe finds the files of the folder `common` only."""
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / ".toml").touch()
    (tmp_path / "part.toml").touch()
    (tmp_path / "own.toml").write_text(f'extends = ["{name}"]')
    with golden.raises(UsageError):
        load(tmp_path / "own.toml")


@pytest.mark.parametrize("name", ["nftables-nat4", "nowhere.toml"])
def test_an_unknown_name_gets_its_near_misses(name: str, golden: Golden) -> None:
    with golden.raises(UsageError):
        load(name)


def test_the_page_tells_every_verb_variable_and_knob(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "recipes.md").read_text()
    for word in (*VERBS, *VARIABLES, *Knobs.model_fields, *Recipe.model_fields, *GatewayLimits.model_fields):
        if word != "origin":
            assert f"`{word}`" in page or f"`${word}`" in page, word
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example
    path = tmp_path / "nftables-snat44.toml"
    path.write_text(example[1])
    assert load(path).verbs.pieces("start")[-1].startswith("nft")


# The global settings themselves.


def test_a_machine_setting_goes_back_to_what_was_found_first_and_keeps_files_of_one_name_apart(tmp_path: Path) -> None:
    paths, memory = [tmp_path / folder / "max" for folder in "ab"], Memory()
    for path, value in zip(paths, ("100", "900"), strict=True):
        path.parent.mkdir()
        path.write_text(value)
    setting = LocalSetting("table_size", paths, memory=lambda: memory)
    assert setting.read() == 100, "the smallest counts"
    setting.write(1000)
    setting.write(950)
    assert setting.values() == dict.fromkeys(paths, 950)
    setting.release()
    assert paths[0].read_text() == "950", "the lab restores it"
    memory.undo()
    assert [path.read_text() for path in paths] == ["100", "900"]


@pytest.mark.usefixtures("machine")
def test_files_of_one_name_are_reported_by_their_paths() -> None:
    recipe = load("nftables-nat44")
    timeout = recipe.knobs.udp_timeout
    assert timeout
    alike = ("/proc/sys/net/netfilter/a/age", "/proc/sys/net/netfilter/b/age")
    knobs = recipe.knobs.model_copy(update={"udp_timeout": timeout.model_copy(update={"paths": alike})})
    files = started(recipe.model_copy(update={"knobs": knobs}), FakeDevice()).settings().files
    assert {*alike, "nf_conntrack_max"} <= files.keys()


def test_lowering_waits_for_nobody_but_is_refused_while_another_relies(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "limit"
    path.write_text("100\n")
    one, other = (LocalSetting("table_size", [path], memory=Memory) for _ in range(2))
    one.rely()
    other.write(150)
    with golden.raises(HostError):
        other.write(50)
    assert path.read_text() == "150"
    one.release()
    other.write(50)
    with pytest.raises(HostError, match="has lowered it"):
        one.rely()


def test_a_setting_the_kernel_lacks_is_told_with_its_module(tmp_path: Path) -> None:
    knob = LocalSetting("table_size", [tmp_path / "limit"], module="natgauge_has_no_such_module", memory=Memory)
    assert not knob.available()
    with pytest.raises(HostError, match="modprobe natgauge_has_no_such_module"):
        knob.read()


def test_a_folder_with_a_recipe_is_a_gateway_by_its_path_and_never_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "gateway.toml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    assert load("./mine").name == load("mine/gateway.toml").name == "mine"
    assert load(tmp_path / "mine").origin == tmp_path / "mine" / "gateway.toml"
    (tmp_path / "mine" / "gateway.toml").rename(tmp_path / "mine" / "other.toml")
    for asked in ("mine", "./mine", "./mine/other.toml"):
        with pytest.raises(UsageError) as refused:
            load(asked)
        assert "\n" not in str(refused.value)


# Real servers as far side.


#: What lab and measurement give a server; a snippet may use nothing else.
SERVER_VARIABLES = {
    "NG_WORK", "NG_PORT", "NG_CPUS", "NG_GATEWAY_MAC", "NG_FAMILY", "NG_ADDRESSES", "NG_GATEWAY", "NG_ZONE_NAME",
    "NG_ZONE",
}  # fmt: skip
SERVERS = list(far_side.available())


@pytest.mark.parametrize("name", SERVERS)
def test_each_file_of_a_server_names_its_package_and_uses_what_it_is_given(name: str, tmp_path: Path) -> None:
    server = far_side.load(name)
    assert all(need.package for need in server.needs)
    assert not server.verbs.empty
    assert not server.verbs.count
    snippets = [
        *(piece for verb in ("check", "version", "start", "faults", "stop") for piece in server.verbs.pieces(verb)),
        *(process.command for process in server.process),
    ]
    for snippet in snippets:
        assert set(re.findall(r"NG_[A-Z0-9_]+", snippet)) <= SERVER_VARIABLES
        file = tmp_path / "snippet"
        file.write_text(f"#!/bin/sh -eu\n{snippet}\n")
        # SC2154: variables that the lab sets. SC2086, SC2046: lists of words.
        checked = ["shellcheck", "--exclude=SC2154,SC2086,SC2046", str(file)]
        done = subprocess.run(checked, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_zone_answers_any_name_with_the_testers_own_addresses() -> None:
    zone = dns.zone.from_text(far_side.zone(), origin=f"{far_side.ZONE_NAME}.", relativize=False)
    engine = (ROOT / "engine" / "src" / "dns.rs").read_text()
    assert f'ZONE: &str = "{far_side.ZONE_NAME}"' in engine
    parents = re.search(r'PARENTS: \[&str; 2\] = \["(\w+)", "(\w+)"\]', engine)
    assert parents is not None
    for parent in parents.groups():
        name = f"*.{parent}.{far_side.ZONE_NAME}."
        answers = {str(record) for kind in ("A", "AAAA") for record in zone.find_rdataset(name, kind)}
        assert answers == {"198.18.0.53", "2001:2::53"}
    of_dns64 = dns.zone.from_text(far_side.zone(with_aaaa=False), origin=f"{far_side.ZONE_NAME}.", relativize=False)
    names = [f"*.{parent}.{far_side.ZONE_NAME}." for parent in parents.groups()]
    assert [of_dns64.get_rdataset(name, "AAAA") is not None for name in names] == [False, True]
    octets = re.search(r"ADDRESS6: \[u8; 16\] = \[(.*)\]", engine)
    assert octets is not None
    assert bytes(int(one, 0) for one in octets[1].split(", ")) == ip_address(far_side.ADDRESS6).packed


# Recipes of rule sets


@pytest.mark.parametrize(
    "own", ["lan0", "br-lan.7", "eth*", "192.168.1.0/24", "203.0.113.1", "a+b", "x$y", "w|z", "{q}", "2001:db8::/32"]
)
def test_an_edit_of_a_recipe_can_be_read_back(own: str) -> None:
    snippet = f"sed -E {edit(own, 'NG_INSIDE')} {edit('wan0', 'NG_OUTSIDE')} file"
    assert edits_in(snippet) == {own: "NG_INSIDE", "wan0": "NG_OUTSIDE"}


def test_what_a_recipe_leaves_unmatched_is_what_its_warning_named(
    capsys: pytest.CaptureFixture[str], in_an_empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_an_empty_folder.is_dir()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert new(*BESIDE, text=LOSING) == 0
    found = unmatched(load("./gateway.toml"))
    assert found == ["guests", "192.168.1.51", "192.168.1.52"]
    warned = capsys.readouterr().err
    assert all(name in warned for name in found)
    Path("router.conf").write_text(LOSING.replace("$LAN", "192.168.2.0/24"))
    assert unmatched(load("./gateway.toml")) == [*found, "192.168.2.0/24"]
    # Nothing is known of rules that have variables of their own.
    assert unmatched(load("nftables-nat44")) == []

# SPDX-License-Identifier: Apache-2.0
"""Settings of the tester's and the device's machine: looked at, set for measuring, put back; on made-up machines."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_labs import Machine
from tests.unit.made_machine import Made, MadeMachine

from natgauge.cli import run


@pytest.fixture
def made(tmp_path: Path, machine: Machine) -> Iterator[Made]:
    """Which is taken for this machine."""
    del machine
    made = Made(tmp_path)
    with made.as_this_machine():
        yield made


def test_what_is_found_what_is_better_and_why(made: Made, golden: Golden) -> None:
    looked = {(one.name, one.at): one for one in made.check("eth1")}
    better = {key: (one.value, one.better) for key, one in looked.items() if one.better is not None}
    golden(better)
    assert looked["rss", "eth1 udp6"].state == "ok"
    # The driver does not let go of it.
    assert looked["offloads", "eth1 rx-gro-hw"].state == "ok"
    assert "50 us" in looked["coalescing", "eth1"].what
    assert all(one.cause and one.source for one in looked.values())
    # Without names every port with a card is looked at; a veth has none.
    assert {one.at.split()[0] for one in made.check()} >= {"eth0", "eth1"}
    assert not [one for one in made.check() if one.at.startswith("veth")]


def test_everything_is_set_and_put_back_as_it_was_found(made: Made) -> None:
    before = made.state()
    done = made.tune("eth1")
    assert {one.done for one in done.values()} == {"set"}
    assert made.ports["eth1"]["pause"] == {"autoneg": "off", "rx": "off", "tx": "off"}
    assert made.ports["eth0"] == before["eth0"]
    assert not [one for one in made.check("eth1") if one.better is not None]
    # A second time nothing is left to set, and what was found first is still known.
    assert made.tune("eth1") == {}
    back = made.restore()
    assert {one.done for one in back.values()} == {"restored"}
    assert list(back) == list(done)
    assert made.state() == before
    assert not made.path.exists()
    assert made.restore() == {}


def test_what_is_set_again_is_put_back_as_it_was_found_first(made: Made) -> None:
    before = made.state()
    made.tune()
    (made.root / "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor").write_text("schedutil\n")
    assert made.tune() == {("governor", "cpu2"): ("set", "schedutil -> performance")}
    made.restore()
    assert made.state() == before


def test_without_ports_only_the_machine_is_set(made: Made) -> None:
    before = made.state()
    assert {knob for knob, _ in made.tune()} == {"smt", "governor"}
    # Interrupts that nobody moved are not to be put back.
    assert {knob for knob, _ in made.tuned()} == {"smt", "governor"}
    assert {port: made.ports[port] for port in made.ports} == {port: before[port] for port in made.ports}


#: What became of settings that are not as they were.
UNDONE = {"changed", "failed"}


class _KilledError(BaseException):
    """As a signal that nobody can catch, for this process."""


def test_killed_at_any_moment_everything_is_put_back(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each change, and after it before it is noted what the driver made of it."""
    before = made.state()
    moments = 0
    write, tell = MadeMachine.write, MadeMachine.set_port

    def until(limit: int) -> int:
        """Tune, killed at this moment; how many there were."""
        passed = 0

        def moment() -> None:
            nonlocal passed
            passed += 1
            if passed == limit:
                raise _KilledError

        def around(act: Any) -> Any:
            def done(*arguments: Any) -> None:
                moment()
                act(*arguments)
                moment()

            return done

        with monkeypatch.context() as patched:
            patched.setattr(MadeMachine, "write", around(write))
            patched.setattr(MadeMachine, "set_port", around(tell))
            with suppress(_KilledError):
                made.tune("eth1")
        return passed

    moments = until(0)
    made.restore()
    assert made.state() == before
    assert moments == 2 * 13
    for limit in range(1, moments + 1):
        until(limit)
        assert made.state() != before or limit == 1
        assert not UNDONE & {one.done for one in made.restore().values()}
        assert made.state() == before, limit


@pytest.fixture
def moving(made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A machine whose kernel moves interrupts: from threads that go to the others, and to all cores with new queues."""
    write, tell = MadeMachine.write, MadeMachine.set_port

    def move(cores: str) -> None:
        for number in (30, 31):
            (made.root / f"proc/irq/{number}/smp_affinity_list").write_text(f"{cores}\n")

    def written(machine: MadeMachine, path: str, value: str) -> None:
        write(machine, path, value)
        if path.endswith("smt/control") and value == "off":
            move("0-1")

    def told(machine: MadeMachine, port: str, part: Any, values: Mapping[str, str]) -> None:
        tell(machine, port, part, values)
        if part == "queues":
            move("0-3")

    monkeypatch.setattr(MadeMachine, "write", written)
    monkeypatch.setattr(MadeMachine, "set_port", told)
    move("2-3")
    return made


def test_interrupts_that_threads_and_queues_move_are_put_back_after_these(moving: Made) -> None:
    before = moving.state()
    assert {"smt", "queues", "rss", "irq-affinity"} <= {knob for knob, _ in moving.tune("eth1")}
    back = moving.restore()
    assert {one.done for one in back.values()} == {"restored"}
    assert moving.state() == before
    knobs = list(dict.fromkeys(knob for knob, _ in back))
    assert (knobs[0], knobs[-1]) == ("smt", "irq-affinity")
    assert knobs.index("queues") < knobs.index("rss")
    assert not moving.path.exists()


def test_interrupts_of_cards_that_are_not_tuned_are_put_back_with_the_threads(moving: Made) -> None:
    before = moving.state()
    moving.tune()
    assert moving.state()["proc/irq/30/smp_affinity_list"] == "0-1"
    moving.restore()
    assert moving.state() == before


@pytest.mark.parametrize(("owner", "method"), [(MadeMachine, "write"), (MadeMachine, "set_port")])
@pytest.mark.parametrize(("act", "is_late"), [("tune", True), ("restore", True), ("restore", False)])
def test_killed_before_or_when_threads_or_queues_had_moved_the_interrupts_these_are_put_back(  # noqa: PLR0917
    moving: Made,
    monkeypatch: pytest.MonkeyPatch,
    owner: type[MadeMachine],
    method: str,
    act: str,
    is_late: bool,  # noqa: FBT001 - a parameter
) -> None:
    before = moving.state()
    whole = getattr(owner, method)

    def killed(*arguments: Any) -> None:
        if is_late:
            whole(*arguments)
        raise _KilledError

    if act == "restore":
        moving.tune("eth1")
    with monkeypatch.context() as patched:
        patched.setattr(owner, method, killed)
        with pytest.raises(_KilledError):
            _ = moving.tune("eth1") if act == "tune" else moving.restore()
    assert moving.state() != before
    assert not UNDONE & {one.done for one in moving.restore().values()}
    assert moving.state() == before


def test_what_a_port_had_that_is_not_there_is_kept_until_it_is_forgotten_by_force(made: Made) -> None:
    """It may be in another namespace, or its driver may come back."""
    before = made.state()
    made.tune("eth1")
    port, elsewhere = made.root / "sys/class/net/eth1", made.root / "elsewhere"
    port.rename(elsewhere)
    back = made.restore()
    assert {key.split()[0] for (_, key), one in back.items() if one.done == "failed"} == {"eth1"}
    assert {one.done for (_, key), one in back.items() if not key.startswith("eth1")} == {"restored"}
    assert "--force" in back["pause", "eth1"].text
    elsewhere.rename(port)
    assert {one.done for one in made.restore().values()} == {"restored"}
    assert made.state() == before
    made.tune("eth1")
    port.rename(elsewhere)
    assert {one.done for one in made.restore(force=True).values()} == {"restored", "gone"}
    assert not made.path.exists()


def test_a_port_below_the_one_with_the_default_route_is_left_alone(made: Made, ran: Ran, golden: Golden) -> None:
    """A bond, a bridge or a VLAN above it has the route."""
    made.change("eth0", uplink=False)
    made.change("eth1", uplink=True)
    before = made.state()
    golden(ran(["host", "tune", "--ports", "eth1"], status=2).err)
    assert made.state() == before
    looked = [one for one in made.check("eth0", "eth1") if one.better is not None]
    mends = {(one.at.split()[0], one.mend) for one in looked if one.at.startswith("eth")}
    assert mends == {("eth1", None), ("eth0", "natgauge host tune --ports eth0")}


@pytest.mark.parametrize(
    ("most", "now", "better"),
    [
        ({"rx": 8, "tx": 8, "combined": 8}, {"rx": 0, "tx": 0, "combined": 2}, "combined 4"),
        ({"rx": 8, "tx": 8, "combined": 8}, {"rx": 2, "tx": 2, "combined": 0}, "rx 4 tx 4"),
        ({"rx": 8, "tx": 8, "combined": 0}, {"rx": 2, "tx": 2, "combined": 0}, "rx 4 tx 4"),
        ({"rx": 0, "tx": 0, "combined": 8}, {"rx": 0, "tx": 0, "combined": 2}, "combined 4"),
    ],
)
def test_queues_of_the_kind_that_a_port_has_are_changed_and_no_others(
    made: Made, most: dict[str, int], now: dict[str, int], better: str
) -> None:
    """A driver that could have both kinds refuses them together."""
    made.change("eth1", **{"most queues": most, "queues": now})
    before = made.state()
    assert made.tune("eth1")["queues", "eth1"].text.endswith(f"-> {better}")
    made.restore()
    assert made.state() == before


@pytest.mark.parametrize(("most", "better"), [(8, 4), (4, 2), (2, 1)])
def test_queues_of_a_driver_that_runs_programs_with_half_of_them_stop_there(made: Made, most: int, better: int) -> None:
    """Tuned to all queues, an ENA refused every XDP program."""
    (made.root / "sys/class/net/eth1/device/uevent").write_text("DRIVER=ena\nPCI_ID=1D0F:EC20\n")
    made.change("eth1", **{"most queues": {"combined": most}, "queues": {"combined": most}})
    looked = {(one.name, one.at): one for one in made.check("eth1")}
    assert looked["queues", "eth1"].better == f"combined {better}"


def test_what_somebody_else_changed_is_told_and_left_alone(made: Made) -> None:
    before = made.state()
    made.tune("eth1")
    governor = made.root / "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"
    governor.write_text("schedutil\n")
    back = made.restore()
    assert back["governor", "cpu2"].done == "changed"
    for word in ("schedutil", "performance", "powersave"):
        assert word in back["governor", "cpu2"].text
    assert {one.done for key, one in back.items() if key != ("governor", "cpu2")} == {"restored"}
    assert governor.read_text() == "schedutil\n"
    assert made.tuned() == [("governor", "cpu2")]
    assert made.restore(force=True)["governor", "cpu2"].done == "restored"
    assert made.state() == before


def test_what_was_put_back_by_hand_or_is_gone_is_no_fault(made: Made) -> None:
    made.tune()
    (made.root / "sys/devices/system/cpu/smt/control").write_text("on")
    shutil.rmtree(made.root / "sys/devices/system/cpu/cpu3/cpufreq")
    back = made.restore()
    assert back["smt", "machine"].done == "as found"
    assert back["governor", "cpu3"].done == "gone"
    assert not made.path.exists()


def test_what_a_driver_refuses_is_told_and_the_rest_is_set(made: Made) -> None:
    made.change("eth1", refuses="pause", deaf="coalescing")
    done = made.tune("eth1")
    assert done["pause", "eth1"].done == "failed"
    assert "Operation not supported" in done["pause", "eth1"].text
    assert done["coalescing", "eth1"].done == "failed"
    assert {one.done for (knob, _), one in done.items() if knob not in {"pause", "coalescing"}} == {"set"}
    tuned = {knob for knob, _ in made.tuned()}
    assert "queues" in tuned
    assert not tuned & {"pause", "coalescing"}


def test_interrupts_that_have_gone_or_of_queues_that_are_apart_are_left_alone(made: Made) -> None:
    for number, core in ((30, 1), (31, 0)):
        (made.root / f"proc/irq/{number}/smp_affinity_list").write_text(f"{core}\n")
    assert not [one for one in made.check("eth1") if one.name == "irq-affinity" and one.better]
    (made.root / "proc/irq/30/smp_affinity_list").write_text("0-3\n")
    (made.root / "proc/irq/31/smp_affinity_list").unlink()
    (made.root / "proc/irq/31/smp_affinity_list").mkdir()
    assert {key for knob, key in made.tune("eth1") if knob == "irq-affinity"} == {"eth1 irq 30"}


def test_interrupts_named_after_the_card_are_found(made: Made, tmp_path: Path) -> None:
    card = tmp_path / "root/sys/devices/0000:05:00.0"
    card.mkdir(parents=True)
    shutil.rmtree(made.root / "sys/class/net/eth0/device")
    (made.root / "sys/class/net/eth0/device").symlink_to(card)
    looked = made.check("eth0")
    assert [one.at for one in looked if one.name == "irq-affinity"] == ["eth0 irq 33"]


def test_a_program_that_moves_interrupts_is_named_and_one_that_ends_meanwhile_passed_over(made: Made) -> None:
    (made.root / "proc/77").mkdir()
    (made.root / "proc/77/comm").write_text("irqbalance\n")
    (made.root / "proc/78/comm").mkdir(parents=True)
    told = [one.what for one in made.check("eth1") if one.name == "irq-affinity"]
    assert told
    assert all("systemctl stop irqbalance" in one for one in told)


def test_rates_that_a_driver_rounds_are_still_ours(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    tell = MadeMachine.set_port

    def rounded(self: MadeMachine, port: str, part: Any, values: Mapping[str, str]) -> None:
        tell(self, port, part, {name: "3" if value == "4" else value for name, value in values.items()})

    monkeypatch.setattr(MadeMachine, "set_port", rounded)
    assert made.tune("eth1")["queues", "eth1"].text == "combined 2 -> combined 3"
    assert made.restore()["queues", "eth1"].done == "restored"


@pytest.mark.parametrize("ports", ["eth0", "eth9", "", "../eth1", "-eth1", "eth1,eth1", "eth1,"])
def test_wrong_ports_are_refused_before_anything_is_touched(made: Made, ports: str, ran: Ran, golden: Golden) -> None:
    before = made.state()
    golden(ran(["host", "tune", f"--ports={ports}"], status=2).err)
    assert made.state() == before
    assert not made.path.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1, "items": [{"knob": 1}]}', '{"version": 2, "items": []}'])
def test_a_damaged_file_is_refused_in_one_line_and_nothing_is_touched(made: Made, text: str, ran: Ran) -> None:
    made.path.parent.mkdir(parents=True)
    made.path.write_text(text)
    before = made.state()
    for act in ("tune", "restore"):
        (said,) = ran(["host", act], status=3).err.splitlines()
        assert re.search(r"found.json: (is damaged|version)", said)
    assert made.state() == before


def test_only_one_process_changes_settings_at_a_time(
    made: Made, monkeypatch: pytest.MonkeyPatch, ran: Ran, golden: Golden
) -> None:
    write, said = MadeMachine.write, list[str]()

    def meanwhile(machine: MadeMachine, path: str, value: str) -> None:
        if not said:
            said.append("")
            said[0] = ran(["host", "tune"], status=3).err
        write(machine, path, value)

    monkeypatch.setattr(MadeMachine, "write", meanwhile)
    assert made.tune()
    golden(said[0])


def test_a_virtual_machine_has_nothing_to_set(made: Made) -> None:
    shutil.rmtree(made.root / "sys/devices/system/cpu")
    of_machine = [one for one in made.check() if not (one.at or "").startswith("eth")]
    assert of_machine
    assert {(one.state, one.value) for one in of_machine} == {("ok", None)}
    assert made.tune() == {}


def test_the_commands(made: Made, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    before = made.state()
    assert run(["host", "check", "--ports", "eth1"]) == 1
    shown = capsys.readouterr().out
    golden(shown)
    assert "RFC 2544 section 26.1" in shown
    assert run(["host", "tune", "--ports", "eth1"]) == 0
    capsys.readouterr()
    assert run(["host", "check", "--ports", "eth1"]) == 0
    assert "natgauge host restore" in capsys.readouterr().out
    assert run(["host", "check", "--ports", "eth1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {one["state"] for one in document["findings"]} == {"ok"}
    assert len(document["tuned"]) == len(json.loads(made.path.read_text())["items"]) > 0
    (made.root / "sys/devices/system/cpu/smt/control").write_text("forceoff")
    assert run(["host", "restore"]) == 3
    golden(capsys.readouterr().out)
    assert run(["host", "restore", "--force"]) == 0
    assert made.state() == before
    assert run(["host", "restore"]) == 0
    golden(capsys.readouterr().out)
    assert run(["host", "tune", "--ports", "eth0"]) == 2
    assert run(["host", "tune", "--ports", "eth1,"]) == 2


@pytest.mark.parametrize("command", ["tune", "restore"])
@pytest.mark.parametrize("user", ["lab", "ports"])
def test_nothing_is_changed_under_a_lab_or_ports_in_use(  # noqa: PLR0917 - one argument per fixture
    user: str, command: str, made: Made, machine: Machine, ran: Ran, golden: Golden
) -> None:
    """A lab of two ports has no register."""
    before = made.state()
    if user == "lab":
        let_go = machine.use("mine", machine.root / "a")
    else:
        # A lab of such a name is no port.
        machine.lock("port-1-eth1")
        let_go = machine.port("eth1")
    golden(ran(["host", command], status=3).err)
    assert made.state() == before
    let_go()
    ran(["host", command])


def test_who_may_not_change_the_machine_is_told(made: Made, machine: Machine, ran: Ran) -> None:
    del made
    machine.lacks = ("CAP_SYS_ADMIN",)
    assert "CAP_SYS_ADMIN" in ran(["host", "tune"], status=3).err
    ran(["host", "check"], status=1)

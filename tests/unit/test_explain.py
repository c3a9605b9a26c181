# SPDX-License-Identifier: Apache-2.0
"""`natgauge explain`: counters of a trial, the hop that lost its frames, and one line for what cannot be explained."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import kept_as, kept_trials, made, of_every_metric
from tests.unit.mutants import mutants

from natgauge.cli import run

PORTS = {
    side: {"refused": 0, "redirect_errors": 0, "rx_dropped": 0, "tx_dropped": 0} for side in ("initiator", "responder")
}
#: A result of every metric.
EVERY = of_every_metric()
#: A trial of 1000 frames of which IP received, forwarded and sent all.
ALL = {"IpInReceives": 1000, "IpForwDatagrams": 1000, "IpOutTransmits": 1000}
#: 300 of 1000 frames were not sent on: for no reason, as a table was full, and as outside ports were used up.
FEWER = {**ALL, "IpOutTransmits": 700}
FULL = {**FEWER, "conntrack drop": 300}
USED_UP = {**FULL, "conntrack insert_failed": 300}


def trial(lost: int = 0, network: Mapping[str, int] | None = None, **others: Any) -> dict[str, Any]:
    """A trial of 1000 frames of phase 1; the counters are those of the only device."""
    arrived = others.pop("arrived", {})
    phase1 = {"intended_frames": 1000, "offered_frames": 1000, "received_frames": 1000 - lost, **arrived}
    record = {
        "trial": 1,
        "verdict": "FAIL" if lost else "PASS",
        "reason": f"{lost} lost" if lost else "",
        "plan": {"connections": 1000, "phase1_rate": 20_000.0, "phase2": None},
        "dropped": {"gateway inside received": 0, "gateway outside sent": 0},
        "result": {"phase1": phase1, "ports": others.pop("ports", PORTS)},
        **others,
    }
    return record if network is None else {"network_counters": {"gateway": network}, **record}


#: From the record of a trial to what `natgauge explain --json` says of it.
Explained: TypeAlias = Callable[[Mapping[str, Any]], Any]


@pytest.fixture
def explained(tmp_path: Path, ran: Ran) -> Explained:
    folders = (tmp_path / f"one-{number}" for number in itertools.count())

    def of(record: Mapping[str, Any]) -> Any:
        folder = next(folders)
        folder.mkdir()
        return json.loads(ran(["explain", str(kept_trials(folder, record)), "--json"]).out)

    return of


def losing(said: Any) -> tuple[str, str, int, list[str]]:
    """The hop that lost the most, its device, the frames, and its counters."""
    hop = said["losing"]
    return hop["hop"], hop["device"], hop["lost"], [counter["name"] for counter in hop["counters"]]


@pytest.mark.parametrize(
    ("failed", "late", "hop"), [(1, 0, "gateway"), (2, 0, "tester in"), (1, 300, "tester in"), (None, 0, "tester in")]
)
def test_what_was_late_in_phase_2_alone_is_no_cause_of_a_failed_phase_1(
    failed: int | None, late: int, hop: str, explained: Explained
) -> None:
    """Seen: tayga dropped 1 of 20,000 frames of phase 1, and the cause was that phase 2 was late."""
    network = {**ALL, "tun tun0:nat in": 2000, "tun tun0:nat out": 1990}
    record = trial(10, network, failed_phase=failed, arrived={"late": late})
    record["result"]["phase2"] = {"initiator": {"intended_frames": 1000, "received_frames": 100, "late": 900}}
    assert losing(explained(record))[0] == hop


@pytest.mark.parametrize(
    ("network", "others", "hop", "counter"),
    [
        ({**ALL}, {"dropped": {"gateway inside card ring": 300}}, "ring", "card ring"),
        (
            {**ALL, "IpOutTransmits": 700, "conntrack drop": 300, "conntrack early_drop": 9},
            {},
            "conntrack",
            "conntrack drop",
        ),
        (
            {**ALL, "IpOutTransmits": 700, "conntrack drop": 300, "conntrack insert_failed": 300},
            {},
            "conntrack",
            "conntrack insert_failed",
        ),
        ({**ALL, "IpOutTransmits": 700}, {}, "rules", "received, but not sent"),
        (
            {**ALL, "IpOutTransmits": 700, "IpInHdrErrors": 300, "IpExtInCsumErrors": 300},
            {},
            "header",
            "IpExtInCsumErrors",
        ),
        ({**ALL}, {"arrived": {"damaged": 300}}, "out", "damaged"),
        # The gateway sends an ICMP error now and then.
        ({**ALL, "IpOutTransmits": 702, "IpOutRequests": 2, "IpExtInNoRoutes": 300}, {}, "routing", "IpExtInNoRoutes"),
        ({**ALL, "IpOutTransmits": 700, "IpInDelivers": 300, "UdpNoPorts": 300}, {}, "conntrack", "UdpNoPorts"),
        ({"Ip6InReceives": 1000, "Ip6OutTransmits": 700, "Ip6InNoRoutes": 300}, {}, "routing", "Ip6InNoRoutes"),
        ({**ALL}, {"arrived": {"late": 300}}, "tester in", "late"),
        ({}, {"device_faults": {"out_of_ports": 300}}, "gateway", "out_of_ports"),
    ],
)
def test_the_hop_that_lost_the_frames_is_named(
    network: Mapping[str, int], others: Mapping[str, Any], hop: str, counter: str, explained: Explained
) -> None:
    said = explained(trial(300, network, **others))
    named, _, lost, counters = losing(said)
    assert (named, lost, said["without_counter"]) == (hop, 300, 0)
    assert counter in counters


@pytest.mark.parametrize(("failed", "certainty"), [(1, "seen"), (2, "guess")])
def test_a_table_that_refuses_is_only_guessed_where_no_connection_was_to_open(
    failed: int, certainty: str, explained: Explained
) -> None:
    record = trial(300, FULL, failed_phase=failed)
    sent = {"intended_frames": 1000, "offered_frames": 1000, "received_frames": 1000}
    record["result"]["phase2"] = {"initiator": sent if failed == 1 else {**sent, "received_frames": 700}}
    if failed == 2:
        record["result"]["phase1"]["received_frames"] = 1000
    cause = explained(record)["cause"]
    assert (cause["kind"], cause["certainty"]) == ("table", certainty)


def test_an_event_that_two_counters_count_is_one_lost_frame(explained: Explained) -> None:
    twice = {"gateway inside received": 250, "gateway outside received": 50}
    record = trial(300, {**ALL, "softnet dropped": 300}, dropped=twice)
    assert losing(explained(record)) == ("softnet", "gateway", 300, ["softnet dropped"])
    far = {"gateway backlog": 300, "gateway inside received": 300}
    named = losing(explained(trial(300, {**ALL, "softnet dropped": 300}, dropped=far)))
    assert named[:3] == ("softnet", "gateway", 300)
    assert explained(trial(300, dropped=far))["without_counter"] == 0
    both = trial(300, {**ALL, "softnet dropped": 100}, dropped=twice)
    assert losing(explained(both)) == ("ring", "gateway", 200, ["received", "received"])


def test_the_backlogs_of_a_machine_are_counted_once_for_all_devices_on_it(explained: Explained) -> None:
    """Each device of a chain had the drops of the whole machine, so a frame was lost once for each device."""
    network = {"": {"softnet dropped": 300, "softnet processed": 2000}, "ce": ALL, "pe": ALL}
    # Their interfaces count these frames, too.
    record = trial(300, dropped={"ce outside received": 100, "pe inside received": 200}, network_counters=network)
    said = explained(record)
    assert losing(said) == ("softnet", "", 300, ["softnet dropped"])
    assert (sum(hop["lost"] for hop in said["hops"]), said["has_kernel_counters"]) == (300, True)
    empty = [hop["hop"] for hop in said["hops"] if not hop["device"] and not hop["counters"]]
    assert empty == ["tester out", "tester in"], "the machine has no other hops"


def test_the_device_of_a_chain_is_named(explained: Explained) -> None:
    record = trial(
        300, dropped={"ce inside card ring": 0, "pe inside card ring": 68}, device_faults={"ce drop": 0, "pe drop": 232}
    )
    assert losing(explained(record)) == ("conntrack", "pe", 232, ["conntrack drop"])
    unread = losing(explained({**record, "dropped": {}}))
    assert unread[:3] == ("conntrack", "pe", 232), "its machine did not answer"
    said = explained({**record, "network_counters": {"ce": {**ALL, "IpOutTransmits": 998}, "pe": {}}})
    lost = {(hop["device"], hop["hop"]): hop["lost"] for hop in said["hops"] if hop["lost"]}
    assert lost == {("pe", "ring"): 68, ("pe", "conntrack"): 232}, "no more is explained than was lost"


def test_a_kernel_that_does_not_count_sent_packets_accuses_no_rule(explained: Explained) -> None:
    old = {"IpInReceives": 1000, "IpForwDatagrams": 1000}
    said = explained(trial(300, old))
    assert (said["losing"], said["without_counter"]) == (None, 300)
    assert losing(explained(trial(1000, old)))[0] == "rules", "nothing arrived, so nothing was sent"


def test_a_tap_counts_frames_as_dropped_that_arrived(explained: Explained) -> None:
    ports = {"initiator": {"refused": 300, "redirect_errors": 0, "rx_dropped": 700, "tx_dropped": 300}}
    assert losing(explained(trial(300, ports=ports, taps=True))) == ("ring", "gateway", 300, ["queue full"])
    assert losing(explained(trial(300, ports=ports)))[0] == "tester in"
    assert explained(trial(300, ports=ports, counts_taken=["Initiator"]))["hops"][-1]["lost"] == 0


def test_hops_come_in_the_order_in_which_frames_meet_them(explained: Explained) -> None:
    hops = [hop["hop"] for hop in explained(trial(0, ALL))["hops"]]
    between = ["ring", "softnet", "header", "conntrack", "routing", "rules", "gateway", "out"]
    assert hops == ["tester out", *between, "tester in"]


def stored(folder: Path, *trials: Mapping[str, Any]) -> str:
    """A results folder of these trials."""
    return str(kept_trials(folder, *trials))


@pytest.mark.parametrize("metric", EVERY)
@pytest.mark.parametrize("has_trials", [True, False], ids=["trials", "none"])
def test_a_result_of_every_metric_is_explained_by_its_answer_first(
    metric: str, *, has_trials: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: that of a tear-down said that no frame was lost, and neither the rate nor the time of emptying."""
    folder = kept_as(tmp_path / "x", EVERY[metric])
    if has_trials:
        kept_trials(folder, trial(0, ALL))
    assert run(["explain", str(folder)]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    golden("\n".join([first, *rest[: 2 if has_trials else None]]))
    assert run(["explain", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"][0] == first
    assert run(["explain", str(folder), "1"]) == (0 if has_trials else 2)
    assert first not in capsys.readouterr().out


def test_a_doubtful_answer_is_explained_with_the_doubt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: "(doubtful)" stood behind the value, and nothing said why."""
    grave = {"word": "unreliable", "grade": "answer", "text": "too few connections", "count": 1, "value": None}
    fine = {"word": "queues", "grade": "interval", "text": "some queues", "count": 1, "value": None}
    folder = kept_as(tmp_path / "x", made([800.0, 810.0, 820.0], doubts=[grave, fine]))
    assert run(["explain", stored(folder, trial(0, ALL))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "(doubtful)" in said
    assert "Could change the answer: unreliable: too few connections. Use more connections." in said
    assert "some queues" not in said, "it changes the interval, not the answer"


@pytest.mark.parametrize("limit", [None, 0.25], ids=["no limit", "within the limit"])
def test_a_frame_that_came_after_the_receivers_closed_broke_no_time_limit(
    limit: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: "the frame arrived after its time limit" of a trial that had none."""
    delay = {"minimum_ns": 100_000_000, "maximum_ns": 200_000_000, "sum_ns": 45_000_000_000}
    record = trial(300, {**ALL}, arrived={"late": 300, "late_delay": delay})
    record["plan"]["frame_timeout_seconds"] = limit
    assert run(["explain", stored(tmp_path, record)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Cause: the device, which sends frames on too late." in said
    assert "after its time limit" not in said
    assert "than the time limit" not in said
    assert "late: the frame arrived too late to count." in said
    assert "a longer --grace-seconds" in said


def test_a_failed_measurement_is_explained_with_its_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folder = stored(tmp_path, trial(300, {**ALL, "IpOutTransmits": 700}))
    (tmp_path / "failure.json").write_text(
        json.dumps({"schema": "natgauge-failure-1", "error": "device gateway: gone"})
    )
    assert run(["explain", folder]) == 0
    golden(capsys.readouterr().out)


def test_a_measurement_that_failed_before_it_sent_a_frame_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (tmp_path / "failure.json").write_text(json.dumps({"schema": "natgauge-failure-1", "error": "port a: no carrier"}))
    assert run(["explain", str(tmp_path)]) == 2
    golden(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([], []),
        ([trial(300)], ["2"]),
        ([{**trial(300), "result": None}], []),
        ([{**trial(300), "result": {"ports": 7}}], ["1"]),
        ([trial(300)], ["0"]),
    ],
)
def test_what_cannot_be_explained_is_one_clear_line(
    trials: list[dict[str, Any]], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folder = stored(tmp_path, *trials)
    assert run(["explain", folder, *words]) == 2
    error = capsys.readouterr().err
    golden(error)
    assert error.count("\n") == 1


@pytest.mark.parametrize("within", ["one", "results/one"])
def test_a_folder_of_several_measurements_is_refused_with_the_name_of_one(
    within: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / within).mkdir(parents=True)
    stored(tmp_path / within, trial(300))
    assert run(["explain", str(tmp_path)]) == 2
    assert f"such as {tmp_path / within}" in capsys.readouterr().err
    assert run(["explain", str(tmp_path / within)]) == 0


def test_a_folder_whose_trials_are_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (tmp_path / "trials.jsonl").write_text("")
    assert run(["explain", str(tmp_path)]) == 2
    golden(capsys.readouterr().err)


def test_a_record_with_one_odd_value_is_explained_or_refused(tmp_path: Path) -> None:
    faults = {"drop": 1, "out_of_ports": 2}
    record = trial(
        300, {"IpInReceives": 9, "softnet dropped": 2}, device_faults=faults, taps=True, ports={"x": {"refused": 1}}
    )
    refused = 0
    schema = json.loads((kept_trials(tmp_path, record) / "trials.jsonl").read_text())["schema"]
    for mutant in islice(mutants(record), 0, None, 3):
        if 16**5000 not in mutant.values():
            refused += is_refused(tmp_path, {"schema": schema, **mutant})
    assert refused > 50


def is_refused(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether the trial of this record is refused; if it is explained, each form is made of it."""
    try:
        line = json.dumps(record)
    except ValueError:
        return False
    (folder / "trials.jsonl").write_text(f"{line}\n")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        statuses = {run(["explain", str(folder), *form]) for form in ([], ["--json"])}
    assert statuses in ({0}, {2})
    return statuses == {2}

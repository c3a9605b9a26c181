# SPDX-License-Identifier: Apache-2.0
"""The agreement with the engine: requests and results by the published schemas, and how the engine's end is told."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.engine_check import EXAMPLE, TRIAL
from tests.unit.fake_engine import NO_FAULTS, PORT
from tests.unit.golden import Golden
from tests.unit.test_agreement import RIGHT
from tests.unit.test_comparison_requests import COMPARISON, refusal

from natgauge.agreement.generated import ComparisonRequest, Progress, TrialRequest, TrialResult
from natgauge.agreement.process import compare, parse_line, run
from natgauge.agreement.trial import nominal_seconds, phase1_of
from natgauge.errors import BrokenError, HostError, NatgaugeError, UnreachableError, UsageError

REQUESTS, RESULTS, COMPARISONS = (
    jsonschema.Draft202012Validator(json.loads((TRIAL / f"{kind}-1.schema.json").read_text()))
    for kind in ("request", "result", "comparison")
)
COMPARED = ComparisonRequest.model_validate(COMPARISON)

STREAM = {
    **NO_FAULTS,
    "intended_frames": 10,
    "intended_rate": 5.0,
    "made_frames": 10,
    "offered_frames": 10,
    "received_frames": 9,
    "late": 1,
    "messages": [{"name": "datagram", "received": 9, "wrong": 0}],
    "nominal_ns": 2_000_000_000,
    "sending_ns": 2_000_000_100,
    "worst_lag_ns": 100,
    "mean_lag_ns": 50,
    "final_lag_ns": 100,
    "settled_lag_ns": 2_100,
}
RESULT: dict[str, Any] = {
    "event": "result",
    "version": 1,
    "engine": "test",
    "mark": 1,
    "seed": 2,
    "phase1": STREAM,
    "state_table": {"connections": 10, "stored": 9, "remapped": 0, "octets": 80},
    "ports": {"initiator": PORT, "responder": PORT},
    "cpus": [
        {
            "cpu": 0,
            "role": "sender",
            "stalls": 1,
            "stalled_ns": 2_000_000,
            "worst_stall_ns": 2_000_000,
            "longest_stalls": [{"phase": "phase1", "from_ns": -500_000, "to_ns": 1_500_000}],
            "stolen_ns": 0,
        }
    ],
    "clock": {"source": "tsc", "steps": 0},
    "start_to_first_frame_ns": 1_000_000,
    "wall_ns": 3_000_000_000,
    "frame": {"initiator_octets": 64, "responder_octets": 64},
}
BUCKETS = [[-9, -8, 2], [0, 1, 3], [128, 129, 1]]
TIMED_STREAM = {
    **STREAM,
    "lost_in_stalls": 1,
    "last_lost_ns": 1_500_000_000,
    "longest_silence": {"from_ns": 100, "to_ns": 900},
    "delay": {
        "frames": 9,
        "negative": 0,
        "minimum_ns": 10,
        "maximum_ns": 30,
        "sum_ns": 180,
        "buckets": [[10, 11, 9]],
        "variation": {"pairs": 6, "minimum_ns": -9, "maximum_ns": 128, "buckets": BUCKETS},
    },
}
STATELESS_RESULT = {
    **{name: value for name, value in RESULT.items() if name != "phase1"},
    "phase2": {"initiator": TIMED_STREAM},
}
PROGRESS = {
    "event": "progress",
    "phase": "phase1",
    "seconds": 0.5,
    "intended_frames": 10,
    "made_frames": 5,
    "received_frames": 4,
}


def request(**others: Any) -> TrialRequest:
    return TrialRequest.model_validate({**EXAMPLE, **others})


def engine(folder: Path, script: str) -> Path:
    """A stand-in for the engine: a shell script that is handed the request on standard input."""
    path = folder / "natgauge-engine"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_worked_example_is_a_request_and_comes_back_unchanged() -> None:
    assert request().model_dump(exclude_unset=True) == EXAMPLE
    assert TrialRequest.model_validate_json(request().to_json()) == request()


def stateless(**others: Any) -> TrialRequest:
    """The example without phase 1, as it is asked of a router."""
    given = {name: value for name, value in EXAMPLE.items() if name not in {"phase1", "gap_ms"}}
    return TrialRequest.model_validate({**given, "stateless": True, **others})


STEPPED = {**EXAMPLE["phase2"], "step": {"share": 0.5, "seconds": 2.0}}
RECORDED = ("record_delays", "record_variation", "record_loss_times", "record_receiver_time")
EVERYTHING = {**dict.fromkeys(RECORDED, True), "phase2": STEPPED}
MAPPED = {**EXAMPLE["responder"], "destination_addresses": {"first": "198.18.0.2", "last": "198.18.0.2"}}


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request(**EVERYTHING),
        request(record_delays=True, delay_samples={"from_ms": 60_000, "frames": 500}),
        stateless(),
        stateless(responder=MAPPED, **EVERYTHING),
    ],
)
def test_what_is_written_obeys_the_published_schema(asked: TrialRequest) -> None:
    REQUESTS.validate(json.loads(asked.to_json()))


@pytest.mark.parametrize("right", RIGHT)
def test_a_right_request_is_written_as_it_was_read(right: Any) -> None:
    read = TrialRequest.model_validate(right)
    REQUESTS.validate(json.loads(read.to_json()))
    assert read.model_dump(exclude_unset=True) == right


def test_a_comparison_is_written_as_its_schema_and_the_engine_want_it() -> None:
    written = json.loads(COMPARED.to_json())
    COMPARISONS.validate(written)
    assert refusal(written) is None


@pytest.mark.parametrize("answer", [RESULT, STATELESS_RESULT, PROGRESS])
def test_the_results_of_these_tests_obey_the_published_schema(answer: dict[str, Any]) -> None:
    RESULTS.validate(answer)


def test_a_result_comes_back_with_progress_on_the_way(tmp_path: Path) -> None:
    program = engine(tmp_path, f"cat > {tmp_path}/request; echo '{json.dumps(PROGRESS)}'; echo '{json.dumps(RESULT)}'")
    told: list[Progress] = []
    result = run(request(), engine=program, progress=told.append)
    assert phase1_of(result).received_frames == 9
    assert phase1_of(result).last_lost_ns is None
    assert [event.made_frames for event in told] == [5]
    assert (tmp_path / "request").read_text().count("\n") == 1
    assert TrialRequest.model_validate_json((tmp_path / "request").read_text()) == request()


def test_times_of_losses_and_silences_and_signed_differences_are_read(golden: Golden) -> None:
    result = parse_line(json.dumps(STATELESS_RESULT))
    assert isinstance(result, TrialResult)
    assert result.phase2 is not None
    stream = result.phase2.initiator
    assert stream is not None
    assert stream.longest_silence is not None
    assert (stream.last_lost_ns, stream.longest_silence.from_ns, stream.longest_silence.to_ns) == (
        1_500_000_000,
        100,
        900,
    )
    assert stream.delay is not None
    assert stream.delay.variation is not None
    assert [list(bucket) for bucket in stream.delay.variation.buckets] == BUCKETS
    with golden.raises(BrokenError):
        phase1_of(result)


@pytest.mark.parametrize(
    ("status", "kind"), [(2, UsageError), (3, HostError), (4, BrokenError), (5, UnreachableError), (1, BrokenError)]
)
def test_the_engines_exit_status_decides_the_kind_and_its_last_line_the_message(
    tmp_path: Path, status: int, kind: type[NatgaugeError], golden: Golden
) -> None:
    program = engine(tmp_path, f"cat > /dev/null; echo chatter >&2; echo 'frame: 3 is too small' >&2; exit {status}")
    with pytest.raises(kind) as caught:
        run(request(), engine=program)
    golden(str(caught.value))


@pytest.mark.parametrize(("line", "port"), [('{"event": "failed", "port": "responder"}', "responder"), ("", "")])
def test_the_port_that_failed_is_data_of_the_error(tmp_path: Path, line: str, port: str) -> None:
    said = f"echo '{line}'; " if port else ""
    program = engine(tmp_path, f"cat > /dev/null; {said}echo 'responder.interface: veth1: is down' >&2; exit 5")
    with pytest.raises(UnreachableError) as caught:
        run(request(), engine=program)
    assert (caught.value.at, str(caught.value)) == (port, "responder.interface: veth1: is down")


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        # An engine that refuses without reading is told by its status.
        ("exec 0<&-; echo 'no capability' >&2; exit 3", HostError, "no capability"),
        ("cat > /dev/null; kill -9 $$", BrokenError, "SIGKILL"),
        ("cat > /dev/null", BrokenError, "no result"),
        (None, HostError, "make build"),
    ],
)
def test_an_engine_that_gives_no_result_is_named_with_its_end(
    tmp_path: Path, script: str | None, error: type[NatgaugeError], said: str
) -> None:
    program = tmp_path / "nothing" if script is None else engine(tmp_path, script)
    with pytest.raises(error, match=said):
        run(request(), engine=program)


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("mark", 0, "mark: 0: "),
        ("phase1", {"rate": 1.0, "grace_ms": -1}, "phase1.grace_ms: -1: "),
        ("watch_cpus", [1, 1], "watch_cpus: 1: "),
    ],
)
def test_the_refusal_of_the_real_engine_is_a_usage_error_of_one_line(where: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        run(request(**{where: value}))
    assert "\n" not in str(caught.value)


def test_a_refusal_to_compare_is_told_in_the_engines_words(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(UsageError):
        compare(COMPARED, engine=engine(tmp_path, "echo 'cpu: 99: no such CPU' >&2; exit 2"), seconds=10)


@pytest.mark.parametrize("answer", ["", "nonsense", '{"version": 2}'])
def test_an_answer_outside_of_the_agreement_is_broken(tmp_path: Path, answer: str) -> None:
    with pytest.raises(BrokenError, match="comparison"):
        compare(COMPARED, engine=engine(tmp_path, f"cat > /dev/null; echo '{answer}'"), seconds=10)


def test_the_engine_is_called_to_compare_in_a_session_of_its_own_so_that_its_priority_counts_in_the_whole_machine(
    tmp_path: Path,
) -> None:
    program = engine(
        tmp_path,
        'cat > /dev/null; [ "$1" = --compare ] || exit 3; echo "session $(ps -o sid= -p $$) of $$" >&2; exit 4',
    )
    with pytest.raises(BrokenError, match=r"session +(\d+) of \1$"):
        compare(COMPARED, engine=program, seconds=10)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_engine_that_does_not_end_is_stopped_in_time(tmp_path: Path, golden: Golden) -> None:
    program = engine(tmp_path, f"echo $$ > {tmp_path}/pid; cat > /dev/null; exec sleep 100")
    began = time.monotonic()
    with golden.raises(BrokenError):
        run(request(), engine=program, seconds=0.5)
    assert time.monotonic() - began < 5
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.fixture(params=[False, True], ids=["interrupts read", "restarts read"])
def ctrl_c(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a library such as polars is imported, the kernel goes on with a `read` that Ctrl-C has interrupted."""
    signal.siginterrupt(signal.SIGINT, not request.param)
    yield
    signal.siginterrupt(signal.SIGINT, True)  # noqa: FBT003 - it takes no keyword


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_engine_before_it_reaches_the_caller(tmp_path: Path) -> None:
    program = engine(tmp_path, f"echo $$ > {tmp_path}/pid; cat > /dev/null; exec sleep 100")

    def press() -> None:
        # A signal while the engine is started would be another test.
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=press)
    killer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(request(), engine=program, seconds=20)
    assert time.monotonic() - began < 15, "not when the time of the trial is over"
    killer.join()
    assert gone(int((tmp_path / "pid").read_text()))


def test_lines_come_whole_however_the_engine_writes_them(tmp_path: Path) -> None:
    """In pieces, several at once, longer than a pipe holds, and the last one without its end."""
    first, second = (json.dumps({**PROGRESS, "made_frames": made}) for made in (5, 6))
    padded = json.dumps(RESULT).replace("{", "{" + " " * 200_000, 1)
    (tmp_path / "rest").write_text(f"{first[10:]}\n{second}\n{padded}")
    program = engine(tmp_path, f"cat > /dev/null; printf %s '{first[:10]}'; sleep 0.1; cat {tmp_path}/rest")
    seen: list[Progress] = []
    assert phase1_of(run(request(), engine=program, progress=seen.append)).received_frames == 9
    assert [event.made_frames for event in seen] == [5, 6]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "unknown event"),
        ('{"event": "weather"}', "unknown event"),
        ('{"event": ["result"]}', "unknown event"),
        (json.dumps({**RESULT, "version": 2}), "version 2"),
        (json.dumps({**RESULT, "surprise": 1}), "surprise"),
        (json.dumps({**RESULT, "phase1": {**STREAM, "late": -1}}), "phase1.late"),
        (json.dumps({key: value for key, value in RESULT.items() if key != "ports"}), "ports"),
    ],
)
def test_lines_outside_the_agreement_are_refused_with_their_place(line: str, words: str) -> None:
    with pytest.raises(BrokenError, match=words) as caught:
        parse_line(line)
    assert "\n" not in str(caught.value)


def test_a_trials_nominal_length_is_both_phases_with_waits() -> None:
    # 100000 frames at 200000/s, 0.5 s grace, 0.1 s gap, 600000 frames at 300000/s each way, 0.5 s grace.
    assert nominal_seconds(request()) == pytest.approx(0.5 + 0.5 + 0.1 + 2.0 + 0.5)
    assert nominal_seconds(request(phase2=STEPPED)) == pytest.approx(3.6 + 2.0)
    assert nominal_seconds(stateless()) == pytest.approx(2.0 + 0.5)

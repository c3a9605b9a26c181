# SPDX-License-Identifier: Apache-2.0
"""How a tier of the tests runs: every part of it, figures of each, and one verdict, which too many retries spoil."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tools import run_tests
from tools.run_tests import Figures, Part, Runner

ROOT = Path(__file__).parents[2]

CARGO = """
running 12 tests
............
test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s

running 3 tests
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s
"""
LABS = """
import pathlib
import pytest

def test_passes():
    pass

def test_passes_at_the_second_try(pytestconfig):
    mark = pathlib.Path(__file__).with_suffix(".tried")
    tried = mark.exists()
    mark.touch()
    assert tried

def test_fails_twice():
    assert False

@pytest.fixture
def broken():
    raise OSError("no such cable")

def test_is_not_set_up(broken):
    pass

@pytest.mark.skip(reason="no such gateway here")
def test_is_skipped():
    pass
"""
TRUTH = """
def test_of_truth_has_one_try():
    assert False
"""


def part(name: str, script: str, *, aside: bool = False, last: bool = False, alone: bool = False) -> Part:
    """A part that is run by a script in the place of pytest; its arguments follow."""
    return Part(name, (sys.executable, "-c", script, "pytest"), aside=aside, last=last, alone=alone)


def writing(**figures: int | list[str]) -> str:
    """A script that writes these figures as tests/conftest.py does."""
    text = json.dumps({"passed": 0, "failed": 0, "skipped": 0, "retries": [], "failures": [], **figures})
    return f"import os, pathlib; pathlib.Path(os.environ[{run_tests.FIGURES!r}]).write_text({text!r})"


def retried(times: int, seconds: float = 60.0) -> list[Figures]:
    return [Figures("alone", passed=9, retries=tuple(f"test_{number}" for number in range(times)), seconds=seconds)]


def test_every_part_runs_whatever_an_earlier_one_found() -> None:
    failing = part("parallel", f"{writing(passed=3, failed=1, failures=['test_x'])}; raise SystemExit(1)")
    found = Runner().run([failing, part("alone", writing(passed=4, skipped=2))], [])
    assert [(one.part, one.passed, one.failed, one.skipped, one.status) for one in found] == [
        ("parallel", 3, 1, 0, 1),
        ("alone", 4, 0, 2, 0),
    ]
    assert run_tests.closing_line(found) == "7 passed, 1 failed, 2 skipped"
    assert run_tests.complaints("test", found) == ["failed: test_x"]


@pytest.mark.parametrize(
    "script",
    [
        "raise SystemExit(3)",
        f"{writing(passed=3)}; raise SystemExit(2)",
        # It vanished: a process that calls os._exit ends with any status, and nothing is known of its tests.
        "raise SystemExit(0)",
        # A whole part has tests; if pytest finds none, a mark or a folder was lost.
        "raise SystemExit(5)",
        f"{writing()}; raise SystemExit(5)",
    ],
)
def test_a_part_that_breaks_without_a_failed_test_counts_as_one_failure(script: str) -> None:
    (found,) = Runner().run([part("parallel", script)], [])
    assert found.failed == 1
    (complaint,) = run_tests.complaints("test", [Figures("cargo", passed=1), found])
    assert complaint.startswith("failed: parallel: its program ended with exit status")


@pytest.mark.parametrize("script", ["raise SystemExit(5)", f"{writing()}; raise SystemExit(5)"])
def test_a_part_without_chosen_tests_is_no_failure_but_a_run_without_tests_is(script: str) -> None:
    (found,) = Runner().run([part("alone", script)], ["-k", "name"])
    assert found.failed == 0
    assert run_tests.complaints("test", [Figures("parallel", passed=1), found]) == []
    assert run_tests.complaints("test", [found]) == ["no test was run"]


@pytest.mark.parametrize("tier", ["test", "soak"])
def test_the_marks_of_a_test_choose_one_part_of_a_tier(tier: str) -> None:
    parts = [part for part in run_tests.TIERS[tier] if part.by_pytest]
    chosen = [part.command[part.command.index("-m", 3) + 1] for part in parts]
    for of_test in product((False, True), repeat=5):
        marks = dict(zip(("alone", "calm", "minutes", "soak", "waits"), of_test, strict=True))
        times = sum(eval(expression, {}, marks) for expression in chosen)  # noqa: S307 - pytest's marks are Python here
        assert times == (marks["soak"] == (tier == "soak"))


def test_a_part_that_looks_in_one_folder_misses_no_unit_test() -> None:
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/**/test_*.py")}
    assert folders == {"unit", "labs"}
    for part in (part for tier in ("test", "soak") for part in run_tests.TIERS[tier] if part.paths):
        assert part.paths == ("tests/labs",)
        # Every unit test is calm, none is alone, and none waits for minutes.
        assert {"not calm", "alone", "minutes"} & set(part.command[-1].split(" and "))


def test_a_module_waits_or_does_not() -> None:
    """Tests of a module share a lab's name, and the processes of two parts would make it at the same time."""
    marked = [
        path for path in ROOT.glob("tests/**/*.py") if "mark.waits" in path.read_text() and path != Path(__file__)
    ]
    assert len(marked) > 1
    assert [
        path.name
        for path in marked
        if not re.search(r"^pytestmark = (\[\n    )?pytest\.mark\.waits", path.read_text(), re.MULTILINE)
    ] == []


def test_a_unit_test_that_is_marked_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    marked = "import pytest\n@pytest.mark.alone\ndef test_it(): ...\n"
    (tmp_path / "tests" / "unit" / "test_it.py").write_text(marked)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), "tests"]
    # What the copy imports is found in the repository: neither folder is a package with a file of its own.
    found = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=found, check=False, capture_output=True, text=True)
    assert done.returncode == 4
    assert "test_it: marked alone; tools/run_tests.py runs such tests of tests/labs only" in done.stderr


def awaits(*files: Path) -> str:
    """A script that makes the first file, and ends when all the others are there."""
    own, *others = map(str, files)
    return f"""
import pathlib, time
pathlib.Path({own!r}).touch()
while not all(map(os.path.exists, {others!r})):
    time.sleep(0.01)
"""


def test_a_part_aside_runs_at_the_same_time_as_the_next_ones_until_one_that_is_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The part aside and each of the two others end when the other has begun; the last part finds it ended."""
    first, second, third, ended = (tmp_path / name for name in ("first", "second", "third", "ended"))
    aside = f"{writing(passed=3)}; print('aside')\n{awaits(first, second, third)}\nopen({str(ended)!r}, 'w').close()"
    engine = f"{writing(passed=2)}; print('engine')\n{awaits(second, first)}"
    labs = f"{writing(passed=4)}; print('labs')\n{awaits(third, first)}"
    alone = f"{writing(passed=1)}; print('alone', os.path.exists({str(ended)!r}))"
    parts = [part("unit", aside, aside=True), part("engine", engine), part("labs", labs)]
    found = Runner().run([*parts, part("alone", alone, alone=True)], [])
    assert [(one.part, one.passed, one.failed) for one in found] == [
        ("unit", 3, 0),
        ("engine", 2, 0),
        ("labs", 4, 0),
        ("alone", 1, 0),
    ]
    # The output of the part aside comes in one piece, behind that of the others.
    assert capfd.readouterr().out.split("\n") == [
        *("", "== unit runs aside: its output follows", "", "== engine", "engine", "", "== labs", "labs"),
        *("", "== unit", "aside", "", "== alone", "alone True", ""),
    ]


def test_a_part_that_is_last_lets_all_others_go_first() -> None:
    """Within its session by its scheduling class, and among sessions by the figure of its own."""
    # Others may change the figure of a session ten times in a second, all together.
    changes = os.geteuid() == 0 and os.access("/proc/self/autogroup", os.W_OK)
    script = f"""
import os, time
while os.sched_getscheduler(0) != os.SCHED_IDLE:
    time.sleep(0.01)
while {changes} and not open("/proc/self/autogroup").read().endswith(" nice 19\\n"):
    time.sleep(0.01)
{writing(passed=1)}
"""
    before = os.sched_getscheduler(0)
    (found,) = Runner().run([part("unit", script, aside=True, last=True)], [])
    assert found.passed == 1
    assert os.sched_getscheduler(0) == before


def test_each_start_of_python_by_a_test_finds_what_an_earlier_one_compiled(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    script = f"{writing(passed=1)}; import sys; print('stores nothing:', sys.dont_write_bytecode)"
    Runner().run((part("calm", script),), ())
    assert "stores nothing: False" in capfd.readouterr().out


def test_tests_that_are_run_by_themselves_store_what_they_compile_too() -> None:
    assert not sys.dont_write_bytecode
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_with_arguments_no_part_is_aside_for_pytest_may_want_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    script = f"{writing(passed=1)}; print(os.getsid(0))"
    found = Runner().run([part("unit", script, aside=True)], ["--pdb"])
    assert [one.passed for one in found] == [1]
    assert capfd.readouterr().out == f"\n== unit\n{os.getsid(0)}\n"


def test_arguments_go_to_pytest_and_cargo_does_not_run(capfd: pytest.CaptureFixture[str]) -> None:
    script = "import sys; print(sys.argv[1:])"
    never = Part("cargo", (sys.executable, "-c", "raise SystemExit(1)"))
    found = Runner().run([never, part("parallel", script)], ["-k", "name"])
    assert [one.part for one in found] == ["parallel"]
    assert "['pytest', '-k', 'name']" in capfd.readouterr().out


def test_the_closing_lines_of_all_test_programs_of_cargo_are_added() -> None:
    found = run_tests.from_cargo("cargo", CARGO.splitlines())
    assert (found.passed, found.failed, found.skipped) == (13, 2, 1)
    assert run_tests.from_cargo("cargo", ["error: could not compile"]).passed == 0


def test_what_cargo_prints_aside_is_counted_and_shown(capfd: pytest.CaptureFixture[str]) -> None:
    cargo = Part("cargo", (sys.executable, "-c", f"print({CARGO!r})"), aside=True)
    (found,) = Runner().run([cargo], [])
    assert (found.passed, found.failed, found.skipped) == (13, 2, 1)
    assert "running 12 tests" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("tier", "seconds", "retries", "passes"),
    [
        ("test", 60, 2, True),
        ("test", 60, 3, False),
        ("test", 7200, 3, False),
        ("soak", 1799, 2, True),
        ("soak", 1799, 3, False),
        ("soak", 1800, 4, True),
        ("soak", 3600, 6, True),
        ("soak", 3600, 7, False),
    ],
)
def test_more_retries_than_two_or_in_soak_two_each_half_hour_fail_the_run(
    tier: str, seconds: float, retries: int, *, passes: bool
) -> None:
    found = retried(retries, seconds)
    assert (run_tests.complaints(tier, found) == []) == passes


@pytest.mark.parametrize("options", [[], ["--numprocesses", "1"]], ids=["alone", "parallel"])
def test_pytest_writes_what_it_found_with_each_retry(tmp_path: Path, options: list[str]) -> None:
    tests = tmp_path / "tests"
    (tests / "labs" / "truth").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tests)
    (tests / "labs" / "test_labs.py").write_text(LABS)
    (tests / "labs" / "truth" / "test_truth.py").write_text(TRUTH)
    # These need no root, although they lie where tests do.
    (tmp_path / "as_root.py").write_text("import os\nos.geteuid = lambda: 0\n")
    figures = tmp_path / "figures"
    own = ["-p", "as_root", "-c", os.devnull, "--rootdir", str(tmp_path), str(tests)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *own, *options],
        cwd=tmp_path,
        env=os.environ | {run_tests.FIGURES: str(figures), "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    found = run_tests.from_pytest("alone", figures.read_text())
    assert found is not None
    assert (found.passed, found.failed, found.skipped) == (2, 3, 1)
    names = [name.split("::")[1] for name in found.retries]
    assert sorted(names) == ["test_fails_twice", "test_is_not_set_up", "test_passes_at_the_second_try"]
    assert sorted(name.split("::")[1] for name in found.failures) == [
        "test_fails_twice",
        "test_is_not_set_up",
        "test_of_truth_has_one_try",
    ]
    assert "retries of lab tests: 3\n" in done.stdout


TWO, THREE = ([f"test_{number}" for number in range(times)] for times in (2, 3))


@pytest.mark.parametrize(
    ("arguments", "root", "figures", "status", "why"),
    [
        ([], True, {"passed": 3, "skipped": 1, "retries": TWO}, 0, None),
        ([], True, {"passed": 3, "skipped": 1, "retries": THREE}, 1, None),
        (["-k", "name"], True, {"passed": 1}, 0, ""),
        ([], False, {"passed": 3}, 0, "without root the tests of labs are skipped"),
        ([], True, {"skipped": 2}, 0, "no test ran in: alone"),
        ([], True, {}, 0, "no test ran in: alone"),
    ],
)
def test_a_whole_soak_keeps_figures_commit_and_complaints_and_others_the_page_of_an_earlier_one(
    arguments: list[str],
    figures: dict[str, Any],
    status: int,
    why: str | None,
    tmp_path: Path,
    *,
    root: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its second part finds these figures, after one test; too many retries fail it."""
    page = tmp_path / "soak.md"
    page.write_text("an earlier run")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(
        run_tests, "TIERS", {"soak": (part("parallel", writing(passed=1)), part("alone", writing(**figures)))}
    )
    monkeypatch.setattr(run_tests, "PAGE", page)
    assert run_tests.main(["soak", *arguments]) == status
    lines, text = capsys.readouterr().out.splitlines(), page.read_text()
    if why is None:
        closing = "4 passed, 0 failed, 1 skipped"  # the last line, which .ci/run reads
        assert lines[-1] == closing
        assert closing in text
        assert "\n- commit: " in text
        assert f"\n| alone | 3 | 0 | 1 | {len(figures['retries'])} | " in text
        assert (f"tried again: {', '.join(THREE)}" in text) == (status == 1)
        return
    assert text == "an earlier run"
    assert [line for line in lines if "soak.md" in line] == ([f"soak.md is kept as it was: {why}"] if why else [])


@pytest.mark.parametrize("aside", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_parts_clean_up_and_are_the_last(number: signal.Signals, tmp_path: Path, *, aside: bool) -> None:
    waiting = """
import pathlib, sys, time
try:
    pathlib.Path(sys.argv[2]).touch()
    time.sleep(60)
except KeyboardInterrupt:
    print("cleaned up", flush=True)
"""
    script = f"""
import sys
from tools.run_tests import Part, Runner
first, second, third = (
    Part(name, (sys.executable, "-c", {waiting!r}, "pytest", {str(tmp_path)!r} + "/" + name), aside=aside)
    for name, aside in (("first", {aside}), ("second", False), ("third", False))
)
runner = Runner()
with runner.listening():
    found = runner.run([first, second, third], [])
print(runner.interrupted, [one.part for one in found])
"""
    begun = [tmp_path / name for name in ("first", "second")[: 1 + aside]]
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        while not all(file.exists() for file in begun):
            assert process.poll() is None
            time.sleep(0.01)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        printed = process.stdout.read()
    assert printed.count("cleaned up") == 1 + aside
    assert printed.splitlines()[-1] == f"True {[file.name for file in begun]}"
    assert not (tmp_path / "third").exists()

# SPDX-License-Identifier: Apache-2.0
"""`report --junit`: what a job shows as a failed test is what a gateway MUST do, or a cost above the limit."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import ONE_CONNECTION_RATE, PLAN, Benches, Dies, Killed, campaign
from tests.unit.made_comparisons import answered, compared, estimate
from tests.unit.made_corpus import audited
from tests.unit.made_results import kept, made

from natgauge.cli import run
from natgauge.errors import BrokenError


def suites(text: str) -> dict[str, ET.Element]:
    return {suite.attrib["name"]: suite for suite in ET.fromstring(text)}  # noqa: S314 - written here


def of_costs(folder: Path, *records: Any) -> list[str]:
    """What each cost of a comparison is: passed, failure or skipped."""
    (suite,) = reported(kept(folder, *records)).values()
    return [next((each.tag for each in case if each.tag != "system-out"), "passed") for case in suite]


def reported(folder: Path) -> dict[str, ET.Element]:
    """The suites of a folder of results."""
    assert run(["report", str(folder), "--junit", str(folder / "tests.xml")]) == 0
    return suites((folder / "tests.xml").read_text())


def test_a_requirement_fails_only_if_the_gateway_must_do_it(tmp_path: Path) -> None:
    document = json.loads((audited(tmp_path / "audit") / "audit.json").read_text())
    (one, two), outcomes = document["requirements"], [("meets", "MUST"), ("fails", "MUST"), ("fails", "SHOULD")]
    outcomes += [("not seen", "MUST"), ("not applicable", "MUST"), ("fails", "MUST")]
    document["requirements"] = [
        {**(two if at else one), "requirement": f"REQ-{at}", "verdict": verdict, "level": level}
        for at, (verdict, level) in enumerate(outcomes)
    ]
    (tmp_path / "audit" / "audit.json").write_text(json.dumps(document))
    (suite,) = reported(tmp_path).values()
    assert [suite.attrib[name] for name in ("tests", "failures", "skipped", "errors")] == ["6", "2", "3", "0"]
    failed = [case.attrib["name"] for case in suite if case.find("failure") is not None]
    assert [name.partition(" ")[0] for name in failed] == ["REQ-1", "REQ-5"]


def test_a_cost_fails_only_above_a_limit_that_was_asked_for(tmp_path: Path) -> None:
    costs = [
        estimate("dear"),
        estimate("cheap", 1.0, 0.995, 1.005),
        estimate("unknown", 1.02, 1.0, 1.04),
    ]
    assert of_costs(tmp_path / "limit", answered(compared(costs, fail_above=0.03))) == ["failure", "passed", "skipped"]
    assert of_costs(tmp_path / "none", compared([estimate("dear")])) == ["passed"]


def test_measurements_pass_and_those_without_a_result_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made([1e5], parameters={"gateway": "a<&>\x1b"})
    kept(tmp_path / "results", result)
    (tmp_path / "results" / "b").mkdir()
    (tmp_path / "results" / "b" / "plan.json").write_text("{}")
    assert run(["report", str(tmp_path / "results"), "--junit", str(tmp_path / "tests.xml")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'tests.xml'}\n"
    suite = suites((tmp_path / "tests.xml").read_text())["measurements"]
    assert (suite.attrib["tests"], suite.attrib["errors"], suite.attrib["failures"]) == ("2", "1", "0")


def test_a_figure_of_an_emulated_machine_has_its_stamp(tmp_path: Path) -> None:
    """Seen: 6,000 connections/s of an emulated machine were a test that passed, with no word of that."""
    doubt = [{"word": "functional", "text": "x", "grade": "answer"}]
    parameters = {"emulated": True}
    (suite,) = reported(kept(tmp_path, made([6000.0], doubts=doubt, parameters=parameters))).values()
    (said,) = (each.text or "" for each in suite.iter("system-out"))
    assert "(functional, not performance)" in said


def test_what_broke_in_a_campaign_is_an_error_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: all tests were green, and nothing was said, though half of the measurements had broken."""
    campaign(tmp_path, Benches(breaks={"linux-ipv4": BrokenError("linux-ipv4: does not come up")}), plan=PLAN)
    suite = reported(tmp_path / "out")["measurements"]
    assert (suite.attrib["tests"], suite.attrib["errors"], suite.attrib["skipped"]) == ("5", "1", "0")
    (error,) = suite.findall("testcase/error")
    assert "does not come up" in error.attrib["message"]
    assert "4 of 8 measurements broke" in capsys.readouterr().err


def test_a_measurement_that_is_under_way_is_skipped_and_its_campaign_an_error(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(22)), plan=ONE_CONNECTION_RATE)
    suite = reported(tmp_path / "out")["measurements"]
    assert (suite.attrib["tests"], suite.attrib["errors"], suite.attrib["skipped"]) == ("2", "1", "1")
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    suite = reported(tmp_path / "out")["measurements"]
    assert (suite.attrib["tests"], suite.attrib["errors"], suite.attrib["skipped"]) == ("1", "0", "0")


def test_a_file_that_cannot_be_written_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made([1e5])
    kept(tmp_path / "results", result)
    assert run(["report", str(tmp_path / "results"), "--junit", "/dev/zero"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)

# SPDX-License-Identifier: Apache-2.0
"""What `natgauge doctor` prints and ends with, for findings of every kind."""

from __future__ import annotations

import json

import pytest

from natgauge.cli import run
from natgauge.tester.doctor import Finding

GOOD = Finding("kernel", "ok", "Linux 6.18")
SLOW = Finding("clock", "warning", "clock source hpet is slow", "boot with clocksource=tsc")
ABSENT = Finding("capabilities", "missing", "this process lacks CAP_BPF", "sudo natgauge doctor")
GATEWAY = Finding("gateway tayga-nat64", "missing", "needs tayga", "apt-get install tayga")


@pytest.mark.parametrize(
    ("findings", "status", "state"),
    [([GOOD], 0, "ok"), ([GOOD, SLOW], 0, "warning"), ([GOOD, SLOW, ABSENT], 3, "missing"), ([GOOD, GATEWAY], 0, "ok")],
)
def test_the_worst_finding_decides_the_exit_status_but_for_single_gateways(
    findings: list[Finding],
    status: int,
    state: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("natgauge.tester.doctor.examine", lambda: findings)
    assert run(["doctor", "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert document["state"] == state
    assert [finding["name"] for finding in document["findings"]] == [finding.name for finding in findings]


def test_what_mends_stands_below_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("natgauge.tester.doctor.examine", lambda: [GOOD, ABSENT])
    assert run(["doctor"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert "Linux 6.18" in lines[0]
    assert lines[2].strip() == "mend: sudo natgauge doctor"

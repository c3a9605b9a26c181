# SPDX-License-Identifier: Apache-2.0
"""What `natgauge doctor` prints and ends with, for findings of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tools import doctor_packages

from natgauge.cli import run
from natgauge.finding import Finding
from natgauge.tester.doctor import Host

GOOD = Finding("kernel", "ok", "Linux 6.18")
SLOW = Finding("clock", "warning", "clock source hpet is slow", "boot with clocksource=tsc")
ABSENT = Finding("capabilities", "missing", "this process lacks CAP_BPF", "sudo natgauge doctor")
GATEWAY = Finding("gateway tayga-nat64", "missing", "needs tayga", "apt-get install tayga", ("tayga",), ("here", "ssh"))
ALL_GATEWAYS = Finding("gateway packages", "missing", "...", "apt-get install nftables tayga", ("nftables", "tayga"))


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
    monkeypatch.setattr("natgauge.tester.doctor.examine", lambda _host: findings)
    assert run(["doctor", "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert document["state"] == state
    assert [finding["name"] for finding in document["findings"]] == [finding.name for finding in findings]


def test_a_gateway_that_is_asked_for_by_its_path_decides_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Seen: an author asked for the own recipe, and was told of an unexpected argument."""
    asked: list[tuple[str, ...]] = []

    def examine(host: Host) -> list[Finding]:
        asked.append(host.gateways)
        return [GOOD, GATEWAY]

    monkeypatch.setattr("natgauge.tester.doctor.examine", examine)
    own = str(tmp_path / "gateway.toml")
    assert [run(["doctor", *words, "--json"]) for words in ([], [own], ["linux-ipv4", own])] == [0, 3, 3]
    assert asked == [(), (own,), ("linux-ipv4", own)]
    capsys.readouterr()


SLOWER = Finding("SMT", "warning", "two threads share each core", "natgauge host tune")
WHOLE = Finding("gateway linux-ipv4", "ok", "all it needs is installed", places=("here", "guest", "ssh"))
FAR = Finding("gateway freebsd-pf", "ok", "runs on FreeBSD, over --lab ssh", places=("ssh",))
#: Its kernel module is in guests only, so programs that this machine lacks are no obstacle.
GUEST = Finding("gateway jool-nat64", "missing", "needs jool", "apt-get install jool-tools", places=("guest", "ssh"))
BROKEN = Finding("gateway mine", "warning", "mine.toml: kind: is missing", "vi mine.toml")
PACKAGES = Finding("gateway packages", "missing", "not installed: tayga", "apt-get install tayga")
KERNEL = Finding("kernel", "missing", "Linux 6.1 is older than 6.6", "reboot")


@pytest.mark.parametrize(
    "findings",
    [
        [GOOD, WHOLE],
        [GOOD, WHOLE, GATEWAY, PACKAGES],
        [GOOD, WHOLE, GATEWAY, FAR, GUEST],
        [GOOD, WHOLE, FAR],
        [GOOD, WHOLE, BROKEN],
        [SLOW, WHOLE],
        [SLOW, SLOWER, WHOLE],
        [SLOW, ABSENT, GATEWAY],
        [KERNEL, ABSENT],
    ],
)
def test_the_first_line_is_the_answer(
    findings: list[Finding], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    monkeypatch.setattr("natgauge.tester.doctor.examine", lambda _host: findings)
    run(["doctor"])
    golden(capsys.readouterr().out.splitlines()[0])


def test_what_is_missing_or_doubtful_has_a_line_with_its_mend_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    monkeypatch.setattr("natgauge.tester.doctor.examine", lambda _host: [GOOD, SLOW, WHOLE, ABSENT])
    assert run(["doctor"]) == 3
    golden(capsys.readouterr().out.splitlines()[1:])
    assert run(["doctor", "-v"]) == 3
    lines = capsys.readouterr().out.splitlines()[1:]
    # Seen: 14 lines of what is missing, and which gateways are ready only with -v.
    assert [line.split()[0] for line in lines] == ["ok", "warning", "ok", "missing", "Ready"]
    assert "Linux 6.18" in lines[0]


def test_what_single_gateways_lack_is_one_line_of_names_and_has_its_mends_with_v(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Seen: 14 long lines of programs to build stood between the first line and what the machine itself lacked."""
    other = Finding("gateway einat-nat44", "missing", "needs einat", "build einat", places=("here",))
    monkeypatch.setattr(
        "natgauge.tester.doctor.examine", lambda _host: [GOOD, SLOW, WHOLE, GATEWAY, other, GUEST, BROKEN]
    )
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    golden(shown)
    _, slow, mine, *_, order = shown.splitlines()
    assert (slow.split()[:2], mine.split()[:3]) == (["warning", "clock"], ["warning", "gateway", "mine"])
    # What runs in guests alone needs nothing here.
    assert "jool" not in shown
    assert "2 of 7" in order
    assert run(["doctor", "-v"]) == 0
    shown = capsys.readouterr().out
    assert all(str(finding.mend) in shown for finding in (GATEWAY, other, GUEST))


def test_json_has_the_packages_as_a_list_which_the_trial_of_the_wheel_installs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("natgauge.tester.doctor.examine", lambda _host: [GOOD, ABSENT, GATEWAY, ALL_GATEWAYS])
    run(["doctor", "--json"])
    output = capsys.readouterr().out
    assert [finding["packages"] for finding in json.loads(output)["findings"]] == [
        [],
        [],
        ["tayga"],
        ["nftables", "tayga"],
    ]
    assert doctor_packages.packages(output) == ["nftables", "tayga"]

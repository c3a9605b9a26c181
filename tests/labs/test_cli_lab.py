# SPDX-License-Identifier: Apache-2.0
"""`natgauge lab` on real namespaces: up, status, down, clean."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from natgauge import cleaning
from natgauge.cli import run
from natgauge.labs.common import namespaces

pytestmark = pytest.mark.calm

NAME = "e2e-cli"


@pytest.fixture(autouse=True)
def taken_down() -> Iterator[None]:
    """Whatever a test leaves of its lab goes."""
    yield
    if any(lab.name == NAME for lab in cleaning.status()):
        cleaning.take_down(NAME)


def ours() -> list[str]:
    return [name for name in namespaces.names() if name.startswith(f"ng-{NAME}-")]


def test_a_lab_stays_up_is_listed_and_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "up", NAME, "--gateway", "nftables-nat66"]) == 0
    shown = capsys.readouterr().out
    assert "2001:2::1" in shown
    assert ours() == [f"ng-{NAME}-gateway", f"ng-{NAME}-tester"]

    assert run(["lab", "status", "--json"]) == 0
    (lab,) = [lab for lab in json.loads(capsys.readouterr().out)["labs"] if lab["name"] == NAME]
    assert (lab["kind"], lab["state"]) == ("netns", "kept")
    assert run(["lab", "status"]) == 0
    assert f"{NAME}: netns, kept" in capsys.readouterr().out

    assert run(["lab", "down", NAME]) == 0
    assert f"deleted namespace ng-{NAME}-gateway" in capsys.readouterr().out
    assert ours() == []

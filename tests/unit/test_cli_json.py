# SPDX-License-Identifier: Apache-2.0
"""`--json`: one object on one line that names its schema (docs/compatibility.md)."""

from __future__ import annotations

import json

import pytest

from natgauge.cli import run

#: Commands that need neither privileges nor results.
COMMANDS = {
    "gateways": ["gateways"],
    "runs": ["gateways", "runs"],
    "recipe": ["gateways", "show", "nftables-nat44"],
    "published": ["published"],
    "published-checks": ["published", "--check"],
    "labs": ["lab", "status"],
    "host": ["host", "check"],
    "doctor": ["doctor"],
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_json_is_one_object_that_names_its_schema(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([*COMMANDS[kind], "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["schema"] == f"natgauge-{kind}-1"

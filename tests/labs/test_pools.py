# SPDX-License-Identifier: Apache-2.0
"""Pools of outside addresses in labs: paired pooling of Linux, and a rule set that names its own range."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.labs.nat44 import variant
from tests.labs.test_audit import audited, only, verdicts

import natgauge

pytestmark = pytest.mark.waits

__all__ = ["only"]
#: Gives each inside host one address of the pool, whatever the remote address (nft(8): persistent).
_PERSISTENT: Final = """
[verbs]
start = '''
nft flush chain ip natgauge postrouting
nft add rule ip natgauge postrouting oifname "$NG_OUTSIDE" snat to "$NG_POOL4_FIRST-$NG_POOL4_LAST" persistent
'''
"""
PAIRED: Final = ("RFC4787-REQ-2", "RFC6888-REQ-2", "RFC7857-4-paired")


def test_plain_snat_to_a_range_fails_paired_pooling_and_persistent_snat_meets_it(
    tmp_path: Path, only: Callable[..., None]
) -> None:
    only(*PAIRED)
    gateways = {"fails": Path("nftables-nat44"), "meets": variant(tmp_path, "persistent", _PERSISTENT)}
    for verdict, gateway in gateways.items():
        done = audited(str(gateway), tmp_path, profile="cgn")
        assert done.record.parameters["outside_addresses"] == 4
        found = verdicts(done)
        assert {key for key, _ in found} == {*PAIRED}
        assert {*found.values()} == {verdict}


def test_rules_with_a_range_of_their_own_are_measured(tmp_path: Path) -> None:
    own = '\n[limits]\npool4 = "203.0.113.1-203.0.113.4"\n'
    gateway = variant(tmp_path, "own", own)
    outcome = natgauge.measure(
        "connection-rate",
        gateway,
        connections=2000,
        source_addresses="10.0.0.2-10.0.0.33",
        repeat=1,
        profile="quick",
        lab_name="pool",
        results=tmp_path / "results",
    )
    assert outcome.document()["median"] > 0
    assert outcome.document()["parameters"]["place"]["outside_addresses"] == 4

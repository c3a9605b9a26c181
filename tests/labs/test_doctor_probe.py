# SPDX-License-Identifier: Apache-2.0
"""The doctor's own trial, for real: it needs root and the built engine."""

from __future__ import annotations

import os

from natgauge.labs.common import namespaces
from natgauge.tester.doctor import examine, send_over_a_cable

#: Jool is a module of its own, which guests have; own builds are in no Debian; the package of conntrackd starts it.
ELSEWHERE = (
    *("jool", "vpp", "einat", "protomask", "ebpf_nat64", "gvproxy", "nm-clat.bpf.o", "tayga-own"),
    "conntrackd",
)


def test_a_thousand_frames_go_over_a_cable_that_is_gone_afterwards() -> None:
    proof = send_over_a_cable()
    assert proof.offered_frames == proof.received_frames == 1000
    assert f"ng-doctor-{os.getpid()}-tester" not in namespaces.names()


def test_on_this_host_all_that_is_needed_is_there() -> None:
    missing = [finding for finding in examine() if finding.state == "missing"]
    assert [finding for finding in missing if not any(name in finding.what for name in ELSEWHERE)] == []

# SPDX-License-Identifier: Apache-2.0
"""Port blocks of real gateways: full blocks and full pools are told apart, and a wrong element of a map is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.labs.last_runs import playable_of
from tests.labs.nat44 import variant
from tests.labs.test_audit import audited, only
from tests.labs.trying import MOST_TRIALS

import natgauge
from natgauge.reports.failures import explain

pytestmark = pytest.mark.waits

__all__ = ["only"]
#: Hosts open connections one after the other: each as many as two blocks of 128 ports, and then one more each.
FOUR: Final[dict[str, Any]] = {
    "source_addresses": "10.0.0.2-10.0.0.5", "source_ports": "1024-1279", "destination_ports": "7-8",
    "order": "increasing", "capacity_error": 1, "rate_error": 0.5, "repeat": 1, "lab_name": "blocks",
}  # fmt: skip
#: The inside host with a block that is not its own, and the ports of that block.
_STRAY: Final = """
[verbs]
start = '''
nft delete element ip natgauge blocks { 10.0.0.9 }
nft add element ip natgauge blocks { 10.0.0.9 : 198.19.128.1 . 2000-2999 }
'''
"""


@pytest.mark.parametrize(
    ("first_port", "capacity", "limit", "named"),
    [
        # Each of four hosts has two blocks of 128 ports, here one after the other.
        (1024, 1024, "port block", r"10\.0\.0\.2 used 198\.19\.0\.1, ports [0-9]+ to [0-9]+"),
        # The first two hosts have all four blocks.
        (65_024, 512, "port pool", r"198\.19\.0\.1 to 198\.19\.0\.1"),
    ],
)
def test_what_limits_connections_is_a_hosts_blocks_or_the_pool_and_it_is_named(
    first_port: int, capacity: int, limit: str, named: str, tmp_path: Path
) -> None:
    gateway = variant(tmp_path, "blocks", f"first_port = {first_port}\n", of="cgn-port-blocks")
    for again in range(MOST_TRIALS):
        results = tmp_path / f"results-{again}"
        outcome = natgauge.measure("table-capacity", gateway, **FOUR, safe_connections=capacity - 50, results=results)
        # A search that the host ended says that it is one, and has only a lower bound.
        if outcome.document()["limited_by"] != "host":
            break
    assert (outcome.document()["median"], outcome.document()["limited_by"]) == (capacity, limit)
    (folder,) = results.iterdir()
    cause = explain(folder).cause
    assert cause is not None
    assert cause.kind == limit
    assert re.fullmatch(named, cause.place)
    for first, last in re.findall(r"ports ([0-9]+) to ([0-9]+)", cause.place):
        assert int(last) - int(first) == 255


def test_one_wrong_element_of_a_computed_map_is_the_one_that_is_named(
    tmp_path: Path, only: Callable[..., None]
) -> None:
    only("RFC7422-2")
    gateways = {"meets": Path("cgn-deterministic"), "fails": variant(tmp_path, "stray", _STRAY, of="cgn-deterministic")}
    for verdict, gateway in gateways.items():
        (one,) = audited(str(gateway), tmp_path, profile="cgn", mappings=2560).record.requirements
        assert one.verdict == verdict
        assert "of 2,560 mappings of 256 inside hosts" in one.measured
        if verdict == "fails":
            assert "10 lay outside" in one.measured
            assert one.measured.count(" its block is ") == 1
            assert "10.0.0.9 had 198.19.128.1:2" in one.measured
            assert "198.19.128.0, ports 8080 to 9087" in one.measured


@pytest.mark.parametrize("name", playable_of("vpp-det44"))
def test_vpps_map_of_another_prefix_is_no_declared_map(name: str, tmp_path: Path, only: Callable[..., None]) -> None:
    only("RFC7422-2")
    other = variant(tmp_path, "other", of=name)
    other.write_text(other.read_text().replace("%/*}/26", "%/*}/25"))
    for verdict, gateway in {"meets": Path(name), "fails": other}.items():
        (one,) = audited(str(gateway), tmp_path, profile="cgn", mappings=620).record.requirements
        assert one.verdict == verdict, one.measured
        assert "of 620 mappings of 62 inside hosts" in one.measured


@pytest.mark.parametrize(
    ("seconds", "verdict", "least", "most"),
    # Its filters depend on the remote endpoint, so it may give a block again at once (RFC 6888 REQ-8, exception C).
    [("6", "not applicable", 5, 30), pytest.param("3600", "meets", 120, 120, marks=pytest.mark.soak)],
)
def test_the_time_after_which_a_block_is_given_to_another_host_is_measured(
    seconds: str, verdict: str, least: int, most: int, *, tmp_path: Path, only: Callable[..., None]
) -> None:
    only("RFC6888-REQ-8-blocks")
    gateway = variant(tmp_path, "blocks", f'\n[environment]\nBLOCK_SECONDS = "{seconds}"\n', of="cgn-port-blocks")
    (one,) = audited(gateway, tmp_path, profile="cgn", wait=120, outside_addresses=1).record.requirements
    assert one.verdict == verdict, one.measured
    assert least <= int(re.findall(r"([0-9]+) s ", one.measured)[0]) <= most

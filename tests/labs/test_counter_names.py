# SPDX-License-Identifier: Apache-2.0
"""The counters that causes have words for are called as this kernel calls them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from natgauge.causes.cause import counters, facts_of
from natgauge.labs.common.links import COUNTER_FILES, counters_of

#: Groups of /proc/net/snmp and netstat, the columns of softnet_stat, and those of stat/nf_conntrack.
KERNELS = re.compile(r"(Ip|Icmp|Tcp|Udp)[A-Z]\w*|(softnet|conntrack) \w+")


@pytest.mark.calm
def test_the_kernel_has_each_counter_that_has_words() -> None:
    """A full hash chain was called an empty port pool: its counter has another name in the file than in `conntrack`."""
    here = counters_of({name: Path("/proc/net", name).read_text().splitlines() for name in COUNTER_FILES})
    # A row is for both families, and for both files of a protocol.
    known = {facts_of(name).name for name in here}
    assert [name for name in counters() if KERNELS.fullmatch(name) and name not in known] == []

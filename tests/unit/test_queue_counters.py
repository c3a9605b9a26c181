# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines of a machine behind ssh: those at the top, and what they dropped."""

from __future__ import annotations

from natgauge.labs.common.network_counters import queues_shown

SHOWN = """\
qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc tbf 8001: dev eth1 root refcnt 2 rate 20Mbit burst 16Kb lat 4.3s
 Sent 18400 bytes 400 pkt (dropped 305, overlimits 12 requeues 0)
 backlog 0b 0p requeues 0
qdisc fq_codel 0: dev eth0 parent :1 limit 10240p flows 1024 quantum 1514
 Sent 7 bytes 1 pkt (dropped 9, overlimits 0 requeues 0)
  maxpacket 0 drop_overlimit 9 new_flow_count 0 ecn_mark 0
qdisc mq 0: dev eth0 root
 Sent 7 bytes 1 pkt (dropped 9, overlimits 0 requeues 0)
qdisc clsact ffff: dev eth0 parent ffff:fff1
 Sent 0 bytes 0 pkt (dropped 4, overlimits 0 requeues 0)
"""


def test_disciplines_at_the_top_are_read_and_those_below_are_not_counted_twice() -> None:
    assert queues_shown(SHOWN) == {
        "qdisc lo noqueue": 0,
        "qdisc eth1 tbf": 305,
        "qdisc eth0 mq": 9,
        "qdisc eth0 clsact": 4,
    }
    assert queues_shown("") == queues_shown("tc: not found\n") == {}

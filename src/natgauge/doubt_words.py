# SPDX-License-Identifier: Apache-2.0
"""Words of all doubts, for type checkers and for the schemas of records.

Made of the entries in `natgauge.doubts` by `python -m tools.described`; a test holds that it is up to date.
"""

from __future__ import annotations

from typing import Literal

#: Reasons to trust a figure less.
DoubtWord = Literal[
    "functional", "mixed", "CPU quota", "undecided", "excused trials", "tester limited", "server limited",
    "host limited", "range limited", "several limits", "ended early", "incomplete", "time used up",
    "late at every rate", "loss at every rate", "rare loss", "bucket", "short trials", "table inferred",
    "time-out unknown", "unreliable", "between readings", "as fast as opened", "excused frames", "frames in stalls",
    "load too high", "batches", "single repetition", "few frames", "wide spread", "autocorrelated", "drift",
    "collapsed", "INVALID trials", "disturbed trials", "contradictions", "unexpected count", "other traffic",
    "log dropped", "queues", "taking turns", "real server", "machine shared", "table not emptied", "tester proof",
    "names not cached", "link limited", "flow control", "tester unknown", "tester on device cores", "one address pair",
    "idle cores", "uneven cores", "throughput doubted", "connection rate doubted",
]  # fmt: skip

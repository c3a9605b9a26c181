# SPDX-License-Identifier: Apache-2.0
"""Figures that follow from others, as published tables print them; always of unrounded medians.

Pure arithmetic: `natgauge.analysis.scalability` decides which results are compared at all. Arguments of one formula
have the same unit. A reference of 0 raises ZeroDivisionError: nothing is relative to nothing.
"""

from __future__ import annotations

import math

from natgauge.metrics.metric import Better


def relative_scale_up(performance: float, cores: float, one_core: float) -> float:
    """S(n) = P(n) / (n * P(1)): 1 when n cores do n times as much as one (RFC 9693 section 5.2)."""
    return performance / (cores * one_core)


def percent_of_forwarding(performance: float, forwarding: float) -> float:
    """Return the rate of a gateway as a percentage of the rate at which the same machine only forwards.

    Source: row "throughput ratio (%)" of figure 2 of draft-lencse-v6ops-transition-scalability-05.
    """
    return 100 * performance / forwarding


def to_previous(median: float, previous: float) -> float:
    """Median / previous median: how many times the step before it in a measurement series.

    Source: tables 2 to 7 of 10.1016/j.comcom.2023.08.009.
    """
    return median / previous


def table_per_connection(table_size: float, connections: float) -> float:
    """Places of the connection tracking table for each connection ("c.t.s/num.conn." of the draft's figure 2)."""
    return table_size / connections


def connections_per_bucket(connections: float, hash_size: float) -> float:
    """Connections in each bucket of the hash table, on average (RFC 9693 section 6; the draft's figure 4)."""
    return connections / hash_size


def degradation(single: float, several: float, better: Better) -> float:
    """Performance degradation Xpd, in percent of X1 (RFC 8219 section 10.2.1).

    (Xn - X1) / X1 * 100 where lower is better, (X1 - Xn) / X1 * 100 where higher is better: in both cases a worse Xn
    gives a positive percentage, and a better one a negative. `single` is X1, for one network flow.
    """
    worse = several - single if better == "lower" else single - several
    return 100 * worse / single


def rate_in_turns(first: float, second: float) -> float:
    """Rate of a chain whose devices take turns on the same cores, so that their times for a frame add up."""
    together = 1 / first + 1 / second if first and second else math.inf
    return 1 / together if together else math.inf


def four_tuples(source_ports: float, destination_ports: float) -> float:
    """Four tuples of one pair of addresses: source ports times destination ports (RFC 9693 section 4.1)."""
    return source_ports * destination_ports


def new_connection_share(connections: float, tuples: float) -> float:
    """Return the percentage of unused four tuples after `connections` of `tuples` have been opened.

    Source: row "ending new connection ratio (%)" of table 23 of 10.1016/j.comcom.2023.08.009.
    """
    return 100 * (1 - connections / tuples)

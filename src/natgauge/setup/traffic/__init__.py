# SPDX-License-Identifier: Apache-2.0
"""Addresses, ports and sizes of the traffic, from the options and from what a lab and its gateway need."""

from natgauge.setup.traffic.addresses import (
    LAST_PORT,
    AddressPlan,
    Range,
    address_plan,
    chosen_sets,
    needs,
    refuse_sets,
    vlans,
)
from natgauge.setup.traffic.plan import TrafficPlan, hosts_of, make_plan, refuse_flood, with_pool

__all__ = [
    "LAST_PORT",
    "AddressPlan",
    "Range",
    "TrafficPlan",
    "address_plan",
    "chosen_sets",
    "hosts_of",
    "make_plan",
    "needs",
    "refuse_flood",
    "refuse_sets",
    "vlans",
    "with_pool",
]

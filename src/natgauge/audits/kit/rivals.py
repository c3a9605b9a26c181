# SPDX-License-Identifier: Apache-2.0
"""Two inside hosts that compete for one outside endpoint.

Two hosts on one source port compete only if the gateway gives them one outside address. Behind a pool of addresses the
second host can have another one. Then nothing clashes, and nothing shows what the gateway does when something does.
"""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.examiner import Examiner, NotSeenError
from natgauge.audits.kit.flows import Flow
from natgauge.audits.kit.packets import Endpoint
from natgauge.words import Address, Transport

#: Why an examination that needs a rival has no verdict.
ALONE: Final = "no other inside host had its outside address, so no two hosts competed for a port"


def rival_of(
    examiner: Examiner, address: Address, port: int, remote: Endpoint, transport: Transport | None = None
) -> Flow | None:
    """Open flows of the other inside hosts from a source port until one has this outside address.

    Args:
        examiner: examines the gateway.
        address: the outside address that another host must have.
        port: source port of the flows.
        remote: where they go.
        transport: their transport; None = the examiner's.

    Returns:
        The flow that has this address; None = no host has it.

    Raises:
        NotSeenError: a flow does not open, or there is one inside address only.
    """
    examiner.host(1)
    hosts = examiner.others()
    for host in sorted(hosts, key=lambda one: one != examiner.rival):
        flow = examiner.open(Endpoint(host, port), remote, transport)
        if flow.mapped.address == address:
            examiner.rival = host
            return flow
    return None


def compete(examiner: Examiner, flow: Flow, remote: Endpoint) -> Flow:
    """Return a flow of another inside host from the source port of this flow, with its outside address.

    Raises:
        NotSeenError: no host has this outside address, or a flow does not open.
    """
    found = rival_of(examiner, flow.mapped.address, flow.inside.port, remote)
    if found is None:
        raise NotSeenError(f"{flow.inside} had {flow.mapped} outside; {ALONE}")
    return found

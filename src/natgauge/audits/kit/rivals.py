# SPDX-License-Identifier: Apache-2.0
"""Two inside hosts that compete for one outside endpoint.

Two hosts on one source port compete only if the gateway gives them one outside address. Behind a pool of addresses the
second host can have another one. Then nothing clashes, and nothing shows what the gateway does when something does.
"""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow
from natgauge.audits.kit.observations import AloneError, NotSeenError, UntranslatedError
from natgauge.audits.kit.packets import Endpoint
from natgauge.words import Address, Transport

#: Why an examination that needs a rival has no verdict.
ALONE: Final = "no other inside host had its outside address, so no two hosts competed for a port"
#: Hosts whose flow may be refused before the search ends: each takes as long as all tries of a frame.
_MOST_REFUSED: Final = 2


def rival_of(
    examiner: Examiner, own: Endpoint, outside: Address, remote: Endpoint, transport: Transport | None = None
) -> Flow | None:
    """Open flows of other inside hosts from the source port of an inside endpoint until one has its outside address.

    Args:
        transport: their transport; None = the examiner's.

    Returns:
        The flow that has this address; None = no host has it.
    """
    examiner.host(1)
    refusals: list[NotSeenError] = []
    for host in examiner.inside.rivals(own.address, outside):
        try:
            flow = examiner.open(Endpoint(host, own.port), remote, transport)
        except UntranslatedError:
            # It took no time.
            examiner.inside.is_refused(host)
            continue
        except NotSeenError as error:
            examiner.inside.is_refused(host)
            refusals.append(error)
            if len(refusals) < _MOST_REFUSED:
                continue
            raise
        if flow.mapped.address == outside:
            return flow
    if refusals:
        raise refusals[0]
    return None


def compete(examiner: Examiner, flow: Flow, remote: Endpoint) -> Flow:
    """Return a flow of another inside host from the source port of this flow, with its outside address."""
    found = rival_of(examiner, flow.inside, flow.mapped.address, remote)
    if found is None:
        raise AloneError(f"{flow.inside} had {flow.mapped} outside; {ALONE}")
    return found

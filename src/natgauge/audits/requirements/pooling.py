# SPDX-License-Identifier: Apache-2.0
"""Pooling of outside addresses: RFC 4787 section 4.1, RFC 6888 section 3."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, judged
from natgauge.audits.kit.undecided import NotApplicableError

#: An arbitrary choice among two addresses is the same for all of so many flows in one case of 2^31.
_FLOWS: Final = 32


def _addresses(examiner: Examiner, transport: Transport) -> dict[str, set[str]]:
    """Return the outside addresses of the flows of each inside host."""
    return {
        str(host): {
            str(examiner.open(transport, examiner.endpoint(index), examiner.remote()).mapped.address)
            for _ in range(_FLOWS)
        }
        for index, host in enumerate(examiner.hosts("initiator"))
    }


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    seen = examiner.once(_addresses, transport)
    if len(set().union(*seen.values())) == 1:
        raise NotApplicableError("all flows of all inside hosts had one outside address")
    words = "; ".join(f"{host} had {', '.join(sorted(outside))}" for host, outside in seen.items())
    return judged(all(len(outside) == 1 for outside in seen.values()), f"{_FLOWS} flows each: {words}")


_TEXT: Final = "all flows of an inside host have one outside address"
REQUIREMENTS: Final = (
    Requirement(4787, "REQ-2", "SHOULD", _TEXT, ("udp",), _examine),
    Requirement(6888, "REQ-2", "MUST", _TEXT, ("udp", "tcp"), _examine, profiles=frozenset({"cgn"})),
)

# SPDX-License-Identifier: Apache-2.0
"""Pooling of outside addresses: RFC 4787 section 4.1, RFC 6888 section 3, RFC 7857 section 4."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.audits.kit.crowd import CROWD, exhausted
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import TEAM, Flows
from natgauge.audits.kit.requirement import CGN, Finding, requires
from natgauge.audits.kit.unseen import NotApplicableError
from natgauge.words import Address, Transport

#: An arbitrary choice among two addresses is the same for all of so many flows in one case of 2^31.
_FLOWS: Final = 32
_TEXT: Final = "all flows of an inside host have one outside address"


def _hosts(examiner: Examiner) -> tuple[Address, ...]:
    """Return the hosts of a team; where blocks are computed, hosts whose blocks may be of different addresses."""
    every = examiner.every_host
    if examiner.blocks is None or not examiner.blocks.sizes.deterministic:
        return examiner.hosts("initiator")
    return every[:: max(1, len(every) // TEAM)][:TEAM]


def _addresses(examiner: Examiner, transport: Transport) -> dict[str, set[str]]:
    """Return the outside addresses of the flows of each inside host, which go to all outside hosts in turn."""
    remotes = len(examiner.hosts("responder"))
    return {
        str(host): {
            str(
                examiner.open(
                    replace(examiner.endpoint(), address=host), examiner.remote(turn % remotes), transport
                ).mapped.address
            )
            for turn in range(_FLOWS)
        }
        for host in _hosts(examiner)
    }


def _compared(examiner: Examiner, *transports: Transport) -> Finding:
    """Compare the outside addresses of each host, which must be one for all of these transports together."""
    every = [examiner.once(_addresses, transport) for transport in transports]
    seen = {host: set().union(*(one[host] for one in every)) for host in every[0]}
    if len(set().union(*seen.values())) == 1:
        raise NotApplicableError("all flows of all inside hosts had one outside address")
    words = "; ".join(f"{host} had {', '.join(sorted(outside))}" for host, outside in seen.items())
    return all(len(outside) == 1 for outside in seen.values()), f"{_FLOWS} flows each: {words}"


@requires(_TEXT, (4787, "REQ-2", "SHOULD", "udp"), (7857, "4-paired", "SHOULD", "tcp"), flows=Flows(_FLOWS))
def _examine(examiner: Examiner) -> Finding:
    return _compared(examiner, examiner.transport)


@requires(_TEXT, (6888, "REQ-2", "MUST", "udp", "tcp"), flows=Flows(2 * _FLOWS), profiles=CGN)
def _examine_all(examiner: Examiner) -> Finding:
    """Require one address of a host for UDP and TCP together."""
    return _compared(examiner, *(("udp",) if examiner.transport == "udp" else ("udp", "tcp")))


@requires(
    "a host whose address has no port left gets no second address", (7857, "4", "SHOULD", "udp"), flows=CROWD, strain=2
)
def _examine_full(examiner: Examiner) -> Finding:
    """Give one host more flows than its outside address has ports."""
    if not _examine(examiner)[0]:
        raise NotApplicableError("the gateway does not give each inside host one outside address")
    seen = examiner.once(exhausted)
    addresses = {end.address for end in seen.mapped.values()}
    return len(addresses) == 1, f"{seen.words}; the flows of the one host had {len(addresses)} outside addresses"

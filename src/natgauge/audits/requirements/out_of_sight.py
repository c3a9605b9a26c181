# SPDX-License-Identifier: Apache-2.0
"""Requirements that no frame of an audit shows, with the reason: RFC 4787, RFC 5508, RFC 6888 and RFC 7857."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.requirement import CGN, EVERY_PROFILE, NO_FLOWS, requires, unseen
from natgauge.records.audit import Level

#: RFC, name, level, text, reason.
TABLE: Final[tuple[tuple[int, str, Level, str, str], ...]] = (
    (4787, "REQ-7", "MUST", "inside and outside may have the same addresses", "needs a network with such addresses"),
    (4787, "REQ-10a", "SHOULD", "each application level gateway can be turned off", "needs a setting of the gateway"),
    (5508, "REQ-9", "MAY", "ICMP errors towards an interface can be turned off", "needs a setting of the gateway"),
    (5508, "REQ-11", "MAY", "other ICMP messages are dropped or handled", "both are permitted"),
    (6888, "REQ-1", "MUST", "each transport fulfils its own RFC", "see RFC 4787, RFC 5382 and RFC 5508"),
    (6888, "REQ-3", "SHOULD", "outside addresses of any number, with gaps", "needs a gateway with such addresses"),
    (6888, "REQ-6", "MUST", "translation can be turned off for destinations", "needs a setting of the gateway"),
    (6888, "REQ-10", "SHOULD", "the gateway can be managed", "needs the gateway's management interface"),
    (6888, "REQ-11c", "SHOULD", "the operator is notified of lacking room", "needs the gateway's management interface"),
    (6888, "REQ-12", "SHOULD", "destinations are not logged", "needs the gateway's log"),
    (6888, "REQ-13", "SHOULD", "ports are used as far as possible", "needs every port of all outside addresses in use"),
    (7857, "7", "SHOULD", "refused frames from outside refresh no mapping", "needs a policy that refuses sessions"),
    (7857, "8", "SHOULD", "hosts can ask for ports of the same parity", "the audit asks for single ports"),
    (7857, "12", "MUST", "Basic NAT hairpins ICMP queries", "needs a gateway that translates addresses only"),
)  # fmt: skip

for _rfc, _name, _level, _text, _reason in TABLE:
    requires(_text, (_rfc, _name, _level, "udp"), flows=NO_FLOWS, profiles=CGN if _rfc == 6888 else EVERY_PROFILE)(
        unseen(_reason)
    )
requires("opening and closing have time-outs of their own", (7857, "2.1-separate", "SHOULD", "tcp"), flows=NO_FLOWS)(
    unseen("needs two settings")
)

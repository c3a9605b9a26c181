# SPDX-License-Identifier: Apache-2.0
"""Records of audits made up: by a few words, everything else of one gateway that meets what is required."""

from __future__ import annotations

from typing import Any

from natgauge.records.audit import AuditedRequirement, AuditRecord


def requirement(name: str = "REQ-8", verdict: str = "meets", **values: Any) -> AuditedRequirement:
    """A requirement of RFC 4787 with this verdict; any other field by name."""
    fields = {"rfc": 4787, "requirement": name, "level": "MUST", "text": "filtering", "transport": "udp"}
    fields |= {"verdict": verdict, "measured": "endpoint-independent", "evidence": {"file": None, "frames": []}}
    return AuditedRequirement.model_validate({**fields, **values})


def record(
    *requirements: AuditedRequirement, gateway: str = "mine", filtering: str | None = None, **changed: Any
) -> AuditRecord:
    """An audit with these verdicts, of which the classes of UDP are known; any other field by name."""
    udp = {"mapping": "endpoint-independent", "filtering": filtering, "ports": None, "hairpinning": None}
    fields: dict[str, Any] = {
        "gateway": gateway,
        "title": "My gateway",
        "profile": "all",
        "classes": {"udp": udp},
        "requirements": [one.model_dump() for one in requirements or (requirement(),)],
        "timeouts": {"UDP, one frame out": (29.9, 31.4)},
        "wait_seconds": 330.0,
        "seconds": 2.5,
        "device": None,
        "parameters": {"lab_kind": "netns"},
        "results": "results/1",
    }
    return AuditRecord.model_validate({**fields, **changed})

# SPDX-License-Identifier: Apache-2.0
"""Behaviour that does not change: RFC 4787 section 7."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import filtering, mapping
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, meets

#: Mappings under which the classes must stay the same.
_PARALLEL: Final = 500


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    before = examiner.once(mapping, transport), examiner.once(filtering, transport)
    remote = examiner.remote()
    for _ in range(_PARALLEL):
        examiner.open(transport, examiner.endpoint(), remote)
    after = mapping(examiner, transport), filtering(examiner, transport)
    kinds = [(seen.kind, filtered) for seen, filtered in (before, after)]
    words = f"mapping and filtering were {' and '.join(kinds[0])}"
    if before[0].alone not in (None, before[0].kind):
        return fails(f"mapping is {before[0].alone}, and {before[0].kind} while another host uses the same source port")
    if kinds[0] != kinds[1]:
        return fails(f"{words}, and with {_PARALLEL} more mappings {' and '.join(kinds[1])}")
    return meets(f"{words}, also with {_PARALLEL} more mappings")


REQUIREMENTS: Final = (Requirement(4787, "REQ-11", "MUST", "mapping and filtering do not change", ("udp",), _examine),)

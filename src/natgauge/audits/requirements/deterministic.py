# SPDX-License-Identifier: Apache-2.0
"""Behaviour that does not change: RFC 4787 section 7."""

from __future__ import annotations

from typing import Final

from natgauge.audits.kit.classes import filtering, mapping
from natgauge.audits.kit.crowd import MANY, Crowd
from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Transport
from natgauge.audits.kit.requirement import Requirement, RequirementFinding, fails, meets
from natgauge.audits.kit.undecided import NotSeenError


def _examine(examiner: Examiner, transport: Transport) -> RequirementFinding:
    """Compare mapping and filtering before and after another host opened many flows."""
    seen = examiner.once(mapping, transport)
    before = seen.kind, examiner.once(filtering, transport)
    words = f"mapping and filtering were {' and '.join(before)}"
    if seen.alone not in (None, seen.kind):
        return fails(f"mapping is {seen.alone}, and {seen.kind} while another host uses the same source port")
    crowd = examiner.once(Crowd)
    crowd.grow(examiner, MANY)
    try:
        after = mapping(examiner, transport).kind, filtering(examiner, transport)
    except NotSeenError as error:
        raise NotSeenError(f"{words}; with {len(crowd.mapped)} more mappings {error}") from error
    more = f"with {len(crowd.mapped)} more mappings"
    return meets(f"{words}, also {more}") if before == after else fails(f"{words}, and {more} {' and '.join(after)}")


REQUIREMENTS: Final = (
    Requirement(4787, "REQ-11", "MUST", "mapping and filtering do not change", ("udp",), _examine, strain=1),
)

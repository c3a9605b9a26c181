# SPDX-License-Identifier: Apache-2.0
"""One round of a comparison as typed values: the request to `natgauge-engine --compare` and its result.

The agreement is `trial/comparison-1.schema.json` and `trial/comparison-result-1.schema.json`, generated from the
engine's types. The engine checks bounds.
"""

from __future__ import annotations

from typing import Literal

from natgauge.trials.agreement import AgreementPart, Count, TrialLimits, TrialRequest
from natgauge.words import Quantity


class Contestant(AgreementPart):
    """A device or a cable. The engine uses only the trial's ports, four tuples and frames; slices are not paced."""

    name: str
    trial: TrialRequest


class Slices(AgreementPart):
    """`frames` per slice, `lead` untimed frames before each slice, and the number of reported blocks per quantity."""

    frames: int
    lead: int = 0
    new: int
    up: int
    down: int
    both: int


class ComparisonRequest(AgreementPart):
    """One round: connections are opened, then used, in blocks that visit each contestant twice."""

    version: Literal[1] = 1
    seed: int
    cpu: int
    batch: int | None = None
    contestants: tuple[Contestant, ...]
    floor: int | None = None
    slices: Slices
    limits: TrialLimits | None = None

    def to_json(self) -> str:
        """Return the request as one line of JSON; absent fields are left out."""
        return self.model_dump_json(exclude_none=True)


class StreamTally(AgreementPart):
    """One stream of a contestant over all slices of a round, reported slices and others."""

    made_frames: Count
    received_frames: Count
    duplicates: Count
    reordered: Count
    late: Count
    damaged: Count
    untranslated: Count
    mistranslated: Count
    skipped: Count


class ContestantCounts(AgreementPart):
    """Frame counts of a contestant in a round."""

    name: str
    mark: Count
    new: StreamTally
    initiator: StreamTally
    responder: StreamTally
    stored: Count
    remapped: Count
    damaged_unmarked: Count
    foreign: Count
    offered_frames: Count
    refused_frames: Count
    gateway_macs: tuple[str, str]


class Block(AgreementPart):
    """Adjacent slices: each contestant in `order`, then in the reverse order; `ns` in the order of time."""

    quantity: Quantity
    order: tuple[int, ...]
    ns: tuple[Count, ...]
    waited: Count
    interrupted: Count


class FloorCounts(AgreementPart):
    """Frame counts of the redirect floor in a round."""

    made_frames: Count
    received_frames: Count


class ComparisonResult(AgreementPart):
    """Raw counts of one round; contestants in the request's order, blocks in the order of time."""

    version: Literal[1]
    engine: str
    contestants: tuple[ContestantCounts, ...]
    floor: FloorCounts | None = None
    blocks: tuple[Block, ...]
    wall_ns: Count

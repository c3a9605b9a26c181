# SPDX-License-Identifier: Apache-2.0
"""One round of a comparison as typed values: what is asked of `natgauge-engine --compare` and what it answers.

The agreement is `trial/comparison-1.schema.json` and `trial/comparison-result-1.schema.json`, generated from the
engine's types; bounds are the engine's.
"""

from __future__ import annotations

from typing import Literal

from natgauge.trials.agreement import AgreementPart, Count, TrialLimits, TrialRequest
from natgauge.words import Quantity


class Contestant(AgreementPart):
    """One device, or a cable. Of the trial only ports, four tuples and frames count; slices are not paced."""

    name: str
    trial: TrialRequest


class Slices(AgreementPart):
    """`frames` of one slice, `lead` ahead of each that are not timed, and how many blocks of each quantity are told."""

    frames: int
    lead: int = 0
    new: int
    up: int
    down: int
    both: int


class ComparisonRequest(AgreementPart):
    """One round: connections are opened, then standing ones used, in blocks that visit each contestant twice."""

    version: Literal[1] = 1
    seed: int
    cpu: int
    batch: int | None = None
    contestants: tuple[Contestant, ...]
    floor: int | None = None
    slices: Slices
    limits: TrialLimits | None = None

    def to_json(self) -> str:
        """As the engine reads it: one line, absent fields left out."""
        return self.model_dump_json(exclude_none=True)


class StreamTally(AgreementPart):
    """One stream of a contestant over all slices of a round, told or not."""

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
    """What came of a contestant's frames in a round."""

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
    """Slices side by side: each contestant in `order`, then each in the reverse order; `ns` in the order of time."""

    quantity: Quantity
    order: tuple[int, ...]
    ns: tuple[Count, ...]
    waited: Count
    interrupted: Count


class FloorCounts(AgreementPart):
    """What came of the redirect floor's frames in a round."""

    made_frames: Count
    received_frames: Count


class ComparisonResult(AgreementPart):
    """What the engine counted in one round; contestants in the request's order, blocks in the order of time."""

    version: Literal[1]
    engine: str
    contestants: tuple[ContestantCounts, ...]
    floor: FloorCounts | None = None
    blocks: tuple[Block, ...]
    wall_ns: Count

# SPDX-License-Identifier: Apache-2.0
"""One round of a comparison as typed values: what is asked of `natgauge-engine --compare` and what it answers.

The agreement is `trial/comparison-1.schema.json` and `trial/comparison-result-1.schema.json`, generated from the
engine's types; bounds are the engine's.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from natgauge.trials.agreement import Limits, TrialRequest

#: First frames of connections; frames of standing ones from the Initiator, from the Responder, from both in turn.
Quantity = Literal["new", "up", "down", "both"]
_Count = Annotated[int, Field(ge=0)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Contestant(_Model):
    """One device, or a cable. Of the trial only ports, four tuples and frames count; slices are not paced."""

    name: str
    trial: TrialRequest


class Slices(_Model):
    """`frames` of one slice, and how many blocks of each quantity are told."""

    frames: int
    new: int
    up: int
    down: int
    both: int


class ComparisonRequest(_Model):
    """One round: connections are opened, then standing ones used, in blocks that visit each contestant twice."""

    version: Literal[1] = 1
    seed: int
    cpu: int
    batch: int | None = None
    contestants: tuple[Contestant, ...]
    slices: Slices
    limits: Limits | None = None

    def to_json(self) -> str:
        """As the engine reads it: one line, absent fields left out."""
        return self.model_dump_json(exclude_none=True)


class StreamTally(_Model):
    """One stream of a contestant over all slices of a round, told or not."""

    made_frames: _Count
    received_frames: _Count
    duplicates: _Count
    reordered: _Count
    late: _Count
    damaged: _Count
    untranslated: _Count
    mistranslated: _Count
    skipped: _Count


class ContestantCounts(_Model):
    """What came of a contestant's frames in a round."""

    name: str
    mark: _Count
    new: StreamTally
    initiator: StreamTally
    responder: StreamTally
    stored: _Count
    remapped: _Count
    damaged_unmarked: _Count
    foreign: _Count
    offered_frames: _Count
    refused_frames: _Count
    gateway_macs: tuple[str, str]


class Block(_Model):
    """Slices side by side: each contestant in `order`, then each in the reverse order; `ns` in the order of time."""

    quantity: Quantity
    order: tuple[int, ...]
    ns: tuple[_Count, ...]
    waited: _Count
    interrupted: _Count


class ComparisonResult(_Model):
    """What the engine counted in one round; contestants in the request's order, blocks in the order of time."""

    version: Literal[1]
    engine: str
    contestants: tuple[ContestantCounts, ...]
    blocks: tuple[Block, ...]
    wall_ns: _Count

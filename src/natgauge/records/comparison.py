# SPDX-License-Identifier: Apache-2.0
"""The record of a comparison: ratios of costs to a baseline gateway, their confidence intervals, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from natgauge.figure_text import at_least, with_noun
from natgauge.notes import Note
from natgauge.records.parameters import Parameters
from natgauge.records.record import Record, RecordPart
from natgauge.records.store import LAST_SECOND
from natgauge.words import SENDING, Quantity, SearchLimitedBy

COMPARISON_SCHEMA: Final = "natgauge-comparison-5"

#: What a confidence interval of a ratio of costs means.
CostVerdict = Literal["costs more", "costs less", "no difference", "undecided"]
#: "slices": work of the device itself, in short slices in turn; "rates": time for a frame at the highest rate.
Method = Literal["slices", "rates"]
#: The first gateway is the baseline; the A/A control is a second copy of it.
Role = Literal["baseline", "compared", "control"]

_Share = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0)]
_Ratio = Annotated[float, Field(ge=0)]

#: Quantities in words.
FRAME_OF: Final[Mapping[Quantity, str]] = {
    "new": "new connection",
    "up": f"frame {SENDING['up']}",
    "down": f"frame {SENDING['down']}",
    "both": "frame in both directions",
}
#: Quantities in a column of frames.
KIND_OF: Final[Mapping[Quantity, str]] = {name: words.removeprefix("frame ") for name, words in FRAME_OF.items()}
#: Units of their rates.
RATE_OF: Final[Mapping[Quantity, str]] = {
    "new": "connections/s",
    "up": "frames/s",
    "down": "frames/s",
    "both": f"frames/s {SENDING['both']}",
}


def commit_of(text: str) -> tuple[str, datetime | None]:
    """Return the name and the date of a commit that is written "NAME@DATE", or as a name alone.

    Raises:
        ValueError: its date is none, or has no time zone.
    """
    name, _, date = text.strip().partition("@")
    if not date:
        return name, None
    found = datetime.fromisoformat(date)
    if found.tzinfo is None:
        raise ValueError("no time zone")
    return name, found


class SearchLimit(RecordPart):
    """Searches for a gateway's rate that something other than the gateway ended: its own rate may be higher.

    Attributes:
        gateway: label of the gateway.
        quantity: kind of frames that the rate applies to.
        limited_by: what ended the searches.
        searches: number of searches that ended like this.
        of: number of all searches.
        at_least: median over those searches of the rate that the gateway reached, frames/s of each direction.
    """

    gateway: str
    quantity: Quantity
    limited_by: SearchLimitedBy
    searches: _Count
    of: _Count
    at_least: float

    @property
    def text(self) -> str:
        """The limit as a sentence, without its full stop."""
        return (
            f"the bottleneck of {self.gateway} was {self.limited_by} in {self.searches} of "
            f"{with_noun(self.of, 'searches')}: its rate is at least {at_least(self.at_least)} {RATE_OF[self.quantity]}"
        )


class RatioEstimate(RecordPart):
    """Cost of one gateway for one quantity, as a ratio to the baseline's cost.

    Attributes:
        gateway: label of the gateway.
        quantity: kind of frames that the cost applies to.
        ratio: median over blocks of the gateway's cost / the baseline's; None = there are too few blocks, or one end of
            the interval is not known.
        low: lower end of the confidence interval; 0 = not known, None = there is no interval.
        high: upper end of the confidence interval; None = not known, or there is no interval.
        half_width: half the width of the interval, as a share of the larger of both costs; None = not known.
        level: coverage of the interval, over all interim analyses together.
        verdict: conclusion from the interval.
        text: the verdict as a sentence, without its full stop.
        above: whether the gateway surely costs more (True) or surely does not cost more (False) than `fail_above`
            allows; None = not known, or not asked.
        nanoseconds: work of the gateway for a frame, median over blocks, without the tester's own.
        ratio_to_forwarding: cost of the gateway / that of plain forwarding, median over blocks; None by rates.
        blocks: number of ratios that the median is of.
        limits: searches that limit the range of this ratio; empty by slices.
    """

    gateway: str
    quantity: Quantity
    ratio: _Ratio | None
    low: _Ratio | None
    high: _Ratio | None
    half_width: _Ratio | None
    level: _Share
    verdict: CostVerdict
    text: str
    above: bool | None
    nanoseconds: float | None
    ratio_to_forwarding: float | None
    blocks: _Count
    limits: tuple[SearchLimit, ...] = ()

    @model_validator(mode="after")
    def _in_its_interval(self) -> Self:
        known = [end for end in (self.low, self.ratio, self.high) if end is not None]
        if known != sorted(known):
            raise ValueError(f"the ratio {self.ratio} lies outside of its interval, {self.low} to {self.high}")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval; 0 and infinite where they are not known."""
        return self.low or 0.0, math.inf if self.high is None else self.high

    @property
    def is_bounded(self) -> bool:
        """Whether both ends of the interval are known."""
        return bool(self.low) and self.high is not None


class BaselineCost(RecordPart):
    """Cost of the baseline for one quantity.

    Attributes:
        quantity: which frames the cost is of.
        nanoseconds: work of the baseline for a frame, without the tester's own; None = not known.
        ratio_to_forwarding: its cost / that of plain forwarding; None = not known.
        tester_nanoseconds: work of the tester itself for such a frame; None = not measured.
    """

    quantity: Quantity
    nanoseconds: float | None
    ratio_to_forwarding: float | None
    tester_nanoseconds: float | None


class GatewayRecord(RecordPart):
    """A gateway of a comparison.

    Attributes:
        label: the gateway as the user named it, with its own settings.
        role: role of the gateway in the comparison.
        devices: number of devices; more than 1 where the gateway is a chain.
        parameters: all parameters of the gateway.
        rates: median of its highest rates by quantity, frames/s of each direction; None = not known; empty by slices.
        doubts: reasons to trust those rates less, by quantity.
        unmatched: first interfaces, networks and hosts that its rules name and no lab has, so that those rules match
            nothing; empty = none, or not known.
        unmatched_more: number of further ones.
    """

    label: str
    role: Role
    devices: Annotated[int, Field(ge=1)]
    parameters: Parameters
    rates: dict[Quantity, float | None] = Field(default_factory=dict)
    doubts: dict[Quantity, tuple[Note, ...]] = Field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    unmatched_more: _Count = 0


class SliceCounts(RecordPart):
    """Slices of a comparison.

    Attributes:
        core: number of the processor core that all gateways work on.
        frames: frames of one slice.
        slices: number of all slices.
        interrupted: slices in which the core was taken away for more than 1 ms.
        waited: slices whose frames arrived only after the call that sent them.
    """

    core: _Count
    frames: Annotated[int, Field(ge=1)]
    slices: _Count
    interrupted: _Count
    waited: _Count


class ComparisonRecord(Record):
    """The record of one comparison.

    Attributes:
        schema_name: name and version of this schema; the field `schema` in JSON.
        by: method of the comparison.
        gateways: the baseline first, then the others in their order, the A/A control last.
        estimates: estimates of each compared gateway and quantity.
        control: estimates of the A/A control; its true ratios are 1.
        baseline_costs: baseline costs of each quantity.
        forwarding_nanoseconds: work of plain forwarding for a frame by quantity, which is what one more device in a
            chain costs at least; empty by rates.
        decided: whether every question is answered.
        above: whether a gateway surely costs more than `fail_above` allows; None = not asked.
        resolve: half the width of an interval at which its question is answered, as a share of the larger cost.
        fail_above: share by which a gateway may cost more than the baseline; None = not asked.
        seconds: length of all rounds.
        rounds: number of rounds, each in labs of its own.
        seed: seed of all pseudorandom choices.
        slices: None by rates.
        notes: facts that a reader must know.
        results: folder of the evidence, as it was called when it was made.
        began: when the first round began, s since the epoch.
        commit: name of the commit that was compared, with its date if that was given: "NAME@DATE".
    """

    schema_version: ClassVar = COMPARISON_SCHEMA

    schema_name: Literal["natgauge-comparison-5"] = Field(default=COMPARISON_SCHEMA, alias="schema")
    by: Method
    gateways: Annotated[tuple[GatewayRecord, ...], Field(min_length=3)]
    estimates: Annotated[tuple[RatioEstimate, ...], Field(min_length=1)]
    control: tuple[RatioEstimate, ...]
    baseline_costs: tuple[BaselineCost, ...]
    forwarding_nanoseconds: dict[Quantity, float | None] = Field(default_factory=dict)
    decided: bool
    above: bool | None
    resolve: float
    fail_above: float | None
    seconds: float
    rounds: _Count
    seed: int
    slices: SliceCounts | None = None
    notes: tuple[Note, ...] = ()
    results: str | None = None
    began: Annotated[float, Field(ge=0, le=LAST_SECOND)]
    commit: str | None = None

    @model_validator(mode="after")
    def _of_these_gateways(self) -> Self:
        roles = [gateway.role for gateway in self.gateways]
        if roles[0] != "baseline" or roles[-1] != "control" or set(roles[1:-1]) - {"compared"}:
            raise ValueError(f"the gateways are {', '.join(roles)}: want the baseline first and the control last")
        for name, estimates, allowed in (
            ("estimates", self.estimates, {gateway.label for gateway in self.gateways[1:-1]}),
            ("control", self.control, {self.gateways[-1].label}),
        ):
            unknown = next((estimate.gateway for estimate in estimates if estimate.gateway not in allowed), None)
            if unknown is not None:
                raise ValueError(f"{name}: {unknown} is none of the gateways that it may have")
        return self

    @property
    def baseline(self) -> GatewayRecord:
        """The gateway that all others are compared with."""
        return self.gateways[0]

    @property
    def compared(self) -> tuple[GatewayRecord, ...]:
        """All gateways but the baseline and the A/A control."""
        return self.gateways[1:-1]

    @property
    def limits(self) -> tuple[SearchLimit, ...]:
        """All limits of all estimates, each once."""
        return tuple(dict.fromkeys(limit for estimate in (*self.estimates, *self.control) for limit in estimate.limits))

    def gateway(self, label: str) -> GatewayRecord:
        """Return the gateway with this label, which must exist."""
        return {gateway.label: gateway for gateway in self.gateways}[label]

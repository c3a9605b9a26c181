# SPDX-License-Identifier: Apache-2.0
"""The record of a campaign: what was planned when it began. Its journal and its results folders contain the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, JsonValue

from natgauge.records.record import Record, RecordPart

CAMPAIGN_SCHEMA: Final = "natgauge-campaign-1"
#: Bounds of an estimate, s: no sum or ratio of such estimates is beyond what a float holds.
LEAST_ESTIMATE: Final = 0.001
MOST_ESTIMATE: Final = 1e12


class CampaignMeasurement(RecordPart):
    """A measurement of a cell.

    Attributes:
        name: name of the measurement, unique within its cell.
        repetitions: number of repetitions, at most.
        estimated_seconds: time that one repetition takes, in s, as estimated when the campaign began.
        file_sha256: SHA-256 of what its settings have read of a file, such as a subscriber's profile; empty = they name
            none, or it was not recorded.
    """

    name: str
    repetitions: Annotated[int, Field(ge=1, le=2**63 - 1)]
    estimated_seconds: Annotated[float, Field(ge=LEAST_ESTIMATE, le=MOST_ESTIMATE)]
    file_sha256: str = ""


class CampaignCell(RecordPart):
    """A cell of a campaign: one device at one point of the series.

    Attributes:
        name: name of the cell.
        device: name of the device.
        values: the point, by the name of what varies.
        measurements: measurements of the cell, in their order.
    """

    name: str
    device: str
    values: dict[str, JsonValue]
    measurements: tuple[CampaignMeasurement, ...]


class CampaignRecord(Record):
    """Plan of a campaign at its beginning.

    Attributes:
        schema_name: name and version of this schema; the field `schema` in JSON.
        natgauge: version that began the campaign; only that version continues it.
        name: name of the campaign.
        plan: the plan as read.
        sha256: SHA-256 of the plan.
        seed: seed of all pseudorandom choices.
        recipes: SHA-256 of each device's recipe, by the name of the device.
        cells: cells in the order of the plan.
    """

    schema_version: ClassVar = CAMPAIGN_SCHEMA

    schema_name: Literal["natgauge-campaign-1"] = Field(default=CAMPAIGN_SCHEMA, alias="schema")
    natgauge: str
    name: str
    plan: dict[str, JsonValue]
    sha256: str
    seed: int
    recipes: dict[str, str]
    cells: tuple[CampaignCell, ...]


@dataclass(slots=True)
class Broken:
    """What broke in a campaign and was not tried again, with the first reason of each, from the lines of its journal.

    Attributes:
        measurements: by the names of their cells and their own.
    """

    devices: dict[str, str] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)
    measurements: dict[tuple[str, str], str] = field(default_factory=dict)

    def take(self, line: Mapping[str, Any]) -> None:
        """Take the next line of any event."""
        device, cell, measurement, cause = (str(line.get(name)) for name in ("device", "cell", "measurement", "cause"))
        match line.get("event"), line.get("scope"):
            case "broken", "device":
                self.devices.setdefault(device, cause)
            case "broken", "cell":
                self.cells.setdefault(cell, cause)
            case "broken", _:
                self.measurements.setdefault((cell, measurement), cause)
            case "retried", _:
                tried = (line.get(name) for name in ("devices", "cells"))
                devices, cells = (names if isinstance(names, dict | list) else () for names in tried)
                self.devices = {name: why for name, why in self.devices.items() if name not in devices}
                self.cells = {name: why for name, why in self.cells.items() if name not in cells}
                self.measurements = {name: why for name, why in self.measurements.items() if name[0] not in cells}

    def cause(self, cell: str, device: str, measurement: str) -> str:
        """Reason why a measurement cannot go on, of the largest of what broke; empty = it can."""
        return self.devices.get(device) or self.cells.get(cell) or self.measurements.get((cell, measurement), "")

# SPDX-License-Identifier: Apache-2.0
"""A procedure with settings that a bench can perform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from natgauge.gateways.limits import DeviceDemand
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.settings import TrialSettings


@dataclass(frozen=True, slots=True)
class Planned:
    """One procedure with settings that its bench can perform."""

    procedure: Procedure[Any]
    settings: TrialSettings
    demand: DeviceDemand
    chosen: Mapping[str, Any] = field(default_factory=dict)

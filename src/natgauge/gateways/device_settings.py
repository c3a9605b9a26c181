# SPDX-License-Identifier: Apache-2.0
"""Programs and settings of a device, which RFC 9693 section 6 requires to be reported with every result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """Programs and settings of a device, which RFC 9693 section 6 requires to be reported with every result.

    Attributes:
        knobs: value by knob, read back from the device; only knobs that the device has.
        emptying: name of the way in which the table is emptied; None = the device keeps no connections.
        logging: name of the way in which the connections are logged; None = they are not.
        log_tolerance: share of the connections that the log of a passing trial may lack.
    """

    gateway: str
    version: tuple[str, ...]
    connections: int
    knobs: Mapping[str, int]
    files: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[str, int] = field(default_factory=dict)
    emptying: str | None = None
    logging: str | None = None
    log_tolerance: float = 0.0

    @property
    def connections_per_bucket(self) -> float | None:
        """Load of the hash table when all connections exist; None when there is no hash table."""
        buckets = self.knobs.get("hash_size")
        return self.connections / buckets if buckets else None

    @property
    def table_filled(self) -> float | None:
        """Share of the table the connections take, 0 to 1; None when it has no limit."""
        size = self.knobs.get("table_size")
        return self.connections / size if size else None

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it; what the gateway does not have is absent."""
        ratios = {"connections_per_bucket": self.connections_per_bucket, "table_filled": self.table_filled}
        return {
            "gateway": self.gateway,
            "version": list(self.version),
            "connections": self.connections,
            "knobs": dict(self.knobs),
            "files": dict(self.files),
            "found": dict(self.found),
            **({} if self.emptying is None else {"emptying": self.emptying}),
            **({} if self.logging is None else {"logging": self.logging, "log_tolerance": self.log_tolerance}),
            **{name: value for name, value in ratios.items() if value is not None},
        }

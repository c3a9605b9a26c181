# SPDX-License-Identifier: Apache-2.0
"""The base of all types that are generated from the engine's schemas."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class AgreementPart(BaseModel):
    """A part of the agreement with the engine: no unknown fields, immutable, only numbers that JSON can represent."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def to_json(self) -> str:
        """Return the part as one line of JSON; absent fields are left out."""
        return self.model_dump_json(exclude_none=True)

# SPDX-License-Identifier: Apache-2.0
"""Settings of a metric from choices as users write them, texts included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from natgauge.procedures.kit.procedure import Procedure, make_settings


def settings_of(procedure: Procedure[Any], choices: Mapping[str, object], **decided: Any) -> Any:
    """Read the choices, and make the settings of them and of what traffic and lab decide."""
    return make_settings(procedure, procedure.taken(choices), **decided)

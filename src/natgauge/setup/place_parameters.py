# SPDX-License-Identifier: Apache-2.0
"""What a record states of a lab: its own parameters, and how its real ports are set."""

from __future__ import annotations

from typing import Any

from natgauge.errors import BrokenError
from natgauge.host.tuning.recorded import settings_of
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import Lab


def place_parameters(lab: Lab) -> dict[str, Any]:
    """Return the parameters of a lab that is up, by name; the settings of its ports only where these are real."""
    return {**lab.parameters(), **({} if lab.virtual else _of_ports(lab))}


def _of_ports(lab: Lab) -> dict[str, list[str | None]]:
    try:
        settings = [
            inside(port.netns, lambda name=port.interface: settings_of(name))  # type: ignore[misc]
            for port in (lab.initiator, lab.responder)
        ]
    except BrokenError:
        return {}
    return {f"port_{name}": [each[name] for each in settings] for name in settings[0]}

# SPDX-License-Identifier: Apache-2.0
"""The `cable` lab: the tester's two ports joined by one virtual cable, no device. It shows what the tester can do."""

from __future__ import annotations

from collections.abc import Sequence

from natgauge.labs.common.base import FIRST_INDEX, INITIATOR_PORT, RESPONDER_PORT, MadeLab
from natgauge.labs.common.links import End, VethCable
from natgauge.labs.common.locks import check_name
from natgauge.labs.contract import Device, Port
from natgauge.words import Placement


class CableLab(MadeLab):
    """Both ports in one namespace; each port's gateway is the other port."""

    kind = "cable"
    placement: Placement = "shared"
    devices: Sequence[Device] = ()

    def __init__(self, name: str = "cable", server_cpus: Sequence[int] = ()) -> None:
        """Plan the lab, with a real server at the Responder's port if it gets cores; nothing is made yet."""
        super().__init__(check_name(name), {})
        first, second = self._cables()[0].ends
        self.initiator = Port(first.interface, first.netns, second.mac, None)
        self.responder = Port(second.interface, second.netns, first.mac, None)
        self.server = self._home_of_server(first.mac, server_cpus) if server_cpus else None

    def _cables(self) -> Sequence[VethCable]:
        return (
            VethCable(
                (
                    End(self.tester, INITIATOR_PORT, "02:6e:67:00:ff:01"),
                    End(self.tester, RESPONDER_PORT, "02:6e:67:00:ff:02"),
                ),
                FIRST_INDEX,
            ),
        )

# SPDX-License-Identifier: Apache-2.0
"""Names of figures that results of several metrics have."""

from __future__ import annotations

from typing import Final

#: The rate of all directions together, frames/s.
IN_ALL: Final = "frames_per_second_total"
#: New connections of a load of several kinds; those that are open at a time, while frames flow; all that the device's
#: table holds at the end of a trial, those that left as well; the bits of its IP packets.
CONNECTIONS_PER_SECOND: Final = "connections_per_second"
OPEN_CONNECTIONS: Final = "open_connections"
TABLE_ENTRIES: Final = "table_entries"
GIGABITS: Final = "gigabits_per_second"
#: The length of the trial behind an answer, in seconds.
TRIAL_SECONDS: Final = "trial_seconds"
#: Frames of the device's busiest core divided by the mean of all cores; 1 = even.
CORE_IMBALANCE: Final = "core_imbalance"
#: Number of the device's cores that did next to nothing.
IDLE_CORES: Final = "idle_cores"
#: Octets of a connection in the kernel of the device's machine.
OCTETS_PER_CONNECTION: Final = "octets_per_connection"
#: Mean power of the device in the trials at the highest load that passed, in W, and its energy for a frame or, where
#: trials only open connections, for a connection: phases, pauses and what the device takes when idle are included.
WATTS: Final = "watts"
MICROJOULES_PER_FRAME: Final = "microjoules_per_frame"
MICROJOULES_PER_CONNECTION: Final = "microjoules_per_connection"
#: Connections that the device itself calls open, after the trial that gave the value.
ESTABLISHED: Final = "established"
#: Name of a figure before the device's name: lost frames that the device's rings and interfaces dropped, in percent.
LOST_PERCENT_AT: Final = "lost_percent_at_"
#: Of a search that loss at every rate ended: the connections that a device kept that holds a limited number of them;
#: or the share, and the highest rate at which no more than that was lost.
HELD_FIGURE: Final = "connections_held"
SHARE_FIGURE: Final = "share_lost_at_every_rate"
HIGHEST_FIGURE: Final = "highest_rate_with_that_share"

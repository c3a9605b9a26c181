# SPDX-License-Identifier: Apache-2.0
"""By how much a rate that passed may be above the device's own, whatever the reason."""

from __future__ import annotations

from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search import late_frames, queues
from natgauge.procedures.kit.search.rate_search import SearchSettings


def most_share(found: Measurement, settings: SearchSettings) -> float:
    """The largest share by which the rate may be too high: the device surely does value / (1 + share).

    Frames that wait in queues before the device raise it (`queues`), and so does the lag that is tolerated in `shared`
    placement (`late_frames`). Where both can happen, both count.

    Args:
        found: with the figure `queues.TRIAL_SECONDS`; without it nothing passed, and the share is 0.
        settings: of the search.
    """
    seconds = found.figures.get(queues.TRIAL_SECONDS)
    if seconds is None:
        return 0.0
    settings = settings.as_run()
    share = 0.0
    if queues.waits(settings.placement, settings.own_processes) and settings.frame_timeout_seconds is not None:
        share += queues.most_share(settings.frame_timeout_seconds, seconds)
    if settings.placement == "shared":
        share += late_frames.most_share(seconds, settings.error)
    return share

# SPDX-License-Identifier: Apache-2.0
"""One run of the engine through the device, with what device and lab report before and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from natgauge.bench.asking import Asking
from natgauge.bench.evidence import Evidence
from natgauge.bench.protocols import DeviceControl, Place, ServerControl
from natgauge.bench.restart import RestartInTrial
from natgauge.counts import received_in_all, streams_of
from natgauge.errors import NatgaugeError, UsageError
from natgauge.measurer import Restart
from natgauge.trials import Progress, TrialRequest, TrialResult

#: How labs name the tester's own ports.
_TESTER_PLACES: Final = ("initiator port", "responder port")
#: Said where a device that is not ours is to do something.
NOT_OURS: Final = "this device is not ours, so it cannot be told to do that; choose another metric"


@dataclass(frozen=True, slots=True)
class _DeviceReport:
    """What a device says of itself after a trial: its count, that of parts that must hold nothing, its faults."""

    count: int | None = None
    strays: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrialRun:
    """Runs trials.

    Attributes:
        place: the lab.
        device: controls of the device; None = it cannot be reached.
        server: the real one behind the device; None = the tester answers.
        asking: asks the device again where a command fails.
        run: has the engine perform a request, and reports its progress.
        progress: is called with the engine's progress.
        own_drops: frames of the engine's self-test that the lab counts as dropped, by place.
        sleep: waits while a device settles.
    """

    place: Place
    device: DeviceControl | None
    server: ServerControl | None
    asking: Asking
    run: Callable[[TrialRequest, Callable[[Progress], None]], TrialResult]
    progress: Callable[[Progress], None]
    own_drops: Mapping[str, int]
    sleep: Callable[[float], None]

    def perform(self, request: TrialRequest, restart_at: float | None, settle: float) -> Evidence:
        """Empty the device's table, run the engine, and ask the device and the lab what they saw.

        Args:
            request: of the engine.
            restart_at: seconds after phase 2 began at which the device is restarted; None = it is not.
            settle: the device is left alone for this many seconds before, its table empty.

        Raises:
            SilentControlsError: the device's controls did not answer before the trial.
            NatgaugeError: it could not be run.
        """
        count_before = emptied(self.device, self.asking)
        if settle:
            self.sleep(settle)
        faults_before = self._faults()
        dropped_before = self._dropped()
        refused_before = self._refused()
        if restart_at is None:
            result, restart, error = self.run(request, self.progress), None, ""
        else:
            result, restart, error = self._run_restarting(request, restart_at)
        dropped_after = self._dropped()
        if self.server is not None:
            self.server.confirm_standing()
        refused = {cause: number - refused_before.get(cause, 0) for cause, number in self._refused().items()}
        found = _DeviceReport()
        if self.device is not None and not error:
            try:
                found = self._look_after(self.device, result)
            except NatgaugeError as failed:
                error = str(failed)
        faults = {name: number - faults_before.get(name, 0) for name, number in found.faults.items()}
        return Evidence(
            request=request,
            result=result,
            count_before=count_before,
            count_after=found.count,
            strays=found.strays,
            dropped_before={
                place: before + min(self.own_drops.get(place, 0), max(dropped_after.get(place, before) - before, 0))
                for place, before in dropped_before.items()
            },
            dropped_after=dropped_after,
            faults=faults,
            server_refused=refused,
            device_error=None if self.device is None else error,
            restart=restart,
        )

    def _run_restarting(self, request: TrialRequest, seconds: float) -> tuple[TrialResult, Restart, str]:
        """Run a trial with a restart; the last is what the device said if it did not come back."""
        if self.device is None:
            raise UsageError(NOT_OURS)
        restart = self.device.restart_under_load

        def report(progress: Progress) -> None:
            restarting.look(progress)
            self.progress(progress)

        with RestartInTrial(restart, seconds) as restarting:
            result = self.run(request, report)
        return result, restarting.ended(), restarting.said

    def _faults(self) -> Mapping[str, int]:
        return {} if self.device is None else self.asking(self.device.faults)

    def _refused(self) -> Mapping[str, int]:
        return {} if self.server is None else self.server.refused()

    def _dropped(self) -> dict[str, int]:
        """Drops at the device's places; those at the tester's own ports are in the engine's result already."""
        return {place: count for place, count in self.place.dropped().items() if not place.startswith(_TESTER_PLACES)}

    def _look_after(self, device: DeviceControl, result: TrialResult) -> _DeviceReport:
        """What the device says of itself after a trial.

        Its time-outs were checked to outlast both phases. One whose controls answer although it is gone shows when
        nothing comes back.

        Raises:
            NatgaugeError: it does not stand, or does not answer however often it is asked.
        """
        if not received_in_all(streams_of(result)):
            self.asking(device.confirm_standing)
        count, strays = self.asking(device.count), self.asking(device.strays)
        return _DeviceReport(count, strays, self.asking(device.faults))


def emptied(device: DeviceControl | None, asking: Asking) -> int | None:
    """Empty the device's table before a trial (RFC 9693 section 4.4); its count then, None = it cannot be reached."""
    if device is None:
        return None
    asking(device.empty)
    return asking(device.count)

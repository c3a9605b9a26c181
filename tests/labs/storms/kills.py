# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments: of each command, of sessions of a campaign that is resumed, and of workers of Dask's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.labs import kills
from tests.labs.storms import groups
from tests.labs.storms.remains import settings_left, values_of
from tests.labs.storms.storm import Storm, Tally, cores_missing, nothing_missing
from tests.labs.storms.victims import VICTIMS, Around, Victim, begun, cleaned, examined, undisturbed

#: Share of the kills after which `natgauge lab clean` cleans up; after the others the next run of the lab does.
_CLEANED: Final = 0.5
#: Seconds from the beginning of a session, or from one kill of a worker to the next, at most: on a busy host natgauge
#: begins after some seconds.
_SESSION: Final = 15.0
#: No kill comes later in a run, seconds.
_LATEST: Final = 60.0
_HOLDS: Final = (
    "no process, namespace, register, lock, BPF program or interface is left after `natgauge lab clean` or the next "
    "run; settings of the host are as before; no ended trial is lost; `natgauge report` reads the results"
)


def killed(victim: Victim) -> Callable[[Tally], None]:
    """Return a storm over one command: each run is killed at a moment that is evenly spread over a run's duration."""

    def make(tally: Tally) -> None:
        before = values_of(victim.changes)
        with victim.around(tally.folder) as around:
            whole = victim.latest or min(undisturbed(tally, victim, around), _LATEST)
            ended = 0
            while tally.goes_on:
                ended += not _kill(tally, victim, around, whole, before)
            cleaned(tally, around)
            tally.blame(settings_left(before))
            if ended:
                tally.notes.append(f"{ended} runs ended before their moment, and are not counted")

    return make


def _kill(tally: Tally, victim: Victim, around: Around, whole: float, before: Mapping[str, str]) -> bool:
    """Start a run and kill it; return whether it was killed, and had not ended before."""
    with begun(tally, victim, around) as run:
        try:
            status = run.process.wait(tally.chance.uniform(0.0, whole))
        except subprocess.TimeoutExpired:
            doing = run.look()
            # Whether there is something to restore shows whether the storm proves anything.
            doing += ", the host's settings changed" if any(settings_left(before)) else ""
            run.process.kill()
            run.process.wait()
            tally.saw(doing)
        else:
            if not victim.is_right(status, run.end()):
                tally.blame([f"not killed, it ended with {status}: {run.end()}"])
            return False
        if victim.stays or tally.chance.random() < _CLEANED:
            cleaned(tally, around)
            tally.blame(settings_left(before))
        examined(tally, run)
    return True


def _campaigns(workers: int) -> Callable[[Tally], None]:
    """Return a storm over a campaign that is resumed until it has ended; with workers, these are killed."""

    def make(tally: Tally) -> None:
        killed = kills.Killed(tally.chance, tally.most, tally.until, workers=workers, latest=_SESSION)
        killed.run(tally.folder)
        for what, number in killed.caught.items():
            tally.saw(what, number)
        tally.notes.append(f"{killed.campaigns} campaigns ended, with {killed.trials} trials, each once")
        tally.blame(killed.faults)
        cleaned(tally, Around())

    return make


def _storms() -> Iterator[Storm]:
    counts = {"measure": (300, 20), "compare": (150, 10), "run": (100, 5), "audit": (100, 5), "ssh": (100, 5)}
    for victim in VICTIMS:
        full, soak = counts.get(victim.name, (50, 3))
        yield Storm(
            name=f"kill-{victim.name}",
            started=f"`{victim.command}`",
            disturbed="SIGKILL at any moment of a run",
            holds=_HOLDS,
            unit="kills",
            full=full,
            soak=soak,
            make=killed(victim),
            missing=lambda victim=victim: groups.missing() or victim.missing(),  # type: ignore[misc]
        )
    of_campaign = (
        "each repetition is there once, and each of its trials counts once; the journal keeps every whole line; "
        "nothing is left when the campaign has ended"
    )
    for name, started, part, workers, full in (
        ("kill-resumed", "`natgauge run`, resumed until the campaign has ended", "the session", 0, 150),
        ("kill-workers", "`natgauge run --on local:2`, two workers of Dask's", "a worker", 2, 100),
    ):
        yield Storm(
            name=name,
            started=started,
            disturbed=f"SIGKILL of {part}",
            holds=of_campaign,
            unit="kills",
            full=full,
            soak=10,
            make=_campaigns(workers),
            missing=cores_missing if workers else nothing_missing,
        )


KILLS: Final = tuple(_storms())

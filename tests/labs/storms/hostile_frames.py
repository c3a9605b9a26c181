# SPDX-License-Identifier: Apache-2.0
"""A device that sends hostile frames in addition to those that it forwards: verdicts and memory are as without them.

natgauge measures and audits a gateway as it is, and with a process that sends random and forged frames. A trial must
have the same verdict, the result the doubt about other traffic, and an audit the same verdicts or "not seen".
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.labs.program import command_line, own
from tests.labs.storms.storm import Storm, Tally, cores_missing

_SENDER: Final = Path(__file__).with_name("hostile_sender.py")
#: Hostile frames/s: more than any trial of the round offers, and fewer than a core can send.
_RATE: Final = 40_000
#: Hostile frames that may all be sent while natgauge looks whether the device forwards, before its first trial.
_BEFORE_TRIALS: Final = 20_000
#: Most hostile frames of one run, so that the process sends during all of the run's trials.
_MOST: Final = 500_000
#: Memory that a run with hostile frames may take in addition: the frames that an audit keeps, in KiB.
_MORE_MEMORY: Final = 160 * 1024
_MEASURE: Final = (
    *("measure", "frame-loss", "--connections=500", "--profile=quick", "--full-rate=2000", "--most-seconds=15"),
    "--stateless",
)
_AUDIT: Final = ("audit", "--wait=0", "--mappings=64")
_RECIPE: Final = """
name = "{name}"
title = "Linux with {count} hostile frames"
kind = "{kind}"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = {stateful}
source = "{source}"
transports = ["udp", "icmp", "tcp"]
extends = [{extends}]
[environment]
NFT_FAMILY = "ip"
"""
_PROCESS: Final = """
[[process]]
name = "hostile"
command = "{command}"
"""
_ROUTING: Final = {"kind": "routing", "stateful": "false", "source": "unchanged", "extends": '"linux-ipv4"'}
_NAT: Final = {
    "kind": "nat44",
    "stateful": "true",
    "source": "translated",
    "extends": '"linux-ipv4", "conntrack", "nftables-masquerade"',
}


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of natgauge.

    Attributes:
        status: its exit status.
        said: the end of what it said.
        memory: the largest resident set of natgauge and of the programs that it started, KiB.
        sent: hostile frames that were sent meanwhile.
        folder: its results folder; None = it made none.
    """

    status: int
    said: str
    memory: int
    sent: int
    folder: Path | None

    def lines(self, name: str) -> list[Any]:
        """Return the documents of a file with one in each line."""
        return [] if self.folder is None else [json.loads(line) for line in (self.folder / name).open()]

    def document(self, name: str) -> Any:
        """Return the document of a file; an empty one where there is none."""
        path = None if self.folder is None else self.folder / name
        return json.loads(path.read_text()) if path is not None and path.exists() else {}


def _run(folder: Path, recipe: Mapping[str, str], arguments: Sequence[str], count: int) -> Ran:
    """Run natgauge on a device that sends this number of hostile frames."""
    folder.mkdir()
    told = folder / "sent"
    path = folder / "hostile.toml"
    text = _RECIPE.format(name="hostile", count=count, **recipe)
    command = f"/usr/bin/python3 {_SENDER} {count} {_RATE} {told}"
    path.write_text(text + (_PROCESS.format(command=command) if count else ""))
    results, said = folder / "results", folder / "said"
    with said.open("w") as output:
        process = subprocess.Popen(
            command_line([*arguments, f"--gateway={path}", f"--lab-name={own('hostile')}", f"--results={results}"]),
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    made = sorted(results.iterdir()) if results.exists() else []
    sent = int(told.read_text() or 0) if told.exists() else 0
    last = " | ".join(said.read_text().splitlines()[-2:])
    return Ran(process.returncode, last[:400], used.ru_maxrss, sent, made[-1] if made else None)


def _trials(tally: Tally, quiet: Ran, hostile: Ran) -> None:
    """Compare the trials of two measurements, and what their results say."""
    for name, ran in (("without", quiet), ("with", hostile)):
        if ran.status:
            tally.blame([f"measure {name} hostile frames: exit status {ran.status}: {ran.said}"])
    verdicts = [
        {each["verdict"] for each in ran.lines("trials.jsonl") if each["verdict"] != "INVALID"}
        for ran in (quiet, hostile)
    ]
    if verdicts[0] != verdicts[1]:
        reasons = "; ".join(each["reason"] for each in hostile.lines("trials.jsonl") if each["reason"])
        tally.blame([f"verdicts {sorted(verdicts[1])} ({reasons}), without hostile frames {sorted(verdicts[0])}"])
    words = [{doubt["word"] for doubt in ran.document("summary.json").get("doubts", [])} for ran in (quiet, hostile)]
    if "other traffic" in words[0] or ("other traffic" not in words[1] and hostile.sent > _BEFORE_TRIALS):
        tally.blame([f"doubts are {sorted(words[1])}, without hostile frames {sorted(words[0])}"])


def _verdicts(ran: Ran) -> dict[tuple[Any, ...], str]:
    every = ran.document("audit.json").get("requirements", [])
    return {(one["rfc"], one["requirement"], one["transport"]): one["verdict"] for one in every}


def _audits(tally: Tally, quiet: Ran, hostile: Ran) -> None:
    """Compare the verdicts of two audits."""
    for name, ran in (("without", quiet), ("with", hostile)):
        if ran.status:
            tally.blame([f"audit {name} hostile frames: exit status {ran.status}: {ran.said}"])
    before, after = _verdicts(quiet), _verdicts(hostile)
    others = {key: verdict for key, verdict in after.items() if verdict not in (before.get(key), "not seen")}
    # A requirement that a quiet audit could not decide, because this host stalled, says nothing of hostile frames.
    wrong = {key: verdict for key, verdict in others.items() if before.get(key) != "not seen"}
    tally.blame([f"{key} {verdict}, without hostile frames {before.get(key)}" for key, verdict in wrong.items()])
    undecided = sum(verdict == "not seen" != before.get(key) for key, verdict in after.items())
    tally.notes.append(f"an audit with {hostile.sent:,} hostile frames left {undecided} of {len(before)} verdicts open")


def _memory(tally: Tally, what: str, quiet: Ran, hostile: Ran) -> None:
    mib = [ran.memory / 1024 for ran in (quiet, hostile)]
    tally.notes.append(f"{what}: {mib[0]:.0f} MiB without, {mib[1]:.0f} MiB with {hostile.sent:,} hostile frames")
    if hostile.memory > quiet.memory + _MORE_MEMORY:
        tally.blame([f"{what}: {mib[1]:.0f} MiB with hostile frames, {mib[0]:.0f} MiB without"])


def _make(tally: Tally) -> None:
    kinds = (("measure", _ROUTING, _MEASURE, _trials), ("audit", _NAT, _AUDIT, _audits))
    number, sent = 0, {what: 0 for what, *_ in kinds}
    quiet = {what: _run(tally.folder / f"quiet-{what}", recipe, words, 0) for what, recipe, words, _ in kinds}
    while tally.goes_on and not tally.faults:
        # Measurements and audits get half of all frames each; the one with fewer frames so far is next.
        what, recipe, words, compare = min(kinds, key=lambda kind: sent[kind[0]])
        count = min(_MOST, max(1000, tally.most // len(kinds) - sent[what]))
        hostile = _run(tally.folder / f"hostile-{number}", recipe, words, count)
        tally.saw(f"frames while natgauge {what}s", hostile.sent)
        sent[what] += hostile.sent
        compare(tally, quiet[what], hostile)
        _memory(tally, what, quiet[what], hostile)
        if not hostile.sent:
            tally.blame([f"{what}: the device sent no hostile frame: {hostile.said}"])
        number += 1


HOSTILE_FRAMES: Final = (
    Storm(
        name="hostile-frames",
        started="frame loss at 2000 frames/s, and an audit",
        disturbed="the device also sends random and forged frames, 40,000 per second",
        holds="verdicts are as without them, or not decided; a result has the doubt `other traffic`; memory is bounded",
        unit="hostile frames",
        full=2 * 10**6,
        soak=10**5,
        make=_make,
        missing=cores_missing,
    ),
)

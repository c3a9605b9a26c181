# SPDX-License-Identifier: Apache-2.0
"""Rows for TCP: devices that lose one kind of segments, change their numbers, refuse, answer themselves, or delay.

Each device acts on every k-th segment of one kind, so that all counts are exact. A device that holds half-open
connections only up to H, and answers them at L a second, opens H + L * t connections in a time t in which more are
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.labs.known_answers.devices import Device, HalfOpening, Queueing, Ruled
from tests.labs.known_answers.rows import ROUGH, Evidence, Look, Read, Row, both, searched, verdict
from tests.plans import PlanOfTrial

from natgauge.words import Verdict

N, EVERY, RATE = 500, 5, 5_000.0
FIFTH = N // EVERY
TCP: Mapping[str, object] = {"transport": "tcp"}
OPENING = PlanOfTrial(N, RATE)
#: Seven segments, as FD.io's CSIT has them.
TRANSACTION = replace(OPENING, close="fin", request_octets=0)
RAW = "prerouting priority raw;"
FORWARD = "forward priority filter;"
LEAVING = "postrouting priority srcnat + 100;"
UP, DOWN = 'iifname "$NG_INSIDE"', 'iifname "$NG_OUTSIDE"'
EACH_FIFTH = f"numgen inc mod {EVERY} 0"
OTHER_HALF = "^ 0x80000000"


def segments(flags: str) -> str:
    """A match of the segments with exactly these flags."""
    return f"tcp flags & (fin | syn | rst | psh | ack) == ({' | '.join(flags.split())})"


def arrivals(evidence: Evidence, message: str) -> float:
    """Arrivals of a message of phase 1."""
    return next(float(one.received) for one in evidence.outcome.phase1.messages if one.name == message)


def arrived(message: str) -> Read:
    """The same, for a look."""
    return lambda evidence: arrivals(evidence, message)


def named(part: str) -> Look:
    """The trial has a remark with these words."""

    def found(evidence: Evidence) -> str:
        return part if any(part in remark for remark in evidence.outcome.remarks) else "not named"

    return Look("remark", "", found, part)


def judged(expected: Verdict) -> Look:
    """The verdict."""
    return Look("verdict", "", verdict, str(expected))


def trial(name: str, device: Device, plan: PlanOfTrial, *looks: Look, answer: Verdict | None = None) -> Row:
    """A single trial by TCP."""
    return Row(name, device, "single trial", looks, TCP, trial=plan, answer=answer)


def losing(message: str, flags: str, where: str = "", plan: PlanOfTrial = OPENING) -> Row:
    """A device that drops every fifth one of a kind of segments; all messages before it arrive."""
    names = ("syn", "syn-ack", "ack") if plan is OPENING else TRANSACTION_MESSAGES
    before = names.index(message)
    looks = (Look(name, "", arrived(name), float(N if at < before else N - FIFTH)) for at, name in enumerate(names))
    # A connection is open for the device when it has seen the ACK, and until it has seen the FIN.
    open_after = {"fin": FIFTH}.get(message, N - FIFTH)
    established = Look(
        "established", "connections", lambda one: float(one.outcome.readings.established or 0), float(open_after)
    )
    device = Ruled(
        words=f"drops every {EVERY}th {message}", chains={RAW: f"{where} {segments(flags)} {EACH_FIFTH} drop"}
    )
    remark = named(f"{message}: {N - FIFTH} received")
    return trial(f"loss of every fifth {message}", device, plan, *looks, established, remark, judged(Verdict.FAIL))


TRANSACTION_MESSAGES = ("syn", "syn-ack", "ack", "response", "fin", "fin-ack", "last-ack")

LOSING = (
    losing("syn", "syn"),
    losing("syn-ack", "syn ack"),
    losing("ack", "ack"),
    losing("fin", "fin ack", UP, TRANSACTION),
)

STRANGE = (
    trial(
        "resets",
        Ruled(
            words=f"resets every {EVERY}th connection",
            chains={FORWARD: f"{UP} {segments('syn')} {EACH_FIFTH} reject with tcp reset"},
        ),
        OPENING,
        Look("syn", "", arrived("syn"), float(N - FIFTH)),
        named(f"{FIFTH} resets arrived at the Initiator"),
        judged(Verdict.FAIL),
    ),
    trial(
        "SYN proxy",
        Ruled(
            words=f"answers every {EVERY}th SYN itself",
            chains={
                RAW: f"{UP} {segments('syn')} {EACH_FIFTH} notrack",
                FORWARD: f"{UP} ct state untracked synproxy mss 1460 wscale 7 timestamp sack-perm",
            },
        ),
        OPENING,
        Look("syn", "", arrived("syn"), float(N - FIFTH)),
        named(f"{FIFTH} SYN-ACKs were not the Responder's"),
        judged(Verdict.FAIL),
    ),
    trial(
        "leak of SYNs",
        Ruled(
            words=f"does not translate every {EVERY}th SYN",
            chains={RAW: f"{UP} {segments('syn')} {EACH_FIFTH} notrack"},
        ),
        OPENING,
        Look("untranslated", "frames", lambda one: float(one.outcome.phase1.untranslated), float(FIFTH)),
        judged(Verdict.FAIL),
    ),
    trial(
        "other sequence numbers",
        Ruled(
            words="adds 2^31 to the Initiator's sequence numbers, and subtracts it from acknowledgments",
            rules=f"meta l4proto tcp tcp sequence set tcp sequence {OTHER_HALF}",
            chains={RAW: f"{DOWN} meta l4proto tcp tcp ackseq set tcp ackseq {OTHER_HALF}"},
        ),
        OPENING,
        Look("syn", "", arrived("syn"), 0.0),
        named(f"{N} segments arrived with other sequence numbers"),
        judged(Verdict.FAIL),
    ),
    trial(
        "other time stamps",
        Ruled(
            words="adds 2^31 to the Initiator's time stamps, and subtracts it from echoes",
            rules=f"meta l4proto tcp tcp option timestamp tsval set tcp option timestamp tsval {OTHER_HALF}",
            chains={
                RAW: f"{DOWN} meta l4proto tcp tcp option timestamp tsecr set tcp option timestamp tsecr {OTHER_HALF}"
            },
        ),
        OPENING,
        Look("ack", "", arrived("ack"), float(N)),
        named(f"{N} SYN-ACKs arrived with other time stamps"),
        # No time limit: times do not matter.
        judged(Verdict.PASS),
        answer=Verdict.PASS,
    ),
)

# Devices that answer slowly

ANSWERED, HELD, LIMIT_SECONDS = 1_000, 200, 0.1
#: An IPv4 SYN-ACK without FCS.
SYN_ACK_OCTETS = 74
#: Frames that a stall of the host of 25 ms moves.
DOUBT = 25.0
ANSWERING = Queueing(
    words=f"lets {ANSWERED:,} SYN-ACKs a second pass, behind a queue",
    rate=ANSWERED,
    burst=2,
    queue=2 * N,
    side="inside",
    octets=SYN_ACK_OCTETS,
    # The queue takes 0.4 s to run empty.
    grace_seconds=0.6,
)


def half_open(held: int, connections: int = N) -> HalfOpening:
    """A device with this limit on half-open connections; of N of them, RATE is more than it takes."""
    words = f"holds at most {held} half-open connections, and lets {ANSWERED:,} SYN-ACKs a second pass"
    return HalfOpening(**{**vars(ANSWERING), "words": words, "held": held, "connections": connections})


#: The search times slices first if there are enough connections; they would leave half-open ones in this device, which
#: no command empties.
FEW, FEW_HELD = 250, 100

ANSWERING_SLOWLY = (
    trial(
        "second half of the handshake delayed",
        ANSWERING,
        replace(OPENING, frame_timeout_seconds=LIMIT_SECONDS),
        Look("syn-ack", "", arrived("syn-ack"), float(N)),
        Look(
            "late",
            "frames",
            lambda one: float(one.outcome.phase1.late),
            N - LIMIT_SECONDS / (1 / ANSWERED - 1 / RATE),
            both(DOUBT / (1 - ANSWERED / RATE)),
            "a stall of 25 ms",
        ),
        judged(Verdict.FAIL),
    ),
    trial(
        "half-open connections up to a limit",
        half_open(HELD),
        OPENING,
        Look("syn", "", arrived("syn"), HELD + ANSWERED * N / RATE, both(DOUBT), "a stall of 25 ms"),
        Look("lost in the second half", "", lambda one: arrivals(one, "syn") - arrivals(one, "ack"), 0.0),
        judged(Verdict.FAIL),
    ),
    searched(
        "connection rate with half-open connections up to a limit",
        "connection-rate",
        half_open(FEW_HELD, FEW),
        # Those that leave at once are answered besides.
        ANSWERED / (1 - (FEW_HELD + ANSWERING.burst) / FEW),
        {**TCP, "error": ROUGH},
    ),
)

TCP_ROWS = (*LOSING, *STRANGE, *ANSWERING_SLOWLY)

# SPDX-License-Identifier: Apache-2.0
"""Doubts about DNS64 servers: is the tester proven, and were names in the cache (RFC 8219 section 9.2)?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.figure_text import in_percent
from natgauge.figure_text import number as written
from natgauge.trials import Direction, Trial
from natgauge.words import Verdict

TURN: Final = 8
#: A DNS64 asks twice for a query, and the tester must answer at a tenth more than that.
PROOF_SHARE: Final = 2.2
#: Share of the queries for cached names that a server may ask the far side for again, which is the usual error of a
#: search.
MISSED: Final = 0.01


def _proof(facts: Facts) -> Iterator[Said]:
    """The tester must be proven before a DNS64 server is measured."""
    parameters = facts.parameters
    if parameters.get("kind") != "dns64":
        return
    needed, rate = PROOF_SHARE * facts.measured.summary.median, parameters.get("server_alone")
    proven, found = False, "how many it answers was not measured"
    if isinstance(rate, int | float):
        proven, found = rate >= needed, f"it answered {written(rate)}"
    yield Said(
        f"the tester's own server is {'' if proven else 'not '}proven by RFC 8219 section 9.2, {written(needed)} "
        f"queries/s (2.2 times this rate) within a quarter of the time: {found}",
        grade="information" if proven else "answer",
    )


def _missed(facts: Facts) -> Iterator[Said]:
    """A full cache forgets names, and the far side is asked for them again."""
    passed = [trial for trial in facts.counted if trial.plan.cached_share and trial.verdict is Verdict.PASS]
    worst = max(map(_asked_again, passed), default=0.0)
    if worst > MISSED:
        yield Said(
            f"the server asked the far side again for up to {in_percent(worst)} of the queries whose names phase 1 had "
            "put into its cache",
            value=worst,
        )


def _asked_again(trial: Trial) -> float:
    """Return the share of the queries for cached names that were asked for again.

    A new name is asked for twice, or once if it has an AAAA record. Queries that the server sends again for a new name
    count as asked again, too.
    """
    counts, plan = trial.phase2[Direction.INITIATOR], trial.plan
    each = 2 - plan.aaaa_share
    again = (counts.asked or 0) - each * (1 - plan.cached_share) * counts.offered_frames
    return again / (each * plan.cached_share * counts.offered_frames)


DOUBTS: Final = (
    Doubt(
        word="tester proof",
        grade="answer",
        about="result",
        holds=_proof,
        grades="`information` if it is proven",
        meaning=(
            "a DNS64 server was measured. RFC 8219 section 9.2 requires that the tester's authoritative server alone "
            "answers 2(1 + 0.1) times the rate within a quarter of the time-out"
        ),
        remedy="Give the far side more cores (--server-cores), or use the faster server (--far-side).",
        leaves="at least",
    ),
    Doubt(
        word="names not cached",
        grade="answer",
        about="trial",
        holds=_missed,
        meaning=(
            "with `--cached-share`: the server asked the far side again for more than 1 % of the queries for names "
            "that should be in its cache, so the share of cached names was smaller"
        ),
        remedy="Use fewer names (--connections), or give the server a larger cache.",
        leaves="at least",
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
)

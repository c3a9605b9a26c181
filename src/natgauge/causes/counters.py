# SPDX-License-Identifier: Apache-2.0
"""What each counter means, by counters.toml: its hop, the cause that it names, and what changes it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from natgauge.causes.cause import Hop, Kind


@dataclass(frozen=True, slots=True)
class Case:
    """The meaning of a counter where `other` rose as well; in the file, `with`."""

    other: str
    cause: Kind
    meaning: str
    knob: str


@dataclass(frozen=True, slots=True)
class CounterFacts:
    """A row of counters.toml, which explains the fields."""

    name: str
    hop: Hop
    cause: Kind
    meaning: str
    knob: str
    also: str = ""
    guess: bool = False
    contains: tuple[str, ...] = ()
    loses: bool = True
    own: bool = False
    cases: tuple[Case, ...] = ()

    def given(self, other: str) -> CounterFacts:
        """Return the facts where the counter `other` rose as well; empty = no counter of the cases did."""
        case = next((case for case in self.cases if case.other == other), None)
        if case is None:
            return self
        return replace(self, cause=case.cause, meaning=case.meaning, knob=case.knob, also="")


@cache
def facts_of(name: str) -> CounterFacts:
    """Return the facts about a counter; a counter that the table lacks is the gateway's own."""
    family = name.replace("Ext", "")
    either = family.replace("Ip6", "Ip").replace("Udp6", "Udp")
    row = next((row for each in (family, either, name.partition(" ")[0]) if (row := counters().get(each))), None)
    meaning, knob = "the gateway refused the frame, for a cause of its own", "see the gateway's documentation"
    return row or CounterFacts(name=name, hop="gateway", cause="gateway", meaning=meaning, knob=knob)


@cache
def counters() -> Mapping[str, CounterFacts]:
    """Every row of the file by the name of its counter."""
    text = resources.files(__package__).joinpath("counters.toml").read_text(encoding="utf-8")
    return {row["name"]: _facts(**row) for row in tomllib.loads(text)["counters"]}


def _facts(*, cases: Sequence[Mapping[str, Any]] = (), contains: Sequence[str] = (), **row: Any) -> CounterFacts:
    every = tuple(Case(case["with"], case["cause"], case["meaning"], case["knob"]) for case in cases)
    return CounterFacts(cases=every, contains=tuple(contains), **row)

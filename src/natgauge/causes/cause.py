# SPDX-License-Identifier: Apache-2.0
"""The cause of a failed trial, or of the trials of a measurement; what counters and a full table say of it.

A verdict says that frames were lost; the cause says where and why. Only a counter, or a known limit that was reached,
lets natgauge see a cause; whatever it infers from totals is a guess, and says so. A known limit that was not reached
excludes a full table.

`counters.toml` says what each counter means: its hop, the cause that it names, and what changes it. What a full table
did with further connections is a sentence made of the counts of one trial.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Final, Literal

#: The way of a frame. The hops between those of the tester belong to a device; "gateway" has causes of its own.
Hop = Literal["tester out", "ring", "softnet", "header", "conntrack", "routing", "rules", "gateway", "out", "tester in"]
#: Kinds of causes of lost, wrong or late frames.
Kind = Literal[
    "table", "hash chain", "port pool", "port block", "clash", "rule", "rate limit", "host limit", "process",
    "open files", "queue", "filter", "interface", "ring", "backlog", "header", "memory", "IPv6 off", "invalid",
    "no translation", "untracked", "forgotten", "route", "forwarding", "reverse path", "path mtu", "answers", "tag",
    "checksum", "pool address", "gateway", "tester", "late", "slow", "log", "not known",
]  # fmt: skip
#: What a result is limited by where its frames were lost for a cause.
DeviceLimit = Literal["device", "table", "port pool", "port block", "log"]
#: Limits that no lower rate cures.
FULL: Final = frozenset({"table", "port pool", "port block"})


@dataclass(frozen=True, slots=True)
class KindFacts:
    """A row of kinds.toml, which explains the fields."""

    words: str
    limit: DeviceLimit = "device"
    rate: bool = False


@cache
def kinds() -> Mapping[str, KindFacts]:
    """Return all kinds of causes by their names."""
    text = resources.files(__package__).joinpath("kinds.toml").read_text(encoding="utf-8")
    return {name: KindFacts(**row) for name, row in tomllib.loads(text)["kinds"].items()}


#: How sure a cause is: a counter or a reached limit names it, or natgauge infers it.
Certainty = Literal["seen", "guess"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why frames of a trial, or of a measurement, were lost, came back wrong or left late.

    Attributes:
        certainty: whether a counter or a limit names it, or natgauge infers it.
        hop: hop that lost the frames; empty = not known.
        device: device of a chain, or the only one; empty = not known, or the tester.
        place: part of the device, such as an interface and its process; empty = not known.
        counter: counter that names it; empty = none does.
        remedy: what changes it; empty = not known.
        frames: lost frames that it explains; 0 = not known.
        lost: frames lost in the trial; of kind "log", connections that the log lacks or has wrong.
        held: connections that the device's table held; None = not known.
        limit: the most connections that the table may hold; None = not known.
        hosts: inside hosts that lost connections, in words; empty = not known.
        each_host: connections that each of these hosts kept, where it is the same number for all; None = it is not.
    """

    #: A stored cause with an unknown field is refused.
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    kind: Kind
    certainty: Certainty = "guess"
    hop: str = ""
    device: str = ""
    place: str = ""
    counter: str = ""
    remedy: str = ""
    frames: int = 0
    lost: int = 0
    held: int | None = None
    limit: int | None = None
    hosts: str = ""
    each_host: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that no trial has."""
        numbers = (self.frames, self.lost, self.held or 0, self.limit or 0)
        if min(numbers) < 0 or self.frames > self.lost:
            raise ValueError(f"a cause of {self.frames} of {self.lost} lost frames, {self.held} of {self.limit} held")

    @property
    def limited_by(self) -> DeviceLimit:
        """What limits a result whose frames were lost so."""
        return kinds()[self.kind].limit

    @property
    def depends_on_rate(self) -> bool:
        """Whether fewer frames may be lost at a lower rate."""
        return kinds()[self.kind].rate

    @property
    def words(self) -> str:
        """The cause as a noun."""
        words = kinds()[self.kind].words
        held = f" at {self.held:,} connections" if self.limited_by in FULL and self.held is not None else ""
        where = f" ({self.place})" if self.place else ""
        # They distinguish causes where they are some of the hosts, or each lost for its own limit.
        who = f" ({self.hosts} lost connections)" if self.hosts else ""
        return f"{'probably ' if self.is_doubtful else ''}{words}{self._each}{held}{where}{who}"

    @property
    def _each(self) -> str:
        """The limit of each inside host, as the end of the noun."""
        if self.each_host is None:
            return ""
        return f", of about {self.each_host:,} connections" if self.kind == "host limit" else " for each inside host"

    @property
    def is_doubtful(self) -> bool:
        """Whether the cause is named, but only inferred."""
        return self.certainty == "guess" and self.kind != "not known"


def of_share(causes: Iterable[Cause], *, kept: int, is_number: bool) -> Cause:
    """Return the cause of a loss that no rate cures.

    Args:
        causes: causes of the trials that lost it, as far as they are known.
        kept: connections that the device kept in each of them.
        is_number: whether it keeps all of fewer connections: it holds a number of them instead of losing a share.
    """
    cause = most_frequent(list(causes) or [Cause("not known", held=kept)])
    if cause.kind != "not known" or not is_number:
        return cause
    if cause.limit is not None:
        # A known limit that was not reached excludes the table.
        return replace(cause, held=kept)
    return replace(cause, kind="table", certainty="guess", hop="conntrack", held=kept, remedy="--table-size")


def most_frequent(causes: Iterable[Cause]) -> Cause:
    """Return the last cause of the most frequent kind; a guess only where none was seen, then one that is not known.

    Of as many trials that only were late, and that lost frames, those that lost frames tell more.
    """
    every = list(causes)
    guessed = [cause for cause in every if cause.kind != "not known"] or every
    known = [cause for cause in guessed if cause.certainty == "seen"] or guessed
    kinds_of = sorted((cause.kind for cause in known), key=lambda kind: kind == "slow")
    kind = Counter(kinds_of).most_common(1)[0][0]
    return next(cause for cause in reversed(known) if cause.kind == kind)


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


@dataclass(frozen=True, slots=True)
class FullTable:
    """Counts of phase 1 of a trial that filled the table; `counters` are the device's own, by its own names."""

    offered: int
    forwarded: int
    held: int
    counters: Mapping[str, int]

    @property
    def thrown_out(self) -> int:
        """Connections that were forwarded, and were in the table no more afterwards."""
        return max(self.forwarded - self.held, 0)

    def __str__(self) -> str:
        """Return the sentence, without a full stop."""
        refused, thrown_out = max(self.offered - self.forwarded, 0), self.thrown_out
        parts = [f"{refused:,} {'was' if refused == 1 else 'were'} refused"] if refused else []
        ones = "one was" if thrown_out == 1 else "ones were"
        parts += [f"{thrown_out:,} working {ones} thrown out"] if thrown_out else []
        counted = ", ".join(f"{number:,} x {name}" for name, number in sorted(self.counters.items()) if number)
        said = " and ".join(parts) or "none was refused or thrown out"
        by_itself = f" (the device counted {counted})" if counted else ""
        return f"of {self.offered:,} connections offered to a table that holds {self.held:,}, {said}{by_itself}"

# SPDX-License-Identifier: Apache-2.0
"""Decisions of cleaning: what goes, and what stays and why.

The same decisions are printed by a dry run and carried out by cleaning, so the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from natgauge.errors import NatgaugeError

Verb = Literal["delete", "end", "restore", "take down"]
_PAST: Final[dict[Verb, str]] = {
    "delete": "deleted",
    "end": "ended",
    "restore": "restored",
    "take down": "took down",
}
#: Receives each line on what was done, at once.
Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Deed:
    """A thing that goes, or a setting that is restored: the line of a dry run, and the line once it is done."""

    would: str
    done: str


def deed(verb: Verb, what: str) -> Deed:
    """Return what is done to a thing of this machine."""
    return Deed(f"would {verb} {what}", f"{_PAST[verb]} {what}")


@dataclass(frozen=True, slots=True)
class Left:
    """A thing that stays.

    Attributes:
        fails: whether cleaning ends with an error for it, because it was to go.
        error: this error; None = one is made of `what` and `why`.
    """

    what: str
    why: str
    fails: bool = False
    error: NatgaugeError | None = None

    @property
    def would(self) -> str:
        """The line of a dry run."""
        return f"would leave {self.what}: {self.why}"

    @property
    def done(self) -> str:
        """The line of cleaning."""
        return f"left {self.what}: {self.why}"


def nothing(_: object) -> None:
    """Carry out a decision that things stay; or tell nobody."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One step of cleaning."""

    outcomes: tuple[Deed | Left, ...]
    act: Callable[[Tell], object] = nothing
    whole: bool = False

    @property
    def fails(self) -> bool:
        """Whether something stays that was to go."""
        return any(left.fails for left in self.left)

    @property
    def left(self) -> Iterator[Left]:
        """What stays."""
        return (outcome for outcome in self.outcomes if isinstance(outcome, Left))


@dataclass(slots=True)
class Gone:
    """What earlier decisions of the same cleaning take away; a dry run has to leave it out of its later decisions.

    Attributes:
        settings: settings that a register no longer names, each with the name of its lab.
    """

    labs: set[str] = field(default_factory=set)
    settings: set[tuple[str, str]] = field(default_factory=set)
    namespaces: set[str] = field(default_factory=set)
    marks: set[str] = field(default_factory=set)
    paths: set[Path] = field(default_factory=set)
    left: set[str] = field(default_factory=set)

    def has_path(self, path: Path) -> bool:
        """Whether a file or folder goes, by itself or with a folder that it is in."""
        return not self.paths.isdisjoint((path, *path.parents))

# SPDX-License-Identifier: Apache-2.0
"""How changes are undone: decisions on what goes, and on what stays and why, and those on what registers name.

The same decisions are printed by a dry run and carried out by cleaning, so the two cannot differ.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from natgauge.errors import BrokenError, NatgaugeError
from natgauge.host import capabilities
from natgauge.labs import kinds
from natgauge.labs.common import namespaces

_Verb = Literal["delete", "end", "restore", "take down"]
_PAST: Final[dict[_Verb, str]] = {
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


def deed(verb: _Verb, what: str) -> Deed:
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


#: Capabilities that deleting a namespace with its processes needs.
_DELETING: Final = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_KILL")

_Items = Sequence[Mapping[str, Any]]


def of_namespaces(items: _Items, gone: Gone) -> list[Decision]:
    """Decide on namespaces of a register: those that natgauge made go."""
    names = [name for name in dict.fromkeys(item["name"] for item in reversed(items)) if name not in gone.namespaces]
    existing = [name for name in names if namespaces.exists(name)]
    if existing and (why := _lacking()):
        gone.left.update(existing)
        return [Decision((Left(f"namespace {name}", why, fails=True),)) for name in existing]
    ours = [name for name in existing if namespaces.is_marked(name)]
    others = []
    for name in names:
        if name not in ours:
            left = (Left(f"namespace {name}", "it is not the one that natgauge made"),) if name in existing else ()
            others.append(Decision(left, partial(_forget, name)))
            gone.marks.add(name)
            gone.left.update({name} if left else ())
    return [*others, *going(ours, gone)]


def _lacking() -> str:
    """Return why this process can delete no namespace; empty = it can."""
    absent = capabilities.missing(*_DELETING)
    if not absent:
        return ""
    described = capabilities.described(absent)
    return f"deleting it needs {described}, which this process lacks; {capabilities.remedy(absent)}"


def _forget(name: str, _tell: Tell) -> None:
    namespaces.remove_mark(name)


def going(names: Sequence[str], gone: Gone, *, unmarked: bool = False) -> list[Decision]:
    """Decide that existing namespaces go, all at once, unless they must not be deleted."""
    lacking = _lacking() if names else ""
    refusals = {name: why for name in names if (why := lacking or namespaces.refusal(name, unmarked=unmarked))}
    left = [Decision((Left(f"namespace {name}", why, fails=True),)) for name, why in refusals.items()]
    doomed = [name for name in names if name not in refusals]
    gone.namespaces.update(doomed)
    gone.left.update(refusals)
    # The mark of a namespace goes with it; that of one that stays remains.
    gone.marks.update(names)
    if not doomed:
        return left

    def delete(tell: Tell) -> None:
        for name in namespaces.delete(doomed, unmarked=unmarked):
            tell(deed("delete", f"namespace {name}").done)

    return [*left, Decision(tuple(deed("delete", f"namespace {name}") for name in doomed), delete)]


def of_directories(items: _Items, folder: Path, gone: Gone) -> list[Decision]:
    """Decide on directories of a register: those in the lab's own folder go."""
    decisions = []
    for path in dict.fromkeys(item["path"] for item in reversed(items)):
        named = Path(os.path.normpath(path))
        if not os.path.lexists(path) or gone.has_path(named):
            continue
        if why := _not_deleted(named, folder):
            decisions.append(Decision((Left(f"directory {named}", why, fails=True),)))
        else:
            decisions.append(Decision((deed("delete", f"directory {named}"),), partial(delete_folder, named)))
            gone.paths.add(named)
    return decisions


def _not_deleted(path: Path, folder: Path) -> str:
    """Return why a directory is not deleted as one of the lab with this folder; empty = it may be."""
    if path != folder and folder not in path.parents:
        return f"is not in the lab's own folder {folder}; delete it yourself"
    links = (each for each in (folder, *path.parents) if each != path and each.is_symlink())
    within = next((link for link in links if link == folder or folder in link.parents), None)
    return f"{within} is a link, which leads elsewhere; delete the link" if within else ""


def delete_folder(path: Path, tell: Tell) -> None:
    """Delete a folder with all that is in it, or the link in its place, whatever that leads to."""
    try:
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BrokenError(f"directory {path}: cannot be deleted ({error.strerror or error})") from error
    tell(deed("delete", f"directory {path}").done)


def of_remote(items: _Items, kind: str, directory: Path, settings: Mapping[str, Any], path: Path) -> Decision:
    """Decide on changes on other machines, which only these can be asked about."""
    last_first = list(reversed(items))

    def act(tell: Tell) -> None:
        undo = kinds.get(kind).undo
        if undo is None:
            raise BrokenError(f"labs of kind {kind} undo nothing on other machines; use the natgauge that made it")
        try:
            done = undo(directory, settings, last_first)
        except (KeyError, TypeError, ValueError) as error:
            # No other part of natgauge knows what a kind of lab writes there.
            raise BrokenError(f"its settings in {path} are damaged ({error!r})") from error
        for line in done:
            tell(line)

    says = (item["says"] for item in last_first)
    return Decision(tuple(Deed(f"would undo on another machine: {each}", each) for each in says), act)

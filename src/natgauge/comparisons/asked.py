# SPDX-License-Identifier: Apache-2.0
"""What is compared, and how far: names with settings, options, and all that can be refused before anything is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from natgauge.bench.question import GROUPS, Cell, ask
from natgauge.duts.recipe import Recipe, load
from natgauge.errors import UsageError
from natgauge.options import Option, choice, options_of
from natgauge.slices import LEAST_FRAMES, MOST_FRAMES, USUAL_FRAMES
from natgauge.words import QUANTITIES

#: What a gateway's name may be followed by, and what all of them may share.
_GROUPS: Final = ("traffic", "wishes")
_SETTINGS: Final = re.compile(r"(?P<dut>.+?):(?P<settings>[a-z][a-z_]*=[^:]*)")
_LEAST_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareOptions:
    """What may be chosen of a comparison; None = none.

    Attributes:
        quantities: which costs, of new, up, down and both.
        level: of each interval, 50 to 99.9 %, over all looks together.
        resolve: half the width of an interval at which its question is answered, as a share of the dearer one's cost.
        fail_above: instead, it is answered when each gateway surely costs more than this beyond the first, or not.
        most_seconds: then the intervals are told as they are; 1 to 86400.
        unlike: whether gateways of different kinds may be compared.
        slice_frames: frames of one slice, 64 to 65536.
        core: on which all of them work, and the tester; None = the least busy one.
        seed: of all pseudorandom choices.
    """

    quantities: str = field(
        default=",".join(QUANTITIES), metadata=choice("Costs of a new connection, of a frame up, down, both", "LIST")
    )
    level: str = field(default="95%", metadata=choice("Of each interval, over all looks together", "SHARE"))
    resolve: str = field(
        default="1%", metadata=choice("Half the width of an interval that answers, of the dearer one's cost", "SHARE")
    )
    fail_above: str | None = field(
        default=None, metadata=choice("Answer instead whether a gateway costs so much more than the first", "SHARE")
    )
    most_seconds: float = field(default=60.0, metadata=choice("After that, tell what is known", "S"))
    unlike: bool = field(default=False, metadata=choice("Compare gateways of different kinds, too"))
    slice_frames: int = field(default=USUAL_FRAMES, metadata=choice("Frames of one slice", "N"))
    core: int | None = field(
        default=None, metadata=choice("On which tester and gateways work", "N", default="the least busy one")
    )
    seed: int | None = field(default=None, metadata=choice("Of all pseudorandom choices", "N", default="random"))


@dataclass(frozen=True, slots=True)
class Goal:
    """When a comparison has its answer: shares, 0.01 = 1 %."""

    level: float
    resolve: float
    fail_above: float | None

    @property
    def alpha(self) -> float:
        """What each figure may err with."""
        return 1 - self.level


@dataclass(frozen=True, slots=True)
class Asked:
    """A gateway that is to be compared.

    Attributes:
        label: what the user called it; told apart where two are called alike.
        recipe: its own.
        choices: its own options beside those of all.
    """

    label: str
    recipe: Recipe
    choices: Mapping[str, object]

    def cell(self, place: Mapping[str, object]) -> Cell:
        """Its cell in a lab with these options."""
        return ask("throughput", self.recipe.origin, {**self.choices, **place}).cell


def share(name: str, text: str, lowest: float, highest: float) -> float:
    """Read "1%"; lowest and highest in %.

    Raises:
        UsageError: it is no percentage, or outside.
    """
    try:
        percent = float(text.strip().removesuffix("%")) if text.strip().endswith("%") else math.nan
    except ValueError:
        percent = math.nan
    if not lowest <= percent <= highest:
        raise UsageError(f"{name}: {text!r} is no share from {lowest:g}% to {highest:g}%; write it like 1%")
    return percent / 100


def goal_of(options: CompareOptions) -> Goal:
    """What is to be decided.

    Raises:
        UsageError: a value is malformed or out of range.
    """
    if not _LEAST_SECONDS <= options.most_seconds <= _MOST_SECONDS:
        raise UsageError(f"most seconds: {options.most_seconds:g} is outside of {_LEAST_SECONDS:g} to 86400 s")
    if not LEAST_FRAMES <= options.slice_frames <= MOST_FRAMES:
        raise UsageError(f"slice frames: {options.slice_frames} is outside of {LEAST_FRAMES} to {MOST_FRAMES}")
    return Goal(
        level=share("level", options.level, 50, 99.9),
        resolve=share("resolve", options.resolve, 0.1, 50),
        fail_above=None if options.fail_above is None else share("fail above", options.fail_above, 0.1, 1000),
    )


def read(names: Sequence[str], shared: Mapping[str, object], *, unlike: bool) -> list[Asked]:
    """The gateways by their names, the first one being the baseline.

    Args:
        names: "nftables-nat44", "./mine.toml", "nftables-nat44:connections=1000000,udp_timeout=300" ...
        shared: options of traffic and device for all of them; a name's own settings go first.
        unlike: whether their kinds may differ.

    Raises:
        UsageError: fewer than two, an unknown name or setting, or gateways that cannot be compared.
    """
    if len(names) < 2:
        raise UsageError(
            f"compare: {', '.join(names) or 'nothing'} alone; name two gateways or more, the first is the baseline"
        )
    given = {name: value for name, value in shared.items() if value is not None}
    found: list[Asked] = []
    for name in names:
        one = _read(name, given)
        alike = sum(
            other.label.removesuffix(f" ({number})") == one.label for number, other in enumerate(found, start=1)
        )
        found.append(Asked(f"{one.label} ({alike + 1})", one.recipe, one.choices) if alike else one)
    for one in found:
        _refuse_single(one)
        _refuse_unlike(found[0], one, unlike=unlike)
    _refuse_machine_knobs(found)
    return found


def settings() -> dict[str, Option]:
    """What may follow a gateway's name, by name."""
    return {option.name: option for group in _GROUPS for option in options_of(GROUPS[group])}


def _read(name: str, shared: Mapping[str, object]) -> Asked:
    matched = _SETTINGS.fullmatch(name)
    if matched is None:
        return Asked(name, load(name), dict(shared))
    own: dict[str, object] = {}
    for part in matched["settings"].split(","):
        setting, _, text = part.partition("=")
        own[setting] = _value(name, setting, text)
    return Asked(name, load(matched["dut"]), {**shared, **own})


def _value(name: str, setting: str, text: str) -> object:
    option = settings().get(setting)
    if option is None:
        raise UsageError(f"{name}: setting {setting!r} is unknown; there are {', '.join(settings())}")
    if option.words and text not in option.words:
        raise UsageError(f"{name}: {setting} {text!r} is unknown; choose one of {', '.join(option.words)}")
    try:
        return option.kind(text)
    except ValueError:
        raise UsageError(f"{name}: {setting} {text!r} is no whole number") from None


def _refuse_single(one: Asked) -> None:
    recipe = one.recipe
    if recipe.own_processes:
        raise UsageError(
            f"{one.label}: works in processes of its own, which do not run in the sender's context, so its slices "
            'cannot be timed; compare results of "natgauge measure" with "natgauge report" instead'
        )
    if recipe.initiator_family != recipe.responder_family:
        raise UsageError(
            f"{one.label}: goes from {recipe.initiator_family} to {recipe.responder_family}; there is no cable of two "
            'families to take the tester\'s own cost from; use "natgauge measure" and "natgauge report"'
        )


def _refuse_unlike(first: Asked, one: Asked, *, unlike: bool) -> None:
    def does(asked: Asked) -> tuple[str, str]:
        return asked.recipe.kind, asked.recipe.initiator_family

    if does(one) != does(first) and not unlike:
        raise UsageError(
            f"{one.label}: is of kind {' '.join(does(one))}, {first.label} of kind {' '.join(does(first))}; they do "
            "different work: add --unlike to compare them all the same"
        )


def _refuse_machine_knobs(found: Sequence[Asked]) -> None:
    """A setting of the whole machine cannot differ between gateways that are up at once."""
    for one in found:
        for name, knob in one.recipe.knobs.named().items():
            others = [other for other in found if name in other.recipe.knobs.named()]
            if knob.scope == "machine" and len({other.choices.get(name) for other in others}) > 1:
                raise UsageError(
                    f"{name}: is one setting of the whole machine, so it cannot differ between gateways that are up at "
                    f'once; give one --{name.replace("_", "-")} for all, or use "natgauge measure" for each'
                )

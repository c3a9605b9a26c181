# SPDX-License-Identifier: Apache-2.0
"""What is compared, and how far: names with settings, options, and all that can be refused before anything is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, cast

from natgauge.bench.question import GROUPS, Cell, CellOptions, ask, place_options
from natgauge.bench.timeable import reasons_not_timed
from natgauge.duts.recipe import Recipe, load
from natgauge.errors import UsageError
from natgauge.labs import kinds
from natgauge.labs.contract import Kind
from natgauge.options import Option, choice, options_of
from natgauge.slices import LEAST_FRAMES, MOST_FRAMES, USUAL_FRAMES
from natgauge.words import QUANTITIES, Placement

#: What a gateway's name may be followed by, and what all of them may share; where it stands is another such thing.
_GROUPS: Final = ("traffic", "wishes")
_OF_CELL: Final = ("lab", "grace_seconds")
#: Addresses have colons, commands may have commas.
_SETTINGS: Final = re.compile(r"(?P<dut>.+?):(?P<settings>[a-z][a-z_0-9]*=.*)")
_NEXT_SETTING: Final = re.compile(r",(?=[a-z][a-z_0-9]*=)")
Way = Literal["auto", "slices", "rates"]
#: What is chosen where the user does not: by slices seconds suffice, rates are searched for minutes.
_USUAL: Final[Mapping[Way, Mapping[str, Any]]] = {
    "slices": {"quantities": ",".join(QUANTITIES), "resolve": "1%", "most_seconds": 60.0},
    "rates": {"quantities": "new,both", "resolve": "5%"},
}
#: By rates each gateway adds searches to every round, and rounds must be several: so long of each.
_SECONDS_OF_A_GATEWAY: Final = 450.0
_LEAST_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareOptions:
    """What may be chosen of a comparison; None = none, or as the way wants.

    Attributes:
        by: slices, of gateways that work in the sender's context on one core; rates, of any: the highest rate of each
            is searched in turn, again and again; auto = slices where all of them can.
        placement: shared, or by rates isolated.
        quantities: which costs, of new, up, down and both.
        level: of each interval, 50 to 99.9 %, over all looks together.
        resolve: half the width of an interval at which its question is answered, as a share of the larger cost.
        fail_above: instead, it is answered when each gateway surely costs more than this beyond the first, or not.
        most_seconds: then the intervals are told as they are; 1 to 86400.
        unlike: whether gateways of different kinds, or with different numbers of devices, may be compared.
        slice_frames: frames of one slice, 64 to 65536.
        core: on which all of them work, and the tester; None = the least busy one.
        seed: of all pseudorandom choices.
    """

    by: Way = field(
        default="auto",
        metadata=choice("Short slices, or rates searched in turn; auto: slices where they can be", "WAY"),
    )
    placement: Literal["shared", "isolated"] | None = field(
        default=None, metadata=choice("Where devices work; isolated only by rates", "WHERE", default="as the way wants")
    )
    quantities: str | None = field(
        default=None,
        metadata=choice(
            "Costs of a new connection, of a frame up, down, both", "LIST", default="all by slices; by rates new,both"
        ),
    )
    level: str = field(default="95%", metadata=choice("Of each interval, over all looks together", "SHARE"))
    resolve: str | None = field(
        default=None,
        metadata=choice(
            "Half the width of an interval that answers, as a share of the larger cost",
            "SHARE",
            default="1% by slices, 5% by rates",
        ),
    )
    fail_above: str | None = field(
        default=None, metadata=choice("Answer instead whether a gateway costs so much more than the first", "SHARE")
    )
    most_seconds: float | None = field(
        default=None,
        metadata=choice("After that, tell what is known", "S", default="60 by slices, by rates 450 each"),
    )
    unlike: bool = field(default=False, metadata=choice("Compare gateways of different kinds or numbers of devices"))
    slice_frames: int = field(default=USUAL_FRAMES, metadata=choice("Frames of one slice", "N"))
    core: int | None = field(
        default=None, metadata=choice("On which tester and gateways work", "N", default="the least busy one")
    )
    seed: int | None = field(default=None, metadata=choice("Of all pseudorandom choices", "N", default="random"))


@dataclass(frozen=True, slots=True)
class Goal:
    """When a comparison has its answer: shares, 0.01 = 1 %, and seconds."""

    level: float
    resolve: float
    fail_above: float | None
    most_seconds: float = math.inf

    @property
    def alpha(self) -> float:
        """What each figure may err with."""
        return 1 - self.level


@dataclass(frozen=True, slots=True)
class ComparedGateway:
    """A gateway that is to be compared.

    Attributes:
        label: what the user called it; told apart where two are called alike.
        recipe: its own.
        choices: its own options beside those of all.
    """

    label: str
    recipe: Recipe
    choices: Mapping[str, object]

    @property
    def lab_kind(self) -> Kind[Any]:
        """The kind of its lab."""
        return kinds.get(str(self.choices.get("lab", kinds.DEFAULT)))

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
    seconds = _MOST_SECONDS if options.most_seconds is None else options.most_seconds
    if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise UsageError(f"most seconds: {seconds:g} is outside of {_LEAST_SECONDS:g} to 86400 s")
    if not LEAST_FRAMES <= options.slice_frames <= MOST_FRAMES:
        raise UsageError(f"slice frames: {options.slice_frames} is outside of {LEAST_FRAMES} to {MOST_FRAMES}")
    return Goal(
        level=share("level", options.level, 50, 99.9),
        resolve=share("resolve", options.resolve or "1%", 0.1, 50),
        fail_above=None if options.fail_above is None else share("fail above", options.fail_above, 0.1, 1000),
        most_seconds=seconds,
    )


def filled(options: CompareOptions, gateways: Sequence[ComparedGateway]) -> CompareOptions:
    """The options with the way chosen, and with what is usual for it.

    Raises:
        UsageError: a gateway cannot be compared that way.
    """
    for option in options_of(CompareOptions):
        value = getattr(options, option.name)
        if option.words and value is not None and value not in option.words:
            raise UsageError(f"{option.name}: {value!r} is unknown; choose one of {', '.join(option.words)}")
    reasons = [reason for one in gateways for reason in _reasons_not_sliced(one, options.placement or "shared")]
    if knob := differing_knob(gateways):
        reasons.append(
            f"{knob}: is one setting of the whole machine, so it cannot differ between gateways that are up at once"
        )
    if options.by == "slices" and reasons:
        raise UsageError(f"{reasons[0]}; or leave out --by slices")
    by: Way = options.by if options.by != "auto" else "rates" if reasons else "slices"
    for one in gateways if by == "slices" else ():
        if own := next((name for name in one.choices if name in place_options()), None):
            raise UsageError(
                f"{one.label}: {own}: by slices all work on one core, in labs alike; choose it with --core, or add "
                "--by rates"
            )
    if by == "rates" and options.core is not None:
        raise UsageError(
            f"core: {options.core} is for slices; by rates name cores and sender_cores behind a gateway's name"
        )
    chosen = {name: value for name, value in asdict(options).items() if value is not None}
    usual = {**_USUAL[by]}
    if by == "rates":
        usual["most_seconds"] = _SECONDS_OF_A_GATEWAY * len(gateways)
    return CompareOptions(**{**usual, **chosen, "by": by})


def read(names: Sequence[str], shared: Mapping[str, object], *, unlike: bool) -> list[ComparedGateway]:
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
    found: list[ComparedGateway] = []
    for name in names:
        one = _read(name, given)
        alike = sum(
            other.label.removesuffix(f" ({number})") == one.label for number, other in enumerate(found, start=1)
        )
        found.append(ComparedGateway(f"{one.label} ({alike + 1})", one.recipe, one.choices) if alike else one)
    for one in found:
        _refuse_unlike(found[0], one, unlike=unlike)
    return found


def settings() -> dict[str, Option]:
    """What may follow a gateway's name, by name."""
    found = {option.name: option for group in _GROUPS for option in options_of(GROUPS[group])}
    found |= {name: option for name, (option, _) in place_options().items()}
    return found | {option.name: option for option in options_of(CellOptions) if option.name in _OF_CELL}


def _read(name: str, shared: Mapping[str, object]) -> ComparedGateway:
    matched = _SETTINGS.fullmatch(name)
    if matched is None:
        return ComparedGateway(name, load(name), dict(shared))
    own: dict[str, object] = {}
    for part in _NEXT_SETTING.split(matched["settings"]):
        setting, _, text = part.partition("=")
        own[setting] = _value(name, setting, text)
    return ComparedGateway(name, load(matched["dut"]), {**shared, **own})


def _value(name: str, setting: str, text: str) -> object:
    option = settings().get(setting)
    if option is None:
        raise UsageError(f"{name}: setting {setting!r} is unknown; there are {', '.join(settings())}")
    if option.words and text not in option.words:
        raise UsageError(f"{name}: {setting} {text!r} is unknown; choose one of {', '.join(option.words)}")
    try:
        return option.kind(text)
    except ValueError:
        raise UsageError(f"{name}: {setting} {text!r} is no number") from None


def _reasons_not_sliced(gateway: ComparedGateway, placement: Placement) -> list[str]:
    """Reasons why its frames cannot be timed in slices; by slices all gateways work on one core.

    Args:
        gateway: with its own choices.
        placement: of gateways that choose none.
    """
    own = gateway.choices.get("placement", placement) if gateway.lab_kind.shares_core else "external"
    return reasons_not_timed(gateway.label, gateway.recipe, cast("Placement", own))


def _refuse_unlike(first: ComparedGateway, one: ComparedGateway, *, unlike: bool) -> None:
    def does(asked: ComparedGateway) -> tuple[str, str, str]:
        recipe = asked.recipe
        devices = f"with {recipe.length} {'device' if recipe.length == 1 else 'devices'}"
        return recipe.kind, recipe.initiator_family, devices

    if does(one) != does(first) and not unlike:
        raise UsageError(
            f"{one.label}: is of kind {' '.join(does(one))}, {first.label} of kind {' '.join(does(first))}; they do "
            "different work: add --unlike to compare them all the same"
        )


def differing_knob(found: Sequence[ComparedGateway]) -> str | None:
    """A setting of the whole machine that is to differ between gateways, which cannot be up at once then."""
    for one in found:
        for name, knob in one.recipe.knobs.named().items():
            others = [other for other in found if name in other.recipe.knobs.named()]
            if knob.scope == "machine" and len({other.choices.get(name) for other in others}) > 1:
                return name
    return None

# SPDX-License-Identifier: Apache-2.0
"""What is compared, and how far: names with settings, options, and all that can be refused before anything is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final, Literal, cast

from natgauge.bench.question import ask, inputs_of_part, place_inputs
from natgauge.bench.timeable import reasons_not_timed
from natgauge.duts.recipe import Recipe, load
from natgauge.errors import UsageError
from natgauge.inputs.checks import in_range, share_in, whole
from natgauge.inputs.input import Input, check_all, described
from natgauge.inputs.question import Cell
from natgauge.inputs.types import Text
from natgauge.labs import kinds
from natgauge.labs.contract import Kind
from natgauge.paired.slices import LEAST_FRAMES, MOST_FRAMES, USUAL_FRAMES
from natgauge.words import QUANTITIES, Placement

#: What a gateway's name may be followed by, and what all of them may share; where it stands is another such thing.
_PARTS: Final = ("traffic", "device")
_OF_CELL: Final = ("lab", "grace_seconds")
#: Addresses have colons, commands may have commas.
_SETTINGS: Final = re.compile(r"(?P<dut>.+?):(?P<settings>[a-z][a-z_0-9]*=.*)")
_NEXT_SETTING: Final = re.compile(r",(?=[a-z][a-z_0-9]*=)")
Way = Literal["auto", "slices", "rates"]
#: What is chosen where the user does not: by slices seconds suffice, rates are searched for minutes.
_USUAL: Final[Mapping[Way, Mapping[str, Any]]] = {
    "slices": {"quantities": ",".join(QUANTITIES), "resolve": 0.01, "most_seconds": 60.0},
    "rates": {"quantities": "new,both", "resolve": 0.05},
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
        metadata=described("Short slices, or rates searched in turn; auto: slices where they can be"),
    )
    placement: Literal["shared", "isolated"] | None = field(
        default=None,
        metadata=described("Where devices work; isolated only by rates", default="shared by slices, isolated by rates"),
    )
    quantities: str | None = field(
        default=None,
        metadata=described(
            "Costs of a new connection, of a frame up, down, both",
            type=Text("QUANTITIES"),
            default="all by slices; by rates new,both",
        ),
    )
    level: float = field(
        default=0.95,
        metadata=described(
            "Confidence level of each interval, over all interim looks together",
            "share",
            partial(share_in, lowest=0.5, highest=0.999),
        ),
    )
    resolve: float | None = field(
        default=None,
        metadata=described(
            "Half the width of an interval that answers, as a share of the larger cost",
            "share",
            partial(share_in, lowest=0.001, highest=0.5),
            default="1% by slices, 5% by rates",
        ),
    )
    fail_above: float | None = field(
        default=None,
        metadata=described(
            "Answer instead whether a gateway costs more than the first by this share",
            "share",
            partial(share_in, lowest=0.001, highest=10.0),
        ),
    )
    most_seconds: float | None = field(
        default=None,
        metadata=described(
            "Longest time; the intervals are then reported as they are",
            "s",
            partial(in_range, lowest=_LEAST_SECONDS, highest=_MOST_SECONDS, unit="s"),
            default="60 by slices, by rates 450 each",
        ),
    )
    unlike: bool = field(default=False, metadata=described("Compare gateways of different kinds or numbers of devices"))
    slice_frames: int = field(
        default=USUAL_FRAMES,
        metadata=described(
            "Frames of one slice", "frames", partial(whole, lowest=LEAST_FRAMES, highest=MOST_FRAMES, unit="frames")
        ),
    )
    core: int | None = field(
        default=None, metadata=described("Core of the tester and the gateways", default="the least busy one")
    )
    seed: int | None = field(default=None, metadata=described("Seed of all pseudorandom choices", default="random"))


@dataclass(frozen=True, slots=True)
class ComparisonGoal:
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


def goal_of(options: CompareOptions) -> ComparisonGoal:
    """What is to be decided.

    Raises:
        UsageError: a value is malformed or out of range.
    """
    check_all(options)
    return ComparisonGoal(
        level=options.level,
        resolve=0.01 if options.resolve is None else options.resolve,
        fail_above=options.fail_above,
        most_seconds=_MOST_SECONDS if options.most_seconds is None else options.most_seconds,
    )


def filled(options: CompareOptions, gateways: Sequence[ComparedGateway]) -> CompareOptions:
    """The options with the way chosen, and with what is usual for it.

    Raises:
        UsageError: a gateway cannot be compared that way.
    """
    check_all(options)
    reasons = [reason for one in gateways for reason in _reasons_not_sliced(one, options.placement or "shared")]
    if knob := differing_knob(gateways):
        reasons.append(
            f"{knob}: is one setting of the whole machine, so it cannot differ between gateways that are up at once"
        )
    if options.by == "slices" and reasons:
        raise UsageError(f"{reasons[0]}; or leave out --by slices")
    by: Way = options.by if options.by != "auto" else "rates" if reasons else "slices"
    for one in gateways if by == "slices" else ():
        if own := next((name for name in one.choices if name in place_inputs()), None):
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


def settings() -> dict[str, Input]:
    """What may follow a gateway's name, by name."""
    found = {one.name: one for part in _PARTS for one in inputs_of_part(part)}
    found |= {name: one for name, (one, _) in place_inputs().items()}
    return found | {one.name: one for one in inputs_of_part("lab") if one.name in _OF_CELL}


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
    known = settings()
    if setting not in known:
        raise UsageError(f"{name}: setting {setting!r} is unknown; there are {', '.join(known)}")
    try:
        return known[setting].read(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


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

# SPDX-License-Identifier: Apache-2.0
"""The request for a comparison: gateways with their settings, options, and checks before any lab is made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Literal, cast

from natgauge.errors import UsageError
from natgauge.figure_text import in_percent, with_noun
from natgauge.gateways.recipe import Recipe, is_own, load
from natgauge.inputs.input import Input, Text, check_all, chosen, wrong
from natgauge.inputs.measuring_types import by_device
from natgauge.inputs.question import Cell, LabOptions, Question
from natgauge.labs import kinds
from natgauge.labs.contract import Kind
from natgauge.paired.slices import LEAST_FRAMES, MOST_FRAMES, USUAL_FRAMES
from natgauge.records.comparison import commit_of
from natgauge.setup.cell import inputs_of_part, place_inputs
from natgauge.trial.question import ask, command, reasons_not_timed
from natgauge.words import QUANTITIES, Placement, Quantity, listed

#: Parts of a cell whose inputs may follow a gateway's name or be given for all gateways.
_PARTS: Final = ("traffic", "device")
#: Inputs of the lab that are an option for all gateways, too.
OF_ALL: Final = ("outside_addresses",)
#: Inputs of the lab that may follow a name, in addition to the options of its kind.
_OF_CELL: Final = ("lab", "grace_seconds", *OF_ALL)
#: Every gateway's question is made for this metric; the comparison itself searches other rates, too.
_METRIC: Final = "throughput"
#: Addresses have colons, commands may have commas.
_SETTINGS: Final = re.compile(r"(?P<gateway>.+?):(?P<settings>[a-z][a-z_0-9-]*=.*)")
_NEXT_SETTING: Final = re.compile(r",(?=[a-z][a-z_0-9-]*=)")
MethodChoice = Literal["auto", "slices", "rates"]
#: Defaults of each method: slices need seconds, searches for rates need minutes.
_USUAL: Final[Mapping[MethodChoice, Mapping[str, Any]]] = {
    "slices": {"quantities": ",".join(QUANTITIES), "resolve": 0.01, "most_seconds": 60.0},
    "rates": {"quantities": "new,both", "resolve": 0.05},
}
#: Default time by rates for each gateway, s: a gateway adds searches to every round, and several rounds are needed.
_SECONDS_OF_A_GATEWAY: Final = 450.0
MOST_SECONDS: Final = 86_400.0


def _check_commit(name: str, value: str) -> None:
    try:
        named = commit_of(value)[0]
    except ValueError:
        raise UsageError(f"{name}: {value!r}: its date is none; write it as git show -s --format=%h@%cI does") from None
    if not named:
        raise UsageError(f"{name}: {value!r} has no name; write it as git show -s --format=%h@%cI does")


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareOptions:
    """Options of a comparison; None = the default of the method."""

    by: MethodChoice = chosen(
        "auto", "Method: short slices, or searches for the highest rates; auto: slices if all gateways support them"
    )
    placement: Literal["shared", "isolated"] | None = chosen(
        None,
        "Whether devices share the sender's core; isolated requires --by rates",
        default="slices: shared; rates: isolated",
    )
    quantities: str | None = chosen(
        None,
        "Costs to compare: of a new connection (new), and of a frame in each direction (up, down, both)",
        type=Text("QUANTITIES"),
        default="slices: all; rates: new,both",
    )
    level: float = chosen(
        0.95, "Confidence level of each interval, over all interim analyses together", "share", (0.5, 0.999)
    )
    resolve: float | None = chosen(
        None,
        "Stop when half the width of each interval is at most this share of the larger cost",
        "share",
        (0.001, 0.5),
        default="slices: 1%; rates: 5%",
    )
    fail_above: float | None = chosen(
        None,
        "Stop instead when each gateway is known to cost more than the baseline by this share, or not to",
        "share",
        (0.001, 10.0),
    )
    most_seconds: float | None = chosen(
        None, "Longest time of the comparison", "s", (1.0, MOST_SECONDS), default="slices: 60; rates: 450 per gateway"
    )
    unlike: bool = chosen(False, "Allow gateways of different kinds, or with different numbers of devices")
    loss_tolerance: float = chosen(
        0.0, "Largest share of lost frames in a passing trial, by rates", "share", (0.0, 0.5)
    )
    slice_frames: int = chosen(USUAL_FRAMES, "Frames of a slice", "frames", (LEAST_FRAMES, MOST_FRAMES))
    core: int | None = chosen(None, "Core of the tester and of all gateways", default="the least busy core")
    seed: int | None = chosen(None, "Seed of all pseudorandom choices", default="random")
    labels: str | None = chosen(
        None,
        "Names of the gateways in results, the baseline's first, in place of those given: base,this change",
        type=Text("NAME,NAME..."),
        default="as given",
        moves_figures=False,
    )
    commit: str | None = chosen(
        None,
        "Commit that is compared, with its date: git show -s --format=%h@%cI (see natgauge report --history)",
        check=_check_commit,
        type=Text("NAME@DATE"),
        default="none",
        moves_figures=False,
    )


@dataclass(frozen=True, slots=True)
class ComparisonGoal:
    """Conditions that end a comparison; level, resolve and fail_above are shares (0.01 = 1 %)."""

    level: float
    resolve: float
    fail_above: float | None
    most_seconds: float = math.inf

    @property
    def alpha(self) -> float:
        """Return the probability that an interval misses the true ratio, at most."""
        return 1 - self.level


@dataclass(frozen=True, slots=True)
class ComparedGateway:
    """A gateway to compare.

    Attributes:
        label: the name that the user gave; a number follows it if two gateways have the same name.
        question: its traffic, lab and device, with the options of all gateways and its own.
    """

    label: str
    recipe: Recipe
    question: Question

    @property
    def lab_kind(self) -> Kind[Any]:
        """The kind of its lab."""
        return kinds.get(self.question.cell.lab.lab)

    @property
    def placement(self) -> Placement | None:
        """The placement that was chosen for this gateway alone; None = not chosen."""
        chosen: Placement | None = getattr(self.question.cell.kind_options, "placement", None)
        return chosen

    @property
    def place_options(self) -> dict[str, object]:
        """The options of its kind of lab that were chosen, by name."""
        options: Any = self.question.cell.kind_options
        chosen = {item.name: (getattr(options, item.name), item.default) for item in fields(options)}
        return {name: value for name, (value, default) in chosen.items() if value != default}

    def cell(self, place: Mapping[str, object]) -> Cell:
        """Return its cell in a lab with these options, which replace its own."""
        cell, options = self.question.cell, cast("Any", self.question.cell.kind_options)
        of_lab = {item.name for item in fields(LabOptions)}
        lab: dict[str, Any] = {name: value for name, value in place.items() if name in of_lab}
        of_kind = {name: value for name, value in place.items() if name not in of_lab}
        return replace(cell, lab=replace(cell.lab, **lab), kind_options=replace(options, **of_kind))

    def alone(self, quantity: Quantity, placement: Placement) -> str:
        """The command that measures this gateway alone: the rate of a quantity, in the placement of the comparison."""
        in_place = {"placement": placement} if self.lab_kind.shares_core and self.placement is None else {}
        # Its name says more than where natgauge is installed.
        gateway = self.recipe.name if is_own(self.recipe.origin) else self.recipe.origin
        settings = {"directions": quantity} if quantity in ("up", "down") else {}
        metric = "connection-rate" if quantity == "new" else _METRIC
        cell = replace(self.cell(in_place), gateway=gateway)
        return command(replace(self.question, metric=metric, cell=cell, settings=settings))

    def control(self) -> ComparedGateway:
        """Return the A/A control of this gateway: a second copy of it, whose ratio to it should be 1."""
        return replace(self, label=f"{self.label} (A/A control)")


def goal_of(options: CompareOptions) -> ComparisonGoal:
    """Return the goal that the options describe."""
    check_all(options)
    return ComparisonGoal(
        level=options.level,
        resolve=0.01 if options.resolve is None else options.resolve,
        fail_above=options.fail_above,
        most_seconds=MOST_SECONDS if options.most_seconds is None else options.most_seconds,
    )


def with_usual_options(options: CompareOptions, gateways: Sequence[ComparedGateway]) -> CompareOptions:
    """Return the options with the method chosen and its defaults filled in."""
    check_all(options)
    reasons = [reason for gateway in gateways for reason in _reasons_not_sliced(gateway, options.placement or "shared")]
    if knob := differing_knob(gateways):
        reasons.append(
            f"{knob}: is a setting of the whole machine, so it cannot differ between gateways that run at the same "
            "time; give every gateway the same"
        )
    if options.by == "slices" and reasons:
        raise UsageError(f"{reasons[0]}; or leave out --by slices")
    by: MethodChoice = options.by if options.by != "auto" else "rates" if reasons else "slices"
    for gateway in gateways if by == "slices" else ():
        if gateway.question.cell.lab.grace_seconds is not None:
            raise UsageError(
                f"{gateway.label}: grace_seconds: by slices nothing waits for late frames, because all frames of a "
                "slice return while it is sent; leave it out, or add --by rates"
            )
        if own := next(iter(gateway.place_options), None):
            raise UsageError(
                f"{gateway.label}: {own}: by slices all gateways run on one core, in identical labs; choose the core "
                "with --core, or add --by rates"
            )
    if by == "slices" and options.loss_tolerance:
        raise UsageError(
            f"loss tolerance: {in_percent(options.loss_tolerance)} is for searches; by slices all frames must arrive; "
            "leave it out, or add --by rates",
            at="loss_tolerance",
        )
    if by == "rates" and options.core is not None:
        raise UsageError(
            f"core: {options.core} is for slices; by rates write cores and sender_cores after a gateway's name"
        )
    if by == "rates" and options.slice_frames != USUAL_FRAMES:
        raise wrong("slice_frames", f"{options.slice_frames}, but by rates there are no slices; leave it out")
    chosen = {name: value for name, value in asdict(options).items() if value is not None}
    usual = {**_USUAL[by]}
    if by == "rates":
        usual["most_seconds"] = _SECONDS_OF_A_GATEWAY * len(gateways)
    return CompareOptions(**{**usual, **chosen, "by": by})


def read_gateways(
    names: Sequence[str], shared: Mapping[str, object], *, unlike: bool, labels: str | None = None
) -> list[ComparedGateway]:
    """Read gateways from their names with settings; the first is the baseline.

    Args:
        names: "nftables-nat44", "./mine.toml", "nftables-nat44:connections=1000000,udp_timeout=300" ...
        shared: options of traffic and device for all gateways; settings after a name replace them.
        labels: names in the results, separated by commas; None = as given.
    """
    if len(names) < 2:
        raise UsageError(
            f"compare: {', '.join(names) or 'nothing'} alone; name two gateways or more, the first is the baseline"
        )
    given = {name: value for name, value in shared.items() if value is not None}
    gateways: list[ComparedGateway] = []
    parts = [_parts(name) for name in names]
    like = next((recipe for recipe, _ in parts if recipe.names_traffic), parts[0][0])
    called = names if labels is None else _labels(labels, len(names))
    for (recipe, own), label in zip(parts, called, strict=True):
        gateway = ComparedGateway(label, recipe, ask(_METRIC, recipe.origin, {**given, **own}, like=like.origin))
        others = enumerate(gateways, start=1)
        alike = sum(other.label.removesuffix(f" ({number})") == gateway.label for number, other in others)
        gateways.append(replace(gateway, label=f"{gateway.label} ({alike + 1})") if alike else gateway)
    for gateway in gateways:
        _refuse_unlike(gateways[0], gateway, unlike=unlike)
    return gateways


def _labels(text: str, number: int) -> list[str]:
    labels = [label.strip() for label in text.split(",")]
    if not all(labels) or len(labels) != number:
        fault = f"{text!r} has no name for each of {number} gateways; write {number}, with commas between"
        raise wrong("labels", fault)
    return labels


def gateway_inputs() -> dict[str, Input]:
    """Return the inputs that may follow a gateway's name, by name."""
    inputs = {input_.name: input_ for part in _PARTS for input_ in inputs_of_part(part)}
    inputs |= {name: input_ for name, (input_, _) in place_inputs().items()}
    return inputs | {input_.name: input_ for input_ in inputs_of_part("lab") if input_.name in _OF_CELL}


def traffic_of_rules(gateways: Sequence[ComparedGateway]) -> str | None:
    """Return whose traffic all have, where the recipes name unlike ones; None = nothing to say."""
    naming = [gateway for gateway in gateways if gateway.recipe.names_traffic]
    asked = [(each.question.cell.traffic.transport, each.question.cell.traffic.destination_ports) for each in naming]
    others = [
        each.label
        for each, traffic in zip(naming, asked, strict=True)
        if traffic == asked[0] and traffic[1] != each.recipe.usual_ports(traffic[0])
    ]
    if not others or asked[0][1] != naming[0].recipe.usual_ports(asked[0][0]):
        return None
    return f"all gateways had the traffic that the recipe of {naming[0].label} names, not that of {listed(others)}"


def _parts(name: str) -> tuple[Recipe, dict[str, object]]:
    matched = _SETTINGS.fullmatch(name)
    own: dict[str, object] = {}
    for setting, text in _settings(matched["settings"] if matched else ""):
        if setting in own:
            raise UsageError(f"{name}: setting {setting} is there twice; leave one out")
        own[setting] = _value(name, setting, text)
    return load(matched["gateway"] if matched else name), own


def _settings(text: str) -> list[tuple[str, str]]:
    """Return the names and texts of settings; "cores=ce=2,pe=3" is one setting, because none is called "pe".

    A name may be written as that of its option: "frame-size=512".
    """
    known = gateway_inputs()
    settings: list[tuple[str, str]] = []
    for part in _NEXT_SETTING.split(text) if text else ():
        name, _, value = part.partition("=")
        if settings and name.replace("-", "_") not in known and ("-" in name or by_device("", settings[-1][1])):
            settings[-1] = settings[-1][0], f"{settings[-1][1]},{part}"
        else:
            settings.append((name.replace("-", "_"), value))
    return settings


def _value(name: str, setting: str, text: str) -> object:
    known = gateway_inputs()
    if setting not in known:
        raise UsageError(f"{name}: setting {setting!r} is unknown; there are {', '.join(known)}")
    try:
        return known[setting].read(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}", at=error.at) from None


def _reasons_not_sliced(gateway: ComparedGateway, placement: Placement) -> list[str]:
    own = (gateway.placement or placement) if gateway.lab_kind.shares_core else "external"
    order = gateway.question.cell.traffic.order
    reasons = reasons_not_timed(gateway.label, own, own_processes=gateway.recipe.own_processes)
    if order != "permutation":
        # Procedure `cost` refuses it, too.
        reasons.append(f"{gateway.label}: order: slices open connections in permutation, not {order}")
    return reasons


def _refuse_unlike(first: ComparedGateway, other: ComparedGateway, *, unlike: bool) -> None:
    def does(recipe: Recipe) -> str:
        return f"{recipe.kind} {recipe.initiator_family} with {with_noun(recipe.length, 'devices')}"

    mine, its = does(first.recipe), does(other.recipe)
    if mine != its and not unlike:
        raise UsageError(
            f"{other.label}: is of kind {its}, {first.label} of kind {mine}; they do different work: add --unlike to "
            "compare them nevertheless"
        )


def differing_knob(gateways: Sequence[ComparedGateway]) -> str | None:
    """Return a setting of the whole machine that differs between gateways, so that they cannot run at the same time."""
    for gateway in gateways:
        for name, knob in gateway.recipe.knobs.named().items():
            others = [other for other in gateways if name in other.recipe.knobs.named()]
            if knob.scope == "machine" and len({other.question.cell.device.named().get(name) for other in others}) > 1:
                return name
    return None

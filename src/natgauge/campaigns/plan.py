# SPDX-License-Identifier: Apache-2.0
"""A campaign's plan: one TOML file, read and refused as a whole, one line for each fault with its key's path.

Its keys are the options of `natgauge measure`, with "_" for "-", each in its own part of the plan. Their names, types
and help texts come from the descriptions of inputs.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from natgauge import file_access, toml_text
from natgauge.errors import LONGEST_VALUE, UsageError, did_you_mean, shortened, shown
from natgauge.figure_text import with_noun
from natgauge.host.machine import usable_cpus
from natgauge.inputs.input import FileText, Input, Text, in_range, spoken, wrong
from natgauge.inputs.measuring_types import MOST_CORES, CoreList, DeviceCoreList
from natgauge.inputs.question import DEFAULT_LAB
from natgauge.labs import kinds
from natgauge.metrics.metric import THRESHOLDS
from natgauge.plain_text import one_line
from natgauge.procedures import get, procedures
from natgauge.procedures.kit.settings import Profile
from natgauge.setup.cell import inputs_of_part, place_inputs

Part = Literal["lab", "traffic", "device"]
#: The parts of a plan that fix a cell; each is a field of `Cell`.
PLAN_PARTS: Final[tuple[Part, ...]] = get_args(Part)
#: Options that are keys of the plan itself.
_ELSEWHERE: Final = frozenset({"seed"})
#: Settings that the whole plan decides unless a measurement has its own.
OF_WHOLE_PLAN: Final = {"profile": "profile", "repeat": "repetitions"}
#: Keys of a point that are no options: the name of its cells, their repetitions, and columns of a published table.
KEYS_OF_POINT: Final = ("name", "repetitions", "columns")
#: Keys of a measurement in addition to the settings of its metric.
KEYS_OF_MEASURE: Final = ("metric", "gateways", "points", "columns", "quantities")
#: Knobs whose value a formula of N may give.
FORMULA_KEYS: Final = frozenset({"table_size", "hash_size"})
#: A whole number is the number of cores, a text names cores of this machine.
CORE_KEYS: Final = frozenset({"cores", "sender_cores"})
#: Longest formula; realistic ones are far shorter.
_MOST_CHARACTERS: Final = 200
#: A power beyond this is no size of anything, and would take for ever.
_LARGEST_EXPONENT: Final = 64
_LARGEST: Final = 2**64
_OPERATORS: Final[Mapping[type, Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {
    "min": min, "max": max, "ceil": math.ceil, "floor": math.floor, "log2": math.log2,
}  # fmt: skip


@cache
def keys_of_part(part: Part) -> Mapping[str, Input]:
    """Every key of a part of the plan."""
    inputs = list(inputs_of_part(part))
    if part == "lab":
        inputs += [input_ for input_, _ in place_inputs().values()]
    return {input_.name: input_ for input_ in inputs if input_.name not in _ELSEWHERE}


@cache
def keys_of_cell() -> Mapping[str, Input]:
    """Every key that fixes a cell."""
    return {name: key for part in PLAN_PARTS for name, key in keys_of_part(part).items()}


@cache
def keys_of_metric(metric: str) -> Mapping[str, Input]:
    """Every setting of a metric."""
    return {input_.name: input_ for input_ in get(metric).own_inputs()}


@cache
def keys_of_series() -> Mapping[str, Input]:
    """Every key that may have several values."""
    single = {*OF_WHOLE_PLAN, *THRESHOLDS.values()}
    settings = {
        name: key for metric in procedures() for name, key in keys_of_metric(metric).items() if name not in single
    }
    return {**settings, **{name: key for name, key in keys_of_cell().items() if name not in {"lab", "lab_name"}}}


@cache
def keys_of_place() -> frozenset[str]:
    """Names of keys that may choose the machine of the device, or change what its version says, as its cores do."""
    return frozenset(place_inputs())


def _key_named(name: str, known: Mapping[str, Input]) -> Input:
    if name not in known:
        raise UsageError(f"unknown key; {did_you_mean(name, known)}")
    return known[name]


def _value_of_key(key: Input, value: object) -> object:
    """Return the value of a key; for a text, a number is converted to its digits.

    For some keys the range depends on the device; it is checked with the cell.
    """
    number = isinstance(value, int) and not isinstance(value, bool)
    if key.name in FORMULA_KEYS and isinstance(value, str):
        evaluate(value, 1)
        return value
    if key.name in CORE_KEYS and number and isinstance(value, int):
        in_range("", value, 1, MOST_CORES, "cores")
        return value
    key.type.take("", value)
    if isinstance(key.type, DeviceCoreList) and isinstance(value, Mapping):
        return key.type.write(key.type.take("", value))
    return str(value) if isinstance(key.type, Text | CoreList | DeviceCoreList) else value


def with_cores(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a cell with each number of cores as the option of its lab that takes it."""
    values = dict(choices)
    option = kinds.get(str(choices.get("lab", DEFAULT_LAB))).cores_option
    if option and type(choices.get("cores")) is int:
        if option in choices:
            raise UsageError(f"cores: {option} gives the number of cores, too; leave one out", at="cores")
        values[option] = values.pop("cores")
    return {
        name: _last_cores(name, value) if name in CORE_KEYS and type(value) is int else value
        for name, value in values.items()
    }


def _last_cores(name: str, number: int) -> str:
    """Return the last `number` cores; the first cores are for the tester if it has its own."""
    usable = usable_cpus()
    if not 1 <= number <= len(usable):
        raise wrong(
            name,
            f"{number} asked for, this machine has {len(usable)} cores; a text such as '0,2-3' names cores, and "
            "natgauge plan check --cores N checks a plan for another machine",
        )
    return ",".join(map(str, usable[-number:]))


def evaluate(text: str, connections: int) -> int:
    """The value of a formula.

    Args:
        text: of N, numbers, `+ - * / // ^`, min, max, ceil, floor and log2.
        connections: N, at least 1.
    """
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(f"formula of {len(text)} characters is longer than {_MOST_CHARACTERS}")
    try:
        value = _value(ast.parse(text.strip().replace("^", "**"), mode="eval").body, connections)
        # Whole numbers have no limit in Python, but those that no float holds are too large anyway.
        float(value)
    except (SyntaxError, TypeError, ValueError, ZeroDivisionError, OverflowError, RecursionError) as error:
        raise UsageError(f"formula {text!r} has no value with N = {connections}: {error}") from None
    if not math.isfinite(value) or not 0 <= value <= _LARGEST:
        raise UsageError(f"formula {text!r} gives {value:g} with N = {connections}, outside of 0 to 2^64")
    if value != int(value):
        raise UsageError(f"formula {text!r} gives {value:g} with N = {connections}, no whole number; use ceil or floor")
    return int(value)


def _value(node: ast.expr, connections: int) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id="N"):
            return connections
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, connections)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, connections), _value(right, connections))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, connections), _value(right, connections))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(argument, connections) for argument in arguments))
    raise ValueError(f"only N, numbers, + - * / // ^ and {', '.join(_FUNCTIONS)} are known")


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _LARGEST_EXPONENT or abs(base) > _LARGEST:
        raise ValueError(f"{base:g}^{exponent:g} is too large")
    power = base**exponent
    # Above 2^53, a float would be another whole number.
    return power if isinstance(power, int) else float(power)


#: Most values of a series; a longer one is certainly a mistake.
_MOST_VALUES: Final = 1000
#: Most measurements of a cell, ten times as many as there are metrics.
_MOST_MEASUREMENTS: Final = 200
Repetitions = Annotated[int, Field(ge=1, le=1000)] | Literal["auto"] | None
_Columns = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=_MOST_VALUES)]
#: Faults of a plan that are printed: more are of a file that is no plan.
_MOST_FAULTS: Final = 50


class PlanError(UsageError):
    """The plan is wrong.

    Attributes:
        faults: one line each: the key's path, the value, the rule, what to do; of very many, the first ones.
        rest: the plan without its wrong measurements, where nothing else was wrong so far: what of it does not fit can
            be told, too. None = more was wrong.
    """

    def __init__(self, where: str, faults: list[str], rest: Plan | None = None) -> None:
        self.rest = rest
        self.faults = [shortened(one_line(f"{where}: {fault}")) for fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            self.faults.append(f"{where}: {len(faults) - _MOST_FAULTS:,} more faults; mend these first")
        more = f" (and {with_noun(len(faults) - 1, 'more faults')}; see natgauge plan check)" if len(faults) > 1 else ""
        super().__init__(f"{self.faults[0][: 4 * LONGEST_VALUE]}{more}")


class Plan(BaseModel):
    """Plan of a campaign.

    Attributes:
        measure: the metrics, each with its own settings, and with `gateways` or `points` where it has only some.
        repetitions: default for measurements without a number of their own; None = the profile's.
        profile: default for measurements without a profile of their own; None = "default".
        seed: seed of all pseudorandom choices and of the order of the cells; None = drawn when the campaign begins.
        series: keys of the three above, or settings of metrics, with all their values.
        point: keys of the three above that change together; each point is measured with every value of the series.
        published: name of the published table that this plan measures again; points and measurements name its cells.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$")]
    gateways: Annotated[list[str], Field(min_length=1)]
    measure: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=_MOST_MEASUREMENTS)]
    repetitions: Repetitions = None
    profile: Profile | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    lab: dict[str, Any] = {}
    traffic: dict[str, Any] = {}
    device: dict[str, Any] = {}
    series: dict[str, Annotated[list[Any], Field(min_length=1, max_length=_MOST_VALUES)]] = {}
    point: Annotated[list[dict[str, Any]], Field(max_length=_MOST_VALUES)] = []
    published: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$")] | None = None

    #: The gateways as the plan's file names them, by the name from the folder in which natgauge was started.
    _written: dict[str, str] = PrivateAttr(default_factory=dict)
    #: The folder of the plan's file, from where natgauge was started.
    _folder: Path = PrivateAttr(default=Path())
    #: The text of the plan's file; empty = it was read from none.
    _text: str = PrivateAttr(default="")

    @property
    def text(self) -> str:
        """The text of the plan's file, with the plan's name also where the file leaves it to its own name."""
        return self._text

    def remember(self, written: Mapping[str, str], folder: Path, text: str) -> None:
        """Note the folder and the text of the plan's file, and the names by which it has the gateways.

        These names are the same from wherever natgauge is started.
        """
        self._written, self._folder, self._text = dict(written), folder, text

    def placed(self, values: Mapping[str, Any], known: Mapping[str, Input]) -> dict[str, Any]:
        """Return values with the paths of files from where natgauge was started: the plan has them from its folder."""
        placed = dict(values)
        for name, value in values.items():
            if name in known and isinstance(value, str) and isinstance(of_files := known[name].type, FileText):
                placed[name] = of_files.within(self._folder, value)
        return placed

    def in_lab(self, name: str | None) -> Plan:
        """Return the plan with this name of its lab; None = the name that labs have by default."""
        rest = {key: value for key, value in self.lab.items() if key != "lab_name"}
        return self.model_copy(update={"lab": rest if name is None else {**rest, "lab_name": name}})

    def begun_as(self, begun: Mapping[str, Any]) -> Plan:
        """Return the plan with what is no condition of its figures as the `begun` content has it.

        The order of the cells follows from the seed, and no figure from the names of the plan and of its lab.
        """
        lab = begun.get("lab")
        named = self.in_lab(lab.get("lab_name") if isinstance(lab, dict) else None)
        return named.model_copy(update={"name": begun.get("name", self.name)})

    def content(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Return the content of the plan's file, as JSON has it."""
        content = self.model_dump(mode="json", exclude_none=exclude_none)
        for part in (content, *content["measure"]):
            if isinstance(part.get("gateways"), list):
                part["gateways"] = [self._written.get(name, name) for name in part["gateways"]]
        return content

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's content, in hexadecimal digits; it does not depend on the file's layout."""
        return _digest(self.content())

    @property
    def digests(self) -> frozenset[str]:
        """The digest, and that with the gateways' names from where natgauge was started: campaigns began with it."""
        return frozenset({self.digest, _digest(self.model_dump(mode="json"))})


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class _Tag(BaseModel):
    """Parts of a measurement in addition to its settings: the cells of the published table that it is for."""

    model_config = Plan.model_config

    columns: _Columns | None = None
    quantities: Annotated[list[str], Field(min_length=1, max_length=_MOST_VALUES)] | None = None


class _Head(BaseModel):
    model_config = Plan.model_config

    columns: _Columns | None = None
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?$")] | None = None
    repetitions: Repetitions = None


def read(path: Path) -> Plan:
    """Read a plan and check names and kinds of its keys; whether values fit is for `natgauge.campaigns.cells`."""
    text = file_access.read_text(path, file_access.PLAN)
    try:
        raw = toml_text.parse(text)
    except ValueError as error:
        raise PlanError(str(path), [f"is no TOML: {error}"]) from None
    name = _name_of(path)
    # The copy in a campaign's folder has another file's name.
    kept = text if "name" in raw else f'name = "{name}"\n{text}'
    return parse({"name": name, **raw}, str(path), path.parent, kept)


def _name_of(path: Path) -> str:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in path.stem.lower())
    return kept.strip("-")[:60].strip("-") or "campaign"


def parse(raw: Mapping[str, Any], where: str, folder: Path = Path(), text: str = "") -> Plan:
    """Parse a plan from a TOML document; `text` as of `Plan`."""
    plan, faults = _shaped(raw, where)
    parts = {part: _checked_all(part, getattr(plan, part), keys_of_part(part), faults) for part in PLAN_PARTS}
    series = {name: _checked_series(name, values, faults) for name, values in plan.series.items()}
    named = {"gateways": plan.gateways, "points": [str(point["name"]) for point in plan.point if "name" in point]}
    after: list[str] = []
    point = [_checked_point(number, entry, after) for number, entry in enumerate(plan.point)]
    for found in (_contradictions, _contradictions_of_points, _unmeasured, _untagged, _unchanged_cores):
        after.extend(found(plan))
    of_measure: list[list[str]] = [[] for _ in plan.measure]
    measure = [_measure(number, entry, named, of_measure[number]) for number, entry in enumerate(plan.measure)]
    for number, entry in enumerate(plan.measure):
        if (first := plan.measure.index(entry)) < number:
            of_measure[number].append(f"measure[{number}]: is the same as measure[{first}]; leave one out")
    is_rest_right = not (faults or after)
    faults += [*(fault for each in of_measure for fault in each), *after]
    # Of no gateway; it keeps its place, because faults name their measurement's number.
    measure = [
        {"metric": "", "gateways": []} if each else entry for entry, each in zip(measure, of_measure, strict=True)
    ]
    gateways = {name: _device(name, folder) for name in plan.gateways}
    for entry in measure:
        if "gateways" in entry:
            entry["gateways"] = [gateways[name] for name in entry["gateways"]]
    update: dict[str, Any] = {str(part): values for part, values in parts.items()}
    update |= {"gateways": list(gateways.values()), "series": series, "point": point, "measure": measure}
    checked = plan.model_copy(update=update)
    checked.remember({found: _device(name, Path()) for name, found in gateways.items()}, folder, text)
    if faults:
        raise PlanError(where, faults, checked if is_rest_right else None)
    return checked


def _shaped(raw: Mapping[str, Any], where: str) -> tuple[Plan, list[str]]:
    """Return the plan without invalid keys of the first level, and their faults."""
    try:
        return Plan.model_validate(dict(raw)), []
    except ValidationError as error:
        errors = error.errors()
    faults = _faults(errors)
    wrong = {each["loc"][0] for each in errors}
    try:
        return Plan.model_validate({name: value for name, value in raw.items() if name not in wrong}), faults
    except ValidationError:
        raise PlanError(where, faults) from None


def _faults(errors: Sequence[Any]) -> list[str]:
    """Return a line for each wrong value, also where it might have been of one of several types."""
    lines: dict[str, list[str]] = {}
    for error in errors:
        path = ".".join(
            str(step) or '""' for step in error["loc"] if not str(step).startswith(("constrained", "literal"))
        )
        if error["type"] == "extra_forbidden":
            lines[path] = [f"unknown key; {did_you_mean(path, Plan.model_fields)}"]
        elif error["type"] == "missing":
            lines[path] = ["is missing"]
        elif path not in lines:
            lines[path] = [f"{shown(error['input'])} {toml_text.rule_in_words(error)}"]
        elif error["type"] == "literal_error":
            lines[path].append(f"; {error['ctx']['expected']} is possible, too")
        else:
            lines[path].append(f", and {toml_text.rule_in_words(error)}")
    return [f"{path}: {''.join(rules)}" for path, rules in lines.items()]


def at_path(path: str, error: UsageError) -> str:
    """Return the line of a fault: the path of its key, and the error without the name of the same key."""
    text, key = str(error), path.removesuffix(": ").rpartition(".")[2].partition("[")[0]
    begins = f"{spoken(key)}: "
    is_same = error.at in {key, ""} and spoken(text[: len(begins)]).casefold() == begins
    return path + (text[len(begins) :] if is_same else text)


def _checked_all(part: str, values: Mapping[str, Any], known: Mapping[str, Input], faults: list[str]) -> dict[str, Any]:
    checked = {}
    for name, value in values.items():
        try:
            checked[name] = _value_of_key(_key_named(name, known), value)
        except UsageError as error:
            faults.append(at_path(f"{part}.{name}: ", error))
    return checked


def _checked_series(name: str, values: list[Any], faults: list[str]) -> list[Any]:
    checked: list[Any] = []
    named: dict[str, Any] = {}
    try:
        key = _key_named(name, keys_of_series())
    except UsageError as error:
        faults.append(at_path(f"series.{name}: ", error))
        return checked
    for number, value in enumerate(values):
        try:
            checked_value = _value_of_key(key, value)
        except UsageError as error:
            faults.append(at_path(f"series.{name}[{number}]: ", error))
            continue
        if checked_value in checked:
            faults.append(f"series.{name}[{number}]: {checked_value!r} occurs twice; leave one out")
        elif name in keys_of_cell():
            # Measurements of one name get a number; cells do not.
            other = named.setdefault(as_name([str(checked_value)]).strip("-"), checked_value)
            if other != checked_value:
                faults.append(
                    f"series.{name}[{number}]: {checked_value!r} and {other!r} are one name of a cell, and so of a "
                    "folder; write both as points with names"
                )
        checked.append(checked_value)
    return checked


def as_name(parts: Iterable[str]) -> str:
    """Join parts of a name, without what names of files should not have."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts))


def _checked_point(number: int, point: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    path = f"point[{number}]"
    head = {name: value for name, value in point.items() if name in KEYS_OF_POINT}
    try:
        _Head.model_validate(head)
    except ValidationError as error:
        faults.extend(f"{path}.{fault}" for fault in _faults(error.errors()))
    others = {name: value for name, value in point.items() if name not in KEYS_OF_POINT}
    known = {name: key for name, key in keys_of_series().items() if name in keys_of_cell()}
    return {**head, **_checked_all(path, others, known, faults)}


def _measure(
    number: int, measure: Mapping[str, Any], known_names: Mapping[str, Sequence[str]], faults: list[str]
) -> dict[str, Any]:
    """Check one measurement; its restrictions must be among `known_names`, the gateways and points of the plan."""
    path = f"measure[{number}]"
    metric = measure.get("metric")
    if not isinstance(metric, str) or metric not in procedures():
        fault = "is missing" if metric is None else f"{shown(metric)} is unknown"
        faults.append(f"{path}.metric: {fault}; {did_you_mean(str(metric), procedures())}")
        return {}
    settings = {name: value for name, value in measure.items() if name not in KEYS_OF_MEASURE}
    checked = {"metric": metric, **_checked_all(path, settings, keys_of_metric(metric), faults)}
    tag = {name: measure[name] for name in _Tag.model_fields if name in measure}
    checked |= tag
    try:
        _Tag.model_validate(tag)
    except ValidationError as error:
        faults.extend(f"{path}.{fault}" for fault in _faults(error.errors()))
    for what, names in known_names.items():
        if what not in measure:
            continue
        checked[what] = named = measure[what]
        if not isinstance(named, list) or not named:
            faults.append(f"{path}.{what}: {shown(named)} is no list of {what}; leave it out for all of them")
            continue
        faults.extend(
            f"{path}.{what}[{at}]: {name!r} is none of the {what} of this plan; {did_you_mean(str(name), names)}"
            for at, name in enumerate(named)
            if name not in names
        )
    return checked


def _contradictions(plan: Plan) -> Iterator[str]:
    """Yield keys that occur in two places, gateways named twice, series that no metric has."""
    for number, device in enumerate(plan.gateways):
        if device in plan.gateways[:number]:
            yield f"gateways[{number}]: {device!r} occurs twice; leave one out"
    named = [measure.get("metric") for measure in plan.measure]
    metrics = [metric for metric in named if isinstance(metric, str) and metric in procedures()]
    for name in plan.series:
        for part in PLAN_PARTS:
            if name in getattr(plan, part):
                yield f"series.{name}: is in {part}.{name}, too; leave one out"
        for number, measure in enumerate(plan.measure):
            if name in measure:
                yield f"series.{name}: is in measure[{number}].{name}, too; leave one out"
        known = [metric for metric in metrics if name in keys_of_metric(metric)]
        if name in keys_of_series() and name not in keys_of_cell() and not known:
            yield f"series.{name}: none of the metrics of this plan has it; leave it out"


def point_name(point: Mapping[str, Any]) -> str:
    """Return the part of its cells' names that says which point it is: its name, or its keys with their values."""
    own = [f"{name}-{value}" for name, value in point.items() if name not in KEYS_OF_POINT]
    return as_name([str(point["name"])] if "name" in point else own).strip("-")


def _contradictions_of_points(plan: Plan) -> Iterator[str]:
    """Yield equal points or names of points, points without a key of the first one, and keys that occur elsewhere."""
    first = set(plan.point[0]) - set(KEYS_OF_POINT) if plan.point else set()
    named: dict[str, int] = {}
    for number, point in enumerate(plan.point):
        own = set(point) - set(KEYS_OF_POINT)
        same = named.setdefault(point_name(point), number)
        if not own:
            yield f"point[{number}]: has no key of a cell; give it one such as source_ports"
        for name in sorted(own ^ first):
            where = (number, 0) if name in first else (0, number)
            yield f"point[{where[0]}].{name}: is missing; point[{where[1]}] has it"
        if any(all(point[name] == other.get(name) for name in own) for other in plan.point[:number]):
            yield f"point[{number}]: occurs twice; leave one out"
        elif same != number and "name" in point:
            yield f"point[{number}].name: {point['name']!r} is the name of point[{same}], too; give it another one"
        elif same != number:
            yield f"point[{number}]: its cells would be called like those of point[{same}]; give it a name"
        for name in sorted(own & first):
            for part in ("series", *PLAN_PARTS):
                if number == 0 and name in getattr(plan, part):
                    yield f"point[{number}].{name}: is in {part}.{name}, too; leave one out"


def _unmeasured(plan: Plan) -> Iterator[str]:
    """Devices and points that no measurement is of."""
    for number, device in enumerate(plan.gateways):
        of_gateway = [measure for measure in plan.measure if is_of(measure, "gateways", device)]
        if not of_gateway:
            yield f"gateways[{number}]: no measurement is of {device!r}; leave it out, or add it to measure.gateways"
        for at, point in enumerate(plan.point):
            if of_gateway and not any(is_of(measure, "points", point.get("name")) for measure in of_gateway):
                yield f"point[{at}]: no measurement of {device!r} is of it; leave it out, or add it to measure.points"


def _untagged(plan: Plan) -> Iterator[str]:
    """Yield columns and quantities of no published table, and measurements with quantities and without columns."""
    for part in ("point", "measure") if plan.published is None else ():
        for number, entry in enumerate(getattr(plan, part)):
            for key in _Tag.model_fields:
                if key in entry:
                    yield f'{part}[{number}].{key}: are cells of a published table; name the table: published = "NAME"'
    for number, measure in enumerate(plan.measure):
        columns = "columns" in measure or any(
            "columns" in point and is_of(measure, "points", point.get("name")) for point in plan.point
        )
        if "quantities" in measure and not columns:
            yield f"measure[{number}].quantities: have no columns; give columns to the measurement or to its points"
        if "columns" in measure and "quantities" not in measure:
            yield f"measure[{number}].columns: have no quantities; name those of the table that it fills"


def _unchanged_cores(plan: Plan) -> Iterator[str]:
    """Yield several numbers of cores in a lab without its command that changes the number."""
    kind = kinds.kinds().get(str(plan.lab.get("lab", DEFAULT_LAB)))
    if kind is None or not kind.cores_command or kind.cores_command in plan.lab:
        return
    for name in ("cores", kind.cores_option):
        if len(plan.series.get(name, ())) > 1 or len({str(point.get(name)) for point in plan.point}) > 1:
            part = "series" if name in plan.series else "point"
            yield (
                f"{part}.{name}: several numbers of cores need lab.{kind.cores_command}, a command that restarts the "
                "device with $NG_CORES cores; without it each step would have the same cores"
            )


def is_of(measurement: Mapping[str, Any], what: str, name: object) -> bool:
    """Whether a measurement includes this device or point of the plan; without a list it includes all."""
    names = measurement.get(what)
    return not isinstance(names, list) or name in names


def _device(name: str, folder: Path) -> str:
    """A recipe's path is relative to the plan; a name is left as it is."""
    return str(folder / name) if "/" in name or name.endswith(".toml") else name

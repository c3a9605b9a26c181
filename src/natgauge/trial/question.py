# SPDX-License-Identifier: Apache-2.0
"""Questions: a cell (gateway, place, traffic) and a metric; built here for the command line, plans and Python.

The command that measures a stored result again is made of typed inputs: a results folder may come from a stranger, and
people copy this command into a root shell. So nothing of the stored text is shown as it is: every option is one of
natgauge's, every value is read by its input and written again, and what contradicts the record is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from natgauge import procedures
from natgauge.errors import UsageError
from natgauge.inputs.input import Flag, Input
from natgauge.inputs.question import RANGES, USUAL_FRAMES, DeviceOptions, Question
from natgauge.labs import kinds
from natgauge.setup.cell import CELL_PARTS, cell_of, inputs_of_lab, inputs_of_part
from natgauge.setup.traffic import chosen_sets, needs
from natgauge.words import Placement

_BEGINNING: Final = ("natgauge", "measure")
_GATEWAY: Final = "--gateway"
#: A name or path of a recipe, and any other value; no shell takes any of these characters for more than a letter.
_NAME: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+@=-]*")
#: Characters that no value of an option has, or that make further commands of a shell command.
_REFUSED: Final = re.compile(r"[;|&$`()\\\x00-\x1f\x7f]")
#: Inputs whose value in the command is another one than that of a repetition.
_OF_REPETITIONS: Final = frozenset({"seed", "lab_name", "repeat"})


def ask(metric: str, gateway: str | Path, choices: Mapping[str, object], *, like: str | Path | None = None) -> Question:
    """Make a question of names and values, as command line and Python API have them; None = not chosen.

    Args:
        metric: a procedure's name.
        gateway: a recipe's name, or the path of a recipe file.
        choices: options of traffic, cell, lab and device; all others are settings of the metric.
        like: gateway whose recipe names the traffic that nobody chose; None = this one.

    Raises:
        UsageError: the lab is unknown, or has no such option.
    """
    chosen = {name: value for name, value in choices.items() if value is not None}
    chosen = {**_of_rules(metric, like or gateway, chosen), **chosen}
    cell, left = cell_of(gateway, {**_own_traffic(metric, gateway, chosen), **chosen})
    procedure = procedures.get(metric)
    own = {input_.name: input_ for input_ in procedure.own_inputs()}
    # Without flags that are off by default and not set.
    settings = {
        name: value
        for name, value in procedure.taken(left).items()
        if value is not False or own[name].default is not False or not isinstance(own[name].type, Flag)
    }
    background = settings.get("foreground_share", 1.0) != 1.0
    return Question(metric=metric, cell=replace(cell, background=background), settings=MappingProxyType(settings))


def command(question: Question) -> str:
    """Return the command line of the question."""
    return shlex.join([*_BEGINNING, question.metric, *words(question)])


def words(question: Question) -> list[str]:
    """Return the words after `natgauge measure METRIC`: every input that was chosen, as an option."""
    cell = question.cell
    values: list[tuple[Input, Any]] = []
    for part in CELL_PARTS:
        chosen = getattr(cell, part)
        values += [(input_, getattr(chosen, input_.name)) for input_ in inputs_of_part(part)]
    if cell.kind_options is not None:
        values += [(input_, getattr(cell.kind_options, input_.name)) for input_ in inputs_of_lab(cell.lab.lab)]
    # A metric can have own defaults. A choice that equals the general default then still has to be in the command.
    own = {*procedures.get(question.metric).declared.traffic, *_of_rules(question.metric, cell.gateway, {})}
    values = [each for each in values if each[1] != each[0].default or (each[0].name in own and each[1] is not None)]
    settings = procedures.get(question.metric).own_inputs()
    values += [(input_, question.settings[input_.name]) for input_ in settings if input_.name in question.settings]
    return [_GATEWAY, str(cell.gateway), *(word for input_, value in values for word in input_.given(value))]


def _of_rules(metric: str, gateway: str | Path, chosen: Mapping[str, object]) -> dict[str, object]:
    """Return the traffic that the gateway's rules accept, as its recipe names it, where neither user nor metric do."""
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.recipe import load  # noqa: PLC0415

    procedure, recipe = procedures.get(metric), load(gateway)
    known = {**procedure.declared.traffic, **chosen}
    usual = {} if recipe.usual_transport == USUAL_FRAMES.transport else {"transport": recipe.usual_transport}
    transport = {**usual, **known, **procedure.settings.traffic_of(chosen)}.get("transport", USUAL_FRAMES.transport)
    ports = recipe.usual_ports(transport)
    found = {**usual, **({"destination_ports": ports} if ports else {})}
    return {name: value for name, value in found.items() if name not in known}


def _own_traffic(metric: str, gateway: str | Path, chosen: Mapping[str, object]) -> dict[str, object]:
    """Return the metric's own defaults of the traffic.

    The number of connections is among them only where the user chose no range and no port set is too small for them.
    """
    procedure = procedures.get(metric)
    wanted = dict(procedure.declared.traffic)
    has_range = any(name in chosen for name in RANGES)
    if wanted and (has_range or not _sets_hold(wanted.get("connections"), gateway, chosen)):
        wanted.pop("connections", None)
    return {**wanted, **procedure.settings.traffic_of(chosen)}


def _sets_hold(connections: object, gateway: str | Path, chosen: Mapping[str, object]) -> bool:
    """Whether the port sets of the device, if it has any, hold these connections towards one remote endpoint."""
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.recipe import load  # noqa: PLC0415

    recipe = load(gateway)
    if recipe.port_sets is None or not isinstance(connections, int):
        return True
    of_device = {input_.name: input_ for input_ in inputs_of_part("device") if input_.name in chosen}
    sets = chosen_sets(recipe, DeviceOptions(**{name: key.take(chosen[name]) for name, key in of_device.items()}))
    subscribers = chosen.get("subscribers", 1)
    needed = connections if not isinstance(subscribers, int) else needs(connections, max(1, subscribers), 1)
    return sets is not None and not recipe.half and needed <= sets.ports


def command_again(stored: object, metric: str, gateway: str, parameters: Mapping[str, object] | None = None) -> str:
    """Return the command that measures again; empty where it cannot be made of typed inputs."""
    try:
        given = shlex.split(stored) if isinstance(stored, str) else []
        if (*given[:2], *given[2:3]) != (*_BEGINNING, metric):
            return ""
        return shlex.join([*_BEGINNING, metric, *_again(given[3:], metric, gateway, parameters or {})])
    except (UsageError, ValueError):
        return ""


def _again(words: Sequence[str], metric: str, gateway: str, parameters: Mapping[str, object]) -> Iterator[str]:
    known = {input_.option: input_ for input_ in _inputs(metric)}
    off = {input_.option_off: input_ for input_ in known.values() if isinstance(input_.type, Flag)}
    left = iter(words)
    named = False
    for word in left:
        if word in off:
            yield from off[word].given(value=False)
        elif word == _GATEWAY:
            named = True
            yield from (_GATEWAY, _gateway(next(left, ""), gateway))
        elif word not in known:
            raise ValueError(word)
        elif isinstance(known[word].type, Flag):
            yield from known[word].given(value=True)
        else:
            yield from _written(known[word], next(left, ""), parameters)
    if not named:
        raise ValueError(_GATEWAY)


def _written(input_: Input, text: str, parameters: Mapping[str, object]) -> Sequence[str]:
    value = input_.read(text)
    written = input_.given(value)
    if any(_REFUSED.search(word) for word in written):
        raise ValueError(text)
    recorded = parameters.get(input_.parameter)
    is_known = type(recorded) is type(value) and isinstance(value, int | str) and input_.name not in _OF_REPETITIONS
    if is_known and recorded != value:
        raise ValueError(f"{input_.name}: {recorded!r}")
    return written


def _gateway(text: str, gateway: str) -> str:
    name = text.rpartition("/")[2].removesuffix(".toml")
    if not _NAME.fullmatch(text) or name != gateway:
        raise ValueError(text)
    return text


def _inputs(metric: str) -> Iterator[Input]:
    """Yield every input of a metric's command: of traffic, lab and device, of all kinds of labs, and its settings."""
    for part in CELL_PARTS:
        yield from inputs_of_part(part)
    for lab in kinds.kinds():
        yield from inputs_of_lab(lab)
    yield from procedures.get(metric).own_inputs()


def reasons_not_timed(
    name: str, placement: Placement, sender_cpus: Sequence[int] = (), *, own_processes: bool
) -> list[str]:
    """Return the reasons why the frames of a device cannot be timed; empty = they can, or no cores are chosen yet."""
    reasons = []
    if own_processes:
        # In every placement: no remedy for another reason helps.
        reasons.append(
            "works in processes of its own, not in the sender's context, so its frames cannot be timed; its rate can "
            "be measured: connection-rate, throughput"
        )
    if placement != "shared":
        remedy = "; use --placement shared" if placement == "isolated" and not own_processes else ""
        reasons.append(
            f"placement {placement}: the device does not work in the sender's context there, so its frames cannot be "
            f"timed{remedy}"
        )
    if len(sender_cpus) > 1:
        reasons.append(f"cores {','.join(map(str, sender_cpus))}: costs are those of one core; name one")
    return [f"{name}: {reason}" for reason in reasons]

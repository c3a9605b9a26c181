# SPDX-License-Identifier: Apache-2.0
"""One description for each input: what is made of it, and that each form of it gives the same value."""

from __future__ import annotations

import runpy
import shlex
import signal
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
import cloup
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.unit.golden import Golden
from tools import described

from natgauge import procedures
from natgauge.analysis import run_changes
from natgauge.audits.request import AuditOptions
from natgauge.campaigns import plan
from natgauge.cli import app, compare, measure
from natgauge.cli.parameters import ValueType
from natgauge.cli.say import EXIT_STATUSES
from natgauge.comparisons import compare as comparing
from natgauge.comparisons.request import OF_ALL, CompareOptions, read_gateways
from natgauge.errors import BrokenError, FaultError, HostError, UsageError
from natgauge.inputs import measuring_types
from natgauge.inputs.input import Flag, Input, InputType, Number, Share, Text, Whole, Words, inputs_of
from natgauge.inputs.question import Question
from natgauge.labs import wire
from natgauge.labs.kinds import kinds
from natgauge.records.parameters import Parameters, descriptions
from natgauge.setup.cell import inputs_of_lab, inputs_of_part, place_inputs
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask, command
from natgauge.words import Quantity

ROOT = Path(__file__).parents[2]
#: Options of commands that choose nothing of the question but where it goes.
OTHERS = {"gateway", "results", "host_name", "verbose", "as_json", "form", "gateways"}

#: A question has so many parts that a smaller one that fails takes minutes to find.
WITHOUT_SHRINKING = settings(
    max_examples=20,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


def every_input() -> Iterator[Input]:
    for part in ("traffic", "lab", "device"):
        yield from inputs_of_part(part)
    for kind in kinds():
        yield from inputs_of_lab(kind)
    for procedure in procedures.procedures().values():
        yield from procedure.own_inputs()
    yield from inputs_of(CompareOptions)


def metric_command(metric: str) -> click.Command:
    found = measure.command.get_command(click.Context(app), metric)
    assert found is not None
    return found


# Made of the descriptions


@pytest.mark.parametrize("metric", procedures.procedures())
def test_each_option_of_a_metric_is_an_input_and_each_input_an_option(metric: str) -> None:
    options = {one.name: one for one in metric_command(metric).params}
    cell = [one for part in ("traffic", "lab", "device") for one in inputs_of_part(part)]
    expected = [*procedures.get(metric).own_inputs(), *cell, *(one for one, _ in place_inputs().values())]
    assert set(options) - OTHERS == {one.name for one in expected}
    for one in expected:
        option = options[one.name]
        assert isinstance(option, click.Option)
        assert one.option in option.opts
        assert option.is_flag or isinstance(option.type, ValueType)


def test_each_option_of_compare_is_an_input() -> None:
    known = {one.name for one in [*inputs_of(CompareOptions), *inputs_of_part("traffic"), *inputs_of_part("device")]}
    assert {one.name for one in compare.command.params} - OTHERS == known | set(OF_ALL)


def test_each_key_of_a_plan_is_an_input() -> None:
    for name, key in {**plan.keys_of_series(), **plan.keys_of_cell()}.items():
        assert isinstance(key, Input)
        assert key.name == name


def test_each_input_is_described_whole() -> None:
    for one in every_input():
        assert one.help.rstrip(".") == one.help, one.name
        assert one.help, one.name
        assert one.label, one.name
        assert one.type.metavar or isinstance(one.type, Flag), one.name


def test_each_input_describes_a_parameter_of_results_with_its_label_unit_and_group() -> None:
    for one in every_input():
        if one in inputs_of(CompareOptions):
            continue
        found = descriptions()[one.parameter]
        assert found.group == one.group, one.name
        assert found.moves_figures == one.moves_figures, one.name


def test_an_input_of_several_metrics_has_one_type_unit_and_group() -> None:
    first: dict[str, Input] = {}
    for procedure in procedures.procedures().values():
        for one in procedure.own_inputs():
            other = first.setdefault(one.name, one)
            same = (one.type, one.unit, one.group, one.moves_figures, one.label, one.also)
            assert same == (other.type, other.unit, other.group, other.moves_figures, other.label, other.also), one.name


@pytest.mark.parametrize("path", described.FILES, ids=lambda path: path.name)
def test_files_made_of_the_descriptions_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == described.FILES[path]()


def test_each_input_is_a_typed_keyword_of_the_functions_that_have_it(tmp_path: Path) -> None:
    (tmp_path / described.KEYWORDS).parent.mkdir(parents=True)
    made = runpy.run_path(str(described.write_keywords(tmp_path)))
    names = {name: set(made[name].__annotations__) for name in ("MeasureKeywords", "CompareKeywords", "AuditKeywords")}
    parts = {part: {one.name for one in inputs_of_part(part)} for part in ("traffic", "lab", "device")}
    settings = {one.name for procedure in procedures.procedures().values() for one in procedure.own_inputs()}
    compared = {one.name for one in inputs_of(CompareOptions)}
    audited = {one.name for one in inputs_of(AuditOptions)}
    assert names["MeasureKeywords"] == settings.union(place_inputs(), *parts.values())
    assert names["CompareKeywords"] >= compared | parts["traffic"] | parts["device"]
    beside = (parts["lab"] | parts["device"]) - {"seed", "grace_seconds", "power_command", "log_tolerance"}
    addresses = {"source_addresses", "destination_addresses"}
    assert names["AuditKeywords"] == audited.union(addresses, place_inputs(), beside)


def test_the_docs_have_each_exit_status() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    for status in EXIT_STATUSES:
        commands = ", ".join(f"`natgauge {one}`" for one in status.commands) or "all"
        assert f"| {status.number} | {status.meaning} | {commands} |" in page


def test_each_exit_status_of_the_code_is_in_the_table() -> None:
    every = {(status.number, command) for status in EXIT_STATUSES for command in status.commands or [""]}
    assert {(comparing.ABOVE, "compare"), (comparing.UNDECIDED, "compare")} <= every
    assert {(run_changes.WORSE, "diff"), (run_changes.UNKNOWN, "diff")} <= every
    assert {(kind.exit_status, "") for kind in (UsageError, HostError, BrokenError, FaultError)} <= every
    assert {(128 + number, "") for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)} <= every


# One syntax for each type


@pytest.mark.parametrize(
    ("text", "value"), [("1%", 0.01), ("0.01", 0.01), ("99.9%", 0.999), (" 50 % ", 0.5), ("200%", 2.0)]
)
def test_a_share_is_written_in_percent_or_as_a_number(text: str, value: float) -> None:
    assert Share().read("x", text) == value
    assert Share().take("x", value) == value


#: Of the traffic, what a profile of a subscriber says.
OF_PROFILES = {"transport", "frame_size", "frame_side", "frame_sizes", "down_frame_sizes"}


@given(st.floats(min_value=0, max_value=100, allow_nan=False))
def test_each_share_reads_as_it_was_written(value: float) -> None:
    assert Share().read("x", Share().write(value)) == value


@given(st.floats(min_value=1e-6, max_value=0.5) | st.floats(min_value=1, max_value=1e9).map(lambda rate: -rate))
def test_each_error_of_a_search_reads_as_it_was_written(value: float) -> None:
    error = measuring_types.SearchError(share=value) if value > 0 else measuring_types.SearchError(rate=-value)
    assert measuring_types.SearchError.parse(str(error)) == error


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Share(), "much"),
        (Share(), "sNaN"),
        (Share(), True),
        (Share(), "10"),
        (Share(), "1"),
        (Whole(), "5"),
        (Whole(), True),
        (Number(), "5"),
        (Flag(), 1),
        (measuring_types.CoreList(), "0,0"),
        (measuring_types.CoreList(), [1, -2]),
        (measuring_types.RepetitionCount(), "many"),
        (Words.of(("a", "b")), "c"),
        (measuring_types.Shares(), [0.5, "x"]),
        (measuring_types.ErrorOfSearch(), "nan"),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused_with_value_and_rule(kind: InputType, value: object, golden: Golden) -> None:
    with pytest.raises(UsageError) as refused:
        kind.take("x", value)
    golden(str(refused.value))


# A question, its command line, and the question again


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
#: Values by type, the first that fits.
VALUES: tuple[tuple[type[InputType], st.SearchStrategy[Any]], ...] = (
    (Whole, st.integers(1, 70_000)),
    (Number, st.floats(0.01, 1e6) | st.integers(0, 20)),
    (Share, st.floats(0.01, 1)),
    (measuring_types.Shares, st.lists(st.floats(0.001, 1), min_size=1, max_size=4, unique=True)),
    (measuring_types.CoreList, st.lists(st.integers(0, 4096), min_size=1, max_size=5, unique=True)),
    (
        measuring_types.DeviceCoreList,
        st.sampled_from([(0, 2), {"ce": (2, 3), "pe": (4,)}, "ce=2-3,pe=4", 1]),
    ),
    (measuring_types.RepetitionCount, st.integers(1, 1000) | st.just("auto")),
    (measuring_types.ErrorOfSearch, st.floats(1e-6, 0.5) | st.floats(1, 1e6) | st.sampled_from(["1%", "1000"])),
    (Text, TEXTS),
)


@cache  # to look at a strategy before its first draw takes longer than the draws
def values_of(one: Input) -> st.SearchStrategy[Any]:
    """Values of an input that its check accepts; a flag that is off by default is on."""
    if one.name == "quantities":
        return st.sampled_from(["new", "up,down", "both"])
    if one.name.startswith("psid_"):
        return st.integers(0, 15)
    if one.type.words:
        return st.sampled_from(one.type.words)
    if isinstance(one.type, Flag):
        return st.sampled_from([True, False] if one.default else [True])
    found = next(values for kind, values in VALUES if isinstance(one.type, kind))
    return found.filter(lambda value: accepted(one, value))


def accepted(one: Input, value: object) -> bool:
    try:
        one.take(value)
    except UsageError:
        return False
    return True


def asked_by(line: str) -> Question:
    """The question that a command line asks."""
    program, subcommand, metric, *words = shlex.split(line)
    assert (program, subcommand) == ("natgauge", "measure")
    # The names of the option for help are those of the context above; a command keeps the first ones that it gets.
    with metric_command(metric).make_context(metric, words, cloup.Context(app, **app.context_settings)) as context:
        given = {name: value for name, value in context.params.items() if name not in OTHERS}
        return ask(metric, context.params["gateway"], given)


def sent(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The choices without sizes of frames that nobody sends, which are refused."""
    return {
        name: value for name, value in chosen.items() if name != "down_frame_sizes" or chosen.get("directions") != "up"
    }


@pytest.mark.parametrize("lab", kinds())
@given(data=st.data())
@settings(WITHOUT_SHRINKING, max_examples=4)  # each has every option
def test_the_command_line_of_a_question_with_every_option_asks_the_same(lab: str, data: st.DataObject) -> None:
    metric = data.draw(st.sampled_from(sorted(procedures.procedures())))
    inputs = {one.name: one for part in ("traffic", "lab", "device") for one in inputs_of_part(part)}
    inputs |= {one.name: one for one in inputs_of_lab(lab)}
    inputs |= {one.name: one for one in procedures.get(metric).own_inputs()}
    chosen = sent({**{name: data.draw(values_of(one), label=name) for name, one in inputs.items()}, "lab": lab})
    question = ask(metric, "nftables-nat44", chosen)
    assert set(question.settings) == {one.name for one in procedures.get(metric).own_inputs()}
    assert asked_by(command(question)) == question


@given(data=st.data())
@WITHOUT_SHRINKING
def test_the_command_line_of_any_question_asks_the_same(data: st.DataObject) -> None:
    metric = data.draw(st.sampled_from(sorted(procedures.procedures())))
    lab = data.draw(st.sampled_from(list(kinds())))
    inputs = [one for part in ("traffic", "lab", "device") for one in inputs_of_part(part)]
    every = {one.name: one for one in [*inputs, *inputs_of_lab(lab), *procedures.get(metric).own_inputs()]}
    if metric == "subscribers":
        # Its profile says what frames there are.
        every = {name: one for name, one in every.items() if name not in OF_PROFILES}
    some = data.draw(st.sets(st.sampled_from(sorted(every))))
    chosen = sent({**{name: data.draw(values_of(every[name]), label=name) for name in sorted(some)}, "lab": lab})
    question = ask(metric, "nftables-nat44", chosen)
    assert asked_by(command(question)) == question


def test_a_flag_that_stays_off_is_not_chosen() -> None:
    asked = {"stateless": False, "confirm": False, "lab": "wire", "allow_addresses": False}
    question = ask("throughput", "linux-ipv4", asked)
    assert (question.settings, question.cell.kind_options) == ({"confirm": False}, wire.WireOptions())
    assert command(question) == "natgauge measure throughput --gateway linux-ipv4 --lab wire --no-confirm"


def test_a_rate_is_checked_once_between_the_command_line_and_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    check = Input.checked

    def counted(self: Input, value: Any) -> Any:
        checked.append(self.name)
        return check(self, value)

    monkeypatch.setattr(Input, "checked", counted)
    (rate_input,) = [one for one in procedures.get("throughput").own_inputs() if one.name == "connection_rate"]
    rate = ValueType(rate_input.type).convert("5000", None, None)
    question = ask("throughput", "nftables-nat44", {"connection_rate": rate})
    planned = Bench(question.cell).plan(question.metric, question.settings)
    assert (rate, planned.settings.parameters()["connection_rate"], planned.chosen) == (
        5000,
        5000,
        {"connection_rate": 5000},
    )
    assert checked.count("connection_rate") == 1


def test_the_command_of_a_result_decides_nothing() -> None:
    assert not descriptions()["command"].moves_figures
    assert Parameters.grouped(settings={"command": "x"}).place == {"command": "x"}


@pytest.mark.parametrize(
    ("quantity", "measured"),
    [("new", "connection-rate"), ("up", "throughput"), ("both", "throughput")],
)
def test_the_command_that_measures_a_compared_gateway_alone_asks_for_that_rate_of_it(
    quantity: Quantity, measured: str
) -> None:
    names = ["nftables-nat44", "iptables-nat44:connections=1000"]
    gateway = read_gateways(names, {"frame_size": 128}, unlike=False)[1]
    question = asked_by(gateway.alone(quantity, "shared"))
    assert (question.metric, str(question.cell.gateway)) == (measured, "iptables-nat44")
    assert (question.cell.traffic.connections, question.cell.traffic.frame_size) == (1000, 128)
    assert getattr(question.cell.kind_options, "placement", None) == "shared"
    assert question.settings.get("directions", "both") == (quantity if quantity == "up" else "both")

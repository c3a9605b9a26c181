# SPDX-License-Identifier: Apache-2.0
"""Figures of different conditions: no order without a sentence, in text, on the page and in comparisons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared, estimate, gateway
from tests.unit.made_results import made

from natgauge.analysis.claims import rankings
from natgauge.analysis.comparing import comparable
from natgauge.analysis.conditions import (
    NOT_ON_ONE_AXIS,
    NOT_RANKED,
    NOT_RANKED_BY_TABLES,
    ORDERED,
    figure_of,
    said_once,
    unlike,
    unlike_conditions,
)
from natgauge.analysis.scalability import of_forwarding
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.measurement import Result
from natgauge.reports import comparison
from natgauge.reports.answers import answers
from natgauge.reports.collected import Stored, StoredComparison, StoredResults
from natgauge.reports.html.figures import looks_of, question_figures
from natgauge.reports.html.metrics_table import metrics_tables
from natgauge.reports.html.page import page
from natgauge.trial.question import command_again

#: Each condition alone: what the second gateway has, and the words for both.
CONDITIONS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "placement": ({"placement": "isolated"}, "placement (shared: a; isolated: b)"),
    "frame size": (
        {"frame_size": 1518},
        "frame size (64 octets inside: a; 1,518 octets inside: b)",
    ),
    "side of the frame size": (
        {"frame_side": "responder"},
        "frame size (64 octets inside: a; 64 octets outside: b)",
    ),
    "hops": ({"chain": ["ce", "pe"]}, "number of devices (1: a; 2: b)"),
    "kind": ({"kind": "nat66"}, "kind (nat44: a; nat66: b)"),
    "family of the Initiator": ({"initiator_family": "ipv6"}, "pair of address families (IPv4: a; IPv6 to IPv4: b)"),
    "family of the Responder": ({"responder_family": "ipv6"}, "pair of address families (IPv4: a; IPv4 to IPv6: b)"),
    "transport": ({"transport": "tcp"}, "transport (UDP: a; TCP: b)"),
    "host": ({"cpu": "Other CPU"}, "host (CPU, 6.18: a; Other CPU, 6.18: b)"),
    "kernel": ({"kernel": "6.12"}, "host (CPU, 6.18: a; CPU, 6.12: b)"),
    "machine of the device": ({"device_cpu": "Other CPU"}, "host"),
    "kind of lab": ({"lab_kind": "vm"}, "lab (netns: a; vm: b)"),
    "connections": ({"connections": 50_000}, "connections (1,000: a; 50,000: b)"),
    "tolerance": ({"loss_tolerance": 0.01}, "loss tolerance (not stated: a; 1 %: b)"),
    "version of the tester": ({"natgauge": "2"}, "natgauge version (1: a; 2: b)"),
}
COMMON: Mapping[str, Any] = {
    "initiator_family": "ipv4",
    "responder_family": "ipv4",
    "transport": "udp",
    "cpu": "CPU",
    "device_cpu": "CPU",
}


def result(gateway: str, rate: float, parameters: Mapping[str, Any]) -> Result:
    values = [rate, 1.01 * rate, 0.99 * rate]
    return made(values, median=rate, parameters={**COMMON, "gateway": gateway, **parameters})


def pair(own: Mapping[str, Any]) -> list[Result]:
    return [result("a", 2e5, {}), result("b", 1e5, own)]


def record_of(own: Mapping[str, Any]) -> ComparisonRecord:
    devices = len(own.get("chain", [1]))
    gateways = (
        gateway("a", "baseline", COMMON),
        gateway("b", "compared", {**COMMON, **own}, devices=devices),
        gateway("a (A/A control)", "control", COMMON),
    )
    return compared([estimate("b")], baseline="a", gateways=gateways)


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_alone_is_named_with_its_values_wherever_figures_are_shown(name: str) -> None:
    """No text puts figures of different conditions into an order, and no axis has them both, without saying so."""
    own, words = CONDITIONS[name]
    results, record = pair(own), record_of(own)
    (found,) = unlike_conditions([figure_of(result) for result in results])
    assert str(found).startswith(words)
    texts = [sentence.text for sentence in answers(results)]
    assert not [text for text in texts if " most frames" in text or text.startswith("Cannot tell")]
    assert any(words in text for text in texts)
    (group,) = question_figures(results, [[], []], looks_of(results, []))
    (table,) = metrics_tables(results)
    for shown in (str(group.unlike), str(table.unlike), comparison.text(record), comparison.comment(record)):
        assert words in shown


def test_figures_that_differ_in_the_gateway_alone_are_ranked_together() -> None:
    own = {"version": ["b 2"], "recipe_digest": "other", "udp_timeout": 300, "table_size": 7, "seeds": [3]}
    assert not unlike_conditions([figure_of(result) for result in pair(own)])
    alike, record = pair({}), record_of({})
    (group,) = question_figures(alike, [[], []], looks_of(alike, []))
    assert group.unlike is None
    assert metrics_tables(alike)[0].unlike is None
    assert "Under different conditions" not in comparison.text(record) + comparison.comment(record)


def of_host(gateway: str, before: int | None, buckets: Any) -> Result:
    """A gateway with so many buckets, of which the machine had some before; None = the user chose them."""
    found = {} if before is None else {"of_host": {"hash_size": before}}
    return result(gateway, 1e5 + len(gateway), {"hash_size": buckets, **found})


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([of_host("a", 2**18, 2**18), of_host("b", 2**22, 2**22)], "(262,144 buckets: a; 4,194,304 buckets: b)"),
        # The second one's was raised, because the host had fewer.
        ([of_host("a", 2**18, 2**18), of_host("b", 1024, 2**15)], "(262,144 buckets: a; 32,768 buckets: b)"),
        (
            [of_host("a", None, 7), of_host("b", None, {"several": [2**22, 2**18]})],
            "(7 buckets: a; 4,194,304 and 262,144",
        ),
        # The gateways' own needs, the user's choices, and a table of a gateway's own.
        ([of_host("a", 1024, 2**15), of_host("b", 1024, 2**16)], ""),
        ([of_host("a", 1024, 2**15), of_host("b", 2048, 2**15)], ""),
        ([of_host("a", None, 2**15), of_host("b", None, 2**16)], ""),
        ([of_host("a", 2**18, 2**18), of_host("b", None, 2**16)], ""),
    ],
)
def test_a_table_that_the_host_decided_is_a_condition(results: list[Result], words: str) -> None:
    """Seen: a gateway of 192 k with 4,194,304 buckets, and of 309 k with 262,144, was ranked without a word."""
    found = unlike_conditions([figure_of(each) for each in results])
    assert [each.label for each in found] == (["hash table size"] if words else [])
    assert all(words in str(each) for each in found)
    texts = [sentence.text for sentence in answers(results)]
    assert any("most frames" in text for text in texts) is not bool(words)
    assert any(words in text for text in texts)
    (group,) = question_figures(results, [[], []], looks_of(results, []))
    assert len(group.figures) == (2 if words else 1)


def test_two_tables_of_hosts_are_not_ranked_together_beside_a_gateway_with_its_own() -> None:
    results = [of_host("own", None, 7), of_host("a", 2**18, 2**18), of_host("b", 2**22, 2**22)]
    for every in (results, results[::-1]):
        assert [len(ranking.results) for ranking in rankings(every)] == [2]
    assert not comparable(results[0], results[1], except_for={"device"})
    assert [one.name for one in comparable(results[1], results[2], except_for={"device"})] == ["hash_size"]
    assert not comparable(results[1], results[2], except_for={"device", "hash_size"})
    plain = result("plain", 9e5, {"kind": "routing"})
    shares = [of_forwarding(each, [*results, plain]) for each in results]
    assert [share.reference for share in shares] == [plain] * 3


def test_repetitions_under_several_conditions_are_like_nothing() -> None:
    several = {"kernel": {"several": ["6.12", "6.18"]}}
    both = [figure_of(result(gateway, 1e5, several)) for gateway in ("a", "b")]
    assert [condition.label for condition in unlike_conditions(both)] == ["host"]


@pytest.mark.parametrize("name", CONDITIONS)
def test_many_results_that_are_not_compared_are_named_with_the_conditions_that_differ(
    name: str, golden: Golden
) -> None:
    own, words = CONDITIONS[name]
    # None of them is compared with another one.
    results = [result(f"g{at}", 1e5 + at, {**(own if at else {}), "source_port_count": at}) for at in range(5)]
    first, *others = (sentence.text for sentence in answers(results))
    golden(first)
    assert any(words.partition(" (")[0] in text for text in others)


def test_the_whole_page_says_the_conditions_of_results_and_comparisons_once_with_the_answers(tmp_path: Path) -> None:
    """Seen: captions of bars, of the forest and of all repetitions, and the table of results said them again."""
    own, words = CONDITIONS["placement"]
    stored = tuple(Stored(tmp_path, result) for result in pair(own))
    html = page(StoredResults(stored, (), (StoredComparison(tmp_path, record_of(own)),)), command_again)
    answered, _, below = html.partition('<section id="results">')
    # Once for the results, and once for the costs, which are ranked.
    assert (answered.count(words), below.count(words)) == (2, 0)


def test_conditions_that_one_view_has_beside_more_are_part_of_those_and_other_metrics_are_named(golden: Golden) -> None:
    more = {"placement": "isolated", "loss_tolerance": 0.01}
    rates = [figure_of(one) for one in pair(more)]
    shown = [
        unlike(rates, except_for={"loss_tolerance"}, so=NOT_ON_ONE_AXIS),
        unlike(rates, so=NOT_RANKED_BY_TABLES),
        unlike([replace(one, metric="latency") for one in rates], except_for={"loss_tolerance"}, so=NOT_RANKED),
    ]
    golden([f"{metrics}: {text}" for text, metrics in said_once([one for one in shown if one is not None])])


def test_what_follows_for_one_metric_is_said_of_no_other_with_the_same_conditions(golden: Golden) -> None:
    """Seen: that costs are not ranked, which were, because rates with the same conditions were not."""
    rates = [figure_of(one) for one in pair({"placement": "isolated"})]
    of_each = (("throughput", NOT_RANKED), ("latency", ORDERED), ("connection-rate", NOT_RANKED))
    shown = [unlike([replace(one, metric=metric) for one in rates], so=so) for metric, so in of_each]
    found = said_once([one for one in shown if one is not None])
    assert [metrics for _, metrics in found] == [("throughput", "connection-rate"), ("latency",)]
    golden([text for text, _ in found])


def test_a_sentence_that_is_said_once_is_of_all_its_metrics(tmp_path: Path) -> None:
    rates = pair({"placement": "isolated"})
    results = [*rates, *(one.model_copy(update={"metric": "latency", "unit": "us"}) for one in rates)]
    (said,) = (one for one in answers(results) if one.unlike)
    assert [one.metric for one in said.unlike] == ["throughput", "latency"]
    html = page(StoredResults(tuple(Stored(tmp_path, one) for one in results), (), ()), command_again)
    assert html.count("nder different conditions") == 1


def test_lines_over_an_axis_name_conditions_that_neither_the_axis_nor_a_chart_shows(golden: Golden) -> None:
    def over(gateway: str, **own: Any) -> list[Result]:
        return [result(gateway, 1e5 * cores, {"device_cores": cores, **own}) for cores in (1, 2)]

    results = [*over("a", placement="isolated"), *over("b", placement="isolated", frame_size=512)]
    (group,) = question_figures(results, [[]] * 4, looks_of(results, []))
    golden(str(group.unlike))
    assert "cores (" not in str(group.unlike)
    alike = [*over("a", placement="isolated"), *over("b", placement="isolated")]
    (group,) = question_figures(alike, [[]] * 4, looks_of(alike, []))
    assert group.unlike is None


def test_a_series_over_part_of_a_new_connection_a_second_has_its_steps_in_full() -> None:
    """Seen: "0 new connections/s" of 0.5."""
    results = [made([1e5 - new], metric="mixed-load", parameters={"new_rate": new}) for new in (0.0, 0.5, 1000.0)]
    (group,) = question_figures(results, [[]] * 3, looks_of(results, []))
    (figure,) = group.figures
    assert [row[1] for row in figure.data] == ["0", "0.5", "1,000"]
    assert "with 0 new connections/s" in figure.finding
    two = question_figures(results[:2], [[]] * 2, looks_of(results, []))[0].figures[0]
    assert "with 0.5 new connections/s" in two.finding


@pytest.mark.parametrize("name", ["hops", "kind", "family of the Initiator", "family of the Responder", "placement"])
def test_what_is_not_ranked_shares_no_axis_and_forwarding_is_next_to_what_it_is_compared_with(name: str) -> None:
    own, _ = CONDITIONS[name]
    results = [
        *(result(gateway, rate, {"kind": "nat44"}) for gateway, rate in (("a", 2e5), ("b", 3e5))),
        *(result(gateway, rate, {"kind": "nat44", **own}) for gateway, rate in (("c", 4e5), ("d", 1e5))),
        result("plain", 9e5, {"kind": "routing"}),
    ]
    for group in question_figures(results, [[]] * 5, looks_of(results, [])):
        drawn = [{row[0] for row in figure.data} for figure in group.figures]
        with_plain = {"plain"} if name in ("hops", "kind", "family of the Responder") else set()
        assert drawn == [{"a", "b", "plain"}, {"c", "d", *with_plain}]
        assert str(group.unlike).endswith("so they are not on one axis.")
    first, second, *_ = (sentence.text for sentence in answers(results))
    if name == "placement":
        assert "alone" not in first + second
    else:
        assert first.count("this ranks gateways of kind nat44") == second.count("this ranks gateways of kind") == 1
    for ranked, best, last in ((first, "b", "a"), (second, "c", "d")):
        assert ranked.startswith(f"In these repetitions {best} forwards most frames")
        assert f"the next, {last}" in ranked


def test_forwarding_has_no_kind_of_which_gateways_could_be_different() -> None:
    figures = [figure_of(result("plain", 9e5, {"kind": "routing"})), figure_of(result("a", 1e5, {"kind": "nat44"}))]
    assert not unlike_conditions(figures)
    two = [*figures, figure_of(result("b", 1e5, {"kind": "nat66"}))]
    assert [str(each) for each in unlike_conditions(two)] == ["kind (nat44: a; nat66: b)"]


def test_shares_of_forwarding_of_gateways_that_do_other_work_are_in_no_order_and_none_is_left_out() -> None:
    kinds = ("nat44", "map-t", "ds-lite", "464xlat", "lw4o6", "map-e")
    results = [result(kind, 1e5 + 1e4 * (at % 3), {"kind": kind}) for at, kind in enumerate(kinds)]
    plain = result("plain", 9e5, {"kind": "routing"})
    shares, *others = (one for one in answers([*results, plain]) if one.ratios)
    assert not others
    assert [gateway for gateway, _ in shares.ratios] == list(kinds)
    assert re.findall("|".join(kinds), shares.text) == list(kinds)
    assert [one.text for one in answers([*results, plain]) if one.text.endswith("so they are not ranked.")]

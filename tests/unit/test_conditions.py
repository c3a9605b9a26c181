# SPDX-License-Identifier: Apache-2.0
"""Figures of different conditions: no order without a sentence, in text, on the page and in comparisons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.conftest import Reported
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared, estimate, gateway
from tests.unit.made_results import made
from tests.unit.pages import lines_of, tables_of, words_of

from natgauge import Result

DATA = "Data of Frames per second without loss (frames/s in each direction)"
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


def of_metric(results: list[Result], metric: str, unit: str) -> list[Result]:
    return [one.model_copy(update={"metric": metric, "unit": unit}) for one in results]


def record_of(own: Mapping[str, Any]) -> Any:
    devices = len(own.get("chain", [1]))
    gateways = (
        gateway("a", "baseline", COMMON),
        gateway("b", "compared", {**COMMON, **own}, devices=devices),
        gateway("a (A/A control)", "control", COMMON),
    )
    return compared([estimate("b")], baseline="a", gateways=gateways)


def texts_of(said: Any) -> list[str]:
    return [one["text"] for one in said["answers"]]


def conditions_of(page: str) -> list[str]:
    """The sentences of a page on different conditions, which stand with the answers."""
    answered, found, below = page.partition('<section id="results">')
    assert found
    assert "nder different conditions" not in below
    return [line for line in lines_of(answered) if "nder different conditions" in line]


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_alone_is_named_with_its_values_wherever_figures_are_shown(
    name: str, reported: Reported
) -> None:
    """No text puts figures of different conditions into an order, and no axis has them both, without saying so.

    Seen: captions of bars, of the forest and of all repetitions, and the table of results said them again.
    """
    own, words = CONDITIONS[name]
    said = reported(*pair(own), record_of(own))
    texts = texts_of(said)
    assert not [text for text in texts if " most frames" in text or text.startswith("Cannot tell")]
    (unlike,) = (text for text in texts if text.startswith("Under different"))
    assert unlike.removeprefix("Under different conditions: ").startswith(words)
    (of_costs,) = (text for text in texts_of(said["comparisons"][0]) if text.startswith("Under different"))
    assert words in of_costs
    costs, rates = conditions_of(reported(*pair(own), record_of(own), html=True))
    assert words in costs
    assert words in rates
    assert costs.endswith("; so the order of these figures is not that of the gateways alone.")
    assert rates.endswith("; so they are not ranked and they are not on one axis.")


def test_figures_that_differ_in_the_gateway_alone_are_ranked_together(reported: Reported) -> None:
    own = {"version": ["b 2"], "recipe_digest": "other", "udp_timeout": 300, "table_size": 7, "seeds": [3]}
    for more in (own, {}):
        first, *others = texts_of(reported(*pair(more)))
        assert "a forwards most frames" in first
        assert not [text for text in others if text.startswith("Under different")]
    assert conditions_of(reported(*pair({}), record_of({}), html=True)) == []
    costs = reported(record_of({}))["comparisons"][0]
    assert not [text for text in texts_of(costs) if text.startswith("Under different")]


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
def test_a_table_that_the_host_decided_is_a_condition(results: list[Result], words: str, reported: Reported) -> None:
    """Seen: a gateway of 192 k with 4,194,304 buckets, and of 309 k with 262,144, was ranked without a word."""
    texts = texts_of(reported(*results))
    unlike = [text for text in texts if text.startswith("Under different")]
    assert any("most frames" in text for text in texts) is not bool(words)
    assert len(unlike) == bool(words)
    assert all(text.startswith(f"Under different conditions: hash table size {words}") for text in unlike)
    assert len(tables_of(reported(*results, html=True), DATA)) == (2 if words else 1)


@pytest.mark.parametrize("turn", [1, -1])
def test_two_tables_of_hosts_are_not_ranked_together_beside_a_gateway_with_its_own(
    turn: int, golden: Golden, reported: Reported
) -> None:
    """Seen: "b, because of another .", as it is like the one of the two that were ranked."""
    results = [of_host("own", None, 7), of_host("a", 2**18, 2**18), of_host("b", 2**22, 2**22)]
    ranked, left_out, *_ = texts_of(reported(*results[::turn]))
    assert "own and a forwards most frames" in ranked
    golden(left_out)
    plain = result("plain", 9e5, {"kind": "routing"})
    said = reported(*results, plain)
    assert "hash table size (262,144 buckets: a; 4,194,304 buckets: b); so the order" in " ".join(texts_of(said))
    cells = {row["row"]: row["cells"] for row in said["table"]["rows"]}
    assert [cell["value"] for cell in cells["share of plain forwarding"][:3]] == pytest.approx([100 / 9] * 3, rel=1e-3)


def test_repetitions_under_several_conditions_are_like_nothing(reported: Reported) -> None:
    several = {"kernel": {"several": ["6.12", "6.18"]}}
    texts = texts_of(reported(*(result(gateway, 1e5, several) for gateway in ("a", "b"))))
    (unlike,) = (text for text in texts if text.startswith("Under different"))
    assert unlike.startswith("Under different conditions: host;")


@pytest.mark.parametrize("name", CONDITIONS)
def test_many_results_that_are_not_compared_are_named_with_the_conditions_that_differ(
    name: str, golden: Golden, reported: Reported
) -> None:
    own, words = CONDITIONS[name]
    # None of them is compared with another one.
    results = [result(f"g{at}", 1e5 + at, {**(own if at else {}), "source_port_count": at}) for at in range(5)]
    first, *others = texts_of(reported(*results))
    golden(first)
    assert any(words.partition(" (")[0] in text for text in others)


def test_conditions_that_one_view_has_beside_more_are_part_of_those_and_other_metrics_are_named(
    golden: Golden, reported: Reported
) -> None:
    # The axis of the rates has their tolerances, and their ranking has not.
    rates = [result("a", 1e5, {"placement": "isolated", "loss_tolerance": share}) for share in (0.01, 0.02)]
    shown = [*rates, result("b", 1e5, {"loss_tolerance": 0.01})]
    delays = of_metric(pair({"placement": "isolated"}), "latency", "us")
    golden(conditions_of(reported(*shown, *delays, html=True)))


def test_what_follows_for_one_metric_is_said_of_no_other_with_the_same_conditions(
    golden: Golden, reported: Reported
) -> None:
    """Seen: that costs are not ranked, which were, because rates with the same conditions were not."""
    own = {"placement": "isolated"}
    openings = of_metric(pair(own), "connection-rate", "connections/s")
    found = conditions_of(reported(*pair(own), *openings, record_of(own), html=True))
    assert len(found) == 2
    golden(found)


def test_a_sentence_that_is_said_once_is_of_all_its_metrics(reported: Reported) -> None:
    rates = pair({"placement": "isolated"})
    delays = of_metric(rates, "latency", "us")
    assert sum("nder different conditions" in text for text in texts_of(reported(*rates, *delays))) == 1
    (alone,) = conditions_of(reported(*rates, *delays, html=True))
    assert alone.startswith("Under different")
    others = of_metric(pair({}), "connection-rate", "connections/s")
    (named,) = conditions_of(reported(*rates, *delays, *others, html=True))
    assert named.startswith("Frames per second without loss and delay of a frame: under different")


def test_lines_over_an_axis_name_conditions_that_neither_the_axis_nor_a_chart_shows(
    golden: Golden, reported: Reported
) -> None:
    def over(gateway: str, **own: Any) -> list[Result]:
        return [result(gateway, 1e5 * cores, {"device_cores": cores, **own}) for cores in (1, 2)]

    results = [*over("a", placement="isolated"), *over("b", placement="isolated", frame_size=512)]
    (found,) = conditions_of(reported(*results, html=True))
    golden(found)
    assert "cores (" not in found
    alike = [*over("a", placement="isolated"), *over("b", placement="isolated")]
    assert conditions_of(reported(*alike, html=True)) == []


def test_a_series_over_part_of_a_new_connection_a_second_has_its_steps_in_full(reported: Reported) -> None:
    """Seen: "0 new connections/s" of 0.5."""
    results = [made([1e5 - new], metric="mixed-load", parameters={"new_rate": new}) for new in (0.0, 0.5, 1000.0)]
    page = reported(*results, html=True)
    title = "Mixed load against new connections/s (frames/s in each direction)"
    ((_, *rows),) = tables_of(page, f"Data of {title}")
    assert [row[1] for row in rows] == ["0", "0.5", "1,000"]
    finding = re.compile(f'role="img" aria-label="{re.escape(title)}. ([^"]*)"')
    assert "with 0 new connections/s" in finding.findall(page)[0]
    assert "with 0.5 new connections/s" in finding.findall(reported(*results[:2], html=True))[0]


@pytest.mark.parametrize("name", ["hops", "kind", "family of the Initiator", "family of the Responder", "placement"])
def test_what_is_not_ranked_shares_no_axis_and_forwarding_is_next_to_what_it_is_compared_with(
    name: str, reported: Reported
) -> None:
    own, _ = CONDITIONS[name]
    results = [
        *(result(gateway, rate, {"kind": "nat44"}) for gateway, rate in (("a", 2e5), ("b", 3e5))),
        *(result(gateway, rate, {"kind": "nat44", **own}) for gateway, rate in (("c", 4e5), ("d", 1e5))),
        result("plain", 9e5, {"kind": "routing"}),
    ]
    page = reported(*results, html=True)
    with_plain = {"plain"} if name in ("hops", "kind", "family of the Responder") else set()
    for figure in (DATA, DATA.replace("of Frames", "of Every repetition of Frames")):
        drawn = [{words_of(row[0]).partition(",")[0] for row in rows} for _, *rows in tables_of(page, figure)]
        assert drawn == [{"a", "b", "plain"}, {"c", "d", *with_plain}]
    (unlike,) = conditions_of(page)
    assert "they are not on one axis" in unlike
    first, second, *_ = texts_of(reported(*results))
    if name == "placement":
        assert "alone" not in first + second
    else:
        assert first.count("this ranks gateways of kind nat44") == second.count("this ranks gateways of kind") == 1
    for ranked, best, last in ((first, "b", "a"), (second, "c", "d")):
        assert ranked.startswith(f"In these repetitions {best} forwards most frames")
        assert f"the next, {last}" in ranked


def test_forwarding_has_no_kind_of_which_gateways_could_be_different(reported: Reported) -> None:
    figures = [result("plain", 9e5, {"kind": "routing"}), result("a", 1e5, {"kind": "nat44"})]
    assert conditions_of(reported(*figures, html=True)) == []
    (found,) = conditions_of(reported(*figures, result("b", 1e5, {"kind": "nat66"}), html=True))
    assert found.startswith("Under different conditions: kind (nat44: a; nat66: b);")


def test_shares_of_forwarding_of_gateways_that_do_other_work_are_in_no_order_and_none_is_left_out(
    reported: Reported,
) -> None:
    kinds = ("nat44", "map-t", "ds-lite", "464xlat", "lw4o6", "map-e")
    results = [result(kind, 1e5 + 1e4 * (at % 3), {"kind": kind}) for at, kind in enumerate(kinds)]
    results.append(result("plain", 9e5, {"kind": "routing"}))
    texts = texts_of(reported(*results))
    (shares,) = (text for text in texts if "which only forwards" in text)
    assert re.findall("|".join(kinds), shares) == list(kinds)
    assert [text for text in texts if text.endswith("so they are not ranked.")]
    ((_, *rows),) = tables_of(reported(*results, html=True), "Ratios")
    assert [words_of(row[0]) for row in rows] == list(kinds)

# SPDX-License-Identifier: Apache-2.0
"""Results beside each other, held against published ones.

draft-lencse-v6ops-transition-scalability-05 figures 2 and 8: medians in thousands a second on 1, 2, 4, 8 and 16 cores;
RFC 9693 table 1.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge.analysis.comparing import comparable
from natgauge.analysis.scalability import of_forwarding
from natgauge.records.measurement import Result
from natgauge.reports import csv_table
from natgauge.reports.rows import rows
from natgauge.reports.text import table


def result(gateway: str, median: float, cores: int, **parameters: Any) -> Result:
    kind = "routing" if gateway.startswith("linux") else "nat44"
    common = {"gateway": gateway, "kind": kind, "device_cores": cores, "sender_cores": cores}
    return made([median], parameters={**common, **parameters})


def row(name: str, *results: Result) -> list[str] | None:
    lines = table(results).splitlines()
    return next((line.removeprefix(name).split() for line in lines if line.startswith(name)), None)


def test_the_table_compares_cores_and_plain_forwarding() -> None:
    columns = (result("nat", 400.0, 1), result("nat", 600.0, 2), result("linux-ipv4", 800.0, 1))
    assert row("device cores", *columns) == ["1", "2", "1"]
    assert row("relative scale-up", *columns) == ["-", "0.75", "-"]
    # In shared placement the tester's own work is in both rates.
    assert row("share of plain forwarding (%)", *columns) == ["<=", "50", "-", "-"]


def test_what_was_measured_otherwise_is_not_compared() -> None:
    assert row("relative scale-up", result("nat", 400.0, 1, connections=2000), result("nat", 600.0, 2)) is None
    assert (
        row("share of plain forwarding (%)", result("nat", 4.0, 1), result("linux-ipv4", 8.0, 1, frame_size=84)) is None
    )


@pytest.mark.parametrize(
    ("sessions", "hash_size", "printed"),
    [
        (400_000, 2**17, "3.05"),
        (4_000_000, 2**20, "3.81"),
        (40_000_000, 2**23, "4.77"),
        (400_000_000, 2**27, "2.98"),
    ],
)
def test_sessions_per_hash_are_those_of_rfc_9693_table_1(sessions: int, hash_size: int, printed: str) -> None:
    assert row("sessions per hash", result("nat", 1.0, 1, connections=sessions, hash_size=hash_size)) == [printed]


def refusal(*results: Result) -> str:
    lines = [line for line in table(results).splitlines() if "not compared" in line]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("trial_seconds", 2.0, 60.0),
        ("loss_tolerance", 0.0, 0.01),
        ("search", "binary", "mlrsearch"),
        ("goals", "rfc2544", "ndr-pdr"),
        ("ring", 512, 4096),
        ("frame_timeout_seconds", 0.02, None),
        ("foreground_share", 1.0, 0.5),
        ("connections", 1000, 2000),
        ("version", ["x 1"], ["x 2"]),
        ("mitigations", {"a": "on", "b": "on"}, {"a": "on", "b": "off"}),
        ("nobody_described_this", 1, 2),
    ],
)
def test_what_keeps_two_results_from_being_compared_is_named_under_the_table(
    name: str, first: Any, second: Any, golden: Golden
) -> None:
    one, two = result("nat", 400.0, 1, **{name: second}), result("nat", 600.0, 2, **{name: first})
    golden([str(difference) for difference in comparable(two, one, except_for=("device_cores", "sender_cores"))])
    assert row("relative scale-up", one, two) is None
    # Results of other numbers of sessions are on another series over cores.
    golden(refusal(one, two))
    same = result("nat", 400.0, 1, **{name: first})
    assert row("relative scale-up", one, two, same) == ["-", "0.75", "-"]
    assert refusal(one, two, same) == ""


def test_the_device_is_what_the_share_of_forwarding_is_about_and_nothing_else_is(golden: Golden) -> None:
    nat, linux = result("nat", 4.0, 1, hash_size=5, new_knob=1), result("linux-ipv4", 8.0, 1, version=["y"])
    names = {difference.name for difference in comparable(nat, linux)}
    # Nobody described the new knob, so it counts wherever it may stand.
    assert names == {"gateway", "kind", "version", "hash_size", "new_knob"}
    golden(refusal(nat, linux))
    known = result("nat", 4.0, 1, hash_size=5)
    assert row("share of plain forwarding (%)", known, linux) == ["<=", "50", "-"]
    golden(refusal(known, result("linux-ipv4", 8.0, 2)))


def test_of_several_results_that_differ_the_nearest_is_named(golden: Golden) -> None:
    far, near = result("nat", 1.0, 1, trial_seconds=1, search="x"), result("nat", 1.0, 1, trial_seconds=2, search="y")
    many = result("nat", 1.0, 2, trial_seconds=3, search="y")
    golden(refusal(far, near, many))


def test_isolated_senders_are_no_part_of_a_scale_up(golden: Golden) -> None:
    one = result("nat", 1.0, 1, placement="isolated", sender_cores=1)
    two = result("nat", 1.0, 2, placement="isolated", sender_cores=2)
    golden(refusal(one, two))


def test_only_rates_scale_and_only_of_one_metric() -> None:
    times = [made([4.0], unit="us", metric="latency", parameters={"device_cores": cores}) for cores in (1, 2)]
    assert row("relative scale-up", *times) is None
    other = made([4.0], metric="connection-rate", parameters={"gateway": "nat", "device_cores": 1})
    assert row("relative scale-up", other, result("nat", 4.0, 2)) is None
    assert refusal(other, result("nat", 4.0, 2)) == ""


def test_a_median_of_nothing_is_no_reference(golden: Golden) -> None:
    golden(refusal(result("nat", 0.0, 1), result("nat", 4.0, 2)))


def test_results_of_two_metrics_or_units_are_never_comparable(golden: Golden) -> None:
    found = comparable(made([1.0]), made([1.0], metric="latency", unit="us"))
    golden([str(one) for one in found])


def test_what_differs_between_results_of_one_metric_has_a_row() -> None:
    one, two = result("nat", 1.0, 1, trial_seconds=2.0, ring=5), result("nat", 1.0, 1, trial_seconds=60.0, ring=5)
    assert row("trial seconds", one, two) == ["2.0", "60.0"]
    assert row("ring", one, two) is None
    other = made([1.0], metric="latency", unit="us", parameters={"trial_seconds": 9.0})
    assert row("trial seconds", one, other) is None
    # Two devices have two versions, one device has none too many.
    assert row("device version", result("a", 1.0, 1), result("b", 1.0, 1, version=["y"])) is None
    assert row("device version", result("a", 1.0, 1), result("a", 1.0, 1, version=["y" * 99])) == [
        "x", "1", "y" * 29 + "...",
    ]  # fmt: skip


def test_figures_that_show_only_that_it_works_are_held_against_none(golden: Golden) -> None:
    stamp = [{"word": "functional", "text": "x"}]
    emulated = {"emulated": True}
    router = made([9.0], parameters={"gateway": "r", "kind": "routing", **emulated}, doubts=stamp)
    gateway = made([5.0], parameters=emulated, doubts=stamp)
    assert of_forwarding(gateway, [gateway, router]).value is None
    shown = table([gateway, router])
    golden(shown)
    real = made([5.0])
    assert "emulated device" in of_forwarding(real, [real, router]).doubt


def test_doubts_are_counted_in_the_table_and_told_below_it(golden: Golden) -> None:
    doubts = [{"word": word, "text": "x"} for word in ("single repetition", "queues")]
    shown = table([made([1.0], doubts=doubts), made([1.0])])
    golden(shown)
    assert row("doubts", made([1.0], doubts=doubts), made([1.0])) == ["2", "-"]


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_the_rows_of_the_table_as_columns_and_figures_in_full() -> None:
    one = result("nat", 400.123456789, 1, hash_size=512, source_port_count=64512)
    two = result("nat", 600.0, 2, hash_size=512, source_port_count=64512)
    first, second = lines_of(csv_table.table([one, two]))
    assert list(first) == [*(each.column for each in rows([one, two])), "bound", "doubts in full", "no result"]
    assert first["median"] == "400.123456789"
    assert (first["number of sessions"], first["frame size (octets)"]) == ("1000", "64")
    assert first["sessions per hash"] == "1.953125"
    assert float(second["relative scale-up"]) == pytest.approx(600 / (2 * 400.123456789))
    assert (first["relative scale-up"], first["share of plain forwarding (%)"], first["not compared"]) == ("", "", "")


def test_csv_says_where_a_median_is_only_a_bound() -> None:
    """Seen: a program read the median of a gateway that the tester limited as its rate."""

    def searched(upper: float, **changed: Any) -> Result:
        document = made([8.0], **changed).document()
        return Result.from_document({**document, "repetitions": [{**document["repetitions"][0], "upper": upper}]})

    most = searched(12.0, metric="connection-rate", doubts=[{"word": "time-out unknown", "text": "x"}])
    between = searched(16.0, limited_by="time")
    results = [made([10.0]), made([10.0, 20.0, 30.0], limited_by="tester"), most, between]
    lines = lines_of(csv_table.table(results))
    assert [line["bound"] for line in lines] == ["", ">= 10.0", "<= 12.0", "8.0 to 16.0"]
    assert [float(line["median"]) for line in lines] == [10, 20, 8, 8]


def test_csv_tells_doubts_and_what_is_not_compared() -> None:
    one = made([1.0], doubts=[{"word": "queues", "text": "x"}], parameters={"gateway": 'a,"b"', "device_cores": 1})
    two = made([1.0], parameters={"gateway": 'a,"b"', "device_cores": 2, "connections": 5})
    first, second = lines_of(csv_table.table([one, two]))
    assert (first["gateway"], first["doubts"]) == ('a,"b"', "queues")
    assert second["not compared"].endswith("connections 5 against 1000")

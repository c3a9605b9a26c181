# SPDX-License-Identifier: Apache-2.0
"""The table turned: a column for each number of cores or connections, every metric of every device under it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge.errors import UsageError
from natgauge.notes import Note
from natgauge.records.measurement import Result
from natgauge.reports import draft, latex, markdown, text
from natgauge.reports.labels import text_of
from natgauge.reports.pivot import of_medians, of_metrics, sheet
from natgauge.reports.sheet import of_trials
from natgauge.words import Verdict

UNITS = {"connection-rate": "connections/s", "throughput": "frames/s"}


def one(metric: str, gateway: str, cores: int, median: float, **changed: Any) -> Result:
    parameters = {"gateway": gateway, "device_cores": cores, "connections": 4_000_000, "hash_size": 2**23}
    if gateway == "forwarding":
        parameters |= {"kind": "routing", "hash_size": None}
    more = changed.pop("parameters", {})
    return made(
        [median * 0.99, median, median * 1.01],
        median=median,
        metric=metric,
        unit=UNITS[metric],
        parameters={**parameters, **more},
        **changed,
    )


#: Figure 2 of draft-lencse-v6ops-transition-scalability-05.
SCALE_UP = [
    one(metric, gateway, cores, 1000 * median)
    for metric, gateway, medians in (
        ("throughput", "forwarding", (910.9, 1523, 3016, 5920, 11561)),
        ("connection-rate", "iptables", (223.5, 371.1, 708.7, 1341, 2383)),
        ("throughput", "iptables", (414.9, 742.3, 1379, 2336, 4557)),
    )
    for cores, median in reversed(list(zip((1, 2, 4, 8, 16), medians, strict=True)))
]


def cells(results: list[Result], against: Any = "cores") -> dict[str, dict[str, tuple[str, ...]]]:
    """Rows by heading, of what stands above the first block ("") and of each block."""
    blocks: dict[str, dict[str, tuple[str, ...]]] = {"": {}}
    block = ""
    for line in sheet(results, against).lines:
        if line.cells:
            assert line.heading not in blocks[block]
            blocks[block][line.heading] = line.cells
        else:
            block = line.heading
            blocks[block] = {}
    return blocks


def test_a_time_limit_that_only_some_had_is_told_of_these_alone(golden: Golden) -> None:
    """Seen: that of a process's frames stood above the table, as if kernel gateways had one, too."""
    limit = {"frame_timeout_seconds": 0.02}
    limits: dict[str, dict[str, float]] = {"tayga": limit, "nat": {}}
    found = cells(
        [one("throughput", gateway, cores, 1e5, parameters=limits[gateway]) for gateway in limits for cores in (1, 2)]
    )
    golden(found[""])
    told = {block for block, lines in found.items() if "frame time limit (s)" in lines}
    golden(told)


def test_it_has_the_shape_and_the_figures_of_figure_2(golden: Golden) -> None:
    found = cells(SCALE_UP)
    golden(list(found))
    assert found[""]["device cores"] == ("1", "2", "4", "8", "16")
    assert found[""]["number of sessions"] == ("4,000,000",) * 5
    # Forwarding has no hash table; that takes it from no other.
    assert found[""]["hash table size"] == ("8,388,608",) * 5
    assert found[""]["number of experiments"] == ("3",) * 5
    rates = found["connection-rate of iptables (connections/s)"]
    assert rates["median"] == ("223.5 k", "371.1 k", "708.7 k", "1.341 M", "2.383 M")
    assert rates["relative scale-up"] == ("-", "0.830", "0.793", "0.75", "0.666")
    assert found["throughput of iptables (frames/s in each direction)"]["share of plain forwarding (%)"] == (
        "<= 45.6",
        "<= 48.8",
        "<= 45.8",
        "<= 39.5",
        "<= 39.5",
    )


def test_a_draft_has_all_columns_beside_each_other_as_printed_there() -> None:
    lines = draft.plain(sheet(SCALE_UP, "cores", narrow=True)).splitlines()
    assert max(map(len, lines)) <= 72
    assert not [line for line in lines if line != line.rstrip()]
    at = lines.index("   connection-rate of iptables (1,000 connections/s)")
    (median,) = [line.split() for line in lines[at : at + 4] if "median" in line]
    assert median == ["median", "223.5", "371.1", "708.7", "1,341", "2,383"]
    assert [line.split()[-5:] for line in lines if "median" in line and "11,560" in line] == [
        ["910.9", "1,523", "3,016", "5,920", "11,560"]
    ]


def test_a_draft_of_many_columns_falls_apart_into_tables() -> None:
    series = [one("throughput", "x", cores, 2e6) for cores in range(1, 13)]
    lines = draft.plain(sheet(series, "cores", narrow=True)).splitlines()
    assert max(map(len, lines)) <= 72
    assert [line for line in lines if line.startswith("Columns ")]


def test_what_differs_between_results_of_a_column_stands_with_each() -> None:
    found = cells([one("throughput", "x", 1, 1.0), one("throughput", "y", 1, 2.0, parameters={"hash_size": 7})])
    assert "hash table size" not in found[""]
    assert found["throughput of x (frames/s in each direction)"]["hash table size"] == ("8,388,608",)
    assert found["throughput of y (frames/s in each direction)"]["hash table size"] == ("7",)


def test_figures_stand_under_their_metric_even_where_there_is_one_only() -> None:
    found = cells([one("throughput", "x", 1, 5000.0)])
    assert found["throughput of x (frames/s in each direction)"]["median"] == ("5,000",)
    assert "median" not in found[""]


def test_another_axis_makes_blocks_and_a_missing_cell_says_nothing() -> None:
    series = [
        one("throughput", "x", cores, 100.0 * cores + number, parameters={"connections": number})
        for cores, number in ((1, 10), (2, 10), (2, 20))
    ]
    by_cores = cells(series)
    assert by_cores["throughput of x, 10 connections (frames/s in each direction)"]["median"] == ("110.0", "210.0")
    assert by_cores["throughput of x, 20 connections (frames/s in each direction)"]["median"] == ("-", "220.0")
    by_connections = cells(series, "connections")
    assert by_connections[""]["number of sessions"] == ("10", "20")
    assert by_connections["throughput of x, 1 core (frames/s in each direction)"]["median"] == ("110.0", "-")
    assert by_connections["throughput of x, 2 cores (frames/s in each direction)"]["median"] == ("210.0", "220.0")


def test_doubts_name_the_result_they_are_of_in_the_order_of_the_table(golden: Golden) -> None:
    doubt = [{"word": "wide spread", "text": "wide"}]
    series = [one("throughput", "x", cores, 1.0, doubts=doubt if cores > 1 else []) for cores in (4, 2, 1)]
    golden(sheet(series, "cores").doubts)


@pytest.mark.parametrize(
    ("against", "name", "values", "heading", "columns"),
    [
        ("directions", "directions", ["up", "both", "down"], "directions", ("up", "both", "down")),
        ("frame-size", "frame_size", [1024, 64, 128], "frame size (octets)", ("64", "128", "1,024")),
        ("alpha", "alpha", [0.8, 0.25, None], "alpha (share)", ("0.25", "0.8", "none")),
        ("order", "order", ["permutation", "increasing"], "order of four tuples", ("permutation", "increasing")),
        ("hash_size", "hash_size", [2**23, 2**20], "hash table size", ("1,048,576", "8,388,608")),
        ("cores", "device_cores", [2, 1], "device cores", ("1", "2")),
        ("gateway", "gateway", ["b", "a"], "gateway", ("b", "a")),
    ],
)
def test_any_parameter_that_differs_makes_columns(
    against: str, name: str, values: list[Any], heading: str, columns: tuple[str, ...]
) -> None:
    series = [one("throughput", "x", 1, 1000.0 * (1 + at), parameters={name: value}) for at, value in enumerate(values)]
    found = cells(series, against)
    assert found[""][heading] == columns
    (block,) = (rows for named, rows in found.items() if named.startswith("throughput"))
    medians = dict(zip(columns, block["median"], strict=True))
    assert [medians[text] for text in map(text_of, values)] == [f"{1000 * (1 + at):,}" for at in range(len(values))]


def test_directions_as_columns_have_no_unit_of_one_direction_and_the_sum() -> None:
    series = [
        one("throughput", "x", 1, rate, parameters={"directions": way}, figures={"frames_per_second_total": total})
        for way, rate, total in (("both", 200.0, 400.0), ("up", 300.0, 300.0))
    ]
    block = cells(series, "directions")["throughput of x (frames/s of each direction that sends)"]
    assert block["all directions (frames/s)"] == ("400", "300")


def test_columns_whose_values_count_other_things_have_the_units_of_all() -> None:
    """Seen: frames of drawn four tuples beside a permutation, all in connections/s."""
    series = [
        one("connection-rate", "x", 1, rate, parameters={"order": order})
        for order, rate in (("permutation", 200.0), ("with-replacement", 300.0))
    ]
    assert "connection-rate of x (connections/s or frames/s of drawn four tuples)" in cells(series, "order")


def test_a_second_parameter_that_varies_makes_a_block_for_each_of_its_values() -> None:
    series = [
        one("throughput", "x", 1, rate, parameters={"directions": way, "frame_size": octets})
        for octets, way, rate in ((64, "both", 2.0), (64, "up", 3.0), (1024, "up", 1.0))
    ]
    found = cells(series, "directions")
    unit = "frames/s of each direction that sends"
    assert found[f"throughput of x, 64 octets ({unit})"]["median"] == ("2.000", "3.000")
    assert found["throughput of x, 1,024 octets (frames/s from inside)"]["median"] == ("-", "1.000")


def test_two_results_in_one_cell_are_refused(golden: Golden) -> None:
    twice = [one("throughput", "x", 1, 1.0), one("throughput", "x", 1, 2.0)]
    with golden.raises(UsageError) as refused:
        sheet(twice, "cores")
    assert "\n" not in str(refused.value)
    with golden.raises(UsageError):
        sheet([one("throughput", "x", 0, 1.0)], "cores")


@pytest.mark.parametrize("view", [text, markdown, latex, draft])
def test_every_form_has_every_row_and_heading(view: Any) -> None:
    shown = sheet(SCALE_UP, "cores")
    printed = " ".join(view.render(shown).replace("\\", "").split())
    for line in shown.lines:
        if not line.cells:
            assert line.heading in printed
    for cell in ("2.383 M", "11.56 M", "0.666"):
        assert cell in printed


def test_what_could_not_be_compared_is_named_as_the_table_names_it(golden: Golden) -> None:
    """Columns stand for numbers of cores here, not for results."""
    series = [one("throughput", "x", 1, 1.0), one("throughput", "x", 2, 2.0, parameters={"ring": 512})]
    (said,) = (line for line in sheet(series, "cores").below if "not compared" in line)
    golden(said)


def test_many_texts_of_one_doubt_are_one_line(golden: Golden) -> None:
    series = [
        one("throughput", "x", cores, 1.0, doubts=[{"word": "wide spread", "text": f"{cores}"}])
        for cores in range(1, 6)
    ]
    golden(sheet(series, "cores").doubts)


def test_every_metric_of_every_device_at_a_glance(golden: Golden) -> None:
    rate = one("connection-rate", "iptables", 1, 223_500.0)
    forwarding = one("throughput", "forwarding", 1, 910_900.0)
    doubted = one(
        "throughput", "iptables", 1, 414_900.0, doubts=[{"word": "wide spread", "text": "its repetitions disagree"}]
    )
    shown = of_metrics([rate, forwarding, doubted])
    golden([(line.heading, *line.cells) for line in shown.lines])
    golden(shown.notes[0])
    assert "hash table size" not in shown.notes[0]
    golden(shown.doubts)
    with golden.raises(UsageError):
        of_metrics([doubted, one("throughput", "iptables", 2, 742_300.0)])


def test_a_table_of_medians_has_bounds_where_something_else_limited_a_result() -> None:
    """Seen: the median of a rate that the tester limited stood in the table as the device's."""
    limited = one("throughput", "x", 2, 4e5, limited_by="tester")
    series = [one("throughput", "x", 1, 3e5), limited]
    medians = next(line for line in of_medians(series, "cores").lines if line.heading == "x, median")
    assert medians.cells[-1].startswith("at least ")
    assert of_metrics(series, ["x 1", "x 2"]).lines[-1].cells[0].startswith("at least ")
    assert of_metrics([limited]).lines[1].cells[0].startswith("at least ")


def test_a_series_alone_has_a_row_for_each_device_and_inputs_that_change_with_the_columns() -> None:
    series = [
        one("throughput", gateway, cores, 1e5 * cores, parameters={"connections": 1000 * cores, "table_size": 4096})
        for gateway in ("x", "y")
        for cores in (1, 2)
    ]
    shown = of_medians(series, "cores")
    percentiles = "its 1st and 99th percentile"
    assert [line.heading for line in shown.lines] == [
        "device cores", "number of sessions", "x, median", percentiles, "y, median", percentiles,
    ]  # fmt: skip
    assert shown.lines[1].cells == ("1,000", "2,000")
    # What all have is in the caption, where the paper needs no line for it.
    alike = shown.ranges
    assert "4,096" in alike
    assert not [note for note in shown.notes if "different conditions" in note]
    assert "placement" not in alike
    other = [
        one("throughput", "z", cores, 1e5, parameters={"connections": 1000 * cores, "ring": 512}) for cores in (1, 2)
    ]
    assert [note for note in of_medians([*series, *other], "cores").notes if "different conditions" in note]


def test_trials_that_did_not_count_are_counted_for_a_paper_and_none_is_where_each_did() -> None:
    quiet = one("throughput", "x", 1, 1e5)
    disturbed = quiet.model_copy(
        update={"trials": {Verdict.PASS: 5, Verdict.FAIL: 9, Verdict.INVALID: 2}, "disturbed": 4}
    )
    assert of_trials([quiet.model_copy(update={"trials": {Verdict.PASS: 3}, "disturbed": 0})]) == ""
    said = of_trials([disturbed, disturbed])
    assert said.startswith("Of 32 trials, 4 were INVALID")
    assert "; 8, INVALID or not, were disturbed" in said


def test_a_disturbed_gateway_does_not_seem_undisturbed_beside_another() -> None:
    """Seen: "excused trials (x), disturbed trials (y)" of x, whose trials were disturbed, too."""
    disturbed = Note("disturbed trials", "9 of 18 trials", count=9)
    x, y = (one("throughput", gateway, 1, 1e5) for gateway in "xy")
    x = x.model_copy(update={"doubts": (Note("excused trials", "2 of 14 trials", count=2), disturbed)})
    y = y.model_copy(update={"doubts": (disturbed,)})
    (line,) = of_metrics([x, y]).doubts
    assert "disturbed trials (all)" in line
    assert "disturbed trials" not in of_metrics([x]).doubts[0]
    # A paper's table without a mark has no line of doubts: how many trials were disturbed is said of all.
    papers = of_medians([x, y], "cores")
    assert papers.in_paper == ()
    assert "disturbed trials" not in latex.render(papers, "title")


def test_at_a_glance_rates_of_one_direction_and_of_both_have_columns_of_their_own(golden: Golden) -> None:
    ways = [
        one("throughput", "x", 1, rate, parameters={"directions": way}) for way, rate in (("both", 3.0), ("up", 5.0))
    ]
    heading, row, *_ = of_metrics(ways).lines
    golden(heading.cells)
    assert [float(cell.split()[0]) for cell in row.cells] == [3, 5]


@pytest.mark.parametrize("view", [text, markdown, latex, draft])
def test_at_a_glance_conditions_that_differ_in_a_column_are_told_in_every_form(view: Any) -> None:
    """Seen: rates of shared and of isolated placement stood in one column without a word."""
    rates = [one("connection-rate", gateway, 1, 1e5) for gateway in ("x", "y")]
    loads = [
        one("throughput", gateway, 1, 1e5, parameters={"placement": placement})
        for gateway, placement in (("x", "shared"), ("y", "isolated"))
    ]
    printed = " ".join(view.render(of_metrics([*rates, *loads])).replace("\\", "").split())
    assert printed.count("different conditions") == 1
    assert (
        "throughput (frames/s in each direction): under different conditions: placement (shared: x; isolated: y); so "
        "the order of these figures is not that of the gateways alone."
    ) in printed
    assert "different conditions" not in view.render(of_metrics([*rates, loads[0]]))

# SPDX-License-Identifier: Apache-2.0
"""Tables of `natgauge report`: results beside each other, or turned, with a column for each value of a parameter.

draft-lencse-v6ops-transition-scalability-05 figure 2: medians in thousands a second on 1, 2, 4, 8 and 16 cores;
RFC 9693 table 1.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import kept_as, made

from natgauge import Result
from natgauge.cli import run

UNITS = {
    "connection-rate": "connections/s", "throughput": "frames/s", "validated-connection-rate": "connections/s",
}  # fmt: skip


def one(metric: str, gateway: str, cores: int, median: float, **changed: Any) -> Result:
    """A result of a table that is turned."""
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


def rate(gateway: str = "x", cores: int = 1, median: float = 1e5, *, doubts: Any = (), **parameters: Any) -> Result:
    """A throughput of such a table."""
    return one("throughput", gateway, cores, median, parameters=parameters, doubts=list(doubts))


def single(gateway: str, median: float, cores: int, **parameters: Any) -> Result:
    """A throughput of one repetition, for results beside each other."""
    kind = "routing" if gateway.startswith("linux") else "nat44"
    common = {"gateway": gateway, "kind": kind, "device_cores": cores, "sender_cores": cores}
    return made([median], parameters={**common, **parameters})


class Reports:
    """Stores results, and lets `natgauge report` print their table."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys, self._number = folder, capsys, 0

    def ended(self, *results: Result, asked: str = "") -> tuple[int, str, str]:
        """Exit status, output and errors of the command."""
        self._number += 1
        folder = self._folder / str(self._number)
        for number, result in enumerate(results):
            # A name without a date: the table has none then.
            kept_as(folder / f"{number:02}", result)
        status = run(["report", *asked.split(), str(folder)])
        printed = self._capsys.readouterr()
        return status, printed.out, printed.err

    def __call__(self, *results: Result, asked: str = "") -> str:
        """The table with its doubts and all that is below it, without the sentences above."""
        status, printed, errors = self.ended(*results, asked=asked)
        assert (errors, status) == ("", 0)
        if "--format" in asked:
            return printed
        above, _, table = printed.partition("\n\n")
        return "\n".join([*(line for line in above.splitlines() if line[:2] in ("* ", "† ")), table])

    def row(self, name: str, *results: Result, asked: str = "") -> list[str] | None:
        """The cells of a row."""
        lines = self(*results, asked=asked).splitlines()
        return next((line.removeprefix(name).split() for line in lines if line.startswith(name)), None)

    def refusal(self, *results: Result) -> str:
        """What is said of results that are not compared."""
        return "\n".join(line for line in self(*results).splitlines() if "not compared" in line)

    def csv(self, *results: Result) -> list[dict[str, str]]:
        """The lines of the same table for programs."""
        return list(csv.DictReader(io.StringIO(self(*results, asked="--format csv"))))


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reports:
    return Reports(tmp_path, capsys)


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
WIDE = [{"word": "wide spread", "text": "its repetitions disagree"}]
DISTURBED = [{"word": "disturbed trials", "text": "9 of 18 trials", "count": 9}]
EXCUSED = [{"word": "excused trials", "text": "2 of 14 trials", "count": 2}, *DISTURBED]
#: Rates of two gateways on one and on two cores, with the connections in proportion.
GROWING = [
    rate(gateway, cores, 1e5 * cores, connections=1000 * cores, table_size=4096)
    for gateway in ("x", "y")
    for cores in (1, 2)
]
OTHER = [rate("z", cores, connections=1000 * cores, ring=512) for cores in (1, 2)]
STEPS = [rate("x", cores, 100.0 * cores + number, connections=number) for cores, number in ((1, 10), (2, 10), (2, 20))]
LIMITED = one("throughput", "x", 2, 4e5, limited_by="tester")
FUNCTIONAL = [{"word": "functional", "text": "x"}]
#: What a table shows: its results, and how it is asked for.
TABLES: Mapping[str, tuple[list[Result], str]] = {
    "the shape and the figures of figure 2": (SCALE_UP, "--against cores"),
    "the columns of a draft as printed there": (SCALE_UP, "--against cores --format draft"),
    "many columns of a draft in several tables": (
        [rate("x", cores, 2e6) for cores in range(1, 13)],
        "--against cores --format draft",
    ),
    # Seen: that of a process's frames stood above the table, as if kernel gateways had one, too.
    "a time limit that only some had with these alone": (
        [rate(name, cores, frame_timeout_seconds=0.02) for name in ("tayga",) for cores in (1, 2)]
        + [rate("nat", cores) for cores in (1, 2)],
        "--against cores",
    ),
    "what differs between results of a column with each": (
        [rate("x", 1, 1.0), rate("y", 1, 2.0, hash_size=7)],
        "--against cores",
    ),
    "the figures under their metric even where there is one only": ([rate("x", 1, 5000.0)], "--against cores"),
    "blocks of another parameter, and nothing in a missing cell": (STEPS, "--against cores"),
    "blocks of cores over connections": (STEPS, "--against connections"),
    "blocks for each value of a second parameter": (
        [
            rate("x", 1, median, directions=way, frame_size=octets)
            for octets, way, median in ((64, "both", 2.0), (64, "up", 3.0), (1024, "up", 1.0))
        ],
        "--against directions",
    ),
    "directions without a unit of one direction, and their sum": (
        [
            one("throughput", "x", 1, rate, parameters={"directions": way}, figures={"frames_per_second_total": total})
            for way, rate, total in (("both", 200.0, 400.0), ("up", 300.0, 300.0))
        ],
        "--against directions",
    ),
    # Seen: frames of drawn four tuples beside a permutation, all in connections/s.
    "the units of all columns whose values count other things": (
        [
            one("connection-rate", "x", 1, rate, parameters={"order": order})
            for order, rate in (("permutation", 200.0), ("with-replacement", 300.0))
        ],
        "--against order",
    ),
    "doubts with the results they are of, in the order of the table": (
        [rate("x", cores, 1.0, doubts=WIDE if cores > 1 else []) for cores in (4, 2, 1)],
        "--against cores",
    ),
    "many texts of one doubt in one line": (
        [rate("x", cores, 1.0, doubts=[{"word": "wide spread", "text": f"{cores}"}]) for cores in range(1, 6)],
        "--against cores",
    ),
    # Columns stand for numbers of cores here, not for results.
    "what could not be compared as the table names it": (
        [rate("x", 1, 1.0), rate("x", 2, 2.0, ring=512)],
        "--against cores",
    ),
    "every metric of every device at a glance": (
        [
            one("connection-rate", "iptables", 1, 223_500.0),
            one("throughput", "forwarding", 1, 910_900.0),
            rate("iptables", 1, 414_900.0, doubts=WIDE),
        ],
        "--against metrics",
    ),
    "rates of one direction and of both in columns of their own": (
        [rate("x", 1, median, directions=way) for way, median in (("both", 3.0), ("up", 5.0))],
        "--against metrics",
    ),
    # Seen: "excused trials (x), disturbed trials (y)" of x, whose trials were disturbed, too.
    "a disturbed gateway not as undisturbed beside another": (
        [rate("x", doubts=EXCUSED), rate("y", doubts=DISTURBED)],
        "--against metrics",
    ),
    "no disturbed trials of a gateway alone": ([rate("x", doubts=EXCUSED)], "--against metrics"),
    # A paper's table without a mark has no line of doubts: how many trials were disturbed is said of all.
    "a paper's table without doubts": (
        [rate(gateway, cores, doubts=DISTURBED) for gateway in "xy" for cores in (1, 2)],
        "--against cores --format latex",
    ),
    # Seen: the median of a rate that the tester limited stood in the table as the device's.
    "a bound where something else limited a result": ([rate("x", 1, 3e5), LIMITED], "--against cores --format latex"),
    "a bound at a glance": ([LIMITED], "--against metrics"),
    "a bound in the table of medians of a paper": ([rate("x", 1, 3e5), LIMITED], "--format latex"),
    "a row for each device, and inputs that change with the columns": (GROWING, "--against cores --format latex"),
    "conditions that differ between the devices of a paper": ([*GROWING, *OTHER], "--against cores --format latex"),
    "no share of forwarding of figures that show only that it works": (
        [
            made([5.0], parameters={"emulated": True}, doubts=FUNCTIONAL),
            made([9.0], parameters={"gateway": "r", "kind": "routing", "emulated": True}, doubts=FUNCTIONAL),
            made([5.0]),
        ],
        "",
    ),
    "a long version cut off": (
        [single("a", 1.0, 1), single("a", 1.0, 1, version=["y" * 99])],
        "",
    ),
    "how many doubts there are, and below which": (
        [made([1.0], doubts=[{"word": "queues", "text": "x"}]), made([1.0, 1.0, 1.0, 1.0])],
        "",
    ),
}


@pytest.mark.parametrize("what", TABLES)
def test_a_table_has(what: str, report: Reports, golden: Golden) -> None:
    results, asked = TABLES[what]
    golden(report(*results, asked=asked))


def test_the_table_of_a_draft_fits_its_lines(report: Reports) -> None:
    for what in ("the columns of a draft as printed there", "many columns of a draft in several tables"):
        results, asked = TABLES[what]
        lines = report(*results, asked=asked).splitlines()
        assert max(map(len, lines)) <= 72
        assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize(
    ("against", "name", "values", "heading", "columns"),
    [
        ("directions", "directions", ["up", "both", "down"], "directions", ["up", "both", "down"]),
        ("frame-size", "frame_size", [1024, 64, 128], "frame size (octets)", ["64", "128", "1,024"]),
        ("alpha", "alpha", [0.8, 0.25, None], "alpha (share)", ["0.25", "0.8", "none"]),
        ("order", "order", ["permutation", "increasing"], "order of four tuples", ["permutation", "increasing"]),
        ("hash-size", "hash_size", [2**23, 2**20], "hash table size", ["1,048,576", "8,388,608"]),
        ("cores", "device_cores", [2, 1], "device cores", ["1", "2"]),
        ("gateway", "gateway", ["b", "a"], "gateway", ["b", "a"]),
    ],
)
def test_any_parameter_that_differs_makes_columns(  # noqa: PLR0917 - one per column
    against: str, name: str, values: list[Any], heading: str, columns: list[str], report: Reports
) -> None:
    metric = "validated-connection-rate" if name == "alpha" else "throughput"
    series = [one(metric, "x", 1, 1000.0 * (1 + at), parameters={name: value}) for at, value in enumerate(values)]
    shown = [value if isinstance(value, str) else "none" if value is None else f"{value:,}" for value in values]
    asked = f"--against {against}"
    assert report.row(heading, *series, asked=asked) == columns
    medians = dict(zip(columns, report.row("median", *series, asked=asked) or (), strict=True))
    assert [medians[value] for value in shown] == [f"{1000 * (1 + at):,}" for at in range(len(values))]


@pytest.mark.parametrize(
    ("results", "asked"),
    [
        ([rate("x", 1, 1.0), rate("x", 1, 2.0)], "--against cores"),
        ([rate("x", 0)], "--against cores"),
        ([rate("iptables"), rate("iptables", 2)], "--against metrics"),
    ],
    ids=["two in one cell", "no number", "two at a glance"],
)
def test_results_that_have_no_cell_of_their_own_are_refused_in_one_line(
    results: list[Result], asked: str, report: Reports, golden: Golden
) -> None:
    status, printed, errors = report.ended(*results, asked=asked)
    assert (status, printed, errors.count("\n")) == (2, "", 1)
    golden(errors)


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "draft"])
def test_every_form_has_every_row_heading_and_condition(form: str, report: Reports) -> None:
    """Seen: rates of shared and of isolated placement stood in one column without a word."""

    def words(*results: Result, asked: str) -> str:
        lines = report(*results, asked=f"{asked} --format {form}").replace("\\", "").splitlines()
        return " ".join(" ".join(line for line in lines if not line.startswith("%")).split())

    if form != "latex":
        printed = words(*SCALE_UP, asked="--against cores")
        unit = "1,000 " if form == "draft" else ""
        for heading in (
            f"throughput of forwarding ({unit}frames/s in each direction)",
            f"connection-rate of iptables ({unit}connections/s)",
            f"throughput of iptables ({unit}frames/s in each direction)",
            *(["2,383", "11,560"] if unit else ["2.383 M", "11.56 M"]),
            "0.666",
        ):
            assert heading in printed
    rates = [one("connection-rate", gateway, 1, 1e5) for gateway in ("x", "y")]
    loads = [rate(gateway, placement=placement) for gateway, placement in (("x", "shared"), ("y", "isolated"))]
    printed = words(*rates, *loads, asked="--against metrics")
    assert printed.count("different conditions: ") == (2 if form == "latex" else 1)
    assert (
        "throughput (frames/s in each direction): under different conditions: placement (shared: x; isolated: y); so "
        "the order of these figures is not that of the gateways alone."
    ) in printed
    assert "different conditions" not in words(*rates, loads[0], asked="--against metrics")


def test_trials_that_did_not_count_are_counted_for_a_paper_and_none_is_where_each_did(report: Reports) -> None:
    def told(trials: Mapping[str, int], disturbed: int) -> str:
        results = []
        for name in "xy":
            document = made([1e5], parameters={"gateway": name}).document()
            document["repetitions"][0]["trials"] = trials
            results.append(Result.from_document({**document, "trials": trials, "disturbed": disturbed}))
        return " ".join(report(*results, asked="--format latex").replace("\\", "").split())

    quiet, loud = told({"PASS": 3}, 0), told({"PASS": 5, "FAIL": 9, "INVALID": 2}, 4)
    assert "Of 32 trials, 4 were INVALID" in loud
    assert "; 8, INVALID or not, were disturbed" in loud
    assert "trials" not in quiet.lower()


# Results beside each other


def test_the_table_compares_cores_and_plain_forwarding(report: Reports) -> None:
    columns = (single("nat", 400.0, 1), single("nat", 600.0, 2), single("linux-ipv4", 800.0, 1))
    assert report.row("device cores", *columns) == ["1", "2", "1"]
    assert report.row("relative scale-up", *columns) == ["-", "0.75", "-"]
    # In shared placement the tester's own work is in both rates.
    assert report.row("share of plain forwarding (%)", *columns) == ["<=", "50", "-", "-"]


def test_what_was_measured_otherwise_is_not_compared(report: Reports) -> None:
    unlike = single("nat", 400.0, 1, connections=2000), single("nat", 600.0, 2)
    assert report.row("relative scale-up", *unlike) is None
    sizes = single("nat", 4.0, 1), single("linux-ipv4", 8.0, 1, frame_size=84)
    assert report.row("share of plain forwarding (%)", *sizes) is None


@pytest.mark.parametrize(
    ("sessions", "hash_size", "printed"),
    [
        (400_000, 2**17, "3.05"),
        (4_000_000, 2**20, "3.81"),
        (40_000_000, 2**23, "4.77"),
        (400_000_000, 2**27, "2.98"),
    ],
)
def test_sessions_per_hash_are_those_of_rfc_9693_table_1(
    sessions: int, hash_size: int, printed: str, report: Reports
) -> None:
    result = single("nat", 1.0, 1, connections=sessions, hash_size=hash_size)
    assert report.row("sessions per hash", result) == [printed]


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
    name: str, first: Any, second: Any, report: Reports, golden: Golden
) -> None:
    one, two = single("nat", 400.0, 1, **{name: second}), single("nat", 600.0, 2, **{name: first})
    assert report.row("relative scale-up", one, two) is None
    golden(report.refusal(one, two))
    same = single("nat", 400.0, 1, **{name: first})
    assert report.row("relative scale-up", one, two, same) == ["-", "0.75", "-"]
    assert report.refusal(one, two, same) == ""


def test_the_device_is_what_the_share_of_forwarding_is_about_and_nothing_else_is(
    report: Reports, golden: Golden
) -> None:
    # Nobody described the new knob, so it counts wherever it may stand.
    nat, linux = single("nat", 4.0, 1, hash_size=5, new_knob=1), single("linux-ipv4", 8.0, 1, version=["y"])
    golden(report.refusal(nat, linux))
    known = single("nat", 4.0, 1, hash_size=5)
    assert report.row("share of plain forwarding (%)", known, linux) == ["<=", "50", "-"]
    golden(report.refusal(known, single("linux-ipv4", 8.0, 2)))


@pytest.mark.parametrize(
    "results",
    [
        [
            single("nat", 1.0, 1, trial_seconds=1, search="binary"),
            single("nat", 1.0, 1, trial_seconds=2, search="mlrsearch"),
            single("nat", 1.0, 2, trial_seconds=3, search="mlrsearch"),
        ],
        [single("nat", 1.0, cores, placement="isolated", sender_cores=cores) for cores in (1, 2)],
        [single("nat", 0.0, 1), single("nat", 4.0, 2)],
    ],
    ids=["of several the nearest is named", "isolated senders scale nothing up", "nothing is no reference"],
)
def test_of_results_that_are_not_compared(results: list[Result], report: Reports, golden: Golden) -> None:
    golden(report.refusal(*results))


def test_only_rates_scale_and_only_of_one_metric(report: Reports) -> None:
    times = [made([4.0], unit="us", metric="latency", parameters={"device_cores": cores}) for cores in (1, 2)]
    assert report.row("relative scale-up", *times) is None
    other = made(
        [4.0], metric="connection-rate", unit="connections/s", parameters={"gateway": "nat", "device_cores": 1}
    )
    assert report.row("relative scale-up", other, single("nat", 4.0, 2)) is None
    assert report.refusal(other, single("nat", 4.0, 2)) == ""


def test_what_differs_between_results_of_one_metric_has_a_row(report: Reports) -> None:
    one, two = single("nat", 1.0, 1, trial_seconds=2.0, ring=5), single("nat", 1.0, 1, trial_seconds=60.0, ring=5)
    assert report.row("trial seconds", one, two) == ["2.0", "60.0"]
    assert report.row("ring", one, two) is None
    other = made([1.0], metric="latency", unit="us", parameters={"trial_seconds": 9.0})
    assert report.row("trial seconds", one, other) is None
    # Two devices have two versions, one device has none too many.
    assert report.row("device version", single("a", 1.0, 1), single("b", 1.0, 1, version=["y"])) is None
    assert report.row("device version", single("a", 1.0, 1), single("a", 1.0, 1, version=["y"])) == ["x", "1", "y"]


def test_csv_has_the_rows_of_the_table_as_columns_and_figures_in_full(report: Reports, golden: Golden) -> None:
    one = single("nat", 400.123456789, 1, hash_size=512, source_port_count=64512)
    two = single("nat", 600.0, 2, hash_size=512, source_port_count=64512)
    first, second = report.csv(one, two)
    golden([*(name for name in first if first[name] or second[name]), *[*first][-4:]])
    assert first["median"] == "400.123456789"
    assert (first["number of sessions"], first["frame size (octets)"]) == ("1000", "64")
    assert first["sessions per hash"] == "1.953125"
    assert float(second["relative scale-up"]) == pytest.approx(600 / (2 * 400.123456789))
    assert (first["relative scale-up"], first["share of plain forwarding (%)"], first["not compared"]) == ("", "", "")


def test_csv_says_where_a_median_is_only_a_bound(report: Reports) -> None:
    """Seen: a program read the median of a gateway that the tester limited as its rate."""

    def searched(upper: float, **changed: Any) -> Result:
        document = made([8.0], **changed, error=upper - 8).document()
        document["repetitions"][0] |= {"upper": upper, "error": upper - 8}
        return Result.from_document(document)

    unknown = [{"word": "time-out unknown", "text": "x"}]
    most = searched(12.0, metric="connection-rate", unit="connections/s", doubts=unknown)
    between = searched(16.0, limited_by="time")
    lines = report.csv(made([10.0]), made([10.0, 20.0, 30.0], limited_by="tester"), most, between)
    assert [line["bound"] for line in lines] == ["", ">= 10.0", "<= 12.0", "8.0 to 16.0"]
    assert [float(line["median"]) for line in lines] == [10, 20, 8, 8]


def test_csv_tells_doubts_and_what_is_not_compared(report: Reports) -> None:
    one = made([1.0] * 4, doubts=[{"word": "queues", "text": "x"}], parameters={"gateway": 'a,"b"', "device_cores": 1})
    two = made([1.0], parameters={"gateway": 'a,"b"', "device_cores": 2, "connections": 5})
    first, second = report.csv(one, two)
    assert first["gateway"] == 'a,"b"'
    assert "queues" in first["doubts"]
    assert second["not compared"].endswith("connections 5 against 1000")

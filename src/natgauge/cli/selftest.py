# SPDX-License-Identifier: Apache-2.0
"""`natgauge selftest`: limits of the tester itself, measured over a virtual cable."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click
import cloup

from natgauge.cli.parameters import CORES
from natgauge.cli.say import json_object, say
from natgauge.figure_text import number, with_noun
from natgauge.interval_text import ratio
from natgauge.words import Transport

if TYPE_CHECKING:
    from natgauge.tester.cable import CableFigures


@cloup.command("selftest", short_help="Measure the tester itself over a virtual cable.")
@click.option(
    "--frames-at-90", type=int, metavar="N", help="Number of frames in each loss check at 90 % of the highest rate."
)
@click.option(
    "--cores",
    type=CORES,
    metavar="CORES",
    help="Sending cores of the tester, e.g. 0 or 0,1.  [default: the first core]",
)
@click.option(
    "--transport", type=click.Choice(get_args(Transport)), default="udp", show_default=True, help="What the frames are."
)
@click.option("--quick", is_flag=True, help="Test only the smallest frame size of each family.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    frames_at_90: int | None, cores: tuple[int, ...] | None, transport: Transport, quick: bool, as_json: bool
) -> None:
    """Measure the tester itself over a virtual cable: highest rate, loss at 90 % of that rate, clock and pacing."""
    from natgauge.tester.own_rates import run_selftest

    test = run_selftest(
        frames_at_90=frames_at_90,
        sender_cpus=cores,
        quick=quick,
        transport=transport,
        report=None if as_json else _print_figures,
    )
    if as_json:
        json_object("selftest", test)
        return
    lost = sum(figures.lost_at_90_percent for figures in test.cable)
    frames = with_noun(f"{lost:,}", "frames were", "frame was") if lost else "no frame was"
    cpus = ", ".join(map(str, test.sender_cpus))
    say(f"Sent from CPU {cpus}; clock source {test.clock_source}; {frames} lost at 90 % of the highest rates.")
    say("The redirect floor is a program that only redirects to one that only drops: what any frame takes.")


def _print_figures(figures: CableFigures) -> None:
    size = f"{figures.frame_size} octets"
    delays = "queries answered" if figures.query else "every frame timed" if figures.delays else "not timed"
    lag = "" if figures.worst_lag_ns is None else f", lag at worst {number(figures.worst_lag_ns / 1e3)} µs"
    mean = "" if figures.mean_lag_ns is None else f", on average {number(figures.mean_lag_ns / 1e3)} µs"
    floor = ""
    if figures.floor_frames_per_second is not None:
        shares = (figures.share_of_floor, figures.share_of_floor_low, figures.share_of_floor_high)
        share, low, high = ("-" if each is None else ratio(each) for each in shares)
        times = ("-" if each is None else f"{each:,.0f}" for each in (figures.floor_ns, figures.own_ns))
        floor = (
            f"; {share} ({low} to {high}) of the redirect floor, {number(figures.floor_frames_per_second)} frames/s; "
            "a frame takes {} ns of the floor and {} ns of the tester's own".format(*times)
        )
    say(
        f"{figures.family} {size:>11}, {delays:<17}: {figures.frames_per_second:>12,.0f} frames/s "
        f"(phase 1: {number(figures.phase1_frames_per_second)}); at 90 % {figures.lost_at_90_percent:,} of "
        f"{figures.frames_at_90_percent:,} lost{lag}{mean}{floor}"
    )

# SPDX-License-Identifier: Apache-2.0
"""`natgauge probe`: can these ports carry the tester, and the command that mends what is in the way."""

from __future__ import annotations

import click
import cloup

from natgauge.cli.say import epilog, json_object, say, say_findings


@cloup.command(
    "probe",
    short_help="Check whether ports can carry the tester.",
    epilog=epilog("probe", "natgauge probe ens1f0 ens1f1 --frame-size 1518"),
)
@click.argument("port")
@click.argument("other", required=False)
@click.option(
    "--frame-size", "frame_sizes", type=int, multiple=True, metavar="N", help="Planned frame size with FCS, 64 to 3412."
)
@click.option("--allow-addresses", is_flag=True, help="The ports may carry IP addresses.")
@click.option("--no-frames", is_flag=True, help="Attach no program and send nothing.")
@click.option("-v", "--verbose", is_flag=True, help="Print also the checks that passed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    *,
    port: str,
    other: str | None,
    frame_sizes: tuple[int, ...],
    allow_addresses: bool,
    no_frames: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Print whether PORT (and OTHER) can carry the tester, then a line for each problem, with its remedy.

    Settings are only read. Each port gets an XDP program for a moment, and two ports 1000 frames each way, which must
    arrive if a cable joins them. A port that does not exist, or that is named twice, is a wrong argument (status 2).
    --json then prints nothing.
    """
    from natgauge.tester.port_probe import FRAME_SIZES, probe

    reports = probe(
        [name for name in (port, other) if name is not None],
        frame_sizes=frame_sizes or FRAME_SIZES,
        allow_addresses=allow_addresses,
        sends_frames=not no_frames,
    )
    if as_json:
        json_object("probe", {"ports": reports})
    else:
        can = [f"{one.name} ({one.driver}) {'can' if one.usable else 'cannot'} carry the tester" for one in reports]
        say(f"{'; '.join(can)}.")
        every = (finding for report in reports for finding in report.findings)
        say_findings(finding for finding in every if verbose or finding.state != "ok")
    return 0 if all(report.usable for report in reports) else 3

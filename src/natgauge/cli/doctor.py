# SPDX-License-Identifier: Apache-2.0
"""`natgauge doctor`: what this host can measure, what is missing, and the command that installs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click
import cloup

from natgauge.cli.names import GATEWAY
from natgauge.cli.say import json_object, say, say_findings, wrapped
from natgauge.figure_text import with_noun

if TYPE_CHECKING:
    from natgauge.finding import Finding, State

#: Name of a finding on one gateway. Its package may be missing, which takes nothing from the others.
_GATEWAY: Final = "gateway "
_PACKAGES: Final = "gateway packages"


@cloup.command("doctor", short_help="Check whether this host can measure.")
@click.argument("gateways", metavar="[GATEWAY]...", nargs=-1, type=GATEWAY)
@click.option("-v", "--verbose", is_flag=True, help="Print every check, and what each gateway lacks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, gateways: tuple[str, ...], verbose: bool, as_json: bool) -> int:
    """Print whether this host can measure, which gateways, and a line for each problem of the host, with its remedy.

    With GATEWAYs, names or paths of recipes, only what these need is checked besides the host. The exit status is 3 if
    a requirement of every measurement, or of such a GATEWAY, is missing.
    """
    from natgauge.tester.doctor import Host, examine, worst_state

    findings = examine(Host(gateways=gateways))
    state = worst_state([finding for finding in findings if gateways or not finding.name.startswith(_GATEWAY)])
    if as_json:
        json_object("doctor", {"state": state, "findings": findings})
    else:
        say(_answer(findings))
        # What a single gateway lacks takes nothing from the others: its line is not among the first that are read.
        say_findings(
            each for each in findings if verbose or not (each.state == "ok" or (_is_of_one(each) and not gateways))
        )
        if ready := _ready(findings):
            say(wrapped(f"Ready here: {', '.join(ready)}."))
        if lacking := [] if verbose or gateways else _ready(findings, "missing"):
            say(wrapped(f"Lacking something: {', '.join(lacking)} (natgauge doctor -v says what)."))
        if not verbose and (more := sum(finding.state == "ok" for finding in findings)):
            say(f"In order: {more} of {len(findings)} checks (natgauge doctor -v).")
    return 3 if state == "missing" else 0


def _is_of_one(finding: Finding) -> bool:
    """Whether a gateway lacks something; a recipe of the user's that breaks a rule is a warning."""
    return finding.state == "missing" and finding.name.startswith(_GATEWAY) and finding.name != _PACKAGES


def _answer(findings: Sequence[Finding]) -> str:
    """Whether this machine can measure, and how much is missing, in a line."""
    gateways = [finding for finding in findings if finding.name.startswith(_GATEWAY) and finding.name != _PACKAGES]
    others = [finding for finding in findings if not finding.name.startswith(_GATEWAY)]
    missing = [finding.name for finding in others if finding.state == "missing"]
    if missing:
        what = with_noun(len(missing), "things are", "thing is")
        return f"This machine cannot measure: {what} missing ({', '.join(missing)})."
    # A recipe of the user's that breaks a rule is no gateway yet: its finding is a warning.
    doubtful = [finding.name for finding in [*others, *gateways] if finding.state == "warning"]
    doubt = f"; {with_noun(len(doubtful), 'warnings')} ({', '.join(doubtful)})"
    measured = _measured([finding for finding in gateways if finding.state != "warning"])
    return f"This machine can measure{measured}{doubt if doubtful else ''}."


def _ready(findings: Sequence[Finding], state: State = "ok") -> list[str]:
    """Names of the gateways that can run in namespaces of this machine, and lack nothing there, or something."""
    ready = (finding.name for finding in findings if finding.state == state and "here" in finding.places)
    return [name.removeprefix(_GATEWAY) for name in ready]


def _measured(gateways: Sequence[Finding]) -> str:
    """Return a text: gateways that can be measured in namespaces of this machine or elsewhere, and missing programs."""
    here = [finding for finding in gateways if "here" in finding.places]
    working = sum(finding.state == "ok" for finding in here)
    elsewhere, lacking = len(gateways) - len(here), len(here) - working
    count = f" {working} of {with_noun(len(gateways), 'gateways')}" if gateways else ""
    more = f", {elsewhere} more over SSH or in a guest" if elsewhere else ""
    rest = f", {lacking} {'lacks' if lacking == 1 else 'lack'} something" if lacking else ", nothing is missing"
    return f"{count}{more}{rest}"

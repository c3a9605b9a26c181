# SPDX-License-Identifier: Apache-2.0
"""`natgauge doctor`: what this host can do, what is missing, and the command that mends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from natgauge.tester.doctor import Finding

#: Name of a finding on one gateway. Its package may be missing, which takes nothing from the others.
_GATEWAY: Final = "gateway "
_PACKAGES: Final = "gateway packages"


@click.command("doctor")
@click.option("-v", "--verbose", is_flag=True, help="Print what is in order, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(context: click.Context, *, verbose: bool, as_json: bool) -> None:
    """Print whether this host can measure, then a line for each thing that is missing or doubtful, with its mend.

    Exit status 3 when something is missing without which nothing can be measured.
    """
    from natgauge.tester.doctor import examine, worst_state

    findings = examine()
    state = worst_state([finding for finding in findings if not finding.name.startswith(_GATEWAY)])
    if as_json:
        import json

        from natgauge.campaigns.store import plain

        click.echo(json.dumps({"state": state, "findings": plain(findings)}))
    else:
        click.echo(_answer(findings))
        shown = [finding for finding in findings if verbose or finding.state != "ok"]
        width = max((len(finding.name) for finding in shown), default=0)
        for finding in shown:
            mend = "" if finding.mend is None else f"; mend: {finding.mend}"
            click.echo(f"{finding.state:<8} {finding.name:<{width}}  {finding.what}{mend}")
        if len(shown) < len(findings):
            click.echo(f"{len(findings) - len(shown)} more are in order; see natgauge doctor -v")
    context.exit(3 if state == "missing" else 0)


def _answer(findings: Sequence[Finding]) -> str:
    """Whether this machine can measure, and how much is missing, in a line."""
    gateways = [one for one in findings if one.name.startswith(_GATEWAY) and one.name != _PACKAGES]
    others = [one for one in findings if not one.name.startswith(_GATEWAY)]
    missing = [one.name for one in others if one.state == "missing"]
    if missing:
        what = "1 thing is" if len(missing) == 1 else f"{len(missing)} things are"
        return f"This machine cannot measure: {what} missing ({', '.join(missing)})."
    whole = sum(one.state == "ok" for one in gateways)
    what = f" {whole} of {len(gateways)} gateways" if gateways else ""
    doubtful = [one.name for one in others if one.state == "warning"]
    lacking = len(gateways) - whole
    rest = f", {lacking} {'lacks' if lacking == 1 else 'lack'} something" if lacking else ", nothing is missing"
    doubt = f"; {'1 warning' if len(doubtful) == 1 else f'{len(doubtful)} warnings'} ({', '.join(doubtful)})"
    return f"This machine can measure{what}{rest}{doubt if doubtful else ''}."

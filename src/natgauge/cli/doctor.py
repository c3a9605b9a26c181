# SPDX-License-Identifier: Apache-2.0
"""`natgauge doctor`: what this host can do, what is missing, and the command that mends it."""

from __future__ import annotations

import click


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Tell what this host can do, what is missing, and the command that mends it.

    Exit status 3 when something is missing without which nothing can be measured.
    """
    from natgauge.tester.doctor import examine, worst_state

    findings = examine()
    # A gateway whose package is missing takes nothing from the others.
    state = worst_state([finding for finding in findings if not finding.name.startswith("gateway ")])
    if as_json:
        import json

        from natgauge.campaigns.store import plain

        click.echo(json.dumps({"state": state, "findings": plain(findings)}))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            click.echo(f"{finding.state:<8} {finding.name:<{width}}  {finding.what}")
            if finding.mend is not None:
                click.echo(f"{'':<8} {'':<{width}}  mend: {finding.mend}")
    context.exit(3 if state == "missing" else 0)

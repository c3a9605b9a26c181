# SPDX-License-Identifier: Apache-2.0
"""`natgauge audit`: what a gateway does, requirement by requirement of the RFCs on NATs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import cloup

from natgauge.audits.request import AuditOptions, device_inputs, traffic_inputs
from natgauge.cli.generator import grouped, json_option, option, results_option
from natgauge.cli.help import epilog
from natgauge.cli.measure import place_options
from natgauge.cli.names import GATEWAY
from natgauge.cli.say import document, say
from natgauge.inputs.input import inputs_of

#: Without a terminal, a line says this often where an audit is.
_STAGE_SECONDS = 60.0


def _options() -> dict[str, list[click.Option]]:
    """Return all options by heading."""
    gateway = cloup.Option(
        ["--gateway"],
        required=True,
        type=GATEWAY,
        metavar="NAME",
        help="Gateway (see `natgauge gateways`), or the path of a recipe.",
    )
    return {
        "Audit": [gateway, *(option(input_) for input_ in inputs_of(AuditOptions))],
        "Addresses": [option(input_) for input_ in traffic_inputs()],
        "Lab": place_options(),
        "Device": [option(input_) for input_ in device_inputs()],
        "Output": [results_option(), json_option()],
    }


@cloup.command(
    "audit",
    short_help="Examine what a gateway does.",
    params=grouped(_options()),
    epilog=epilog(
        "audit", "natgauge audit --gateway nftables-nat44", "natgauge audit --gateway jool-nat64 --fail-on must"
    ),
)
def command(gateway: str, results: Path, as_json: bool, **choices: Any) -> int:
    """Examine what a gateway does, requirement by requirement of RFC 4787, 5382, 5508 and others.

    Each requirement gets a verdict (meets, fails, not applicable, not seen), what was measured, and a capture of just
    the frames that decided it.
    """
    from natgauge.audits.audit import audit
    from natgauge.cli.progress import ProgressDisplay

    with ProgressDisplay(stage_seconds=_STAGE_SECONDS) as display:
        audited = audit(gateway, results=results, observe=display, notify=display.line, **choices)
    if as_json:
        document(audited.record.document())
    else:
        from natgauge.reports.audit import text
        from natgauge.tables import columns

        say(text(audited.record, columns()))
    return audited.exit_status

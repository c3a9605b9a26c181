# SPDX-License-Identifier: Apache-2.0
"""`natgauge audit`: what a gateway does, requirement by requirement of the RFCs on NATs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup

from natgauge.audits.request import AuditOptions, audit_request, conditions, device_inputs, lab_inputs, traffic_inputs
from natgauge.cli.measure import of_labs
from natgauge.cli.names import GATEWAY
from natgauge.cli.parameters import gateway_option, grouped, json_option, option, results_option
from natgauge.cli.say import COLOURS, document, epilog, say, wrapped
from natgauge.errors import UsageError
from natgauge.inputs.input import inputs_of
from natgauge.tables import columns

if TYPE_CHECKING:
    from natgauge.audits.audit import Audited
    from natgauge.reports.collected import StoredAudit

#: Without a terminal, a line says this often where an audit is.
_STAGE_SECONDS = 60.0


def _options() -> dict[str, list[click.Option]]:
    against = cloup.Option(
        ["--against"],
        type=GATEWAY,
        metavar="NAME",
        help="Audit this gateway, too, or take the stored audit of this results folder, and show which verdicts are "
        "of yours alone, such as --against nftables-nat44.",
    )
    return {
        "Audit": [gateway_option(), against, *(option(input_) for input_ in inputs_of(AuditOptions))],
        "Addresses": [option(input_) for input_ in traffic_inputs()],
        "Lab": [option(input_) for input_ in of_labs(lab_inputs())],
        "Device": [option(input_) for input_ in device_inputs()],
        "Output": [results_option(), json_option()],
    }


@cloup.command(
    "audit",
    short_help="Examine what a gateway does.",
    params=grouped(_options()),
    epilog=epilog(
        "audit",
        "natgauge audit --gateway nftables-nat44",
        "natgauge audit --gateway ./mine.toml --against nftables-nat44 --fail-on must",
    ),
)
def command(gateway: str, against: str | None, results: Path, as_json: bool, **choices: Any) -> int:
    """Examine what a gateway does, requirement by requirement of RFC 4787, 5382, 5508 and others.

    Each requirement gets a verdict (meets, fails, not applicable, not seen), what was measured, and a capture of just
    the frames that decided it.
    """
    from natgauge.audits.audit import audit
    from natgauge.cli.progress import ProgressDisplay
    from natgauge.reports.audit import text
    from natgauge.stored.find_results import audits_apart

    stored = None if against is None else _other(gateway, against, choices)
    with ProgressDisplay(stage_seconds=_STAGE_SECONDS) as display:
        audited = audit(gateway, results=results, observe=display, notify=display.line, **choices)
        if against is not None and stored is None:
            stored = _stored(audit(against, results=results, observe=display, notify=display.line, **choices))
    audits: tuple[StoredAudit, ...] = (_stored(audited),)
    if stored is not None:
        audits = audits_apart([*audits, stored], [gateway, str(against)])
    if not as_json:
        say(wrapped(text([each.record for each in audits], columns())), colours=COLOURS)
    elif stored is None:
        document(audited.record.document())
    else:
        from natgauge.reports import documents
        from natgauge.reports.collected import StoredResults

        document(documents.document(StoredResults((), (), audits=audits)))
    return audited.exit_status


def _stored(audited: Audited) -> StoredAudit:
    from natgauge.reports.collected import StoredAudit

    return StoredAudit(audited.folder, audited.record)


def _other(gateway: str, against: str, choices: Mapping[str, Any]) -> StoredAudit | None:
    """Return the stored audit that another one is compared with; None = it is a gateway that is audited, too.

    Everything that can be refused before an audit begins is refused.
    """
    from natgauge.analysis.run_changes import unlike
    from natgauge.audits.audit import refuse
    from natgauge.gateways.recipe import FILE_IN_FOLDER, available, load
    from natgauge.records.audit import conditions_of
    from natgauge.stored import find_results

    cell, options = audit_request(gateway, choices)
    recipe = load(gateway)
    refuse(recipe)
    folder = Path(against)
    if against in available() or not folder.is_dir() or (folder / FILE_IN_FOLDER).exists():
        refuse(load(against))
        return None
    audits = find_results.find([folder]).audits
    if len(audits) != 1:
        raise UsageError(
            f"audit: --against {against}: holds {len(audits) or 'no'} audits; name the results folder of one audit, or "
            "a gateway"
        )
    mine = conditions_of(options.profile, options.wait, conditions(cell, options))
    if mine["outside_addresses"] is None and (options.profile == "cgn" or recipe.pool4 is not None):
        # How many there are is known when the lab is planned.
        del mine["outside_addresses"]
    if differences := unlike(mine, audits[0].record.conditions):
        raise UsageError(
            f"audit: --against {against}: that audit had other options (here and there: {'; '.join(differences)}); "
            "give the same ones, or name a gateway"
        )
    return audits[0]

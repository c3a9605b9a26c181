# SPDX-License-Identifier: Apache-2.0
"""`natgauge host`: settings of the tester machine, looked at, set for measuring, put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import cloup

from natgauge.cli.help import epilog

_ports = click.option("--ports", metavar="IF,IF", help="Ports of the tester, as `ip link` names them.")


@cloup.group("host", short_help="Check and change settings of this machine.")
def command() -> None:
    """Look at settings of this machine that move figures, set them for measuring, put them back."""


@command.command("check", epilog=epilog("host check"))
@_ports
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(ports: str | None, *, as_json: bool) -> int:
    """Tell what is set, what is better for measuring, and why; nothing is changed.

    Without --ports every interface with a card is looked at.
    """
    from natgauge.host.tuning import tuner

    found = tuner.check(None if ports is None else _split(ports))
    changed = tuner.remembered()
    if as_json:
        import json
        from dataclasses import asdict

        document = {"settings": [asdict(one) for one in found], "tuned": [asdict(one) for one in changed]}
        click.echo(json.dumps(document))
    else:
        _table([(one.outcome, one.knob, one.key, _value(one)) for one in found])
        reasons = {one.knob: f"{one.why} ({one.source})" for one in found if one.outcome == "better"}
        for knob, why in reasons.items():
            click.echo(f"{knob}: {why}.")
        if changed:
            click.echo(f"natgauge has changed {len(changed)} of them; put them back with: natgauge host restore")
    return 1 if any(one.outcome in {"better", "failed"} for one in found) else 0


@command.command("tune")
@_ports
def tune(ports: str | None) -> int:
    """Set what can be better; what was found is written down first, for `natgauge host restore`.

    Without --ports only settings of the whole machine. Exit status 3 where a driver or the kernel refused something.
    """
    from natgauge.host.tuning import tuner

    return _do(lambda: tuner.tune(() if ports is None else _split(ports)), "nothing to set: all is well")


@command.command("restore")
@click.option("--force", is_flag=True, help="Put back also what somebody else has changed meanwhile.")
def restore(*, force: bool) -> int:
    """Put back what `tune` found, also after a kill.

    What somebody else has changed meanwhile is told and left alone; the exit status is 3 then.
    """
    from natgauge.host.tuning import tuner

    return _do(lambda: tuner.restore(force=force), "nothing to put back")


def _do(act: Callable[[], Sequence[Any]], otherwise: str) -> int:
    from natgauge.host import capabilities
    from natgauge.host.tuning.tuner import UNDONE

    capabilities.require("changing settings of this machine", "CAP_NET_ADMIN", "CAP_SYS_ADMIN")
    _refuse_labs_in_use()
    steps = act()
    _table([(one.done, one.knob, one.key, one.text) for one in steps])
    if not steps:
        click.echo(otherwise)
    return 3 if any(one.done in UNDONE for one in steps) else 0


def _refuse_labs_in_use() -> None:
    """Cores would come and go under its hands, and its figures would be of two machines."""
    from natgauge.errors import HostError
    from natgauge.labs.common import cleanup

    for lab in cleanup.status():
        if lab.state == "in use":
            raise HostError(f"lab {lab.name}: is in use by process {lab.pid}; wait until it has ended")


def _split(ports: str) -> list[str]:
    return [port.strip() for port in ports.split(",")]


def _value(one: Any) -> str:
    if one.value is None:
        return str(one.remark)
    value = one.value if one.better is None else f"{one.value}; better: {one.better}"
    return f"{value} ({one.remark})" if one.remark else value


def _table(rows: Sequence[tuple[str, str, str, str]]) -> None:
    from natgauge.tables import aligned

    for line in aligned(rows):
        click.echo(line)

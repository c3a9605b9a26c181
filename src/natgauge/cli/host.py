# SPDX-License-Identifier: Apache-2.0
"""`natgauge host`: check, tune and restore settings of the tester machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import cloup

from natgauge.cli.names import Commands
from natgauge.cli.say import epilog, json_object, say, say_findings
from natgauge.errors import HostError
from natgauge.interruption import leaves
from natgauge.tables import aligned

_ports = click.option("--ports", metavar="IF,IF", help="Ports of the tester, as `ip link` names them.")


@cloup.group("host", cls=Commands, short_help="Check and change settings of this machine.")
def command() -> None:
    """Check settings of this machine that affect results, set them for measuring, and restore them."""


@command.command("check", epilog=epilog("host check"))
@_ports
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(ports: str | None, *, as_json: bool) -> int:
    """Print each setting, the better value for measuring, and the reason; nothing is changed.

    Without --ports every interface of a network card is checked.
    """
    from natgauge.host import tuner
    from natgauge.host.tuner import HiddenStateError, read

    settings = tuner.check(None if ports is None else _split(ports))
    hidden, changed = "", tuple[Any, ...]()
    try:
        changed = read()
    except HiddenStateError as error:
        hidden = str(error)
    if as_json:
        json_object("host", {"findings": settings, "tuned": changed, "hidden": hidden or None})
    else:
        say_findings(settings)
        reasons = {
            setting.name: f"{setting.cause} ({setting.source})" for setting in settings if setting.better is not None
        }
        for knob, why in reasons.items():
            say(f"{knob}: {why}.")
        if hidden:
            say(hidden)
        if changed:
            say(f"natgauge has changed {len(changed)} of them; put them back with: natgauge host restore")
    return 1 if any(setting.state != "ok" for setting in settings) else 0


@command.command("tune")
@_ports
def tune(ports: str | None) -> int:
    """Set what can be better; the old values are stored first, for `natgauge host restore`.

    Without --ports only settings of the whole machine are changed. The exit status is 3 if a driver or the kernel
    refused a value.
    """
    from natgauge.host import tuner

    return _do(lambda: tuner.tune(() if ports is None else _split(ports)), "nothing to set: all is well")


@command.command("restore")
@click.option(
    "--force", is_flag=True, help="Restore also what others changed after `tune`; forget values of absent ports."
)
def restore(*, force: bool) -> int:
    """Restore the settings that `tune` changed, also after a kill.

    Settings that others changed after `tune` are listed and left unchanged; the exit status is then 3.
    """
    from natgauge.host import tuner

    return _do(lambda: tuner.restore(force=force), "nothing to put back")


def _do(act: Callable[[], Sequence[Any]], otherwise: str) -> int:
    from natgauge.host import capabilities
    from natgauge.host.tuner import UNDONE

    capabilities.require("changing settings of this machine", "CAP_NET_ADMIN", "CAP_SYS_ADMIN")
    _refuse_labs_in_use()
    with leaves("natgauge host restore puts back what tune set"):
        steps = act()
    for line in aligned([(step.done, step.knob, step.key, step.text) for step in steps]):
        say(line)
    if not steps:
        say(otherwise)
    return 3 if any(step.done in UNDONE for step in steps) else 0


def _refuse_labs_in_use() -> None:
    """Refuse to change settings while a lab or a port is in use, because results would mix two configurations."""
    from natgauge import cleaning
    from natgauge.labs.wire.lab import used_ports

    for lab in cleaning.status():
        if lab.state == "in use":
            raise HostError(f"lab {lab.name}: is in use by process {lab.pid}; wait until it has ended")
    # A lab of ports alone has nothing to undo, and so no register.
    for port, user in used_ports():
        raise HostError(f"port {port}: is in use by {user}; wait until it has ended")


def _split(ports: str) -> list[str]:
    return [port.strip() for port in ports.split(",")]

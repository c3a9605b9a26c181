# SPDX-License-Identifier: Apache-2.0
"""`natgauge measure`: one metric of one gateway."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from natgauge.cli import settings as procedure_settings

if TYPE_CHECKING:
    from natgauge.campaigns.measure import Answer, Question

_TRAFFIC: Final = (
    ("--connections", int, "N", "Connections of phase 1.  [default: 100000, or all the ranges hold]", "connections"),
    ("--source-addresses", str, "A-B", "The Initiator's addresses.", "source_addresses"),
    ("--source-ports", str, "A-B", "The Initiator's ports.  [default: 1024-65535]", "source_ports"),
    ("--destination-addresses", str, "A-B", "The Responder's addresses.", "destination_addresses"),
    ("--destination-ports", str, "A-B", "The Responder's ports.  [default: as few as needed]", "destination_ports"),
    ("--frame-size", int, "OCTETS", "With FCS.  [default: IPv4 64, IPv6 84]", "frame_size"),
    ("--frame-side", click.Choice(["initiator", "responder"]), None, "Side the size is of.", "frame_side"),
    (
        "--order",
        click.Choice(["permutation", "increasing", "decreasing", "with-replacement"]),
        None,
        "Order of the four tuples in phase 1.  [default: permutation]",
        "order",
    ),
)

_PLACE: Final = (
    (
        "--placement",
        click.Choice(["shared", "isolated"]),
        None,
        "Where the device works.  [default: shared; isolated for devices with processes of their own]",
        "placement",
    ),
    ("--cores", str, "LIST", "The device's cores, e.g. 0,2-3.", "cores"),
    ("--sender-cores", str, "LIST", "The tester's cores.", "sender_cores"),
    ("--ring", int, "FRAMES", "Ring before each core of an isolated device.  [default: 512]", "ring"),
    ("--lab", click.Choice(["netns", "wire"]), None, "Made here, or two existing ports.  [default: netns]", "kind"),
    ("--lab-name", str, "NAME", "Two runs at one time need two names.  [default: default]", "name"),
)

_WIRE: Final = (
    ("--initiator-port", str, "IFACE", "wire: the tester's port on the Initiator's side.", "initiator_port"),
    ("--initiator-gateway", str, "MAC|IP", "wire: the device on that link.", "initiator_gateway"),
    ("--initiator-netns", str, "NETNS", "wire: namespace that holds the port.", "initiator_netns"),
    ("--responder-port", str, "IFACE", "wire: the tester's port on the Responder's side.", "responder_port"),
    ("--responder-gateway", str, "MAC|IP", "wire: the device on that link.", "responder_gateway"),
    ("--responder-netns", str, "NETNS", "wire: namespace that holds the port.", "responder_netns"),
)

_DEVICE: Final = (
    ("--table-size", int, "N", "Connection limit of the device.", "table_size"),
    ("--hash-size", int, "N", "Buckets of the device's connection table.", "hash_size"),
    ("--udp-timeout", int, "S", "UDP timeouts of the device.  [default: longer than any trial]", "udp_timeout"),
)

_OTHER: Final = (
    ("--seed", int, "N", "Of all pseudorandom choices.  [default: random]", "seed"),
    ("--grace-seconds", float, "S", "Wait for the last frames.  [default: wire 2, netns 0.3]", "grace_seconds"),
)

_Function = Callable[..., Any]


def _options(table: tuple[tuple[str, Any, str | None, str, str], ...]) -> Callable[[_Function], _Function]:
    """Options from a table; a value that was not given stays None and is not handed on."""

    def decorate(function: _Function) -> _Function:
        for option, kind, metavar, text, name in reversed(table):
            function = click.option(option, name, type=kind, metavar=metavar, help=text)(function)
        return function

    return decorate


def _given(table: tuple[tuple[str, Any, str | None, str, str], ...], values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for *_, name in table if values[name] is not None}


@click.command("measure", short_help="Measure one metric of one gateway.")
@click.argument("metric")
@click.option(
    "--dut", required=True, metavar="NAME", help="Gateway to measure: see `natgauge duts`; or a recipe's path."
)
@_options(_TRAFFIC)
@procedure_settings.options
@_options(_PLACE)
@_options(_WIRE)
@click.option("--allow-addresses", is_flag=True, help="wire: the ports may carry IP addresses.")
@_options(_DEVICE)
@_options(_OTHER)
@click.option("--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def command(metric: str, dut: str, results: Path, as_json: bool, allow_addresses: bool, **values: Any) -> None:
    """Measure METRIC (connection-rate, throughput ...) of one gateway.

    Progress goes to standard error, the result to standard output, the evidence of every trial to a results folder.
    """
    from natgauge.campaigns.measure import answer
    from natgauge.cli.progress import ProgressDisplay

    question = _question(metric, dut, results, values, allow_addresses=allow_addresses)
    with ProgressDisplay() as display:
        found = answer(question, display)
    show(found, as_json=as_json)


def _question(metric: str, dut: str, results: Path, values: dict[str, Any], *, allow_addresses: bool) -> Question:
    from natgauge.bench.places import PlaceOptions
    from natgauge.bench.traffic import TrafficOptions
    from natgauge.campaigns.measure import Question

    place = _given(_PLACE, values)
    for side in ("initiator", "responder"):
        if (port := _wire_port(side, values)) is not None:
            place[f"{side}_port"] = port
    return Question(
        metric=metric,
        dut=dut,
        traffic=TrafficOptions(**_given(_TRAFFIC, values)),
        place=PlaceOptions(**place, allow_addresses=allow_addresses),
        settings={name: values[name] for name in procedure_settings.names() if values[name] is not None},
        results=results,
        **_given(_DEVICE, values),
        **_given(_OTHER, values),
    )


def _wire_port(side: str, values: dict[str, Any]) -> object:
    from natgauge.bench.places import WirePort
    from natgauge.errors import UsageError

    interface, gateway, netns = (values[f"{side}_{part}"] for part in ("port", "gateway", "netns"))
    if interface is None and gateway is None and netns is None:
        return None
    for value, option in ((interface, "port"), (gateway, "gateway")):
        if value is None:
            raise UsageError(
                f"--{side}-{option} is missing; the wire lab needs the port and the device's address on it"
            )
    return WirePort(interface, gateway, netns)


def show(found: Answer, *, as_json: bool) -> None:
    """Print an answer: one JSON object, or words and where the evidence lies."""
    if as_json:
        import json

        click.echo(json.dumps(found.document, allow_nan=False))
        return
    from natgauge.reports.text import verdict
    from natgauge.results.model import Result

    click.echo(verdict(Result.from_document(found.document)))
    click.echo(f"  Evidence: {found.folder}")

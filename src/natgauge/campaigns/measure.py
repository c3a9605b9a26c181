# SPDX-License-Identifier: Apache-2.0
"""One question about one gateway, answered: a bench for one procedure, and its result in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from natgauge.bench.bench import Bench, Ready, check_host
from natgauge.bench.question import Question, ask
from natgauge.bench.watch import Watch
from natgauge.campaigns.store import Store, plain
from natgauge.host import machine
from natgauge.procedures.kit.results import MeasurementResult

RESULTS: Final = Path("results")


@dataclass(frozen=True, slots=True)
class Answer:
    """A measurement's result and where its evidence lies.

    Attributes:
        result: every repetition with its evidence, and their summary.
        document: what `--json` prints.
        folder: the results folder.
    """

    result: MeasurementResult
    document: Mapping[str, Any]
    folder: Path


def measure(
    metric: str, dut: str | Path, *, results: str | Path = RESULTS, observe: Watch | None = None, **choices: object
) -> Answer:
    """Measure one metric of one gateway; everything made on the way is undone.

    Args:
        metric: "connection-rate", "throughput" ...
        dut: name of a gateway's recipe, for example "nftables-nat44", or the path of a recipe file.
        results: folder in which the results folder is made.
        observe: is told what happens.
        choices: the options of `natgauge measure`, with "_" for "-": connections=100_000, placement="isolated",
            error="1%" ... What is left out, or None, is chosen by natgauge and told in the result.

    Raises:
        UsageError: the question is wrong.
        HostError: this host cannot do it.
        BrokenError: something broke on the way.
    """
    return answer(ask(metric, dut, choices), observe, results=Path(results))


def answer(question: Question, watch: Watch | None = None, *, results: Path = RESULTS) -> Answer:
    """Measure what is asked, and keep it in a new folder below `results`.

    Raises:
        UsageError: the question is wrong.
        HostError: this host cannot do it.
        BrokenError: something broke on the way.
    """
    bench = Bench(question.cell, watch)
    planned = bench.plan(question.metric, question.settings)
    check_host()
    store = Store.create(results, question.metric, bench.recipe.name)
    try:
        with bench:
            ready = bench.ready(planned, store)
            parameters = _parameters(bench, ready)
            store.write_plan(parameters)
            store.write_environment(
                {"machine": machine.facts(), "device": None if bench.device is None else bench.device.as_dict()}
            )
            result = ready.run()
        return _keep(bench, result, parameters, store)
    except BaseException:
        if store.trials == 0:
            # Nothing was measured: leave no folder that looks as if.
            store.discard()
        raise


def _parameters(bench: Bench, ready: Ready) -> dict[str, Any]:
    """All that decides the figures (RFC 9693 section 6), defaults filled in."""
    traffic, lab, device = bench.traffic, bench.lab, ready.device
    return {
        **ready.planned.settings.parameters(),
        "dut": bench.recipe.name,
        "kind": bench.recipe.kind,
        "lab": lab.name,
        "source_addresses": str(traffic.source_addresses),
        "source_address_count": traffic.source_addresses.count,
        "source_ports": f"{traffic.source_ports.first}-{traffic.source_ports.last}",
        "source_port_count": traffic.source_ports.count,
        "destination_addresses": str(traffic.responder_addresses),
        "destination_address_count": traffic.responder_addresses.count,
        "destination_ports": f"{traffic.destination_ports.first}-{traffic.destination_ports.last}",
        "destination_port_count": traffic.destination_ports.count,
        "frame_size": traffic.frame_size,
        "frame_side": traffic.frame_side,
        "frame_octets": {
            "initiator": bench.octets_on(bench.around.inside.family),
            "responder": bench.octets_on(bench.around.outside.family),
        },
        "seed": bench.seed,
        "grace_seconds": bench.grace_seconds,
        "sender_cpus": list(lab.sender_cpus),
        "device_cpus": list(lab.device_cpus),
        **lab.parameters(),
        "tester_highest_phase1_rate": ready.rates.phase1,
        "tester_highest_phase2_rate": ready.rates.phase2,
        **({} if device is None else {**device.knobs, "version": list(device.version)}),
    }


def _keep(bench: Bench, result: MeasurementResult, parameters: Mapping[str, Any], store: Store) -> Answer:
    for number, one in enumerate(result.measurements, start=1):
        store.add_measurement(
            {
                "metric": result.metric,
                "unit": result.unit,
                "repetition": number,
                "value": one.value,
                "upper": one.upper,
                "error": one.error,
                "limited_by": one.limited_by,
                "trials": one.trials,
                "figures": one.figures,
                "notes": one.notes,
                "series": one.series,
            }
        )
    document = {
        **result.as_document(),
        "placement": bench.lab.placement,
        "parameters": plain(parameters),
        "results": str(store.folder),
    }
    store.write_summary(document)
    return Answer(result, document, store.folder)

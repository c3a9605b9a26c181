# SPDX-License-Identifier: Apache-2.0
"""The published schemas of records: they are those of the types, sound, closed, and accept what natgauge stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_comparisons import compared, compared_by_rates, estimate
from tests.unit.made_results import made
from tools.record_schemas import RECORDS, schemas

FOLDER = Path(__file__).parents[2] / "records"
NAMES = sorted(schemas())


def published(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


def test_each_record_has_one_file_and_there_is_no_other() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.json")) == [f"{name}.schema.json" for name in NAMES]
    assert len(NAMES) == len(RECORDS) == 4


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_schema_is_that_of_the_types(name: str) -> None:
    assert published(name) == schemas()[name], "run `make schemas`"


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_describes_and_closes_every_object(name: str) -> None:
    schema = published(name)
    Draft202012Validator.check_schema(schema)
    for one in (schema, *schema["$defs"].values()):
        if "properties" in one:
            assert one["additionalProperties"] is False, one["title"]
            assert one["description"], one["title"]


NOTED = [{"word": "trials", "text": "a round of cable is void: lost", "count": 2}]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("summary-7", made([1.0, 2.0], median=1.5).document()),
        ("comparison-5", compared(notes=NOTED).document()),
        ("comparison-5", compared([estimate(), estimate("third", None, 0.97, None)]).document()),
        ("comparison-5", compared_by_rates().document()),
    ],
)
def test_a_stored_record_keeps_its_schema(name: str, document: Any) -> None:
    Draft202012Validator(published(name)).validate(document)
    for at, broken in enumerate(mutated(document)):
        assert not Draft202012Validator(published(name)).is_valid(broken), f"mutation {at} was accepted"


def mutated(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document with one required thing wrong at a time."""
    yield {**document, "unknown": 1}
    yield {**document, "schema": "natgauge-comparison-1"}
    yield {name: value for name, value in document.items() if name != "schema"}
    yield {**document, "notes": [{"word": "gossip", "text": "x"}]}
    yield {**document, "notes": ["x"]}


def stored(folder: Path, name: str, document: Any) -> str:
    """The folder with this record in a file of this name."""
    (folder / name).write_text(json.dumps(document))
    return str(folder)


def test_a_comparison_is_read_as_it_was_written(tmp_path: Path, ran: Ran) -> None:
    for one in (compared(), compared_by_rates(), compared(notes=NOTED)):
        folder = stored(tmp_path, "comparison.json", one.document())
        (read,) = json.loads(ran(["report", folder, "--format", "json"]).out)["comparisons"]
        assert read["record"] == one.document()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "natgauge-comparison-1"},
        {"estimates": [{}]},
        {"rounds": -1},
        {"gateways": []},
        {"gateways": compared().document()["gateways"][::-1]},
        {"control": compared().document()["estimates"]},
        {"by": "guess"},
        {"estimates": []},
        {"estimates": [{**estimate().model_dump(mode="json"), "low": 1.2}]},
        {"estimates": [{**estimate().model_dump(mode="json"), "low": -1.0}]},
    ],
)
def test_a_document_that_is_no_comparison_is_refused_in_one_line(
    change: dict[str, Any], tmp_path: Path, ran: Ran, golden: Golden
) -> None:
    folder = stored(tmp_path, "comparison.json", {**compared().document(), **change})
    said = ran(["report", folder], 2).err
    assert said.count("\n") == 1
    assert said.startswith(f"natgauge: results: {tmp_path / 'comparison.json'}")
    golden(said)


#: The version of a campaign's record that natgauge writes.
CAMPAIGN = published(next(name for name in NAMES if name.startswith("campaign-")))["$id"]


def test_a_campaign_is_refused_in_one_line_where_a_field_is_missing(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    said = ran(["status", stored(tmp_path, "campaign.json", {"schema": CAMPAIGN})], 2).err
    assert said.count("\n") == 1
    golden(said)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("estimated_seconds", 0.0),
        ("estimated_seconds", 5e-324),
        ("estimated_seconds", 1e308),
        ("repetitions", 0),
        ("repetitions", 2**63),
    ],
)
def test_an_estimate_that_no_campaign_has_is_refused_in_one_line(
    field: str, value: float, tmp_path: Path, ran: Ran
) -> None:
    """Seen: a traceback of `natgauge status`, which divides by the estimates and multiplies with the repetitions."""

    def status(ends: int, **changed: float) -> Any:
        measurement = {"name": "throughput", "repetitions": 2, "estimated_seconds": 1.0, **changed}
        cell = {"name": "nat", "device": "nat", "values": {}, "measurements": [measurement]}
        head = {"schema": CAMPAIGN, "natgauge": "1", "name": "made", "sha256": "", "seed": 1}
        document = {**head, "plan": {}, "recipes": {}, "cells": [cell]}
        return ran(["status", "--json", stored(tmp_path, "campaign.json", document)], ends)

    (measurement,) = json.loads(status(0).out)["measurements"]
    assert measurement["most_repetitions"] == 2
    said = status(2, **{field: value}).err
    where = f"natgauge: results: {tmp_path / 'campaign.json'}: cells.0.measurements.0.{field}: "
    assert (said.count("\n"), said[: len(where)]) == (1, where)

# SPDX-License-Identifier: Apache-2.0
"""Versions of a recipe told apart: gateways of one name whose recipes differ get the digest into their names.

The name is the key by which all views group records, so that two versions of a recipe are two gateways for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from natgauge.foreign import is_there
from natgauge.records.comparison import ComparisonRecord, GatewayRecord, RatioEstimate
from natgauge.records.reading import read_document
from natgauge.records.store import RECIPE, RECIPE_SCHEMA
from natgauge.reports.collected import Stored, StoredAudit, StoredComparison

#: Of a recipe whose digest is not known.
_UNKNOWN: Final = "unknown recipe"
#: Digits of a digest at first; more where two versions begin alike.
_DIGITS: Final = 6


def results_apart(every: Sequence[Stored]) -> tuple[Stored, ...]:
    """Return results with names of their gateways that no other recipe among them has."""
    named = _names([(each.result.gateway, each.result.parameters.device.get("recipe_digest")) for each in every])
    return tuple(_renamed(*each) for each in zip(every, named, strict=True))


def audits_apart(every: Sequence[StoredAudit]) -> tuple[StoredAudit, ...]:
    """Return audits with names of their gateways that no other recipe among them has."""
    named = _names([(each.record.gateway, _of_folder(each)) for each in every])
    return tuple(
        replace(each, record=each.record.model_copy(update={"gateway": name}))
        for each, name in zip(every, named, strict=True)
    )


def comparisons_apart(every: Sequence[StoredComparison]) -> tuple[StoredComparison, ...]:
    """Return comparisons with labels of their gateways that no other recipe among them has.

    A label is the path that the user gave, which may lead to another version in another comparison.
    """
    gateways = [gateway for each in every for gateway in _own(each.record)]
    names = iter(_names([(gateway.label, gateway.parameters.device.get("recipe_digest")) for gateway in gateways]))
    return tuple(replace(each, record=_labelled(each.record, names)) for each in every)


def _own(record: ComparisonRecord) -> tuple[GatewayRecord, ...]:
    """The gateways without the A/A control, whose label begins with that of the baseline."""
    return record.baseline, *record.compared


def _labelled(record: ComparisonRecord, names: Iterator[str]) -> ComparisonRecord:
    """The record with the next names as the labels of its gateways."""
    labels = {gateway.label: next(names) for gateway in _own(record)}
    if all(old == new for old, new in labels.items()):
        return record
    every = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    old = re.compile(rf"(?<![\w./-])(?:{every})(?![\w/-])")

    def named(text: str) -> str:
        return old.sub(lambda label: labels[label[0]], text)

    def renamed(estimate: RatioEstimate) -> RatioEstimate:
        limits = tuple(limit.model_copy(update={"gateway": named(limit.gateway)}) for limit in estimate.limits)
        words = {"gateway": named(estimate.gateway), "text": named(estimate.text), "limits": limits}
        return estimate.model_copy(update=words)

    parts = {
        "gateways": tuple(each.model_copy(update={"label": named(each.label)}) for each in record.gateways),
        "estimates": tuple(map(renamed, record.estimates)),
        "control": tuple(map(renamed, record.control)),
        "notes": tuple(replace(note, text=named(note.text)) for note in record.notes),
    }
    return record.model_copy(update=parts)


def _of_folder(audit: StoredAudit) -> object:
    path = audit.folder / RECIPE
    return read_document(path, RECIPE_SCHEMA).get("sha256") if is_there(path) else None


def _renamed(stored: Stored, name: str) -> Stored:
    if name == stored.result.gateway:
        return stored
    parameters = stored.result.parameters
    device = {**parameters.device, "gateway": name}
    renamed = stored.result.model_copy(update={"parameters": parameters.model_copy(update={"device": device})})
    return replace(stored, result=renamed, recipe_name=stored.result.gateway)


def _names(recipes: Sequence[tuple[str, object]]) -> list[str]:
    """Return a name for each recipe, from its own and its digest; None as a digest = it is not known."""
    versions: dict[str, set[str]] = {}
    digests = [(name, str(digest or _UNKNOWN)) for name, digest in recipes]
    for name, digest in digests:
        versions.setdefault(name, set()).add(digest)
    digits = {name: _digits(own) for name, own in versions.items()}
    shown = [digest if digest == _UNKNOWN else digest[: digits[name]] for name, digest in digests]
    return [
        name if len(versions[name]) == 1 else f"{name} ({own})" for (name, _), own in zip(digests, shown, strict=True)
    ]


def _digits(versions: set[str]) -> int | None:
    """Return the number of first digits that tell versions apart; None = all."""
    tried = range(_DIGITS, max(map(len, versions)))
    return next((number for number in tried if len({each[:number] for each in versions}) == len(versions)), None)

# SPDX-License-Identifier: Apache-2.0
"""Versions of a recipe told apart: gateways of one name whose recipes differ get the digest into their names.

The name is the key by which all views group records, so that two versions of a recipe are two gateways for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from natgauge.foreign import is_there
from natgauge.records.reading import read_document
from natgauge.records.store import RECIPE, RECIPE_SCHEMA
from natgauge.reports.collected import Stored, StoredAudit

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
    digests = [(name, str(digest or "unknown recipe")) for name, digest in recipes]
    for name, digest in digests:
        versions.setdefault(name, set()).add(digest)
    digits = {name: _digits(own) for name, own in versions.items()}
    return [name if len(versions[name]) == 1 else f"{name} ({digest[: digits[name]]})" for name, digest in digests]


def _digits(versions: set[str]) -> int | None:
    """Return the number of first digits that tell versions apart; None = all."""
    tried = range(_DIGITS, max(map(len, versions)))
    return next((number for number in tried if len({each[:number] for each in versions}) == len(versions)), None)

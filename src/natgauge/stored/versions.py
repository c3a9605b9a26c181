# SPDX-License-Identifier: Apache-2.0
"""Versions of a recipe told apart: gateways of one name whose recipes differ get a second name.

It is the name of the user's that tells them apart, of a folder such as `base` and `change`, or else the digest.

The name is the key by which all views group records, so that two versions of a recipe are two gateways for them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from natgauge.foreign import is_there
from natgauge.records.comparison import ComparisonRecord, GatewayRecord, RatioEstimate
from natgauge.records.reading import read_document
from natgauge.records.store import CAMPAIGN, CAMPAIGN_RESULTS, RECIPE, RECIPE_SCHEMA
from natgauge.reports.collected import Stored, StoredAudit, StoredComparison

#: Of a recipe whose digest is not known.
_UNKNOWN: Final = "unknown recipe"
#: Digits of a digest at first; more where two versions begin alike.
_DIGITS: Final = 6
#: Beginning of the names that natgauge gives to results folders.
_STAMPED: Final = re.compile(r"\d{4}-\d\d-\d\d-\d{6}")
#: Folders' names that every form has room for.
_SHOWN: Final = re.compile(r"[\w.+-]{1,32}")

#: Names by which the user may know a version, the best first; empty = there is none.
_Known = tuple[str, ...]


def results_apart(every: Sequence[Stored]) -> tuple[Stored, ...]:
    """Return results with names of their gateways that no other recipe among them has."""
    named = _names(
        [
            (each.result.gateway, each.result.parameters.device.get("recipe_digest"), _of_user(each.folder))
            for each in every
        ]
    )
    return tuple(_renamed(*each) for each in zip(every, named, strict=True))


def audits_apart(every: Sequence[StoredAudit], given: Sequence[str] = ()) -> tuple[StoredAudit, ...]:
    """Return audits with names of their gateways that no other recipe among them has.

    `given`: what the user called each; empty = nothing.
    """
    words = given or [""] * len(every)
    named = _names(
        [
            (each.record.gateway, _of_folder(each), (word, *_of_user(each.folder)))
            for each, word in zip(every, words, strict=True)
        ]
    )
    return tuple(
        replace(each, record=each.record.model_copy(update={"gateway": name}))
        for each, name in zip(every, named, strict=True)
    )


def comparisons_apart(every: Sequence[StoredComparison]) -> tuple[StoredComparison, ...]:
    """Return comparisons with labels of their gateways that no other recipe among them has.

    A label is the path that the user gave, which may lead to another version in another comparison.
    """
    gateways = [(gateway, _of_user(each.folder)) for each in every for gateway in _own(each.record)]
    names = iter(
        _names([(gateway.label, gateway.parameters.device.get("recipe_digest"), known) for gateway, known in gateways])
    )
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


def _of_user(folder: Path) -> _Known:
    """Return names that the user gave: of the folder that results are in, and of a results folder itself."""
    own = folder.absolute()
    above = own.parent.parent if own.parent.name == CAMPAIGN_RESULTS else own.parent
    is_renamed = not (_STAMPED.match(own.name) or is_there(own.parent.parent / CAMPAIGN))
    names = (above.name, own.name if is_renamed else "")
    return tuple(name if _SHOWN.fullmatch(name) else "" for name in names)


def _names(recipes: Sequence[tuple[str, object, _Known]]) -> list[str]:
    """Return a name for each recipe, from its own, its digest and the user's; None as a digest = it is not known."""
    versions: dict[str, dict[str, set[_Known]]] = {}
    digests = [(name, str(digest or _UNKNOWN)) for name, digest, _ in recipes]
    for (name, digest), (_, _, known) in zip(digests, recipes, strict=True):
        versions.setdefault(name, {}).setdefault(digest, set()).add(known)
    shown = {name: _shown(own) for name, own in versions.items()}
    return [name if len(versions[name]) == 1 else f"{name} ({shown[name][digest]})" for name, digest in digests]


def _shown(versions: Mapping[str, Collection[_Known]]) -> dict[str, str]:
    """Return what tells versions apart, by their digests: the user's name if each has one of its own, or the digest."""
    for names in zip(*(zip(*known, strict=True) for known in versions.values()), strict=True):
        own = {digest: set(each) for digest, each in zip(versions, names, strict=True)}
        if all(len(each) == 1 for each in own.values()) and len(set().union(*own.values()) - {""}) == len(own):
            return {digest: each.pop() for digest, each in own.items()}
    number = _digits(versions)
    return {digest: digest if digest == _UNKNOWN else digest[:number] for digest in versions}


def _digits(versions: Collection[str]) -> int | None:
    """Return the number of first digits that tell versions apart; None = all."""
    tried = range(_DIGITS, max(map(len, versions)))
    return next((number for number in tried if len({each[:number] for each in versions}) == len(versions)), None)

# SPDX-License-Identifier: Apache-2.0
"""Find stored results in a results folder, or in one that contains several, and tell versions of a recipe apart."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from natgauge.errors import UsageError
from natgauge.file_access import DOCUMENT, is_there, read_text
from natgauge.records.audit import AuditRecord
from natgauge.records.comparison import ComparisonRecord, GatewayRecord, RatioEstimate
from natgauge.records.measurement import Result
from natgauge.records.record import read_document, read_record
from natgauge.records.store import (
    AUDIT,
    CAMPAIGN,
    CAMPAIGN_RESULTS,
    COMPARISON,
    FAILURE,
    MAKING,
    PLAN,
    RECIPE,
    RECIPE_SCHEMA,
    SUMMARY,
    result_name,
)
from natgauge.reports.collected import Stored, StoredAudit, StoredComparison, StoredResults
from natgauge.reports.labels import grouped
from natgauge.stored import comparison_consistency, consistency

_Outcome = Stored | StoredComparison | StoredAudit
#: Files of which a results folder has one when it has ended.
_OUTCOMES: Final = (SUMMARY, COMPARISON, AUDIT)


def find(folders: Sequence[Path], *, failed: bool = False, as_labelled: bool = False) -> StoredResults:
    """Find every result and comparison of results folders, folders of them, or campaigns (with `results/`).

    Of a folder with none of these, the folders in it are looked into.

    Each is found once, also where several names or symbolic links lead to its folder, or its folder was copied.

    Args:
        folders: at least one.
        failed: whether a folder may contain only measurements that did not end; otherwise there is at least one result,
            comparison or audit.
        as_labelled: whether gateways of comparisons keep their labels even if one label means several recipes.

    Raises:
        UsageError: a folder holds no result, cannot be read, or a summary is damaged or of another schema.
    """
    every, unended, campaigns = list[_Outcome](), list[Path](), list[Path]()
    seen: set[str] = set()
    for folder in folders:
        with _readable(folder):
            below = list(_below(folder))
            own = [each for each in (folder, *_children(folder)) if is_there(each / CAMPAIGN)]
            if not (below or _is_results_folder(folder) or is_there(folder / CAMPAIGN)):
                # One level above: in it are folders that the user named, such as audits/base.
                for each in _level_below(folder):
                    # The user did not name it, and it may be somebody else's.
                    with suppress(PermissionError):
                        below += _held(each)
                        own += [each] if is_there(each / CAMPAIGN) else []
            if failed and not below and _is_results_folder(folder):
                below = [folder]
            ended = [each for each in below if _has_ended(each)]
        if below and not ended and not failed:
            raise UsageError(
                f"{folder} holds no result: none of its {len(below)} measurements has ended; wait for one, or "
                "name another folder"
            )
        every += [_read(each) for each in _once(ended or ([] if below or (own and failed) else [folder]), seen)]
        unended += _once((each for each in below if each not in ended), seen)
        campaigns += _once(own, seen)
    kept, copies, copied = _without_copies(every, campaigns)
    comparisons = tuple(outcome for outcome in kept if isinstance(outcome, StoredComparison))
    return StoredResults(
        _results_apart([outcome for outcome in kept if isinstance(outcome, Stored)]),
        tuple(folder for folder in unended if not any(map(folder.is_relative_to, copied))),
        comparisons if as_labelled else _comparisons_apart(comparisons),
        tuple(campaign for campaign in campaigns if campaign not in copied),
        audits_apart([outcome for outcome in kept if isinstance(outcome, StoredAudit)]),
        copies,
    )


def _without_copies(
    every: Sequence[_Outcome], campaigns: Sequence[Path]
) -> tuple[list[_Outcome], dict[Path, Path], list[Path]]:
    """Return each measurement once, the folders of its copies, each with the one that was kept, and copied campaigns.

    Of copies of a measurement that went on, the one with the most repetitions is kept. A campaign is a copy where
    others have all of its repetitions.
    """
    alike = grouped((_identity(each), each) for each in every)
    copied: list[Path] = []

    def is_copied(outcome: _Outcome) -> bool:
        return any(map(outcome.folder.is_relative_to, copied))

    def is_elsewhere(outcome: _Outcome, campaign: Path) -> bool:
        return any(
            _repetitions(other) >= _repetitions(outcome)
            and not (other.folder.is_relative_to(campaign) or is_copied(other))
            for other in alike[_identity(outcome)]
        )

    # Of equal ones the first is kept.
    for campaign in reversed(campaigns):
        own = [each for each in every if each.folder.is_relative_to(campaign)]
        if own and all(is_elsewhere(each, campaign) for each in own):
            copied.append(campaign)
    kept, copies = list[_Outcome](), dict[Path, Path]()
    for group in alike.values():
        first = max(group, key=lambda each: (not is_copied(each), _repetitions(each)))
        kept.append(first)
        copies |= {each.folder: first.folder for each in group if each is not first}
    return kept, copies, copied


def _repetitions(outcome: _Outcome) -> int:
    return len(outcome.result.repetitions) if isinstance(outcome, Stored) else 1


def _identity(outcome: _Outcome) -> str:
    """What only one measurement has: when it began and what it found first; the folder where nobody stored that."""
    if isinstance(outcome, Stored):
        result, begun = outcome.result, outcome.result.parameter("begun")
        if not isinstance(begun, list) or not begun:
            return str(outcome.folder)
        # Further repetitions have seeds of their own.
        traffic = {name: value for name, value in result.parameters.traffic.items() if name != "seeds"}
        return json.dumps([result.metric, result.gateway, begun[0], result.values[0], traffic], sort_keys=True)
    record = outcome.record
    return str(outcome.folder) if record.results is None else json.dumps(record.document(), sort_keys=True)


def _once(folders: Iterable[Path], seen: set[str]) -> list[Path]:
    """Return the folders that were not seen before, under whatever name."""
    new = []
    for folder in folders:
        if (place := os.path.realpath(folder)) not in seen:
            seen.add(place)
            new.append(folder)
    return new


def refuse_same(first: StoredResults, second: StoredResults) -> None:
    """Refuse results to compare of which one is on both sides: it does not differ from itself."""
    places = {os.path.realpath(folder): folder for folder in _folders_of(first)}
    for folder in _folders_of(second):
        if (same := places.get(os.path.realpath(folder))) is not None:
            also = "" if same == folder else f" (also named {folder})"
            raise UsageError(f"diff: {same}{also} is on both sides and cannot differ from itself; name another run")


def _folders_of(found: StoredResults) -> list[Path]:
    return [each.folder for kind in (found.stored, found.comparisons, found.audits) for each in kind]


def refuse_edited(folder: Path) -> None:
    """Refuse a folder whose result contradicts the rest of it; one without a result contradicts nothing."""
    with _readable(folder):
        has_ended = _has_ended(folder)
    if has_ended:
        _read(folder)


def _has_ended(folder: Path) -> bool:
    return any(is_there(folder / name) for name in _OUTCOMES)


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _read(folder: Path) -> _Outcome:
    with _readable(folder):
        if is_there(folder / COMPARISON):
            comparison = read_record(folder / COMPARISON, ComparisonRecord)
            with _finite(folder / COMPARISON):
                comparison_consistency.refuse_contradictions(comparison, folder)
            return StoredComparison(folder, comparison)
        if is_there(folder / AUDIT):
            audit = read_record(folder / AUDIT, AuditRecord)
            consistency.refuse_contradictions_of_audit(audit, folder)
            return StoredAudit(folder, audit)
    return Stored(folder, read_summary(folder))


def read_summary(folder: Path) -> Result:
    """Read the result of a results folder.

    Raises:
        UsageError: it is no results folder, its measurement did not end, or its summary is damaged or outdated.
    """
    path = folder / SUMMARY
    with _readable(folder):
        is_summary = is_there(path)
    if not is_summary:
        raise UsageError(f"{folder} holds no result: {_missing(folder)}; name the folder of a measurement")
    result = read_record(path, Result)
    with _finite(path):
        consistency.refuse_contradictions(result, folder)
    return result


@contextmanager
def _finite(path: Path) -> Iterator[None]:
    """Refuse a record whose numbers are too large to compute with."""
    try:
        yield
    except ArithmeticError as error:
        raise UsageError(
            f"results: {path}: numbers are out of range ({error}); it is damaged, leave it out, or measure again"
        ) from None


def _below(folder: Path) -> Iterator[Path]:
    """Yield the results folders below a folder: its subfolders, or those in the `results/` of campaigns."""
    if _is_results_folder(folder) or not folder.is_dir():
        return
    for child in [folder] if (folder / CAMPAIGN_RESULTS).is_dir() else sorted(folder.iterdir()):
        yield from _held(child)


def _held(folder: Path) -> list[Path]:
    """Return the results folders that a folder is, or has in its `results/`."""
    if _is_results_folder(folder):
        return [folder]
    return list(filter(_is_results_folder, _as_planned(folder))) if (folder / CAMPAIGN_RESULTS).is_dir() else []


def _level_below(folder: Path) -> Iterator[Path]:
    """Yield what is in the folders of a folder, without those that may not be looked into."""
    for child in _children(folder):
        with suppress(PermissionError):
            yield from _children(child)


def _as_planned(campaign: Path) -> list[Path]:
    """Return a campaign's results folders in the order of its plan; folders that the plan lacks come last, by name."""
    place: dict[str, int] = {}
    # The plan may be missing where results were copied; the order is all that depends on it.
    with suppress(UsageError, ValueError, LookupError, TypeError, RecursionError):
        cells = json.loads(read_text(campaign / CAMPAIGN, DOCUMENT))["cells"]
        names = [
            result_name(cell["name"], measurement["name"]) for cell in cells for measurement in cell["measurements"]
        ]
        place = {name: number for number, name in enumerate(names)}
    by_name: dict[str, Path] = {}
    for folder in sorted((campaign / CAMPAIGN_RESULTS).iterdir(), key=_age):
        by_name.setdefault(folder.name.removeprefix(MAKING), folder)
    return [by_name[name] for name in sorted(by_name, key=lambda name: (place.get(name, len(place)), name))]


def _age(folder: Path) -> int:
    """Return the place of a results folder among those of one measurement, the newest with a result first.

    A measurement that broke keeps its result while it is tried again; what it has by then is in the folder being made.
    """
    if not folder.name.startswith(MAKING):
        return 1
    return 0 if is_there(folder / SUMMARY) else 2


def _is_results_folder(folder: Path) -> bool:
    return any(is_there(folder / name) for name in (*_OUTCOMES, PLAN, FAILURE))


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Refuse a folder of which something may not be looked into, with the path that the system names."""
    try:
        yield
    except OSError as error:
        path = str(error.filename or folder)
        raise UsageError(f"{path!r} cannot be read ({error.strerror}); name the folder of a measurement") from error


def _missing(folder: Path) -> str:
    if not folder.is_dir():
        return "it is no folder" if folder.exists() else "there is no such folder"
    if not any(folder.iterdir()):
        return "it is empty"
    if (folder / CAMPAIGN).exists():
        return f"no repetition of this campaign has ended (natgauge status {shlex.quote(str(folder))})"
    if (folder / PLAN).exists():
        return f"it has no {SUMMARY}, for its measurement did not end"
    if (folder / FAILURE).exists():
        return f"its measurement failed (natgauge explain {shlex.quote(str(folder))}; report --html has a page of it)"
    return f"it has no {SUMMARY}"


# Gateways of one name whose recipes differ get a second name. It is the name of the user's that tells them apart, of a
# folder such as `base` and `change`, or else the digest. The name is the key by which all views group records, so that
# two versions of a recipe are two gateways for them.

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


def _results_apart(every: Sequence[Stored]) -> tuple[Stored, ...]:
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
            (each.record.gateway, _digest_of(each), (word, *_of_user(each.folder)))
            for each, word in zip(every, words, strict=True)
        ]
    )
    return tuple(
        replace(each, record=each.record.model_copy(update={"gateway": name}))
        for each, name in zip(every, named, strict=True)
    )


def _comparisons_apart(every: Sequence[StoredComparison]) -> tuple[StoredComparison, ...]:
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


def _digest_of(audit: StoredAudit) -> object:
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
    # As few first digits as tell them apart; None = all.
    tried = range(_DIGITS, max(map(len, versions)))
    number = next((most for most in tried if len({each[:most] for each in versions}) == len(versions)), None)
    return {digest: digest if digest == _UNKNOWN else digest[:number] for digest in versions}

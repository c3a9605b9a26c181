# SPDX-License-Identifier: Apache-2.0
"""TOML tables of recipes, merged one over the other (docs/gateways.md, "Fragments")."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from natgauge import foreign, toml_text
from natgauge.errors import UsageError, did_you_mean

#: The folder with natgauge's own recipes.
BUILT_IN: Final = Path(__file__).parent / "recipes"

_COMMON: Final = "common"
#: Lists that are concatenated over all layers.
_ADDING: Final = frozenset({"needs", "modules"})


def layered(path: Path) -> dict[str, Any]:
    """Merge a recipe's file over the fragments that it extends; its verbs become lists of pieces.

    Raises:
        UsageError: a file cannot be read or is no TOML, or there is no such fragment.
    """
    own = pieces_of(_parse(path))
    fragments = own.get("extends", [])
    if not isinstance(fragments, list) or not all(isinstance(name, str) for name in fragments):
        raise UsageError(f"{path}: extends: {fragments!r}: must be a list of names of fragments")
    merged: dict[str, Any] = {}
    for layer in [*(_fragment(name, path) for name in fragments), own]:
        merged = merge(merged, layer)
    return merged


def _parse(path: Path) -> dict[str, Any]:
    try:
        return toml_text.parse(foreign.read_text(path, foreign.RECIPE))
    except ValueError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from error


def _fragment(name: str, path: Path) -> dict[str, Any]:
    """A fragment in the recipe's folder, else one of natgauge's own."""
    fragments = files_of(BUILT_IN / _COMMON, path.parent / _COMMON)
    if name not in fragments:
        raise UsageError(f'{path}: extends: fragment "{name}": unknown; {did_you_mean(name, fragments)}')
    return pieces_of(_parse(fragments[name]))


def files_of(*folders: Path) -> dict[str, Path]:
    """The TOML files of folders by name; a later folder's file hides one of the same name in an earlier folder."""
    return {file.stem: file for folder in folders for file in folder.glob("*.toml")}


def pieces_of(table: dict[str, Any]) -> dict[str, Any]:
    """Make each verb a list of one piece, so that merging appends."""
    verbs = table.get("verbs")
    if not isinstance(verbs, dict):
        return table
    return {**table, "verbs": {verb: [text] if isinstance(text, str) else text for verb, text in verbs.items()}}


def merge(below: dict[str, Any], above: dict[str, Any], *within: str) -> dict[str, Any]:
    """Merge two tables: needs, modules and pieces of verbs are concatenated, other values replaced."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = merge(old, value, *within, key)
        elif isinstance(old, list) and isinstance(value, list) and (key in _ADDING or within == ("verbs",)):
            result[key] = _without_repeats([*old, *value])
        else:
            result[key] = value
    return result


def _without_repeats(values: list[Any]) -> list[Any]:
    return [value for index, value in enumerate(values) if value not in values[:index]]


def frozen(value: Any) -> Any:
    """Lists as tuples, at any depth."""
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value

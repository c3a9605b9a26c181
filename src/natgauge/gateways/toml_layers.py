# SPDX-License-Identifier: Apache-2.0
"""Files of recipes: TOML tables, merged one over the other (docs/recipes.md, "Fragments"), and files that they name."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from natgauge import file_access, toml_text
from natgauge.errors import UsageError, did_you_mean, shown

#: The folder with natgauge's own recipes.
BUILT_IN: Final = Path(__file__).parent / "recipes"

#: Variable of every snippet: the folder of the recipe's file. Missing where the device does not see that folder.
RECIPE_FOLDER: Final = "NG_RECIPE_FOLDER"
_FILE: Final = r"[\w.@%+,/-]*[\w-]"
#: Names of files that snippets can name, and what names one; in JSON a quotation mark has a backslash before it.
NAMED_FILE: Final = re.compile(_FILE)
_NAMED: Final = re.compile(rf"\$\{{?{RECIPE_FOLDER}\}}?(?:\\?\")?/({_FILE})")
#: The same where the name ends there, and no variable or pattern makes it longer.
_WHOLE: Final = re.compile(rf"{_NAMED.pattern}(?=[\\\"'\s;|&)<>]|$)")
#: The end of a text that is in a line of comment.
_IN_COMMENT: Final = re.compile(r"^\s*#.*\Z", re.MULTILINE)
_NAMED_FILE: Final = file_access.FileKind("", "let the recipe name a regular file", 1 << 28)

_COMMON: Final = "common"
_ENDING: Final = ".toml"
#: Lists that are concatenated over all layers.
_ADDING: Final = frozenset({"needs", "modules"})


def layered(path: Path) -> dict[str, Any]:
    """Merge a recipe's file over the fragments that it extends; its verbs become lists of pieces."""
    own = pieces_of(_parse(path))
    fragments = own.get("extends", [])
    if not isinstance(fragments, list) or not all(isinstance(name, str) for name in fragments):
        raise UsageError(f"{path}: extends: {shown(fragments)}: must be a list of names of fragments")
    if len(set(fragments)) < len(fragments):
        twice = next(name for number, name in enumerate(fragments) if name in fragments[:number])
        raise UsageError(f"{path}: extends: {twice!r}: is there twice; name each fragment once")
    merged: dict[str, Any] = {}
    for layer in [*(_fragment(name, path) for name in fragments), own]:
        merged = merge(merged, layer)
    return merged


def _parse(path: Path) -> dict[str, Any]:
    try:
        return _parsed(file_access.read_text(path, file_access.RECIPE))
    except ValueError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from error


@lru_cache(maxsize=128)
def _parsed(text: str) -> dict[str, Any]:
    """Parse a file once for as long as its text is the same: nobody changes the tables, and many recipes share one."""
    return toml_text.parse(text)


def _fragment(name: str, path: Path) -> dict[str, Any]:
    folders = BUILT_IN / _COMMON, path.parent / _COMMON
    file = file_of(name, *folders)
    if file is None:
        raise UsageError(f'{path}: extends: fragment "{name}": unknown; {did_you_mean(name, files_of(*folders))}')
    return pieces_of(_parse(file))


def files_of(*folders: Path) -> dict[str, Path]:
    """The TOML files of folders by name; a later folder's file hides one of the same name in an earlier folder."""
    return {name: folder / f"{name}{_ENDING}" for folder in folders for name in _names(folder)}


def file_of(name: str, *folders: Path) -> Path | None:
    """The file that `files_of` has under a name; None if there is none. It does not list the folders."""
    if not name or "/" in name:
        return None
    files = (folder / f"{name}{_ENDING}" for folder in reversed(folders))
    return next((file for file in files if os.path.lexists(file)), None)


def _names(folder: Path) -> list[str]:
    """The names of a folder's TOML files; none if there is no such folder."""
    try:
        files = os.listdir(folder)  # noqa: PTH208 - a path for each file takes ten times as long
    except OSError:
        return []
    return [name for file in files if (name := file.removesuffix(_ENDING)) not in (file, "")]


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


def absent(snippets: Iterable[str], folder: Path) -> list[Path]:
    """Return the files that snippets name in the recipe's folder, and that are not there."""
    found = {each[1] for snippet in snippets for each in _WHOLE.finditer(snippet) if _is_read(snippet, each)}
    return [file for file in (folder / name for name in sorted(found)) if not file_access.is_there(file)]


def _is_read(snippet: str, named: re.Match[str]) -> bool:
    """Whether a snippet needs this file: it neither writes nor comments on it, and no blank continues its name."""
    before = snippet[: named.start()]
    is_open = before.endswith('"') and '"' not in named[0]
    goes_on = re.compile(r"\s" if is_open else r"\\ ").match(snippet, named.end())
    return not (goes_on or before.rstrip('" ').endswith(">") or _IN_COMMENT.search(before))


def named_in(snippet: str) -> list[str]:
    """Return the files that a snippet names, by their names in the folder, each once."""
    return sorted(set(_NAMED.findall(snippet)))


def digests(snippets: str, folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, by its name in the folder; what cannot be read has none."""
    return {name: hashlib.sha256(octets).hexdigest() for name, octets in contents(snippets, folder).items()}


def contents(snippets: str, folder: Path) -> dict[str, bytes]:
    """Return each file that snippets name, by its name in the folder; not what cannot be read."""
    found = {}
    for name in named_in(snippets):
        try:
            found[name] = file_access.read_octets(folder / name, _NAMED_FILE)
        except (OSError, UsageError):
            continue
    return found

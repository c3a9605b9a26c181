# SPDX-License-Identifier: Apache-2.0
"""Files that a recipe names by $NG_RECIPE_FOLDER, such as a rule set: they decide what it does, too."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from natgauge import foreign
from natgauge.errors import UsageError
from natgauge.gateways.needs import RECIPE_FOLDER

_NAMED: Final = re.compile(rf"\$\{{?{RECIPE_FOLDER}\}}?/([\w.@%+,/-]*[\w-])")
_KIND: Final = foreign.FileKind("", "let the recipe name a regular file", 1 << 28)


def digests(snippets: str, folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, by its name in the folder; what cannot be read has none."""
    found = {}
    for name in sorted(set(_NAMED.findall(snippets))):
        try:
            found[name] = hashlib.sha256(foreign.read_octets(folder / name, _KIND)).hexdigest()
        except (OSError, UsageError):
            continue
    return found

# SPDX-License-Identifier: Apache-2.0
"""Keeps the record of what was really run: a gateway that crossed its test is written down, when that is asked for."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from natgauge.duts.recipe import Recipe
from natgauge.duts.support import RUNS, Place, places
from natgauge.host.programs import search_path

#: Set by `make record-runs`.
VARIABLE = "NATGAUGE_RECORD_RUNS"
_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# When each gateway was last run by us, where, and with what. Written by the lab tests (make record-runs), not by hand.
"""


def playable(recipe: Recipe) -> bool:
    """Whether this machine can play it; what a package has is installed before the tests run."""
    programs = [one for need in recipe.needs if need.package is None for one in need.programs]
    return "here" in places(recipe) and all(shutil.which(one, path=search_path()) for one in programs)


def record(name: str, place: Place, version: Iterable[str], file: Path = RUNS) -> None:
    """Write down that this gateway crossed its test now; nothing happens unless $NATGAUGE_RECORD_RUNS is set."""
    if VARIABLE not in os.environ:
        return
    told = tomllib.loads(file.read_text()) if file.is_file() else {}
    today = datetime.now(UTC).date().isoformat()
    told.setdefault(name, {})[place] = {"date": today, "version": list(dict.fromkeys(version))}
    text = _HEAD
    for gateway in sorted(told):
        for where, run in sorted(told[gateway].items()):
            version_text = json.dumps(run["version"], ensure_ascii=False)
            text += f'\n[{gateway}.{where}]\ndate = "{run["date"]}"\nversion = {version_text}\n'
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)

# SPDX-License-Identifier: Apache-2.0
"""Keeps the record of what was really run: a gateway that crossed its test is written down, when that is asked for."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from natgauge.gateways.recipe import Recipe, load
from natgauge.gateways.support import RUNS, Place, places
from natgauge.host.programs import search_path
from natgauge.labs.vm.image import DISTRIBUTION

#: Set by `make record-runs`.
VARIABLE = "NATGAUGE_RECORD_RUNS"
_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# When natgauge's authors last ran each gateway, where, and with what. Written by the lab tests (make record-runs), not
# by hand. A run without a distribution is from before the tests recorded it.
"""


def playable(recipe: Recipe) -> bool:
    """Whether this machine can play it; what a package has is installed before the tests run."""
    programs = [one for need in recipe.needs if need.package is None for one in need.programs]
    return "here" in places(recipe) and all(shutil.which(one, path=search_path()) for one in programs)


def playable_of(*names: str) -> list[str]:
    """Return those of the gateways that this machine can play; a user builds some of them."""
    return [name for name in names if playable(load(name))]


def record(name: str, place: Place, version: Iterable[str], file: Path = RUNS, *, distribution: str = "") -> None:
    """Write down that this gateway crossed its test now; nothing happens unless $NATGAUGE_RECORD_RUNS is set.

    Args:
        name: the gateway's.
        place: where it ran.
        version: of the kernel and of the gateway's programs; without a kernel, that of this machine is added here.
        file: the record.
        distribution: of the gateway's machine; empty = this machine's for `here`, the guest's for `guest`.
    """
    if VARIABLE not in os.environ:
        return
    told = tomllib.loads(file.read_text()) if file.is_file() else {}
    today = datetime.now(UTC).date().isoformat()
    versions = list(dict.fromkeys(version))
    if place == "guest":
        distribution = distribution or DISTRIBUTION
    if place == "here":
        distribution = distribution or platform.freedesktop_os_release()["PRETTY_NAME"]
        if not any(line.startswith("Linux ") for line in versions):
            versions.insert(0, f"Linux {platform.release()}")
    run = {"date": today, "version": versions, **({"distribution": distribution} if distribution else {})}
    told.setdefault(name, {})[place] = run
    text = _HEAD
    for gateway in sorted(told):
        for where, run in sorted(told[gateway].items()):
            text += f"\n[{gateway}.{where}]\n"
            text += "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in run.items())
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)

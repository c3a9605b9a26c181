# SPDX-License-Identifier: Apache-2.0
"""Kinds of labs: each package of `natgauge.labs` that has a `KIND`. They are found by name.

Few modules import the package of one kind: `gateways.support` and `cli.lab` for the guest's image, and `tester.doctor`
for the XDP features of ports.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from natgauge import labs
from natgauge.inputs.input import wrong
from natgauge.labs.contract import Kind


def kinds() -> Mapping[str, Kind[Any]]:
    """Every kind of lab by the name of its package, in alphabetical order."""
    return _kinds_in(tuple(labs.__path__))


@cache
def _kinds_in(folders: tuple[str, ...]) -> Mapping[str, Kind[Any]]:
    names = sorted(module.name for module in pkgutil.iter_modules(folders))
    modules = {name: importlib.import_module(f"{labs.__name__}.{name}") for name in names}
    return {name: module.KIND for name, module in modules.items() if hasattr(module, "KIND")}


def get(name: str) -> Kind[Any]:
    """The kind of this name."""
    known = kinds()
    if name not in known:
        raise wrong("lab", f"{name!r} is unknown; choose one of {', '.join(known)}")
    return known[name]


def kept() -> Kind[Any]:
    """The kind of the labs that `natgauge lab up` makes."""
    return next(kind for kind in kinds().values() if kind.can_be_kept)

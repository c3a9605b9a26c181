# SPDX-License-Identifier: Apache-2.0
"""Modules that are put beside those of natgauge for as long as a block lasts: a kind of lab, a metric."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from natgauge.metrics import metrics
from natgauge.procedures import procedures
from natgauge.records.parameters import descriptions

#: What is remembered of the modules of a package, by the package's name.
_REMEMBERED: Final[Mapping[str, tuple[_lru_cache_wrapper[Any], ...]]] = {
    "metrics": (metrics,),
    "procedures": (procedures, descriptions),
}


@contextmanager
def added(folders: Mapping[str, Path]) -> Iterator[None]:
    """Have the modules of each folder in the package of natgauge of this name, which looks for its modules itself."""

    def forget() -> None:
        for package in folders:
            for known in _REMEMBERED.get(package, ()):
                known.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        for name, folder in folders.items():
            package = import_module(f"natgauge.{name}")
            patch.setattr(package, "__path__", [*package.__path__, str(folder)])
        forget()
        try:
            yield
        finally:
            for name, folder in folders.items():
                for file in folder.glob("*.py"):
                    sys.modules.pop(f"natgauge.{name}.{file.stem}", None)
                    vars(sys.modules[f"natgauge.{name}"]).pop(file.stem, None)
            forget()

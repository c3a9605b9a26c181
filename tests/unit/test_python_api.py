# SPDX-License-Identifier: Apache-2.0
"""What `import natgauge` offers, and that importing is cheap."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys

import pytest

import natgauge


def test_every_public_name_is_there() -> None:
    for name in natgauge.__all__:
        assert getattr(natgauge, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = natgauge.nonsense


def test_importing_loads_nothing_heavy() -> None:
    script = "import natgauge, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not set(shown.split()) & {"pydantic", "pyroute2", "rich", "click"}


def test_public_functions_say_what_they_take_and_raise() -> None:
    text = inspect.getdoc(natgauge.measure) or ""
    for name in inspect.signature(natgauge.measure).parameters:
        assert f"{name}:" in text
    assert "Raises:" in text


def test_functions_stay_functions_when_their_modules_are_loaded() -> None:
    """A submodule of the same name would replace the function."""
    for module, _ in natgauge._LAZY.values():
        if importlib.util.find_spec(module):
            importlib.import_module(module)
    assert callable(natgauge.measure)
    assert callable(natgauge.selftest)

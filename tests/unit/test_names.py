# SPDX-License-Identifier: Apache-2.0
"""A name stands for one class in the whole package, so that a reader never asks which one is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import natgauge

ROOT = Path(natgauge.__file__).parent


def public_classes(source: str) -> list[str]:
    """Names of the public classes that Python source text defines, nested ones included."""
    # To parse a module takes longer than all else; many have no class.
    tree = ast.parse(source if "class " in source else "")
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return [node.name for node in classes if not node.name.startswith("_")]


def test_classes_at_any_depth_are_seen() -> None:
    source = "class A:\n    class B: ...\n\ndef make():\n    class C: ...\n    class _Private: ...\n"
    assert sorted(public_classes(source)) == ["A", "B", "C"]


def test_no_two_public_classes_share_a_name() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.glob("**/*.py")):
        for name in public_classes(path.read_text(encoding="utf-8")):
            files[name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}

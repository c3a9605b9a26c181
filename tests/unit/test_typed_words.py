# SPDX-License-Identifier: Apache-2.0
"""Words of closed sets have the types of their sets on their whole way, from the verdict to the record."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError
from tests.plans import OneTrial

from natgauge.campaigns.journal_lines import adapter_of
from natgauge.words import LimitedBy

SOURCES = Path(__file__).parents[2] / "src" / "natgauge"
#: Types that say which words there are; a column of a table names the type of its cells instead.
TYPES = {"LimitedBy", "DeviceLimit", "SearchLimitedBy"}


def annotation(node: ast.AST, name: str) -> ast.expr | None:
    """What a field, an argument or a function of this name is annotated with."""
    match node:
        case ast.AnnAssign(target=target, annotation=kind) if ast.unparse(target) == name:
            return kind
        case ast.arg(arg=arg, annotation=kind) if arg == name:
            return kind
        case ast.FunctionDef(name=function, returns=kind) if function == name:
            return kind
    return None


def annotated(name: str) -> Iterator[tuple[str, str]]:
    """Yield where a name is annotated, and with what."""
    for path in sorted(SOURCES.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source if name in source else "")):
            if (kind := annotation(node, name)) is not None:
                yield f"{path.name}:{kind.lineno}", ast.unparse(kind)


def test_a_limit_has_its_type_wherever_it_is_handed_on() -> None:
    found = dict(annotated("limited_by"))
    assert len(found) >= 10
    assert {where: kind for where, kind in found.items() if kind.removesuffix(" | None") not in TYPES} == {}


@pytest.mark.parametrize("word", [*get_args(LimitedBy), None])
def test_a_journal_may_have_each_limit(word: str | None) -> None:
    assert adapter_of(OneTrial).validate_python(trial(word)).limited_by == word


def test_a_journal_with_another_limit_is_refused() -> None:
    with pytest.raises(ValidationError, match="limited_by"):
        adapter_of(OneTrial).validate_python(trial("the moon"))


def trial(limited_by: str | None) -> dict[str, object]:
    plan = {"connections": 1, "phase1_rate": 1.0}
    return {
        "plan": plan,
        "request": None,
        "result": None,
        "placement": "shared",
        "verdict": "FAIL",
        "reason": "lost",
        "limited_by": limited_by,
    }

# SPDX-License-Identifier: Apache-2.0
"""Ways in which a gateway logs its connections, as recipes declare them (docs/recipes.md, "Logs")."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from natgauge.gateways.processes import Process
from natgauge.gateways.recipe_model import Module, RecipeTable, RequiredPrograms, Snippet
from natgauge.log_counts import GROUPS, NEEDED


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groupindex.keys()
    except re.error as error:
        raise ValueError(f"is no regular expression of Python: {error}") from None
    if unknown := sorted(groups - GROUPS):
        raise ValueError(f"has a group {unknown[0]!r}; name groups of {', '.join(sorted(GROUPS))}")
    if missing := sorted(NEEDED - groups):
        raise ValueError(f"has no group {missing[0]!r}, without which no record belongs to a connection")
    return text


class LoggingWay(RecipeTable):
    """A way in which a gateway logs its connections; `record` has groups of `natgauge.log_counts.GROUPS`.

    `dropped` prints lines "name number", such as "log_drops 5".

    Attributes:
        records: file in the device's private directory to which records are appended, a line each.
        start: makes the gateway log; the file exists and is empty.
        process: programs that run for as long as the log, in start order.
        quiet_seconds: seconds without a new record after which there are no further ones; longer than writers wait.
    """

    records: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
    record: Annotated[str, Field(min_length=1), AfterValidator(_pattern)]
    needs: tuple[RequiredPrograms, ...] = ()
    modules: tuple[Module, ...] = ()
    start: Snippet | None = None
    check: Snippet | None = None
    stop: Snippet | None = None
    dropped: Snippet | None = None
    process: tuple[Process, ...] = ()
    quiet_seconds: Annotated[int, Field(ge=1, le=600)] = 1

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.start is None and not self.process:
            raise ValueError("needs start or a process: something must write the log")
        return self

    @property
    def starting(self) -> tuple[str, ...]:
        """Snippets that run after those of the gateway."""
        empty = f': > "$NG_WORK/{self.records}"'
        return (empty,) if self.start is None else (empty, self.start)

    @property
    def stopping(self) -> tuple[str, ...]:
        """Snippets that undo these, in the order of starting."""
        remove = f'rm -f "$NG_WORK/{self.records}"'
        return (remove,) if self.stop is None else (remove, self.stop)

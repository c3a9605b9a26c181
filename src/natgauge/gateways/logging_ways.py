# SPDX-License-Identifier: Apache-2.0
"""Ways in which a gateway logs its connections, as recipes declare them (docs/recipes.md, "Logs")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from natgauge.gateways import ipfix_lines
from natgauge.gateways.processes import Process
from natgauge.gateways.recipe_model import Module, Port, RecipeTable, RequiredPrograms, Snippet

#: Groups of the regular expression of a record.
GROUPS: Final = frozenset({"time", "microseconds", *ipfix_lines.FIELDS} - {"event"})
#: Groups that every record must have, by what it says: a connection; an outside port of an inside one (RFC 8158: BIB);
#: a block of outside ports of a subscriber.
NEEDED: Final = (
    ("source", "source_port", "destination"),
    ("source", "source_port", "outside", "outside_port"),
    ("source", "outside", "first_port", "last_port"),
)

#: Where records may arrive in the place of a file, with its UDP port (RFC 5426 section 3.3, RFC 7011 section 10.3.4).
PORTS: Final[Mapping[str, int]] = {"syslog": 514, "ipfix": 4739}


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression of Python: {error}") from None


def _ignore(text: str) -> str:
    if _compiled(text).search(""):
        raise ValueError("matches an empty line, so it would hide lines that record cannot read; name what they have")
    return text


def _pattern(text: str) -> str:
    groups = _compiled(text).groupindex.keys()
    if unknown := sorted(groups - GROUPS):
        raise ValueError(f"has a group {unknown[0]!r}; name groups of {', '.join(sorted(GROUPS))}")
    if all(set(needed) - groups for needed in NEEDED):
        ways = "; or ".join(", ".join(needed) for needed in NEEDED)
        raise ValueError(f"has too few groups for a record to belong to connections; name {ways}")
    return text


class LoggingWay(RecipeTable):
    """A way in which a gateway logs its connections; `record` has groups of `natgauge.log_counts.GROUPS`.

    `dropped` prints lines "name number", such as "log_drops 5".

    Attributes:
        records: file in the device's private directory to which records are appended, a line each; "syslog" or "ipfix":
            natgauge collects what is sent to its sockets (`natgauge.setup.log_collector`).
        record: how a line is read; None = by the elements of IPFIX.
        ignore: regular expression of lines that `record` does not match and need not, such as those of ends of
            connections; None = each such line is unreadable.
        port: UDP port of the collector on the device's loopback; None = that of `PORTS`.
        start: makes the gateway log; the file exists and is empty, or the collector listens.
        quiet_seconds: seconds without a new record after which there are no further ones; longer than writers wait.
    """

    records: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
    record: Annotated[str, Field(min_length=1), AfterValidator(_pattern)] | None = None
    ignore: Annotated[str, Field(min_length=1), AfterValidator(_ignore)] | None = None
    port: Port | None = None
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
        if (self.record is None) != (self.records == "ipfix"):
            raise ValueError('record says how a line is read; leave it out with records = "ipfix", and only there')
        if self.ignore is not None and self.record is None:
            raise ValueError('ignore names lines beside those of record; leave it out with records = "ipfix"')
        if self.port is not None and not self.collected:
            raise ValueError(f"port {self.port}: records come to a file; leave it out")
        return self

    @property
    def collected(self) -> bool:
        """Whether records are sent to natgauge's own sockets."""
        return self.records in PORTS

    @property
    def udp_port(self) -> int | None:
        """UDP port of the collector; None = records come to a file."""
        return self.port or PORTS.get(self.records)

    @property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression of a line."""
        return ipfix_lines.RECORD if self.record is None else re.compile(self.record)

    @property
    def ignored(self) -> re.Pattern[str] | None:
        """The regular expression of a line that is no record and need not be one; None = every line must be one."""
        return None if self.ignore is None else re.compile(self.ignore)

    @property
    def starting(self) -> tuple[str, ...]:
        """Snippets that run after those of the gateway."""
        return (*self._of_file(': > "$NG_WORK/{}"'), *filter(None, [self.start]))

    @property
    def stopping(self) -> tuple[str, ...]:
        """Snippets that undo these, in the order of starting."""
        return (*self._of_file('rm -f "$NG_WORK/{}"'), *filter(None, [self.stop]))

    def _of_file(self, snippet: str) -> tuple[str, ...]:
        return () if self.collected else (snippet.format(self.records),)

# SPDX-License-Identifier: Apache-2.0
"""Ways in which a gateway logs its connections, as recipes declare them (docs/recipes.md, "Logs").

Records of IPFIX (RFC 7011) and NetFlow 9 (RFC 3954) become lines, by the elements with which NATs log (RFC 8158).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from natgauge.gateways.recipe_model import Module, Port, Process, RecipeTable, RequiredPrograms, Snippet

_NAT_EVENT: Final = "ie230"
#: Names of a line's fields, and of the elements that may have them: those that the library has no name for by number.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "source": ("src_addr",),
    "source_port": ("src_port", "ie180", "ie182"),
    "destination": ("dst_addr",),
    "destination_port": ("dst_port", "ie181", "ie183"),
    "outside": ("post_nat_src_addr",),
    "outside_port": ("post_nat_src_port",),
    "first_port": ("ie361",),
    "last_port": ("ie362",),
    "event": (_NAT_EVENT,),
}
_OUTSIDE6: Final = "ie281"
_STEP, _NUMBER = "ie363", "ie364"
#: Values of natEvent that say that a session begins (RFC 8158 section 4.3): there is a record of each.
_SESSIONS: Final = (4, 6)
#: Values that say that a session, a BIB entry or a port block begins; 1 is older.
_BEGINNINGS: Final = frozenset({1, *_SESSIONS, 8, 10, 16})
#: Counters of the library, by what a message then lacks.
_LACKING: Final = {"deferred": "a set without a template", "truncated": "a message without its end"}
#: By version: octets of the header, at which of them the domain is, and the numbers of sets of templates.
_LAYOUTS: Final[Mapping[int, tuple[int, int, tuple[int, int]]]] = {9: (20, 16, (0, 1)), 10: (16, 12, (2, 3))}
#: Sets of data have at least this number; smaller ones that are none of templates are reserved.
_LEAST_OF_DATA: Final = 256
#: Octets of a message that could not be read, as an example.
_SHOWN: Final = 24
#: The field `event` of lines of sessions.
SESSION_EVENTS: Final = frozenset(map(str, _SESSIONS))
#: How a line is read.
RECORD: Final = re.compile(r"^(?P<time>\S+)" + "".join(rf"(?: {name}=(?P<{name}>\S+))?" for name in FIELDS) + "$")


class IpfixLines:
    """The lines of one exporter's messages, whose templates are known from earlier ones."""

    def __init__(self) -> None:
        from netflume import Decoder  # noqa: PLC0415 - few commands read a log

        self._decoder = Decoder(track_sequence=False, track_sampling=False)

    def learn(self, message: bytes) -> None:
        """Take the templates of a message whose records nobody wants."""
        self._decoder.decode(message, "")

    def of(self, at: float, message: bytes) -> Iterator[str]:
        """Yield a line for each beginning in a message that arrived `at` s after 1970, and for what cannot be read."""
        stats = self._decoder.stats
        before = {name: stats[name] for name in _LACKING}
        decoded = self._decoder.decode(message, "")
        unread = {why: stats[name] - before[name] for name, why in _LACKING.items()}
        if decoded is None:
            unread = {"no message of IPFIX or NetFlow": 1}
        elif not any(unread.values()):
            unread = dict.fromkeys(self._unread_sets(message), 1)
        for why, number in unread.items():
            yield from [f"{at:.6f} unreadable: {why}: {message[:_SHOWN].hex()}"] * number
        for flow in () if decoded is None else decoded.flows:
            # A record without a natEvent is of a beginning.
            if (event := flow.get(_NAT_EVENT)) is None or event in _BEGINNINGS:
                yield " ".join([f"{at:.6f}", *(_fields(flow) or [f"unreadable: a record with {', '.join(flow)}"])])

    def _unread_sets(self, message: bytes) -> Iterator[str]:
        """Yield what the library leaves out of a message and does not count."""
        header, at_domain, of_templates = _LAYOUTS.get(int.from_bytes(message[:2], "big"), (len(message), 0, (0, 0)))
        domain, at = int.from_bytes(message[at_domain : at_domain + 4], "big"), header
        while at + 4 <= len(message):
            number, length = struct.unpack_from(">HH", message, at)
            if length < 4:
                # Zeros at the end are padding.
                if at == header or any(message[at:]):
                    yield "a set without a length"
                return
            if number in of_templates and length >= 8:
                template, fields = struct.unpack_from(">HH", message, at + 4)
                if fields and self._decoder.templates.get("", domain, template)[0] is None:
                    yield "a template without its end"
            elif number not in of_templates and number < _LEAST_OF_DATA:
                yield f"a set with the reserved number {number}"
            at += length


def _fields(flow: Mapping[str, Any]) -> list[str]:
    """Return the fields of a record; empty where it names no subscriber."""
    given = {name: next((flow[each] for each in elements if each in flow), None) for name, elements in FIELDS.items()}
    if (hexadecimal := flow.get(_OUTSIDE6)) is not None:
        # The library knows no type for it.
        given["outside"] = IPv6Address(bytes.fromhex(hexadecimal))
    if given["last_port"] is None and flow.get(_STEP, 1) in (0, 1) and flow.get(_NUMBER) and "ie361" in flow:
        given["last_port"] = flow["ie361"] + flow[_NUMBER] - 1
    return [f"{name}={value}" for name, value in given.items() if value is not None] if given["source"] else []


#: Groups of the regular expression of a record.
GROUPS: Final = frozenset({"time", "microseconds", *FIELDS} - {"event"})
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
    """A way in which a gateway logs its connections; `record` has groups of `GROUPS`.

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
        return RECORD if self.record is None else re.compile(self.record)

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

# SPDX-License-Identifier: Apache-2.0
"""The record of an audit: classes of a gateway's behaviour, and a verdict with its frames for each requirement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, JsonValue

from natgauge.notes import Note
from natgauge.records.record import Record, RecordPart

AUDIT_SCHEMA: Final = "natgauge-audit-1"

#: Levels of RFC 2119. RECOMMENDED is SHOULD.
Level = Literal["MUST", "SHOULD", "MAY"]
AuditVerdict = Literal["meets", "fails", "not applicable", "not seen"]
#: Verdicts of an audit that could tell.
DECIDED: Final[frozenset[str | None]] = frozenset({"meets", "fails"})
#: Verdicts in the order in which a reader looks for them, and levels.
VERDICTS: Final[tuple[AuditVerdict, ...]] = ("fails", "not seen", "meets", "not applicable")
LEVELS: Final[tuple[Level, ...]] = ("MUST", "SHOULD", "MAY")
#: Parameters of a lab on which no verdict depends.
_OF_THE_LAB: Final = frozenset({"lab", "cores_of_devices", "cpus_of_devices", "boot_took_seconds"})


class AuditEvidence(RecordPart):
    """The frames that decided a verdict.

    Attributes:
        file: the capture in the results folder (pcapng); None = no frame decided.
        frames: a sentence for each frame of the capture, in order.
    """

    file: str | None
    frames: tuple[str, ...]


class AuditedRequirement(RecordPart):
    """The verdict on one requirement for one transport.

    Attributes:
        rfc: number of the RFC.
        requirement: name in the RFC, such as "REQ-8".
        level: level of the requirement.
        text: the requirement in few words.
        transport: transport that was examined.
        verdict: "not applicable" and "not seen" have their reason in `measured`.
        measured: what was measured, or the reason why nothing was, as a sentence without its full stop.
        declared: whether the recipe declares that the gateway meets it; None = the recipe does not say.
        evidence: the frames that decided.
    """

    rfc: Annotated[int, Field(ge=1)]
    requirement: str
    level: Level
    text: str
    transport: Literal["udp", "tcp", "icmp"]
    verdict: AuditVerdict
    measured: str
    declared: bool | None = None
    evidence: AuditEvidence

    @property
    def key(self) -> str:
        """Name with the RFC, such as "RFC4787-REQ-8"."""
        return f"RFC{self.rfc}-{self.requirement}"

    @property
    def is_decided(self) -> bool:
        """Whether the audit could tell."""
        return self.verdict in DECIDED

    @property
    def differs(self) -> bool:
        """Whether the recipe declares another verdict."""
        return self.declared is not None and self.is_decided and self.declared != (self.verdict == "meets")

    @property
    def urgency(self) -> tuple[int, int]:
        """Place among the requirements: failures first, and of these what a gateway MUST do."""
        return VERDICTS.index(self.verdict), LEVELS.index(self.level)


class BehaviourClasses(RecordPart):
    """Classes of the behaviour for one transport; None = not seen.

    Attributes:
        mapping: "endpoint-independent", "address-dependent" or "address and port-dependent".
        filtering: one of the same words.
        ports: "preserving", "overloading", "contiguous", "predictable" or "random".
        hairpinning: "external source", "internal source", "another source" or "none".
    """

    mapping: str | None
    filtering: str | None
    ports: str | None
    hairpinning: str | None


class AuditRecord(Record):
    """The record of one audit.

    Attributes:
        schema_name: name and version of this schema; the field `schema` in JSON.
        gateway: name of the recipe.
        title: title of the recipe.
        profile: set of requirements that was examined.
        classes: classes of behaviour by transport.
        requirements: verdicts, in order of RFC and requirement.
        timeouts: idle time-outs by name: the longest idle time that a mapping survived and the shortest that it did
            not, in s; None = none was seen.
        wait_seconds: longest wait for time-outs that was allowed.
        seconds: length of the audit.
        device: programs and settings of the device; None = natgauge does not control it.
        parameters: lab and choices.
        doubts: reasons to trust the verdicts less.
        results: folder of the evidence, as it was called when it was made.
    """

    schema_version: ClassVar = AUDIT_SCHEMA

    schema_name: Literal["natgauge-audit-1"] = Field(default=AUDIT_SCHEMA, alias="schema")
    gateway: str
    title: str
    profile: Literal["cgn", "home", "nat64", "all"]
    classes: dict[Literal["udp", "tcp", "icmp"], BehaviourClasses]
    requirements: Annotated[tuple[AuditedRequirement, ...], Field(min_length=1)]
    timeouts: dict[str, tuple[float | None, float | None]]
    wait_seconds: Annotated[float, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]
    device: dict[str, JsonValue] | None
    parameters: dict[str, JsonValue]
    doubts: tuple[Note, ...] = ()
    results: str | None = None

    @property
    def conditions(self) -> dict[str, JsonValue]:
        """Choices on which a verdict may depend, by name; audits that differ in one are not compared."""
        return conditions_of(self.profile, self.wait_seconds, self.parameters)

    @property
    def saw_nothing(self) -> bool:
        """Whether it could tell nothing of UDP and TCP, or of all that it examined where these are not among it.

        A gateway to which no requirement applies, such as plain forwarding, was seen.
        """
        examined = [one for one in self.requirements if one.is_decided or one.verdict == "not seen"]
        of_ports = [one for one in examined if one.transport != "icmp"] or examined
        return bool(of_ports) and not any(one.is_decided for one in of_ports)

    def failed(self, *, level: Literal["must", "should"]) -> tuple[AuditedRequirement, ...]:
        """Return the requirements that the gateway fails, of this level and of stricter ones."""
        levels = {"MUST"} if level == "must" else {"MUST", "SHOULD"}
        return tuple(one for one in self.requirements if one.verdict == "fails" and one.level in levels)


def conditions_of(profile: str, wait: float, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the choices on which a verdict may depend, by name."""
    chosen = {name: value for name, value in parameters.items() if name not in _OF_THE_LAB}
    return {"profile": profile, "wait": wait, **chosen}

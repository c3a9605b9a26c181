# SPDX-License-Identifier: Apache-2.0
"""Whether the folder of an audit agrees with itself: each verdict's sentences are of frames in its capture."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from natgauge import foreign
from natgauge.errors import UsageError
from natgauge.records.audit import AuditedRequirement, AuditRecord
from natgauge.records.store import AUDIT, EVIDENCE
from natgauge.stored.contradiction import ContradictionError, expect

#: Kind of a block with a packet, and the least octets of a block (draft-ietf-opsawg-pcapng section 3.1).
_PACKET: Final = 6
_LEAST: Final = 12


def refuse_contradictions(record: AuditRecord, folder: Path) -> None:
    """Refuse an audit that its own folder contradicts; captures that are missing contradict nothing."""
    where = folder / AUDIT
    for name, (survived, expired) in record.timeouts.items():
        if survived is not None and expired is not None and survived > expired:
            raise ContradictionError(
                where, f"{name}: the longest idle time that a mapping survived", survived, "one expired after", expired
            )
    places: dict[tuple[str, str], int] = {}
    for number, requirement in enumerate(record.requirements, start=1):
        earlier = places.setdefault((requirement.key, requirement.transport), number)
        if earlier != number:
            name = f"requirement {number}"
            said = f"{requirement.key} ({requirement.transport})"
            raise ContradictionError(where, name, said, "the same one is requirement", earlier)
        _check_frames(requirement, folder, where)


def _check_frames(requirement: AuditedRequirement, folder: Path, where: Path) -> None:
    file, sentences = requirement.evidence.file, len(requirement.evidence.frames)
    if file is None:
        return
    parts = Path(file).parts
    if parts[:1] != (EVIDENCE,) or ".." in parts:
        raise UsageError(
            f"results: {where}: {requirement.key}: evidence {file!r} is no file below {EVIDENCE}/ of the folder; it is "
            "damaged, leave it out, or measure again"
        )
    path = folder / file
    if foreign.is_there(path):
        name = f"{requirement.key} ({requirement.transport}): the number of frames"
        expect(name, sentences, _packets(path), f"{path} has", where)


def _packets(path: Path) -> int:
    octets = foreign.read_octets(path, foreign.DOCUMENT)
    at, packets = 0, 0
    while at < len(octets):
        kind, length = struct.unpack_from("<II", octets, at) if at + _LEAST <= len(octets) else (0, 0)
        if length < _LEAST or length % 4 or at + length > len(octets):
            raise UsageError(
                f"results: {path}: is no capture (octet {at}); it is damaged, leave it out, or measure again"
            )
        packets += kind == _PACKET
        at += length
    return packets

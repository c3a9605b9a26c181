# SPDX-License-Identifier: Apache-2.0
"""Programs that are none of the campaign's try the ports of its processes; certificates that nobody should accept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pytest
from distributed import Security
from distributed.comm.core import connect

from natgauge.spread import access

_SECONDS = 1.0
#: Longest time for an answer that must come: others may have all cores for that long.
_PATIENCE_SECONDS = 30.0


def remade(folder: Path, **changed: Any) -> None:
    """Put the worker's certificate of another authority into a folder, made under other conditions."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changed.items():
            patch.setattr(access, name, value)
        access.make_certificates(folder / "other")
    for name in ("worker.pem", "worker-key.pem", *(["ca.pem"] if changed else [])):
        (folder / "other" / name).replace(folder / name)


def listening(processes: Iterable[int]) -> set[tuple[str, int]]:
    """Addresses and ports at which these processes and their descendants listen."""
    every = [
        each
        for pid in processes
        for parent in [psutil.Process(pid)]
        for each in (parent, *parent.children(recursive=True))
    ]
    return {
        (socket.laddr.ip, socket.laddr.port)
        for process in every
        for socket in process.net_connections("inet")
        if socket.status == psutil.CONN_LISTEN
    }


def answered(address: tuple[str, int]) -> list[str]:
    """The ways in which a program without a certificate of the campaign gets an answer there."""
    host, port = address
    got = []
    with suppress(OSError, URLError, ValueError):
        urlopen(f"http://{host}:{port}/", timeout=_SECONDS)
        got.append("http")
    foreign = Security.temporary()
    for protocol, security in (("tcp", Security(require_encryption=False)), ("tls", foreign)):
        if greeted(f"{protocol}://{host}:{port}", security, _SECONDS):
            got.append(protocol)
    return got


def greeted(address: str, security: Security, seconds: float = _PATIENCE_SECONDS) -> bool:
    """Whether the server at an address of Dask's form accepts such a client."""

    async def greet() -> dict[str, Any]:
        comm: Any = await connect(address, timeout=seconds, **security.get_connection_args("client"))
        try:
            await comm.write({"op": "identity", "reply": True})
            return dict(await comm.read())
        finally:
            comm.abort()

    with suppress(OSError):
        return "id" in asyncio.run(asyncio.wait_for(greet(), 2 * seconds))
    return False

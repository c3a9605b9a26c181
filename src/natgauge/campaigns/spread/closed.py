# SPDX-License-Identifier: Apache-2.0
"""Dask's scheduler and worker, closed: they listen at one address of the machine, and have no HTTP port.

Dask opens an HTTP port in each of them, whose pages take no certificate, even where its dashboard is off.
"""

from __future__ import annotations

from typing import Any

from distributed import Scheduler, Security, Worker

from natgauge.campaigns.spread import Where


class ClosedScheduler(Scheduler):
    """A scheduler without HTTP pages."""

    def start_http_server(self, *_args: Any, **_options: Any) -> None:
        """Open no port."""


class ClosedWorker(Worker):
    """A worker without HTTP pages."""

    def start_http_server(self, *_args: Any, **_options: Any) -> None:
        """Open no port."""


def address_of(where: Where, security: Security) -> str:
    """Return a scheduler's address with Dask's protocol: "host:8786" becomes "tls://host:8786"."""
    return f"{_protocol(security)}://{where.scheduler}"


def listening(address: str, security: Security) -> dict[str, Any]:
    """Options of a scheduler, nanny or worker that listens at this address of the machine alone."""
    # Dask puts a port behind it.
    host = f"[{address}]" if ":" in address else address
    return {"security": security, "protocol": _protocol(security), "host": host, "dashboard": False}


def _protocol(security: Security) -> str:
    return "tls" if security.require_encryption else "tcp"

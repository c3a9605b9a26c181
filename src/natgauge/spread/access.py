# SPDX-License-Identifier: Apache-2.0
"""Who may connect: the TLS settings of scheduler, workers and clients, checked before anything listens or connects."""

from __future__ import annotations

import os
import socket
import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from distributed import Security

from natgauge.errors import HostError, UsageError
from natgauge.spread import Where
from natgauge.spread.certificates import AUTHORITY, Role, certificate_name, key_name
from natgauge.system_errors import in_a_line

T = TypeVar("T")

_SECONDS: Final = 5.0
_DOCS: Final = "docs/campaigns.md"
# Verify codes of OpenSSL, from its x509_vfy.h.
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10


def security_of(role: Role, where: Where, certificates: Path | None, *, insecure: bool) -> Security:
    """TLS settings of one role, checked: its certificate is valid, signed by the authority, and its key is private.

    Args:
        certificates: folder made by `natgauge certificates`; None = those that Dask's configuration names.
    """
    if insecure:
        if certificates is not None:
            raise UsageError("--insecure: contradicts --certificates; leave one of them out")
        return Security(require_encryption=False)
    security = Security() if certificates is None else _of_folder(role, certificates)
    if not security.require_encryption:
        raise UsageError(
            f"workers: {where.text}: no certificates are given, and without them whoever reaches a worker can run "
            "programs as root there; make them by natgauge certificates DIR, copy DIR to each machine, and add "
            f"--certificates DIR to scheduler, worker and run (see {_DOCS})"
        )
    _check(role, security)
    return security


def client_of(where: Where, certificates: Path | None, *, insecure: bool) -> Security:
    """TLS settings of a client; for workers that are started here, those of the whole cluster, made for this time."""
    if not where.workers:
        return security_of("client", where, certificates, insecure=insecure)
    if insecure or certificates is not None:
        option = "--insecure" if insecure else "--certificates"
        raise UsageError(f"{option}: belongs to --on dask://HOST:PORT; {where.text} makes its own certificates")
    security: Security = Security.temporary()
    return security


def _of_folder(role: Role, folder: Path) -> Security:
    """The settings with the files of the folder; those of other roles need not be there."""
    folder = folder.absolute()
    _refuse_writable(folder)
    files = {
        f"tls_{role}_cert": str(folder / certificate_name(role)),
        f"tls_{role}_key": str(folder / key_name(role)),
    }
    return Security(require_encryption=True, tls_ca_file=str(folder / AUTHORITY), **files)


def _check(role: Role, security: Security) -> None:
    settings = security.get_tls_config_for_role(role)
    for part, name in (("ca_file", "authority"), ("cert", f"certificate of the {role}")):
        if not settings[part]:
            raise UsageError(
                f"certificates: Dask's configuration requires encryption and names no {name}; add it there, or give "
                f"--certificates DIR (see {_DOCS})"
            )
    authority, certificate = Path(settings["ca_file"]), Path(settings["cert"])
    key = Path(settings["key"] or certificate)
    for path in (authority, certificate):
        _refuse_writable(path)
        _got(path, path.read_bytes)
    _refuse_open(key)
    if b"ENCRYPTED" in _got(key, key.read_bytes):
        raise UsageError(f"certificates: {key}: the private key has a passphrase, which nobody could type; remove it")
    try:
        _shake_hands(role, security)
    except ssl.SSLCertVerificationError as error:
        raise UsageError(f"certificates: {certificate}: {_invalid(error, authority)}") from None
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(
            f"certificates: {authority}, {certificate}, {key}: these are not a certificate of an authority, one of "
            f"this {role} and its private key, in PEM ({in_a_line(error)}); make new ones: natgauge certificates DIR"
        ) from None


def _got(path: Path, get: Callable[[], T]) -> T:
    try:
        return get()
    except OSError as error:
        raise UsageError(
            f"certificates: cannot read {path}: {error.strerror}; name the folder that natgauge certificates made, or "
            "copy it here, as the user who runs this"
        ) from None


def _refuse_writable(path: Path) -> None:
    """Refuse a file or folder that others may change: they could put their own authority there."""
    if found := _open_to_others(path, stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"certificates: {path}: other users may change it ({found}); chown it to the user who runs this, and "
            "chmod go-w it"
        )


def _refuse_open(key: Path) -> None:
    if found := _open_to_others(key, stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"certificates: {key}: other users may read this private key ({found}); make new certificates if somebody "
            "did, or chown it to the user who runs this, and chmod 600 it"
        )


def _open_to_others(path: Path, rights: int) -> str:
    """Return the mode and the owner of a file to which others have one of these rights; empty = they have none."""
    status = _got(path, path.stat)
    if not status.st_mode & rights and status.st_uid in {0, os.geteuid()}:
        return ""
    return f"mode {stat.S_IMODE(status.st_mode):04o}, user id {status.st_uid}"


def _shake_hands(role: Role, security: Security) -> None:
    """Let OpenSSL verify the role's own certificate in each use that Dask makes of it, without any network."""
    server: ssl.SSLContext = security.get_listen_args(role)["ssl_context"]
    client: ssl.SSLContext = security.get_connection_args(role)["ssl_context"]
    if role == "client":
        # Such a certificate may not be a server's.
        client.verify_mode = ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        for side in tuple(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            sides.remove(side)


def _invalid(error: ssl.SSLCertVerificationError, authority: Path) -> str:
    """Say why OpenSSL refuses a certificate, and what to do."""
    if error.verify_code == _EXPIRED:
        return "has expired; make new ones: natgauge certificates DIR"
    if error.verify_code == _NOT_YET_VALID:
        return "is not valid yet; set this machine's clock"
    return (
        f"is not of the authority {authority} ({in_a_line(error.verify_message)}); all machines need files of the same "
        "natgauge certificates"
    )


def local_address(where: Where, security: Security, role: Role) -> str:
    """Connect to the scheduler once, and return the address of this machine from which that works."""
    parts = urlsplit(f"//{where.scheduler}")
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=_SECONDS) as plain:
            address: str = plain.getsockname()[0]
            if security.require_encryption:
                _greet(plain, where, security, role)
            elif not plain.recv(1):
                raise ConnectionResetError("it ended the connection")
    except OSError as error:
        raise HostError(
            f"workers: no Dask scheduler answers at {where.text} ({in_a_line(error)}); start one there: natgauge "
            f"scheduler {where.text} --certificates DIR"
        ) from None
    return address


def _greet(plain: socket.socket, where: Where, security: Security, role: Role) -> None:
    context: ssl.SSLContext = security.get_connection_args(role)["ssl_context"]
    same = "give both files of the same natgauge certificates"
    try:
        secure = context.wrap_socket(plain)
    except ssl.SSLCertVerificationError as error:
        raise HostError(
            f"workers: the scheduler at {where.text} has a certificate that is refused "
            f"({in_a_line(error.verify_message)}); {same}"
        ) from None
    except (ssl.SSLError, ConnectionError) as error:
        raise HostError(
            f"workers: what listens at {where.text} does not encrypt ({in_a_line(error)}); start it by natgauge "
            f"scheduler {where.text} --certificates DIR"
        ) from None
    with secure:
        try:
            # Dask's servers speak first. Since TLS 1.3 a client learns only now whether its certificate was refused.
            if secure.recv(1):
                return
            reason = "it ended the connection"
        except (ssl.SSLError, ConnectionError) as error:
            reason = in_a_line(error)
    raise HostError(f"workers: the scheduler at {where.text} refuses the certificate of this {role} ({reason}); {same}")

# SPDX-License-Identifier: Apache-2.0
"""Who may connect: certificates for scheduler, workers and `natgauge run`, made and checked.

A task of Dask's is a pickled program, so whoever may connect to a worker runs programs as root there. Dask accepts
every certificate of its authority. So an authority signs these three roles and nothing else, and its key is not kept.
The TLS settings of each are checked before anything listens or connects.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import socket
import ssl
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from distributed import Security

from natgauge import file_access
from natgauge.errors import HostError, UsageError, in_a_line, unwritable
from natgauge.spread import Where

T = TypeVar("T")

Role = Literal["scheduler", "worker", "client"]
ROLES: Final[Sequence[Role]] = ("scheduler", "worker", "client")
AUTHORITY: Final = "ca.pem"
#: Certificates can be used for so long.
DAYS: Final = 365
#: A machine whose clock is slower by less than this can use them at once.
_CLOCK_SKEW: Final = dt.timedelta(days=1)
_SECONDS: Final = 5.0
_DOCS: Final = "docs/campaigns.md"
# Verify codes of OpenSSL, from its x509_vfy.h.
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10


def _certificate_name(role: Role) -> str:
    return f"{role}.pem"


def _key_name(role: Role) -> str:
    return f"{role}-key.pem"


def make_certificates(folder: Path) -> None:
    """Make an authority, and a certificate with its private key for each role, in a new folder."""
    made = _made()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise UsageError(
            f"certificates: {folder} exists already, and certificates are never overwritten; name a new folder"
        ) from None
    except OSError as error:
        raise unwritable(folder, error, what="certificates", remedy="name another folder") from error
    try:
        for name, content in made.items():
            if name in map(_key_name, ROLES):
                file_access.write_private(folder / name, content)
            else:
                (folder / name).write_bytes(content)
    except BaseException as error:
        with suppress(OSError):
            shutil.rmtree(folder)
        if isinstance(error, OSError):
            raise unwritable(folder, error, what="certificates", remedy="name another folder") from error
        raise


def _made() -> dict[str, bytes]:
    authority_key = _new_key()
    authority = _certificate("natgauge authority", authority_key, authority_key)
    made = {AUTHORITY: _pem(authority)}
    for role in ROLES:
        key = _new_key()
        certificate = _certificate(f"natgauge {role}", key, authority_key, issuer=authority, role=role)
        made[_certificate_name(role)] = _pem(certificate)
        made[_key_name(role)] = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    return made


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    signing_key: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Certificate | None = None,
    role: Role | None = None,
) -> x509.Certificate:
    """A certificate of a role, or without one that of an authority."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    signing_public = signing_key.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + dt.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=role is None, path_length=0 if role is None else None), critical=True)
        .add_extension(_key_usage(signs=role is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_public), critical=False)
    )
    if role is not None:
        # Scheduler and workers connect as well as listen. `natgauge run` only connects, and its certificate cannot be
        # used to pretend to be a scheduler.
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        uses += [] if role == "client" else [ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=True)
    return builder.sign(signing_key, hashes.SHA256())


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    unused = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, **unused)


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
    own = {f"tls_{role}_cert": str(folder / _certificate_name(role)), f"tls_{role}_key": str(folder / _key_name(role))}
    return Security(require_encryption=True, tls_ca_file=str(folder / AUTHORITY), **own)


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
    if found := _open_to_others(key, stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"certificates: {key}: other users may read this private key ({found}); make new certificates if somebody "
            "did, or chown it to the user who runs this, and chmod 600 it"
        )
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

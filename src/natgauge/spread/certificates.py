# SPDX-License-Identifier: Apache-2.0
"""Makes the certificates for connections between scheduler, workers and `natgauge run`.

A task of Dask's is a pickled program, so whoever may connect to a worker runs programs as root there. Dask accepts
every certificate of its authority. So an authority signs these three roles and nothing else, and its key is not kept.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from natgauge import files
from natgauge.errors import UsageError
from natgauge.system_errors import unwritable

Role = Literal["scheduler", "worker", "client"]
ROLES: Final[Sequence[Role]] = ("scheduler", "worker", "client")
AUTHORITY: Final = "ca.pem"
#: Certificates can be used for so long.
DAYS: Final = 365
#: A machine whose clock is slower by less than this can use them at once.
_CLOCK_SKEW: Final = dt.timedelta(days=1)


def certificate_name(role: Role) -> str:
    """Name of the file with a role's certificate."""
    return f"{role}.pem"


def key_name(role: Role) -> str:
    """Name of the file with a role's private key."""
    return f"{role}-key.pem"


def make(folder: Path) -> None:
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
            if name in map(key_name, ROLES):
                files.write_private(folder / name, content)
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
        made[certificate_name(role)] = _pem(certificate)
        made[key_name(role)] = key.private_bytes(
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

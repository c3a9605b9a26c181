# SPDX-License-Identifier: Apache-2.0
"""Builds the guest of the `vm` lab of Debian's packages, once: nothing has another source."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from natgauge.errors import HostError
from natgauge.host import capabilities
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.shell import last_words
from natgauge.labs.vm import image

#: Debian's keys, by which `debootstrap` verifies every package. Without them it would install whatever a mirror, or
#: anybody on the way to it, sends.
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Octets that building takes, for a short time.
_ROOM: Final = 2 * 1024**3
_PACK_SECONDS: Final = 300


def build(notify: Callable[[str], None]) -> image.Image:
    """Build the guest, unless it exists."""
    with suppress(HostError):
        return image.find()
    capabilities.require("building a guest", "CAP_SYS_ADMIN")
    for package, found in (
        ("debootstrap", shutil.which("debootstrap") is not None),
        ("gpgv", shutil.which("gpgv") is not None),
        ("debian-archive-keyring", KEYRING.is_file()),
    ):
        if not found:
            raise HostError(f"{package}: is not installed here; run: apt-get install {package}")
    place = image.folder()
    place.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place.parent).free
    if free < _ROOM:
        raise HostError(
            f"guest: {_ROOM >> 20} MiB are needed in {place.parent}, {free >> 20} are free; set {image.VARIABLE}"
        )
    lock = Lock("guest-image", "building a guest")
    lock.take()
    try:
        for left in place.parent.glob("building-*"):
            shutil.rmtree(left)
        # No TemporaryDirectory: where it may not delete something, it changes modes, also of what links lead to.
        work = Path(tempfile.mkdtemp(prefix="building-", dir=place.parent))
        try:
            _build(work, place, notify)
        finally:
            # Debootstrap's mounts went with its mount namespace.
            shutil.rmtree(work)
    finally:
        lock.release()
    return image.find()


def _build(work: Path, place: Path, notify: Callable[[str], None]) -> None:
    root = work / "root"
    notify(f"installing {len(image.PACKAGES)} packages of {image.DISTRIBUTION} and what they need into {root}")
    mirror = os.environ.get("DEBIAN_MIRROR")
    trusted = ["--force-check-gpg", f"--keyring={KEYRING}"]
    wanted = [
        "--variant=minbase",
        f"--include={','.join(image.PACKAGES)}",
        image.RELEASE,
        str(root),
        *([mirror] if mirror else []),
    ]
    with (work / "log").open("w+b") as log:
        _run(["debootstrap", *trusted, *wanted], log, None)
        notify("packing kernel, modules and programs")
        for name in ("pack", "init"):
            shutil.copy(image.SCRIPTS / f"{name}.sh", root / f"natgauge-{name}")
        _run(["chroot", str(root), "/bin/sh", "/natgauge-pack"], log, _PACK_SECONDS)
    place.mkdir(exist_ok=True)
    # The last file shows that all are complete.
    for name in ("vmlinuz", "initrd", "kernel"):
        shutil.move(root / "out" / name, place / name)


def _run(command: list[str], log: BinaryIO, seconds: int | None) -> None:
    """Run a program; in a mount and PID namespace of its own, so nothing it mounts or starts stays."""
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *command]
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C",
        "DEBIAN_FRONTEND": "noninteractive",
        **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
    }
    try:
        ended = subprocess.run(
            isolated,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"{command[0]}: did not end within {seconds} s") from None
    if ended.returncode:
        log.seek(0)
        said = last_words(log.read().decode(errors="replace"))
        raise HostError(f"guest: {command[0]} failed: {said or 'nothing was said'}")

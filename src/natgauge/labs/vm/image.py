# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel and file system, which `natgauge.guest_building` made of Debian's packages."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from natgauge.errors import HostError

#: Where built guests are kept; $NATGAUGE_GUESTS names another folder.
CACHE: Final = Path("/var/cache/natgauge/guests")
VARIABLE: Final = "NATGAUGE_GUESTS"
RELEASE: Final = "bookworm"
#: Distribution of every guest.
DISTRIBUTION: Final = f"Debian {RELEASE}"
#: What a guest is built of; the modules of Jool are compiled for its kernel by DKMS.
PACKAGES: Final = (
    "linux-image-amd64", "linux-headers-amd64", "dkms", "jool-dkms", "jool-tools", "openssh-server", "iproute2", "kmod",
    "nftables", "iptables", "conntrack", "tayga", "ethtool", "busybox-static", "initramfs-tools", "cpio",
)  # fmt: skip
#: Folder of the scripts that pack the guest and begin it.
SCRIPTS: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Image:
    """A guest that can be booted."""

    kernel: Path
    initrd: Path
    release: str


def modules() -> frozenset[str]:
    """Return the modules of a guest, without the modules that these depend on."""
    listed = re.search(r"^modules='([^']*)'", (SCRIPTS / "pack.sh").read_text(), re.MULTILINE)
    return frozenset(listed[1].split()) if listed else frozenset()


def folder() -> Path:
    """Return the folder of this natgauge's guest; its name is a hash of packages and packing scripts."""
    digest = hashlib.sha256(repr((RELEASE, PACKAGES)).encode())
    for name in ("pack.sh", "init.sh"):
        digest.update((SCRIPTS / name).read_bytes())
    return Path(os.environ.get(VARIABLE) or CACHE) / digest.hexdigest()[:16]


def find() -> Image:
    """The guest that was built."""
    place = folder()
    try:
        release = (place / "kernel").read_text().strip()
    except OSError:
        raise HostError("guest: none was built yet; run: natgauge lab guest (once; some minutes)") from None
    return Image(place / "vmlinuz", place / "initrd", release)

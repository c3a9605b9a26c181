# SPDX-License-Identifier: Apache-2.0
"""Lets hatchling carry what is made: types, the Rust binaries, the man page, the licences of what is linked in.

`pip install .` and `pip install -e .` both come through here, so `natgauge-engine` always stands beside `natgauge`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What a user needs, and what only the tests of a checkout need.
PRODUCT: Final = ("natgauge-engine", "natgauge-front", "natgauge-softwire")
TESTS_ONLY: Final = ("natgauge-calibrator",)

#: Libraries that every Linux with the GNU C library has (PEP 600 and what auditwheel makes of it).
_EVERYWHERE: Final = re.compile(r"(libc|libm|libgcc_s|libpthread|libdl|librt)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")


class Extras(BuildHookInterface[Any]):
    """Runs before hatchling packs the wheel (hatchling's custom build hook)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build types, binaries and texts, add them to the wheel, and name the platform that they need.

        Raises:
            FileNotFoundError: cargo is not on PATH.
            subprocess.CalledProcessError: a build failed; it has said why.
            ValueError: a binary needs a library that other machines lack.
        """
        # By import and not by PYTHONPATH: pip hides the folders of what is installed in editable mode.
        sys.path[:0] = [self.root, str(Path(self.root) / "src")]
        add_types(Path(self.root), build_data)
        editable = version == "editable"
        names = PRODUCT + TESTS_ONLY if editable else PRODUCT
        chosen = [f"--bin={name}" for name in names]
        subprocess.run(["cargo", "build", "--release", "--locked", *chosen], cwd=self.root, check=True)
        target = self._target()
        binaries = [target / "release" / name for name in names]
        build_data["shared_scripts"] = {str(path): path.name for path in binaries}
        build_data["pure_python"] = False
        # The binaries know nothing of Python, so one wheel serves every Python 3 of this platform.
        build_data["tag"] = f"py3-none-{platform_tag(map(linked, binaries))}"
        if not editable:
            build_data["shared_data"] = self._texts(target / "wheel")
            build_data["force_include"] |= self._commit(target / "wheel")

    def _target(self) -> Path:
        """Where cargo builds; CARGO_TARGET_DIR and cargo's own settings may have moved it."""
        command = ["cargo", "metadata", "--format-version=1", "--locked", "--no-deps"]
        output = subprocess.run(command, cwd=self.root, check=True, stdout=subprocess.PIPE).stdout
        return Path(json.loads(output)["target_directory"])

    def _commit(self, folder: Path) -> dict[str, str]:
        """Write what natgauge says of its version besides the release; returns the file and its place in the wheel."""
        from natgauge.version import COMMIT_FILE, commit_of  # noqa: PLC0415 - found from here on

        file = folder / COMMIT_FILE
        file.write_text(commit_of(Path(self.root)), encoding="utf-8")
        return {str(file): f"natgauge/{COMMIT_FILE}"}

    def _texts(self, folder: Path) -> dict[str, str]:
        """Write man page and licences; returns each file and its place below the prefix."""
        from tools import man_page, third_party  # noqa: PLC0415 - found from here on

        folder.mkdir(parents=True, exist_ok=True)
        page, licences = folder / "natgauge.1", folder / "THIRD-PARTY.txt"
        page.write_text(man_page.page(self.metadata.version), encoding="utf-8")
        parts = [*third_party.linked_libraries(), *third_party.linked_crates()]
        licences.write_text(third_party.document(list(third_party.present(parts))), encoding="utf-8")
        return {str(page): "share/man/man1/natgauge.1", str(licences): "share/doc/natgauge/THIRD-PARTY.txt"}


def add_types(root: Path, build_data: dict[str, Any]) -> None:
    """Generate types, of the engine's requests and results and of keywords: hatchling leaves out what git ignores."""
    from tools import agreement_types  # noqa: PLC0415 - hatchling finds it only now

    made = [agreement_types.write(root)]
    # The descriptions of inputs need the types of requests.
    from tools import described  # noqa: PLC0415

    made.append(described.write_keywords(root))
    build_data["artifacts"] += [f"/{path.relative_to(root)}" for path in made]


def linked(binary: Path) -> str:
    """What a binary wants from the machine that runs it, in the words of objdump."""
    command = ["objdump", "--private-headers", str(binary)]
    done = subprocess.run(command, env=os.environ | {"LC_ALL": "C"}, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def platform_tag(headers: Iterable[str]) -> str:
    """The oldest platform that binaries run on (PEP 600), told by the newest symbol of the C library that they use.

    Args:
        headers: what `linked` says of each.

    Returns:
        "manylinux_2_34_x86_64" for example; what Python calls this machine when no binary uses the GNU C library.

    Raises:
        ValueError: a binary needs a library that other machines lack.
    """
    text = "\n".join(headers)
    for name in re.findall(r"^\s*NEEDED\s+(\S+)$", text, re.MULTILINE):
        if not _EVERYWHERE.fullmatch(name):
            raise ValueError(f"a binary needs {name}, which other machines may lack: link it statically")
    versions = [(int(major), int(minor)) for major, minor in re.findall(r"\bGLIBC_(\d+)\.(\d+)", text)]
    if not versions:
        return sysconfig.get_platform().replace("-", "_").replace(".", "_")
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{platform.machine()}"

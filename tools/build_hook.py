# SPDX-License-Identifier: Apache-2.0
"""Lets hatchling carry the Rust binaries: builds them with cargo and puts them into the wheel's scripts.

`pip install .` and `pip install -e .` both come through here, so `natgauge-engine` always stands beside `natgauge`.
"""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BINARIES = ("natgauge-engine", "natgauge-front", "natgauge-calibrator")


class RustBinaries(BuildHookInterface[Any]):
    """Runs before hatchling packs the wheel (hatchling's custom build hook)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Build the binaries and add them to the wheel.

        Raises:
            FileNotFoundError: cargo is not on PATH.
            subprocess.CalledProcessError: the build failed; cargo has said why.
        """
        root = Path(self.root)
        subprocess.run(["cargo", "build", "--release", "--locked"], cwd=root, check=True)
        built = root / "target" / "release"
        build_data["shared_scripts"] = {str(built / name): name for name in BINARIES}
        build_data["pure_python"] = False
        # The binaries link libc only, so one wheel serves every Python 3 of this platform.
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")

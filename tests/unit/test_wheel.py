# SPDX-License-Identifier: Apache-2.0
"""What the wheel says of itself is true: platform, version, licences."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.unit import engine_check
from tools import agreement_types, build_hook, described, third_party

import natgauge

ROOT = Path(__file__).parents[2]

HEADERS = """
Dynamic Section:
  NEEDED               libc.so.6
  NEEDED               ld-linux-x86-64.so.2
Version References:
  required from libc.so.6:
    0x06969194 0x00 20 GLIBC_2.{minor}
    0x09691a75 0x00 19 GLIBC_2.2.5
"""

#: One of them must be offered for what is linked into binaries under the Apache licence.
WELCOME = ("MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "Unicode-3.0")


def test_the_newest_symbol_of_all_binaries_decides_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert build_hook.platform_tag([HEADERS.format(minor=9), HEADERS.format(minor=34)]) == "manylinux_2_34_riscv64"


def test_a_library_that_other_machines_lack_is_refused() -> None:
    with pytest.raises(ValueError, match=r"libelf\.so\.1"):
        build_hook.platform_tag([HEADERS.format(minor=9), "  NEEDED               libelf.so.1\n"])


def test_without_the_gnu_c_library_the_platform_is_this_machine() -> None:
    assert build_hook.platform_tag(["no dynamic section"]).startswith("linux_")


@pytest.mark.parametrize("name", build_hook.PRODUCT)
def test_our_binaries_need_nothing_but_the_c_library(name: str) -> None:
    assert build_hook.platform_tag([build_hook.linked(engine_check.built(name))]).startswith("manylinux_2_")


def test_the_wheel_has_the_generated_types_which_git_ignores() -> None:
    made: dict[str, Any] = {"artifacts": []}
    build_hook.add_types(ROOT, made)
    files = [str(agreement_types.OUTPUT), str(described.KEYWORDS)]
    assert made == {"artifacts": [f"/{file}" for file in files]}
    for file in files:
        ignored = subprocess.run(["git", "check-ignore", "-q", file], cwd=ROOT, check=False)
        assert ignored.returncode in {0, 128}, "0: ignored; 128: these sources are no clone"


def test_there_is_one_version() -> None:
    engine = tomllib.loads((ROOT / "engine" / "Cargo.toml").read_text())["package"]["version"]
    assert engine == natgauge.__version__
    assert engine_check.version() == f"natgauge-engine {engine}\n"


def test_each_crate_linked_in_has_its_licence_text_and_one_that_is_welcome() -> None:
    crates = third_party.linked_crates()
    assert [crate.name for crate in crates if not crate.texts] == []
    assert [crate.name for crate in crates if not any(each in crate.licence for each in WELCOME)] == []
    names = {crate.name.split()[0] for crate in crates}
    assert {"clap", "libbpf-rs", "libbpf-sys", "serde_json"} <= names
    # Ourselves, a macro, and what is used by the build script only.
    assert names & {"natgauge-engine", "serde_derive", "libbpf-cargo"} == set()


def test_the_duty_of_libelf_is_told_with_its_licence() -> None:
    text = third_party.document(third_party.linked_libraries())
    assert "LIBBPF_SYS_LIBRARY_PATH" in text
    assert "apt-get source elfutils=" in text
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text


def test_a_text_that_several_share_is_there_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("Do what you like.\n")
    (tmp_path / "same").write_text("Do what you like.")
    parts = [third_party.Part(f"{name} 1", "MIT", [tmp_path / name]) for name in ("one", "same")]
    text = third_party.document(parts)
    assert text.count("Do what you like.") == 1
    assert "For one 1, same 1:" in text


def test_a_text_that_is_not_on_this_machine_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (part,) = third_party.present([third_party.Part("libelf 1", "LGPL-3.0-or-later", [tmp_path / "GPL-3"])])
    assert part.texts == []
    assert f"libelf 1: no {tmp_path / 'GPL-3'}" in capsys.readouterr().err

# SPDX-License-Identifier: Apache-2.0
"""Tells what is linked into the Rust binaries, and under which licences, with their texts.

The crates are told by cargo, with the licence files that they carry; the C libraries by the Debian packages that hold
them (tools/debian-packages.txt).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[1]
_LICENCE_FILES: Final = ("LICEN[CS]E*", "COPYING*", "NOTICE*", "UNLICENSE*", "libbpf/LICENSE*")
_COMMON_LICENCES: Final = Path("/usr/share/common-licenses")

_HEAD: Final = """\
natgauge itself is under the Apache License 2.0 (LICENSE), its frame programs under BSD-2-Clause or GPL-2.0 at your
choice (bpf/LICENSES). Its binaries hold what is listed here, linked in statically; the licence texts follow the list.

libelf is part of elfutils and used under the GNU Lesser General Public License, version 3 or later. You may change it
and link natgauge with what you made: put your libelf.a in the place of the installed one, or name its folder in
LIBBPF_SYS_LIBRARY_PATH, and run `make clean wheel` in natgauge's source, which makes every object file anew.
The source of the libelf that is linked in here: `apt-get source elfutils={version}` on Debian.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """Something linked in.

    Attributes:
        name: name and version.
        licence: SPDX expression.
        texts: its licence files.
    """

    name: str
    licence: str
    texts: Sequence[Path]


def linked_crates() -> list[Part]:
    """The crates in the binaries, by name. Those that only work while building (build scripts, macros) are not.

    Raises:
        subprocess.CalledProcessError: cargo cannot tell; it has said why.
    """
    target = _output("rustc", "-vV").partition("host: ")[2].split()[0]
    output = _output("cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}")
    metadata = json.loads(output)
    crates = {crate["id"]: crate for crate in metadata["packages"]}
    reached = _reach(metadata["resolve"], crates, metadata["workspace_members"])
    found = sorted((crates[each] for each in reached), key=lambda crate: str(crate["name"]))
    return [_crate_part(crate) for crate in found]


def _reach(resolve: Mapping[str, Any], crates: Mapping[str, Any], members: Sequence[str]) -> set[str]:
    """What the workspace's members need at run time; without themselves."""
    needs = {node["id"]: node["deps"] for node in resolve["nodes"]}
    reached, left = set(members), list(members)
    while left:
        for need in needs[left.pop()]:
            each, kinds = need["pkg"], {kind["kind"] for kind in need["dep_kinds"]}
            if None in kinds and each not in reached and not _is_macro(crates[each]):
                reached.add(each)
                left.append(each)
    return reached - set(members)


def _is_macro(crate: Mapping[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in crate["targets"])


def _crate_part(crate: Mapping[str, Any]) -> Part:
    folder = Path(crate["manifest_path"]).parent
    texts = sorted({path for pattern in _LICENCE_FILES for path in folder.glob(pattern)})
    return Part(f"{crate['name']} {crate['version']}", str(crate["license"]), texts)


def linked_libraries() -> list[Part]:
    """The libraries that are no crates: two of Debian's, and Rust's own (its Apache licence is natgauge's, too)."""
    elf, z = _debian_version("libelf-dev"), _debian_version("zlib1g-dev")
    documents = Path("/usr/share/doc")
    lesser = [documents / "libelf-dev" / "copyright", *(_COMMON_LICENCES / name for name in ("LGPL-3", "GPL-3"))]
    rust = _output("rustc", "--version").split()[1]
    return [
        Part(f"libelf (elfutils {elf})", "LGPL-3.0-or-later OR GPL-2.0-or-later", lesser),
        Part(f"zlib {z}", "Zlib", [documents / "zlib1g-dev" / "copyright"]),
        Part(f"Rust's standard library {rust}", "MIT OR Apache-2.0", []),
    ]


def _debian_version(package: str) -> str:
    """Of the package's source; "of unknown version" where that is not Debian's."""
    try:
        return _output("dpkg-query", "-W", "-f", "${source:Version}", package)
    except (OSError, subprocess.CalledProcessError):
        return "of unknown version"


def document(parts: Sequence[Part]) -> str:
    """The list of all parts, then each different licence text once, with who it is for.

    Raises:
        OSError: a licence text is not on this machine.
    """
    wanted: dict[str, list[str]] = {}
    for part in parts:
        for path in part.texts:
            wanted.setdefault(path.read_text(encoding="utf-8").strip(), []).append(part.name)
    width = max(len(part.name) for part in parts)
    listed = (f"  {part.name:<{width}}  {part.licence}" for part in parts)
    texts = (f"{'=' * 80}\nFor {', '.join(dict.fromkeys(names))}:\n\n{text}" for text, names in wanted.items())
    head = _HEAD.format(version=_debian_version("libelf-dev"))
    return "\n\n".join([head.rstrip(), "\n".join(listed), *texts]) + "\n"


def present(parts: Sequence[Part]) -> Iterator[Part]:
    """The same parts with those licence texts only that are on this machine; what is amiss is told."""
    for part in parts:
        for path in part.texts:
            if not path.exists():
                print(f"third_party.py: {part.name}: no {path}; do not hand on this wheel", file=sys.stderr)
        yield Part(part.name, part.licence, [path for path in part.texts if path.exists()])


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout

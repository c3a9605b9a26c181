# SPDX-License-Identifier: Apache-2.0
"""Which of several programs of one name natgauge and a device start, and what the version of one that ran is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.cli import run
from natgauge.errors import HostError, UsageError
from natgauge.gateways.recipe import available, load
from natgauge.host import programs
from natgauge.host.programs import find_of_devices


def _program(directory: Path, name: str = "natgauge-test-program") -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    beside, named, path = tmp_path / "bin", tmp_path / "named", tmp_path / "path"
    named.mkdir()
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv(programs.VARIABLE, str(named))
    monkeypatch.setenv("PATH", str(path))
    # What the user names comes first.
    return named, beside, path


def test_the_nearest_place_wins(places: tuple[Path, Path, Path]) -> None:
    for place in reversed(places):
        expected = _program(place)
        assert programs.find("natgauge-test-program") == expected


def test_a_file_that_cannot_be_run_is_passed_over(places: tuple[Path, Path, Path]) -> None:
    _program(places[0]).chmod(0o644)
    expected = _program(places[1])
    assert programs.find("natgauge-test-program") == expected


@pytest.mark.usefixtures("places")
def test_a_missing_program_names_what_mends_it(golden: Golden) -> None:
    with golden.raises(HostError):
        programs.find("natgauge-test-program")


@pytest.mark.usefixtures("places")
def test_devices_find_what_a_user_built_before_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = _program(tmp_path / "own", "sh"), _program(tmp_path / "other", "natgauge-test-program")
    assert shutil.which("sh", path=programs.search_path()) not in (None, str(own))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(programs.PATH_VARIABLE, f"own::{other.parent}")
    path = programs.search_path()
    assert shutil.which("sh", path=path) == str(own)
    assert shutil.which("natgauge-test-program", path=path) == str(other)
    assert all(Path(folder).is_absolute() for folder in path.split(":")), "snippets run in another folder"


def test_a_folder_that_is_none_never_lets_another_program_or_gateway_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = _program(tmp_path / "built", "natgauge-engine")
    for variable, use in (
        (programs.VARIABLE, lambda: programs.find("natgauge-engine")),
        (programs.PATH_VARIABLE, lambda: find_of_devices("sh")),
        ("NATGAUGE_GATEWAYS", available),
    ):
        with monkeypatch.context() as patch:
            for wrong in (tmp_path / "bilt", built):
                patch.setenv(variable, f"{built.parent}:{wrong}")
                with pytest.raises(UsageError, match=f"^{variable}: {wrong} is no folder; correct it, or unset"):
                    use()
            # Undoing goes on, and so does what asks for nothing there.
            assert programs.search_path()
            assert run(["--help"]) == 0
            patch.setenv(variable, f":{built.parent}:")
            use()


#: What the snippet needs besides the program and dpkg-query.
_TOOLS = ("sh", "readlink", "head", "sed", "cut", "sha256sum")
#: Owns every file in folders that end so, and knows one version.
_DPKG = """#!/bin/sh
case "$1 $2" in
"-S "*/packaged/*) echo "mine:amd64: $2" ;;
"-W "*) printf 1.2-3 ;;
*) exit 1 ;;
esac
"""


def version(path: Path, said: str, *, dpkg: bool, recipe: str = "tayga-siit") -> str:
    """The version of a tayga at `path` that prints this."""
    folder = path.parent / "bin"
    folder.mkdir(parents=True)
    for name in _TOOLS:
        (folder / name).symlink_to(shutil.which(name) or name)
    path.mkdir()
    for file, text in ((path / "tayga", f'#!/bin/sh\necho "{said}"\n'), (folder / "dpkg-query", _DPKG)):
        if file.name == "tayga" or dpkg:
            file.write_text(text)
            file.chmod(0o755)
    found = load(recipe)
    pieces = [piece for piece in found.verbs.version if "PROGRAM" in piece]
    run = subprocess.run(
        ["/bin/sh", "-euc", "\n".join(pieces)],
        env={**found.environment, "PATH": f"{path}:{folder}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


@pytest.mark.parametrize(
    ("folder", "said", "dpkg", "expected"),
    [
        ("own", "tayga 0.9.6", True, "tayga 0.9.6"),
        ("packaged", "tayga 0.9.6", True, "tayga 0.9.6"),
        ("packaged", "unknown version", True, "tayga 1.2-3"),
        ("packaged", "Usage:\n\tTAYGA version 0.9.6", True, "tayga 0.9.6"),
        ("own", "unknown version", True, "tayga, SHA-256 of the program "),
        ("packaged", "unknown version", False, "tayga, SHA-256 of the program "),
    ],
)
def test_the_program_that_runs_says_its_version(
    folder: str, said: str, expected: str, tmp_path: Path, *, dpkg: bool
) -> None:
    assert version(tmp_path / folder, said, dpkg=dpkg).startswith(expected)

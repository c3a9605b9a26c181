# SPDX-License-Identifier: Apache-2.0
"""The lists of pinned Python packages: they fit pyproject.toml, on every Python, and nothing else is installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
PYTHONS = ("3.11.2", "3.12.0", "3.13.0", "3.14.0")
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; (?P<marker>.*?))? \\\n(?P<rest>(?: .*\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Pin:
    """A line of a list.

    Attributes:
        name: canonical name.
        version: the only one.
        marker: where it is installed; None = everywhere.
        rest: hashes, and who needs it.
    """

    name: str
    version: str
    marker: Marker | None
    rest: str

    def wanted(self, python: str) -> bool:
        """Whether it is installed on this Python."""
        return self.marker is None or self.marker.evaluate(environment(python))


def environment(python: str) -> dict[str, str]:
    """What markers see on this Python."""
    found = {name: str(value) for name, value in default_environment().items()}
    return found | {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}


def pins(name: str) -> list[Pin]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    found = [
        Pin(
            canonicalize_name(each["name"]),
            each["version"],
            Marker(each["marker"]) if each["marker"] else None,
            each[4],
        )
        for each in PIN.finditer(text)
    ]
    assert len(found) == len(re.findall(r"^[^\s#]", text, re.MULTILINE))
    return found


def asked(*lists: list[str]) -> Iterator[Requirement]:
    """What these lists of pyproject.toml ask for, with the extras that they name."""
    for each in (Requirement(text) for texts in lists for text in texts):
        if each.name == "natgauge":
            yield from asked(*(EXTRAS[extra] for extra in sorted(each.extras)))
        else:
            yield each


def wanted(name: str) -> list[Requirement]:
    """What a list has to provide."""
    if name == "lock":
        return [*asked(PROJECT["dependency-groups"]["lock"])]
    return [*asked(PROJECT["project"]["dependencies"], EXTRAS[name], *([_build()] if name == "dev" else []))]


def _build() -> list[str]:
    return [str(text) for text in PROJECT["build-system"]["requires"]]


@pytest.mark.parametrize("name", ["dev", "site", "lock"])
def test_each_python_gets_one_version_of_each_package_that_pyproject_asks_for(name: str) -> None:
    for python in PYTHONS:
        chosen: dict[str, str] = {}
        for pin in pins(name):
            if pin.wanted(python):
                assert chosen.setdefault(pin.name, pin.version) == pin.version, python
        unfit = [
            f"{each} ({chosen.get(canonicalize_name(each.name))})"
            for each in wanted(name)
            if not each.specifier.contains(chosen.get(canonicalize_name(each.name), "0"), prereleases=True)
        ]
        assert unfit == [], f"{python}: make lock"


@pytest.mark.parametrize("name", ["dev", "site", "lock"])
def test_nothing_is_pinned_that_pyproject_no_longer_asks_for(name: str) -> None:
    own = {pin.name for pin in pins(name) if re.search(r"\bnatgauge \(pyproject\.toml(:lock)?\)", pin.rest)}
    assert own == {canonicalize_name(each.name) for each in wanted(name)}, "make lock"


@pytest.mark.parametrize("name", ["dev", "site", "lock"])
def test_each_pinned_package_has_its_hashes(name: str) -> None:
    assert [pin.name for pin in pins(name) if not re.search(r"--hash=sha256:[0-9a-f]{64}", pin.rest)] == []


def test_the_site_is_made_with_the_packages_that_its_tests_see() -> None:
    assert {(pin.name, pin.version) for pin in pins("site")} <= {(pin.name, pin.version) for pin in pins("dev")}


def needs_of(name: str, pinned: str) -> list[Requirement]:
    """What a package of this environment needs in it; nothing where it is absent, or of another version."""
    try:
        if version(name) != pinned:
            return []
    except PackageNotFoundError:
        return []
    every = map(Requirement, requires(name) or [])
    return [need for need in every if need.marker is None or need.marker.evaluate({"extra": ""})]


def test_each_package_finds_what_it_needs_itself() -> None:
    here = str(default_environment()["python_full_version"])
    found = {pin.name: pin.version for pin in pins("dev") if pin.wanted(here)}
    missing = [
        f"{name}: {need}"
        for name, pinned in found.items()
        for need in needs_of(name, pinned)
        if not need.specifier.contains(found.get(canonicalize_name(need.name), "0"), prereleases=True)
    ]
    assert missing == []
    assert any(needs_of(name, pinned) for name, pinned in found.items()), "make setup"


def test_the_makefile_installs_pinned_packages_and_natgauge_and_nothing_else() -> None:
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    uses = [line.strip() for line in text.splitlines() if re.search(r"pip |\$\(PIP\)|INSTALL_LOCKED", line)]
    installs = [line for line in uses if re.search(r"\b(install|wheel)\b", line)]
    assert len(installs) >= 3
    locked = {"--require-hashes", "--only-binary", ":all:"}
    own = {"--no-deps", "--no-build-isolation"}
    assert [line for line in installs if not (locked <= {*line.split()} or own <= {*line.split()})] == []
    assert "pip install" not in text.replace("$(PIP) install", "")

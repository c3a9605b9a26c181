# SPDX-License-Identifier: Apache-2.0
"""What the documentation tells people to type exists, and its links lead somewhere."""

from __future__ import annotations

import itertools
import pkgutil
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.test_architecture import MAY_IMPORT

from natgauge import procedures
from natgauge.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("records/*.md"), *ROOT.glob("benchmarks/**/*.md")}
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SHELL = {"sh", "console"}
GATEWAYS = {recipe.stem for recipe in (ROOT / "src" / "natgauge" / "gateways" / "recipes").glob("*.toml")}


def without_fences(text: str) -> str:
    return FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    """GitHub's: lower case, spaces to hyphens, other punctuation gone."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in HEADING.findall(text)}


def commands(text: str) -> list[list[str]]:
    """Words of every `make` and `natgauge` command in shell blocks and in backticks."""
    lines = [line for kind, block in FENCE.findall(text) if kind in SHELL for line in block.splitlines()]
    # In a console block only lines with a prompt are typed; output may begin with any word.
    typed = [line.strip().removeprefix("# ").removeprefix("$ ") for line in lines]
    typed += INLINE.findall(without_fences(text))
    found = []
    for line in typed:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        words = words[1:] if words[:1] == ["sudo"] else words
        if words and (words[0] == "make" or Path(words[0]).name == "natgauge"):
            found.append(words)
    return found


@cache
def help_of(*subcommands: str) -> str | None:
    """The help text of a subcommand, None when there is no such one."""
    answer = CliRunner().invoke(app, [*subcommands, "--help"])
    return answer.output if answer.exit_code == 0 else None


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def unknown_names(words: list[str]) -> list[str]:
    """Metrics and gateways named in a `natgauge measure` command that do not exist."""
    if words[1:2] != ["measure"] or len(words) < 3:
        return []
    metric = [] if words[2] in {*procedures.procedures(), "METRIC"} else [words[2]]
    named = [after for option, after in itertools.pairwise(words) if option == "--gateway"]
    return metric + [name for name in named if name not in GATEWAYS | {"NAME"} and "/" not in name]


def test_there_is_documentation() -> None:
    assert {"README.md", "METHOD.md", "CHANGELOG.md", "docs/architecture.md", "docs/glossary.md"} <= set(NAMES)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    broken = []
    for link in LINK.findall(without_fences(text)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_make_targets_exist(page: Path) -> None:
    asked = {
        word
        for words in commands(page.read_text())
        if words[0] == "make"
        for word in words[1:]
        if "=" not in word and not word.startswith("-")
    }
    assert asked <= targets()


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_natgauge_commands_and_options_exist(page: Path) -> None:
    unknown = []
    for words in commands(page.read_text()):
        if words[0] == "make":
            continue
        rest = ["throughput" if word == "METRIC" else word for word in words[1:]]
        chosen: list[str] = []
        while (
            rest
            and re.fullmatch(r"[a-z0-9-]+", rest[0])
            and not rest[0].startswith("-")
            and help_of(*chosen, rest[0]) is not None
        ):
            chosen.append(rest.pop(0))
        told = help_of(*chosen)
        subcommand_missing = not chosen and bool(rest) and not rest[0].startswith("-")
        options = {word.partition("=")[0] for word in rest if word.startswith("--")}
        if told is None or subcommand_missing or not all(re.search(rf"{option}\b", told) for option in options):
            unknown.append(" ".join(words))
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_metrics_and_gateways_exist(page: Path) -> None:
    assert [name for words in commands(page.read_text()) for name in unknown_names(words)] == []


def test_every_gateway_is_in_the_catalogue() -> None:
    page = (ROOT / "docs" / "gateways.md").read_text().split("## Catalogue", 1)[1].split("\n## ", 1)[0]
    assert {name for name in GATEWAYS if f"`{name}`" not in page} == set()


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
TRIAL = (ROOT / "docs" / "trial.md").read_text()
#: Folders below which these pages name files without the folder.
SOURCES = (ROOT, *(ROOT / name for name in ("src/natgauge", "src/natgauge/campaigns", "engine", "engine/src", "bpf")))


def packages_of_architecture() -> list[str]:
    """Packages and modules of natgauge in the order of the table, from the top down."""
    table = ARCHITECTURE.split("| Where | What |\n", 1)[1].split("\n\n", 1)[0]
    cells = [line.split("|")[1] for line in table.splitlines()[1:]]
    return [name.removesuffix("/").removesuffix(".py") for cell in cells for name in INLINE.findall(cell)]


def test_the_table_of_packages_names_all_of_them_each_above_what_it_imports() -> None:
    order = packages_of_architecture()
    assert sorted(order) == sorted(MAY_IMPORT)
    below = {name: set(order[place:]) for place, name in enumerate(order)}
    assert {name: wrong for name, may in MAY_IMPORT.items() if (wrong := may - below[name])} == {}


def exists_below_sources(name: str) -> bool:
    """Whether a file or folder has that path below a folder of sources, or below a package of natgauge."""
    return any(any(folder.glob(name)) for folder in SOURCES) or any(ROOT.glob(f"src/natgauge/*/{name}"))


def test_the_page_on_the_architecture_is_read_within_an_hour() -> None:
    lines = ARCHITECTURE.splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 200] == []


@pytest.mark.parametrize(("page", "least"), [(ARCHITECTURE, 50), (TRIAL, 30)], ids=["architecture", "trial"])
def test_files_that_pages_on_the_code_name_exist(page: str, least: int) -> None:
    named = [word for word in INLINE.findall(without_fences(page)) if re.fullmatch(r"[\w/*.-]+", word)]
    paths = [word for word in named if re.search(r"(/|\.(py|rs|h|c|toml|json|\*))$", word)]
    assert len(paths) > least
    assert [path for path in paths if not exists_below_sources(path)] == []


def test_names_of_the_kit_in_the_page_on_metrics_exist() -> None:
    page = (ROOT / "docs" / "procedures.md").read_text()
    names = re.findall(
        r"`((?:binary_search|delays|held_connections|phases|procedure|rate_search|runner|settings|validation)\.[\w.]+)(?:\(\))?`",
        page,
    )
    assert len(names) > 15
    for name in names:
        pkgutil.resolve_name(f"natgauge.procedures.kit.{name}")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_names_exist(page: Path) -> None:
    """All but those of the changelog, which may be of the past, and the zone of DNS queries."""
    prose = "" if page.name == "CHANGELOG.md" else without_fences(page.read_text())
    for name in set(re.findall(r"`(natgauge(?:\.[a-zA-Z_]\w*)+)", prose)) - {"natgauge.test"}:
        pkgutil.resolve_name(name)

# SPDX-License-Identifier: Apache-2.0
"""The pages of the site, as a hook of MkDocs: `make site` calls it (mkdocs.yml).

A page is a Markdown file of this repository, a recipe, or a published table. Pages keep their paths in the repository,
so links between them work on the site and in a checkout. A file that a page links to, such as a report, is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from natgauge.gateways import recipe as recipes
from natgauge.gateways.support import last_run, run_in_words
from natgauge.published import model, printed
from natgauge.published.model import Table, plan_text

ROOT: Final = Path(__file__).parents[1]
#: Folders of pages, with the patterns of their Markdown.
_PAGES: Final = ("*.md", "docs/*.md", "docs/method/*.md", "records/*.md", "benchmarks/*.md", "benchmarks/results/*.md")
_LINK: Final = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d-")
#: A line of text directly above a list, which Python-Markdown reads as part of the paragraph.
_LIST_BEHIND_TEXT: Final = re.compile(r"(?m)^((?![-*|#>] |\d+\. |```|\s).+\n)(?=(?:[-*]|1\.) )")
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return the Markdown files that are pages."""
    return sorted(page for pattern in _PAGES for page in ROOT.glob(pattern))


def linked(page: Path) -> Iterator[Path]:
    """Yield the files of the repository that a page links to or shows."""
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if "://" not in link and (file := (page.parent / link).resolve()).is_file():
            yield file


def results_of(page: Path) -> list[Path]:
    """Return the files with the figures of a page of results: its name, with another suffix."""
    return sorted(file for file in page.parent.glob(f"{page.stem}.*") if file != page)


def generated() -> dict[str, str]:
    """Return the pages made of recipes and of published tables: path on the site -> Markdown."""
    made: dict[str, str] = {}
    gateways, tables = [], []
    for name, paths in recipes.available().items():
        recipe = recipes.load(paths[0])
        made[f"gateways/{name}.md"] = _gateway(recipe)
        gateways.append((f"[{name}]({name}.md)", recipe.kind, recipe.title, run_in_words(last_run(recipe))))
    for name in model.names():
        table = model.table(name)
        made[f"published/{name}.md"] = _published(table)
        tables.append((f"[{name}]({name}.md)", table.place, table.title, _plan(table)))
    made["gateways/README.md"] = "# Gateways\n\n" + _table([("Name", "Kind", "Title", "Tried"), *gateways])
    made["published/README.md"] = "# Published tables\n\n" + _table([("Name", "Place", "Title", "Plan"), *tables])
    return made


def _gateway(recipe: recipes.Recipe) -> str:
    facts = [
        (recipe.name, recipe.title),
        ("kind", f"{recipe.kind}, {recipe.initiator_family} to {recipe.responder_family}"),
        ("keeps connections", "yes" if recipe.stateful else "no"),
        ("system", recipe.system),
        ("packages", ", ".join(dict.fromkeys(need.package for need in recipe.needs if need.package)) or "-"),
        ("tried", run_in_words(last_run(recipe))),
    ]
    return f"# {recipe.name}\n\n{_table(facts)}\n```toml\n{Path(recipe.origin).read_text()}```\n"


def _plan(table: Table) -> str:
    """Say whether a published table has a plan, and how its plan differs from the publication."""
    if table.missing:
        return f"no plan: needs {table.missing[0].needs}"
    comments = [line.removeprefix("#").strip() for line in plan_text(table, size="full").splitlines()]
    sentences = " ".join(comments[: comments.index("")]).split("Differs from the publication: ")[1:-1]
    return " ".join(["plan.", *map(str.strip, sentences)] if sentences else ["plan"])


def _published(table: Table) -> str:
    parts = [
        f"# {table.title}",
        f"{printed.THEIRS}.",
        _table([("name", f"`{table.name}`"), *printed.conditions(table)]),
        _table([(row.label, *row.cells) for row in table.rows]),
    ]
    if ours := printed.computed_rows(table):
        parts += [f"{printed.OURS}:", _table([(label, *cells) for label, cells in ours])]
    return "\n\n".join([*parts, *(f"Slip: {slip}." for slip in printed.slips(table))])


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; its first row is the head, and columns after the first hold figures from three on."""
    rule = [":--", *(["--:" if len(rows[0]) > 2 and rows[0][1][:1].isdigit() else ":--"] * (len(rows[0]) - 1))]
    lines = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in (rows[0], rule, *rows[1:]))
    return "".join(f"| {line} |\n" for line in lines)


def on_files(files: Files, /, config: MkDocsConfig) -> Files:
    """Replace the files of MkDocs' one folder of pages with all pages and the files that they link to."""
    found = pages()
    copied = {file for page in found for file in (*linked(page), *results_of(page))} - {*found}
    paths = [file.relative_to(ROOT).as_posix() for file in (*found, *sorted(copied))] + config.extra_css
    ours = [File(path, str(ROOT), config.site_dir, use_directory_urls=False) for path in paths]
    ours += [File.generated(config, path, content=text) for path, text in generated().items()]
    named = set(_named(config.nav or []))
    left = [file.src_uri for file in ours if file.is_documentation_page() and file.src_uri not in named]
    config.nav = list(_expanded(config.nav or [], left))
    return Files([*(file for file in files if file.src_dir != config.docs_dir), *ours])


def _named(nav: Sequence[Any]) -> Iterator[str]:
    for entry in nav:
        for at in entry.values() if isinstance(entry, dict) else [entry]:
            yield from _named(at) if isinstance(at, list) else [at]


def _expanded(nav: Sequence[Any], left: Sequence[str]) -> Iterator[Any]:
    """Yield the entries of the navigation; a folder becomes its pages, README first, then the newest or by name.

    Args:
        nav: entries: paths, or titles with a path or entries.
        left: pages that no entry names.
    """
    for entry in nav:
        if isinstance(entry, dict):
            yield {title: list(_expanded(at, left)) if isinstance(at, list) else at for title, at in entry.items()}
        elif entry.endswith("/"):
            below = sorted(path for path in left if PurePosixPath(path).parent == PurePosixPath(entry))
            dated = [path for path in below if _DATED.match(PurePosixPath(path).name)]
            rest = [path for path in below if path not in dated]
            yield from [*sorted(rest, key=lambda path: not path.endswith("README.md")), *reversed(dated)]
        else:
            yield entry


def on_page_markdown(markdown: str, /, page: Any, **_: Any) -> str:
    """Read lists as GitHub does, and add links to the figures of a page of results."""
    markdown = _LIST_BEHIND_TEXT.sub(r"\1\n", markdown)
    source = ROOT / page.file.src_uri
    names = [file.name for file in results_of(source)] if source.parent.name == "results" else []
    return markdown + "".join(f"\n\n[{name}]({name})" for name in names)

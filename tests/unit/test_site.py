# SPDX-License-Identifier: Apache-2.0
"""The site: all pages are built, their links lead somewhere, nothing is loaded from elsewhere, the search finds."""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from tests.absent import absent
from tests.unit import listed
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.conftest import Ran
from tools import example_reports

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("records/*.md"), *ROOT.glob("benchmarks/**/*.md")}
)
#: A picture in Markdown, with the link around it.
PICTURE = re.compile(r"(?:\[)?!\[([^\]]*)\]\(([^)]+)\)(?:\]\(([^)]+)\))?")
#: Elements whose number is the same where GitHub and the site read a page alike.
COUNTED = ("table", "tr", "li", "h2", "h3", "pre", "blockquote", "img")


#: A script or a style, whose content has no elements; a tag; an attribute that leads or is led to.
SCRIPT = re.compile(r"<!--.*?-->|(<(script|style)\b[^>]*>).*?</\2>", re.DOTALL)
TAG = re.compile(r"""<(/?)([a-z][a-z0-9-]*)((?:[^"'>]|"[^"]*"|'[^']*')*)>""")
ATTRIBUTE = re.compile(r"""\s(href|id|name|rel|src)=(?:"([^"]*)"|([^\s"'>]+))""")


class Page:
    """The links, loaded files, anchors and numbers of elements of a page.

    The parser of Python takes three times as long for the same.
    """

    def __init__(self, path: Path) -> None:
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.inside: Counter[str] = Counter()
        article = False
        for end, tag, attributes in TAG.findall(SCRIPT.sub(r"\1", path.read_text())):
            if end:
                article &= tag != "article"
                continue
            article |= tag == "article"
            self.inside[tag] += article
            if "=" in attributes:
                self._note(
                    tag, {name: html.unescape(one or other) for name, one, other in ATTRIBUTE.findall(attributes)}
                )

    def _note(self, tag: str, given: dict[str, str]) -> None:
        """Note an element's links and anchors."""
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a":
            self.links += [given["href"]] if "href" in given else []
        elif given.get("rel") != "canonical":
            self.loaded += [given[name] for name in ("src", "href") if name in given]


@functools.cache
def parsed(path: Path) -> Page:
    return Page(path)


@functools.cache
def place(folder: Path, link: str) -> Path:
    """Where a link leads from a folder; the pages of a folder have most of their links in common."""
    return (folder / link).resolve()


@functools.cache
def leads(folder: Path, link: str) -> bool:
    """Whether a link from a page of a folder leads to a file and an anchor; those to other servers are not tried."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = place(folder, unquote(parts.path))
    target = target / "index.html" if target.is_dir() else target
    fragment = unquote(parts.fragment)
    return target.is_file() and (not fragment or target.suffix != ".html" or fragment in parsed(target).anchors)


def dead(page: Path, links: list[str]) -> list[str]:
    """The links of a page that lead to no file or to no anchor."""
    return [link for link in links if not leads(page.parent, f"{page.name}{link}" if link.startswith("#") else link)]


def build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a checkout as `make site` does. `--quiet` would hide the warnings from `--strict`."""
    words = ["-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    return subprocess.run([sys.executable, *words], cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.soak  # the next tests look at each link, after a strict build that succeeds
@pytest.mark.slow("builds all pages of the site")
def test_a_dead_link_and_a_dead_anchor_end_the_build(tmp_path: Path) -> None:
    for name in ("docs", "benchmarks", "examples", "records", "trial", "tools", "bpf"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for file in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "mkdocs.yml"):
        shutil.copy(file, tmp_path)
    (tmp_path / "docs" / "strange.md").write_text("# Strange\n\n[a](none.md) [b](glossary.md#none)\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode == 1
    assert len([line for line in built.stderr.splitlines() if "docs/strange.md" in line]) == 2


def page_of(site: Path, source: Path) -> Path:
    name = "index.html" if source.name == "README.md" else f"{source.stem}.html"
    return site / source.parent.relative_to(ROOT) / name


@functools.cache
def own_pages(site: Path) -> list[Path]:
    """Pages that the site's generator made, without reports, which are copied."""
    return [page for page in site.rglob("*.html") if 'name="generator" content="mkdocs' in page.read_text()]


@pytest.mark.slow("builds all pages of the site")
def test_every_text_gateway_and_published_table_has_a_page_that_the_navigation_names(site: Path) -> None:
    sources = [page_of(site, source) for source in PAGES]
    made = [site / "gateways" / f"{name}.html" for name in listed.gateways()]
    made += [site / "published" / f"{name}.html" for name in listed.published()]
    assert [page for page in (*sources, *made) if not page.is_file()] == []
    named = {place(page.parent, link) for page in own_pages(site) for link in parsed(page).links}
    assert {page.resolve() for page in (*sources, *made)} - named == set()


def test_every_link_of_every_page_leads_to_a_file_and_an_anchor(site: Path) -> None:
    pages = [page for page in own_pages(site) if page.name != "404.html"]
    assert len(pages) > 100
    assert {page: wrong for page in pages if (wrong := dead(page, parsed(page).links))} == {}


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<h1 id="here">x</h1>')
    links = ["page.html#here", "#here", "https://example.org/", "page.html#there", "none.html", "#there"]
    assert dead(page, links) == links[3:]


def test_pages_load_nothing_from_other_servers(site: Path) -> None:
    elsewhere = {link for page in own_pages(site) for link in parsed(page).loaded if urlsplit(link).netloc}
    assert elsewhere == set()


@pytest.mark.parametrize("source", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_has_the_tables_lists_and_blocks_that_github_shows(site: Path, source: Path) -> None:
    here = parsed(page_of(site, source)).inside
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(source.read_text())
    names = [each.tag for token in tokens for each in (token, *(token.children or ())) if each.nesting >= 0]
    there = Counter("pre" if token == "code" else token for token in names)
    fences = Counter(token.type for token in tokens)
    there["pre"] = fences["fence"] + fences["code_block"]
    assert {tag: here[tag] for tag in COUNTED} == {tag: there[tag] for tag in COUNTED}


def test_every_picture_says_what_it_shows_and_leads_to_its_report_or_evidence() -> None:
    pictures = [(page, *found) for page in PAGES for found in PICTURE.findall(page.read_text())]
    assert pictures
    wrong = [
        (page, picture)
        for page, text, picture, report in pictures
        if not text or Path(report).suffix not in {".html", ".md"} or not (page.parent / report).is_file()
    ]
    assert wrong == []


def test_the_picture_of_the_demo_shows_its_text_and_the_figures_that_its_description_names() -> None:
    folder = ROOT / "docs" / "example-reports"
    text, drawn = (folder / "demo.txt").read_text(), (folder / "demo.svg").read_text()
    seen = html.unescape(re.sub(r"<[^>]*>", " ", drawn)).replace("\xa0", " ").split()
    assert Counter(text.split()) - Counter(seen) == Counter()
    assert "@font-face" not in drawn
    shown = example_reports.SHOWN.read_text()
    (described,) = (each for each, path, _ in PICTURE.findall(shown) if "demo" in path)
    figures = re.findall(r"\d[\d,]+", described)
    assert figures
    assert set(figures) <= set(re.findall(r"\d[\d,]+", text))


def test_the_example_of_the_demo_is_in_todays_words(tmp_path: Path, ran: Ran) -> None:
    """After a change of words: `make examples`. The figures stay those of the stored results."""
    found, page = example_reports.stored(), (example_reports.EXAMPLES / "demo.html").read_text()
    assert (example_reports.EXAMPLES / "demo.txt").read_text() == example_reports.demo_text(found)
    assert example_reports.described(found) in example_reports.SHOWN.read_text()
    said = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
    told = []
    for name, result in found.items():
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps(result.document()))
        report = ran(["report", "--format", "json", str(folder)]).out
        told += [answer["text"] for answer in json.loads(report)["answers"]]
    assert len(told) > len(found)
    assert [text for text in told if text not in said] == []


@pytest.mark.parametrize("name", ["operator", "researcher"])
def test_the_example_of_a_tutorial_is_what_its_commands_print_today(name: str, tmp_path: Path) -> None:
    """After a change of words or pages: `make examples`. The figures stay those of the stored results."""
    example_reports.write_tutorial(name, tmp_path)
    files = sorted(tmp_path.iterdir())
    assert files
    changed = [file.name for file in files if file.read_bytes() != (example_reports.EXAMPLES / file.name).read_bytes()]
    assert changed == []


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The address of a server of the site on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


SEARCH = """(async () => {
  const field = document.querySelector("[data-md-component=search-query]");
  const until = performance.now() + 20000;
  while (performance.now() < until) {
    field.focus(); field.value = "draft-lencse"; field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
    await new Promise(done => setTimeout(done, 200));
    if (document.querySelector(".md-search-result__item")) break;
  }
  return [...document.querySelectorAll(".md-search-result__item a")].map(link => link.pathname);
})()"""


@pytest.mark.skipif(absent(CHROMIUM), reason="no Chromium on this machine")
def test_the_search_finds_and_nothing_is_asked_of_other_servers(address: str) -> None:
    with Browser() as browser:
        browser.open(cast("Path", SimpleNamespace(as_uri=lambda: address)), 1280)
        assert any(path.startswith("/published/scalability-draft") for path in browser.ask(SEARCH))
        assert browser.said == []
        assert [asked for asked in browser.asked if not asked.startswith((address, "data:"))] == []

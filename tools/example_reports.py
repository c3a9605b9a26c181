# SPDX-License-Identifier: Apache-2.0
"""Make the example reports of the documentation: `python -m tools.example_reports [demo] [operator] [researcher]`.

Without a name, and without root: write all examples once more from their stored results, in today's words, with the
picture of the demo and its sentence in docs/reports.md. With names, as root, on a quiet machine: measure these first
(demo 2 minutes, operator 4, researcher 6). An example with the name of a tutorial is what its commands print.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any, Final

from tools.terminal_picture import picture
from tools.tutorials import steps, typed

from natgauge.cli import run
from natgauge.cli.demo import shown
from natgauge.errors import NatgaugeError
from natgauge.records.measurement import Result
from natgauge.records.store import SUMMARY
from natgauge.reports.answers import one

ROOT: Final = Path(__file__).parents[1]
EXAMPLES: Final = ROOT / "docs" / "example-reports"
#: The page that shows the picture of the demo.
SHOWN: Final = ROOT / "docs" / "reports.md"
#: Results of the demo by the folder of their evidence.
STORED: Final = EXAMPLES / "demo.json"
_NATGAUGE: Final = Path(sys.executable).with_name("natgauge")
#: Tutorials whose results are stored, with files that their commands write; the first command of these ends measuring.
_TUTORIALS: Final[Mapping[str, tuple[str, ...]]] = {"operator": ("boss.html",), "researcher": ("nat44.tex",)}
#: Further forms of these examples: the command, and the file that it writes.
_FURTHER: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "researcher": (("natgauge report results/nat44 --against connections --html nat44.html", "nat44.html"),)
}
#: What a tutorial's commands may end with: a gateway costs more, or does not carry the subscribers.
_DONE: Final = {0, 1, 10}
_DESCRIPTION: Final = re.compile(r"What make demo prints: [^\]]*")


def stored() -> dict[str, Result]:
    """Return the results of the demo."""
    documents = json.loads(STORED.read_text())
    return {folder: Result.from_document(document) for folder, document in documents.items()}


def demo_text(found: Mapping[str, Result]) -> str:
    """Return what the demo prints of its results where the output is a file."""
    return "".join(f"\n{part}\n" for part in shown(found))


def described(found: Mapping[str, Result]) -> str:
    """Return the description of the demo's picture: the answers up to their ranges."""
    (gateway,) = {result.gateway for result in found.values()}
    does = [one(result).text.partition(":")[0].removeprefix(f"{gateway} ") for result in found.values()]
    return f"What make demo prints: {gateway} {' and '.join(does)}"


def write_demo() -> None:
    """Write the demo's text, its picture, and the picture's description, from the stored results."""
    found = stored()
    (EXAMPLES / "demo.txt").write_text(demo_text(found))
    (EXAMPLES / "demo.svg").write_text(picture(demo_text(found), "make demo"))
    SHOWN.write_text(_DESCRIPTION.sub(described(found), SHOWN.read_text()))


def measure_demo() -> None:
    """Run the demo, store its results, and write its page."""
    with tempfile.TemporaryDirectory(prefix="natgauge-example-") as scratch:
        _run("demo", "--results", "results", folder=scratch)
        folders = sorted(Path(scratch, "results").iterdir())
        documents: dict[str, Any] = {
            f"results/{each.name}": json.loads((each / SUMMARY).read_text()) for each in folders
        }
        STORED.write_text(json.dumps(documents, indent=1) + "\n")
        _run("report", *map(str, folders), "--html", str(EXAMPLES / "demo.html"), folder=scratch)
    write_demo()


def measure_tutorial(name: str) -> None:
    """Do what a tutorial says up to its first view, store the results, and write its views."""
    with tempfile.TemporaryDirectory(prefix="natgauge-example-") as scratch:
        for saved, text in itertools.takewhile(lambda step: not _written(name, step[1]), steps(_page(name))):
            if saved:
                Path(scratch, saved).write_text(text)
            else:
                _type(text, scratch)
        with tarfile.open(_archive(name), "w:xz") as archive:
            archive.add(Path(scratch, "results"), "results", filter=_plain)
    write_tutorial(name)


def write_tutorial(name: str, folder: Path = EXAMPLES) -> None:
    """Write into `folder` what the commands of a tutorial say of the stored results, and further forms."""
    views = [(text, _written(name, text)) for saved, text in steps(_page(name)) if not saved]
    with tempfile.TemporaryDirectory(prefix="natgauge-example-") as scratch:
        with tarfile.open(_archive(name)) as archive:
            # Python 3.11.2 knows no filter, and 3.13 warns where there is none.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(scratch)  # noqa: S202 - an archive of ours
        for text, file in [*views, *_FURTHER.get(name, ())]:
            if file:
                _type(text, scratch, _shown)
                shutil.copy(Path(scratch, file), folder / f"{name}{Path(file).suffix}")


def _page(name: str) -> Path:
    return ROOT / "docs" / f"tutorial-{name}.md"


def _written(name: str, step: str) -> str:
    """The file of the example that a step of a tutorial writes; empty = none."""
    return next((file for file in _TUTORIALS[name] if file in step.split()), "")


def _type(command: str, folder: str, does: Callable[..., str] | None = None) -> None:
    """Run a command of natgauge in a folder as a reader types it; `does`: what runs it, by itself in a process."""
    (_, *words), to = typed(command, Path(folder))
    said = (does or _run)(*words, folder=folder)
    if to:
        Path(folder, to).write_text(said)


def _archive(name: str) -> Path:
    return EXAMPLES / f"{name}.tar.xz"


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A file of nobody, as old as all others."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _run(*words: str, folder: str) -> str:
    """What natgauge prints in a folder.

    Raises:
        NatgaugeError: it fails.
    """
    done = subprocess.run([str(_NATGAUGE), *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    return _ended(words[0], done.returncode, done.stdout)


def _shown(*words: str, folder: str) -> str:
    """The same of a command that only reads, in this process, which has loaded all that it needs."""
    with chdir(folder), redirect_stdout(io.StringIO()) as printed:
        status = run(words)
    return _ended(words[0], status, printed.getvalue())


def _ended(command: str, status: int, printed: str) -> str:
    if status not in _DONE:
        raise NatgaugeError(f"natgauge {command} ended with status {status}")
    return printed


def main(names: list[str]) -> int:
    """Make the examples with these names, or rewrite all; 1 when a name is unknown or natgauge fails."""
    unknown = [name for name in names if name not in ("demo", *_TUTORIALS)]
    if unknown:
        print(f"no example is named {unknown[0]!r}; there are demo, {', '.join(_TUTORIALS)}", file=sys.stderr)
        return 1
    try:
        for name in names:
            measure_demo() if name == "demo" else measure_tutorial(name)
        if not names:
            write_demo()
            for name in _TUTORIALS:
                write_tutorial(name)
    except NatgaugeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

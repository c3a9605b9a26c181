# SPDX-License-Identifier: Apache-2.0
"""What natgauge says, kept in files: the fixture `golden` compares, and `make golden` writes the files again.

A test gives the fixture what was said, and asserts by itself what is data: numbers, order, which doubt, which input.
The words are in `tests/golden/`, one file for each module of tests, and for each surface: a line with the test's name,
then its texts, indented. A sentence that changes is thus one line of the source and lines of these files, reviewed as a
difference.
"""

from __future__ import annotations

import difflib
import platform
import pprint
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import pytest

from natgauge.errors import NatgaugeError
from natgauge.notes import Note

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests" / "golden"
#: Option of pytest that writes the files.
WRITE: Final = "--golden"
_INDENT: Final = "  "
#: Between two texts of a test.
_NEXT: Final = "-"
#: Where a long line is stored as several.
_SENTENCE_END: Final = re.compile(r"(?<=[\w)%][\w)%][.;]) (?=\S)")
_LONGEST: Final = 160
#: What differs from run to run, and what stands for it: names after the moment, numbers of folders and processes.
_PASSING: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d-\d{6}(?:-\d{3,})?"), "MOMENT"),
    # A second folder of one second has a number at the end of its name.
    (re.compile(r"(MOMENT-[a-z0-9-]*?[a-z]\d*)-\d(?![\w-])"), r"\1"),
    (re.compile(r"(?<=BASE/)([a-z_-]+)\d+"), r"\1"),
    (re.compile(r"(?<=\bprocess )\d+"), "NUMBER"),
    (re.compile(r"(?<=\b127\.0\.0\.1:)\d+"), "PORT"),
)

Texts: TypeAlias = dict[str, list[str]]
Error = TypeVar("Error", bound=BaseException)


class Golden:
    """The texts of one test.

    `of_stored`: it is of stored results, which have their own day and machine.

    Attributes:
        places: folders, and what else differs from machine to machine, and the names that stand for them in the files.
    """

    def __init__(
        self, name: str, stored: Sequence[str], *, write: bool, places: Mapping[str, str], of_stored: bool = False
    ) -> None:
        self.name = name
        self._of_stored = of_stored
        self.places = dict(places)
        self.given: list[str] = []
        self._stored = stored
        self._write = write

    def __call__(self, said: object, *, passing: str | None = None) -> None:
        """Compare the next text of the test with the stored one.

        Args:
            passing: pattern of parts that differ from run to run, such as times; they are stored as "...".
        """
        text = shown(said)
        found, at = self._plain(re.sub(passing, "...", text) if passing else text), len(self.given)
        self.given.append(found)
        # A text that is right today only is found today.
        if not self._of_stored and (passing_now := [word for word in _of_today() if word in found]):
            pytest.fail(f"text {at + 1} of {self.name} has {passing_now[0]}, which is of today or of this machine")
        if not self._write:
            stored = self._stored[at] if at < len(self._stored) else ""
            lines = difflib.unified_diff(stored.splitlines(), found.splitlines(), "stored", "said", n=1, lineterm="")
            if difference := "\n".join(lines):
                pytest.fail(f"text {at + 1} of {self.name}; if it is right, `make golden`\n{difference}", pytrace=False)

    @contextmanager
    def raises(
        self, kind: type[Error] | tuple[type[Error], ...], *, at: str | None = None
    ) -> Iterator[pytest.ExceptionInfo[Error]]:
        """Expect an error of this type about this input (None: any); its words are stored."""
        with pytest.raises(kind) as caught:
            yield caught
        if at is not None:
            assert isinstance(caught.value, NatgaugeError)
            assert caught.value.at == at
        self(caught.value)

    def ended(self) -> None:
        """Refuse stored texts that the test no longer gives."""
        assert self._write or len(self.given) == len(self._stored), f"stored texts without a use: {self.name}"

    def _plain(self, text: str) -> str:
        for place, name in self.places.items():
            text = text.replace(place, name)
        for passing, name in _PASSING:
            text = passing.sub(name, text)
        lines = (line.rstrip() for line in text.strip("\n").splitlines())
        return "\n".join(_SENTENCE_END.sub("\n", line) if len(line) > _LONGEST else line for line in lines)


def _of_today() -> tuple[str, ...]:
    return datetime.now(tz=UTC).date().isoformat(), platform.release()


def shown(said: object) -> str:
    """Return the lines by which a value is stored; of an error its type, its input and its exit status as well."""
    if isinstance(said, NatgaugeError):
        at = f" at {said.at}" if said.at else ""
        return f"{type(said).__name__} {said.exit_status}{at}: {said}"
    if isinstance(said, str | BaseException):
        return str(said)
    if isinstance(said, list | tuple) and all(isinstance(one, str | Note) for one in said):
        return "\n".join(one if isinstance(one, str) else f"{one.word}: {one.text}" for one in said)
    return pprint.pformat(said, width=110, sort_dicts=False)


def read(file: Path) -> Texts:
    """Return the texts of a file by the names of their tests."""
    texts: Texts = {}
    own: list[list[str]] = []
    for line in file.read_text().splitlines() if file.exists() else []:
        if line == _NEXT:
            own.append([])
        elif line and not line.startswith(_INDENT):
            own = [[]]
            texts[line] = own  # type: ignore[assignment]
        else:
            own[-1].append(line.removeprefix(_INDENT))
    return {name: ["\n".join(lines).strip("\n") for lines in of_test] for name, of_test in texts.items()}


def written(texts: Texts) -> str:
    """Return the content of the file with these texts."""
    parts = []
    for name, of_test in sorted(texts.items()):
        indented = ("\n".join(f"{_INDENT}{line}".rstrip() for line in text.splitlines()) for text in of_test)
        parts.append(f"{name}\n" + f"\n{_NEXT}\n".join(indented))
    return "\n\n".join(parts) + "\n"


def file_of(item: pytest.Item) -> Path:
    """Return the file with the texts of a test: that of its module, or of its parameter `surface`."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if "surface" in parameters:
        return FOLDER / "surfaces" / f"{parameters['surface']}.txt"
    return FOLDER / f"{item.path.stem.removeprefix('test_')}.txt"


@pytest.fixture
def golden(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Golden]:
    """The texts of this test."""
    item, config = request.node, request.config
    file = file_of(item)
    if file not in config.stash[STORED]:
        config.stash[STORED][file] = read(file)
    places = {str(tmp_path): "TMP", str(tmp_path_factory.getbasetemp()): "BASE", str(ROOT): "ROOT"}
    stored = config.stash[STORED][file].get(item.name, [])
    of_stored = file.parent != FOLDER
    one = Golden(item.name, stored, write=config.getoption(WRITE), places=places, of_stored=of_stored)
    failed = request.session.testsfailed
    yield one
    config.stash[GIVEN].setdefault(file, {})[item.name] = one.given
    if failed == request.session.testsfailed:
        one.ended()


#: Texts of files that were read, and that tests of this run gave.
STORED: Final = pytest.StashKey[dict[Path, Texts]]()
GIVEN: Final = pytest.StashKey[dict[Path, Texts]]()


def begin(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Prepare a run; in one that writes, leave out tests that give no text."""
    config.stash[STORED], config.stash[GIVEN] = {}, {}
    if not config.getoption(WRITE):
        return
    own = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
    for item in items:
        config.stash[GIVEN].setdefault(file_of(item), {})
    for item in own:
        config.stash[GIVEN][file_of(item)][item.name] = read(file_of(item)).get(item.name, [])
    config.hook.pytest_deselected(items=[item for item in items if item not in own])
    items[:] = own


def end(config: pytest.Config) -> None:
    """Write the files of a run that writes; texts of tests that are no more go, those of skipped tests stay."""
    if not config.getoption(WRITE) or GIVEN not in config.stash:
        return
    of_part = any("::" in argument for argument in config.args)
    for file, given in config.stash[GIVEN].items():
        texts = {**(read(file) if of_part else {}), **given}
        if any(texts.values()):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(written({name: own for name, own in texts.items() if own}))
        else:
            file.unlink(missing_ok=True)

# SPDX-License-Identifier: Apache-2.0
"""The scripts in examples/bisect, with a stand-in for `natgauge compare` (docs/bisecting.md)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BISECT = ROOT / "examples" / "bisect"
RECIPE = (ROOT / "src" / "natgauge" / "gateways" / "recipes" / "nftables-nat44.toml").read_text()
#: Compares the numbers behind "# cost" of two recipes. A recipe without such a line does not work, and one that has
#: another difference from `recipe()` cannot be read. All else is real.
COMPARE = f"""#!/bin/sh
[ "$1" = compare ] || exec {Path(sys.executable).parent}/natgauge "$@"
echo "$@" >> "$LOG"
case "$*" in *nonsense*) exit 2 ;; esac
for file; do
    case $file in
    *.toml*)
        sed '/^# cost /d' "${{file%%:*}}" | cmp -s - "$LOG.recipe" || exit 2
        costs="${{costs-}} $(sed -n 's/^# cost //p' "${{file%%:*}}")"
        ;;
    esac
done
set -- $costs
[ $# -eq 2 ] || exit 4
[ "$2" -le "$1" ] || exit 10
"""


class Repository:
    """A repository with one recipe, and a folder for the baseline.

    Attributes:
        folder: its folder.
        baseline: recipe of the baseline.
        log: arguments of every comparison.
    """

    def __init__(self, folder: Path) -> None:
        """Make an empty repository below the folder."""
        self.folder, self.baseline = folder / "gateway", folder / "good" / "gateway.toml"
        self.log = folder / "log"
        self._programs = folder / "bin"
        for made in (self.folder, self.baseline.parent, self._programs):
            made.mkdir()
        stand_in = self._programs / "natgauge"
        stand_in.write_text(COMPARE)
        stand_in.chmod(0o755)
        Path(f"{self.log}.recipe").write_text(recipe())
        self.git("init", "--quiet", "--initial-branch", "main")

    def run(self, *command: str | Path, folder: Path | None = None, **environment: str) -> tuple[int, str]:
        """Run a command in the repository; its exit status and all that it printed."""
        path = f"{self._programs}:{os.environ['PATH']}"
        names = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        done = subprocess.run(
            command,
            cwd=folder or self.folder,
            env={**os.environ, **names, "PATH": path, "LOG": str(self.log), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def git(self, *arguments: str) -> str:
        """Run git, which must succeed; its output."""
        status, said = self.run("git", *arguments)
        assert status == 0, said
        return said.strip()

    def commit(self, *recipes: str) -> None:
        """Make a commit with each of the recipes in turn; "" = none."""
        for number, recipe in enumerate(recipes):
            file = self.folder / "gateway.toml"
            file.write_text(recipe)
            if not recipe:
                file.unlink()
            (self.folder / "number").write_text(f"{number}\n")
            self.git("add", "--all")
            self.git("commit", "--quiet", "--message", f"commit {number}")

    def search(self, *options: str) -> tuple[int, str]:
        """Search between the first and the last commit."""
        good = self.git("rev-list", "--max-parents=0", "HEAD")
        return self.run(BISECT / "search.sh", good, "main", self.baseline, "./gateway.toml", *options)

    def no_bisection(self) -> bool:
        """Whether no bisection began, and the branch is checked out."""
        return not (self.folder / ".git" / "BISECT_LOG").exists() and self.git("branch", "--show-current") == "main"


def recipe(cost: object = None) -> str:
    """A recipe that can be read; its cost in the stand-in's unit, None = it does not work."""
    return RECIPE.replace('"nftables-nat44"', '"gateway"') + ("" if cost is None else f"# cost {cost}\n")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_slower_commit_is_found_and_results_are_no_file_of_the_repository(repository: Repository) -> None:
    repository.commit(recipe(1), recipe(1), recipe(1), recipe(2), recipe(2))
    repository.baseline.write_text(recipe(1))
    status, said = repository.search("--fail-above", "30%")
    assert status == 0, said
    slow = repository.git("rev-parse", "main~1")
    assert f"{slow} is the first bad commit" in said
    compared = repository.log.read_text().splitlines()
    # The two ends, and two steps.
    assert len(compared) == 4
    assert all("--fail-above 30%" in line and "--results .git/natgauge-results" in line for line in compared)
    repository.git("bisect", "reset")
    assert repository.git("branch", "--show-current") == "main"


@pytest.mark.parametrize(
    ("baseline", "first", "says"),
    [
        (recipe(2), recipe(1), "main does not cost more than .*good/gateway.toml, so there is nothing to find"),
        (recipe(), recipe(1), "main cannot be judged; the lines above have the reason"),
        (
            recipe(1),
            recipe(2),
            "[0-9a-f]{40} costs more than .*good/gateway.toml, which must be the gateway of [0-9a-f]{40}",
        ),
        (recipe(1), recipe(), "[0-9a-f]{40} cannot be judged; the lines above have the reason"),
    ],
)
def test_ends_that_are_not_as_they_must_be_are_refused_before_the_bisection(
    repository: Repository, baseline: str, first: str, says: str
) -> None:
    """A baseline that loaded the files of the bad version made git name the last commit."""
    repository.commit(first, recipe(1), recipe(2))
    repository.baseline.write_text(baseline)
    status, said = repository.search()
    assert status == 1
    assert re.search(f"search.sh: {says}", said.splitlines()[-1]), said
    assert repository.no_bisection()


@pytest.mark.parametrize(
    "unreadable",
    [
        recipe(1).replace("kind", "kinds", 1),
        *(pytest.param(text, marks=pytest.mark.soak) for text in ("", "name = \n")),
    ],
)
def test_a_commit_whose_recipe_cannot_be_read_is_skipped(repository: Repository, unreadable: str) -> None:
    """Each ended the whole bisection."""
    # git begins in the middle.
    repository.commit(recipe(1), recipe(1), recipe(1), unreadable, recipe(1), recipe(2), recipe(2))
    repository.baseline.write_text(recipe(1))
    status, said = repository.search()
    assert status == 0, said
    assert f"{repository.git('rev-parse', 'main~1')} is the first bad commit" in said
    assert len(repository.log.read_text().splitlines()) >= 4
    assert "# skip:" in repository.git("bisect", "log")


def test_the_judge_ends_the_bisection_for_wrong_options_and_a_wrong_baseline(repository: Repository) -> None:
    repository.commit(recipe(1))
    repository.baseline.write_text(recipe(1))
    judge = (BISECT / "judge.sh", repository.baseline)
    assert repository.run(*judge, "./gateway.toml", "--nonsense")[0] == 128
    assert repository.run(*judge, "./gateway.toml:connections=5000")[0] == 0
    assert repository.run(*judge, "./gateway.toml", BUILD="false")[0] == 125
    assert (
        "--results mine"
        in (repository.run(*judge, "./gateway.toml", "--results", "mine"), repository.log.read_text())[1]
    )


def test_the_judge_ends_in_one_line_where_natgauge_is_not_found(repository: Repository) -> None:
    repository.commit(recipe(1))
    status, said = repository.run("/bin/sh", BISECT / "judge.sh", "a", "./gateway.toml", PATH="/usr/bin:/bin")
    assert status == 128
    assert said == "judge.sh: natgauge is not in $PATH; try: PATH=/path/to/natgauge/.venv/bin:$PATH\n"


@pytest.mark.parametrize(
    ("script", "status", "arguments"),
    [
        ("judge.sh", 128, "BASELINE GATEWAY [OPTION ...]"),
        ("search.sh", 1, "GOOD BAD BASELINE GATEWAY [OPTION ...]"),
        ("rules.sh", 2, "RULES REPOSITORY"),
    ],
)
def test_without_arguments_a_script_prints_its_usage(
    repository: Repository, script: str, status: int, arguments: str
) -> None:
    assert repository.run(BISECT / script) == (status, f"{script}: usage: {script} {arguments}\n")


def rules(repository: Repository, text: str) -> tuple[int, str, Path]:
    """Make a repository of rules; exit status and words of the script, and the new repository."""
    file, made = repository.folder / "rules.nft", repository.folder / "rules"
    file.write_text(text)
    return *repository.run(BISECT / "rules.sh", file, made), made


def test_each_rule_is_a_commit_whatever_lines_surround_it(repository: Repository) -> None:
    text = "add table ip a\n\n  # comment\nadd rule ip a b ip saddr $net counter\n\nadd chain ip a c { type x; }"
    status, said, made = rules(repository, text)
    assert (status, said) == (0, "")
    subjects = repository.run("git", "log", "--reverse", "--format=%s", folder=made)[1].splitlines()
    commands = ["add table ip a", "add rule ip a b ip saddr $net counter", "add chain ip a c { type x; }"]
    assert subjects == ["no rule", *commands]
    assert (made / "rules.nft").read_text().splitlines() == commands
    assert repository.run("git", "show", "no-rule:rules.nft", folder=made) == (0, "")
    status, said = repository.run("natgauge", "gateways", "show", made / "gateway.toml")
    assert status == 0, said
    assert 'nft -f "$NG_RECIPE_FOLDER/rules.nft"' in said


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("table ip a {\n\tchain b {\n\t}\n}\n", 1),
        ("add table ip a\nadd chain ip a b { # opened\ntype x; }\n", 2),
        ("add table ip a\n}\n", 2),
        ("add table \\\nip a\n", 1),
    ],
)
def test_a_file_of_blocks_is_refused_and_nothing_is_made(repository: Repository, text: str, line: int) -> None:
    status, said, made = rules(repository, text)
    assert status == 2
    assert re.fullmatch(rf"rules\.sh: .*rules\.nft: line {line}: is part of a block; write each .*\n", said)
    assert not made.exists()


def test_a_folder_that_exists_and_a_file_that_does_not_are_refused(repository: Repository) -> None:
    (repository.folder / "rules").mkdir()
    status, said, made = rules(repository, "add table ip a\n")
    assert (status, said) == (2, f"rules.sh: {made}: exists already; name a new folder\n")
    assert list(made.iterdir()) == []
    status, said = repository.run(BISECT / "rules.sh", "nothing.nft", "new")
    assert (status, said) == (2, "rules.sh: nothing.nft: cannot be read\n")

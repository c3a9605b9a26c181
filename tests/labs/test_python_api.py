# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python-api.md do what the page says."""

from __future__ import annotations

import contextlib
import fcntl
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.made_campaign import campaign

from natgauge.comparisons import request
from natgauge.procedures.kit import settings
from natgauge.tester.own_rates import HighestRates
from natgauge.trial import bench

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == len(NAMES)


NAMES = ("measurement", "comparison", "audit", "bench", "observer", "error", "frames")
#: Any device of the examples reaches it, and its trials are short.
REACHED = HighestRates(20_000.0, 20_000.0)
#: A comparison needs a core that nobody else uses, and test_compare.py has shorter ones; the audit waits for time-outs
#: of a minute. The example of an observer measures what the first one measures.
MARKS = {
    "comparison": [pytest.mark.alone, pytest.mark.soak],
    "audit": [pytest.mark.soak],
    "observer": [pytest.mark.soak],
}


@pytest.fixture
def usual_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The examples name no lab, so only one of them may run at a time."""
    with (tmp_path_factory.getbasetemp().parent / "usual-lab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.slow("measures with the settings that a reader of the page would use")
@pytest.mark.usefixtures("usual_lab")
@pytest.mark.parametrize(
    "example",
    [pytest.param(one, id=name, marks=MARKS.get(name, ())) for name, one in zip(NAMES, EXAMPLES, strict=True)],
)
def test_an_example_runs_as_it_stands(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The example of a comparison then tells what is known by then.
    usual = {**request._USUAL, "slices": {**request._USUAL["slices"], "most_seconds": 2.0}}
    monkeypatch.setattr(request, "_USUAL", usual)
    # A search then ends at a rate that the device reaches, and without trying it again.
    monkeypatch.setattr(bench, "highest_rates", lambda *_: REACHED)
    monkeypatch.setitem(settings.COMMON, "default", {"confirm": False})
    if "frames.load" in example:
        campaign(tmp_path)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(example, str(PAGE), "exec"), {})  # noqa: S102 - our own page
    text = shown.getvalue()
    assert text.strip()
    if "answer.folder" in example:
        assert "connections/s, bottleneck: " in text
        (folder,) = (tmp_path / "results").iterdir()
        assert (folder / "summary.json").exists()
    if "Bench(" in example:
        assert re.fullmatch(r"[\d,]+ connections/s, [\d,]+ frames/s each way\n", text)
    if "Log()" in example:
        assert "now making lab" in text
        assert "PASS" in text
    if "frames.load" in example:
        assert "a sender stood still" in text
        assert "connection-rate" in text
    if "UsageError" in example:
        assert "port 0" in text

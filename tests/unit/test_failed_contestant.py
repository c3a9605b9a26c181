# SPDX-License-Identifier: Apache-2.0
"""A gateway of a comparison that does not start: the error names it, and is not hidden by what fails afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.cli import run
from natgauge.comparisons import compare as comparing
from natgauge.errors import BrokenError
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.tester.cable import CableLab
from natgauge.trial.bench import Bench


@pytest.fixture(params=["slices", "rates"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Gateways whose labs are never made; the recipe in the folder "good" does not start, and then does not stop."""

    def ready(bench: Bench, *_: object, **_others: object) -> None:
        if bench.recipe.origin.parent.name == "good":
            raise BrokenError("gateway on device gateway: start failed")

    def leave(_bench: Bench, _kind: object = None, error: BaseException | None = None, *_: object) -> None:
        if error is None:
            raise BrokenError("gateway: cannot be undone")
        error.add_note("gateway: cannot be undone")

    monkeypatch.setattr(comparing, "check_host", lambda: None)
    monkeypatch.setattr(Bench, "__enter__", lambda bench: bench)
    monkeypatch.setattr(Bench, "__exit__", leave)
    monkeypatch.setattr(Bench, "ready", ready)
    monkeypatch.setattr(CableLab, "__enter__", lambda lab: lab)
    monkeypatch.setattr(CableLab, "__exit__", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    for folder in ("good", "bad"):
        (tmp_path / folder).mkdir()
        text = (BUILT_IN / "nftables-nat44.toml").read_text()
        (tmp_path / folder / "gateway.toml").write_text(text.replace('"nftables-nat44"', '"gateway"'))
    return str(request.param)


@pytest.mark.parametrize(
    ("gateways", "label"),
    [
        (["good/gateway.toml", "bad/gateway.toml"], "good/gateway.toml"),
        (["bad/gateway.toml", "good/gateway.toml"], "good/gateway.toml"),
        (["good/gateway.toml", "good/gateway.toml"], "good/gateway.toml"),
    ],
)
def test_the_error_names_the_gateway_and_comes_before_what_follows(
    by: str, gateways: list[str], label: str, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert run(["compare", *gateways, "--by", by, "--connections", "20000"]) == 4
    line = capsys.readouterr().err.splitlines()[-1]
    assert label in line
    golden(line)

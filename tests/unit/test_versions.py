# SPDX-License-Identifier: Apache-2.0
"""Two versions of one recipe, which have one name, are two gateways in every view."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.made_comparisons import compared, estimate, gateway
from tests.unit.made_results import kept, made

from natgauge.cli import run

FIRST, SECOND = "1efa1cd59733", "51197a692fb0"


def stored(path: Path, *digests: str, gateway: str = "gateway") -> Path:
    """A folder with a connection rate of each version; the command names the recipe."""
    for number, digest in enumerate(digests):
        values = [(2 + number) * 1e5 + more for more in (0.0, 1.0, 2.0, 3.0)]
        parameters = {
            "gateway": gateway, "kind": "nat44", "recipe_digest": digest, "placement": "shared", "connections": 1000,
            "command": f"natgauge measure connection-rate --gateway v{number}/{gateway}.toml --connections 1000",
        }  # fmt: skip
        result = made(values, metric="connection-rate", unit="connections/s", parameters=parameters)
        (folder,) = kept(path / "made", result).iterdir()
        folder.rename(path / f"2026-11-27-15112{number}-connection-rate-{gateway}")
    (path / "made").rmdir()
    return path


def names_in(folders: list[Path], ran: Ran) -> list[str]:
    """The gateways of the results, in their order."""
    table = ran(["report", *map(str, folders), "--format", "csv"]).out
    return [row["gateway"] for row in csv.DictReader(io.StringIO(table))]


def test_all_forms_have_both_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(stored(tmp_path / "results", FIRST, SECOND))
    both = ("gateway (1efa1c)", "gateway (51197a)")
    for options in ([], ["--format", "markdown"], ["--format", "latex"], ["--against", "metrics"]):
        assert run(["report", folder, *options]) == 0
        told = capsys.readouterr().out
        assert all(name in told for name in both), options
    assert run(["report", folder, "--format", "csv"]) == 0
    assert [row["gateway"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))] == list(both)
    assert run(["report", folder, "--format", "json"]) == 0
    rows = {row["row"]: row["cells"] for row in json.loads(capsys.readouterr().out)["table"]["rows"]}
    assert rows["gateway"] == list(both)
    assert run(["report", folder, "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert all(page.count(name) >= 3 for name in both)
    # The command that measures again names the recipe as before.
    assert "--gateway v1/gateway.toml" in page


@pytest.mark.parametrize("renamed", [False, True])
def test_versions_have_the_names_of_the_folders_that_the_user_gave_them(
    *, renamed: bool, tmp_path: Path, ran: Ran
) -> None:
    """Two columns were called by parts of digests, and nobody knew which was the change."""
    for name, digest in (("base", FIRST), ("change", SECOND)):
        folder = stored(tmp_path / "rates" / name, digest)
        if renamed:
            (inner,) = folder.iterdir()
            inner.rename(tmp_path / name)
    folders = [tmp_path / name if renamed else tmp_path / "rates" / name for name in ("base", "change")]
    assert names_in(folders, ran) == ["gateway (base)", "gateway (change)"]


def test_folders_that_do_not_tell_versions_apart_are_no_names(tmp_path: Path, ran: Ran) -> None:
    """Of one version in two folders, and of two versions in one folder, the digest is the only name of its own."""
    folders = [stored(tmp_path / "a", FIRST), stored(tmp_path / "b", FIRST, SECOND)]
    both = ["gateway (1efa1c)", "gateway (51197a)"]
    assert names_in(folders, ran) == [both[0], *both]


@pytest.mark.parametrize("odd", ["x" * 33, "two\nlines", "a|b"])
def test_names_of_folders_that_a_table_has_no_room_for_are_none_of_versions(odd: str, tmp_path: Path, ran: Ran) -> None:
    folders = [stored(tmp_path / odd, FIRST), stored(tmp_path / "b", SECOND)]
    assert names_in(folders, ran) == ["gateway (1efa1c)", "gateway (51197a)"]


def test_one_version_keeps_its_name_and_so_do_different_gateways(tmp_path: Path, ran: Ran) -> None:
    assert set(names_in([stored(tmp_path / "a", FIRST, FIRST)], ran)) == {"gateway"}
    others = [stored(tmp_path / "b", FIRST), stored(tmp_path / "c", SECOND, gateway="other")]
    assert set(names_in(others, ran)) == {"gateway", "other"}


def test_digests_that_begin_alike_have_more_digits(tmp_path: Path, ran: Ran) -> None:
    folder = stored(tmp_path, "1efa1cd59733", "1efa1cd60000")
    assert set(names_in([folder], ran)) == {"gateway (1efa1cd5)", "gateway (1efa1cd6)"}


def comparison(*digests: str, **more: Any) -> Any:
    """A changed recipe compared with its base, whose paths and titles are those of every pull request."""
    base, changed = "base/gateway.toml", "./gateway.toml"
    names = (base, changed, f"{base} (A/A control)")
    roles = ("baseline", "compared", "control")
    gateways = [
        gateway(name, role, {"gateway": "gateway", "title": "My NAT", "recipe_digest": digest})  # type: ignore[arg-type]
        for name, role, digest in zip(names, roles, (*digests, digests[0]), strict=True)
    ]
    control = [estimate(names[2], 1.0, 0.99, 1.01)]
    return compared([estimate(changed, text=f"frame up: {changed} costs more")], control, gateways=gateways, **more)


def test_one_path_that_was_two_versions_is_two_gateways_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(kept(tmp_path / "results", comparison(FIRST, SECOND), comparison(FIRST, "77" * 6)))
    both = ("./gateway.toml (51197a)", "./gateway.toml (777777)")
    for options in ([], *(["--format", form] for form in ("markdown", "latex", "json", "csv"))):
        assert run(["report", folder, *options]) == 0
        told = capsys.readouterr().out
        assert all(name in told for name in both), options
        assert "base/gateway.toml (1efa1c)" not in told
    assert run(["report", folder, "--html", str(tmp_path / "page.html"), "--svg", str(tmp_path / "svg")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert all(page.count(name) >= 3 for name in both)
    drawn = "".join(path.read_text() for path in (tmp_path / "svg").iterdir())
    assert all(name.rpartition(" ")[2] in drawn for name in both)


def test_a_page_of_two_versions_with_one_title_is_headed_by_their_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(kept(tmp_path / "results", comparison(FIRST, SECOND)))
    assert run(["report", folder, "--html", str(tmp_path / "page.html")]) == 0
    capsys.readouterr()
    heading = re.search("<h1>(.*)</h1>", (tmp_path / "page.html").read_text())
    assert heading is not None
    assert "./gateway.toml compared with base/gateway.toml" in heading[1]


def test_ratios_over_commits_stay_one_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each commit is another version of the recipe."""
    records = [
        comparison(FIRST, digest, commit=f"{digest[:7]}@2026-11-2{day}T00:00:00+00:00")
        for day, digest in enumerate((SECOND, "77" * 6))
    ]
    assert run(["report", str(kept(tmp_path, *records)), "--history", "--format", "json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [(point["series"], point["gateway"]) for point in points] == [(1, "./gateway.toml")] * 2

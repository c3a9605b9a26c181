# SPDX-License-Identifier: Apache-2.0
"""Where gateways can be played and when they were: told from what is written down, and never more than that."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.labs import last_runs
from tests.unit.golden import Golden

from natgauge.cli import gateways
from natgauge.gateways.recipe import available, load
from natgauge.gateways.support import RUNS, Run, has_module, last_run, places, run_in_words, runs_of

NOT_LINUX = {"openbsd-pf-nat44", "openbsd-pf-nat64", "freebsd-pf", "freebsd-ipfw-nat64"}


@pytest.mark.parametrize(
    ("name", "modules", "where"),
    [
        ("nftables-nat44", (), ("here", "guest", "ssh")),
        ("tayga-nat64", (), ("here", "guest", "ssh")),
        ("nftables-flowtable-nat44", (), ("guest", "ssh")),
        ("nftables-flowtable-nat44", ("nf_flow_table",), ("here", "guest", "ssh")),
        ("464xlat-jool", ("jool",), ("guest", "ssh")),
        ("464xlat-jool", ("jool", "jool_siit"), ("here", "guest", "ssh")),
        # A guest has no Jool with MAP-T; natgauge's authors ran their own build there.
        ("map-t-jool", (), ("guest", "ssh")),
        ("map-t-jool", ("jool_mapt",), ("here", "guest", "ssh")),
        ("map-t", (), ("here",)),
        ("lw4o6-tunnels", (), ("here", "guest", "ssh")),
        ("openbsd-pf-nat64", ("pf",), ("ssh",)),
    ],
)
def test_a_gateway_runs_where_all_of_it_can_be_had(name: str, modules: tuple[str, ...], where: tuple[str, ...]) -> None:
    assert places(load(name), lambda module: module in modules) == where


def test_what_the_guest_lacks_is_not_promised_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (RUNS.parents[1] / "nftables-nat44.toml").read_text().replace("nftables-nat44", "mine")
    path.write_text(text + '\n[[needs]]\nprograms = ["vpp"]\npackage = "vpp"\n')
    assert places(load(path)) == ("here", "ssh")
    assert last_run(load(path)) is None, "a user's recipe is not one that we have run"


def test_modules_are_looked_for_loaded_built_in_and_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Uname:
        release = "6.1"

    monkeypatch.setattr("os.uname", Uname)
    folder = tmp_path / "lib/modules/6.1"
    assert not has_module("jool", tmp_path)
    folder.mkdir(parents=True)
    (folder / "modules.dep").write_text("updates/dkms/jool-common.ko.xz:\nupdates/dkms/jool.ko.xz: updates/x.ko\n")
    (folder / "modules.builtin").write_text("kernel/net/netfilter/nf-flow-table.ko\n")
    (tmp_path / "sys/module/loaded").mkdir(parents=True)
    names = ("jool", "jool_common", "nf_flow_table", "loaded", "x", "joo")
    assert [has_module(name, tmp_path) for name in names] == [
        True, True, True, True, False, False,
    ]  # fmt: skip


def test_the_latest_run_of_all_places_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    file = tmp_path / "last.toml"
    recipe = load("linux-ipv4")
    assert last_run(recipe, file) is None
    golden(run_in_words(None))
    last_runs.record("linux-ipv4", "here", ["Linux 6"], file)
    assert not file.exists(), "nothing is written down unless that is asked for"
    monkeypatch.setenv(last_runs.VARIABLE, "1")
    last_runs.record("linux-ipv4", "here", ["Linux 6", "Linux 6", 'a "b"'], file)
    last_runs.record("zz", "guest", ["x"], file)
    text = file.read_text()
    file.write_text(text.replace('[zz.guest]\ndate = "2', '[linux-ipv4.guest]\ndate = "1'))
    day = re.search(r"\d{4}-\d\d-\d\d", text)
    assert day
    later = tmp_path / "again.toml"
    later.write_text(file.read_text())
    found = last_run(recipe, later)
    distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
    assert found == Run(day[0], "here", ("Linux 6", 'a "b"'), distribution)
    assert (found.system, found.software) == (f"Linux 6, {distribution}", ('a "b"',))
    assert [each.place for each in runs_of(recipe, later)] == ["here", "guest"]
    last_runs.record("linux-ipv4", "here", ["vpp 1"], unnamed := tmp_path / "unnamed.toml")
    assert runs_of(recipe, unnamed)[0].system == f"Linux {platform.release()}, {distribution}"
    golden(run_in_words(last_run(recipe, later)), passing=r"\d{4}-\d\d-\d\d(?!-)")


def test_what_is_written_down_is_of_gateways_that_are_there_and_of_linux_with_kernel_and_distribution() -> None:
    here = []
    for name, (path,) in available().items():
        recipe = load(path)
        run = last_run(recipe)
        if name in NOT_LINUX:
            assert run is None, "no such machine was ever here"
        elif run is not None:
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", run.date)
            assert run.version
            assert run.place in {"here", *places(recipe)}
        here += [run for run in runs_of(recipe) if run.place == "here"]
    assert len(here) > 40
    assert [run for run in here if "not recorded" in run.system] == []


def test_the_list_stays_readable_and_says_what_was_never_run() -> None:
    said = CliRunner().invoke(gateways.command, ["-v"])
    assert said.exit_code == 0
    assert max(map(len, said.output.splitlines())) <= 100
    flat = re.sub(r"\s+", " ", said.output)
    for name in NOT_LINUX:
        assert name in flat


def test_json_has_places_and_runs() -> None:
    said = CliRunner().invoke(gateways.command, ["--json"])
    found = {one["name"]: one for one in json.loads(said.output)["gateways"]}
    assert found["freebsd-pf"]["places"] == ["ssh"]
    assert found["freebsd-pf"]["system"] == "FreeBSD"
    assert found["freebsd-pf"]["last_run"] is None
    assert "here" in found["nftables-nat44"]["places"]


@pytest.mark.parametrize("name", ["nftables-flowtable-nat44", "map-t-jool"])
def test_one_gateway_tells_what_its_kernel_must_have_and_a_guest_that_needs_an_own_build_the_option(
    name: str, golden: Golden
) -> None:
    said = CliRunner().invoke(gateways.command, ["show", name])
    golden([line for line in said.output.splitlines() if re.match(r"  (kind|runs|needs|kernel) ", line)])
    own = "own build (--guest-files)"
    assert (own in said.output) is (name == "map-t-jool")
    assert own not in CliRunner().invoke(gateways.command, ["show", "jool-nat64"]).output


def test_a_run_has_the_distribution_of_its_guest_and_what_it_lacks_is_called_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv(last_runs.VARIABLE, "1")
    file = tmp_path / "last.toml"
    last_runs.record("jool-nat64", "guest", ["Linux 6.1", "Jool 4"], file)
    (run,) = runs_of(load("jool-nat64"), file)
    golden(run.system)
    golden(Run("2026-11-25", "guest", ("Linux 6.1", "Jool 4")).system)
    assert Run("2026-11-25", "here", ("vpp 1",)).system == "not recorded"
    golden(Run("2026-11-25", "here", ("vpp 1",), "Debian").system)

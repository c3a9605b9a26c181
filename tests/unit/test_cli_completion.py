# SPDX-License-Identifier: Apache-2.0
"""What the TAB key offers, and the scripts that let a shell ask for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from tests.absent import absent
from tests.unit import listed
from tests.unit.conftest import Ran
from tests.unit.made_registers import left_behind, own_labs

from natgauge.cli import app

__all__ = ["own_labs"]

SHELLS = ("bash", "zsh", "fish")


def offered(*words: str) -> list[str]:
    """Values for the last word."""
    shell = BashComplete(app, {}, "natgauge", "_NATGAUGE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("me",), ["measure"]),
        (("lab", ""), ["clean", "down", "guest", "status", "up"]),
        (("measure", "throughput", "--table"), ["--table-size"]),
        (("measure", "thr"), ["throughput"]),
        (("measure", ""), listed.metrics()),
        (
            ("measure", "throughput", "--gateway", "nftables-"),
            [
                *("nftables-flowtable-nat44", "nftables-nat44", "nftables-nat66", "nftables-nptv6"),
                *("nftables-pair-nat44", "nftables-strict-nat44"),
            ],
        ),
        (("measure", "throughput", "--placement", ""), ["shared", "isolated"]),
        (("gateways", "show", "tayga-s"), ["tayga-siit"]),
        (("lab", "up", "--gateway", "iptables"), ["iptables-nat44", "iptables-nat66"]),
        (("measure", "throughput", "--profile", ""), ["default", "quick", "standard", "rfc"]),
        (("measure", "throughput", "--lab", ""), listed.lab_kinds()),
        (("plan", "new", "--metric", "thr"), ["throughput"]),
        (("plan", "new", "--gateway", "tayga-s"), ["tayga-siit"]),
        (("compare", "tayga-s"), ["tayga-siit"]),
        (("published", ""), listed.published()),
        (("report", "--published", ""), listed.published()),
        (("completion", ""), list(SHELLS)),
    ],
    ids=" ".join,
)
def test_what_fits_is_offered(words: tuple[str, ...], found: list[str]) -> None:
    assert sorted(offered(*words)) == sorted(found)


@pytest.mark.parametrize("words", [("lab", "down", ""), ("measure", "pdv", "--lab-name", "")], ids=" ".join)
def test_labs_of_this_machine_are_offered_and_nothing_is_said_where_they_cannot_be_read(
    words: tuple[str, ...], own_labs: Path
) -> None:
    for name in ("one", "two"):
        left_behind(name, kept=True)
    assert offered(*words) == ["one", "two"]
    (own_labs / "one.json").write_text("damaged")
    assert offered(*words) == []


def test_a_path_is_completed_by_the_shell() -> None:
    shell = BashComplete(app, {}, "natgauge", "_NATGAUGE_COMPLETE")
    (item,) = shell.get_completions(["measure", "throughput", "--gateway"], "./mine")
    assert item.type == "file"


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_can_read_its_script(shell: str, ran: Ran) -> None:
    script = ran(["completion", shell]).out
    assert f"_NATGAUGE_COMPLETE={shell}_complete" in script
    if absent(shell):
        pytest.skip(f"there is no {shell} here")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_bash_completes_with_its_script(tmp_path: Path) -> None:
    program = tmp_path / "natgauge"
    program.write_text(f"#!{sys.executable}\nfrom natgauge.cli import main\nmain()\n")
    program.chmod(0o755)
    typed = f"""
        PATH={tmp_path}:$PATH
        source <(natgauge completion bash)
        COMP_WORDS=(natgauge measure thr) COMP_CWORD=2
        _natgauge_completion natgauge
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("throughput\n", "")

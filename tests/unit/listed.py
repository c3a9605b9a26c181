# SPDX-License-Identifier: Apache-2.0
"""The names that natgauge lists to its users: metrics, gateways, kinds of labs, published tables."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from functools import cache

from natgauge.cli import run


@cache
def said(*words: str) -> str:
    """What a command line prints that changes nothing."""
    with redirect_stdout(io.StringIO()) as printed:
        assert run(list(words)) == 0
    return printed.getvalue()


def metrics() -> list[str]:
    _, _, listed = said("measure", "--help").partition("\nMetrics:\n")
    return re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE)


def lab_kinds() -> list[str]:
    _, _, listed = said("measure", "throughput", "--help").partition("Kind of lab: ")
    return re.findall(r"([a-z]+)\s\(", listed.partition("[default:")[0])


def gateways() -> list[str]:
    return [gateway["name"] for gateway in json.loads(said("gateways", "--json"))["gateways"]]


def published() -> list[str]:
    """The published tables, in the order of their documents."""
    return [line.split()[0] for line in said("published").splitlines()]

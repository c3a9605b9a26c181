# SPDX-License-Identifier: Apache-2.0
"""What natgauge lists to its users: metrics, gateways with their recipes, kinds of labs, published tables."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from functools import cache
from typing import Any

from natgauge.cli import run


def printed(*words: str) -> str:
    """What a command line prints."""
    with redirect_stdout(io.StringIO()) as output:
        assert run(list(words)) == 0
    return output.getvalue()


#: The same of one that changes nothing and always prints the same.
said = cache(printed)


def metrics() -> list[str]:
    _, _, listed = said("measure", "--help").partition("\nMetrics:\n")
    return re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE)


def lab_kinds() -> list[str]:
    _, _, listed = said("measure", "throughput", "--help").partition("Kind of lab: ")
    return re.findall(r"([a-z]+)\s\(", listed.partition("[default:")[0])


def gateways() -> list[str]:
    return [gateway["name"] for gateway in json.loads(said("gateways", "--json"))["gateways"]]


def shown(gateway: str) -> Any:
    """All that `natgauge gateways show` says of a gateway, whose file may be another one the next time."""
    return json.loads(printed("gateways", "show", gateway, "--json"))


#: The same of a gateway that comes with natgauge.
recipe = cache(shown)


def published() -> list[str]:
    """The published tables, in the order of their documents."""
    return [line.split()[0] for line in said("published").splitlines()]

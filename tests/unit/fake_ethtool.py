# SPDX-License-Identifier: Apache-2.0
"""Stands in for ethtool: settings of ports in ethtool.json beside this file, printed in ethtool's words."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FIELDS = {
    "s": "IP SA",
    "d": "IP DA",
    "f": "L4 bytes 0 & 1 [TCP/UDP src port]",
    "n": "L4 bytes 2 & 3 [TCP/UDP dst port]",
}


def channels(port: str, one: dict[str, Any]) -> str:
    parts = []
    for heading, numbers in (("Pre-set maximums:", one["most"]), ("Current hardware settings:", one["queues"])):
        rows = [f"{kind}:\t\t{numbers.get(kind.lower(), 'n/a')}" for kind in ("RX", "TX", "Other", "Combined")]
        parts += [heading, *rows]
    return "\n".join([f"Channel parameters for {port}:", *parts])


#: The part of the settings that an option shows or sets.
PARTS = {
    "-l": "queues",
    "-L": "queues",
    "-n": "hash",
    "-N": "hash",
}


def hashing(_port: str, one: dict[str, Any], flow: str) -> str:
    fields = [FIELDS[letter] for letter in one["hash"][flow]]
    return "\n".join(["UDP over IPV4 flows use these fields for computing Hash flow key:", *fields])


def main(file: Path, verb: str, port: str, *words: str) -> str:
    """Do what ethtool would, with the settings of this file."""
    told = json.loads(file.read_text())
    one = told[port]
    part = PARTS[verb]
    if part not in one:
        sys.exit("netlink error: Operation not supported")
    if verb == "-n":
        return hashing(port, one, words[1])
    if verb == "-l":
        return channels(port, one)
    if verb == "-N":
        one["hash"][words[1]] = words[2]
    else:
        pairs = zip(words[::2], words[1::2], strict=True)
        one[part] |= {name: int(value) if value.isdecimal() else value for name, value in pairs}
    file.write_text(json.dumps(told))
    return ""


if __name__ == "__main__":
    sys.stdout.write(main(Path(__file__).with_name("ethtool.json"), *sys.argv[1:]))

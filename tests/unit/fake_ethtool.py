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


def coalescing(port: str, one: dict[str, Any]) -> str:
    words = one["coalescing"]
    first = f"Adaptive RX: {words.get('adaptive-rx', 'n/a')}  TX: {words.get('adaptive-tx', 'n/a')}"
    return f"Coalesce parameters for {port}:\n{first}\nstats-block-usecs:\tn/a\n\nrx-usecs:\t{words['rx-usecs']}\n"


def pause(port: str, one: dict[str, Any]) -> str:
    words = one["pause"]
    return (
        f"Pause parameters for {port}:\nAutonegotiate:\t{words['autoneg']}\nRX:\t\t{words['rx']}\nTX:\t\t{words['tx']}"
    )


def offloads(port: str, one: dict[str, Any]) -> str:
    words = one["offloads"]
    lines = {"rxvlan": "rx-vlan-offload", "lro": "large-receive-offload", "rx-gro-hw": "rx-gro-hw"}
    return "\n".join([f"Features for {port}:", *(f"{line}: {words[name]}" for name, line in lines.items())])


def energy(port: str, one: dict[str, Any]) -> str:
    status = {"on": "enabled - active", "off": "disabled"}[one["energy"]["eee"]]
    return f"EEE settings for {port}:\n\tEEE status: {status}\n\tTx LPI: 17 (us)\n"


#: The part of the settings that an option shows or sets.
PARTS = {
    "-l": "queues",
    "-L": "queues",
    "-c": "coalescing",
    "-C": "coalescing",
    "-a": "pause",
    "-A": "pause",
    "-n": "hash",
    "-N": "hash",
    "-k": "offloads",
    "-K": "offloads",
    "--show-eee": "energy",
    "--set-eee": "energy",
}
SHOWN = {"-l": channels, "-c": coalescing, "-a": pause, "-k": offloads, "--show-eee": energy}


def hashing(_port: str, one: dict[str, Any], flow: str) -> str:
    fields = [FIELDS[letter] for letter in one["hash"][flow]]
    return "\n".join(["UDP over IPV4 flows use these fields for computing Hash flow key:", *fields])


def main(file: Path, verb: str, port: str, *words: str) -> str:
    """Do what ethtool would, with the settings of this file."""
    told = json.loads(file.read_text())
    one = told[port]
    part = PARTS[verb]
    if part not in one or one.get("refuses") == verb:
        sys.exit("netlink error: Operation not supported")
    if verb == "-n":
        return hashing(port, one, words[1])
    if verb in SHOWN:
        return SHOWN[verb](port, one)
    if verb == "-N":
        one["hash"][words[1]] = words[2]
    elif one.get("deaf") != verb:
        pairs = zip(words[::2], words[1::2], strict=True)
        one[part] |= {name: int(value) if value.isdecimal() else value for name, value in pairs}
    file.write_text(json.dumps(told))
    return ""


if __name__ == "__main__":
    sys.stdout.write(main(Path(__file__).with_name("ethtool.json"), *sys.argv[1:]))

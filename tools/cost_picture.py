# SPDX-License-Identifier: Apache-2.0
"""Draw what rule sets cost: `python -m tools.cost_picture` writes the picture of README.md from the stored runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
EVIDENCE: Final = ROOT / "benchmarks" / "results" / "2026-11-26-rule-sets.md"
PICTURE: Final = ROOT / "docs" / "example-reports" / "costs.svg"
#: Gateways of the picture, from the top, and what people call them.
_NAMES: Final = {
    "ufw-nat44": "ufw",
    "kube-proxy-iptables-nat44": "kube-proxy, 5,000 services",
    "firewalld-nat44": "firewalld",
    "home-router-nat44": "a home router",
    "libvirt-nat44": "libvirt",
    "docker-nat44": "Docker",
}
#: name, ratio of a new connection with its interval, cost, ratio of a later frame with its interval, cost.
_ROW: Final = re.compile(r"^\| ([a-z0-9-]+) \| ([\d.]+) \([^|]*\| [\d,]+ ns \| ([\d.]+) \(", re.MULTILINE)
_TITLE: Final = "What a frame costs more than through one masquerade rule"
_SOURCE: Final = f"Linux 6.18, one core of a virtual machine; benchmarks/results/{EVIDENCE.name}, commit 072ad1a2"
_LEFT, _TOP, _STEP, _SCALE = 230, 74, 34, 5.2
_STYLE: Final = (
    "text{font:15px sans-serif;fill:#222}.title{font-weight:bold;font-size:17px}"
    ".small{font-size:12px;fill:#555}.bar{fill:#3f51b5}"
)


class Cost(NamedTuple):
    """What a gateway costs, as a ratio to the baseline: a new connection, and a later frame from the Initiator."""

    new: float
    later: float


def costs() -> dict[str, Cost]:
    """Return the costs of the tables of the page of runs, by gateway."""
    text = EVIDENCE.read_text(encoding="utf-8")
    return {name: Cost(float(new), float(later)) for name, new, later in _ROW.findall(text)}


def more(ratio: float) -> str:
    """Return a ratio in words of a table: "+32 %", or "20 times" from 2 on."""
    return f"{ratio:.0f} times" if ratio >= 2 else f"+{100 * (ratio - 1):.0f} %"


def drawn(found: dict[str, Cost]) -> str:
    """Return the SVG."""
    height = _TOP + _STEP * len(_NAMES) + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}">',
        f'<style>{_STYLE}</style><rect width="760" height="{height}" rx="6" fill="#fff"/>',
        f'<text class="title" x="20" y="30">{_TITLE}</text>',
        f'<text class="small" x="{_LEFT}" y="56">later frame</text>',
        '<text class="small" x="620" y="56">new connection</text>',
    ]
    for place, (gateway, name) in enumerate(_NAMES.items()):
        y, cost = _TOP + _STEP * place, found[gateway]
        width = round(100 * (cost.later - 1) * _SCALE)
        lines += [
            f'<text x="20" y="{y + 15}">{name}</text>',
            f'<rect class="bar" x="{_LEFT}" y="{y}" width="{width}" height="20" rx="2"/>',
            f'<text x="{_LEFT + width + 8}" y="{y + 15}">{more(cost.later)}</text>',
            f'<text x="620" y="{y + 15}">{more(cost.new)}</text>',
        ]
    lines += [f'<text class="small" x="20" y="{height - 16}">{_SOURCE}</text>', "</svg>"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(costs()), encoding="utf-8")

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
#: name, then for a new connection, a later frame from inside and one from outside: ratio with its interval, cost.
_ROW: Final = re.compile(r"^\| ([a-z0-9-]+)" + r" \| ([\d.]+) \([^|]*\| [\d,]+ ns" * 3, re.MULTILINE)
_TITLE: Final = "What a frame costs more than through one masquerade rule"
_SOURCE: Final = f"Linux 6.18, one core of a virtual machine; benchmarks/results/{EVIDENCE.name}, commit 072ad1a2"
_LEFT, _TOP, _STEP, _SCALE = 230, 74, 46, 5.2
_STYLE: Final = (
    "text{font:15px sans-serif;fill:#222}.title{font-weight:bold;font-size:17px}"
    ".small{font-size:12px;fill:#555}.inside{fill:#3f51b5}.outside{fill:#e08214}"
)


class Cost(NamedTuple):
    """Costs as ratios to those of the baseline: a new connection, a later frame from inside, one from outside."""

    new: float
    inside: float
    outside: float


def costs() -> dict[str, Cost]:
    """Return the costs of the tables of the page of runs, by gateway."""
    text = EVIDENCE.read_text(encoding="utf-8")
    return {name: Cost(*map(float, ratios)) for name, *ratios in _ROW.findall(text)}


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
        f'<text class="small" x="{_LEFT}" y="56">later frame from inside (above), from outside (below)</text>',
        '<text class="small" x="620" y="56">new connection</text>',
    ]
    for place, (gateway, name) in enumerate(_NAMES.items()):
        y, cost = _TOP + _STEP * place, found[gateway]
        lines += [f'<text x="20" y="{y + 23}">{name}</text>', f'<text x="620" y="{y + 23}">{more(cost.new)}</text>']
        for top, side, ratio in ((y, "inside", cost.inside), (y + 18, "outside", cost.outside)):
            width = round(100 * (ratio - 1) * _SCALE)
            lines += [
                f'<rect class="{side}" x="{_LEFT}" y="{top}" width="{width}" height="16" rx="2"/>',
                f'<text x="{_LEFT + width + 8}" y="{top + 13}">{more(ratio)}</text>',
            ]
    lines += [f'<text class="small" x="20" y="{height - 16}">{_SOURCE}</text>', "</svg>"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(costs()), encoding="utf-8")

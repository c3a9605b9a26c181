# SPDX-License-Identifier: Apache-2.0
"""Variants of natgauge's own nftables NAT44: its recipe under another name, followed by more TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import natgauge

_RECIPES: Final = Path(natgauge.__file__).parent / "gateways" / "recipes"
_RULES: Final = """
[verbs]
start = '''
nft -f - <<RULES
table ip more
delete table ip more
table ip more {{
{body}
}}
RULES
'''
stop = '''
nft -f - <<RULES
table ip more
delete table ip more
RULES
'''
"""


def variant(folder: Path, name: str, more: str = "", *, of: str = "nftables-nat44") -> Path:
    """Write the recipe `name`, which ends with the TOML `more`, into a folder."""
    path = folder / f"{name}.toml"
    path.write_text((_RECIPES / f"{of}.toml").read_text().replace(of, name) + more)
    return path


def with_table(folder: Path, name: str, body: str) -> Path:
    """Write the recipe `name`, which has a further table with these chains and sets, into a folder."""
    return variant(folder, name, _RULES.format(body=body))


def chain(hook: str, *rules: str, name: str = "more") -> str:
    """A chain of a table; packets that no rule decides pass."""
    lines = "".join(f"        {rule}\n" for rule in rules)
    return f"    chain {name} {{\n        {hook}; policy accept;\n{lines}    }}\n"


def with_rules(folder: Path, name: str, *rules: str, hook: str = "type filter hook forward priority filter") -> Path:
    """Write the recipe `name`, which has a further chain with these rules, into a folder."""
    return with_table(folder, name, chain(hook, *rules))

# SPDX-License-Identifier: Apache-2.0
"""Screenshots of pages, for people: `python -m tests.unit.screenshots FOLDER PAGE...`.

For each page, width and colour scheme there are two pictures: the first screen, and the whole page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, Literal

from tests.unit.browser import Browser

WIDTHS: Final = (390, 800, 1280)
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def take(pages: list[Path], folder: Path) -> None:
    """Write the pictures of these pages as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    with Browser() as browser:
        for page in pages:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    browser.open(page.absolute(), width, scheme)
                    for part, whole in (("first", False), ("whole", True)):
                        name = f"{page.stem}-{width}-{scheme}-{part}.png"
                        (folder / name).write_bytes(browser.picture(whole=whole))


if __name__ == "__main__":
    take([Path(name) for name in sys.argv[2:]], Path(sys.argv[1]))

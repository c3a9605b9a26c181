# SPDX-License-Identifier: Apache-2.0
"""Write the JSON schema of each record that results folders contain; `make schemas` calls this."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from natgauge.records.schemas import schemas


def main(folder: Path) -> None:
    """Write one file for each record into a folder that exists."""
    for name, schema in schemas().items():
        (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

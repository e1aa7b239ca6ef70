"""`python -m replay.cli.reference FOLDER`: write the pages of the reference."""

from __future__ import annotations

import sys
from pathlib import Path

import policies  # noqa: F401  # importing it registers every policy
from replay.cli.reference import write_pages

if __name__ == "__main__":
    for file in write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")):
        print(file)

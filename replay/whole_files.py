"""Files that are written whole or not at all; it knows nothing of what is in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from replay.errors import OutputError

Made = TypeVar("Made")
SHOWN = 40  # letters of the target's name, so that a long one does not become too long


def replace_file(target: Path, write: Callable[[Path], Made]) -> Made:
    """Let `write` fill a temporary file beside `target`, then give it its name; what `write` returns.

    Raises OutputError when the place cannot be written.
    """
    unfinished = target.with_name(f".{target.name[:SHOWN]}.{os.getpid()}.unfinished")
    try:
        made = write(unfinished)
        unfinished.replace(target)
    except OSError as fault:
        raise OutputError(f"{target}: cannot be written ({fault.strerror or fault})") from fault
    finally:
        unfinished.unlink(missing_ok=True)
    return made

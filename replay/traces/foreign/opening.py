"""Opening a text file of other people, packed or not; it knows no format."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO

from replay.errors import TraceError

GZIP = b"\x1f\x8b"
UNREADABLE = (OSError, EOFError, zlib.error)  # what comes of a file that is cut off, or damaged, besides wrong text
TOO_DEEP = "has lists or objects that lie too deep within each other to be read"


def open_text(file: Path) -> IO[str]:
    """The text of a file, a mark of byte order left out, unpacked if it is gzip; raises `TraceError`."""
    try:
        with file.open("rb") as stream:
            packed = stream.read(2) == GZIP
        binary = gzip.open(file, "rb") if packed else file.open("rb")  # noqa: SIM115  # whoever asked closes it
    except OSError as fault:
        raise TraceError(f"{file}: cannot be read ({fault.strerror})") from fault
    return io.TextIOWrapper(binary, encoding="utf-8-sig")

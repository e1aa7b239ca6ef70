"""What a machine can do at most, as `replay probe` measured it, and the file in which that is kept for later runs.

It knows figures and a file; it measures nothing, and guesses nothing where nothing was measured.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from replay.errors import OutputError
from replay.whole_files import replace_file

FORMAT = 1
FIGURES = ("arithmetic", "read", "copy")


@dataclass(slots=True, frozen=True)
class Ceilings:
    """The best sustained rates of one device: `arithmetic` in FLOP/s of `dtype`, `read` and `copy` in bytes/s.

    `copy` counts a byte twice, once read and once written. `threads` is None where the device is no CPU. `how` tells of
    each figure by name how it was measured; `measured` is the date and time, `versions` of what.
    """

    device: str
    threads: int | None
    dtype: str
    arithmetic: float
    read: float
    copy: float
    how: Mapping[str, str]
    measured: str
    versions: Mapping[str, str | None]

    @property
    def bandwidth(self) -> float:
        """Bytes a second that memory gives at best: reading alone or copying, whichever is faster here."""
        return max(self.read, self.copy)

    @property
    def key(self) -> tuple[str, int | None, str]:
        """What a measurement is found by; a later one of the same key takes its place."""
        return self.device, self.threads, self.dtype

    @property
    def label(self) -> str:
        """`AMD EPYC, 2 threads, float32`."""
        return key_label(*self.key)


def key_label(device: str, threads: int | None, dtype: str) -> str:
    """Device, threads and number type as people read them."""
    count = [] if threads is None else [f"{threads} thread" if threads == 1 else f"{threads} threads"]
    return ", ".join([device, *count, dtype])


def cache_file() -> Path:
    """`replay/ceilings.json` in the user's folder for caches: XDG_CACHE_HOME, or `.cache` in the home folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")  # by its specification, a relative path is to be ignored
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return folder / "replay" / "ceilings.json"


def read_ceilings(file: Path) -> list[Ceilings]:
    """All that is kept in `file`; none where there is no file. OutputError when it cannot be read as ceilings."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']}, not {FORMAT}")
        return [ceilings_of(entry) for entry in document["ceilings"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault) or type(fault).__name__
        raise OutputError(
            f"{file}: holds no ceilings that can be read ({reason}); `replay probe` writes it anew"
        ) from fault


def ceilings_of(entry: Mapping[str, Any]) -> Ceilings:
    """Ceilings from what JSON holds of them. ValueError, TypeError or KeyError when that is something else."""
    ceilings = Ceilings(**{field.name: entry[field.name] for field in fields(Ceilings)})
    for name in FIGURES:
        figure = getattr(ceilings, name)
        if isinstance(figure, bool) or not isinstance(figure, int | float) or not 0 < figure < float("inf"):
            raise ValueError(f"{name} is {figure!r}, not a rate")
    return ceilings


def find_ceilings(file: Path, key: tuple[str, int | None, str]) -> Ceilings | None:
    """The kept measurement of this device, thread count and number type; None where there is none.

    Raises OutputError when the file cannot be read.
    """
    return next((ceilings for ceilings in read_ceilings(file) if ceilings.key == key), None)


def keep_ceilings(file: Path, measured: Sequence[Ceilings]) -> None:
    """Write `measured` into `file`, beside what it holds of other keys. A file that cannot be read is replaced.

    It is written as a whole or not at all. Raises OutputError when the place cannot be written.
    """
    try:
        kept = read_ceilings(file)
    except OutputError:
        kept = []
    fresh = {ceilings.key: ceilings for ceilings in [*kept, *measured]}
    document = {"format": FORMAT, "ceilings": [asdict(ceilings) for ceilings in fresh.values()]}
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OutputError(f"{file}: cannot be written ({fault.strerror or fault})") from fault
    replace_file(file, lambda target: target.write_text(text, encoding="utf-8"))

"""The files of ServeGen: of each client its rates and gaps, window by window, and how its lengths are distributed.

It draws nothing. The files are other people's: a dict that stands there as text is taken apart, never evaluated, and
what is too large is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from replay.clock import NANOSECONDS
from replay.errors import TraceError
from replay.traces.faults import place_text
from replay.traces.foreign.opening import UNREADABLE, open_text
from replay.traces.generating.gaps import FamilyName
from replay.traces.generating.zipf import cumulated, picker
from replay.traces.source import first_line
from replay.traces.wording import listed

TRACE, DATASET = re.compile(r"chunk-(\d{1,9})-trace\.csv"), "chunk-{}-dataset.json"
COLUMNS = 6
USUAL = 600  # seconds of a window that no other follows
LARGEST = 256 << 20  # bytes, or characters, of a file
LONGEST, MANY = 1 << 31, 10_000  # tokens, and media of a request
LEAST = {"gamma": 1e-3, "weibull": 0.1}  # shapes; below, nearly all gaps are nothing and a few are everything
SUM = 1e-3  # probabilities may be off by so much together
POINTER = "version https://git-lfs"
FAMILIES: dict[str, FamilyName | None] = {"Gamma": "gamma", "Weibull": "weibull", "": None}
PROMPTS, OUTPUT = ("input_tokens", "text_tokens"), "output_tokens"
MEDIA = ("image", "audio", "video")


@dataclass(frozen=True, slots=True)
class Fit:
    """A window: nanoseconds from its beginning to its end, requests a second, and the family and shape of the gaps."""

    begin: int
    end: int
    rate: float
    family: FamilyName | None
    shape: float

    @property
    def requests(self) -> float:
        """How many are to be expected."""
        return self.rate * (self.end - self.begin) / NANOSECONDS

    @property
    def variation(self) -> float | None:
        """The coefficient of variation of gaps of this shape; None where no family was fitted."""
        if self.family is None:
            return None
        shape = max(self.shape, LEAST[self.family])
        if self.family == "gamma":
            return 1 / math.sqrt(shape)
        return math.sqrt(math.expm1(math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape)))


@dataclass(frozen=True, slots=True)
class Distribution:
    """Whole numbers, and how often one of them or of those before it is."""

    values: list[int]
    upto: list[float]

    def drawn_from(self, stream: Random) -> Callable[[], int]:
        """A function that draws one."""
        pick = picker(self.upto, stream)
        return lambda: self.values[pick()]


@dataclass(frozen=True, slots=True)
class Lengths:
    """What requests are like from an instant on: tokens of text and of answers, and for each medium how many it is in a
    request and how long one is."""

    begin: int
    prompt: Distribution
    output: Distribution
    media: list[tuple[Distribution, Distribution]]


def fits_of(file: Path, begin: int, end: int) -> list[Fit]:
    """The windows of a client between two instants, cut off there; raises `TraceError`, naming row and column."""
    rows = [line.strip().split(",") for line in content(file).splitlines() if line.strip()]
    starts = [finite(file, row, "window_start_s", cells[0]) for row, cells in enumerate(rows)]
    after = [*starts[1:], starts[-1] + (starts[-1] - starts[-2] if len(starts) > 1 else USUAL)] if starts else []
    found = []
    for row, (cells, start, stop) in enumerate(zip(rows, starts, after, strict=True)):
        if stop <= start:
            raise TraceError(f"{place_text(file, row + 1, 'window_start_s')}: {stop:g}, but must be after {start:g}")
        first, last = max(round(start * NANOSECONDS), begin), min(round(stop * NANOSECONDS), end)
        if first < last:
            found.append(fit(file, row, cells, first, last))
    return found


def fit(file: Path, row: int, cells: list[str], begin: int, end: int) -> Fit:
    """The window that a row is."""
    if len(cells) != COLUMNS:
        raise TraceError(f"{place_text(file, row)}: has {len(cells)} columns, but must have {COLUMNS}")
    family, shape = cells[3].strip(), finite(file, row, "p1", cells[4])
    if family not in FAMILIES:
        raise TraceError(f"{place_text(file, row, 'family')}: {family!r:.40}, but must be Gamma, Weibull or empty")
    if family and shape <= 0:
        raise TraceError(f"{place_text(file, row, 'p1')}: {shape:g}, but must be more than 0: it is a shape")
    return Fit(begin, end, finite(file, row, "requests_per_s", cells[1]), FAMILIES[family], shape)


def finite(file: Path, row: int, column: str, text: str) -> float:
    """A number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise TraceError(f"{place_text(file, row, column)}: {text!r:.40}, but must be a number of at least 0")
    return number


def lengths_of(file: Path, begin: int, end: int, strange: dict[str, None]) -> list[Lengths]:
    """How a client's lengths are distributed between two instants, in order of time; `strange` fields are left out.

    A window of which a distribution is empty says nothing: the one before it goes on.
    """
    windows = sorted((seconds(file, start) * NANOSECONDS, fields) for start, fields in document(file).items())
    said = [(start, fields) for start, fields in windows if start < end and not silent(file, start, fields)]
    current = [start for start, _ in said if start <= begin][-1:]
    return [lengths(file, start, fields, strange) for start, fields in said if start > begin or start in current]


def lengths(file: Path, begin: int, fields: Mapping[str, str], strange: dict[str, None]) -> Lengths:
    """The distributions of one window."""
    place = f"{file}, window {begin // NANOSECONDS}"
    prompt = next((name for name in PROMPTS if name in fields), PROMPTS[0])
    counted = [(f"{medium}_count", f"{medium}_tokens") for medium in MEDIA]
    media = [pair for pair in counted if pair[0] in fields and pair[1] in fields]
    used = [prompt, OUTPUT, *(name for pair in media for name in pair)]
    strange |= dict.fromkeys(name for name in fields if name not in used)
    for name in (prompt, OUTPUT):
        if name not in fields:
            raise TraceError(f"{place}: the field {name!r} is missing; there are: {listed(fields)}")
    read = {name: distribution(f"{place}, field {name!r}", fields[name]) for name in used}
    for count, _ in media:
        if max(read[count].values) > MANY:
            raise TraceError(f"{place}, field {count!r}: has a number above {MANY:,}")
    return Lengths(begin, read[prompt], read[OUTPUT], [(read[count], read[tokens]) for count, tokens in media])


def document(file: Path) -> dict[str, Any]:
    """The JSON object that the file is."""
    if not file.is_file():
        raise TraceError(f"{file}: there is no such file, but each client's lengths are in one")
    try:
        found = json.loads(content(file))
    except (ValueError, RecursionError) as fault:
        raise TraceError(f"{file}: is not JSON") from fault
    if not isinstance(found, dict):
        raise TraceError(f"{file}: must be one JSON object, of windows by their start")
    return found


def content(file: Path) -> str:
    """All of a file's text."""
    if file.stat().st_size > LARGEST:
        raise TraceError(f"{file}: is larger than {LARGEST >> 20} MiB, so it is no file of ServeGen's")
    try:
        with open_text(file) as stream:
            text = stream.read(LARGEST)
    except UnicodeDecodeError as fault:
        raise TraceError(f"{file}: is not text in UTF-8") from fault
    except UNREADABLE as fault:
        raise TraceError(f"{file}: cannot be read ({first_line(fault)})") from fault
    if text.startswith(POINTER):
        raise TraceError(f"{file}: is where Git LFS would put the file, not the file: get it with `git lfs pull`")
    return text


def seconds(file: Path, start: str) -> int:
    """The start of a window."""
    if not (start.isascii() and start.isdigit() and len(start) < 10):
        raise TraceError(f"{file}: {start!r:.40} is no window's start, which must be whole seconds")
    return int(start)


def silent(file: Path, begin: int, fields: object) -> bool:
    """Whether a window has an empty distribution; refuses one that has none at all."""
    if not isinstance(fields, dict) or not all(isinstance(text, str) for text in fields.values()):
        raise TraceError(f"{file}, window {begin // NANOSECONDS}: must be an object of distributions as text")
    return any(text.strip() == "{}" for text in fields.values())


def distribution(place: str, text: str) -> Distribution:
    """A dict of whole numbers and probabilities, as Python writes it."""
    text = text.strip()
    right = "a dict of whole numbers and their probabilities, such as {12: 0.25, 13: 0.75}"
    try:
        if not (text.startswith("{") and text.endswith("}")):
            raise ValueError
        pairs = [item.split(":") for item in text[1:-1].split(",")]
        values, weights = [int(value) for value, _ in pairs], [float(weight) for _, weight in pairs]
    except ValueError as fault:
        raise TraceError(f"{place}: {text!r:.40}, but must be {right}") from fault
    if not all(0 <= value <= LONGEST for value in values) or not all(0 <= weight <= 1 for weight in weights):
        raise TraceError(f"{place}: has a number below 0 or above {LONGEST:,}, or a probability that is none")
    if abs(math.fsum(weights) - 1) > SUM:
        raise TraceError(f"{place}: the probabilities are {math.fsum(weights):g} together, but must be 1")
    return Distribution(values, cumulated(weights))

"""ServeGen (Xiang et al., NSDI 2026): what Alibaba's clients send to a model, as fits; requests are drawn from them.

A folder holds one model, such as `data/language/m-large`. `chunk-N-trace.csv` has client N's windows of 600 seconds
without a header: start, requests a second, coefficient of variation, family of the gaps (Gamma, Weibull, or none where
there was nothing to fit), and its two parameters. `chunk-N-dataset.json` says how lengths are distributed, from a
window's start to the next one's.

Each client is a user. Its gaps are drawn from the family fitted, with the shape fitted, and stretched so that there are
as many requests as the window's rate says; where a shape and a coefficient of variation disagree, as they do for a
Weibull distribution, the shape counts; one that is below 0.1, or below 0.001 for Gamma, is taken as that. Prompts and
answers are drawn apart from each other, because only their own distributions are known. The tokens of images, audio and
video are drawn from their distributions and added to the prompt. What comes out is no measured traffic, and its history
says so. The same seed gives the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.traces.durations import nanoseconds
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_entry import fields_left_out
from replay.traces.foreign.json_objects import streamed
from replay.traces.foreign.servegen_fits import DATASET, TRACE, Fit, Lengths, fits_of, lengths_of
from replay.traces.formats import formats
from replay.traces.generating.renewals import Window, window_arrivals
from replay.traces.source import Source
from replay.traces.wording import counted, duration_text

MOST = 100_000_000  # requests that are drawn at once
SCHEMA = {"arrival_ns": pl.Int64(), "prompt_tokens": pl.Int64(), "output_tokens": pl.Int64(), "user": pl.String()}


@dataclass(frozen=True, slots=True)
class Client:
    """A client by its number, and its windows."""

    number: int
    fits: list[Fit]

    @property
    def requests(self) -> float:
        return sum(fit.requests for fit in self.fits)


@formats.register("servegen")
@dataclass(frozen=True, slots=True)
class ServeGen:
    """ServeGen's fits of clients (a folder of CSV and JSON), from which requests are drawn: not measured traffic"""

    seed: int = field(default=0, metadata={"help": "another seed gives other requests", "minimum": 0})
    start: str = field(default="0s", metadata={"help": "how far into the fits to begin, such as 8h or 90m"})
    lasts: str = field(default="1h", metadata={"help": "how long from there on, such as 10m or 24h"})
    rate: float = field(default=1.0, metadata={"help": "what every client's rate is multiplied by"})
    clients: int | None = field(
        default=None, metadata={"help": "only so many clients, those with most requests", "minimum": 1}
    )

    def __post_init__(self) -> None:
        if self.stretch[0] >= self.stretch[1]:
            raise ExperimentError(f"lasts: {self.lasts!r} is no time at all")
        if not 0 < self.rate < float("inf"):
            raise ExperimentError(f"rate: {self.rate} is not more than 0")

    @property
    def stretch(self) -> tuple[int, int]:
        """Nanoseconds, from and to."""
        begin = nanoseconds(self.start, "start")
        return begin, begin + nanoseconds(self.lasts, "lasts")

    def fits(self, look: Glimpse) -> bool:
        return look.kind == "folder" and any(TRACE.fullmatch(name) for name in look.names)

    def read(self, path: Path) -> Source:
        begin, end = self.stretch
        chosen = self.chosen(path)
        told = (
            f"sampled from ServeGen's fits of {counted(len(chosen), 'client')}, "
            f"{duration_text(end - begin)} from {duration_text(begin)} on, seed {self.seed}"
            f"{'' if self.rate == 1 else f', rates times {self.rate:g}'}: not measured traffic; "
            "prompts and answers drawn apart from each other"
        )
        notes: list[str] = []

        def rows() -> Iterator[tuple[Any, ...]]:
            strange: dict[str, None] = {}
            unknown = 0
            for client in chosen:
                known = lengths_of(path / DATASET.format(client.number), begin, end, strange)
                unknown += sum(1 for fit in client.fits if fit.rate and not known_at(known, fit.begin))
                yield from self.drawn(client, known)
            notes.extend(fields_left_out(strange))
            if unknown:
                notes.append(f"{counted(unknown, 'window')} with requests but no lengths: left out")

        source = streamed(path, SCHEMA, rows, notes=notes, history=[told])
        return replace(source, rows=source.rows.sort("arrival_ns", maintain_order=True))

    def chosen(self, path: Path) -> list[Client]:
        """The clients that send anything, those that send most if only some are wanted, in order of number."""
        if not path.is_dir():
            raise TraceError(f"{path}: is a file, but this format is a folder, with chunk-N-trace.csv for each client")
        found = {int(match[1]): file for file in path.iterdir() if (match := TRACE.fullmatch(file.name))}
        if not found:
            raise TraceError(f"{path}: there is no chunk-N-trace.csv; name the folder of one model")
        clients = [Client(number, fits_of(file, *self.stretch)) for number, file in found.items()]
        active = [client for client in clients if client.requests > 0]
        active = sorted(active, key=lambda client: (-client.requests, client.number))[: self.clients]
        if not active:
            begin, end = (duration_text(instant) for instant in self.stretch)
            raise TraceError(f"{path}: no client sends anything from {begin} to {end}")
        if (requests := self.rate * sum(client.requests for client in active)) > MOST:
            raise TraceError(
                f"{path}: about {requests:,.0f} requests would be drawn, and {MOST:,} is the most; "
                "lower lasts, rate or clients"
            )
        return sorted(active, key=lambda client: client.number)

    def drawn(self, client: Client, known: list[Lengths]) -> Iterator[tuple[int, int, int, str]]:
        """A client's requests."""
        begin = self.stretch[0]
        streams = {what: Random(f"{self.seed}/{client.number}/{what}") for what in ("arrivals", "lengths")}
        draws = {lengths.begin: lengths_from(lengths, streams["lengths"]) for lengths in known}
        windows = (self.window(fit, known) for fit in filled(client.fits, begin))
        user = str(client.number)
        for arrival in window_arrivals(windows, streams["arrivals"], begin):
            at = known_at(known, arrival)
            if at:
                yield (arrival - begin, *draws[at.begin](), user)

    def window(self, fit: Fit, known: list[Lengths]) -> Window:
        """A window to draw arrivals from, without any where there are no lengths."""
        rate = fit.rate * self.rate if known_at(known, fit.begin) else 0.0
        return Window(fit.end - fit.begin, rate, fit.variation, fit.family or "gamma")


def filled(fits: list[Fit], begin: int) -> Iterator[Fit]:
    """The windows, each beginning where the one before ends: what lies between is without requests."""
    for fit in fits:
        if fit.begin > begin:
            yield Fit(begin, fit.begin, 0.0, None, 0.0)
        yield fit
        begin = fit.end


def known_at(known: list[Lengths], instant: int) -> Lengths | None:
    """What lengths are like at an instant."""
    found = None
    for lengths in known:
        if lengths.begin <= instant:
            found = lengths
    return found


def lengths_from(lengths: Lengths, stream: Random) -> Callable[[], tuple[int, int]]:
    """A function that draws the tokens of a prompt and of an answer."""
    prompt, output = lengths.prompt.drawn_from(stream), lengths.output.drawn_from(stream)
    media = [(count.drawn_from(stream), tokens.drawn_from(stream)) for count, tokens in lengths.media]

    def draw() -> tuple[int, int]:
        tokens = prompt()
        for count, each in media:
            tokens += sum(each() for _ in range(count()))
        return tokens, output()

    return draw

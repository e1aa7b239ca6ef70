"""What is known of a cell while it runs, from a look at it a few times a second. It does not draw."""

from __future__ import annotations

from collections import deque

from replay.cli.live.history import History
from replay.cli.live.sample import Sample
from replay.replayer import Progress
from replay.request import Request

RECENT = 2.0  # seconds of the cell's clock over which the rate "now" is taken
LEAST = 0.1  # seconds below which a rate says more of the moment at which it was taken


class Tally:
    """The figures of one cell so far; `look` brings them up to date. Times are the cell's clock's.

    A first token counts once a look finds its request running, or over; so does a lag.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.ended = self.requests = self.running = self.waiting = self.tokens = self.evictions = 0
        self.completed = 0
        self.kv_use = 0.0
        self.tokens_per_second: float | None = None  # over the last seconds
        self.ttft = Sample()
        self.lag = Sample()
        self.history = {name: History() for name in ("running", "waiting", "kv_use", "tokens")}
        self.peak = dict.fromkeys(self.history, 0.0)
        self._recent: deque[tuple[float, int]] = deque([(0.0, 0)])
        self._met: set[int] = set()  # rows whose lag is counted, and who are not over
        self._answered: set[int] = set()  # rows whose first token is counted, and who are not over
        self._completed_tokens = 0
        self._start: float | None = None  # when the first request was due
        self._end = 0.0  # when the last one left

    @property
    def mean_tokens_per_second(self) -> float | None:
        """Tokens of answers so far, those that are not complete included."""
        return self.tokens / self.now if self.now >= LEAST else None

    @property
    def output_throughput(self) -> float | None:
        """As the report has it: tokens of completed answers, from when the first was due to when the last one left."""
        seconds = self._end - (self._start or 0.0)
        return self._completed_tokens / seconds if seconds > 0 else None

    def look(self, progress: Progress) -> None:
        self.now, self.requests, self.ended = progress.now, progress.requests, progress.ended
        self.running, self.waiting, self.evictions = progress.running, progress.waiting, progress.evictions
        self.kv_use = progress.used_blocks / progress.blocks
        self.tokens = progress.tokens
        for request in progress.take_left():
            self._count(request)
            self._part(request)
        for request in progress.resident:
            self._count(request)
        self._take_rate()
        self._remember("running", self.running)
        self._remember("waiting", self.waiting)
        self._remember("kv_use", self.kv_use)

    def _count(self, request: Request) -> None:
        """The lag and the first token of a request, each once."""
        row = request.row
        if request.lag is not None and row not in self._met:
            self._met.add(row)
            self.lag.add(request.lag)
            self._start = request.due if self._start is None else min(self._start, request.due)
        if request.token_times and row not in self._answered:
            self._answered.add(row)
            if request.status != "failed":
                self.ttft.add(request.token_times[0] - request.due)

    def _part(self, request: Request) -> None:
        """A request is over, and comes no more."""
        self._met.discard(request.row)
        self._answered.discard(request.row)
        self._end = max(self._end, request.ended or 0.0)
        if request.status == "completed":
            self.completed += 1
            self._completed_tokens += request.generated

    def _take_rate(self) -> None:
        recent = self._recent
        if self.now - recent[-1][0] < LEAST:
            return
        self._remember("tokens", (self.tokens - recent[-1][1]) / (self.now - recent[-1][0]))
        recent.append((self.now, self.tokens))
        while len(recent) > 2 and recent[1][0] <= self.now - RECENT:
            recent.popleft()
        self.tokens_per_second = (self.tokens - recent[0][1]) / (self.now - recent[0][0])

    def _remember(self, name: str, value: float) -> None:
        self.history[name].add(self.now, value)
        self.peak[name] = max(self.peak[name], value)

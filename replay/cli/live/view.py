"""The lines that show a run: the run, the cell that runs, and those that ended. It knows no terminal but its size."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.cells import cell_len

from replay.cli.live.history import BARS, sparkline
from replay.cli.live.lines import Line, painted, printable
from replay.cli.live.outlook import TimeLeft
from replay.cli.live.sample import Sample
from replay.cli.live.table import Finished, table
from replay.cli.live.tally import Tally
from replay.experiment.grid import Cell
from replay.metrics.notation import UNDEFINED, duration, number

LEAST_LINES = 8  # below, one line is all there is room for
NARROW = 72  # columns below which a figure has no remark beside it
BAR = 40  # columns that a bar of requests has at most


@dataclass(slots=True)
class View:
    """All that is to be seen of a run. `tally` is None until the replay of the cell begins."""

    time_left: TimeLeft
    bars: str = BARS
    colours: bool = True
    number: int = 0
    total: int = 0
    cell: Cell | None = None
    tally: Tally | None = None
    finished: list[Finished] = field(default_factory=list)
    _table: tuple[tuple[int, int, int], list[str]] | None = None

    def frame(self, elapsed: float, columns: int, lines: int) -> list[str]:
        """What fits into a terminal, `elapsed` seconds into the cell: one column and one line are left free."""
        width, height = columns - 1, lines - 1
        if height < LEAST_LINES:
            return [painted([(self.line(elapsed), "")], width, colours=False)][:height]
        top = [*self._run(elapsed), *self._cell(width)]
        gap = int(height >= len(top) + 6)
        shown = [painted(line, width, colours=self.colours) for line in top]
        shown[1:1] = [""] * gap
        if self.finished and (room := height - len(shown) - gap) >= 2:
            shown += [""] * gap + self._rows(width, room)
        return shown[:height]

    def place(self) -> str:
        return f"[{self.number:>{len(str(self.total))}}/{self.total}]"

    def line(self, elapsed: float) -> str:
        """Where it is, in a line."""
        tally, name = self.tally, printable(self.cell.name) if self.cell else ""
        if tally is None:
            return f"{self.place()} {name}: being prepared"
        parts = [
            f"{tally.ended}/{tally.requests} done",
            f"{tally.running} running",
            f"{tally.waiting} waiting",
            f"KV {100 * tally.kv_use:.0f} %",
        ]
        if tally.tokens_per_second is not None:
            parts.append(f"{number(tally.tokens_per_second)} tokens/s")
        if tally.ttft.count:
            parts.append(f"TTFT {_quantiles(tally.ttft)}")
        if left := self.time_left.words(elapsed):
            parts.append(left)
        return f"{self.place()} {name}: " + ", ".join(parts)

    def _run(self, elapsed: float) -> list[Line]:
        done = f"{self.number - 1} of {self.total} {'cells' if self.total != 1 else 'cell'} done"
        left = self.time_left.words(elapsed)
        name = printable(self.time_left.outlook.name) or "replay"
        return [[(name, "bold"), (f"  {done}" + (f", {left}" if left else ""), "")]]

    def _cell(self, width: int) -> list[Line]:
        """The cell that runs: what it is, how far, its figures over time, its latencies."""
        if self.cell is None:
            return []
        head: Line = [
            (f"{self.place()} ", "dim"),
            (f"{self.cell.mode.name}, {printable(self.cell.policy.name)}", "bold"),
        ]
        head += [(f"  {printable(part)}", "") for part in self._particulars(self.cell)]
        tally = self.tally
        if tally is None:
            return [head, [("being prepared: its engine and its prompts", "")]]
        rate, mean = tally.tokens_per_second, tally.mean_tokens_per_second
        return [
            head,
            self._far(tally, width),
            self._figure(tally, "running", "running", str(tally.running), None, width),
            self._figure(tally, "waiting", "waiting", str(tally.waiting), None, width),
            self._figure(tally, "KV use", "kv_use", f"{100 * tally.kv_use:.0f} %", 1.0, width),
            self._figure(tally, "tokens/s", "tokens", number(rate), None, width, remark=f"mean {number(mean)}"),
            [("TTFT      ", "dim"), (_quantiles(tally.ttft) if tally.ttft.count else "no first token yet", "")],
            self._troubles(tally),
        ]

    def _particulars(self, cell: Cell) -> list[str]:
        """What sets a cell apart besides mode and policy: settings, repeat, trace; each where there are several."""
        outlook = self.time_left.outlook
        parts = [cell.variant] if cell.variant else []
        if cell.repeat == outlook.repeats:
            parts.append("again, for the noise floor")
        elif outlook.repeats > 1:
            parts.append(f"repeat {cell.repeat + 1} of {outlook.repeats}")
        if cell.trace < len(outlook.trace_names):
            parts.append(outlook.trace_names[cell.trace])
        return parts

    def _far(self, tally: Tally, width: int) -> Line:
        """How many requests are over, and how long that took."""
        shortest = self.time_left.shortest(self.number)
        simulated = self.cell is not None and self.cell.engine.kind == "simulated"
        time = f"{tally.now:.1f} s" + (" on its own clock" if simulated else "")
        if shortest > tally.now:
            time += f" of at least {shortest:.1f} s"
        count = f"{tally.ended:,} of {tally.requests:,}"
        room = max(0, min(BAR, width - 10 - cell_len(count) - cell_len(time) - 4))
        full = room * tally.ended // max(1, tally.requests)
        bar: Line = [("█" * full if self.bars == BARS else "#" * full, "bars"), ("·" * (room - full), "dim")]
        return [("requests  ", "dim"), (f"{count}  ", ""), *(bar if room >= 5 else []), (f"  {time}", "")]

    def _figure(
        self, tally: Tally, label: str, name: str, value: str, most: float | None, width: int, remark: str = ""
    ) -> Line:
        """A figure now, and over the time of the cell."""
        peak = tally.peak[name]
        if not remark:
            remark = f"peak {100 * peak:.0f} %" if name == "kv_use" else f"peak {peak:,.0f}"
        room = max(1, width - 21 - (16 if width >= NARROW else 0))
        values = tally.history[name].columns(room)
        bars = sparkline(values, most or max(values, default=0.0), self.bars)
        line: Line = [(f"{label:<10}", "dim"), (f"{value:>9}", "bold"), (f"  {bars:<{room}}", "bars")]
        return [*line, (f"  {remark}", "dim")] if width >= NARROW else line

    def _troubles(self, tally: Tally) -> Line:
        """Lag, red where it makes the cell invalid as far as it is; and evictions."""
        lag, limit = tally.lag.quantile(0.99), self.time_left.outlook.lag_limit_ms
        over = lag is not None and limit is not None and 1000 * lag > limit
        told = "p99 " + (UNDEFINED if lag is None else f"{1000 * lag:.2f} ms")
        if limit is not None:
            told += f" of {limit:g} ms allowed"
        return [("lag       ", "dim"), (told, "bad" if over else ""), (f"  evictions {tally.evictions:,}", "")]

    def _rows(self, width: int, height: int) -> list[str]:
        """The cells that ended, painted once: they do not change."""
        key = (width, height, len(self.finished))
        if self._table is None or self._table[0] != key:
            lines = table(self.finished, width, height)
            self._table = key, [painted(line, width, colours=self.colours) for line in lines]
        return self._table[1]


def _quantiles(sample: Sample) -> str:
    p50, p99 = (sample.mark + duration(sample.quantile(share)) for share in (0.5, 0.99))
    return f"p50 {p50}, p99 {p99}"

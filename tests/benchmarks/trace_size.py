"""What the commands on traces need of time and memory for a file as large as the Azure week of 2024: 27 million rows.

The file is made here: a Poisson process over seven days in Azure's format of 2024, where a fraction of zero is left
out, and, unless told otherwise, with one row in a hundred up to a minute late, so that it has to be sorted. Each
command is a process of its own, whose largest resident memory is what the system says of it. Beside them stands what
Polars alone needs to read the same file as text and to write it as Parquet, which is no more than the copying.

python tests/benchmarks/trace_size.py
python tests/benchmarks/trace_size.py --rows 1000000 --folder /somewhere/large
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from table import markdown

WEEK = 7 * 24 * 3600
MEMORY, SECONDS = 2.0, 120.0  # GiB and seconds: what it is not to go beyond
COPY = (
    "import sys, polars as pl; "
    "pl.scan_csv(sys.argv[1], infer_schema=False).sink_parquet(sys.argv[2], compression='zstd')"
)


@dataclass(slots=True)
class Need:
    """What one command needed: seconds of the clock and of processors, and GiB."""

    command: str
    seconds: float
    processor: float
    memory: float


def make(file: Path, rows: int, late: float) -> None:
    """A week of Azure's format, `late` of its rows out of order."""
    random = np.random.default_rng(7)
    time = np.cumsum(random.exponential(WEEK * 1e6 / rows, rows)).astype(np.int64)  # microseconds
    order = np.argsort(time + (random.random(rows) < late) * random.integers(0, 60_000_000, rows), kind="stable")
    frame = pl.DataFrame(
        {
            "time": time[order],
            "ContextTokens": random.lognormal(6.5, 1.0, rows).astype(np.int64) + 1,
            "GeneratedTokens": random.lognormal(4.0, 1.0, rows).astype(np.int64) + 1,
        }
    )
    instant = (pl.lit(1_715_299_200_000_000) + pl.col("time")).cast(pl.Datetime("us"))
    whole = pl.col("time") % 1_000_000 == 0
    text = (
        pl.when(whole)
        .then(instant.dt.strftime("%Y-%m-%d %H:%M:%S+00:00"))
        .otherwise(instant.dt.strftime("%Y-%m-%d %H:%M:%S%.6f+00:00"))
    )
    frame.lazy().select(text.alias("TIMESTAMP"), "ContextTokens", "GeneratedTokens").sink_csv(file)


def measure(name: str, command: Sequence[str]) -> Need:
    """Run a command to its end. Its output is not shown; SystemExit if it fails."""
    start = time.perf_counter()
    process = os.posix_spawn(
        command[0], list(command), os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{name}: failed with status {os.waitstatus_to_exitcode(status)}")
    seconds = time.perf_counter() - start
    need = Need(name, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)
    print(f"{name}: {need.seconds:.1f} s, {need.memory:.2f} GiB", file=sys.stderr)
    return need


def commands(folder: Path, csv: Path) -> list[tuple[str, list[str]]]:
    """What is measured, in order: a later command reads what an earlier one wrote."""
    week, users = folder / "week.parquet", folder / "users.parquet"
    steps = ["idle_gap_cap = '1s'", "sample_users = 0.5", "scale_tokens = 0.25", "max_prompt = 2048", "speed = 2.0"]

    def trace(*words: object) -> list[str]:
        return [sys.executable, "-m", "replay", "--quiet", "trace", *map(str, words)]

    def transform(source: Path, out: str, *steps: str) -> list[str]:
        return trace("transform", source, folder / out, *(word for step in steps for word in ("-t", step)))

    return [
        ("Polars: CSV to Parquet, as text", [sys.executable, "-c", COPY, str(csv), str(folder / "copy.parquet")]),
        ("import azure", trace("import", "azure", csv, week)),
        ("show", trace("show", week)),
        ("show --plot", trace("show", week, "--plot", folder / "pictures")),
        ("derive_user", transform(week, users.name, "derive_user = { random = 1000, zipf = 1.1 }")),
        ("show, 1,000 users", trace("show", users)),
        (", ".join(step.split(" = ")[0] for step in steps), transform(users, "changed.parquet", *steps)),
        ("merge, with itself", transform(week, "merged.parquet", f'merge = ["{week}"]')),
        ("export azure", trace("export", "azure", week, folder / "again.csv")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=27_000_000)
    parser.add_argument("--late", type=float, default=0.01, help="the share of rows that are out of order")
    parser.add_argument("--folder", type=Path, help="where the files go; they are left there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        csv = folder / "week.csv"
        # in a process of its own: what a child needs is counted from what its parent had when it started it
        maker = get_context("spawn").Process(target=make, args=(csv, arguments.rows, arguments.late))
        maker.start()
        maker.join()
        needs = [measure(name, command) for name, command in commands(folder, csv)]
    head = ["command", "seconds", "of processors", "GiB", "times the copy"]
    rows = [
        [n.command, f"{n.seconds:.1f}", f"{n.processor:.1f}", f"{n.memory:.2f}", f"{n.seconds / needs[0].seconds:.1f}"]
        for n in needs
    ]
    print(markdown(head, rows))
    worst, longest = max(n.memory for n in needs), max(n.seconds for n in needs)
    print(f"at most {worst:.2f} GiB ({MEMORY:g} allowed) and {longest:.0f} s ({SECONDS:g} allowed) a command")
    if worst > MEMORY or longest > SECONDS:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

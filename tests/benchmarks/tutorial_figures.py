"""The figures of docs/tutorial.md: which there are, where they are read from, and what the page says of them.

A figure has a name, such as `modes/static/ttft mean`, and is kept whole, in seconds, tokens and shares of one. How it
is written belongs to the place that shows it: a row of a table, or a number in the text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from replay.metrics.notation import UNDEFINED, milliseconds, number, percent, price

Figures = Mapping[str, float]
Format = Callable[[float | None], str]
SIMULATED, MEASURED = "simulated", "measured"
ROUGH = "a rough try with requests"

RUNS = {  # run: (the columns of its summary that name its cells, metrics and their statistics)
    "slots": ("mode", ("output_throughput", "slot_useful", "slot_padded", "slot_idle", "e2e mean")),
    "waits": ("mode variant", ("ttft mean", "ttft p99", "ttft_delivered mean", "resident mean", "padding_share")),
    "modes": (
        "mode",
        ("output_throughput", "ttft mean", "ttft_delivered mean", "e2e mean", "tpot mean", "padding_share", "goodput"),
    ),
    "policies": ("policy", ("output_throughput", "ttft mean", "e2e mean", "longest_wait", "jain", "goodput")),
    "ageing": ("variant", ("ttft mean", "longest_wait")),
    "bands": ("variant", ("ttft mean", "longest_wait")),
    "sizes": ("variant", ("output_throughput", "ttft mean", "tpot mean", "e2e mean", "cost_per_million_tokens")),
    "rules": ("variant", ("output_throughput", "ttft mean", "tpot mean", "resident mean")),
    "memory": ("variant", ("output_throughput", "resident mean", "evictions count", "recomputed_tokens count")),
    "prefix": ("variant", ("ttft mean", "e2e mean", "tpot mean", "cache_hit_rate", "goodput")),
    "queues": ("variant", ("rejected count", "ttft mean", "longest_wait", "goodput")),
    "timeout": ("policy", ("timed_out count", "ttft mean", "longest_wait", "goodput")),
    "loads": ("trace mode", ("output_throughput", "ttft mean", "goodput")),
}
USERS = ("ada", "ben", "pipeline", "writer")
BY_USER = ("policies", "ageing", "bands")
REAL = ("modes", "policies", "sizes", "prefix")
SIZES = (1, 8, 32, 64, 128)
POLICIES = ("fifo", "sjf", "priority", "fair", "hybrid")


def read(run: Path, name: str) -> dict[str, float]:
    """The figures of a run's folder; of several repeats, their mean."""
    columns, metrics = RUNS[name]
    summary = pl.read_parquet(run / "summary.parquet").drop_nulls("value")
    cell = pl.concat_str(columns.split(), separator=" ").str.strip_chars()
    overall = summary.filter(by="all").select(
        figure=pl.concat_str(cell, pl.lit("/"), "metric", pl.lit(" "), "statistic").str.strip_suffix(" value"),
        value="value",
    )
    wanted = overall.filter(pl.col("figure").str.split("/").list.last().is_in(metrics))
    if name in BY_USER:
        one = summary.filter(by="user", metric="ttft", statistic="mean")
        wanted = pl.concat([wanted, one.select(figure=pl.concat_str(cell, pl.lit("/"), "group"), value="value")])
    means = wanted.group_by("figure", maintain_order=True).mean()
    return {f"{name}/{figure}": value for figure, value in means.iter_rows()}


def probed(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The figures of `replay probe --json`: a row for each batch size."""
    kept = ("seconds", "tokens_per_second", "cost_per_million_tokens", "bandwidth_used", "arithmetic_used")
    return {f"probe/{row['batch_size']:g}/{name}": row[name] for row in rows for name in kept}


def of(figures: Figures, name: str, metric: str, cells: Sequence[str]) -> list[float]:
    """One metric of several cells of a run."""
    return [figures[f"{name}/{cell}/{metric}"] for cell in cells]


def size(value: int | str) -> str:
    return f"max_running={value}"


def most_efficient(figures: Figures, latency: str) -> int:
    """The batch size that the article's rule picks: the most tokens per second for each second of a latency."""
    throughput, seconds = (
        of(figures, "sizes", metric, [*map(size, SIZES)]) for metric in ("output_throughput", latency)
    )
    return max(zip(SIZES, throughput, seconds, strict=True), key=lambda row: row[1] / row[2])[0]


Columns = list[tuple[str, str, Format]]  # simulated or measured, metric, how it is written
Table = tuple[str, Sequence[tuple[str, str]], Columns]  # run, (row's name in the page, cell), columns


def both(*columns: tuple[str, Format]) -> Columns:
    """Each column simulated, then measured."""
    return [(kind, metric, written) for metric, written in columns for kind in (SIMULATED, MEASURED)]


def simulated(*columns: tuple[str, Format]) -> Columns:
    return [(SIMULATED, metric, written) for metric, written in columns]


def measured(*columns: tuple[str, Format]) -> Columns:
    return [(MEASURED, metric, written) for metric, written in columns]


def whole(value: float | None) -> str:
    return number(value, 1)


def rows(names: Sequence[object], cell: Callable[[str], str] = str) -> list[tuple[str, str]]:
    return [(str(name), cell(str(name))) for name in names]


PROBED = (1, 2, 4, 8, 16, 32, 64)
MODES = ("static", "dynamic", "continuous")
WHO: list[tuple[str, Format]] = [(user, milliseconds) for user in USERS]
TABLES: dict[str, Table] = {
    "probe": (
        "probe",
        rows(PROBED),
        measured(
            ("seconds", milliseconds),
            ("tokens_per_second", number),
            ("cost_per_million_tokens", price),
            ("bandwidth_used", percent),
            ("arithmetic_used", percent),
        ),
    ),
    "waits": (
        "waits",
        [
            ("static", "static"),
            *((f"dynamic, {wait} ms", f"dynamic max_wait_ms={wait}") for wait in (0, 50, 200, 1000)),
        ],
        simulated(
            ("ttft mean", milliseconds),
            ("ttft p99", milliseconds),
            ("ttft_delivered mean", milliseconds),
            ("resident mean", number),
            ("padding_share", percent),
        ),
    ),
    "modes": (
        "modes",
        rows(MODES),
        both(
            ("output_throughput", number),
            ("ttft_delivered mean", milliseconds),
            ("tpot mean", milliseconds),
            ("padding_share", percent),
        ),
    ),
    "policies": (
        "policies",
        rows(POLICIES),
        simulated(("output_throughput", number), ("ttft mean", milliseconds), ("longest_wait", milliseconds), *WHO),
    ),
    "policies-measured": (
        "policies",
        rows(POLICIES),
        measured(("output_throughput", number), ("ttft mean", milliseconds), ("longest_wait", milliseconds), *WHO),
    ),
    "ageing": (
        "ageing",
        rows((0, 20, 100), "ageing={}".format),
        simulated(("ttft mean", milliseconds), ("longest_wait", milliseconds), *WHO),
    ),
    "bands": (
        "bands",
        rows((0, 0.1, 0.5, 10), "band_s={}".format),
        simulated(("ttft mean", milliseconds), ("longest_wait", milliseconds), *WHO),
    ),
    "sizes": (
        "sizes",
        rows(SIZES, size),
        both(("output_throughput", number), ("tpot mean", milliseconds), ("ttft mean", milliseconds))
        + simulated(("cost_per_million_tokens", price)),
    ),
    "rules": (
        "rules",
        rows(("adaptive", "aimd"), size),
        simulated(
            ("output_throughput", number),
            ("tpot mean", milliseconds),
            ("ttft mean", milliseconds),
            ("resident mean", number),
        ),
    ),
    "memory": (
        "memory",
        rows(("reserve_max", "headroom", "aggressive"), "admission={}".format),
        simulated(
            ("resident mean", number),
            ("evictions count", whole),
            ("recomputed_tokens count", whole),
            ("output_throughput", number),
        ),
    ),
    "prefix": (
        "prefix",
        [("off", "prefix_cache=false"), ("on", "prefix_cache=true")],
        both(("cache_hit_rate", percent), ("ttft mean", milliseconds), ("tpot mean", milliseconds)),
    ),
    "queues": (
        "queues",
        rows((8, 1024), "max_waiting={}".format),
        simulated(
            ("rejected count", whole), ("ttft mean", milliseconds), ("longest_wait", milliseconds), ("goodput", percent)
        ),
    ),
    "timeout": (
        "timeout",
        [("200 ms", "fifo")],
        simulated(
            ("timed_out count", whole),
            ("ttft mean", milliseconds),
            ("longest_wait", milliseconds),
            ("goodput", percent),
        ),
    ),
    "loads": (
        "loads",
        [
            (f"{load}x, {mode}", f"evening at {load}x {mode}")
            for load in (0.5, 1, 2)
            for mode in ("static", "continuous")
        ],
        simulated(("output_throughput", number), ("ttft mean", milliseconds), ("goodput", percent)),
    ),
}

INLINE: dict[str, Callable[[Figures, Figures], str]] = {
    "probe gain": lambda s, m: number(m["probe/32/tokens_per_second"] / m["probe/1/tokens_per_second"]),
    "probe slower": lambda s, m: number(m["probe/32/seconds"] / m["probe/1/seconds"]),
    "size gain": lambda s, m: number(_ratio(s, "sizes", "output_throughput", size(32), size(1))),
    "padded": lambda s, m: percent(s["slots/static/slot_padded"]),
    "idle": lambda s, m: percent(s["slots/static/slot_idle"]),
    "slots gain": lambda s, m: number(_ratio(s, "slots", "output_throughput", "continuous", "static")),
    "modes gain": lambda s, m: number(_ratio(s, "modes", "output_throughput", "continuous", "static")),
    "modes gain measured": lambda s, m: number(_ratio(m, "modes", "output_throughput", "continuous", "static")),
    "sjf throughput": lambda s, m: percent(1 - _ratio(s, "policies", "output_throughput", "sjf", "fifo")),
    "spread": lambda s, m: percent(_spread(s)),
    "sjf longest": lambda s, m: number(_ratio(s, "policies", "longest_wait", "sjf", "fifo")),
    "efficient by token": lambda s, m: str(most_efficient(s, "tpot mean")),
    "efficient by answer": lambda s, m: str(most_efficient(s, "e2e mean")),
    "overlong": lambda s, m: milliseconds(s["sizes/max_running=128/tpot mean"]),
    "prefix gain": lambda s, m: number(1 / _ratio(s, "prefix", "ttft mean", "prefix_cache=true", "prefix_cache=false")),
    "prefix gain measured": lambda s, m: number(
        1 / _ratio(m, "prefix", "ttft mean", "prefix_cache=true", "prefix_cache=false")
    ),
    "low load": lambda s, m: percent(
        s["loads/evening at 0.5x static/output_throughput"] / s["loads/evening at 0.5x continuous/output_throughput"]
    ),
}


def _ratio(figures: Figures, name: str, metric: str, cell: str, other: str) -> float:
    return figures[f"{name}/{cell}/{metric}"] / figures[f"{name}/{other}/{metric}"]


def _spread(figures: Figures) -> float:
    """How far the policies are apart in tokens per second, as a share of the most."""
    values = of(figures, "policies", "output_throughput", POLICIES)
    return 1 - min(values) / max(values)


def rising(values: Sequence[float]) -> bool:
    return list(values) == sorted(values) and len(set(values)) == len(values)


def simulated_claims(s: Figures) -> dict[str, bool]:
    """What the text says in words of simulated figures, and whether they bear it out."""
    names = [*map(size, SIZES)]
    wait = {policy: s[f"policies/{policy}/longest_wait"] for policy in POLICIES}
    mean = {policy: s[f"policies/{policy}/ttft mean"] for policy in POLICIES}
    ageing, bands = [f"ageing={value}" for value in (0, 20, 100)], [f"band_s={value}" for value in (0, 0.1, 0.5, 10)]
    waits = [f"dynamic max_wait_ms={value}" for value in (0, 50, 200, 1000)]
    return {
        "most of static's slot time is padding": s["slots/static/slot_padded"] > 0.5,
        "continuous is through with the small trace in half the time": s["slots/continuous/output_throughput"]
        > 2 * s["slots/static/output_throughput"],
        "waiting longer makes larger batches, later first tokens and more padding": all(
            rising(of(s, "waits", metric, waits)) for metric in ("ttft mean", "resident mean", "padding_share")
        ),
        "a little waiting shortens the longest waits": s["waits/dynamic max_wait_ms=50/ttft p99"]
        < s["waits/dynamic max_wait_ms=0/ttft p99"],
        "static waits longer than dynamic": s["waits/static/ttft mean"] > max(of(s, "waits", "ttft mean", waits)),
        "under load dynamic is static": s["modes/dynamic/ttft mean"] == s["modes/static/ttft mean"],
        "continuous doubles the tokens per second": s["modes/continuous/output_throughput"]
        > 2 * s["modes/static/output_throughput"],
        "its tokens come further apart": s["modes/continuous/tpot mean"] > 1.5 * s["modes/static/tpot mean"],
        "policies hardly differ in tokens per second, sjf has the fewest": _spread(s) < 0.05
        and s["policies/sjf/output_throughput"] == min(of(s, "policies", "output_throughput", POLICIES)),
        "sjf has the shortest mean and by far the longest wait": mean["sjf"] == min(mean.values())
        and wait["sjf"] > 2 * max(wait[policy] for policy in POLICIES if policy != "sjf"),
        "fifo has the shortest longest wait": wait["fifo"] == min(wait.values()),
        "under sjf the writer pays": s["policies/sjf/writer"] > 2 * s["policies/fifo/writer"],
        "under priority the pipeline pays": s["policies/priority/pipeline"] > 1.5 * s["policies/fifo/pipeline"]
        and s["policies/priority/ada"] < s["policies/priority/ben"],
        "under fair the pipeline and the writer pay, ada and ben gain": all(
            (s[f"policies/fair/{user}"] > s[f"policies/fifo/{user}"]) == pays
            for user, pays in zip(USERS, (False, False, True, True), strict=True)
        ),
        "hybrid's longest wait is shorter than priority's": wait["fifo"] < wait["hybrid"] < wait["priority"],
        "ageing shortens the longest wait and lengthens the mean": rising(of(s, "ageing", "ttft mean", ageing))
        and rising([-value for value in of(s, "ageing", "longest_wait", ageing)]),
        "a band of none is fifo, a long one is priority": all(
            s[f"bands/band_s={band}/{user}"] == s[f"policies/{policy}/{user}"]
            for band, policy in ((0, "fifo"), (10, "priority"))
            for user in USERS
        ),
        "wider bands, longer waits": rising(of(s, "bands", "longest_wait", bands)),
        "a larger batch: more tokens per second, slower tokens, earlier first tokens, cheaper": rising(
            of(s, "sizes", "output_throughput", names)
        )
        and rising(of(s, "sizes", "tpot mean", names))
        and rising([-value for value in of(s, "sizes", "ttft mean", names)])
        and rising([-value for value in of(s, "sizes", "cost_per_million_tokens", names)]),
        "from 32 on hardly anything is gained": s["sizes/max_running=128/output_throughput"]
        < 1.05 * s["sizes/max_running=32/output_throughput"],
        "a goal of 10 ms allows 8 of the sizes run, not 32": s["sizes/max_running=8/tpot mean"]
        < 0.010
        < s["sizes/max_running=32/tpot mean"],
        "the rule of efficiency picks what its latency says": most_efficient(s, "tpot mean")
        < most_efficient(s, "e2e mean"),
        "aimd keeps its goal, adaptive knows none": s["rules/max_running=aimd/tpot mean"]
        < 0.010
        < s["rules/max_running=adaptive/tpot mean"],
        "growing block by block doubles the residents": s["memory/admission=headroom/resident mean"]
        > 1.8 * s["memory/admission=reserve_max/resident mean"],
        "too eager admission evicts and loses": s["memory/admission=aggressive/evictions count"]
        > s["memory/admission=headroom/evictions count"]
        == 0
        and s["memory/admission=aggressive/output_throughput"] < s["memory/admission=headroom/output_throughput"],
        "the cache finds most of the prompts and shortens the wait": s["prefix/prefix_cache=true/cache_hit_rate"] > 0.5
        and s["prefix/prefix_cache=true/ttft mean"] < s["prefix/prefix_cache=false/ttft mean"] / 2,
        "a short queue turns some away and serves more in time": s["queues/max_waiting=8/rejected count"]
        > s["queues/max_waiting=1024/rejected count"]
        == 0
        and s["queues/max_waiting=8/goodput"] > 2 * s["queues/max_waiting=1024/goodput"],
        "so does a time-out": s["timeout/fifo/goodput"] > 2 * s["policies/fifo/goodput"]
        and s["timeout/fifo/timed_out count"] > 0,
        "at half the load both modes give what is asked for": s["loads/evening at 0.5x static/output_throughput"]
        > 0.9 * s["loads/evening at 0.5x continuous/output_throughput"],
        "at twice the load they do not": s["loads/evening at 2x continuous/output_throughput"]
        > 2 * s["loads/evening at 2x static/output_throughput"],
    }


def measured_claims(m: Figures) -> dict[str, bool]:
    """What it says of measured ones: orders that are to hold on any machine that is not busy otherwise."""
    return {
        "a batch of 32 gives more tokens per second than one, its step takes longer": m["probe/32/tokens_per_second"]
        > 2 * m["probe/1/tokens_per_second"]
        and m["probe/32/seconds"] > m["probe/1/seconds"],
        "a single request uses a larger share of the bandwidth than of the arithmetic": m["probe/1/bandwidth_used"]
        > 4 * m["probe/1/arithmetic_used"],
        "continuous is far ahead on the real engine too": m["modes/continuous/output_throughput"]
        > 1.3 * m["modes/static/output_throughput"]
        and m["modes/continuous/ttft_delivered mean"] < 0.7 * m["modes/static/ttft_delivered mean"],
        "under sjf the writer pays on the real engine too": m["policies/sjf/writer"]
        > 1.5 * max(m[f"policies/sjf/{user}"] for user in USERS if user != "writer"),
        "under priority the pipeline pays on the real engine too": m["policies/priority/pipeline"]
        > 2 * m["policies/priority/ada"],
        "the real engine gains from 1 to 32 too": m["sizes/max_running=32/output_throughput"]
        > 1.5 * m["sizes/max_running=1/output_throughput"]
        and m["sizes/max_running=32/tpot mean"] > m["sizes/max_running=1/tpot mean"],
        "the cache helps on the real engine too": m["prefix/prefix_cache=true/ttft mean"]
        < m["prefix/prefix_cache=false/ttft mean"],
    }


def commands(page: str) -> list[list[str]]:
    """The commands of a page, in order: the words after `replay`."""
    lines = "".join(re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL)).splitlines()
    return [shlex.split(line.removeprefix("replay ")) for line in lines]


def filled(page: str, kept: Mapping[str, Any]) -> str:
    """A page with its figures: the rows under the head of each `<!-- table NAME -->`, each `**number**<!-- NAME -->`,
    and the line under `<!-- machine -->`."""
    figures: dict[str, Figures] = {kind: kept[kind]["figures"] for kind in (SIMULATED, MEASURED)}

    def table(found: re.Match[str]) -> str:
        run, cells, columns = TABLES[found["name"]]
        lines = [
            [label, *(written(figures[kind].get(f"{run}/{cell}/{metric}")) for kind, metric, written in columns)]
            for label, cell in cells
        ]
        return found["head"] + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def inline(found: re.Match[str]) -> str:
        try:
            value = INLINE[found["name"]](figures[SIMULATED], figures[MEASURED])
        except KeyError as missing:
            if missing.args[0] == found["name"]:
                raise
            value = UNDEFINED  # not measured yet
        return f"**{value}**{found['mark']}"

    machine = ", ".join(f"{name} {value}" for name, value in kept[MEASURED]["machine"].items())
    page = re.sub(r"(?P<head><!-- table (?P<name>[\w-]+) -->\n\|.*\n\|.*\n)(?:\|.*\n)*", table, page)
    page = re.sub(r"\*\*[^*\n]+\*\*(?P<mark><!-- (?P<name>[\w ]+) -->)", inline, page)
    return re.sub(r"(<!-- machine -->\n).*\n?", lambda found: f"{found[1]}{machine}\n", page)

"""Every figure of a report's tables for one cell, by the name of its column: of the rows in `recomputing`."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from recomputing import Replayed, Row, known, mean, percentile, times

Figures = dict[str, float | None]
STATUSES = ("completed", "rejected", "timed_out", "cancelled", "failed", "skipped", "unfinished")
BOUNDS = ("gate", "slots", "blocks", "budget", "policy", "nothing")


def figures(cell: Replayed, length: float) -> Figures:
    """Every figure of a cell's tables, by the name of its column; times in milliseconds, shares in percent."""
    return {**_felt(cell), **_rates(cell), **_fairness(cell, length), **_engine(cell), **_bounds(cell), **_use(cell)}


def _felt(cell: Replayed) -> Figures:
    rows, found = cell.requests, Figures()
    for name, felt in (("TTFT", "ttft"), ("delivered TTFT", "delivered"), ("TPOT", "tpot"), ("E2E", "e2e")):
        for share in (50, 95, 99):
            found[f"{name} p{share}"] = times(1e3, percentile((row[felt] for row in rows), share))
        found[f"{name} mean"] = times(1e3, mean(row[felt] for row in rows))
    found["longest wait"] = 1e3 * max(row["left"] - row["due"] for row in rows)
    gaps = [cell.without_a_token(row) for row in rows]
    over = [cell.passed_over(row) for row in rows]
    read = [cell.experience(row) for row in rows]
    found |= {"longest without a token": 1e3 * max(known(gaps)), "p99 of it": times(1e3, percentile(gaps, 99))}
    found |= {"passed over, mean": times(1e3, mean(over)), "passed over, at most": 1e3 * max(known(over))}
    found |= {"experience, mean": mean(read), "experience, worst": min(known(read))}
    found["own deadlines met"] = times(100, mean(row["met"] for row in rows))
    found["overtakes, mean"] = mean(
        sum(
            late["admitted"] is not None and late["due"] > row["due"] and late["admitted"] < row["left"]
            for late in rows
        )
        for row in rows
    )
    sessions: dict[str, list[Row]] = defaultdict(list)
    for row in (row for row in rows if row["session"] is not None):
        sessions[row["session"]].append(row)
    whole = [turns for turns in sessions.values() if all(turn["status"] == "completed" for turn in turns)]
    spans = [max(turn["finished"] for turn in turns) - min(turn["due"] for turn in turns) for turns in whole]
    answers = [sum(turn["generated_tokens"] for turn in turns) for turns in whole]
    found["sessions completed"] = 100 * len(whole) / len(sessions) if sessions else None
    found |= {f"time p{share}": times(1e3, percentile(spans, share)) for share in (50, 99)}
    found["time a token, mean"] = times(1e3, mean(span / tokens for span, tokens in zip(spans, answers, strict=True)))
    return found


def _rates(cell: Replayed) -> Figures:
    rows = cell.requests
    done = [row for row in rows if row["status"] == "completed"]
    arrivals = [row["arrival"] for row in rows]
    first, last = min(arrivals), max(arrivals)
    steady = first + 0.1 * (last - first)
    tokens = [token for row in done for token in row["token_times"]]
    seconds = cell.end - cell.start
    made = sum(row["generated_tokens"] for row in done)
    found: Figures = {"requests": len(rows)}
    found |= {status.replace("_", " "): sum(row["status"] == status for row in rows) for status in STATUSES}
    found |= {"output tokens/s": made / seconds, "prompt tokens/s": sum(row["prompt_tokens"] for row in done) / seconds}
    found["in the steady window"] = sum(steady <= token <= last for token in tokens) / (last - steady)
    found["in the drain"] = sum(token > last for token in tokens) / (cell.end - last)
    found["goodput"] = times(100, mean(row["good"] for row in rows))
    found["good requests/s"] = sum(row["good"] for row in rows) / seconds
    price = cell.entry["settings"]["engine"]["price_per_hour"]
    found["cost of 1M output tokens"] = price * seconds / 3600 / made * 1e6 if made else None
    return found


def _fairness(cell: Replayed, length: float) -> Figures:
    slow: dict[str, list[float]] = defaultdict(list)
    for row in (row for row in cell.requests if row["user"] is not None and row["slowdown"] is not None):
        slow[row["user"]].append(row["slowdown"])
    users = [float(np.mean(values)) for values in slow.values()]
    windows = cell.windows(length)
    most, usual = cell.apart()
    found: Figures = {"Jain index": sum(users) ** 2 / (len(users) * sum(user**2 for user in users)) if users else None}
    found |= {"apart at most": most, "apart on average": usual}
    found |= {"short a second, at most": max(windows["short"]), "short a second, mean": mean(windows["short"])}
    found |= {"Jain of service, mean": mean(windows["jain"]), "least / most, mean": mean(windows["ratio"])}
    return {**found, "off the fair shares, mean": times(100, mean(windows["gap"]))}


def _engine(cell: Replayed) -> Figures:
    rows, steps, entry = cell.requests, cell.steps, cell.entry
    own = [step["prefill_tokens"] + step["decodes"] for step in steps]
    took = [step["end"] - step["launched"] for step in steps]
    padding = [step["padding_tokens"] for step in steps]
    cost = entry["cost"]
    modelled = 0.0
    for step, idle in zip(steps, padding, strict=True):
        prompts = step["prefill_tokens"] > 0
        modelled += cost["fixed"] + cost["context"] * step["context_tokens"]
        modelled += cost["prefill"] * (step["prefill_tokens"] + idle * prompts)
        modelled += cost["decode"] * (step["decodes"] + idle * (not prompts))
        modelled += cost["swap"] * (step["swapped_in"] + step["swapped_out"])
    use = [100 * step["used_blocks"] / entry["blocks"] for step in steps]
    lasted = [span["end"] - span["start"] for span in cell.spans]
    useful = sum(
        seconds * span["tokens"] / (span["tokens"] + span["padding_tokens"])
        for seconds, span in zip(lasted, cell.spans, strict=True)
        if span["kind"] in ("prefill", "decode")
    )
    slots = entry["slots"] * (cell.end - cell.start)
    admitted = [row for row in rows if row["admitted"] is not None]
    found: Figures = {"batch size, mean": mean(step["scheduled"] for step in steps), "tokens a step, mean": mean(own)}
    found |= {"step p50, ms": times(1e3, percentile(took, 50)), "pace": sum(took) / modelled}
    found["scheduler p99, ms"] = times(1e3, percentile((step["planning"] for step in steps), 99))
    found |= {"KV use, mean": mean(use), "KV use, max": max(use)}
    found["padding"] = 100 * sum(padding) / (sum(padding) + sum(own))
    found |= {"slots useful": 100 * useful / slots, "slots idle": 100 * (1 - sum(lasted) / slots)}
    totals = {"evictions": "evictions", "swapped out": "swaps", "computed again": "recomputed_tokens"}
    found |= {name: sum(row[column] for row in rows) for name, column in totals.items()}
    prompts, hits = (sum(row[column] or 0 for row in admitted) for column in ("prompt_tokens", "cached_tokens"))
    return {**found, "prefix hits": 100 * hits / prompts if entry["prefix_cache"] else None}


def _bounds(cell: Replayed) -> Figures:
    steps = cell.steps
    whole = sum(step["end"] - step["start"] for step in steps)
    found = Figures()
    for bound in BOUNDS:
        held = [step for step in steps if step["bound"] == bound]
        found[f"by {bound}"] = 100 * sum(step["end"] - step["start"] for step in held) / whole
        found[f"by {bound}, steps"] = 100 * len(held) / len(steps)
    chances = [step["start"] for step in steps if step["admitted"] or not cell.entry["padded"]]
    turns = [row for row in cell.requests if row["admitted"] is not None or row["status"] == "timed_out"]
    waited = [any(row["due"] <= chance < row["left"] for chance in chances) for row in turns]
    return {**found, "waited beyond a step": times(100, mean(waited))}


def _use(cell: Replayed) -> Figures:
    """FLOP and bytes from the shape of the model, as shares of what the device can do."""
    work, ceilings, steps = cell.entry["work"], cell.entry["ceilings"], cell.steps
    shape = work["shape"]
    hidden, heads, width, layers = shape["hidden"], shape["heads"], shape["head_dim"], shape["layers"]
    matrices = 2 * hidden * width * (heads + shape["kv_heads"]) + 3 * hidden * shape["intermediate"]
    logits = hidden * shape["vocabulary"]
    took, flop, moved = [], [], []
    for step in steps:
        own = step["prefill_tokens"] + step["decodes"]
        pairs, context = step["attention_pairs"], step["context_tokens"]
        if not step["prefill_tokens"]:
            context = pairs
        elif step["padding_tokens"]:
            context = step["prefill_tokens"]
        flop.append(2 * layers * matrices * own + 2 * logits * step["new_tokens"] + 4 * layers * heads * width * pairs)
        weights = (layers * matrices + logits * (step["new_tokens"] > 0)) * work["weight_itemsize"]
        moved.append(weights + 2 * layers * shape["kv_heads"] * width * work["kv_itemsize"] * (context + own))
        took.append(step["end"] - step["launched"])
    found: Figures = {"model FLOP/s, busy": sum(flop) / sum(took), "fewest bytes/s, busy": sum(moved) / sum(took)}
    bandwidth = max(ceilings["read"], ceilings["copy"])
    for name, amounts, ceiling in (("MFU", flop, ceilings["arithmetic"]), ("MBU", moved, bandwidth)):
        found[f"{name}, busy"] = 100 * sum(amounts) / sum(took) / ceiling
        found[f"{name}, whole run"] = 100 * sum(amounts) / (cell.end - cell.start) / ceiling
        rates = [amount / seconds for amount, seconds in zip(amounts, took, strict=True)]
        found[f"{name}, step p50"] = 100 * float(np.median(rates)) / ceiling
    return {**found, "device memory, GiB": cell.entry["device_use"]["memory"] / 2**30}

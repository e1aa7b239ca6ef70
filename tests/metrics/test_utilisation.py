"""Use of the machine, from rows and manifest alone: by hand, and from the requests that the steps served."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from runs import cell_entry, request_row, simulated_run, step_row, write_manifest, write_tables

from replay.ceilings import Ceilings
from replay.executors.model_shape import ModelShape
from replay.executors.work import Work
from replay.metrics import Measured, measure
from replay.report.findings import find
from replay.report.strict_json import summary_json
from replay.report.utilisation import utilisation
from replay.results import read_run

SHAPE = ModelShape(layers=2, hidden=8, heads=4, kv_heads=2, head_dim=2, intermediate=16, vocabulary=32, tied=True)
WORK = Work(SHAPE, weight_itemsize=4, kv_itemsize=2).facts()
CEILINGS: dict[str, Any] = asdict(
    Ceilings(
        device="A Processor",
        threads=2,
        dtype="float32",
        arithmetic=1e6,
        read=1e6,
        copy=2e6,
        how={"arithmetic": "products", "read": "sums", "copy": "copies"},
        measured="2026-01-02T03:04:05+00:00",
        versions={"torch": "2"},
    )
)
METRICS = ("mfu_busy", "mfu_run", "mbu_busy", "mbu_run", "flop_rate", "byte_rate", "device_memory", "gpu_use")


def value(found: Measured, metric: str, statistic: str = "value", cell: str | None = None) -> Any:
    line = found.summary.filter(by="all", group="all", metric=metric, statistic=statistic)
    line = line if cell is None else line.filter(cell=cell)
    assert len(line) == 1, (metric, statistic)
    return line["value"].item()


def two_steps(folder: Path, **facts: Any) -> Path:
    """A prompt of 3 tokens prefilled in 10 ms; half a second of nothing; then a decode over 4 tokens in 20 ms."""
    requests = [request_row(0, prompt_tokens=3, token_times=[0.01, 0.53], ended=0.53)]
    steps = [
        step_row(0, 0.0, 0.01, prefill_tokens=3, context_tokens=3, attention_pairs=6, new_tokens=1, scheduled=1),
        step_row(1, 0.51, 0.53, decodes=1, context_tokens=4, attention_pairs=4, new_tokens=1, scheduled=1),
    ]
    write_tables(folder / "cells" / "continuous-fifo", requests, steps)
    return write_manifest(folder, [cell_entry("continuous-fifo", **facts)], rows=1)


def test_two_steps_by_hand(tmp_path: Path) -> None:
    found = measure(read_run(two_steps(tmp_path, work=WORK, ceilings=CEILINGS)))
    # 1,152 numbers in the layers and 256 in the matrix of the logits; 64 FLOP a pair; 32 bytes a token of the pool
    prefill, decode = 2 * (3 * 1152 + 256) + 64 * 6, 2 * (1152 + 256) + 64 * 4
    first, second = 4 * (1152 + 256) + 32 * (3 + 3), 4 * (1152 + 256) + 32 * (4 + 1)
    assert value(found, "mfu", "max") == pytest.approx(prefill / 0.01 / 1e6)
    assert value(found, "mfu", "min") == pytest.approx(decode / 0.02 / 1e6)
    assert value(found, "mfu", "n") == 2
    assert value(found, "mbu", "max") == pytest.approx(first / 0.01 / 2e6)  # of the faster of reading and copying
    assert value(found, "mbu", "min") == pytest.approx(second / 0.02 / 2e6)
    assert value(found, "mfu_busy") == pytest.approx((prefill + decode) / 0.03 / 1e6)
    assert value(found, "mfu_run") == pytest.approx((prefill + decode) / 0.53 / 1e6)
    assert value(found, "mbu_busy") == pytest.approx((first + second) / 0.03 / 2e6)
    assert value(found, "mbu_run") == pytest.approx((first + second) / 0.53 / 2e6)
    assert value(found, "flop_rate") == pytest.approx((prefill + decode) / 0.03)
    assert value(found, "byte_rate") == pytest.approx((first + second) / 0.03)


def test_padding_is_no_useful_work(tmp_path: Path) -> None:
    """Prompts of 1 and 3 tokens side by side, then a step in which only one of two rows is still of use."""
    requests = [request_row(0, token_times=[0.01]), request_row(1, prompt_tokens=3, token_times=[0.01, 0.02])]
    padded = {"context_tokens": 2 * 3, "padding_tokens": 2}
    steps = [
        step_row(0, 0.0, 0.01, prefill_tokens=4, attention_pairs=1 + 6, new_tokens=2, **padded),
        step_row(1, 0.01, 0.02, decodes=1, attention_pairs=4, new_tokens=1, context_tokens=2 * 4, padding_tokens=1),
    ]
    write_tables(tmp_path / "cells" / "static-fifo", requests, steps)
    found = measure(read_run(write_manifest(tmp_path, [cell_entry("static-fifo", work=WORK, ceilings=CEILINGS)])))
    flops = 2 * (5 * 1152 + 3 * 256) + 64 * (7 + 4)
    traffic = 2 * 4 * (1152 + 256) + 32 * (4 + 4) + 32 * (4 + 1)  # contexts of 1 + 3, then of 4, without padding
    assert value(found, "flop_rate") == pytest.approx(flops / 0.02)
    assert value(found, "byte_rate") == pytest.approx(traffic / 0.02)


def test_steps_that_overlap_are_not_busy_twice(tmp_path: Path) -> None:
    requests = [request_row(0, token_times=[0.01, 0.02])]
    steps = [
        step_row(0, 0.0, 0.01, prefill_tokens=1, context_tokens=1, attention_pairs=1, new_tokens=1),
        step_row(1, 0.002, 0.02, launched=0.003, decodes=1, context_tokens=2, attention_pairs=2, new_tokens=1),
    ]
    write_tables(tmp_path / "cells" / "continuous-fifo", requests, steps)
    found = measure(read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo", work=WORK)])))
    assert value(found, "flop_rate") == pytest.approx((4 * (1152 + 256) + 64 * 3) / 0.02)


@pytest.mark.parametrize("facts", [{}, {"work": WORK}, {"ceilings": CEILINGS}])
def test_what_is_not_known_is_null(tmp_path: Path, facts: dict[str, Any]) -> None:
    found = measure(read_run(two_steps(tmp_path, **facts)))
    unknown = set(METRICS) - ({"flop_rate", "byte_rate"} if "work" in facts else set())
    assert {metric: value(found, metric) for metric in unknown} == dict.fromkeys(unknown)
    assert (value(found, "mfu", "mean"), value(found, "mfu", "n")) == (None, 0)
    assert value(found, "cost_per_million_tokens") is None
    if "work" in facts:
        assert value(found, "flop_rate") > 0


def test_the_flop_of_a_cell_follow_from_the_requests_that_it_served(tmp_path: Path) -> None:
    """Nothing is evicted here, so each request computes its prompt and all of its answer but the last token, once."""
    folder = simulated_run(tmp_path, policies=["fifo"], count=40)
    run = read_run(folder)
    entries = [dict(entry, work=WORK, ceilings=CEILINGS, simulated=False) for entry in run.manifest["cells"]]
    found = measure(read_run(write_manifest(folder, entries, rows=40)))
    assert len(entries) == 3
    for entry in entries:
        rows = pl.read_parquet(folder / "cells" / entry["cell"] / "requests.parquet")
        steps = pl.read_parquet(folder / "cells" / entry["cell"] / "steps.parquet")
        assert set(rows["status"]) == {"completed"}
        assert rows["evictions"].sum() == 0
        flops = 0
        for prompt, answer in zip(rows["prompt_tokens"], rows["generated_tokens"], strict=True):
            computed = prompt + answer - 1
            flops += 2 * computed * 1152 + 2 * answer * 256 + 64 * computed * (computed + 1) // 2
        seconds = sum(end - launched for launched, end in zip(steps["launched"], steps["end"], strict=True))
        assert value(found, "mfu_busy", cell=entry["cell"]) == pytest.approx(flops / seconds / 1e6)
        assert value(found, "mfu_run", cell=entry["cell"]) == pytest.approx(flops / rows["ended"].max() / 1e6)


def test_what_was_seen_of_the_device(tmp_path: Path) -> None:
    use = {"memory": 3 * 2**30, "memory_source": "tensors", "reserved": 4 * 2**30}
    use |= {"gpu_use_mean": 0.4, "gpu_use_max": 0.9, "gpu_samples": 12}
    found = measure(read_run(two_steps(tmp_path, device_use=use)))
    assert value(found, "device_memory") == 3 * 2**30
    assert value(found, "device_memory_reserved") == 4 * 2**30
    assert (value(found, "gpu_use"), value(found, "gpu_use_max")) == (0.4, 0.9)
    assert found.summary.filter(by="all", metric="gpu_use")["n"].item() == 12


def test_the_cost_of_tokens_by_hand(tmp_path: Path) -> None:
    # 2 tokens in 0.53 s, at 3.60 an hour: 0.00053 for 2 tokens
    found = measure(read_run(two_steps(tmp_path, settings={"engine": {"price_per_hour": 3.6}})))
    assert value(found, "cost_per_million_tokens") == pytest.approx(0.00053 / 2 * 1e6)


def test_the_json_holds_what_the_shares_are_of(tmp_path: Path) -> None:
    use = {"memory": 3 * 2**30, "memory_source": "tensors"}
    findings = find(read_run(two_steps(tmp_path, work=WORK, ceilings=CEILINGS, device_use=use)))
    document = json.loads(summary_json(findings, []))
    (cell,) = document["cells"]
    assert (cell["ceilings"], cell["device_use"], cell["price_per_hour"]) == (CEILINGS, use, None)
    assert cell["metrics"]["all"]["all"]["mfu"]["n"] == 2
    assert cell["metrics"]["all"]["all"]["gpu_use"] == {"value": None}
    assert document["metrics"]["mfu"]["definition"].startswith("for each step, model FLOP")


def part(folder: Path) -> str:
    """The part on utilisation, as it stands in comparison.md."""
    return "\n\n".join(utilisation(find(read_run(folder)), "sample"))


def test_the_report_says_what_is_held_against_what(tmp_path: Path) -> None:
    use = {"memory": 3 * 2**30, "memory_source": "tensors"}
    settings = {"engine": {"price_per_hour": 3.6}}
    text = part(two_steps(tmp_path, work=WORK, ceilings=CEILINGS, device_use=use, settings=settings))
    assert "ceilings of A Processor, 2 threads, float32: 1.00 MFLOP/s (products); 1.00 MB/s read (sums)" in text
    assert "at 3.60 an hour" in text
    assert "| MFU, busy |" in text
    assert "device memory, GiB" in text
    assert "GPU use" not in text  # nothing was sampled: no column of dashes
    assert "replay probe` once" not in text


def test_a_run_without_ceilings_guesses_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    text = part(two_steps(tmp_path, work=WORK))
    assert "no ceilings were measured before this run: run `replay probe` once" in text
    assert "MFU" not in text
    assert "model FLOP/s, busy" in text


def test_a_simulated_engine_has_a_price_at_most(tmp_path: Path) -> None:
    assert part(two_steps(tmp_path / "free", simulated=True)) == ""
    text = part(two_steps(tmp_path / "priced", simulated=True, settings={"engine": {"price_per_hour": 3.6}}))
    assert "simulated seconds" in text
    assert "| continuous | fifo | 265 |" in text
    assert "replay probe" not in text

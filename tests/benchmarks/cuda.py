"""Our engine on a CUDA device: its decode steps against the bandwidth floor, and whole jobs against transformers.

A model of a named shape with dummy weights in bfloat16. Run it as `python tests/benchmarks/cuda.py [--model NAME]`; it
needs torch, transformers, numpy and pyarrow. Ratios are of medians in one run, in turn.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.clock import WallClock
from replay.executors.model_shape import ModelShape
from replay.executors.torch import build_torch_executor
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.layout import Row
from replay.executors.torch.models import load_model
from replay.executors.torch.shapes import SHAPES
from replay.pool import KVPool
from replay.predictors import predictors
from replay.records import Records
from replay.replayer import Replayer
from replay.request import Request, Workload
from replay.scheduler import policies as policy_registry
from replay.scheduler.modes import Continuous

DEVICE = torch.device("cuda")
BLOCK_SIZE = 16
PROMPT, LEAST, MOST, REQUESTS = 128, 32, 224, 128  # of the mixed job
NO_TOKEN = -1  # transformers' word for "no end token"


def seconds(work: Callable[[], object], *, repeats: int, warm: int = 3) -> float:
    """Median seconds of a piece of work, the device's part included."""
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def bandwidth() -> float:
    """Bytes a second of a large copy, read and written."""
    source = torch.randn(2**30, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: target.copy_(source), repeats=10)


def decode_rows(count: int, context: int) -> list[Row]:
    """`count` decodes over `context` tokens each, in blocks of their own."""
    each = -(-context // BLOCK_SIZE)
    order = np.random.default_rng(0).permutation(count * each).reshape(count, each).tolist()
    return [Row(np.full(1, 7, dtype=np.int32), context - 1, blocks, samples=True) for blocks in order]


def steps(executor: TorchExecutor, shape: ModelShape, rate: float, sizes: list[int], contexts: list[int]) -> None:
    """Time decode steps: with all of the host's work, and the captured graph alone."""
    heads = ("batch", "context", "step ms", "device ms", "floor ms", "floor/step", "floor/device")
    print(" ".join(f"{head:>12}" for head in heads))
    for context in contexts:
        for size in sizes:
            rows = decode_rows(size, context)
            whole = seconds(lambda rows=rows: executor.compute(rows).tolist(), repeats=30)  # type: ignore[misc]
            captured: Any = getattr(executor._steps, "_captured", [])
            fitting = next((one for one in captured if one.sizes.singles >= size and not one.sizes.tokens), None)
            alone = float("nan")
            if fitting is not None:
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                for _ in range(30):
                    fitting.graph.replay()
                end.record()
                torch.cuda.synchronize()
                alone = begin.elapsed_time(end) / 30 / 1000
            moved = shape.traffic(size, size, size * context, weight_itemsize=2, kv_itemsize=2)
            floor = moved / rate
            print(
                f"{size:12d} {context:12d} {1000 * whole:12.3f} {1000 * alone:12.3f} {1000 * floor:12.3f} "
                f"{floor / whole:12.2f} {floor / alone:12.2f}",
                flush=True,
            )


def job(vocabulary: int, *, mixed: bool) -> list[tuple[list[int], int]]:
    """Prompts and lengths of answers, the same for everybody."""
    draw = random.Random(20)
    count = REQUESTS if mixed else 64
    return [
        ([draw.randrange(vocabulary) for _ in range(PROMPT)], draw.randint(LEAST, MOST) if mixed else 128)
        for _ in range(count)
    ]


def ours(executor: TorchExecutor, blocks: int, work: list[tuple[list[int], int]]) -> dict[str, float]:
    """Run a job through scheduler, records and engine; the share of time in planning beside its seconds."""
    load = Workload(
        [Request(row, str(row), 0.0, len(prompt), output) for row, (prompt, output) in enumerate(work)],
        [output for _, output in work],
        prompts=dict(enumerate(prompt for prompt, _ in work)),
    )
    records = Records()
    executor.prepare(load)
    replayer = Replayer(
        workload=load,
        executor=executor,
        clock=WallClock(),
        policy=policy_registry["fifo"](),
        mode=Continuous(max_running=64, token_budget=2048),
        pool=KVPool(blocks, BLOCK_SIZE),
        predictor=predictors["oracle"](),
        records=records,
    )
    start = time.perf_counter()
    assert replayer.run(), "nobody stops it"
    taken = time.perf_counter() - start
    rows = records.steps.take()
    planning, end = (rows[name].to_numpy() for name in ("planning", "end"))
    full = rows["decodes"].to_numpy()[1:] == 64
    between = np.diff(end)[full & (rows["prefill_tokens"].to_numpy()[1:] == 0)]
    return {
        "seconds": taken,
        "steps": len(rows),
        "planning": float(planning.sum() / taken),
        "step_ms": 1000 * float(np.median(between)) if len(between) else float("nan"),  # 64 decodes, end to end
        "context": float(np.median(rows["context_tokens"].to_numpy()[1:][full])) / 64 if full.any() else float("nan"),
    }


def generate(model: Any, work: list[tuple[list[int], int]], batch: int) -> float:
    """transformers' `generate` in static batches."""
    start = time.perf_counter()
    for first in range(0, len(work), batch):
        part = work[first : first + batch]
        longest = max(output for _, output in part)
        model.generate(
            torch.tensor([prompt for prompt, _ in part], device=DEVICE),
            max_new_tokens=longest,
            min_new_tokens=longest,
            do_sample=False,
        )
    torch.cuda.synchronize()
    return time.perf_counter() - start


def continuous(model: Any) -> tuple[Callable[[list[tuple[list[int], int]]], float], Callable[[], None]]:
    """transformers' continuous batching: a function that runs a job, and one that ends it."""
    manager = model.init_continuous_batching(
        generation_config=transformers.GenerationConfig(do_sample=False, eos_token_id=NO_TOKEN, pad_token_id=0),
    )
    manager.start()

    def run(work: list[tuple[list[int], int]]) -> float:
        start = time.perf_counter()
        names = [manager.add_request(prompt, max_new_tokens=output) for prompt, output in work]
        left = set(names)
        while left:
            result = manager.get_result(timeout=1)
            if result is not None and result.is_finished():
                left.discard(result.request_id)
            assert manager.is_running() or not left, "the manager has stopped"
        return time.perf_counter() - start

    return run, lambda: manager.stop(block=True)


def profile(executor: TorchExecutor, size: int, context: int) -> None:
    """The kernels of one decode step, by their share of the device's time."""
    rows = decode_rows(size, context)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as taken:
        for _ in range(3):
            executor.compute(rows).tolist()
    print(taken.key_averages().table(sort_by="self_cuda_time_total", row_limit=14, max_name_column_width=70))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama-3.2-1b", choices=SHAPES)
    parser.add_argument("--batch-sizes", type=json.loads, default=[1, 8, 32, 64, 128])
    parser.add_argument("--contexts", type=json.loads, default=[256, 512, 2048])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", default="generate,continuous", help="of transformers; empty for none")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    rate = bandwidth()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}")
    print(f"copy: {rate / 1e12:.2f} TB/s")
    shape = ModelShape.of(SHAPES[given.model])
    need = max(
        max(given.batch_sizes) * -(-max(given.contexts) // BLOCK_SIZE), REQUESTS * -(-(PROMPT + MOST) // BLOCK_SIZE)
    )

    executors: dict[str, TorchExecutor] = {}
    for label, options in {
        "ours": {"overlap": True},
        "ours, no overlap": {"overlap": False},
        "ours, no graphs": {"overlap": False, "cuda_graphs": False},
    }.items():
        start = time.perf_counter()
        executor = build_torch_executor(model=given.model, device="cuda", blocks=need, block_size=BLOCK_SIZE, **options)
        built = time.perf_counter()
        executor.warm_up(rows=64, tokens=512, context=1024, slots=max(given.batch_sizes), seconds=0.3)
        print(
            f"{label}: built in {built - start:.1f} s, warm after {time.perf_counter() - built:.1f} s more", flush=True
        )
        executors[label] = executor
    steps(executors["ours"], shape, rate, given.batch_sizes, given.contexts)
    steps(executors["ours, no graphs"], shape, rate, [1, 64], [512])
    if given.profile:
        profile(executors["ours"], 64, 512)

    runs: dict[str, Callable[[list[tuple[list[int], int]]], float]] = {
        label: lambda work, executor=executor: ours(executor, need, work)["seconds"]  # type: ignore[misc]
        for label, executor in executors.items()
    }
    ends: list[Callable[[], None]] = []
    if "generate" in given.peers:
        plain = load_model(given.model, device=DEVICE, dtype=torch.bfloat16, attention="sdpa")
        runs["transformers generate, batches of 64"] = lambda work: generate(plain, work, 64)
    if "continuous" in given.peers:
        try:
            peer = load_model(given.model, device=DEVICE, dtype=torch.bfloat16, attention="sdpa")
            runs["transformers continuous"], end = continuous(peer)
            ends.append(end)
        except Exception as error:  # a peer that is not there is said and left out
            print(f"transformers continuous: {type(error).__name__}: {error}")
    for name in ("equal", "mixed"):
        work = job(shape.vocabulary, mixed=name == "mixed")
        tokens = sum(output for _, output in work)
        times: dict[str, list[float]] = {label: [] for label in runs}
        for repeat in range(given.repeats + 1):
            for label, run in list(runs.items()):
                try:
                    taken = run(work)
                except Exception as error:
                    print(f"{label}: {type(error).__name__}: {error}")
                    del runs[label]
                    continue
                if repeat:  # the first is to warm up
                    times[label].append(taken)
        first = statistics.median(times["ours"])
        print(f"{name}: {len(work)} requests, {tokens} tokens of answers")
        for label, measured in times.items():
            if measured:
                middle = statistics.median(measured)
                print(
                    f"  {label:40s} {tokens / middle:9.0f} tok/s  [{tokens / max(measured):.0f} .. "
                    f"{tokens / min(measured):.0f}]  ours / it = {middle / first:.2f}",
                    flush=True,
                )
        print("  ", ours(executors["ours"], need, work), ours(executors["ours, no overlap"], need, work))
    for end in ends:
        end()


if __name__ == "__main__":
    main()

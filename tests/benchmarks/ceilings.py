"""What the machine can do at most, through torch: float32 arithmetic and reads from memory. Prints one line of JSON."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

import torch

SECONDS = 1.0  # for each measurement
LEAST = 5  # repeats of one, however long they take
SHAPES = ((256, 1536, 1536), (2048, 2048, 2048), (4096, 4096, 4096))  # rows, inner, columns of a product
READ = 2**28  # float32 numbers, 1 GiB: far more than any cache holds


def sustained(work: float, run: Callable[[], object]) -> float:
    """`work` divided by the median of the seconds in which `run` did it, of as many times as `SECONDS` hold."""
    run()
    times: list[float] = []
    while len(times) < LEAST or sum(times) < SECONDS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return work / median(times)


def measure(threads: int) -> dict[str, float]:
    """GFLOP/s of the best shape of product, and GB/s of a sum."""
    torch.set_num_threads(threads)
    rates = []
    for rows, inner, columns in SHAPES:
        left, right, result = torch.rand(rows, inner), torch.rand(inner, columns), torch.empty(rows, columns)
        product = lambda left=left, right=right, result=result: torch.matmul(left, right, out=result)  # noqa: E731
        rates.append(sustained(2.0 * rows * inner * columns, product))
    numbers = torch.ones(READ)
    read = sustained(4.0 * READ, numbers.sum)
    return {"gflops": max(rates) / 1e9, "read_gbs": read / 1e9}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    print(json.dumps(measure(parser.parse_args().threads)))

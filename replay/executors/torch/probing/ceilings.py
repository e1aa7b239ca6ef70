"""Measures the ceilings of a device with torch: how fast memory is read and copied, and how fast matrices multiply.

Each figure is the median of several rounds, every round long enough for a clock, over random numbers in memory larger
than any cache. It knows a device and no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

import torch
from torch import Tensor

from replay.ceilings import Ceilings
from replay.clock import WallClock
from replay.errors import EngineError
from replay.executors.torch.build import find_device, find_dtype
from replay.executors.torch.linears import KINDS, pack, usable
from replay.executors.torch.memory import available_bytes
from replay.machine import hardware, versions

ROUNDS = 5
ROUND_SECONDS = 0.06  # a call that takes less is repeated within a round
UNSTEADY = 1.25  # times the median: where the fastest round was so much faster, something else was running
OTHERS = ("float32", "bfloat16", "float16")
MIB, GIB = 2**20, 2**30


@dataclass(slots=True, frozen=True)
class Figure:
    """A rate (a second), what was done for it, and the slowest and fastest of its rounds."""

    rate: float
    what: str
    slowest: float
    fastest: float
    unit: str  # of its rate, for `scaled`

    @property
    def steady(self) -> bool:
        """Whether its rounds agree; on a machine that does other things meanwhile they do not."""
        return self.fastest <= UNSTEADY * self.rate

    def __str__(self) -> str:
        low, high = self.slowest / 1e9, self.fastest / 1e9
        return f"{self.what}; median of {ROUNDS} rounds from {low:,.3g} to {high:,.3g} {self.unit}"


def measure_ceilings(
    *, device: str = "auto", threads: int | None = None, dtype: str = "auto"
) -> tuple[list[Ceilings], list[str]]:
    """The ceilings of a device, for the engine's own number type first and then for the others, and remarks.

    `device`, `threads` and `dtype` mean what they mean to an engine, and raise the same errors. Raises EngineError
    where there is too little memory to measure anything. `threads` is set for the whole process.
    """
    place = find_device(device)
    own = str(find_dtype(dtype, place)).removeprefix("torch.")
    if threads is not None:
        torch.set_num_threads(threads)
    with torch.inference_mode():
        read, copy = _bandwidth(place)
        types = [own, *(name for name in OTHERS if name != own)]
        products = {name: figure for name in types if (figure := _arithmetic(place, getattr(torch, name)))}
    if own not in products:
        raise EngineError(f"{own} matrices cannot be multiplied on {place}: engine.dtype must be another")
    unsteady = [figure.what for figure in (read, copy, products[own]) if not figure.steady]
    remarks = [f"the rounds differ much ({what}): something else was running" for what in unsteady]
    return [_ceilings(place, name, read, copy, figure) for name, figure in products.items()], remarks


def device_key(device: torch.device) -> tuple[str, int | None]:
    """The name that a device's ceilings are kept under, and its threads, if it is a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device), None
    return str(hardware()["processor"]), torch.get_num_threads()


def _ceilings(device: torch.device, dtype: str, read: Figure, copy: Figure, product: Figure) -> Ceilings:
    name, threads = device_key(device)
    installed = versions()
    return Ceilings(
        device=name,
        threads=threads,
        dtype=dtype,
        arithmetic=product.rate,
        read=read.rate,
        copy=copy.rate,
        how={"arithmetic": str(product), "read": str(read), "copy": str(copy)},
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={package: installed[package] for package in ("replay", "torch")},
    )


def _bandwidth(device: torch.device) -> tuple[Figure, Figure]:
    """Reading alone, and copying, which reads and writes."""
    available = available_bytes(device) or GIB
    size = min(4 * GIB if device.type == "cuda" else GIB // 2, available // 8)
    if size < 64 * MIB:
        raise EngineError(f"{device} has {available / MIB:.0f} MiB of memory left; to probe it takes 512 MiB")
    source = _random((size // 4,), device, torch.float32)
    target = torch.empty_like(source)
    amount = f"{source.nbytes / MIB:,.0f} MiB of random float32"
    read = _measure(device, f"sum of {amount}", source.sum, source.nbytes, "GB/s")
    copy = _measure(device, f"copy of {amount}", lambda: target.copy_(source), 2 * source.nbytes, "GB/s")
    return read, copy


def _arithmetic(device: torch.device, dtype: torch.dtype) -> Figure | None:
    """The fastest of several matrix products; None where the device has none in this number type."""
    figures = []
    try:
        for what, call, flops in _products(device, dtype):
            figures.append(_measure(device, what, call, flops, "GFLOP/s"))
    except RuntimeError:  # of number types that this device or this build of torch does not multiply
        if not figures:
            return None
    return max(figures, key=lambda figure: figure.rate)


def _products(device: torch.device, dtype: torch.dtype) -> Iterator[tuple[str, Callable[[], object], int]]:
    """Products of square matrices, of sizes at which one takes a few milliseconds at least; on a CPU also those of a
    chunk of tokens with packed weights, which are what its engine computes."""
    name = str(dtype).removeprefix("torch.")
    size, largest = (2048, 16_384) if device.type == "cuda" else (128, 2048)
    before = 0.0
    while size < largest:
        seconds = _quickest(device, _product(size, device, dtype))
        if seconds >= 0.01 and size**3 / seconds < 1.5 * before:  # long enough, and a larger one would gain no more
            break
        before, size = size**3 / seconds, 2 * size
    for side in (size // 2, size):
        yield f"product of random {side} x {side} {name} matrices", _product(side, device, dtype), 2 * side**3
    rows, side = 256, 2048
    for kind in KINDS:
        if device.type == "cpu" and kind != "plain" and usable(kind, device, dtype) is None:
            weights, x = pack(_random((side, side), device, dtype), None, kind), _random((rows, side), device, dtype)
            what = f"product of {rows} x {side} random {name} numbers with {kind} weights"
            yield what, _applied(weights, x), 2 * rows * side**2


def _applied(module: torch.nn.Module, x: Tensor) -> Callable[[], object]:
    return lambda: module(x)


def _product(size: int, device: torch.device, dtype: torch.dtype) -> Callable[[], object]:
    left, right = (_random((size, size), device, dtype) for _ in range(2))
    result = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=result)


def _random(shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Uniform numbers: zeros would take less power, and so less time, than a model's numbers do."""
    return torch.rand(shape, device=device, dtype=torch.float32).sub_(0.5).to(dtype)


def _measure(device: torch.device, what: str, call: Callable[[], object], amount: int, unit: str) -> Figure:
    """The rate at which calls get through `amount` each."""
    repeats = max(1, round(ROUND_SECONDS / max(_quickest(device, call), 1e-6)))
    rounds = [_seconds(device, call, repeats) for _ in range(ROUNDS)]
    return Figure(amount / median(rounds), what, amount / max(rounds), amount / min(rounds), unit)


def _quickest(device: torch.device, call: Callable[[], object]) -> float:
    """Seconds of a call at best, after a first one, in which kernels of its kind are loaded and chosen."""
    _seconds(device, call, 1)
    times: list[float] = []
    while len(times) < 10 and sum(times) < ROUND_SECONDS:
        times.append(_seconds(device, call, 1))
    return min(times)


def _seconds(device: torch.device, call: Callable[[], object], repeats: int) -> float:
    """Seconds that one of `repeats` calls in a row takes: by the device's own events where it has them."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            for _ in range(repeats):
                call()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1000 / repeats
    clock = WallClock()
    for _ in range(repeats):
        call()
    return clock.now() / repeats

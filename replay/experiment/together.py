"""Settings that are right one by one and wrong together, and settings that are given and that nobody looks at.

It looks at validated engines and modes, and builds none: what a machine lacks is known when an engine is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from replay.executors.torch.shapes import SHAPES
from replay.experiment.faults import Faults
from replay.experiment.settings import Engine, Goals, Service
from replay.registry import nearest
from replay.scheduler import Mode

DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def check_models(engines: Sequence[Engine], faults: Faults) -> None:
    """A model that is no named shape and no folder can only be a hub's, which has the form owner/name."""
    for model in dict.fromkeys(engine.model for engine in engines if engine.kind == "torch"):
        if model not in SHAPES and "/" not in model and not Path(model).exists():
            faults.add("engine.model", f"{model!r} is no named shape and no folder; {nearest(model, SHAPES)}")
    for model in dict.fromkeys(engine.model for engine in engines if engine.kind == "simulated" and engine.swap_gb):
        if model not in SHAPES:
            faults.add(
                "engine.model",
                f"{model!r} is no named shape, and how large a token is for engine.swap_gb a simulated engine knows "
                f"only of those; {nearest(model, SHAPES)}",
            )
    ends = [engine.model for engine in engines if engine.kind == "torch" and engine.stop == "eos"]
    for model in dict.fromkeys(model for model in ends if model in SHAPES):
        faults.add(
            "engine.stop",
            f'"eos" needs a model with an end token, and {model!r} is a named shape, which has none; '
            'name a folder with real weights, or leave it at "length"',
        )


def check_devices(engines: Sequence[Engine], faults: Faults) -> None:
    """Names that are none on any machine; whether this one has the device is known when the engine is built."""
    for device in dict.fromkeys(engine.device for engine in engines):
        if not DEVICE.fullmatch(device):
            faults.add("engine.device", f"{device!r} is no device: write 'auto', 'cpu', 'cuda' or 'cuda:N'")


def check_together(engines: Sequence[Engine], modes: Iterable[tuple[str, Mode]], faults: Faults) -> None:
    """Faults of engines beside each other and beside `modes`, by name."""
    if any(engine.memory_utilization and "kv_blocks" in engine.model_fields_set for engine in engines):
        faults.add("engine.memory_utilization", "stands in place of engine.kv_blocks; give one of the two")
    waiting = min((engine.max_waiting for engine in engines), default=None)
    for name, mode in modes:
        if name == "static" and waiting is not None and waiting < mode.slots:
            faults.add(
                f"modes.{name}.batch_size",
                f"a batch of {mode.slots} never fills when only engine.max_waiting = {waiting} may wait",
            )


def check_measures(goals: Goals | None, service: Service | None, faults: Faults) -> None:
    """What is asked for and could not be measured."""
    if goals is not None and goals.reading_tokens_per_s is not None and goals.ttft_ms is None:
        faults.add("goals.reading_tokens_per_s", "needs goals.ttft_ms beside it, when the first token is expected")
    if service is not None and service.prompt == service.output == 0:
        faults.add("service", "prompt and output are both 0, so that nobody would receive anything")


def warnings_of(
    engines: Sequence[Engine], modes: Sequence[Mode], repeats: int, *, noise_floor: bool = False
) -> list[str]:
    """What is given in vain."""
    unused = {(name, engine.kind) for engine in engines for name in engine.unused()}
    found = [f"engine.{name} is not used by a {kind} engine" for name, kind in sorted(unused)]
    real = [engine for engine in engines if engine.kind == "torch"]
    if real and all(engine.temperature == 0 for engine in real):
        given = sorted({"top_k", "top_p"}.intersection(*(engine.model_fields_set for engine in real)))
        found += [f"engine.{name} is not used at engine.temperature = 0, which takes the likeliest" for name in given]
    if real and all(engine.overlap and engine.stop == "eos" for engine in real):
        found.append('engine.overlap is not used with engine.stop = "eos": nobody knows beforehand who goes on')
    if all(mode.padded for mode in modes):
        given = [name for name in ("prefix_cache", "swap_gb") if any(getattr(engine, name) for engine in engines)]
        found += [f"engine.{name} is not used in static and dynamic mode, only in continuous" for name in given]
    if repeats > 1 and all(engine.kind == "simulated" for engine in engines):
        found.append(f"a simulated replay repeats exactly: repeats = {repeats} gives the same {repeats} times")
    if noise_floor and all(engine.kind == "simulated" for engine in engines):
        found.append("a simulated replay repeats exactly: noise_floor = true measures no noise")
    return found

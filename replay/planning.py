"""How large the KV pool of an experiment's engine will be, and the largest step that it will take, before it is built.

The arithmetic is that of the build, with parameters counted from the configuration: no weights are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replay.executors.pool_size import PoolSize
from replay.experiment.grid import Cell
from replay.experiment.loading import Experiment
from replay.experiment.settings import Engine
from replay.scheduler import Mode
from replay.traces.table import Trace


def largest_step(modes: Iterable[Mode], longest_prompt: int) -> tuple[int, int]:
    """The most tokens that a step of these modes computes, and the most that it samples.

    A padded batch computes all its prompts at once, each as wide as the longest; whole prefill takes a prompt that is
    longer than the budget alone.
    """
    tokens, samples = 1, 1
    for mode in modes:
        samples = max(samples, mode.slots)
        if mode.padded or mode.budget is None:
            tokens = max(tokens, mode.slots * longest_prompt)
        else:
            tokens = max(tokens, mode.budget, longest_prompt if mode.whole else 1)
    return tokens, samples


def step_of(experiment: Experiment, cells: Iterable[Cell], traces: Iterable[Trace], engine: Engine) -> tuple[int, int]:
    """`largest_step` of all cells of an engine."""
    modes = [experiment.make_mode(cell.mode) for cell in cells if cell.engine == engine]
    longest: list[int] = [trace.frame["prompt_tokens"].max() for trace in traces]  # type: ignore[misc]  # Int64, and never empty
    return largest_step(modes, max(longest))


def engine_pools(experiment: Experiment, cells: Sequence[Cell], traces: Sequence[Trace]) -> dict[Engine, PoolSize]:
    """The pools of those engines of the cells that have a share of the memory. Raises EngineError where none fits."""
    engines = dict.fromkeys(cell.engine for cell in cells if cell.engine.blocks is None)
    pools = {engine: engine_pool(engine, step_of(experiment, cells, traces, engine)) for engine in engines}
    for pool in pools.values():
        pool.require()
    return pools


def engine_pool(engine: Engine, step: tuple[int, int]) -> PoolSize:
    """The pool of a torch engine with a `memory_utilization`, on the device that is here, as its memory is now.

    Raises EngineError when there is no such model or device.
    """
    from replay.executors.torch.build import find_device, find_dtype  # late: torch is slow to import
    from replay.executors.torch.memory import device_memory, size_pool
    from replay.executors.torch.model_facts import model_facts

    assert engine.memory_utilization is not None, "otherwise the pool has as many blocks as kv_blocks says"
    facts = model_facts(engine.model)
    device = find_device(engine.device)
    dtype = find_dtype(engine.dtype, device)
    return size_pool(
        facts.shape,
        device=device,
        memory=device_memory(device),
        utilization=engine.memory_utilization,
        weights=facts.parameters * dtype.itemsize,
        dtype=dtype,
        kv_dtype=dtype if engine.kv_dtype == "auto" else find_dtype(engine.kv_dtype, device),
        block_size=engine.block_size,
        step=step,
        swap_gb=engine.swap_gb,
    )

"""How large the KV pool of an experiment's engine will be, and the largest step that it will take, before it is built.

The arithmetic is that of the build, with parameters counted from the configuration: no weights are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replay.executors.pool_size import GIB, PoolSize, size_pool
from replay.executors.torch.model_facts import ModelFacts
from replay.executors.torch.probing.accounting import ITEMSIZES
from replay.experiment.grid import Cell
from replay.experiment.loading import Experiment
from replay.experiment.settings import Engine
from replay.scheduler import Mode
from replay.traces.table import Trace

UTILIZATION = 0.9  # of a device's memory, where nothing else is said: the rest is for what nobody counts


@dataclass(slots=True, frozen=True)
class Plan:
    """A model on a device: its pool, the number types of its weights and of the pool, and what step was reckoned with.

    `device` is None for one that is not here.
    """

    facts: ModelFacts
    pool: PoolSize
    dtype: str
    kv_dtype: str
    step: tuple[int, int]
    device: str | None


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
    pools = {engine: plan_pool(engine, step_of(experiment, cells, traces, engine)).pool for engine in engines}
    for pool in pools.values():
        pool.require()
    return pools


def plan_pool(engine: Engine, step: tuple[int, int], memory: int | None = None) -> Plan:
    """The pool of a torch engine that may use `memory_utilization` (or 0.9) of a device of `memory` bytes.

    Without `memory`: of the engine's device, which is here, as its memory is now. For a device that is not here "auto"
    is bfloat16. Raises EngineError when there is no such model or device.
    """
    from replay.executors.torch.model_facts import model_facts

    facts = model_facts(engine.model)
    taken = swap = 0
    device = None
    if memory is None:
        from replay.executors.torch.build import find_device, find_dtype  # late: torch is slow to import
        from replay.executors.torch.memory import device_memory

        place = find_device(engine.device)
        dtype = str(find_dtype(engine.dtype, place)).removeprefix("torch.")
        memory, taken = device_memory(place)
        swap = int(engine.swap_gb * GIB) if place.type == "cpu" else 0
        device = str(place)
    else:
        dtype = "bfloat16" if engine.dtype == "auto" else engine.dtype
    kv_dtype = dtype if engine.kv_dtype == "auto" else engine.kv_dtype
    pool = size_pool(
        facts.shape,
        memory=memory,
        taken=taken,
        utilization=engine.memory_utilization or UTILIZATION,
        weights=facts.parameters * ITEMSIZES[dtype],
        itemsize=ITEMSIZES[dtype],
        kv_itemsize=ITEMSIZES[kv_dtype],
        block_size=engine.block_size,
        step=step,
        swap=swap,
    )
    return Plan(facts, pool, dtype, kv_dtype, step, device)

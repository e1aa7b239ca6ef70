"""The engine of a cell: built and warmed up when its settings are new, and kept while cells go on asking for it.

Engines are built here and nowhere else; only one is held at a time, for its memory's sake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import polars as pl

from replay.ceilings import cache_file, find_ceilings, key_label
from replay.clock import Clock, VirtualClock
from replay.errors import OutputError
from replay.executors.interface import Description, Executor
from replay.executors.model_shape import ModelShape
from replay.executors.simulated import SimulatedExecutor
from replay.executors.torch import build_torch_executor
from replay.executors.torch.shapes import SHAPES
from replay.experiment.grid import Cell
from replay.experiment.loading import Experiment
from replay.experiment.settings import Engine
from replay.planning import step_of
from replay.traces.table import Trace

ITEMSIZE = {"auto": 2, "float16": 2, "bfloat16": 2, "float32": 4}  # bytes; a simulated engine's "auto" is a GPU's
WARM_ROWS, WARM_TOKENS, WARM_CONTEXT = 64, 512, 4096  # a warm-up looks no further: beyond, the cost model extrapolates


class Engines:
    """The engines of a run, one at a time. `descriptions` says what each was, in the order in which they were built."""

    def __init__(
        self, experiment: Experiment, traces: list[Trace], cells: list[Cell], remark: Callable[[str], None]
    ) -> None:
        self._experiment = experiment
        self._traces = traces
        self._cells = cells
        self._remark = remark
        self._held: tuple[Engine, Executor] | None = None
        self._accounts: dict[Engine, dict[str, Any]] = {}
        self._unmeasured: set[tuple[str, int | None, str]] = set()
        self.descriptions: list[Description] = []

    def of(self, cell: Cell) -> tuple[Executor, Clock | None]:
        """The executor of a cell, and its clock, unless the wall's. Raises EngineError when it cannot be built."""
        if cell.engine.kind == "simulated":
            clock = VirtualClock()
            simulated = SimulatedExecutor(
                cell.engine.cost.model(),
                clock,
                kv_blocks=cell.engine.kv_blocks,
                host_blocks=host_blocks(cell.engine),
                prompt_seed=self._experiment.seed if cell.engine.prefix_cache else None,
            )
            if simulated.describe() not in self.descriptions:
                self.descriptions.append(simulated.describe())
            return simulated, clock
        if self._held is None or self._held[0] != cell.engine:
            self._held = None  # let go of its memory first
            self._held = (cell.engine, self._build(cell.engine))
        return self._held[1], None

    def _build(self, engine: Engine) -> Executor:
        pool = f"{engine.memory_utilization:g} of the memory" if engine.blocks is None else f"{engine.blocks} KV blocks"
        self._remark(f"building the engine: {engine.model}, {pool}")
        executor = build_torch_executor(
            model=engine.model,
            device=engine.device,
            dtype=engine.dtype,
            threads=engine.threads,
            blocks=engine.blocks,
            memory_utilization=engine.memory_utilization,
            step=step_of(self._experiment, self._cells, self._traces, engine),
            block_size=engine.block_size,
            seed=self._experiment.seed,
            linears=engine.linears,
            attention=engine.attention,
            kv_dtype=engine.kv_dtype,
            fused=engine.fused,
            cuda_graphs=engine.cuda_graphs,
            overlap=engine.overlap,
            swap_gb=engine.swap_gb,
            temperature=engine.temperature,
            top_k=engine.top_k,
            top_p=engine.top_p,
            stop=engine.stop,
        )
        if engine.blocks is None:
            self._remark(f"its KV pool: {executor.kv_blocks:,} blocks of {engine.block_size} tokens")
        cost = executor.warm_up(**self._shapes(engine, executor.kv_blocks))
        names = ["fixed", "prefill", "decode", "context", *(["swap"] if executor.host_blocks else [])]
        fitted = ", ".join(f"{name}_ms = {1000 * getattr(cost, name):.4g}" for name in names)
        self._remark(f"its fitted cost, as a simulated engine would take it: {{ {fitted} }}")
        if executor.describe() not in self.descriptions:  # repeats build it again
            self.descriptions.append(executor.describe())
        self._accounts[engine] = self._account(executor.describe().details)
        return executor

    def account(self, cell: Cell) -> dict[str, Any]:
        """For a manifest: what the work of a cell's steps is counted from, and the ceilings of its device.

        Each is None where it is not known; a simulated engine has neither. The cell's engine must have been built.
        """
        known = self._accounts.get(cell.engine, {})
        return {"work": known.get("work"), "ceilings": known.get("ceilings")}

    @contextmanager
    def watched(self, cell: Cell, entry: dict[str, Any]) -> Iterator[None]:
        """Let `entry` say afterwards how much of its device a cell's engine used meanwhile."""
        if cell.engine not in self._accounts:
            yield
            return
        from replay.executors.torch.probing.device_use import DeviceUse  # late: a simulated run needs no torch

        use = DeviceUse(self._accounts[cell.engine]["device"])
        use.start()
        try:
            yield
        finally:
            entry["device_use"] = asdict(use.stop())

    def _account(self, details: dict[str, Any]) -> dict[str, Any]:
        # late: a simulated run needs no torch
        from replay.executors.torch.probing.accounting import ceilings_key, probe_command, work_of

        key = ceilings_key(details)
        try:
            ceilings = find_ceilings(cache_file(), key)
            if ceilings is None and key not in self._unmeasured:  # engines of one device are told once
                self._unmeasured.add(key)
                self._remark(
                    f"how much of this machine is used cannot be told: nothing was measured for {key_label(*key)}; "
                    f"run `{probe_command(details)}` once"
                )
        except OutputError as fault:
            ceilings = None
            self._remark(f"how much of this machine is used cannot be told: {fault}")
        work = work_of(details)
        if work is None:
            self._remark(f"the arithmetic of {details['model']} is not counted: its layers are not of the plain kind")
        return {
            "device": details["device"],
            "work": None if work is None else work.facts(),
            "ceilings": None if ceilings is None else asdict(ceilings),
        }

    def _shapes(self, engine: Engine, blocks: int) -> dict[str, int]:
        """How large the steps to come are, at most: what a warm-up should have seen."""
        modes = [self._experiment.make_mode(cell.mode) for cell in self._cells if cell.engine == engine]
        prompt, answer = pl.col("prompt_tokens"), pl.col("output_tokens")
        longest: list[tuple[Any, Any]] = [
            trace.frame.select(prompt.max(), (prompt + answer).max().alias("context")).row(0) for trace in self._traces
        ]
        return {
            "rows": min(WARM_ROWS, max(mode.slots for mode in modes)),
            "slots": max(mode.slots for mode in modes),
            "tokens": min(WARM_TOKENS, max(prompt for prompt, _ in longest)),
            "context": min(WARM_CONTEXT, max(context for _, context in longest), blocks * engine.block_size),
        }


def host_blocks(engine: Engine) -> int:
    """How many KV blocks of its named shape a simulated engine's `swap_gb` GiB of host memory hold."""
    if not engine.swap_gb:
        return 0
    kind = engine.dtype if engine.kv_dtype == "auto" else engine.kv_dtype
    token_bytes = ModelShape.of(SHAPES[engine.model]).kv_token_bytes(ITEMSIZE[kind])
    return int(engine.swap_gb * 2**30) // (engine.block_size * token_bytes)

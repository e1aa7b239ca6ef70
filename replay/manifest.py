"""What `manifest.json` says of a run before its first step: what is to be run, on what, with which traces.

The runner fills in how each cell ended. Whatever reads a run reads this, so its keys are a format.
"""

from __future__ import annotations

import inspect
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from replay.experiment.grid import Cell
from replay.experiment.loading import Experiment
from replay.machine import hardware, versions
from replay.predictors import predictors
from replay.scheduler import policies
from replay.traces.describing.reuse import reuse
from replay.traces.describing.sessions import sessions_of
from replay.traces.table import Trace

FORMAT = 1


def new_manifest(experiment: Experiment, traces: list[Trace], cells: list[Cell], started: datetime) -> dict[str, Any]:
    """The manifest of a run that begins now: every cell is pending."""
    return {
        "format": FORMAT,
        "name": experiment.name,
        "created": started.isoformat(timespec="seconds"),
        "status": "running",
        "versions": versions(),
        "hardware": hardware(),
        "priority_order": experiment.priority_order,
        "predictor": experiment.predictor.name,
        "predictor_options": experiment.predictor.settings,
        "predictor_knows": predictors[experiment.predictor.name].knows,
        "goals": experiment.goals.model_dump(),
        "service": experiment.service.model_dump(),
        "length_bins": experiment.length_bins,
        "lag_limit_ms": experiment.lag_limit_ms,
        "seed": experiment.seed,
        "open_loop": experiment.open_loop,  # whether turns of sessions come at their arrival, whatever was before
        "repeats": experiment.repeats,
        "engines": [],
        "policies": [_policy_entry(name) for name in dict.fromkeys(choice.name for choice in experiment.policies)],
        "traces": [_trace_entry(trace) for trace in traces],
        "cells": [_cell_entry(experiment, traces[cell.trace], cell) for cell in cells],
    }


def _policy_entry(name: str) -> dict[str, Any]:
    """Which file a policy is from, and what was in it: one of somebody's own may be changed or gone tomorrow."""
    path = Path(inspect.getfile(policies[name]))
    return {"name": name, "path": str(path), "sha256": sha256(path.read_bytes()).hexdigest()}


def _cell_entry(experiment: Experiment, trace: Trace, cell: Cell) -> dict[str, Any]:
    mode = experiment.make_mode(cell.mode)
    return {
        "cell": cell.name,
        "trace": trace.name,
        "mode": cell.mode.name,
        "policy": cell.policy.name,
        "repeat": cell.repeat,
        "variant": cell.variant,
        "policy_variant": cell.policy_variant,  # the part of it that is a setting of the policy's own
        "settings": cell.settings(),
        "simulated": cell.engine.kind == "simulated",
        "padded": mode.padded,
        "slots": mode.slots,
        "blocks": cell.engine.blocks,  # as asked for; as the engine has them once the cell runs
        "host_blocks": None,
        "prefix_cache": cell.engine.prefix_cache and not mode.padded,
        "requests": trace.frame.height,
        "status": "pending",
        "error": None,
        "cost": None,  # seconds of a step as the engine's cost model has them: fitted at warm-up, or given
        "work": None,  # the model's shape and bytes of its numbers: what FLOP and traffic of its steps are counted from
        "ceilings": None,  # of its device, as `replay probe` had measured them before the run
        "device_use": None,  # memory, and GPU use where it can be sampled, while the cell ran
        "valid": None,
        "invalid_reason": None,
        "lag_p99_ms": None,
    }


def _shared(trace: Trace) -> float | None:
    """The share of its prompt tokens that an endless prefix cache would have; None where it has no hashes."""
    if trace.block_size is None:
        return None
    found = reuse(trace.rows, trace.block_size, trace.hash_scope)
    return None if found is None else found.share


def _trace_entry(trace: Trace) -> dict[str, Any]:
    extent = trace.extent()
    return {
        "name": trace.name,
        "origin": trace.origin,  # the name that its variants share; empty: it has none
        "variant": trace.variant,  # what this one is, such as {"load": 2.0}
        "path": str(trace.path),
        "sha256": trace.sha256,
        "rows": extent.rows,
        "span_s": extent.span,
        "prompt_tokens": extent.prompt_tokens,
        "output_tokens": extent.output_tokens,
        "sessions": None if (found := sessions_of(trace)) is None else asdict(found),
        "block_size": trace.block_size,  # tokens of one block of its prefix hashes; null: it has none
        "shared_prompts": _shared(trace),
        "skipped": trace.skipped,
        "notes": trace.notes,
        "history": trace.history,
        "transforms": [asdict(change) for change in trace.changes],
    }

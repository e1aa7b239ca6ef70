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

KEYS: dict[str, dict[str, str]] = {
    "": {
        "format": "version of this format",
        "name": "what the run is called",
        "created": "when it began, in UTC",
        "ended": "when it ended, in UTC; absent until it has",
        "status": "running, complete, interrupted or failed (every cell failed)",
        "versions": "of replay, Python and the packages that a result depends on; null: not installed",
        "hardware": "processor, cores that the run may use, memory in GiB, operating system",
        "priority_order": "which priorities of a trace are the more urgent",
        "predictor": "what policies know of output lengths",
        "predictor_options": "the predictor's settings",
        "predictor_knows": "how much of the true lengths it knows: all, part or nothing",
        "goals": "what makes a request good; null: no such goal",
        "service": "what a token counts in service, and the length of a window in seconds",
        "length_bins": "output lengths that end the report's bins; null: the quartiles of each trace",
        "lag_limit_ms": "milliseconds of lag, p99, from which on a cell is invalid",
        "seed": "what all chance followed from",
        "open_loop": "whether turns of sessions came at their arrival, whatever was before",
        "repeats": "times that each cell was replayed",
        "noise_floor": "whether one policy's cells were replayed once more, to see what runs differ by",
        "engines": "the engines as they were built",
        "policies": "the policies' files",
        "traces": "the traces as replayed, their variants too",
        "cells": "the cells in the order in which they ran",
    },
    "engines[]": {
        "kind": "torch or simulated",
        "simulated": "whether its steps were computed by a cost model on a virtual clock",
        "details": "what explains its speed: device, model, number types, ways of computing",
    },
    "policies[]": {
        "name": "as registered",
        "path": "the file that it is from: one of somebody's own may be changed or gone tomorrow",
        "sha256": "of what was in the file",
    },
    "traces[]": {
        "name": "how tables and cells name it",
        "origin": "the name that its variants share; empty: it has none",
        "variant": 'what this variant is, such as {"load": 2.0}',
        "path": "the file or folder that was read",
        "sha256": "of its bytes",
        "rows": "requests, after the transforms",
        "span_s": "seconds from the first arrival to the last",
        "prompt_tokens": "tokens of all prompts",
        "output_tokens": "tokens of all answers",
        "sessions": "what its sessions are like; null: it has none",
        "block_size": "tokens of one block of its prefix hashes; null: it has none",
        "shared_prompts": "share of its prompt tokens that an endless prefix cache would have; null without hashes",
        "skipped": "rows of the file that are no request, by reason",
        "notes": "remarks on its reading",
        "history": "what was done to it before it was written, a sentence a step",
        "transforms": "what each transform changed: argument, extent before and after, details",
    },
    "cells[]": {
        "cell": "name of the cell and of its folder",
        "trace": "name of the trace",
        "mode": "name of the batching mode",
        "policy": "name of the policy",
        "repeat": "which repeat it is, from 0",
        "variant": "the settings that a sweep gave it",
        "policy_variant": "the part of them that is a setting of the policy's own",
        "settings": "all settings in force, of engine, mode and policy",
        "simulated": "whether its time is that of a cost model",
        "padded": "whether the mode runs batches to their end, padded",
        "slots": "requests that may be resident, by the largest batch size there can be",
        "blocks": "KV blocks as asked for; as the engine has them once the cell runs",
        "host_blocks": "blocks of host memory for swapped requests",
        "prefix_cache": "whether prompts shared blocks",
        "requests": "rows of its trace",
        "status": "pending, running, complete, interrupted or failed",
        "error": "why it failed",
        "cost": "seconds of a step as the engine's cost model has them: fitted at warm-up, or given",
        "work": "the model's shape and bytes of its numbers: what FLOP and traffic of its steps are counted from",
        "ceilings": "of its device, as `replay probe` had measured them before the run",
        "device_use": "memory, and GPU use where it can be sampled, while the cell ran",
        "valid": "whether its lag was within the limit; null: it is not known",
        "invalid_reason": "why it is not valid",
        "lag_p99_ms": "milliseconds of lag, p99",
        "clock_zero_unix": "Unix time of the zero of its stamps; null on a virtual clock",
        "statuses": "requests by how they ended",
        "completed": "requests that got their whole answer",
    },
}
"""Each key of a manifest, by the table that it stands in, with its meaning; null is "not known" or "there is none"."""


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
        "open_loop": experiment.open_loop,
        "repeats": experiment.repeats,
        "noise_floor": experiment.noise_floor,
        "engines": [],
        "policies": [_policy_entry(name) for name in dict.fromkeys(choice.name for choice in experiment.policies)],
        "traces": [_trace_entry(trace) for trace in traces],
        "cells": [_cell_entry(experiment, traces[cell.trace], cell) for cell in cells],
    }


def _policy_entry(name: str) -> dict[str, Any]:
    """Which file a policy is from, and what was in it."""
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
        "policy_variant": cell.policy_variant,
        "settings": cell.settings(),
        "simulated": cell.engine.kind == "simulated",
        "padded": mode.padded,
        "slots": mode.slots,
        "blocks": cell.engine.blocks,
        "host_blocks": None,
        "prefix_cache": cell.engine.prefix_cache and not mode.padded,
        "requests": trace.frame.height,
        "status": "pending",
        "error": None,
        "cost": None,
        "work": None,
        "ceilings": None,
        "device_use": None,
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
        "origin": trace.origin,
        "variant": trace.variant,
        "path": str(trace.path),
        "sha256": trace.sha256,
        "rows": extent.rows,
        "span_s": extent.span,
        "prompt_tokens": extent.prompt_tokens,
        "output_tokens": extent.output_tokens,
        "sessions": None if (found := sessions_of(trace)) is None else asdict(found),
        "block_size": trace.block_size,
        "shared_prompts": _shared(trace),
        "skipped": trace.skipped,
        "notes": trace.notes,
        "history": trace.history,
        "transforms": [asdict(change) for change in trace.changes],
    }

"""The torch executor of this repository, driven by its own scheduler and replayer on the wall clock.

So planning, Python and the rows that are written down are part of the time. Options go to `build_torch_executor`,
except those of the continuous mode.
"""

from __future__ import annotations

import gc
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from job import LARGEST, LONGEST, Job
from protocol import arguments, serve

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay import __version__
from replay.clock import WallClock
from replay.executors.torch import build_torch_executor
from replay.pool import KVPool
from replay.predictors import predictors
from replay.records import Records
from replay.replayer import Replayer
from replay.request import Request, Workload
from replay.scheduler import policies as policy_registry
from replay.scheduler.modes import Continuous

BLOCK_SIZE = 16
MODE = {"max_running": 32, "token_budget": 512}


def parse_options(pairs: list[str]) -> dict[str, Any]:
    """`key=value` pairs; a value is a number, a truth value or null where JSON reads it so, else text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        try:
            options[key] = json.loads(text)
        except json.JSONDecodeError:
            options[key] = text
    return options


class Ours:
    """The executor and the mode under which it runs."""

    def __init__(self, model: Path, threads: int, options: dict[str, Any]) -> None:
        names = {field.name for field in fields(Continuous)}
        self._mode = Continuous(**{**MODE, **{key: value for key, value in options.items() if key in names}})
        engine: dict[str, Any] = {"device": "cpu", "dtype": "float32", "block_size": BLOCK_SIZE, "threads": threads}
        engine |= {key: value for key, value in options.items() if key not in names}
        self._block_size: int = engine["block_size"]
        self._blocks: int = engine.setdefault("blocks", LARGEST * -(-LONGEST // self._block_size))
        self._executor = build_torch_executor(model=str(model), **engine)
        self.about: dict[str, object] = {
            "version": f"replay {__version__}, torch {torch.__version__}",
            "mode": str(self._mode),
            **self._executor.describe().details,
        }
        self.details: dict[str, object] = {}
        gc.collect()
        gc.freeze()  # as a run does: a collection in the middle of a job would look at the whole model

    def answer(self, job: Job) -> list[list[int]]:
        workload = Workload(
            [Request(row, str(row), 0.0, len(work.prompt), work.output) for row, work in enumerate(job.requests)],
            [work.output for work in job.requests],
            prompts=dict(enumerate(work.prompt for work in job.requests)),
        )
        records = Records()
        self._executor.prepare(workload)
        replayer = Replayer(
            workload=workload,
            executor=self._executor,
            clock=WallClock(),
            policy=policy_registry["fifo"](),
            mode=self._mode,
            pool=KVPool(self._blocks, self._block_size),
            predictor=predictors["oracle"](),
            records=records,
        )
        assert replayer.run(), "nobody stops it"
        self.details = shares(records)
        return [self._executor.outputs(row) for row in range(len(job.requests))]


def shares(records: Records) -> dict[str, object]:
    """How many steps there were, and the share of their time before the executor got the batch."""
    steps = records.steps.take()
    if steps is None:
        return {}
    starts, launches, ends = (steps[name].to_numpy() for name in ("start", "launched", "end"))
    planning = float((launches - starts).sum() / (ends - starts).sum())
    return {"steps": len(starts), "planning_share": planning}


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    serve(given.model, lambda: Ours(given.model, given.threads, parse_options(given.option)))

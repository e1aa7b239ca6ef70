"""A peer's side of the talk with the driver: load, say so, warm up, then run each job that is asked for.

Lines of JSON go out on what was standard output; whatever a library prints goes to standard error, which the driver
keeps as a log. It needs the standard library alone, and knows no engine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from job import WARM_UP, Job, make_job


class Engine(Protocol):
    """A loaded engine. `about`: its version and settings; `details`: what else it has to say of its last job."""

    about: dict[str, object]
    details: dict[str, object]

    def answer(self, job: Job) -> list[list[int]]:
        """Serve all requests of the job, greedily and past any end token; the ids of each answer, in their order."""


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with what every peer is told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=Path, required=True, help="folder with weights and config.json")
    parser.add_argument("--threads", type=int, required=True, help="threads to compute with")
    return parser


def serve(model: Path, load: Callable[[], Engine]) -> None:
    """Answer the driver until it closes standard input."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    engine = load()
    print(json.dumps({"about": engine.about}), file=out)
    seconds, _ = timed(engine, make_job(WARM_UP, model))
    print(json.dumps({"seconds": seconds}), file=out)
    for line in sys.stdin:
        job = make_job(line.strip().removeprefix("run "), model)
        seconds, answers = timed(engine, job)
        assert [len(answer) for answer in answers] == [work.output for work in job.requests], "an answer's length"
        print(json.dumps({"seconds": seconds, "answers": answers, "details": engine.details}), file=out)


def timed(engine: Engine, job: Job) -> tuple[float, list[list[int]]]:
    """Seconds that a job takes, and its answers."""
    start = time.perf_counter()
    answers = engine.answer(job)
    return time.perf_counter() - start, answers

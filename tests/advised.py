"""Runs that fall into a pitfall, or into none: a trace and a simulated engine, through the runner, to its advice."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from silent import Silent

from replay.experiment.document import merged, parse_setting
from replay.experiment.loading import load_experiment
from replay.report.advice import Advice, advise
from replay.report.findings import find
from replay.results import read_run
from replay.runner import Runner, open_traces
from replay.stopping import Stop
from replay.traces.wording import toml_text

COST = {"fixed_ms": 10.0, "prefill_ms": 0.05, "decode_ms": 0.2, "context_ms": 0.0}


def trace(folder: Path, arrivals_ms: Sequence[float], prompt: Sequence[int], output: Sequence[int], **more: Any) -> str:
    """A trace of such requests; where a list is shorter than the arrivals, it goes round."""
    columns: dict[str, Any] = {"prompt_tokens": prompt, "output_tokens": output, **more}
    count = len(arrivals_ms)
    frame = {"arrival_ms": list(arrivals_ms)}
    frame |= {name: [values[row % len(values)] for row in range(count)] for name, values in columns.items()}
    path = folder / "trace.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(frame).write_parquet(path)
    return str(path)


def replayed(folder: Path, path: str, engine: Mapping[str, Any] | None = None, **sections: Any) -> Path:
    """The run's folder; continuous and fifo unless told."""
    document: dict[str, Any] = {"traces": [path], "engine": {"kind": "simulated", "cost": COST} | dict(engine or {})}
    document |= {"policies": {"fifo": {}}, "modes": {"continuous": {}}} | sections
    return _run(folder, document)


def tried(run: Path, advice: Advice, folder: Path) -> Path:
    """The run once more with what was advised for its costliest cell, typed as it is printed."""
    document = tomllib.loads((run / "experiment.toml").read_text())
    for key, value in advice.worst.settings.items():
        document = merged(document, parse_setting(f"{key} = {toml_text(value) if value != {} else '{}'}"))
    return _run(folder, document)


def _run(folder: Path, document: dict[str, Any]) -> Path:
    experiment = load_experiment(document, "e.toml")
    return Runner(experiment, open_traces(experiment), Silent(), Stop()).run(folder).folder


def advice(run: Path) -> dict[str, Advice]:
    """What is advised, by the name of the pitfall, the costliest first."""
    return {each.pitfall.name: each for each in advise(find(read_run(run)))}


def rows(run: Path, table: str, cell: str = "continuous-fifo") -> pl.DataFrame:
    """What a cell left."""
    return pl.read_parquet(run / "cells" / cell / f"{table}.parquet")

"""From a trial that breaks a promise to the smallest that still does: fewer requests first, then plainer ones.

Each candidate differs in one thing that a reader would leave out. It does not know what is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from replay.contract.cases import PLAIN, Case, Engine
from replay.contract.trials import Trial
from replay.scheduler import Limits

ROWS = (
    "arrivals", "prompts", "outputs", "users", "priorities", "sessions", "declared", "deadlines", "alike",
)  # fmt: skip
PLAINEST: dict[str, Any] = {"users": None, "priorities": 0, "sessions": None, "deadlines": None, "alike": 0}
AMPLE = 40  # blocks: that many were never drawn to be short


def shrink(trial: Trial, breaks: Callable[[Trial], bool]) -> Trial:
    """The smallest trial that can be reached from `trial`, each on the way breaking what is looked for."""
    while (smaller := next(filter(breaks, _plainer(trial)), None)) is not None:
        trial = smaller
    return trial


def _plainer(trial: Trial) -> Iterator[Trial]:
    """Candidates that are plainer in one thing, the boldest first."""
    case = trial.case
    rows = len(case.arrivals)
    for part in (rows // 2, rows // 4, 1):
        for first in range(0, rows, part) if 0 < part < rows else ():
            yield replace(trial, case=_without(case, first, first + part))
    yield from _plainer_engine(trial)
    for name, plain in PLAINEST.items():
        yield from _each(trial, name, lambda value, plain=plain: [plain])  # type: ignore[misc]  # bound at once
    for name in ("outputs", "prompts"):
        yield from _each(trial, name, _lower)
    earlier = [round(arrival - case.arrivals[0], 9) for arrival in case.arrivals]
    if earlier != case.arrivals:
        yield replace(trial, case=_copy(case, arrivals=earlier))
    for row, before in enumerate([0.0, *case.arrivals[:-1]]):
        if case.arrivals[row] != before:
            yield replace(trial, case=_with(case, "arrivals", row, before))
    for row, (output, declared) in enumerate(zip(case.outputs, case.declared, strict=True)):
        if declared > output:
            yield replace(trial, case=_with(case, "declared", row, output))


def _plainer_engine(trial: Trial) -> Iterator[Trial]:
    case, engine, limits = trial.case, trial.engine, trial.case.limits
    engines = [
        PLAIN,
        replace(engine, overlap=False),
        replace(engine, host_blocks=0),
        replace(engine, prefix_cache=False),
    ]
    yield from (replace(trial, engine=one) for one in engines if one != engine and isinstance(one, Engine))
    plain = [
        Limits(),
        replace(limits, timeout=None),
        replace(limits, queue_timeout=None),
        replace(limits, max_waiting=1024),
    ]
    yield from (replace(trial, case=_copy(case, limits=one)) for one in plain if one != limits)
    if case.blocks < AMPLE:
        yield replace(trial, case=_copy(case, blocks=AMPLE))
    if trial.predictor != "oracle":
        yield replace(trial, predictor="oracle")
    yield from (replace(trial, chance=lower) for lower in _lower(trial.chance, 0))


def _each(trial: Trial, name: str, plainer: Callable[[Any], list[Any]]) -> Iterator[Trial]:
    """With one field of one row plainer, for each row."""
    for row, value in enumerate(getattr(trial.case, name)):
        for other in plainer(value):
            if other != value:
                yield replace(trial, case=_with(trial.case, name, row, other))


def _lower(value: int, least: int = 1) -> list[int]:
    """Smaller whole numbers, the smallest first."""
    return sorted({least, (value + least) // 2, value - 1} - {value, least - 1})


def _copy(case: Case, **changes: Any) -> Case:
    return replace(deepcopy(case), **changes)


def _with(case: Case, name: str, row: int, value: Any) -> Case:
    changed = _copy(case)
    getattr(changed, name)[row] = value
    if name == "outputs":
        changed.declared[row] = max(value, changed.declared[row] - case.outputs[row] + value)
    return changed


def _without(case: Case, first: int, end: int) -> Case:
    """The case without the rows from `first` to `end`."""
    return _copy(case, **{name: getattr(case, name)[:first] + getattr(case, name)[end:] for name in ROWS})

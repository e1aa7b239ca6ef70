"""summary.json: the numbers nested for programs, in JSON that a strict reader takes: null, never NaN; counts whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from replay.metrics import metrics
from replay.metrics.contrasts import Contrast
from replay.metrics.paired import Bounds, Difference
from replay.report.advice import Advice, advice_json
from replay.report.findings import Findings

WHOLE = ("n", "count")


def summary_json(findings: Findings, sentences: list[str], advice: Sequence[Advice] = ()) -> str:
    """`cells[].metrics[by][group][metric][statistic]`, comparisons and the verdict, as text."""
    run = findings.run
    nested: dict[str, dict[str, Any]] = {cell.name: {} for cell in run.recorded}
    columns = ("cell", "by", "group", "metric", "statistic", "value")
    for cell, by, group, metric, statistic, value in findings.measured.summary.select(columns).iter_rows():
        figures = nested[cell].setdefault(by, {}).setdefault(group, {}).setdefault(metric, {})
        figures[statistic] = int(value) if statistic in WHOLE and value is not None else value
    facts = ("trace", "mode", "policy", "variant", "repeat", "simulated", "status", "valid", "invalid_reason", "error")
    content = {
        "format": 1,
        "run": run.name,
        "status": run.status,
        "partial": run.partial,
        "simulated": findings.simulated,
        "goals": {"ttft": run.goals.ttft, "tpot": run.goals.tpot, "e2e": run.goals.e2e},
        "requests": findings.total("requests"),
        "completed": findings.total("completed"),
        "verdict": sentences,
        "advice": advice_json(advice),
        "metrics": {name: {"unit": metrics[name].unit, "definition": metrics[name].formula} for name in metrics},
        "cells": [
            {
                "cell": cell.name,
                **{fact: getattr(cell, fact) for fact in facts},
                "ceilings": None if cell.ceilings is None else asdict(cell.ceilings),
                "device_use": cell.device_use,
                "price_per_hour": cell.price_per_hour,
                "metrics": nested.get(cell.name),
            }
            for cell in run.cells
        ],
        "comparisons": [
            comparison
            for trace in findings.contrasts.values()
            for table in ("policies", "modes")
            for pair in getattr(trace, table)
            for comparison in _comparisons(pair, table)
        ],
    }
    return json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def _comparisons(pair: Contrast, table: str) -> list[dict[str, Any]]:
    """Of all requests, then of each group; what stands in one table has intervals that hold together."""
    differences = [(table, None, None, difference) for difference in pair.differences.values()]
    return [
        {"table": where, "by": by, "group": group, **_comparison(difference)}
        for where, by, group, difference in [
            *differences,
            *(("who pays", shift.by, shift.group, shift.difference) for shift in pair.shifts),
        ]
    ]


def _comparison(difference: Difference) -> dict[str, Any]:
    return {
        "metric": difference.metric,
        "base": difference.base.names,
        "other": difference.other.names,
        "pairs": difference.pairs,
        "base_mean": difference.base_mean,
        "difference": difference.difference,
        "interval": None if difference.low is None else [difference.low, difference.high],
        "uncorrected": _ends(difference.uncorrected),
        "by_request": _ends(difference.by_request),
        "by_user": _ends(difference.by_user),
        "relative": difference.relative,
        "comparisons": difference.comparisons,
        "wins": None if difference.wins is None else asdict(difference.wins),
        "noise": difference.noise,
        "machine_advantage": difference.advantage,
        "seen": difference.seen,
        "doubt": difference.doubt,
    }


def _ends(bounds: Bounds | None) -> list[float] | None:
    return None if bounds is None else list(bounds)

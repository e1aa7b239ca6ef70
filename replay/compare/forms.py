"""A comparison for programs: CSV, a line for each figure of each run of each cell; and strict JSON. Numbers whole."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from replay.compare.checks import Outcome
from replay.compare.comparison import BASELINE, Comparison
from replay.compare.figures import Figure
from replay.compare.matching import PARTS, Row, settings_of

COLUMNS = ("trace", "mode", "setting", "policy", "run", "metric", "statistic", "figure", "unit", "better")
VALUES = ("value", "baseline", "ratio", "difference", "verdict", "why", "low", "high", "pairs", "doubt")
ALONE = ("uncorrected_low", "uncorrected_high", "comparisons")
"""What the interval would be, were it the only one, and how many hold together in `low` and `high`."""


def csv_text(comparison: Comparison) -> str:
    """Long: every figure that is shown, of every cell, those of one run included."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, *VALUES, *ALONE])
    for row in (*comparison.matching.rows, *comparison.matching.lone):
        for side, place in row.places.items():
            for figure in comparison.figures:
                found = _figure(comparison, row, side, figure)
                names = [row.trace, row.cell.mode, row.setting, row.policy, comparison.labels[side]]
                what = [figure.metric, figure.statistic, figure.name, figure.unit, figure.better]
                values = [place.doubt if name == "doubt" else found.get(name) for name in (*VALUES, *ALONE)]
                writer.writerow([*names, *what, *values])
    return out.getvalue()


def _figure(comparison: Comparison, row: Row, side: int, figure: Figure) -> dict[str, Any]:
    """The value in one run, and how it stands to the baseline's."""
    value = comparison.value(row, side, figure)
    if side == BASELINE or BASELINE not in row.places:
        return {"value": value}
    base, sight = comparison.value(row, BASELINE, figure), comparison.sight(row, side, figure)
    return {
        "value": value,
        "baseline": base,
        "ratio": comparison.ratio(row, side, figure),
        "difference": None if value is None or base is None else value - base,
        "verdict": sight.verdict,
        "why": sight.why,
        "low": sight.low,
        "high": sight.high,
        "pairs": sight.pairs,
        "uncorrected_low": sight.uncorrected[0] if sight.uncorrected else None,
        "uncorrected_high": sight.uncorrected[1] if sight.uncorrected else None,
        "comparisons": sight.comparisons,
    }


def json_text(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> str:
    """Runs, what they differ in, cells with their figures, what one run alone has, and the checks."""
    matching, labels = comparison.matching, comparison.labels
    content = {
        "format": 1,
        "baseline": labels[BASELINE],
        "runs": [
            {
                "run": side.label,
                "folder": str(side.run.folder),
                "name": side.run.name,
                "status": side.run.status,
                "partial": side.run.partial,
                "simulated": any(cell.simulated for cell in side.run.recorded),
                "created": side.run.manifest.get("created"),
            }
            for side in comparison.sides
        ],
        "differ_in": [
            {"fact": fact.name, "values": dict(zip(labels, fact.values, strict=True))} for fact in comparison.facts
        ],
        "notes": list(comparison.notes),
        "figures": {
            figure.name: {"unit": figure.unit, "better": figure.better, "definition": figure.entry.formula}
            for figure in comparison.figures
        },
        "cells": [_cell(comparison, row) for row in matching.rows],
        "in_one_run_only": [_cell(comparison, row) for row in matching.lone],
        "checks": [_check(comparison, outcome) for outcome in outcomes],
        "passed": all(outcome.passed for outcome in outcomes),
    }
    return json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def _cell(comparison: Comparison, row: Row) -> dict[str, Any]:
    return {
        **_name(row),
        "settings": {part: dict(settings_of(row.cell, part)) for part in PARTS[1:]},
        "runs": {
            comparison.labels[side]: {
                "cells": [] if place.arm is None else [name.partition("/")[2] for name in place.arm.names],
                "doubt": place.doubt,
                "figures": {figure.name: _figure(comparison, row, side, figure) for figure in comparison.figures},
            }
            for side, place in row.places.items()
        },
    }


def _name(row: Row) -> dict[str, str]:
    return {"trace": row.trace, "mode": row.cell.mode, "setting": row.setting, "policy": row.policy}


def _check(comparison: Comparison, outcome: Outcome) -> dict[str, Any]:
    return {
        "check": str(outcome.check),
        "passed": outcome.passed,
        "judged": outcome.judged,
        "not_seen": outcome.unseen,
        "not_judged": outcome.lone,
        "breaches": [
            {
                **_name(breach.row),
                "run": comparison.labels[breach.side],
                "value": breach.value,
                "bound": breach.bound,
                "baseline": breach.baseline,
                "ratio": breach.ratio,
                "verdict": breach.sight.verdict if breach.sight else None,
            }
            for breach in outcome.breaches
        ],
        "undecided": [
            {**_name(each.row), "run": comparison.labels[each.side], "why": each.why} for each in outcome.undecided
        ],
    }

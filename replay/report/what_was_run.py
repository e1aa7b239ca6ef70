"""What was run: traces and what was changed of them, engines and modes with their settings, predictor, goals, host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from replay.metrics.notation import duration, percent, plural
from replay.report.findings import Findings
from replay.report.knowledge import admitted, predicted
from replay.report.prefixes import prefix_cache
from replay.report.sessions import told_of_loop
from replay.traces.wording import toml_text


def what_was_run(findings: Findings) -> str:
    """Traces with what was left out and changed, engine, predictor, conventions, goals."""
    run, manifest, lines = findings.run, findings.run.manifest, []
    for trace in run.traces:
        facts = [f"trace **{trace.name}**"]
        if trace.rows is not None:
            facts.append(plural(trace.rows, "request"))
        if trace.span_s is not None:
            facts.append(f"arriving over {duration(trace.span_s)}")
        facts += [f"{count:,} skipped ({reason})" for reason, count in trace.skipped.items()]
        lines.append(", ".join(facts))
        lines += [f"  - {line}" for line in trace.history]
        lines += [f"  - {_transform(change)}" for change in trace.transforms]
        lines += [f"  - {note}" for note in trace.notes]
        lines += [f"  - {line}" for line in told_of_loop(trace, open_loop=bool(manifest.get("open_loop")))]
    lines += prefix_cache(findings)
    lines += [_engine(engine) for engine in manifest.get("engines") or []]
    if findings.simulated and not manifest.get("engines"):
        lines.append("engine: SIMULATED, a cost model on a virtual clock")
    for setting, text in {
        arm.setting: _settings(arm.cells[0].settings.get("mode") or {}) for arm in findings.arms
    }.items():
        lines.append(f"mode {setting}" + (f": {text}" if text else ""))
    lines += predicted(findings) + admitted(findings)
    if order := manifest.get("priority_order"):
        meaning = "a larger number is more urgent" if order == "larger-first" else "a smaller number is more urgent"
        lines.append(f"priority: {meaning} (`{order}`)")
    lines.append(f"goals: {_goals(findings)}")
    for name in ("hardware", "versions"):
        if manifest.get(name):
            lines.append(f"{name}: {_settings(manifest[name])}")
    if created := manifest.get("created"):
        lines.append(f"started {created}, seed {manifest.get('seed', 0)}")
    return "\n".join(line if line.startswith("  ") else f"- {line}" for line in lines)


def _settings(values: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in values.items() if value is not None}
    return ", ".join(f"{name} {_setting(value)}" for name, value in shown.items())


def _setting(value: Any) -> str:
    """A rule by its name, its own settings in brackets; anything else as JSON has it."""
    if isinstance(value, Mapping) and "rule" in value:
        return f"{value['rule']} ({_settings({name: each for name, each in value.items() if name != 'rule'})})"
    return value if isinstance(value, str) else json.dumps(value)


def _engine(engine: Mapping[str, Any]) -> str:
    """An engine with all that it says of itself; how it chooses tokens and how far it keeps the model's, in words."""
    label = "SIMULATED, a cost model on a virtual clock" if engine.get("simulated") else str(engine.get("kind"))
    details = {**(engine.get("details") or {}), **({"cost": engine["cost"]} if engine.get("cost") else {})}
    cost, sampling, linears, agreement = (
        details.pop(name, None) for name in ("cost", "sampling", "linears_are", "agreement")
    )
    parts = [f"engine: {label}", _settings(details)]
    if cost:
        parts.append("a step, ms: " + ", ".join(f"{name} {1000 * seconds:.4g}" for name, seconds in cost.items()))
    if sampling:
        greedy = not sampling.get("temperature")
        parts.append("each token the likeliest" if greedy else f"tokens drawn at {_settings(sampling)}")
    if linears:
        parts.append(f"linears: {linears}")
    if agreement is not None:
        parts.append(
            f"its likeliest next token is that of the model's own modules for {percent(agreement)} of tokens probed"
        )
    return "; ".join(part for part in parts if part)


def _transform(change: Mapping[str, Any]) -> str:
    before, after = change.get("before") or {}, change.get("after") or {}
    effects = [
        f"{name.replace('_', ' ')} {_amount(before[name])} → {_amount(after[name])}"
        for name in before
        if name in after and before[name] != after[name]
    ]
    argument = "" if change.get("argument") is None else f" = {toml_text(change['argument'])}"
    told = "; ".join([", ".join(effects)] * bool(effects) + list(change.get("details") or ()))
    return f"transform {change.get('transform')}{argument}: {told or 'changed nothing'}"


def _amount(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _goals(findings: Findings) -> str:
    goals = findings.run.goals
    asked = {"TTFT": goals.ttft, "TPOT": goals.tpot, "E2E": goals.e2e}
    texts = [f"{name} ≤ {duration(goal)}" for name, goal in asked.items() if goal is not None]
    told = ", ".join(texts) if texts else "none set, so goodput is not defined"
    return told if goals.reading is None else f"{told}; answers are read at {goals.reading:g} tokens/s"

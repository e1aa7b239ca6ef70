"""What the report says of the prefix cache: whether there was one, what it saved, and what does not reckon with it."""

from __future__ import annotations

from replay.metrics.notation import enumerate_words, percent
from replay.report.findings import Findings


def prefix_cache(findings: Findings) -> list[str]:
    """Lines of the section on what was run; none where neither the traces nor the engines know of prefixes."""
    cells = findings.run.cells
    asked = [bool((cell.settings.get("engine") or {}).get("prefix_cache")) for cell in cells]
    cached = [arm for arm in findings.arms if findings.values.repeats(arm, "cache_hit_rate", "value")]
    if not any(asked):
        shared = any(trace.block_size is not None for trace in findings.run.traces)
        return ["no prefix cache: every prompt is computed in full"] if shared else []
    lines = []
    if cached:
        rates = {arm.label: findings.values.value(arm, "cache_hit_rate", "value") or 0.0 for arm in cached}
        low, high = (pick(rates, key=lambda label: rates[label]) for pick in (min, max))
        saved = f"{percent(rates[low])} of the prompt tokens"
        if rates[low] != rates[high]:
            saved = f"from {percent(rates[low])} ({low}) to {percent(rates[high])} ({high}) of the prompt tokens"
        lines.append(
            f"prefix cache: {saved} were found in it when requests were first admitted, and not computed. Answers are "
            f"not the trace's, so they match no later prompt{growing(findings)}. What a request takes alone, and so "
            "its slowdown, reckons without the cache"
        )
        lines += [
            f"prefix cache: trace {trace.name} says of no prompt of its sessions that it goes on with an earlier one: "
            "it has no prefix_hashes, so prompts share only what their own texts or token ids do"
            for trace in findings.run.traces
            if trace.sessions and trace.block_size is None
        ]
    if not all(asked):
        lines.append("prefix cache: off in some cells, where every prompt is computed in full")
    padded = sorted({cell.mode for cell in cells if cell.padded})
    if padded:
        lines.append(f"prefix cache: none in {enumerate_words(padded)} mode, as a plain `generate` has none")
    return lines


def growing(findings: Findings) -> str:
    """What that means for sessions: a turn finds again what was prompt before, not what was answered just now."""
    sessions = any(trace.sessions and trace.block_size is not None for trace in findings.run.traces)
    return ": a later turn finds the prompts of turns before it, and never their answers" if sessions else ""

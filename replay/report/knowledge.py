"""What the report says of what policies went by: the length predictor, and the rules by which requests joined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.metrics.notation import several
from replay.report.findings import Findings

KNOWS = {
    "all": ", which knows the true lengths: an upper bound of what size-based policies can do",
    "part": ", which knows the true lengths in part: it stands for a predictor that is as good as that",
    "nothing": "",
}


def predicted(findings: Findings) -> list[str]:
    """The line on lengths, of the section on what was run."""
    manifest = findings.run.manifest
    if not (predictor := manifest.get("predictor")):
        return []
    knows = manifest.get("predictor_knows") or ("all" if predictor == "oracle" else "nothing")
    return [f"lengths predicted by `{predictor}`{_settings(manifest.get('predictor_options'))}{KNOWS[knows]}"]


def admitted(findings: Findings) -> list[str]:
    """Lines on admission rules, of the section on what was run; none where all go by the default."""
    told: dict[str, dict[str, None]] = {}  # of which policies each is true, in order
    for cell in findings.run.cells:
        rule = (cell.settings.get("policy") or {}).get("admission", "headroom")
        if isinstance(rule, Mapping) and rule["rule"] == "headroom":
            rule = "headroom"
        if isinstance(rule, Mapping):
            rule = f"{rule['rule']}`{_settings({name: value for name, value in rule.items() if name != 'rule'})}"
        elif rule != "headroom":
            rule = f"{rule}`"
        if rule != "headroom" and not cell.padded:
            told.setdefault(rule, {})[cell.policy] = None
    return [f"admission by `{rule} under {several(list(names))}" for rule, names in told.items()]


def _settings(options: Mapping[str, Any] | None) -> str:
    return f" ({', '.join(f'{name} {value}' for name, value in options.items())})" if options else ""

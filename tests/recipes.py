"""A recipe that takes no time: one slot, a burst of answers of many lengths, the shortest first or the first first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SMALL = """\
regime = "one slot"
seeds = [1, 2]

[paper]
title = "A proof"
authors = "Smith"
venue = "NRLQ"
year = 1956
claim = "shortest first has the smallest mean"

[ours]
metric = "e2e"
of = "sjf"
over = "fifo"

[workload]
duration = "10ms"

[[workload.users]]
name = "a"
count = 12
prompt = {{ fixed = 8 }}
output = {{ uniform = [1, 40] }}

[experiment]
engine.kind = "simulated"
modes.continuous.max_running = 1

[arms]
fifo.policies.fifo = {{}}
sjf.policies.sjf = {{}}

[[claims]]
says = "mean completion"
metric = "e2e"
order = {order}
recorded = "{recorded}"
{reason}

[outcome]
result = "{result}"
measured = "not kept"
{reason}
"""


def write_recipe(
    folder: Path,
    order: str = '["sjf", "<", "fifo"]',
    recorded: str = "holds",
    changes: Mapping[str, str] | None = None,
) -> Path:
    """The recipe as a file, with another order or record, or with some of its text changed."""
    holds = recorded == "holds"
    result, reason = ("holds", "") if holds else ("not reproduced", 'reason = "for a test"')
    text = SMALL.format(order=order, recorded=recorded, result=result, reason=reason)
    for old, new in (changes or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "small.toml"
    file.write_text(text, encoding="utf-8")
    return file

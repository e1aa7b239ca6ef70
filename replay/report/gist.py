"""The verdict in three sentences: what serves best and how surely, who pays for it, and what to doubt."""

from __future__ import annotations

from replay.report.findings import Findings
from replay.report.health import certainty, health
from replay.report.verdict import verdict


def gist(findings: Findings) -> list[str]:
    """Three sentences at most, the answer first; all of the verdict where nothing can be compared."""
    every = verdict(findings)
    doubts = [sentence for sentence in health(findings) if sentence in every]
    sure = certainty(findings)
    facts = [sentence for sentence in every if sentence not in doubts and sentence != sure]
    return [*facts[:2], " ".join([*doubts, *([sure] if findings.total("completed") else [])])]

"""A mode that pads computes more padding than tokens."""

from __future__ import annotations

from replay.metrics.arms import Arm
from replay.metrics.notation import number, percent
from replay.report.advice.evidence import enough, rows, size_of, value
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

PADDED = 0.5
"""Share of all tokens computed: from here on, most of the work is for nobody."""
LESS = 0.75
"""Another policy is named where it pads no more than that part of it."""


@pitfall(
    "padding",
    "Most of the work is padding",
    speaks=f"from {percent(PADDED)} of computed tokens",
    remedy="`modes.continuous.max_running` of the same size, with its measured output tokens/s where it was run; the "
    f"policy of the same mode that pads least, where that is at most {percent(LESS)} of it",
    figure="of computed tokens are padding",
    write=percent,
)
def padding(arm: Arm, findings: Findings) -> Case | None:
    """tokens computed that belong to no request, in modes that pad: prompts to the longest of their batch, and answers
    that are complete until the longest is"""
    share, size = value(findings, arm, "padding_share"), size_of(arm)
    if share <= PADDED or not enough(arm, findings):
        return None
    tokens = int(rows(arm, "steps", "padding_tokens")["padding_tokens"].sum())
    rate, slots = value(findings, arm, "output_throughput"), value(findings, arm, "slot_padded")
    inside = [other for other in findings.compared if other.setting == arm.setting and other.trace == arm.trace]
    least = min(inside, key=lambda other: value(findings, other, "padding_share"))
    pads = value(findings, least, "padding_share")
    rival = _continuous(arm, findings)
    continuous = size if rival is None else size_of(rival)
    if rival is not None:
        remedy = f"{rival.setting}, run here too, serves {number(value(findings, rival, 'output_throughput'))} a second"
    else:
        remedy = "requests leave when they are done, others take their slot, and nothing is padded"
    if pads <= LESS * share:
        remedy += f"; within {arm.mode}, {least.policy} pads least, {percent(pads)}"
    return Case(
        figure=share,
        cost=slots,
        what=f"{percent(share)} of the tokens computed are padding ({tokens:,})",
        why=f"{percent(slots)} of the slot time went into it, and {number(rate)} output tokens a second are left",
        settings={"modes.continuous.max_running": continuous} if continuous else {},
        remedy=remedy,
    )


def _continuous(arm: Arm, findings: Findings) -> Arm | None:
    """The continuous arm of the same trace and policy that serves the most tokens."""
    found = [other for other in findings.compared if (other.trace, other.policy) == (arm.trace, arm.policy)]
    unpadded = [other for other in found if not other.mark and not any(cell.padded for cell in other.cells)]
    return max(unpadded, key=lambda other: value(findings, other, "output_throughput"), default=None)

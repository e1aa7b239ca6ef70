"""What is printed of a recipe: the paper's figure beside ours, the regime, a table of the arms, and the claims.

Every figure of ours stands with what it was measured on: a cost model is no machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics import metrics
from replay.metrics.contrasts import QUEUEING
from replay.metrics.notation import aligned, duration, enumerate_words, milliseconds, number, percent, plural, whole
from replay.reproduce.document import Claim, Ours, Quantity, statistic_of
from replay.reproduce.findings import Finding, Findings
from replay.reproduce.orders import Term
from replay.reproduce.recipe import ONLY, Recipe
from replay.reproduce.running import Figures, rows_of

SMALL = 0.01  # a share of the time that is not worth a word
MARKDOWN_HEADS = ("recipe", "paper", "what it claims", "the paper's figure", "ours, on a cost model", "outcome")
NO_FIGURE = "none on record"  # it prints none of this, or nobody has looked it up


def opening(recipe: Recipe) -> list[str]:
    """The paper, and what it says."""
    paper = recipe.paper
    lines = [f"{recipe.name}: {paper.title} ({recipe.reference})", f"  claimed: {paper.claim}"]
    lines += [f"  the paper's figure: {paper.figure or NO_FIGURE}"]
    lines += [f"  not as in the paper: {paper.note}"] if paper.note else []
    return [*lines, f"  regime: {recipe.document.regime}"]


def told(findings: Findings, engine: str) -> str:
    """All that a recipe shows, for a terminal. `engine` is the kind of engine: `simulated` or `torch`."""
    recipe, figures = findings.recipe, findings.figures
    lines = opening(recipe)
    lines += [f"  measured on: {measured_on(recipe, figures, engine)}"]
    lines += [f"  ours: {ours_told(findings)}"] if findings.ours else []
    lines += ["", table(recipe, figures), "", *no_queue(recipe, figures)]
    lines += [claim_told(finding) for finding in findings.claims]
    return "\n".join([*lines, "", outcome_told(findings, engine)])


def measured_on(recipe: Recipe, figures: Figures, engine: str) -> str:
    """`simulated engine: a step takes 15 ms + ...; 3 seeds`."""
    cost = figures.cost
    each = {
        "prefill": "a prefill token",
        "decode": "a decode",
        "context": "a token of context",
        "swap": "a swapped block",
    }
    parts = [f"{1000 * cost['fixed']:.4g} ms"]
    parts += [f"{1000 * cost[name]:.4g} ms {what}" for name, what in each.items() if cost.get(name)]
    kind = "simulated engine, no hardware" if engine == "simulated" else "torch engine, in real time"
    verb = "a step takes" if engine == "simulated" else "a step was fitted to take"
    known = _predictors(recipe)
    lengths = f"lengths as {min(known)} knows them" if len(known) == 1 else "lengths as each arm's predictor knows them"
    return f"{kind}: {verb} {' + '.join(parts)}; {lengths}; means over {plural(len(recipe.document.seeds), 'seed')}"


def ours_told(findings: Findings) -> str:
    """`1.79 (1.75 to 1.84): output_throughput of orca over static`."""
    ours = findings.recipe.document.ours
    assert ours is not None, "asked only where there is one"
    assert findings.ours is not None, "as above"
    middle, low, high = (_ours_value(ours, value) for value in findings.ours)
    of = f"{ours.of} over {ours.over}" if ours.over else ours.of
    spread = f" ({low} to {high})" if low != high else ""
    return f"{middle}{spread}: {column_name(ours)} of {of}"


def _ours_value(ours: Ours, value: float) -> str:
    return f"{number(value)} x" if ours.over else value_told(ours, value)


def table(recipe: Recipe, figures: Figures) -> str:
    """A line for each arm (of each workload): what the claims are about, evictions, and what was short."""
    named = list(recipe.workloads) != [ONLY]
    columns = [one for one in recipe.columns if one.metric != "evictions"]
    heads = [*(["workload"] if named else []), "arm", "policy", *map(column_name, columns)]
    lines = []
    for workload, name in rows_of(recipe):
        arm = recipe.arms[name]
        policy = arm.policy if arm.mode == "continuous" else f"{arm.policy}, {arm.mode}"
        if len(_predictors(recipe)) > 1:
            policy += f", {arm.experiment.predictor.name}"
        values = [value_told(one, figures.mean(name, workload, one)) for one in columns]
        evictions = whole(figures.mean(name, workload, Quantity(metric="evictions")))
        ended = [figures.mean(name, workload, Quantity(metric=metric)) or 0.0 for metric in ("completed", "requests")]
        completed = f"{whole(ended[0])} of {whole(ended[1])}"
        row = [name, policy, *values, evictions, completed, bounds_told(figures.bounds(name, workload))]
        lines.append([workload, *row] if named else row)
    return aligned([*heads, "evictions", "completed", "time bound by"], lines, words=2 + named)


def _predictors(recipe: Recipe) -> set[str]:
    return {arm.experiment.predictor.name for arm in recipe.arms.values()}


def no_queue(recipe: Recipe, figures: Figures) -> list[str]:
    """A warning for the workloads on which no order could show: next to nobody waited, whatever the policy."""
    idle = [
        workload
        for workload in recipe.workloads
        if not any(_queued(figures, arm, place) for place, arm in rows_of(recipe) if place == workload)
    ]
    where = "" if idle == [ONLY] else f" on {enumerate_words(idle)}"
    return [f"no queueing{where}: policies cannot be told apart", ""] if idle else []


def _queued(figures: Figures, arm: str, workload: str) -> bool:
    shares = (figures.mean(arm, workload, Quantity(metric=metric)) for metric in ("queued", "left_waiting"))
    return any(share is not None and share >= QUEUEING for share in shares)


def bounds_told(shares: dict[str, float]) -> str:
    """`blocks 65 %, nothing 35 %`: what is less than 1 % is left out."""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items() if share >= SMALL) or "nothing"


def column_name(quantity: Quantity) -> str:
    """`mean ttft (cold)`."""
    statistic = statistic_of(quantity)
    name = quantity.metric if statistic in ("value", "count") else f"{statistic} {quantity.metric}"
    return f"{name} ({quantity.group})" if quantity.by != "all" and quantity.group else name


def value_told(quantity: Quantity, value: float | None) -> str:
    """With its unit where it is short."""
    unit = metrics[quantity.metric].unit
    if unit == "s":
        return duration(value)
    if unit == "share":
        return percent(value)
    if unit == "s/token":
        return f"{milliseconds(value)} ms/token"
    return whole(value) if statistic_of(quantity) == "count" else number(value)


def claim_told(finding: Finding) -> str:
    """`holds (3 of 3 seeds): ...: static 194 < orca 347`; where it fails for some seeds, their figures too."""
    claim = finding.claim
    verb = "holds" if finding.holds else "fails"
    ours = "our own expectation, " if claim.whose == "ours" else ""
    lines = [
        f"{verb} ({sum(finding.kept)} of {plural(len(finding.kept), 'seed')}): "
        f"{ours}{claim.says}: {order_told(finding, finding.means)}"
    ]
    if not finding.as_recorded:
        lines[0] += f"  <- recorded as one that {claim.recorded}"
    if not finding.holds and any(finding.kept):
        places = zip(finding.seeds, finding.kept, finding.terms, strict=True)
        lines += [f"  but seed {seed}: {order_told(finding, terms)}" for seed, kept, terms in places if not kept]
    if not finding.holds and finding.as_recorded:
        lines.append(f"  as recorded: {claim.reason}")
    return "\n".join(lines)


def order_told(finding: Finding, figures: Sequence[float | None]) -> str:
    """The order with figures: `static 194 < orca 347`."""
    claim = finding.claim
    words = []
    for place, term in enumerate(claim.order):
        words.append(_term(term, claim, figures[place // 2]) if place % 2 == 0 else str(term))
    return " ".join(words) + (f" (each over {claim.relative_to})" if claim.relative_to else "")


def _term(term: Term, claim: Claim, figure: float | None) -> str:
    told = value_told(claim, figure) if claim.relative_to is None else number(figure)
    return f"{term} {told}" if isinstance(term, str) else told


def outcome_told(findings: Findings, engine: str) -> str:
    """The outcome, and whether it is the one on record."""
    recorded = findings.recipe.document.outcome
    if engine != "simulated":
        return (
            f"{findings.recipe.name}: {findings.result} on this machine; what is on record is of the simulated engine"
        )
    line = f"{findings.recipe.name}: {findings.result}"
    if not findings.as_recorded:
        return f"{line}, which differs from the record ({recorded.result}; measured then: {recorded.measured})"
    reason = f"\n  {recorded.reason}" if recorded.reason else ""
    return f"{line}, as recorded{reason}"


def summary_row(findings: Findings) -> list[str]:
    """The recipe's line in the table of all."""
    recipe, paper = findings.recipe, findings.recipe.paper
    kept = _kept(findings.of("paper"), "claim")
    if ours := findings.of("ours"):
        kept += f"; {_kept(ours, 'expectation')} of ours"
    outcome = f"{findings.result} ({kept})" + ("" if findings.as_recorded else ", not as recorded")
    reason = recipe.document.outcome.reason
    if findings.as_recorded and reason:
        outcome += f": {reason}"
    told = ours_told(findings) if findings.ours else order_told(findings.claims[0], findings.claims[0].means)
    return [recipe.name, recipe.reference, paper.claim, paper.figure or NO_FIGURE, told, outcome]


def _kept(claims: Sequence[Finding], noun: str) -> str:
    return f"{sum(finding.holds for finding in claims)} of {plural(len(claims), noun)}"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """The table of all recipes for a document."""
    lines = [MARKDOWN_HEADS, ["---"] * len(MARKDOWN_HEADS), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)

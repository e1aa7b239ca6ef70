"""A recipe that can be run: a file that was read, and in which all names are those of what there is.

It says what is wrong with a file, and runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay.errors import ExperimentError
from replay.experiment.document import merged, read_document
from replay.experiment.faults import Faults
from replay.experiment.options import validate
from replay.metrics import metrics
from replay.metrics.groups import BREAKDOWNS
from replay.metrics.statistics import DISTRIBUTION
from replay.registry import nearest
from replay.reproduce.arms import Arm, arms_of
from replay.reproduce.document import Claim, Document, Ours, Paper, Quantity, statistic_of
from replay.reproduce.orders import Entry, Term, check_order, entries
from replay.traces.generating.specification import checked_spec

ONLY = ""  # the name of a workload that is the only one


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe that can be run. `workloads` are specifications for the trace generator, but for the seed."""

    name: str
    file: Path
    document: Document
    workloads: Mapping[str, Mapping[str, Any]]
    arms: Mapping[str, Arm]

    @property
    def paper(self) -> Paper:
        return self.document.paper

    @property
    def reference(self) -> str:
        """`Yu et al., OSDI, 2022`."""
        return f"{self.paper.authors}, {self.paper.venue}, {self.paper.year}"

    @property
    def columns(self) -> list[Quantity]:
        """What the claims are about, and what else is shown: each once."""
        wanted = [*self.document.claims, *self.document.show, *([self.document.ours] if self.document.ours else [])]
        plain = [
            Quantity(metric=one.metric, statistic=statistic_of(one), by=one.by, group=group)
            for one in wanted
            for group in _groups(one)
        ]
        return list(dict.fromkeys(plain))


def read_recipe(file: Path, *, torch: bool = False) -> Recipe:
    """The recipe in a file; with `torch`, as it is scaled down for a real engine.

    Raises ExperimentError with every fault, a line each: file, key, what is wrong and what would be right.
    """
    faults = Faults(str(file))
    document = validate(Document, read_document(file), "", faults)
    faults.raise_if_any()
    assert document is not None, "a document without faults was validated"
    if torch and document.torch is None:
        raise ExperimentError(f"{file}: has no [torch] table, so it runs on the simulated engine only")
    workloads = _workloads(document, faults)
    experiment = document.experiment
    if torch and document.torch is not None:
        workloads = dict.fromkeys(workloads, document.torch.workload)
        experiment = merged(experiment, document.torch.experiment)
    for name, specification in workloads.items():
        try:
            checked_spec({**specification, "seed": document.seeds[0]}, f"workload {name}".strip())
        except ExperimentError as fault:
            faults.add("", str(fault))
    arms = arms_of(experiment, document.arms, list(workloads), faults)
    recipe = Recipe(file.stem, file, document, workloads, arms)
    _check_claims(recipe, faults)
    faults.raise_if_any()
    return recipe


def _workloads(document: Document, faults: Faults) -> dict[str, dict[str, Any]]:
    if (document.workload is None) == (not document.workloads):
        faults.add("workload", "give one [workload], or several as [workloads.NAME]")
    return document.workloads or {ONLY: document.workload or {}}


def _check_claims(recipe: Recipe, faults: Faults) -> None:
    document = recipe.document
    for place, claim in enumerate(document.claims):
        path = f"claims[{place}]"
        _check_quantity(claim, path, faults)
        check_order(claim.order, f"{path}.order", faults)
        for entry in [*entries(claim.order), *([Entry.of(claim.relative_to)] if claim.relative_to else [])]:
            _check_entry(entry, claim, recipe, path, faults)
        if claim.recorded == "fails" and claim.reason is None:
            faults.add(f"{path}.reason", "is required where the claim is recorded as failing")
    for place, quantity in enumerate(document.show):
        _check_quantity(quantity, f"show[{place}]", faults)
    if document.ours is not None:
        _check_quantity(document.ours, "ours", faults)
        for name in (document.ours.of, document.ours.over):
            if name is not None:
                _check_entry(Entry.of(name), document.ours, recipe, "ours", faults)
    deciding = [claim for claim in document.claims if claim.whose == "paper"]
    if not deciding:
        faults.add("claims", "are all ours; one at least must be the paper's, to decide the outcome")
    all_hold = all(claim.recorded == "holds" for claim in deciding)
    if all_hold != (document.outcome.result == "holds"):
        result = "holds" if all_hold else "not reproduced"
        said = f'not "{document.outcome.result}"'
        faults.add("outcome.result", f'is "{result}" by what is recorded of the claims of the paper, {said}')
    if document.outcome.result == "not reproduced" and document.outcome.reason is None:
        faults.add("outcome.reason", "is required where the outcome is not reproduced")


def _check_quantity(quantity: Quantity, path: str, faults: Faults) -> None:
    if quantity.metric not in metrics:
        faults.add(f"{path}.metric", f"there is no metric {quantity.metric!r}; {nearest(quantity.metric, metrics)}")
        return
    entry = metrics[quantity.metric]
    known = (entry.statistic,) if entry.shape == "one" else DISTRIBUTION
    if (statistic := statistic_of(quantity)) not in known:
        faults.add(
            f"{path}.statistic", f"{quantity.metric} has no statistic {statistic!r}; {nearest(statistic, known)}"
        )
    if quantity.by not in BREAKDOWNS:
        faults.add(f"{path}.by", f"there are no groups by {quantity.by!r}; {nearest(quantity.by, BREAKDOWNS)}")


def _check_entry(entry: Entry, quantity: Quantity, recipe: Recipe, path: str, faults: Faults) -> None:
    if entry.arm not in recipe.arms:
        faults.add(path, f"there is no arm {entry.arm!r}; {nearest(entry.arm, recipe.arms)}")
        return
    workload = entry.workload or quantity.workload
    if workload is None and len(recipe.workloads) > 1:
        faults.add(path, f"says of no workload what it is about; there are: {', '.join(recipe.workloads)}")
    elif workload is not None and workload not in recipe.workloads:
        faults.add(path, f"there is no workload {workload!r}; {nearest(workload, recipe.workloads)}")
    elif workload is not None and workload not in recipe.arms[entry.arm].workloads:
        faults.add(path, f"the arm {entry.arm} is not given the workload {workload}")
    if quantity.by != "all" and entry.group is None and quantity.group is None:
        faults.add(path, f"says of no group by {quantity.by} what it is about; write group, or 'arm/group'")


def _groups(quantity: Quantity) -> list[str | None]:
    """The groups that a quantity is asked of, by itself or in an order."""
    named: list[Term] = []
    if isinstance(quantity, Claim):
        named = quantity.order
    elif isinstance(quantity, Ours):
        named = [quantity.of, *([quantity.over] if quantity.over else [])]
    found = [entry.group or quantity.group for entry in entries(named)] or [quantity.group]
    return list(dict.fromkeys(found))

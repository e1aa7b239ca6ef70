"""From the document of an experiment to a validated experiment, or to every fault in it.

It reads no trace: whether a trace can be replayed is known when it is opened, before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError, create_model

from replay.errors import ExperimentError
from replay.experiment.faults import Faults
from replay.experiment.options import Setting, options_model, refuse_twice, validate, validate_sweep
from replay.experiment.rules import make, validate_options
from replay.experiment.settings import Engine, Goals, Service, Top
from replay.experiment.together import check_devices, check_measures, check_models, check_together, warnings_of
from replay.experiment.variants import Variant, variants_of
from replay.predictors import Predictor, predictors
from replay.registry import Registry, nearest
from replay.scheduler import Mode, Policy, modes, policies
from replay.traces.transforms import Declared, parse_transforms
from replay.traces.workload import PriorityOrder

DEFAULT_POLICIES = ("fifo", "sjf", "priority", "fair", "hybrid")
DEFAULT_PREDICTOR = "oracle"

Made = TypeVar("Made")


@dataclass(slots=True, frozen=True)
class Choice:
    """One setting of one registered thing: its name, all its settings, and those that a sweep varies."""

    name: str
    settings: dict[str, Any]
    varied: dict[str, Setting] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Experiment:
    """A validated experiment. `document` is the file as run, with what the command line added."""

    name: str
    traces: list[Path]
    transforms: list[Declared]
    variants: list[Variant]  # of each trace, after the transforms
    repeats: int
    noise_floor: bool
    seed: int
    open_loop: bool
    priority_order: PriorityOrder
    lag_limit_ms: float
    length_bins: list[int] | None
    engines: list[tuple[Engine, dict[str, Setting]]]
    modes: list[Choice]
    policies: list[Choice]
    predictor: Choice
    goals: Goals
    service: Service
    document: dict[str, Any]
    warnings: list[str]

    def make_mode(self, choice: Choice) -> Mode:
        """A fresh mode: a batch size that adapts keeps notes, so no two cells share one."""
        return _mode(choice)

    def make_policy(self, choice: Choice) -> Policy:
        """A fresh policy: it may keep notes, so no two cells share one."""
        made: Policy = make(policies[choice.name], choice.settings)
        return made

    def make_predictor(self) -> Predictor:
        return predictors[self.predictor.name](**self.predictor.settings)


def load_experiment(
    document: Mapping[str, Any], source: str, folder: Path | None = None, origins: Mapping[str, str] | None = None
) -> Experiment:
    """Validate `document`; `source` names it in faults, and traces are looked for in `folder` first, then here.

    `origins` names the option of the command line that gave a path of the document.

    Raises ExperimentError with every fault, a line each: path, what is wrong, what would be right.
    """
    faults = Faults(source, origins)
    top = validate(Top, document, "", faults)
    sections = top or _readable_part(document)
    engines = validate_sweep(Engine, sections.engine, "engine", faults)
    chosen_modes = _choices(modes, sections.modes, named_sections()["modes"][0], "modes", faults)
    chosen_policies = _choices(policies, sections.policies, list(DEFAULT_POLICIES), "policies", faults)
    predictor = _predictor(sections.lengths, faults)
    refuse_twice("loads", sections.loads, faults)
    refuse_twice("without_users", sections.without_users, faults)
    goals = validate(Goals, sections.goals, "goals", faults)
    service = validate(Service, sections.service, "service", faults)
    transforms = _transforms(sections.transforms, folder, faults)
    traces = [_find(trace, folder, f"traces[{index}]", faults) for index, trace in enumerate(sections.traces)]
    plain = [engine for engine, _ in engines]
    made = [(choice.name, _mode(choice)) for choice in chosen_modes]
    check_models(plain, faults)
    check_devices(plain, faults)
    check_together(plain, made, faults)
    check_measures(goals, service, faults)
    faults.raise_if_any()
    assert top is not None, "a document without faults was validated"
    assert predictor is not None, "as above"
    assert goals is not None, "as above"
    assert service is not None, "as above"
    return Experiment(
        name=top.name or Path(source).stem,
        traces=traces,
        transforms=transforms,
        variants=variants_of(top),
        repeats=top.repeats,
        noise_floor=top.noise_floor,
        seed=top.seed,
        open_loop=top.open_loop,
        priority_order=top.priority_order,
        lag_limit_ms=top.lag_limit_ms,
        length_bins=top.length_bins,
        engines=engines,
        modes=chosen_modes,
        policies=chosen_policies,
        predictor=predictor,
        goals=goals,
        service=service,
        document=dict(document),
        warnings=warnings_of(plain, [mode for _, mode in made], top.repeats, noise_floor=top.noise_floor),
    )


def _readable_part(document: Mapping[str, Any]) -> Top:
    """What can still be looked at of a document with faults at its top, so that those below are found as well."""
    readable: dict[str, Any] = {"traces": ["-"]}
    for key in Top.model_fields:
        if key in document:
            try:
                Top.model_validate({**readable, key: document[key]})
            except ValidationError:
                continue
            readable[key] = document[key]
    if readable["traces"] == ["-"]:
        return Top.model_construct(**{**Top(traces=["-"]).model_dump(), **readable, "traces": []})
    return Top(**readable)


def named_sections() -> dict[str, tuple[list[str], list[str]]]:
    """The sections that name registered things: those taken when a section is left out, and all there are."""
    return {"modes": (list(modes), list(modes)), "policies": (list(DEFAULT_POLICIES), list(policies))}


def _choices(
    registry: Registry[Callable[..., Made]] | Registry[type[Made]],
    section: object,
    default: list[str],
    path: str,
    faults: Faults,
) -> list[Choice]:
    """The registered things that a section names, each with every combination of its settings."""
    if section == "all":
        section = {name: {} for name in registry}
    elif section is None:
        section = {name: {} for name in default}
    if not isinstance(section, Mapping):
        faults.add(path, f'is a table of {registry.kind} names, or "all", not {section!r}')
        return []
    if not section:
        faults.add(path, f"is empty; {nearest('', registry)}, or leave the section out")
    chosen = []
    for name, settings in section.items():
        if name not in registry:
            faults.add(f"{path}.{name}", f"there is no {registry.kind} of this name; {nearest(name, registry)}")
            continue
        for complete, varied in validate_options(registry[name], settings, f"{path}.{name}", faults):
            chosen.append(Choice(name, complete, varied))
    return chosen


def _predictor(section: Mapping[str, Any], faults: Faults) -> Choice | None:
    settings = dict(section)
    name = settings.pop("predictor", DEFAULT_PREDICTOR)
    if name not in predictors:
        faults.add("lengths.predictor", f"there is no length predictor {name!r}; {nearest(str(name), predictors)}")
        return None
    model = create_model("Lengths", __base__=options_model(predictors[name]), predictor=(str, name))
    validated = validate(model, settings, "lengths", faults)
    return None if validated is None else Choice(name, validated.model_dump(exclude={"predictor"}))


def _transforms(entries: list[dict[str, Any]], folder: Path | None, faults: Faults) -> list[Declared]:
    """The transforms in order, one by one so that each fault has its place; files that they name lie in `folder`."""
    found = []
    for index, entry in enumerate(entries):
        try:
            found += parse_transforms([entry], folder)
        except ExperimentError as fault:
            faults.add(f"transforms[{index}]", str(fault))
    return found


def _find(trace: str, folder: Path | None, path: str, faults: Faults) -> Path:
    """Where a trace lies: beside the experiment file, or else below the folder that the command was typed in."""
    places = list(dict.fromkeys(place / trace for place in (folder, Path()) if place is not None))
    for place in places:
        if place.exists():
            return place
    faults.add(path, f"{trace!r} does not exist (looked for {', '.join(str(place) for place in places)})")
    return Path(trace)


def _mode(choice: Choice) -> Mode:
    mode: Mode = make(modes[choice.name], choice.settings)
    return mode

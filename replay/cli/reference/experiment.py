"""The page on the keys of an experiment: what each takes, its default, its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replay.cli.keys import default, example
from replay.cli.reference.markdown import code, own, words
from replay.experiment.keys import Key, Section, sections
from replay.predictors import predictors
from replay.registry import Registry
from replay.scheduler import admissions, batch_sizes, modes, policies
from replay.traces.transforms import transforms

HEADS = ("key", "default", "takes", "what it means")
OPENING = """\
# Keys of an experiment

An experiment is a TOML file; `replay init` prints one with comments, `replay keys` this list, and `replay keys NAME` a
part of it. Only `traces` is required. A key that is not here is refused before anything runs, with the nearest that is.
Every key can be said on the command line too: `replay run experiment.toml --set engine.kv_blocks=512`.

In place of one value, a key of `[engine]` and an option of a mode, a policy or a rule takes a list of them, which is
swept: every combination is a cell of its own. The keys of all sections together make the grid:
traces x loads x engines x modes x policies x repeats. How it is told which of them is better: [metrics](metrics.md);
what is left of it: [runs](runs.md)."""


TRANSFORMS = """\
`transforms` is a list of tables of one name and its argument, applied in order:
`transforms = [{ window = ["20m", "35m"] }, { speed = 2.0 }]`. All forms of each: [transforms](../transforms.md)."""
ENGINE = """\
What each means for a step: [the engine](../engine.md). A simulated engine takes those marked *."""
MODES = "Left out: all three, with their defaults. [How they differ](../../README.md#how-it-works)."
BATCH_SIZES = """\
In place of a batch size's number stands the name of a rule, or a table of its settings:
`max_running = { rule = "aimd", tpot_ms = 40 }`."""
POLICIES = """\
Left out: fifo, sjf, priority, fair and hybrid; `policies = "all"`, above the first table, takes every registered one.
A name may be a file of your own, `"./mine.py:Mine" = {}`. Those that are not in the table have no option but
`admission`, or none. Rules and sources: [policies](../policies.md)."""
ADMISSION = """\
`admission` says whether who is next may join, by memory to come. It is an option of every policy that admits in an
order, the name of a rule or a table of its settings: `fifo = { admission = { rule = "past_future", window = 9 } }`."""
LENGTHS = "The true length reaches a policy only through a predictor, whose settings stand beside its name."


def told() -> list[Section]:
    """The keys of what comes with replay."""
    registries: tuple[Registry[Any], ...] = (modes, batch_sizes, policies, admissions, predictors)
    ours = {registry.kind: set(own(registry)) for registry in registries}
    return [section for section in sections() if not section.kind or section.entry in ours[section.kind]]


def page() -> str:
    found = told()
    of = {kind: [section for section in found if section.kind == kind] for kind in (section.kind for section in found)}
    top, engine, cost, lengths, goals, service = of[""]
    return "\n\n".join(
        [
            OPENING,
            "## At the top",
            "These stand above the first table.",
            _table(top),
            "## Transforms",
            TRANSFORMS,
            _transforms(),
            "## engine",
            ENGINE,
            _table(engine),
            "### engine.cost",
            f"{cost.meaning} A real engine fits the same to its own steps.",
            _table(cost),
            "## modes",
            MODES,
            *(part for section in of["mode"] for part in _headed(section)),
            "## Batch sizes that adapt",
            BATCH_SIZES,
            *(part for section in of["batch size"] for part in _headed(section)),
            "## policies",
            POLICIES,
            _options(of["policy"]),
            "## Admission rules",
            ADMISSION,
            _takers(of["policy"]),
            _rules(of["admission rule"]),
            "## lengths",
            LENGTHS,
            _table(lengths),
            _rules(of["length predictor"]),
            "## goals",
            goals.meaning,
            _table(goals),
            "## service",
            service.meaning,
            _table(service),
        ]
    )


def _table(section: Section) -> str:
    return words(HEADS, [_row(key, starred=section.path == "engine" and not key.torch_only) for key in section.keys])


def _headed(section: Section) -> Sequence[str]:
    return (f"### {section.entry}", section.meaning, _table(section))


def _row(key: Key, *, starred: bool = False) -> list[str]:
    return [code(key.name) + (" *" if starred else ""), _default(key), f"{key.takes}{example(key)}", key.meaning]


def _default(key: Key) -> str:
    return "unset" if key.default is None else "must be given" if key.default is ... else code(default(key))


def _options(found: Sequence[Section]) -> str:
    """The options of each policy's own."""
    rows = [[code(section.entry), *_row(key)] for section in found for key in section.keys if not key.shared]
    return words(("policy", *HEADS), rows)


def _takers(found: Sequence[Section]) -> str:
    """Which policies take a rule, by the one that they have by default."""
    rules: dict[str, list[str]] = {}
    for section in found:
        for key in section.keys:
            if key.shared:
                rules.setdefault(_default(key), []).append(section.entry)
    return words(("by default", "of"), [[rule, ", ".join(names)] for rule, names in rules.items()])


def _rules(found: Sequence[Section]) -> str:
    """Rules with their settings: a row for each setting, and one for a rule that has none."""
    rows = []
    for section in found:
        name, meaning = code(section.entry), section.meaning
        rows.append([name, "", "", "", meaning])
        rows += [[name, *_row(key)] for key in section.keys]
    return words(("name", *HEADS), rows)


def _transforms() -> str:
    told = ((name, (transforms[name].__doc__ or "").partition(": {")) for name in own(transforms))
    rows = [[code(name), does, code(f"{{{form}").replace(" or {", "` or `{")] for name, (does, _, form) in told]
    return words(("transform", "what it does", "such as"), rows)

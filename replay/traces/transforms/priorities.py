"""Priorities that a trace does not have: by length, by whose request it is or of which class, or by chance.

No public trace carries one, so the record says how many requests got which. Larger is more urgent unless the
experiment says otherwise.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from replay.errors import ExperimentError
from replay.traces.drawing import drawn
from replay.traces.table import Trace
from replay.traces.transforms.arguments import as_number, choice, entries, one_of, settings, whole
from replay.traces.transforms.declaring import Transform, noted, settled, transforms
from replay.traces.transforms.lookup import looked_up, refuse_absent
from replay.traces.wording import counted

LENGTHS = ("prompt_tokens", "output_tokens", "max_tokens")
NAMED = {"users": "user", "slos": "slo"}
EACH = {"request": pl.col("request_id")} | {
    each: pl.coalesce(pl.col(each), pl.col("request_id")) for each in ("user", "session")
}
EXAMPLE = '{ from = "prompt_tokens", below = [100, 1000] }'
SHOWN = 8  # priorities whose numbers of requests are told


@transforms.register("derive_priority")
def derive_priority(argument: object) -> Transform:
    """Priorities by length, user, class or chance: { derive_priority = { from = "prompt_tokens", below = [100] } }"""
    known = ("from", "below", *NAMED, "random", "default", "seed", "each")
    given = settings("derive_priority", argument, known, EXAMPLE)
    way = one_of("derive_priority", given, ("from", *NAMED, "random"))
    further = {"from": ("below",), "random": ("seed", "each")}.get(way, ("default",))
    for key in given:
        if key not in (way, *further):
            raise ExperimentError(f"derive_priority: {key!r} does not go with {way!r}")
    if way == "from":
        return by_length(given)
    return at_random(given) if way == "random" else by_name(given, way)


def by_length(given: dict[str, Any]) -> Transform:
    """The shorter the more urgent: 0 from the last bound on, and one more below each bound."""
    column = choice("derive_priority: from", given["from"], LENGTHS)
    below = given.get("below")
    if not isinstance(below, list | tuple) or not below:
        raise ExperimentError(f"derive_priority: {column} needs bounds in tokens, such as below = [100, 1000]")
    bounds = [whole("derive_priority: below", bound) for bound in below]
    if bounds != sorted(set(bounds)):
        raise ExperimentError(f"derive_priority: below: {below!r} does not rise")
    priority = pl.sum_horizontal((pl.col(column) < bound).cast(pl.Int64) for bound in bounds)
    leak = ["it goes by the true length of the answers, which no policy could know"] * (column == "output_tokens")
    return lambda trace: with_priorities(trace, pl.when(pl.col(column).is_not_null()).then(priority), leak)


def by_name(given: dict[str, Any], way: str) -> Transform:
    """The priority that is given for a user or a class, and the default for all others."""
    column, place = NAMED[way], f"derive_priority: {way}"
    table = {
        name: priority(f"{place}.{name}", value) for name, value in entries(place, given[way], "{ ada = 2 }").items()
    }
    default = priority("derive_priority: default", given.get("default", 0))
    value = looked_up(pl.col(column), table, pl.Int64()).fill_null(default)

    def derive(trace: Trace) -> Trace:
        refuse_absent(trace, column, list(table), place)
        return with_priorities(trace, value)

    return derive


def at_random(given: dict[str, Any]) -> Transform:
    """Priorities with weights, drawn for each request, or for each user or session as a whole."""
    place = "derive_priority: random"
    table = entries(place, given["random"], '{ "0" = 0.7, "1" = 0.3 }')
    weights = {priority(place, name): as_number(weight) for name, weight in table.items()}
    if any(weight is None or weight < 0 for weight in weights.values()) or not any(weights.values()):
        raise ExperimentError(f"{place}: {given['random']!r} does not give each priority a weight of 0 or more")
    names = EACH[choice("derive_priority: each", given.get("each", "request"), tuple(EACH))]
    seed = whole("derive_priority: seed", given.get("seed", 0), 0)
    place_of = drawn(names, seed, "derive_priority", [weight or 0.0 for weight in weights.values()])
    value = looked_up(place_of, dict(enumerate(weights)), pl.Int64())
    return lambda trace: with_priorities(trace, value)


def with_priorities(trace: Trace, value: pl.Expr, further: list[str] | None = None) -> Trace:
    """The trace with these priorities, and a note on how many there are of each."""
    replaced = trace.values(own=pl.col("priority").is_not_null().sum())["own"]
    changed = settled(trace.with_rows(trace.rows.with_columns(value.alias("priority"))))
    counts = changed.rows.group_by("priority").len().sort("priority", nulls_last=True).collect(engine="streaming")
    told = [
        f"{'none' if each is None else each}: {counted(n, 'request')}" for each, n in counts.head(SHOWN).iter_rows()
    ]
    more = f", and {counts.height - SHOWN} more priorities" if counts.height > SHOWN else ""
    notes = [f"derived priority {', '.join(told)}{more}", *(further or [])]
    if replaced:
        notes.append(f"{counted(replaced, 'request')} had a priority, which is replaced")
    return noted(changed, *notes)


def priority(place: str, value: object) -> int:
    """A whole number, which as a key of a table is text."""
    if isinstance(value, str) and value.removeprefix("-").isascii() and value.removeprefix("-").isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**62:
        raise ExperimentError(f"{place}: {value!r} is not a whole number")
    return value

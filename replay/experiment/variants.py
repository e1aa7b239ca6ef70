"""Variants of a trace: the same requests in another way, each replayed as a trace of its own beside the others.

Keys at the top of an experiment declare them. Each key is an axis with its alternatives, and of several axes every
combination is taken. What a variant does to a trace are transforms like any others, after those of the experiment.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from replay.experiment.settings import Top
from replay.traces.table import Trace
from replay.traces.transforms import Declared, apply_transforms, parse_transforms


@dataclass(slots=True, frozen=True)
class Variant:
    """`label` stands behind the trace's name, and `facts` in the manifest: what the variant is, for a report."""

    label: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    transforms: tuple[Declared, ...] = ()


def variants_of(top: Top) -> list[Variant]:
    """The variants that an experiment declares: one that changes nothing, where it declares none."""
    axes = [at_loads(top.loads), without(top.without_users)]
    return [_together(chosen) for chosen in itertools.product(*(axis for axis in axes if axis))]


def at_loads(loads: Sequence[float]) -> list[Variant]:
    """The trace at so many times its mean rate, for each of `loads`."""
    factors = [f"{Decimal(repr(load)).normalize():f}x" for load in loads]
    return [
        Variant(f"at {factor}", {"load": load}, tuple(parse_transforms([{"rate": factor}])))
        for load, factor in zip(loads, factors, strict=True)
    ]


def without(users: Sequence[str]) -> list[Variant]:
    """The trace as it is, and without some of its users; nothing where none is named."""
    if not users:
        return []
    named = " and ".join(users)
    left = tuple(parse_transforms([{"without_users": list(users)}]))
    return [Variant(), Variant(f"without {named}", {"without": named}, left)]


def vary(trace: Trace, variants: Sequence[Variant]) -> list[Trace]:
    """The variants of a trace, in order."""
    return [
        apply_transforms(
            replace(
                trace,
                name=f"{trace.name} {variant.label}".strip(),
                origin=trace.name if variant.facts else trace.origin,
                variant=variant.facts,
            ),
            variant.transforms,
        )
        for variant in variants
    ]


def _together(chosen: Sequence[Variant]) -> Variant:
    """One variant of each axis, as one."""
    return Variant(
        " ".join(variant.label for variant in chosen if variant.label),
        {name: fact for variant in chosen for name, fact in variant.facts.items()},
        tuple(transform for variant in chosen for transform in variant.transforms),
    )

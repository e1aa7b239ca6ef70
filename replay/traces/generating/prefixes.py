"""Shared beginnings of prompts, as the hashes of their blocks."""

from __future__ import annotations

from itertools import count

from replay.traces.generating.specification import Spec

Hashes = list[int]


def prefix_hashes(spec: Spec) -> dict[str, list[Hashes]]:
    """The hashes of each copy's blocks, counted on from prefix to prefix, so that no two share one."""
    counter = count()

    def copy(blocks: int) -> Hashes:
        return [next(counter) for _ in range(blocks)]

    return {
        prefix.name: [copy(prefix.tokens // spec.block_size) for _ in range(prefix.copies)] for prefix in spec.prefixes
    }

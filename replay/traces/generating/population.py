"""Who a user of the file stands for: the copies, their names, and the part of the whole that is each one's."""

from __future__ import annotations

from dataclasses import dataclass

from replay.traces.generating.specification import User
from replay.traces.generating.zipf import split


@dataclass(frozen=True, slots=True)
class Member:
    """One copy: `part` of the rate that is declared, or `count` requests."""

    name: str
    part: float = 1.0
    count: int | None = None


def members(user: User) -> list[Member]:
    """All copies: each as busy as declared, or with a `share` so busy together."""
    names = user.names
    if user.share is None:
        return [Member(name, count=user.count) for name in names]
    parts = user.share.weights(len(names))
    counts = [None] * len(names) if user.count is None else split(user.count, parts)
    return [Member(*each) for each in zip(names, parts, counts, strict=True)]

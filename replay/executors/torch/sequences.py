"""The token ids of a cell's requests, prompt and answer, and their block tables: what a step's rows come from.

It keeps what was sampled, so that a request that starts again at 0 after an eviction goes on where it was; and it knows
which token is sampled but still on the device. It does not know why a request gets the tokens that it gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from replay.executors.interface import Batch, Share, TokenIds
from replay.executors.torch.layout import Integers, Rows, Tables


@dataclass(slots=True)
class Ids:
    """One request: a prompt of `prompt` ids and the answer, `known` ids in all so far, the last maybe on the device."""

    ids: TokenIds
    prompt: int
    known: int
    late: int | None = None  # where the last id is among those that the step in flight samples
    blocks: Sequence[int] = ()  # the table as last seen
    table: Tables = field(default_factory=lambda: np.zeros(8, dtype=np.int32))  # the same as an array, with room
    filled: int = 0

    def follow(self, blocks: Sequence[int]) -> Tables:
        """`blocks` as an array: only those added since the last time are copied."""
        if blocks is not self.blocks:  # another list: the request was admitted anew
            self.blocks, self.filled = blocks, 0
        count = len(blocks)
        if count > self.filled:
            if count > len(self.table):
                self.table = np.resize(self.table, 2 * count)
            self.table[self.filled : count] = blocks[self.filled :]
            self.filled = count
        return self.table[:count]


@dataclass(slots=True)
class Taken:
    """Whose token each sampled id becomes: `row`'s, at `place` among its ids."""

    row: int
    place: int


class Sequences:
    """All requests of a cell, by row."""

    def __init__(self, prompts: Sequence[TokenIds], output_tokens: Sequence[int]) -> None:
        self._sequences: dict[int, Ids] = {}
        for row, (prompt, output) in enumerate(zip(prompts, output_tokens, strict=True)):
            ids = np.zeros(len(prompt) + output, dtype=np.int32)
            ids[: len(prompt)] = prompt
            self._sequences[row] = Ids(ids, prompt=len(prompt), known=len(prompt))

    def rows(self, batch: Batch) -> tuple[Rows, Integers]:
        """The rows of a step, and for each id handed in where the step in flight samples it, or -1 where it is known.

        AssertionError where more tokens are asked for than there are, or one is sampled before the last.
        """
        shares = batch.shares
        sequences = [self._sequences[share.request.row] for share in shares]
        for share, sequence in zip(shares, sequences, strict=True):
            _check(share, sequence)
        tables = [sequence.follow(share.blocks) for share, sequence in zip(shares, sequences, strict=True)]
        stacked = np.zeros((len(shares), max(map(len, tables))), dtype=np.int32)
        for line, table in zip(stacked, tables, strict=True):
            line[: len(table)] = table
        lengths = np.array([share.tokens for share in shares], dtype=np.int64)
        parts = [
            sequence.ids[share.start : share.start + share.tokens]
            for share, sequence in zip(shares, sequences, strict=True)
        ]
        rows = Rows(
            ids=np.concatenate(parts),
            owners=np.array([share.request.row for share in shares], dtype=np.int64),
            starts=np.array([share.start for share in shares], dtype=np.int64),
            lengths=lengths,
            samples=np.array([share.samples for share in shares], dtype=np.bool_),
            tables=stacked,
        )
        late = np.full(len(rows.ids), -1, dtype=np.int64)
        last = np.cumsum(lengths) - 1
        for share, sequence, place in zip(shares, sequences, last, strict=True):
            if sequence.late is not None and share.start + share.tokens == sequence.known:
                late[place] = sequence.late
        return rows, late

    def take(self, batch: Batch) -> list[Taken]:
        """A step was handed to the device: its sampling requests have one more token, not known here yet."""
        taken: list[Taken] = []
        for share in batch.shares:
            if share.samples:
                sequence = self._sequences[share.request.row]
                sequence.late = len(taken)
                taken.append(Taken(share.request.row, sequence.known))
                sequence.known += 1
        return taken

    def keep(self, taken: Sequence[Taken], ids: Sequence[int]) -> None:
        """The ids that a step sampled have come."""
        for one, token in zip(taken, ids, strict=True):
            sequence = self._sequences[one.row]
            sequence.ids[one.place] = token
            if sequence.known == one.place + 1:
                sequence.late = None

    def prompt(self, row: int) -> list[int]:
        """The ids of a request's prompt."""
        sequence = self._sequences[row]
        ids: list[int] = sequence.ids[: sequence.prompt].tolist()
        return ids

    def answer(self, row: int) -> list[int]:
        """The ids of a request's answer that are known here."""
        sequence = self._sequences[row]
        known = sequence.known - (sequence.late is not None)
        ids: list[int] = sequence.ids[sequence.prompt : known].tolist()
        return ids


def _check(share: Share, sequence: Ids) -> None:
    end, row = share.start + share.tokens, share.request.row
    assert end <= sequence.known, f"row {row}: {end} tokens asked for, {sequence.known} known"
    assert not share.samples or end == sequence.known, f"row {row}: a token is sampled only after the last"

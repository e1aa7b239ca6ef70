"""Blocks in host memory for requests that are swapped out, and the copies that the next batch is to carry.

It counts blocks and plans copies; the executor moves the keys and values. It does not know who is swapped out, or why.
"""

from __future__ import annotations

from collections.abc import Sequence


class HostPool:
    """`blocks` blocks, each as large as one of the device's. A swapped request's table lists its blocks in order."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.tables: dict[int, list[int]] = {}
        self._free = list(range(blocks - 1, -1, -1))
        self._leaving: dict[int, int] = {}  # copies to come: from the device's block, by the host block that gets it
        self._coming: dict[int, list[int]] = {}  # copies back to come: to the device's blocks, by row

    @property
    def free_blocks(self) -> int:
        return len(self._free)

    def swap_out(self, row: int, blocks: Sequence[int]) -> bool:
        """Plan to copy the device's `blocks` of `row` here; False, and nothing, where there is no room for all."""
        if len(blocks) > len(self._free):
            return False
        table = self.tables[row] = [self._free.pop() for _ in blocks]
        self._leaving.update(zip(table, blocks, strict=True))
        return True

    def swap_in(self, row: int, blocks: Sequence[int]) -> None:
        """Plan to copy `row`'s blocks back into the device's `blocks`; its place is kept until copies are taken."""
        self._coming[row] = list(blocks[: len(self.tables[row])])

    def stay(self, row: int) -> bool:
        """Take a planned copy back of `row` off the plan: whether there was one. Its blocks here are still good."""
        return self._coming.pop(row, None) is not None

    def release(self, row: int) -> int:
        """Give `row`'s blocks back, and drop the copies that were to fill them; how many they were."""
        table = self.tables.pop(row, [])
        for block in table:
            self._leaving.pop(block, None)
        self._free.extend(reversed(table))
        return len(table)

    def take_copies(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The planned copies, for a batch to carry: out as (device's block, host block), then in as (host, device's).

        The blocks of those who come back are free from here on, and no copy of this batch may write to them.
        """
        out = [(block, host) for host, block in self._leaving.items()]
        self._leaving.clear()
        back = [pair for row, blocks in self._coming.items() for pair in zip(self.tables[row], blocks, strict=True)]
        for row in self._coming:
            self.release(row)
        self._coming.clear()
        return out, back

    def check_integrity(self) -> None:
        """Raise AssertionError unless each block is free or held by one request, and planned copies go to held ones."""
        held = [block for table in self.tables.values() for block in table]
        assert sorted([*held, *self._free]) == list(range(self.blocks)), "host blocks were lost or given out twice"
        assert self._leaving.keys() <= set(held), "a copy goes to a host block that nobody holds"
        assert self._coming.keys() <= self.tables.keys(), "a copy back is planned of what is not here"

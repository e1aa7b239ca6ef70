"""The paged KV pool: which blocks are free, and which request holds which.

It hands out block numbers and counts; the keys and values themselves live with the executor. It does not know what is
in a block, so it cannot share one between requests.
"""

from __future__ import annotations


class KVPool:
    """`blocks` blocks of `block_size` tokens. A request's table lists its blocks in order of position."""

    def __init__(self, blocks: int, block_size: int) -> None:
        self.blocks = blocks
        self.block_size = block_size
        self.tables: dict[int, list[int]] = {}
        self._free = list(range(blocks - 1, -1, -1))  # a stack: the lowest number comes first, the last freed again

    @property
    def free_blocks(self) -> int:
        return len(self._free)

    @property
    def capacity(self) -> int:
        """Tokens that the whole pool holds."""
        return self.blocks * self.block_size

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold `tokens` tokens."""
        return -(-tokens // self.block_size)

    def grow(self, row: int, tokens: int) -> bool:
        """Let `row`'s table reach `tokens` tokens: all of the blocks that this takes, or none and False."""
        table = self.tables.get(row, ())
        missing = self.blocks_for(tokens) - len(table)
        if missing > len(self._free):
            return False
        if missing > 0:
            self.tables.setdefault(row, []).extend(self._free.pop() for _ in range(missing))
        return True

    def release(self, row: int) -> int:
        """Give all of `row`'s blocks back; how many they were."""
        table = self.tables.pop(row, [])
        self._free.extend(reversed(table))
        return len(table)

    def check_integrity(self) -> None:
        """Raise AssertionError unless each block is free or held by exactly one request."""
        held = [block for table in self.tables.values() for block in table]
        assert sorted(held + self._free) == list(range(self.blocks)), "blocks were lost or given out twice"

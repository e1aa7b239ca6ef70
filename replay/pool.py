"""The paged KV pool: which blocks are free, which requests hold which, and which hold a prefix that others may share.

It hands out block numbers and counts; the keys and values themselves live with the executor. It knows what is in a
block only by name: equal keys mean equal tokens up to and including that block. Prefix caching by hash-chained full
blocks with reference counts is vLLM's (Kwon et al., SOSP 2023, and its automatic prefix caching).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from replay.host_pool import HostPool

Key = int | tuple[int, int]
"""Of a full block: a hash of all tokens to its end; with tokens of an answer in it, a request's row and its index."""


class KVPool:
    """`blocks` blocks of `block_size` tokens, and `host_blocks` more in host memory for requests that are swapped out.

    A request's table lists its blocks in order of position. With `prefix_cache`, a full block that is named may be
    held by several requests, and a free one is found again by its name until it is needed for something else.
    """

    def __init__(self, blocks: int, block_size: int, *, host_blocks: int = 0, prefix_cache: bool = False) -> None:
        self.blocks = blocks
        self.block_size = block_size
        self.prefix_cache = prefix_cache
        self.host = HostPool(host_blocks)
        self.tables: dict[int, list[int]] = {}
        self._references = [0] * blocks
        self._keys: list[Key | None] = [None] * blocks
        self._named: dict[Key, int] = {}
        self._blank = list(range(blocks - 1, -1, -1))  # free, without a name; a stack: the last freed comes first again
        self._cached: OrderedDict[int, None] = OrderedDict()  # free, with a name: the least recently used first

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody holds, those that still have a name included."""
        return len(self._blank) + len(self._cached)

    @property
    def capacity(self) -> int:
        """Tokens that the whole pool holds."""
        return self.blocks * self.block_size

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold `tokens` tokens."""
        return -(-tokens // self.block_size)

    def find(self, keys: Iterable[Key]) -> list[int]:
        """The blocks named by `keys`, in order, up to the first key that no block has."""
        found = []
        for key in keys:
            if (block := self._named.get(key)) is None:
                break
            found.append(block)
        return found

    def held(self, blocks: Iterable[int]) -> int:
        """How many of `blocks` somebody holds: to share them takes none from the free ones."""
        return sum(self._references[block] > 0 for block in blocks)

    def shared(self, row: int) -> bool:
        """Whether others hold some of `row`'s blocks too."""
        return any(self._references[block] > 1 for block in self.tables.get(row, ()))

    def own(self, row: int) -> int:
        """Blocks that nobody but `row` holds."""
        return sum(self._references[block] == 1 for block in self.tables.get(row, ()))

    def grow(self, row: int, tokens: int, shared: Sequence[int] = ()) -> bool:
        """Let `row`'s table reach `tokens` tokens: all of the blocks that this takes, or none and False.

        A table that is new begins with the blocks `shared`, which were found by their names.
        """
        table = self.tables.get(row)
        if table and tokens <= len(table) * self.block_size:
            return True
        missing = self.blocks_for(tokens) - (len(table) if table else len(shared))
        if missing + len(shared) - self.held(shared) > self.free_blocks:
            return False
        if table is None:
            table = self.tables[row] = []
        assert not (table and shared), "only a table that is new begins with shared blocks"
        for block in shared:
            if self._references[block] == 0:
                del self._cached[block]
            self._references[block] += 1
            table.append(block)
        table.extend(self._take() for _ in range(missing))
        return True

    def name(self, row: int, index: int, key: Key) -> None:
        """Block `index` of `row`'s table is full, and is found under `key` from now on, unless another already is."""
        block = self.tables[row][index]
        if self._keys[block] is None and key not in self._named:
            self._keys[block] = key
            self._named[key] = block

    def release(self, row: int, named: int | None = None) -> int:
        """Let go of all of `row`'s blocks, the last first, so that a prefix's tail is reused before its head.

        How many they were; others may hold some of them on. Its first `named` blocks keep their names, all unless told;
        the others lose them, so that they are reused before any that somebody may look for.
        """
        table = self.tables.pop(row, [])
        for block in () if named is None else table[named:]:
            self._forget(block)
        for block in reversed(table):
            self._references[block] -= 1
            if self._references[block] == 0:
                if self._keys[block] is None:
                    self._blank.append(block)
                else:
                    self._cached[block] = None
        return len(table)

    def writable(self, row: int, start: int, end: int) -> bool:
        """Whether positions `start` to `end` (not included) of `row` lie in blocks of its own, and without a name."""
        for block in self.tables[row][start // self.block_size : -(-end // self.block_size)]:
            if self._references[block] != 1 or self._keys[block] is not None:
                return False
        return True

    def check_integrity(self) -> None:
        """Raise AssertionError unless each block is free, or held as often as tables list it, and names are unique."""
        held = Counter(block for table in self.tables.values() for block in table)
        free = [*self._blank, *self._cached]
        assert sorted([*held, *free]) == list(range(self.blocks)), "blocks were lost or given out twice"
        assert [held[block] for block in range(self.blocks)] == self._references, "references were miscounted"
        assert all(len(set(table)) == len(table) for table in self.tables.values()), "a table lists a block twice"
        named = {key: block for block, key in enumerate(self._keys) if key is not None}
        assert named == self._named, "a name leads to another block, or to none"
        assert all(self._keys[block] is None for block in self._blank), "a blank block has a name"
        assert all(self._keys[block] is not None for block in self._cached), "a cached block has none"
        self.host.check_integrity()

    def _take(self) -> int:
        """A free block: one without a name as long as there is one, else the one unused for longest, which loses it."""
        if self._blank:
            block = self._blank.pop()
        else:
            block, _ = self._cached.popitem(last=False)
            self._forget(block)
        self._references[block] = 1
        return block

    def _forget(self, block: int) -> None:
        """Take its name, if it has one, off a block."""
        key = self._keys[block]
        if key is not None:
            del self._named[key]
            self._keys[block] = None

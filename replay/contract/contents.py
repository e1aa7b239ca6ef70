"""What a model would find in its blocks: a stand-in for keys and values that shows at once when a block is wrong.

The content of a position follows from all tokens up to it, and is worked out from the content that is *read* at the
position before. So an answer comes out right only if every block that was shared, copied or computed again was right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replay.executors.interface import Batch, Share

PRIME = 2_147_483_647


def mix(content: int, token: int) -> int:
    """The content of a position, from the content before it and its token."""
    return (content * 1_000_003 + token + 1) % PRIME


def answer(prompt: Sequence[int], tokens: int) -> list[int]:
    """What a request answers that has the engine to itself."""
    content, answered = 0, []
    for token in prompt:
        content = mix(content, token)
    for _ in range(tokens):
        answered.append(content % 1000)
        content = mix(content, answered[-1])
    return answered


class Contents:
    """The blocks of a pool and of host memory, and the answers so far; `prompts` are token ids by row."""

    def __init__(self, blocks: int, host_blocks: int, block_size: int, prompts: Mapping[int, Sequence[int]]) -> None:
        self._size = block_size
        self._prompts = prompts
        self._device: list[list[int | None]] = [[None] * block_size for _ in range(blocks)]
        self._host: list[list[int | None]] = [[None] * block_size for _ in range(host_blocks)]
        self.answers: dict[int, list[int]] = {row: [] for row in prompts}
        self.computed = 0

    def compute(self, batch: Batch) -> None:
        """Carry the copies of a step out, then compute it."""
        for block, host in batch.swap_out:
            self._host[host] = list(self._device[block])
        for host, block in batch.swap_in:
            self._device[block] = list(self._host[host])
        written = [block for share in batch.shares for block in self._written(share)]
        assert len(set(written)) == len(written), "two requests write into one block"
        for share in batch.shares:
            assert not set(written) & set(share.blocks[: share.start // self._size]), "a block is read and written"
        for share in batch.shares:
            self._compute(share)

    def _written(self, share: Share) -> Sequence[int]:
        end = share.start + share.tokens
        return share.blocks[share.start // self._size : -(-end // self._size)]

    def _compute(self, share: Share) -> None:
        row = share.request.row
        ids = [*self._prompts[row], *self.answers[row]]
        content = 0
        for position in range(share.start):
            content = mix(content, ids[position])
            found = self._device[share.blocks[position // self._size]][position % self._size]
            assert found == content, f"position {position} of row {row} is not what it should be"
        for position in range(share.start, share.start + share.tokens):
            content = mix(content, ids[position])
            self._device[share.blocks[position // self._size]][position % self._size] = content
        self.computed += share.tokens
        if share.samples:
            assert share.start + share.tokens == len(ids), "a token is sampled after the last known one"
            self.answers[row].append(content % 1000)

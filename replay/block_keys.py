"""Names for the full KV blocks of prompts, so that equal prefixes are found whoever asked for them.

A block's key is a hash of its token ids and of the key of the block before it: equal keys mean that all tokens up to
there are equal. It is worked out before the clock starts, and does not know what a pool holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from replay.executors.interface import TokenIds
from replay.request import Request

DIGEST = 16  # bytes: with 2**32 blocks, two that differ have the same key with a chance of 2**-65


def name_blocks(requests: Iterable[Request], prompts: Sequence[TokenIds], block_size: int) -> None:
    """Set `block_keys` of each request from the ids of its prompt; an executor prepared `prompts`, by row."""
    for request in requests:
        request.block_keys = chain(prompts[request.row], block_size)


def chain(ids: TokenIds, block_size: int) -> list[int]:
    """The keys of the full blocks of `block_size` tokens of a prompt: int32 ids, [tokens]."""
    keys, key = [], b""
    content = memoryview(ids.astype("<i4", copy=False).tobytes())
    width = 4 * block_size
    for start in range(0, len(content) - width + 1, width):
        digest = hashlib.blake2b(key, digest_size=DIGEST)
        digest.update(content[start : start + width])
        key = digest.digest()
        keys.append(int.from_bytes(key, "little"))
    return keys

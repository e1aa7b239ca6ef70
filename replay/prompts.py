"""The token ids of each request's prompt: real ones where the trace has them, otherwise drawn from a seed.

Drawn ids keep what the trace says of shared prefixes: a block's ids follow from its hash alone, so two requests with
equal hashes have equal ids there, and a cache of prefixes finds them. It knows no tokenizer and no model; a caller
that has them hands in the size of the vocabulary and a function from text to ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from replay.errors import TraceError
from replay.request import Request, Workload

Tokenize = Callable[[str], Sequence[int]]
Words = NDArray[np.uint64]  # 64-bit words, on which arithmetic wraps around

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)
_LOW_BITS = (1 << 64) - 1


def draw_prompts(
    workload: Workload,
    vocabulary: int,
    seed: int,
    *,
    special: Collection[int] = (),
    tokenize: Tokenize | None = None,
) -> list[NDArray[np.int32]]:
    """The prompt of each request of `workload`, by row: int32 arrays of at most `prompt_tokens` ids.

    Drawn prompts have exactly `prompt_tokens` ids, none of them `special`. Real content is cut at `prompt_tokens`, and
    is shorter where the trace holds less than it says. Text is drawn like a prompt without content when there is no
    `tokenize`. Raises TraceError for real ids outside the vocabulary, and for content without a single token.
    """
    ordinary = np.setdiff1d(np.arange(vocabulary, dtype=np.int32), np.fromiter(special, np.int32, len(special)))
    if not len(ordinary):
        raise ValueError(f"a vocabulary of {vocabulary} tokens without {len(special)} special ones leaves none to draw")
    prompts = []
    for request in workload.requests:
        content = workload.prompts.get(request.row)
        if isinstance(content, str):
            content = None if tokenize is None else tokenize(content)
        if content is None:
            prompts.append(ordinary[_draw(workload, request, seed) % np.uint64(len(ordinary))])
        else:
            prompts.append(_real(request, content, vocabulary))
    return prompts


def _real(request: Request, content: Sequence[int], vocabulary: int) -> NDArray[np.int32]:
    ids = np.asarray(content[: request.prompt_tokens], dtype=np.int64)
    if not len(ids):
        raise TraceError(f"row {request.row}: the prompt has no tokens; each request needs at least one")
    wrong = ids[(ids < 0) | (ids >= vocabulary)]
    if len(wrong):
        raise TraceError(
            f"row {request.row}: token id {wrong[0]} of its prompt is not in the model's vocabulary of {vocabulary}"
        )
    return ids.astype(np.int32)


def _draw(workload: Workload, request: Request, seed: int) -> Words:
    """`prompt_tokens` words: word i of a block from the block's key and i, those of the tail from the row's."""
    tokens = request.prompt_tokens
    width = workload.hash_block
    hashes = request.prefix_hashes if width else ()
    words = np.empty(tokens, dtype=np.uint64)
    hashed = min(tokens, len(hashes) * (width or 0))
    if width and hashed:
        scope = _scope(workload, request)
        blocks = np.array([value & _LOW_BITS for value in hashes[: -(-hashed // width)]], dtype=np.uint64)
        keys = _mix(_mix(blocks) ^ _key(seed, "block", scope))
        words[:hashed] = _words(keys[:, None], width).reshape(-1)[:hashed]
    if hashed < tokens:
        words[hashed:] = _words(_key(seed, "tail", str(request.row)), tokens - hashed)
    return words


def _scope(workload: Workload, request: Request) -> str:
    """Within what equal hashes mean equal prefixes: everywhere, or in a session, which may be one request alone."""
    if workload.hash_scope == "global":
        return "global"
    return f"request {request.row}" if request.session is None else f"session {request.session}"


def _key(seed: int, *parts: str) -> np.uint64:
    """A word from a seed and text: the same on every machine and in every process, unlike `hash`."""
    digest = hashlib.blake2b("\0".join((str(seed), *parts)).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _words(keys: Words | np.uint64, count: int) -> Words:
    """`count` words for each key: splitmix64 started at the key."""
    with np.errstate(over="ignore"):
        return _mix(keys + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN)


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64: each bit of the result depends on each bit of the word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))

"""How many tokens a text has, by a tokenizer or by an estimate, and which beginnings texts share, block by block.

It knows no format. By a tokenizer a text is its ids; by the estimate its characters, so many of which are a token.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from replay.errors import ExperimentError

Units = str | list[int]


@dataclass(frozen=True, slots=True)
class Counting:
    """A way to count tokens: `encode` makes units of text, `units` of which are a token."""

    encode: Callable[[str], Units]
    units: float
    said: str

    def tokens(self, units: Units) -> int:
        """How many tokens these units are; a begun one counts."""
        return math.ceil(len(units) / self.units)

    def hashes(self, units: Units, block_size: int) -> list[int]:
        """A hash for each whole block: equal ones where all is equal up to the block's end."""
        found, digest, before = [], hashlib.blake2b(digest_size=8), 0
        for block in range(1, int(len(units) / (block_size * self.units)) + 1):
            end = math.floor(block * block_size * self.units)
            digest.update(content(units[before:end]))
            found.append(int.from_bytes(digest.copy().digest(), "little", signed=True))
            before = end
        return found


def content(units: Sequence[Any]) -> bytes:
    """What is hashed of some units."""
    return units.encode("utf-8", "surrogatepass") if isinstance(units, str) else np.asarray(units, np.int64).tobytes()


def joined(parts: Sequence[Units]) -> Units:
    """The units of texts that follow each other."""
    if parts and isinstance(parts[0], str):
        return "".join(str(part) for part in parts)
    return [unit for part in parts for unit in part if isinstance(unit, int)]


def counting(tokenizer: str | None, characters_per_token: float) -> Counting:
    """The way that the settings say: a tokenizer's folder or name, or else an estimate. Raises `ExperimentError`."""
    if tokenizer is None:
        said = f"tokens are an estimate, of {characters_per_token:g} characters each; a tokenizer counts them"
        return Counting(lambda text: text, characters_per_token, said)
    encode = load(tokenizer)
    return Counting(encode, 1.0, f"tokens are counted by the tokenizer {Path(tokenizer).name}")


def load(name: str) -> Callable[[str], list[int]]:
    """The ids of a text by a tokenizer, without those that mark beginning and end."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError, KeyError) as fault:
        reason = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
        raise ExperimentError(f"tokenizer: {name} is no folder or model with one that is here ({reason})") from fault
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False, verbose=False))

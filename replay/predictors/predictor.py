"""What a length predictor is, and the registry of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

from replay.registry import Registry
from replay.request import Request

Knows = Literal["all", "part", "nothing"]
"""How much of the true lengths of answers that are not finished."""


class Predictor(Protocol):
    """Expected output tokens of a request. A predictor is a dataclass: its fields are the options."""

    knows: ClassVar[Knows]

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        """A cell begins; `output_tokens[row]` is the truth, to use only as the predictor's name says.

        Chance comes from `seed` alone, and is drawn here, so that the order of asking changes nothing.
        """

    def expect(self, request: Request) -> float:
        """Output tokens, those generated included."""

    def observe(self, request: Request) -> None:
        """A request was completed with `request.generated` tokens."""


predictors: Registry[type[Predictor]] = Registry("length predictor")

"""A reader of a streamed answer: how good it was to read, from 0 to 1, and what further tokens would add.

It knows one pace and one patience; traces say nothing of either. What a replay's readers went through is not for here
but for the metrics, which have every token's instant: this is what a policy can reckon with in the middle of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from replay.request import Request


@dataclass(slots=True, frozen=True)
class Reader:
    """Reads `per_s` tokens in a second, from `patience_s` seconds after the request was due."""

    per_s: float
    patience_s: float

    def expects(self, request: Request, at: float) -> float:
        """Tokens that the reader would have read by then, if there were always some to read."""
        return self.per_s * max(0.0, at - request.due - self.patience_s)

    def experience(self, expected: float, delivered: float) -> float:
        """1 - delay / whole: the area between what could be read and what was, over that under what could be read.

        What was delivered is taken to have been read at the reader's pace, and then nothing: both areas are triangles.
        """
        return 1.0 - (max(0.0, expected - delivered) / expected) ** 2 if expected > 0 else 1.0

    def gain(self, request: Request, at: float, more: float) -> float:
        """What `more` tokens until then add to the experience, over none: 0 to 1."""
        expected = self.expects(request, at)
        return self.experience(expected, request.generated + more) - self.experience(expected, request.generated)

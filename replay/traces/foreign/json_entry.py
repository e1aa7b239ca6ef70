"""One JSON object of other people and what it is asked for: numbers, times, texts, lists, by the names of its fields.

It knows no format. A number with a fraction keeps every digit that is written, and a value that is none is refused
with its file and row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from replay.errors import TraceError
from replay.traces.faults import place_text, quoted
from replay.traces.foreign.delimited import UNITS
from replay.traces.wording import listed

LARGEST = 2**63 - 1
HASHED = 1 << 24  # tokens
HUGE = 300  # digits before the point, of what no 64 bits hold anyway


@dataclass(frozen=True, slots=True)
class Entry:
    """One object and where it stands. Each question takes a field's names, of which the first that is given counts;
    an absent field and a null are the same."""

    file: Path
    row: int
    fields: dict[str, Any]

    def given(self, *names: str) -> tuple[str, Any]:
        """The first of these fields that the object has, and its value; None if it has none of them."""
        return next(
            ((name, self.fields[name]) for name in names if self.fields.get(name) is not None), (names[0], None)
        )

    def wrong(self, name: str, value: object, right: str) -> TraceError:
        """The sentence for a value that is none."""
        shown = f"{value:.60}" if isinstance(value, Decimal) else quoted(value)
        return TraceError(f"{place_text(self.file, self.row, name)}: {shown}, but must be {right}")

    def whole(self, *names: str) -> int | None:
        """A whole number of 64 bits."""
        name, value = self.given(*names)
        if value is not None and not is_whole(value):
            raise self.wrong(name, value, "a whole number")
        return None if value is None else int(value)

    def hashed(self, *names: str) -> int | None:
        """A number of tokens, few enough that a hash can be made for each of their blocks."""
        tokens = self.whole(*names)
        if tokens is not None and tokens > HASHED:
            raise self.wrong(self.given(*names)[0], tokens, f"at most {HASHED:,}: hashes are made of its blocks")
        return tokens

    def number(self, *names: str) -> Decimal | None:
        """A number, digit by digit."""
        name, value = self.given(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
            raise self.wrong(name, value, "a number")
        if Decimal(value).adjusted() >= HUGE:
            raise self.wrong(name, value, f"a number of less than {HUGE} digits")
        return Decimal(value)

    def span(self, unit: str, *names: str) -> int | None:
        """Whole nanoseconds, of a number of `unit`."""
        number = self.number(*names)
        if number is None:
            return None
        nanoseconds = round(number * UNITS[unit])
        if abs(nanoseconds) > LARGEST:
            raise self.wrong(self.given(*names)[0], number, f"within 292 years, as a number of {unit}")
        return nanoseconds

    def text(self, *names: str) -> str | None:
        """Text; a whole number is text, too."""
        name, value = self.given(*names)
        if value is not None and not isinstance(value, str) and not is_whole(value):
            raise self.wrong(name, value, "text")
        if isinstance(value, str) and not is_text(value):
            raise self.wrong(name, value, "text in UTF-8")
        return None if value is None else str(value)

    def wholes(self, *names: str) -> list[int] | None:
        """A list of whole numbers; of those of 64 bits without a sign, the large ones become negative."""
        name, value = self.given(*names)
        if value is None:
            return None
        if not isinstance(value, list) or not all(
            isinstance(item, int) and not isinstance(item, bool) for item in value
        ):
            raise self.wrong(name, value, "a list of whole numbers")
        return [signed(item) for item in value]

    def texts(self, *names: str) -> list[str]:
        """A list of texts; none is an empty one."""
        name, value = self.given(*names)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise self.wrong(name, value, "a list of texts")
        return value or []

    def objects(self, *names: str) -> list[dict[str, Any]]:
        """A list of objects; none is an empty one."""
        name, value = self.given(*names)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
            raise self.wrong(name, value, "a list of objects")
        return value or []

    def inner(self, *names: str) -> Entry:
        """The object that a field is; none is an empty one."""
        name, value = self.given(*names)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(name, value, "an object")
        return Entry(self.file, self.row, value or {})


def is_whole(value: object) -> bool:
    """Whether a JSON value is a whole number of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST - 1 <= value <= LARGEST


def is_text(value: str) -> bool:
    """Whether it is text that a file can hold: JSON may name halves of characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def signed(value: int) -> int:
    """The same 64 bits, read with a sign."""
    return (value + 2**63) % 2**64 - 2**63


def fields_left_out(names: Iterable[str], known: Collection[str] = ()) -> list[str]:
    """The note on fields that nobody asks for, in the order given; none if all are `known`."""
    strange = [name for name in names if name not in known]
    return [f"fields left out: {listed(strange, None)}"] if strange else []

"""How numbers are written for people: milliseconds, thousands, a dash for what is not defined."""

from __future__ import annotations

UNDEFINED = "–"  # noqa: RUF001  # a dash, not a minus: nothing is there
MINUS = "−"  # noqa: RUF001  # a true minus


def number(value: float | None, digits: int = 3) -> str:
    """About `digits` significant digits, thousands separated."""
    if value is None:
        return UNDEFINED
    size, decimals = abs(value), digits - 1
    while size >= 10 and decimals > 0:
        size, decimals = size / 10, decimals - 1
    return f"{value:,.{decimals}f}"


def signed(value: float, digits: int = 3) -> str:
    """With a true minus, and none before a zero."""
    text = number(value, digits)
    return text.replace("-", "" if not text.strip("-0.,") else MINUS)


def change(share: float) -> str:
    """A relative difference: `+12 %`."""
    return f"{100 * share:+.0f} %".replace("-", MINUS)


def milliseconds(seconds: float | None) -> str:
    """Seconds as milliseconds, without the unit."""
    return number(None if seconds is None else seconds * 1000)


def duration(seconds: float | None) -> str:
    """With its unit: milliseconds below one second."""
    if seconds is None:
        return UNDEFINED
    return f"{number(seconds * 1000)} ms" if abs(seconds) < 1 else f"{number(seconds)} s"


def percent(share: float | None) -> str:
    return UNDEFINED if share is None else f"{share * 100:.1f}".removesuffix(".0") + " %"


def whole(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:,.0f}"


def plural(count: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def enumerate_words(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def span(low: float, high: float) -> str:
    """An interval of seconds, both ends in one unit."""
    if max(abs(low), abs(high)) < 1:
        return f"{number(low * 1000)} to {number(high * 1000)} ms"
    return f"{number(low)} to {number(high)} s"

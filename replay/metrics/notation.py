"""How numbers are written for people: milliseconds, thousands, a dash for what is not defined."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

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


def scaled(value: float | None, unit: str) -> str:
    """With the prefix that keeps it short: `55.3 GFLOP/s`, `538 MB`."""
    if value is None:
        return UNDEFINED
    prefixes = ["", "k", "M", "G", "T", "P"]
    while abs(value) >= 1000 and len(prefixes) > 1:
        value, prefixes = value / 1000, prefixes[1:]
    return f"{number(value)} {prefixes[0]}{unit}"


def price(value: float | None) -> str:
    """Three significant digits, however small, in whatever money it was given."""
    if value is None:
        return UNDEFINED
    return number(value) if value >= 1 else f"{value:.3g}"


def whole(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:,.0f}"


def plural(count: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def enumerate_words(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def several(words: list[str], most: int = 6) -> str:
    """`a, b, c, d, e and 8 more`: of many, the first."""
    return enumerate_words(words if len(words) <= most else [*words[: most - 1], f"{len(words) - most + 1} more"])


def span(low: float, high: float) -> str:
    """An interval of seconds, both ends in one unit."""
    if max(abs(low), abs(high)) < 1:
        return f"{number(low * 1000)} to {number(high * 1000)} ms"
    return f"{number(low)} to {number(high)} s"


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 2) -> str:
    """Plain text in columns, for a terminal: a Chinese character takes two."""
    widths = [max(cell_len(line[place]) for line in (heads, *rows)) for place in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
        padded = (
            cell + blank if place < words else blank + cell
            for place, (cell, blank) in enumerate(zip(cells, blanks, strict=True))
        )
        return "  ".join(padded).rstrip()

    return "\n".join(line(cells) for cells in (heads, *rows))


def named(name: str, most: int = 40) -> str:
    """A name from a trace as a label: on one line, cut in its middle where it is long, in quotes where it is blank."""
    flat = "".join(letter if letter.isprintable() else " " for letter in name)
    if not flat.strip():
        return f'"{flat[:most]}"'
    return flat if len(flat) <= most else f"{flat[: most // 2]}…{flat[-(most // 2) + 1 :]}"

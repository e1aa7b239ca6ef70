"""What the pictures of a trace say alike: shares, numbers and names as people read them, and what has which colour."""

from __future__ import annotations

PROMPT, OUTPUT, REQUESTS, POISSON = "#0173B2", "#DE8F05", "#3D348B", "#C23B22"
LONGEST_NAME = 34


def share_text(share: float) -> str:
    """A share of 1 in per cent, closer where it is small or nearly all: `12 %`, `0.3 %`, `0.012 %`, `99.7 %`."""
    percent = 100 * share
    if percent in (0, 100):
        return f"{percent:.0f} %"
    if percent < 0.095:
        return f"{float(f'{percent:.2g}'):.10f}".rstrip("0") + " %"
    if percent > 99.95:
        return "over 99.9 %"
    return f"{percent:.1f} %" if percent < 9.95 or percent >= 98.95 else f"{percent:.0f} %"


def percent_tick(share: float, _: object = None) -> str:
    """A tick of an axis of shares."""
    return f"{100 * share:.4g} %"


def number_text(number: float) -> str:
    """Three figures, whole from a hundred on: `0.0123`, `5.1`, `928`, `1,204,000`, `1.2 million`."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if abs(number) >= size:
            return f"{float(f'{number / size:.3g}'):,.10g} {word}"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def tick_text(number: float, _: object = None) -> str:
    """A tick of an axis: `1e-5`, `0.5`, `1,000`, `2M`, `1.5G`."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(number) >= size:
            return f"{number / size:,.6g}{letter}"
    return f"{number:,.6g}".replace("e-0", "e-")


def name_text(name: str) -> str:
    """A name on one line, and its middle left out where it is long; what cannot be printed is a question mark."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in name) or '""'
    if len(printable) <= LONGEST_NAME:
        return printable
    half = (LONGEST_NAME - 1) // 2
    return f"{printable[:half]}…{printable[-half:]}"

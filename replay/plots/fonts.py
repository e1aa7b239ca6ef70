"""The fonts of pictures: DejaVu Sans, which comes with matplotlib, and what the machine has for letters it lacks.

A picture without such letters is the same everywhere, as no other font is asked then. matplotlib draws no font of
coloured bitmaps, so emoji need one of outlines.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from matplotlib.font_manager import findSystemFonts, fontManager

PLAIN = "DejaVu Sans"
CHINESE = (
    *("Noto Sans CJK TC", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans TC", "Noto Sans SC", "Noto Sans JP"),
    *("Source Han Sans TC", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("PingFang TC", "Hiragino Sans", "Arial Unicode MS", "Microsoft JhengHei", "Microsoft YaHei", "Yu Gothic"),
)
FALLBACKS = (
    CHINESE,
    ("Apple SD Gothic Neo", "Malgun Gothic"),
    ("Noto Emoji", "Symbola", "Segoe UI Emoji"),
    ("Unifont",),
)
"""Of each group the first that is there is used: all of a group know much the same letters."""
FILES = ("NotoSansCJK", "NotoSansTC", "NotoSansSC", "NotoSansJP", "NotoEmoji", "SourceHanSans", "wqy-", "Symbola")
"""How their files begin: matplotlib keeps a list of fonts for ever, and may not know those that came later."""


@cache
def families() -> list[str]:
    """Names for matplotlib's `font.family`: a glyph is looked for in each, in this order."""
    listed = {Path(entry.fname).name for entry in fontManager.ttflist}
    for file in sorted(findSystemFonts()):
        name = Path(file).name
        if name.startswith(FILES) and name not in listed:
            with suppress(Exception):  # a font that cannot be read is one that is not there
                fontManager.addfont(file)
    known = set(fontManager.get_font_names())
    groups = [[name for name in group if name in known] for group in FALLBACKS]
    return [PLAIN, *(group[0] for group in groups if group)]

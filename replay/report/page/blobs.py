"""What lies packed in the page until it is needed: text as gzip in base64, which every browser unpacks by itself."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any


def packed(text: str, level: int = 9) -> str:
    """The same text gives the same letters: no time and no name is in them."""
    return b64encode(gzip.compress(text.encode(), compresslevel=level, mtime=0)).decode("ascii")


def packed_json(content: Any, level: int = 9) -> str:
    """ValueError where a number is not finite: strict JSON has none."""
    return packed(json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":")), level)


def inline_json(content: Any) -> str:
    """JSON that may stand within a script element: nothing in it can end the element."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")

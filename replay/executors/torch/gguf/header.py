"""What a GGUF file says of itself before its numbers begin: architecture, licence, parts, names of tensors.

The format is llama.cpp's (ggml, docs/gguf.md), versions 2 and 3, little-endian. It reads single values and skips
arrays, so that a vocabulary costs next to nothing; what is in a tensor is for whoever loads the model.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from replay.errors import EngineError

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9

Value = str | int | float | bool


@dataclass(slots=True, frozen=True)
class Header:
    """The single values of a header, by key, and the names of the tensors that follow."""

    values: dict[str, Value]
    tensors: list[str]


def read_header(file: Path) -> Header:
    """The header of a GGUF file. Raises EngineError for a file that cannot be read or is no such file."""
    try:
        with file.open("rb") as stream:
            return _read(file, stream)
    except OSError as fault:
        raise EngineError(f"{file}: cannot be read ({fault.strerror})") from fault
    except (struct.error, KeyError, UnicodeDecodeError) as fault:
        raise EngineError(f"{file}: its GGUF header ends early or makes no sense; was it copied whole?") from fault


def _read(file: Path, stream: BinaryIO) -> Header:
    if stream.read(4) != b"GGUF":
        raise EngineError(f"{file}: is no GGUF file: it does not begin with the four letters GGUF")
    version = _number(stream, "I")
    if version not in (2, 3):
        raise EngineError(f"{file}: is a GGUF file of version {version} or of another byte order; 2 and 3 are read")
    tensors, keys = _integer(stream, "Q"), _integer(stream, "Q")
    values: dict[str, Value] = {}
    for _ in range(keys):
        key = _string(stream)
        value = _value(stream, _integer(stream, "I"))
        if value is not None:
            values[key] = value
    return Header(values, [_tensor(stream) for _ in range(tensors)])


def _tensor(stream: BinaryIO) -> str:
    """The name of a tensor; its dimensions, type and place are read over."""
    name = _string(stream)
    stream.seek(8 * _integer(stream, "I") + 4 + 8, 1)
    return name


def _value(stream: BinaryIO, kind: int) -> Value | None:
    """A value of this type; None for an array, which is read over."""
    if kind == STRING:
        return _string(stream)
    if kind != ARRAY:
        return _number(stream, NUMBERS[kind])
    kind, length = _integer(stream, "I"), _integer(stream, "Q")
    if kind in NUMBERS:
        stream.seek(length * struct.calcsize(NUMBERS[kind]), 1)
    else:
        for _ in range(length):
            _value(stream, kind)
    return None


def _string(stream: BinaryIO) -> str:
    return stream.read(_integer(stream, "Q")).decode()


def _integer(stream: BinaryIO, form: str) -> int:
    return int(_number(stream, form))


def _number(stream: BinaryIO, form: str) -> int | float | bool:
    size = struct.calcsize("<" + form)
    value: int | float | bool = struct.unpack("<" + form, stream.read(size))[0]
    return value

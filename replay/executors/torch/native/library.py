"""The compiled code for CPUs: built from the C++ beside it at first use, kept in the user's cache, and loaded.

An installation without a compiler has none, and is told why. It knows compilers and files, and nothing of attention.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

FOLDER = Path(__file__).with_name("cpp")
SOURCES = ("attention.cpp", "decoder.cpp", "linear.cpp", "operations.cpp", "vectors.h")
COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-O3", "-march=native", "-fPIC", "-fno-exceptions", "-fno-rtti")
PATIENCE = 120  # seconds for a compiler; it needs about three

_POINTER, _INTEGER, _DISTANCE, _NUMBER = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_float


class Native:
    """The functions of a library built from `SOURCES`; `threaded` where it shares PyTorch's OpenMP threads.

    `half` says whether it reads and writes pools of float16.
    """

    def __init__(self, path: Path, *, threaded: bool) -> None:
        library = ctypes.CDLL(str(path))
        self.threaded = threaded
        self.half = bool(library.replay_has_half())
        strided = (_POINTER, _DISTANCE)
        self.prepare = library.replay_prepare
        self.prepare.argtypes = [_POINTER]
        self.attend = library.replay_attend
        self.attend.argtypes = [_POINTER, *strided * 3, *(_POINTER,) * 2, _NUMBER, *(_POINTER,) * 3]
        self.rms_norm = library.replay_rms_norm
        self.rms_norm.argtypes = [*(_POINTER,) * 3, _NUMBER, _DISTANCE, _DISTANCE, _INTEGER, _POINTER]
        self.silu_mul = library.replay_silu_mul
        self.silu_mul.argtypes = [_POINTER, _DISTANCE, _DISTANCE, _INTEGER, _POINTER]
        self.largest = library.replay_largest
        self.largest.argtypes = [_POINTER, _DISTANCE, _DISTANCE, _INTEGER, _POINTER]
        self.pack = library.replay_pack
        self.pack.argtypes = [_POINTER, _DISTANCE, _DISTANCE, _INTEGER, _POINTER]
        self.linear = library.replay_linear
        self.linear.argtypes = [*(_POINTER,) * 3, *(_DISTANCE,) * 3, _INTEGER, _INTEGER, _POINTER]
        self.decode = library.replay_decode
        self.decode.argtypes = [*(_POINTER,) * 4, _DISTANCE, *(_POINTER,) * 4]
        for function in (
            self.decode,
            self.prepare,
            self.attend,
            self.rms_norm,
            self.silu_mul,
            self.largest,
            self.pack,
            self.linear,
        ):
            function.restype = None
        self.packed_size = library.replay_packed_size
        self.packed_size.argtypes = [_DISTANCE, _DISTANCE]
        self.packed_size.restype = _DISTANCE


@cache
def load() -> tuple[Native | None, str]:
    """The compiled code, built if it is not in the cache yet; None where there is none, and why in a few words."""
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        return None, f"no C++ compiler ({', '.join(COMPILERS)})"
    runtime = _openmp()
    sources = [(FOLDER / name).read_text() for name in SOURCES]
    recipe = "\0".join((*sources, *FLAGS, compiler, str(runtime), _processor()))
    path = _cache_folder() / f"native-{hashlib.sha256(recipe.encode()).hexdigest()[:20]}.so"
    try:
        if not path.exists():
            _build(compiler, runtime, path)
        return Native(path, threaded=runtime is not None), "compiled" if runtime else "compiled, one thread"
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or "").strip().splitlines() or ["it does not say why"]
        reason = next((line for line in lines if "error" in line), lines[0])
        return None, f"{Path(compiler).name} refuses it: {reason}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"it could not be built in {path.parent}: {error}"


def _build(compiler: str, runtime: Path | None, path: Path) -> None:
    """Compile and link beside `path`, then put the library there at once, as another process may be doing the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        code = [str(FOLDER / name) for name in SOURCES if name.endswith(".cpp")]
        compiling = [compiler, *FLAGS, *(["-fopenmp"] if runtime else []), "-c", *code]
        # The runtime is named by its file: -fopenmp here would link another one, with threads of its own.
        objects = [Path(name).with_suffix(".o").name for name in code]
        linking = [compiler, "-shared", *objects, *([str(runtime)] if runtime else []), "-o", "native.so"]
        for command in (compiling, linking):
            subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=PATIENCE)
        (Path(folder) / "native.so").replace(path)


def _openmp() -> Path | None:
    """The OpenMP runtime that PyTorch has loaded, if it is one whose threads compiled code can share."""
    torch.get_num_threads()
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    found: list[str] = re.findall(r"\S*/lib[gi]?omp[^/\s]*\.so\S*$", maps, re.MULTILINE)
    found.sort(key=lambda name: "/torch" not in name)  # other packages bring theirs
    return Path(found[0]) if found else None


def _processor() -> str:
    """What tells processors with other instructions apart: a cache may lie in a home that machines share."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(
        sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    )


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "replay"

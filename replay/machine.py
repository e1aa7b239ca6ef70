"""What this machine is, and which versions run on it: what a measured figure needs beside it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from replay import __version__

PACKAGES = ("torch", "transformers", "polars", "pyarrow", "numpy", "seaborn", "matplotlib", "pydantic", "click")


def versions() -> dict[str, str | None]:
    """Versions of replay, Python and what a result depends on; None for a package that is not installed."""
    found: dict[str, str | None] = {"replay": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def hardware() -> dict[str, object]:
    """Processor, cores that this process may use, memory in GiB, operating system. The engine names its own device."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _proc_value("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": usable,
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _memory_gib() -> float | None:
    total = _proc_value("/proc/meminfo", "MemTotal")
    return round(int(total.split()[0]) / 2**20, 1) if total else None


def _proc_value(file: str, name: str) -> str | None:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)

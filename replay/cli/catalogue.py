"""The policies that come with replay, registered by importing their package, as only the command line may."""

from __future__ import annotations

import traceback
from pathlib import Path

from replay.errors import ExperimentError


def register_policies() -> None:
    """Import the package `policies`.

    Raises ExperimentError when a file of it cannot be imported, naming file and line, and when it registers nothing.
    """
    from replay.scheduler import policies

    try:
        import policies as package
    except Exception as fault:
        raise ExperimentError(_where(fault)) from fault

    if not len(policies):
        places = ", ".join(getattr(package, "__path__", [str(package.__file__)]))
        raise ExperimentError(
            f"{places}: this package `policies` registers no policy; it hides the one that came with replay"
        )


def _where(fault: Exception) -> str:
    """`policies/mine.py, line 3: name 'policy' is not defined`: of the frames, the last in the package counts."""
    if isinstance(fault, SyntaxError):
        return f"{fault.filename}, line {fault.lineno}: {fault.msg}"
    frames = traceback.extract_tb(fault.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).parent.name == "policies"]
    place = own[-1] if own else frames[-1]
    return f"{place.filename}, line {place.lineno}: {fault}"

"""Pictures of a trace by name: functions from a trace to a figure, or to the reason why there is none. A name is also
that of the picture's file."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from replay.registry import Registry
from replay.traces.table import Trace

Picture = Callable[[Trace], Figure | str]
trace_pictures: Registry[Picture] = Registry("picture")

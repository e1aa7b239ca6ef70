"""Plots by name. A plot is a function from a view to a figure, or to None where it has nothing to say; its name is its
file's."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from replay.plots.view import View
from replay.registry import Registry

Plot = Callable[[View], Figure | None]
plots: Registry[Plot] = Registry("plot")

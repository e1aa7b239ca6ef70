"""Several runs side by side, cell by cell: what one did to every figure of another, and checks that may fail.

It reads the folders of runs, as the report does, and writes nothing.
"""

from replay.compare.checks import Outcome, judge
from replay.compare.comparison import Comparison, compare_runs
from replay.compare.expression import Check, read_check
from replay.compare.figures import Figure, find_figure

__all__ = ["Check", "Comparison", "Figure", "Outcome", "compare_runs", "find_figure", "judge", "read_check"]

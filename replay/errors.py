"""The few exceptions that mean "the user can mend this": each message is one sentence for the terminal.

A bug in `replay` itself never raises one of these; it shows its traceback.
"""

from __future__ import annotations


class ReplayError(Exception):
    """The base: what went wrong, where, and what would be right. `exit_status` is what the process ends with."""

    exit_status = 1


class ExperimentError(ReplayError):
    """What was typed is wrong: an experiment file, an option, an unknown name."""

    exit_status = 2


class TraceError(ReplayError):
    """A trace file cannot be read, or holds what cannot be replayed."""


class OutputError(ReplayError):
    """A place for results that cannot be used: taken, not writable, not a folder."""


class EngineError(ReplayError):
    """An engine that cannot be built or cannot go on: no such model, no memory, a policy that makes no progress."""

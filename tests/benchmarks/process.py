"""The driver's side of the talk with a peer: start it, wait until it is ready, let it run one job at a time.

A peer that has nothing to do is stopped by a signal, all its threads and children with it, so that none of them spins
on a core that another is measured on. It knows no engine, and no job but by name.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE = 1200.0  # seconds: vLLM compiles for minutes, and a slow peer takes minutes for a job
SETTLE = 0.5  # seconds in which a peer ends what follows an answer, before it is stopped
GRACE = 10.0  # seconds in which a peer that is asked to end may do so
LAST = 300  # characters of a log that say why a peer has failed


class PeerFailed(Exception):
    """A peer has ended, or does not answer; the reason in words."""


@dataclass
class PeerProcess:
    """One peer in a process group of its own. `log` gets all that it prints."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    ready_seconds: float = field(default=0.0, init=False)
    about: dict[str, Any] = field(default_factory=dict, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _unread: bytes = field(default=b"", init=False)

    def start(self) -> None:
        """Start it, and wait until it is ready and warm; `ready_seconds` are those from the start to ready."""
        started = time.perf_counter()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self.environment},
                process_group=0,
            )
        self.about = self._answer()["about"]
        self.ready_seconds = time.perf_counter() - started
        self._answer()  # it is warm
        self._rest()

    def run(self, job: str) -> dict[str, Any]:
        """Let it run a job: seconds, answers and details."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        self._process.stdin.write(f"run {job}\n".encode())
        self._process.stdin.flush()
        answer = self._answer()
        self._rest()
        return answer

    def end(self) -> None:
        """Ask it to end, and end it and its children by force if it does not."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _rest(self) -> None:
        time.sleep(SETTLE)
        self._signal(signal.SIGSTOP)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):  # all of it has ended
            os.killpg(self._process.pid, number)

    def _answer(self) -> dict[str, Any]:
        """The next line that it says."""
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise PeerFailed(f"no answer within {PATIENCE:.0f} s")
                read = os.read(self._process.stdout.fileno(), 2**16)
                if not read:
                    raise PeerFailed(f"it ended: {self._last_words()}")
                self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][-LAST:] if lines else "without a word"

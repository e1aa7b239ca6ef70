"""Runs for tests of charts: a queue worked out by hand, loads, and every awkward name and value."""

from __future__ import annotations

from pathlib import Path

from runs import cell_entry, request_row, step_row, write_manifest, write_tables

AWKWARD = ("<b>bold</b>", "$a$", "%{x}", "_x", "🐢", "n" * 300, "")
"""Names of policies and users; the last is no policy's."""
LOADS = {1.0: 0.0, 2.0: 0.2, 8.0: 0.4}


def queue_run(folder: Path) -> Path:
    """25 requests, one a second, of two users in turn. Under fifo each gets its token after 100 ms, under `late` each
    100 ms later than the one before; the last is rejected."""
    cells = []
    for policy in ("fifo", "late"):
        rows = []
        for row in range(25):
            wait = 0.1 * (row + 1) if policy == "late" else 0.1
            common = {"arrival": float(row), "user": "ben" if row % 2 else "ana", "alone": 0.1}
            if row == 24:
                rows.append(request_row(row, **common, status="rejected"))
            else:
                rows.append(request_row(row, **common, admitted=float(row), token_times=[round(row + wait, 3)]))
        steps = [step_row(0, 0.0, 26.0, running=1, new_tokens=24)]
        write_tables(folder / "cells" / f"continuous-{policy}", rows, steps)
        cells.append(cell_entry(f"continuous-{policy}", mode="continuous"))
    return write_manifest(folder, cells, rows=25, goals={"ttft_ms": 5_000, "tpot_ms": None, "e2e_ms": None})


def awkward_run(folder: Path) -> Path:
    """A policy and a user of every awkward name: first tokens after no time and after an hour, one policy that serves
    nobody, one whose arrivals were taken in too late, no evictions, KV blocks that nobody counted."""
    cells = []
    for place, policy in enumerate(["fifo", *AWKWARD[:-1]]):
        rows = []
        for row in range(21):
            common = {
                "arrival": row / 10,
                "user": f"<i>user</i> {AWKWARD[row % len(AWKWARD)]}",
                "slo": AWKWARD[row % 3],
            }
            wait = 3600.0 if row == 20 else place * row / 100  # the first of all needs none
            if policy == "🐢":
                rows.append(request_row(row, **common, status="timed_out", priority=row % 2))
            else:
                times = [row / 10 + wait, row / 10 + wait + 0.5]
                rows.append(
                    request_row(row, **common, admitted=row / 10, token_times=times, priority=row % 2, alone=0.5)
                )
        name = f"continuous-{place}"
        write_tables(folder / "cells" / name, rows, [step_row(0, 0.0, 5.0, waiting=3, new_tokens=2)])
        late = {"valid": False, "invalid_reason": "lag"} if policy == "_x" else {}
        cells.append(cell_entry(name, mode="continuous", policy=policy, blocks=None, **late))
    return write_manifest(folder, cells, rows=21)

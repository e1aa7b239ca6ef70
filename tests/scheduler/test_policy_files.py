"""The catalogue as files: which there are, how short they are, what they import; and that no replay of any of them
hangs on how Python hashes text, or on the order of sets.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replay.registry import Registry
from replay.scheduler import Policy, policies

FILES = [file for file in sorted(Path("policies").glob("*.py")) if file.name != "__init__.py"]
CATALOGUE = [
    *("fifo", "lifo", "random", "sjf", "ljf", "shortest_prefill", "hrrn", "priority", "hybrid", "edf", "least_slack"),
    *("fair", "round_robin", "lcf", "vtc", "wfq", "drr", "rate_limit"),
    *("priority_preempt", "srpt", "trail", "ltr", "mlfq", "fastserve", "autellix"),
    *("lpm", "dfs_weight", "klpm", "dlpm"),
    *("orca", "prefill_first", "sarathi", "vllm"),
    "andes",
]
CHANCE_AND_CLOCKS = {"random", "secrets", "uuid", "time", "datetime", "os", "numpy"}

# Ten requests that are alike in all but their rows, then a crowd of several users, sessions and prefixes.
EVERY_POLICY = """
import hashlib
import policies as registered
from replay.contract.simulation import request, simulate
from replay.scheduler import policies

def alike():
    return [request(row, 0.0, 20, user="one") for row in range(10)], [6] * 10

def crowd():
    users = ["ana", "bo", "cy", None]
    rows = [
        request(row, row * 7 % 20 / 100, 5 + row * 11 % 40, user=users[row * 5 % 4], priority=row % 3,
                session=f"session {row % 7}", deadline=0.1 + row % 5 / 10)
        for row in range(40)
    ]
    return rows, [1 + row * 13 % 29 for row in range(40)]

for name in policies:
    for trace in (alike, crowd):
        settings = dict(blocks=12, block_size=8, prefix_cache=True, host_blocks=4, max_running=3, token_budget=24)
        replayed = simulate(*trace(), policy=name, **settings)
        stamps = [replayed.column(column) for column in ("admitted", "token_times", "finished", "evictions")]
        print(name, trace.__name__, hashlib.sha256(repr(stamps).encode()).hexdigest())
        if trace is alike and name != "random" and None not in stamps[0]:
            assert stamps[0] == sorted(stamps[0]), f"{name}: ties are served in the order of their rows"
"""


def test_every_policy_of_the_catalogue_is_there_each_in_a_file_of_its_name() -> None:
    kept: Registry[Policy] = policies
    assert sorted(CATALOGUE) == [file.stem for file in FILES]
    for name in CATALOGUE:
        assert kept[name].__module__ == f"policies.{name}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_is_a_short_file_without_chance_or_clock_of_its_own(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or ".")
    others = imported - {"replay.scheduler"}
    assert others <= set(sys.stdlib_module_names) | {"collections.abc"}
    assert not others & CHANCE_AND_CLOCKS, "chance is step.random, and the time is step.now"


def test_no_replay_hangs_on_the_hashes_of_text() -> None:
    printed = []
    for seed in ("1", "20"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed, "POLARS_MAX_THREADS": "2"}
        done = subprocess.run(
            [sys.executable, "-c", EVERY_POLICY],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    assert len(printed[0]) == 2 * len(CATALOGUE)
    assert printed[0] == printed[1]

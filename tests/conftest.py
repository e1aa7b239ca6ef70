"""For every test: nothing is looked up in a hub, no display is needed, and Triton's kernels run without a GPU."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("MPLBACKEND", "Agg")
if os.environ.get("REPLAY_TEST_DEVICE", "cpu") == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # before anything imports Triton

import policies as _registered  # noqa: F401  # importing it registers every policy

settings.register_profile("same", derandomize=True, deadline=None)  # everybody's tests draw the same examples
settings.register_profile("fuzz", derandomize=False, deadline=None)  # `make fuzz` draws others, again and again
settings.load_profile(os.environ.get("REPLAY_EXAMPLES", "same"))

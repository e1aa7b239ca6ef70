"""For every test: nothing is looked up in a hub, no display is needed, and Triton's kernels run without a GPU."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("MPLBACKEND", "Agg")
if os.environ.get("REPLAY_TEST_DEVICE", "cpu") == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # before anything imports Triton

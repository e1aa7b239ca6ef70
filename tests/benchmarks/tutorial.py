"""The figures and pictures of docs/tutorial.md, made again: every command of the page in order, then what is measured.

The commands of the page run on the simulated engine and give the same figures everywhere. Four of them run again on
the real engine, and `replay probe` measures the machine: about five minutes on two quiet cores. Everything goes to
docs/tutorial/figures.json, to docs/tutorial/*.png and into the pages, the Chinese one too. It ends by saying which
claims of the text the figures do not bear out; then its status is 1.

python tests/benchmarks/tutorial.py
python tests/benchmarks/tutorial.py --repeats 1 --limit 40    # a rough try; the page says so
python tests/benchmarks/tutorial.py --simulated     # the real engine's figures stay as they are
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tutorial_figures import (
    MEASURED,
    REAL,
    ROUGH,
    RUNS,
    SIMULATED,
    commands,
    filled,
    measured_claims,
    probed,
    read,
    simulated_claims,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for page in (DOCS / "tutorial.md", DOCS / "tutorial.zh-TW.md") if page.exists()]
FIGURES = DOCS / "tutorial" / "figures.json"
REAL_PICTURE = "frontier.png"
ON_TORCH = ["--set", "engine.kind=torch", "--set", "engine.model=tiny", "--set", "engine.threads=1"]


def replay(folder: Path, arguments: list[str]) -> str:
    """Run `replay` in a folder; what it prints. Ends the script where it fails, but for cells that are invalid."""
    done = subprocess.run(
        [sys.executable, "-m", "replay", *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0 and not (arguments[0] == "run" and list(folder.glob("outputs/*/summary.parquet"))):
        sys.exit(f"replay {shlex.join(arguments)}: status {done.returncode}")
    return done.stdout


def simulate(folder: Path, words: list[list[str]]) -> dict[str, Any]:
    """The commands of the page as they are, but for the probe."""
    for line in words:
        if line[0] != "probe":
            replay(folder, [*line, "--no-plots"] if line[0] == "run" else line)
    return {"figures": {key: value for run in RUNS for key, value in read(folder / "outputs" / run, run).items()}}


def measure(folder: Path, words: list[list[str]], repeats: int, limit: int | None) -> dict[str, Any]:
    """The commands of the page that measure, with the real engine: figures, and where they were measured."""
    found = json.loads(replay(folder, [*next(line for line in words if line[0] == "probe"), "--json"]))
    figures, cells = probed(found["model"]["batch_sizes"]), []
    real = [*ON_TORCH, "--set", f"repeats={repeats}", "--no-plots", *(["--limit", str(limit)] if limit else [])]
    for name in REAL:
        line = next(line for line in words if line[0] == "run" and line[-1] == f"outputs/{name}")
        replay(folder, [*line[:-1], f"outputs/{name}-measured", *real])
        run = folder / "outputs" / f"{name}-measured"
        figures |= read(run, name)
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        cells += [cell["valid"] for cell in manifest["cells"]]
    (picture,) = [line for line in words if line[-1] == f"outputs/{REAL_PICTURE}"]
    replay(folder, [word.replace("outputs/sizes", "outputs/sizes-measured") for word in picture])
    machine = {
        "date": datetime.now(tz=UTC).date().isoformat(),
        **manifest["hardware"],
        **{name: manifest["versions"][name] for name in ("python", "torch", "transformers")},
        "repeats": repeats,
        "cells that are invalid": f"{cells.count(False)} of {len(cells)}",
        **({} if limit is None else {ROUGH: limit}),
    }
    return {"figures": figures, "machine": machine}


def keep(folder: Path, kept: dict[str, Any]) -> None:
    """Figures, pictures and pages."""
    for picture in (folder / "outputs").glob("*.png"):
        shutil.copy(picture, DOCS / "tutorial")
    FIGURES.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), kept), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", action="store_true", help="leave the real engine's figures as they are")
    parser.add_argument("--repeats", type=int, default=3, help="of each cell on the real engine")
    parser.add_argument("--limit", type=int, help="only so many requests on the real engine")
    options = parser.parse_args()
    words = commands(PAGES[0].read_text(encoding="utf-8"))
    none: dict[str, Any] = {MEASURED: {"figures": {}, "machine": {}}}
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else none
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(DOCS / "tutorial", folder / "docs" / "tutorial")
        (folder / "outputs").mkdir()
        kept = {SIMULATED: simulate(folder, words), MEASURED: kept[MEASURED]}
        if options.simulated and kept[MEASURED]["figures"]:
            (folder / "outputs" / REAL_PICTURE).unlink()
        keep(folder, kept)
        if not options.simulated:
            kept[MEASURED] = measure(folder, words, options.repeats, options.limit)
            keep(folder, kept)
    claims = simulated_claims(kept[SIMULATED]["figures"])
    if not options.simulated:  # a rough try too: it says what it does not bear out
        claims |= measured_claims(kept[MEASURED]["figures"])
    failed = [claim for claim, holds in claims.items() if not holds]
    sys.exit("\n".join(["not borne out by the figures:", *failed]) if failed else 0)


if __name__ == "__main__":
    main()

"""Runs side by side: figures as an independent few lines have them, and what is said of runs that are not alike."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result
from command import replay
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.cli.compare import compare
from replay.cli.run import run
from replay.errors import ExperimentError

SAMPLE = str(Path("traces/sample.parquet").resolve())
GOALS = ["goals.ttft_ms=500", "goals.tpot_ms=50"]
COST = {"fixed_ms": 20.0, "prefill_ms": 0.25, "decode_ms": 0.2, "context_ms": 0.001}
STATIC, CONTINUOUS = "modes.static={batch_size=4}", "modes.continuous={max_running=4, token_budget=256}"
SLOWER = 1.1


def simulated(folder: Path, *settings: str, cost: float = 1.0, limit: int = 60) -> Path:
    """A run of the sample trace, on the simulated engine with a cost model that is so many times ours."""
    model = ", ".join(f"{name}={cost * value:.6g}" for name, value in COST.items())
    given = ["engine.kind=simulated", f"engine.cost={{{model}}}", *settings]
    arguments = ["--trace", SAMPLE, "--limit", str(limit), "--no-plots", "--output", str(folder)]
    for setting in given:
        arguments += ["--set", setting]
    modes = [setting.partition("=")[0].partition(".")[2] for setting in settings if setting.startswith("modes.")]
    for option, name in [*(("--mode", mode) for mode in modes), ("--policy", "fifo"), ("--policy", "sjf")]:
        arguments += [option, name]
    result = CliRunner().invoke(run, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("runs") / "before", STATIC, CONTINUOUS, *GOALS)


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("runs") / "after", STATIC, CONTINUOUS, *GOALS, cost=SLOWER)


def copy(folder: Path, place: Path, change: Callable[[dict[str, Any]], object] = lambda manifest: None) -> Path:
    """A copy of a run, with its manifest changed."""
    shutil.copytree(folder, place)
    manifest = json.loads((place / "manifest.json").read_text())
    change(manifest)
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


def called(*arguments: str | Path) -> Result:
    """What the command gives; a fault of the user's is its exception."""
    return CliRunner().invoke(compare, [str(argument) for argument in arguments])


def printed(*arguments: str | Path, status: int = 0) -> str:
    result = called(*arguments)
    assert result.exit_code == status, (result.output, result.exception)
    return result.stdout


def as_json(*arguments: str | Path, status: int = 0) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(printed(*arguments, "--format", "json", status=status), parse_constant=refuse)


def fault(*arguments: str | Path) -> str:
    """The sentence that a misuse ends with."""
    result = called(*arguments)
    assert isinstance(result.exception, ExperimentError), result.output
    assert result.exception.exit_status == 2
    return str(result.exception)


def by_hand(folder: Path, cell: str) -> dict[str, float | None]:
    """Figures of a cell from its Parquet, in seconds and tokens a second."""
    rows = pl.read_parquet(folder / "cells" / cell / "requests.parquet").filter(status="completed")
    ttft = (rows["first_token"] - rows["due"]).to_numpy()
    per_token = rows.filter(pl.col("generated_tokens") > 1).select(
        (pl.col("last_token") - pl.col("first_token")) / (pl.col("generated_tokens") - 1)
    )
    tpot = per_token.to_series().to_numpy()
    steps = pl.read_parquet(folder / "cells" / cell / "steps.parquet")
    e2e = rows["finished"] - rows["due"]
    first = e2e.to_numpy() if cell.startswith("static") else ttft  # a static batch is delivered together
    goals = (first <= 0.5) & (np.nan_to_num(_tpots(rows)) <= 0.05)
    return {
        "ttft_p50": float(np.percentile(ttft, 50)),
        "ttft_p99": float(np.percentile(ttft, 99)),
        "tpot_p50": float(np.percentile(tpot, 50)),
        "e2e_mean": float(np.mean(e2e.to_numpy())),
        "output_throughput": float(rows["generated_tokens"].sum() / rows["finished"].max()),  # type: ignore[operator]
        "completed": float(rows.height),
        "batch_size_max": float(steps["running"].max()),  # type: ignore[arg-type]
        "goodput": float(goals.mean()),
    }


def _tpots(rows: pl.DataFrame) -> Any:
    gaps = pl.col("generated_tokens") - 1
    return (
        rows.select(pl.when(gaps > 0).then((pl.col("last_token") - pl.col("first_token")) / gaps).fill_null(0))
        .to_series()
        .to_numpy()
    )


def test_every_figure_is_that_of_the_rows(before: Path, after: Path) -> None:
    names = ["ttft_p50", "ttft_p99", "tpot_p50", "e2e_mean", "output_throughput", "completed", "goodput"]
    content = as_json(before, after, *(part for name in names for part in ("--metric", name)))
    assert list(content["figures"]) == names
    assert [(cell["mode"], cell["policy"]) for cell in content["cells"]] == [
        (mode, policy) for mode in ("static", "continuous") for policy in ("fifo", "sjf")
    ]
    for cell in content["cells"]:
        own = {
            label: by_hand(folder, f"{cell['mode']}-{cell['policy']}")
            for label, folder in (("before", before), ("after", after))
        }
        for name in names:
            base, other = (cell["runs"][label]["figures"][name] for label in ("before", "after"))
            assert base["value"] == pytest.approx(own["before"][name], rel=1e-9), name
            assert other["value"] == pytest.approx(own["after"][name], rel=1e-9), name
            assert other["difference"] == pytest.approx(own["after"][name] - own["before"][name], abs=1e-9), name
            if own["before"][name]:
                assert other["ratio"] == pytest.approx(own["after"][name] / own["before"][name], rel=1e-9), name
            else:
                assert other["ratio"] is None


def test_a_run_against_its_copy_differs_in_nothing(before: Path, tmp_path: Path) -> None:
    content = as_json(
        before, copy(before, tmp_path / "copy"), "--fail-if", "ttft_p99 > baseline", "--metric", "e2e_p50"
    )
    assert content["differ_in"] == content["notes"] == content["in_one_run_only"] == []
    assert content["passed"] is True
    for cell in content["cells"]:
        for figure in cell["runs"]["copy"]["figures"].values():
            assert (figure["ratio"], figure["difference"]) == (1.0, 0.0)
            assert figure["verdict"] != "seen"
    text = printed(before, tmp_path / "copy")
    assert "The runs differ in nothing that their manifests tell." in text
    assert "×1.00" in text  # noqa: RUF001


def test_a_slower_engine_is_caught_by_a_tight_check_and_not_by_a_loose_one(before: Path, after: Path) -> None:
    tight, loose = "tpot_p50 > 1.05 * baseline", "tpot_p50 > 1.25 * baseline"
    content = as_json(before, after, "--metric", "tpot_p50", "--fail-if", tight, "--fail-if", loose, status=1)
    caught, passed = content["checks"]
    assert (caught["check"], caught["passed"], caught["judged"]) == (tight, False, 4)
    assert len(caught["breaches"]) == 4
    for breach in caught["breaches"]:
        assert breach["ratio"] == pytest.approx(SLOWER, abs=0.05)
        assert breach["value"] > breach["bound"] == pytest.approx(1.05 * breach["baseline"])
    # the fourth, of a policy that reorders, would take more than 60 requests
    assert sorted(breach["verdict"] for breach in caught["breaches"]) == ["not seen", "seen", "seen", "seen"]
    assert passed == {
        "check": loose,
        "passed": True,
        "judged": 4,
        "not_seen": 0,
        "not_judged": 0,
        "breaches": [],
        "undecided": [],
    }
    assert as_json(after, before, "--fail-if", tight)["passed"]


def test_a_breach_is_told_with_its_values(before: Path, after: Path) -> None:
    text = printed(
        before, after, "--fail-if", "tpot_p50 > 1.05 * baseline where mode = static and policy = fifo", status=1
    )
    old, new = (1000 * (by_hand(folder, "static-fifo")["tpot_p50"] or 0) for folder in (before, after))
    assert "FAILED: tpot_p50 > 1.05 * baseline where mode = static and policy = fifo in 1 of 1 cell\n" in text
    assert (
        f"  static, fifo: {new:.1f} ms in after, more than {1.05 * old:.1f} ms (baseline {old:.1f} ms, "
        f"×{new / old:.2f}, seen)\n"  # noqa: RUF001
    ) in text
    assert "engine.cost.fixed_ms: 20 / 22\n" in text
    assert "passed: tpot_p50 > 100ms in none of 4 cells" in printed(before, after, "--fail-if", "tpot_p50 > 100ms")


def test_exit_statuses_are_those_of_a_process(tmp_path: Path) -> None:
    runs = [hand_run(tmp_path / f"{latency:g}", [[latency] * 10]) for latency in (0.1, 0.15)]

    def status(*arguments: str) -> int:
        return replay("compare", *runs, *arguments).returncode

    assert status("--fail-if", "ttft_p50 > 2 * baseline") == 0
    assert status("--fail-if", "ttft_p50 > baseline") == 1
    assert status("--fail-if", "ttft_p50 > base") == 2


def test_seen_is_asked_for_request_by_request(before: Path, tmp_path: Path) -> None:
    """One request of sixty is 60 s late: the mean is far off, and that it is more than chance is not seen."""
    late = copy(before, tmp_path / "late")
    for cell in ("static-fifo", "static-sjf", "continuous-fifo", "continuous-sjf"):
        file = late / "cells" / cell / "requests.parquet"
        rows = pl.read_parquet(file)
        moved = pl.when(pl.col("row") == 30).then(60.0).otherwise(0.0)
        rows.with_columns(pl.col("finished") + moved).write_parquet(file)
    content = as_json(
        before,
        late,
        "--fail-if",
        "e2e_mean > 1.1 * baseline",
        "--fail-if",
        "e2e_mean > 1.02 * baseline and seen",
        "--metric",
        "e2e_p50",
        status=1,
    )
    plain, careful = content["checks"]
    assert len(plain["breaches"]) > 0
    assert {breach["verdict"] for breach in plain["breaches"]} == {"not seen"}
    assert careful["passed"]
    assert careful["not_seen"] == 4
    assert {cell["runs"]["late"]["figures"]["e2e_p50"]["verdict"] for cell in content["cells"]} == {"not seen"}


def test_one_number_a_run_is_not_seen_without_repeats(before: Path, after: Path) -> None:
    check = "output_throughput < 0.99 * baseline"
    content = as_json(before, after, "--fail-if", check, "--fail-if", f"{check} and seen", status=1)
    assert len(content["checks"][0]["breaches"]) == 4
    assert {each["why"] for each in content["checks"][1]["undecided"]} == {
        "output_throughput is in breach, and whether that is seen cannot be told: "
        "it is one number a run, and the runs were not repeated"
    }
    p99 = content["cells"][0]["runs"]["after"]["figures"]["ttft_p99"]
    assert (p99["verdict"], p99["why"]) == ("cannot be told", "fewer than 5 requests lie beyond it")


def hand_run(folder: Path, latencies: list[list[float]], **cell: Any) -> Path:
    """A run of one cell, whose requests come a second apart; a list of latencies for each repeat."""
    cells = []
    for repeat, each in enumerate(latencies):
        rows = [request_row(row, arrival=row, token_times=[row + latency]) for row, latency in enumerate(each)]
        write_tables(folder / "cells" / f"continuous-fifo-{repeat}", rows)
        cells.append(cell_entry(f"continuous-fifo-{repeat}", repeat=repeat, **cell))
    return write_manifest(folder, cells, rows=len(latencies[0]))


def test_repeats_are_pooled_and_bound_what_is_seen(tmp_path: Path) -> None:
    calm = [[0.1 + 0.001 * (row % 7) for row in range(40)]] * 2
    base = hand_run(tmp_path / "base", calm)
    steady = hand_run(tmp_path / "steady", [[value + 0.010 for value in each] for each in calm])
    shaky = hand_run(tmp_path / "shaky", [calm[0], [value + 0.020 for value in calm[0]]])
    content = as_json(base, steady, shaky, "--metric", "ttft_mean", "--metric", "ttft_p50")
    (cell,) = content["cells"]
    own = np.mean(calm[0])
    for name, extra in (("base", 0.0), ("steady", 0.010), ("shaky", 0.010)):
        assert cell["runs"][name]["figures"]["ttft_mean"]["value"] == pytest.approx(own + extra)
        assert cell["runs"][name]["cells"] == ["continuous-fifo-0", "continuous-fifo-1"]
    for figure in ("ttft_mean", "ttft_p50"):
        found = cell["runs"]["steady"]["figures"][figure]
        assert (found["verdict"], found["pairs"]) == ("seen", 40)
        assert found["low"] == pytest.approx(0.010) == found["high"]
        assert cell["runs"]["shaky"]["figures"][figure]["verdict"] == "not seen", "its repeats lie 20 ms apart"


def change_cell(place: int, **fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda manifest: manifest["cells"][place].update(fields)


@pytest.mark.parametrize("hurt", ["baseline", "other"])
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"valid": False, "invalid_reason": "lag of 9 ms"}, "it is invalid: lag of 9 ms, in hurt"),
        ({"status": "interrupted"}, "it is partial, in hurt"),
    ],
)
def test_a_cell_in_doubt_never_passes_in_silence(
    before: Path, tmp_path: Path, hurt: str, fields: dict[str, Any], why: str
) -> None:
    odd = copy(before, tmp_path / "hurt", change_cell(1, **fields))
    runs = (odd, before) if hurt == "baseline" else (before, odd)
    check = ("--fail-if", "ttft_p50 > 2 * baseline")
    all_cells, fifo = as_json(*runs, *check, "--fail-if", f"{check[1]} where policy = fifo", status=1)["checks"]
    assert all_cells["undecided"] == [
        {"trace": "sample", "mode": "static", "setting": "static", "policy": "sjf", "run": runs[1].name, "why": why}
    ]
    assert fifo["passed"]
    text = printed(*runs, *check, "--allow-invalid")
    assert "passed: ttft_p50 > 2 * baseline in none of 4 cells\n" in text
    assert f"hurt ({'invalid' if 'valid' in fields else 'partial'})" in text


def test_a_cell_that_left_no_rows_fails_even_what_is_allowed(before: Path, tmp_path: Path) -> None:
    odd = copy(before, tmp_path / "odd", change_cell(3, status="failed", error="out of memory"))
    shutil.rmtree(odd / "cells" / "continuous-sjf")
    content = as_json(before, odd, "--fail-if", "ttft_p50 > 2 * baseline", "--allow-invalid", status=1)
    (each,) = content["checks"][0]["undecided"]
    assert each["why"] == "it is failed, and left no rows: out of memory, in odd"
    assert content["cells"][3]["runs"]["odd"]["figures"]["ttft_p50"]["value"] is None
    assert "odd: continuous, sjf: failed, and left no rows: out of memory" in printed(before, odd)


def test_what_is_not_defined_fails(before: Path, tmp_path: Path) -> None:
    bare = [copy(before, tmp_path / name, lambda manifest: manifest.update(goals={})) for name in "ab"]
    text = printed(*bare, "--fail-if", "goodput < 0.9 * baseline", status=1)
    assert "goodput < 0.9 * baseline cannot be decided for 4 of 4 cells" in text
    assert "goodput is not defined in b" in text


def test_runs_are_judged_by_one_set_of_goals(before: Path, tmp_path: Path) -> None:
    strict = copy(before, tmp_path / "strict", lambda manifest: manifest["goals"].update(ttft_ms=1))
    content = as_json(before, strict, "--metric", "goodput")
    assert content["notes"] == ["goals differ: every run is judged by those of before"]
    assert {"fact": "goals.ttft_ms", "values": {"before": "500", "strict": "1"}} in content["differ_in"]
    assert {cell["runs"]["strict"]["figures"]["goodput"]["difference"] for cell in content["cells"]} == {0.0}


def test_what_differs_is_told_first(before: Path, tmp_path: Path) -> None:
    def elsewhere(manifest: dict[str, Any]) -> None:
        manifest["hardware"]["processor"] = "another"
        manifest["versions"]["torch"] = "9.9"
        manifest["policies"][0]["sha256"] = "ab" * 32
        manifest["traces"][0]["sha256"] = "cd" * 32
        for cell in manifest["cells"]:
            cell["simulated"] = False
            cell["settings"]["engine"]["model"] = "smollm2-135m"
            cell["cost"] = {"fixed": 0.002, "decode": 0.000_25}
        manifest["engines"] = [{"kind": "torch", "details": {"device": "cpu"}}]

    text = printed(before, copy(before, tmp_path / "there", elsewhere))
    head = text.partition("\nmode ")[0]
    assert "engine.model: tiny / smollm2-135m\n" in head
    assert " / another\n" in head
    assert " / 9.9\n" in head
    assert "policy fifo: its file, sha256: " in head
    assert " / cdcdcdcdcdcd\n" in head
    assert "device." not in head, "a simulated engine has none, so there is nothing to hold it against"
    assert "step at warm-up" not in head
    faster = copy(tmp_path / "there", tmp_path / "faster", change_cell(0, cost={"fixed": 0.001, "decode": 0.000_25}))
    slow = printed(tmp_path / "there", faster)
    assert "step at warm-up, ms.fixed: 2 / 1, 2\n" in slow
    assert "What is seen may still be the machine's on that day." in slow
    assert "Note: simulated figures stand beside measured ones" in head
    assert "before: 4 of 4 cells, simulated" in head
    assert "there: 4 of 4 cells, measured" in head


def test_another_number_of_answers_is_said(before: Path, tmp_path: Path) -> None:
    fewer = copy(before, tmp_path / "fewer")
    file = fewer / "cells" / "static-fifo" / "requests.parquet"
    lost = pl.when(pl.col("row") < 5)
    rows = pl.read_parquet(file).with_columns(
        lost.then(pl.lit("rejected")).otherwise("status").alias("status"),
        *(lost.then(None).otherwise(name).alias(name) for name in ("first_token", "last_token", "finished")),
    )
    rows.write_parquet(file)
    assert as_json(before, fewer)["notes"] == [
        "not the same number of requests completed, and latencies are of those that did: "
        "static, fifo (60 in before and 55 in fewer)"
    ]


def test_the_same_name_for_other_requests_is_no_match(before: Path, tmp_path: Path) -> None:
    shorter = simulated(tmp_path / "shorter", STATIC, CONTINUOUS, limit=20)
    told = fault(before, shorter)
    assert told.startswith(
        "no two of these runs have a cell in common (--across SETTING matches cells that differ in a "
    )
    assert "trace sample is not the same requests everywhere" in told
    assert "before: 60 requests, sha256 " in told
    assert "shorter: 20 requests" in told


def test_cells_match_by_their_settings_whatever_was_swept(before: Path, tmp_path: Path) -> None:
    swept = simulated(tmp_path / "swept", "modes.continuous={max_running=[2, 4], token_budget=256}", *GOALS)
    content = as_json(before, swept, "--fail-if", "ttft_p50 > baseline")
    assert [(cell["setting"], cell["policy"]) for cell in content["cells"]] == [
        ("continuous (max_running=4)", "fifo"),
        ("continuous (max_running=4)", "sjf"),
    ]
    assert {cell["runs"]["swept"]["figures"]["ttft_p50"]["ratio"] for cell in content["cells"]} == {1.0}
    lone = [(cell["setting"], list(cell["runs"])) for cell in content["in_one_run_only"]]
    assert lone == [("static", ["before"])] * 2 + [("continuous (max_running=2)", ["swept"])] * 2
    assert content["checks"][0]["not_judged"] == 4
    text = printed(before, swept, "--fail-if", "ttft_p50 > baseline where mode = continuous")
    assert "Only before has 2 cells: static, fifo; static, sjf\n" in text
    assert "in none of 2 cells; 2 cells of one run only not judged\n" in text


def test_a_setting_may_be_what_runs_differ_in(before: Path, tmp_path: Path) -> None:
    wider = simulated(tmp_path / "wider", "modes.continuous={max_running=8, token_budget=256}")
    assert "(--across max_running matches cells that differ in it)" in fault(before, wider)
    content = as_json(before, wider, "--across", "max_running")
    assert [cell["setting"] for cell in content["cells"]] == ["continuous"] * 2
    assert {"fact": "mode continuous.max_running", "values": {"before": "4", "wider": "8"}} in content["differ_in"]
    markdown = printed(before, wider, "--across", "max_running", "--format", "markdown")
    assert "- The runs differ in (before / wider):\n  - mode continuous.max_running: 4 / 8\n" in markdown
    assert "no cell has such a setting; did you mean 'max_running'?" in fault(before, wider, "--across", "max_runing")
    swept = simulated(tmp_path / "swept", "modes.continuous={max_running=[2, 8], token_budget=256}")
    assert "nothing but max_running=2 and max_running=8 tells some of its cells apart" in fault(
        before, swept, "--across", "max_running"
    )


def test_engine_settings_that_were_swept_are_cells(tmp_path: Path) -> None:
    swept = simulated(tmp_path / "swept", CONTINUOUS, "engine.kv_blocks=[64, 128]")
    plain = simulated(tmp_path / "plain", CONTINUOUS, "engine.kv_blocks=128")
    content = as_json(plain, swept)
    assert [cell["setting"] for cell in content["cells"]] == ["continuous (kv_blocks=128)"] * 2
    assert [cell["setting"] for cell in content["in_one_run_only"]] == ["continuous (kv_blocks=64)"] * 2


def test_the_baseline_is_any_run_or_one_more(before: Path, after: Path) -> None:
    for arguments in ((before, "--baseline", after), (before, after, "--baseline", "after")):
        content = as_json(*arguments, "--metric", "tpot_p50")
        assert content["baseline"] == "after"
        ratios = [cell["runs"]["before"]["figures"]["tpot_p50"]["ratio"] for cell in content["cells"]]
        assert ratios == [pytest.approx(1 / SLOWER, abs=0.05)] * 4


def test_a_single_run_is_held_against_a_number(before: Path) -> None:
    assert as_json(before, "--fail-if", "tpot_p50 > 1s")["passed"]
    assert as_json(before, "--fail-if", "tpot_p50 > 1ms", status=1)["checks"][0]["judged"] == 4
    assert "there is one run only" in fault(before, "--fail-if", "tpot_p50 > baseline")


def test_misuse_is_a_sentence(before: Path, after: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no such folder" in fault(before, tmp_path / "gone")
    assert "not the folder of a run, for it holds no manifest.json" in fault(before, empty)
    assert "the same run as" in fault(before, before / ".." / before.name)
    assert "did you mean 'ttft_p99'?" in fault(before, after, "--metric", "ttft_p98")
    assert "neither one of the runs nor a folder" in fault(before, after, "--baseline", "elsewhere")
    assert "no cell has policy 'fofo'; did you mean 'fifo'?" in fault(
        before, after, "--fail-if", "ttft_p50 > baseline where policy = fofo"
    )
    assert "no cell has 'polcy'; did you mean 'policy'?" in fault(
        before, after, "--fail-if", "ttft_p50 > baseline where polcy = fifo"
    )
    assert "there is no cell to judge by it" in fault(
        before, after, "--fail-if", "ttft_p50 > baseline where policy = fifo and policy = sjf"
    )


def test_conditions_take_runs_and_settings(before: Path, after: Path) -> None:
    def judged(condition: str) -> int:
        content = as_json(before, after, "--fail-if", f"ttft_p50 > 9 * baseline where {condition}")
        return int(content["checks"][0]["judged"])

    assert judged("run = after") == 4
    assert judged("max_running = 4") == 2
    assert judged("mode != static and policy = sjf") == 1


def test_csv_is_long_and_has_every_figure(before: Path, after: Path) -> None:
    result = called(before, after, "--format", "csv", "--fail-if", "tpot_p50 > baseline")
    assert result.exit_code == 1
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 4 * 2 * 6
    for row in rows:
        assert math.isfinite(float(row["value"]))
        if row["run"] == "after":
            assert float(row["difference"]) == pytest.approx(float(row["value"]) - float(row["baseline"]), abs=1e-12)
        else:
            assert row["ratio"] == ""
    assert "replay: FAILED: tpot_p50 > baseline in 4 of 4 cells" in result.stderr


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_the_same_runs_give_the_same_bytes(tmp_path: Path, form: str) -> None:
    latencies = np.random.default_rng(5).lognormal(-2, 1, (3, 40)).tolist()
    runs = [hand_run(tmp_path / name, each) for name, each in (("a", latencies[:1]), ("b", latencies[1:]))]
    outputs = {printed(*runs, "--format", form) for _ in range(2)}
    assert len(outputs) == 1


def test_markdown_is_a_table(before: Path, after: Path) -> None:
    text = printed(before, after, "--format", "markdown", "--metric", "tpot_p50", "--fail-if", "e2e_n < baseline")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table[0] == "| mode | policy | run | tpot_p50 | e2e_n |"
    assert table[1] == "| --- | --- | --- | ---: | ---: |"
    assert len(table) == 2 + 4 * 2
    assert table[2].startswith("| static | fifo | before | ")
    assert "```text\npassed: e2e_n < baseline in none of 4 cells\n```" in text


def test_awkward_names_keep_the_table_whole(before: Path, tmp_path: Path) -> None:
    name = "a|b\n" + "long " * 20
    odd = copy(before, tmp_path / name)
    text = printed(before, odd, "--metric", "ttft_p50")
    _, *lines = text.partition("\nmode ")[2].partition("\n\n")[0].splitlines()
    assert len(lines) == 8
    assert max(map(len, lines)) < 100
    marks = printed(before, odd, "--metric", "ttft_p50", "--format", "markdown")
    table = [line for line in marks.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 8
    assert {line.replace("\\|", "").count("|") for line in table} == {5}

"""What some users cost the others: a trace without them beside it, from the experiment file to the report."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import replay
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.cli.init import TEMPLATE
from replay.errors import ExperimentError, TraceError
from replay.experiment.document import merged
from replay.experiment.loading import load_experiment
from replay.metrics import measure
from replay.metrics.arms import Values, arms
from replay.metrics.isolation import isolation, without
from replay.report import write_report
from replay.results import Trace, read_run
from replay.runner import open_traces

BOTH = [
    {"name": "chat", "rows": 4, "origin": "", "variant": {}},
    {"name": "chat without pipeline", "rows": 2, "origin": "chat", "variant": {"without": "pipeline"}},
]


def two_traces(folder: Path, *, repeats: int = 1) -> Path:
    """ana's two requests get their first token after 300 and 500 ms beside pipeline's, and after 100 ms without."""
    cells = []
    for repeat in range(repeats):
        beside, alone = f"chat-continuous-fifo-{repeat}", f"other-continuous-fifo-{repeat}"
        rows = [
            request_row(0, user="pipeline", token_times=[0.1, 0.2]),
            request_row(1, user="pipeline", token_times=[0.1, 0.2]),
            request_row(2, user="ana", token_times=[0.3, 0.6]),
            request_row(3, user="ana", token_times=[0.5, 0.8]),
        ]
        write_tables(folder / "cells" / beside, rows)
        write_tables(folder / "cells" / alone, [request_row(row, user="ana", token_times=[0.1, 0.2]) for row in (0, 1)])
        known = {"mode": "continuous", "policy": "fifo", "repeat": repeat, "padded": False}
        cells += [cell_entry(beside, trace="chat", **known)]
        cells += [cell_entry(alone, trace="chat without pipeline", **known)]
    return write_manifest(folder, cells, traces=BOTH)


def test_a_users_times_stand_beside_those_without_the_others(tmp_path: Path) -> None:
    run = read_run(two_traces(tmp_path))
    beside, alone = arms(run)
    found = isolation([beside], [alone], ["ana"], Values(measure(run).summary))
    figures = {(each.metric, each.statistic): each for each in found}
    median = figures["ttft", "p50"]
    assert (median.beside, median.alone, median.ratio) == (0.4, 0.1, pytest.approx(4))
    assert figures["ttft", "p99"].beside == pytest.approx(0.498)
    assert figures["e2e", "p50"].ratio == pytest.approx(0.7 / 0.2)


def test_who_had_no_answer_has_no_ratio(tmp_path: Path) -> None:
    run = read_run(two_traces(tmp_path))
    beside, alone = arms(run)
    found = isolation([beside], [alone], ["pipeline", "nobody"], Values(measure(run).summary))
    assert [each.alone for each in found] == [None] * 8
    assert [each.ratio for each in found] == [None] * 8


def test_the_variant_without_users_is_that_of_the_same_load() -> None:
    traces = [
        Trace("chat at 1x", origin="chat", variant={"load": 1.0}),
        Trace("chat at 1x without a", origin="chat", variant={"load": 1.0, "without": "a"}),
        Trace("chat at 2x", origin="chat", variant={"load": 2.0}),
        Trace("chat at 2x without a", origin="chat", variant={"load": 2.0, "without": "a"}),
        Trace("code"),
    ]
    found = {trace.name: other.name for trace in traces if (other := without(trace, traces)) is not None}
    assert found == {"chat at 1x": "chat at 1x without a", "chat at 2x": "chat at 2x without a"}


def test_the_report_says_with_and_without(tmp_path: Path) -> None:
    write_report(two_traces(tmp_path, repeats=2), plots=False)
    text = (tmp_path / "comparison.md").read_text()
    assert text.count("### Isolation") == 1
    section = text.partition("### Isolation")[2].partition("###")[0]
    assert "What pipeline cost the others" in section
    assert "| continuous | fifo | ana | 400 / 100 (4.00x) | 498 / 100 (4.98x) | 700 / 200 (3.50x) |" in section


def test_without_such_a_trace_there_is_no_section(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, user="ana", token_times=[0.1])])
    write_report(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1), plots=False)
    assert "### Isolation" not in (tmp_path / "comparison.md").read_text()


def experiment(folder: Path, **more: Any) -> Any:
    rows = {
        "arrival_s": [0.0, 0.0, 1.0, 2.0],
        "prompt_tokens": [100, 100, 10, 10],
        "output_tokens": [50, 50, 5, 5],
        "user": ["pipeline", "pipeline", "ana", None],
    }
    pl.DataFrame(rows).write_parquet(folder / "chat.parquet")
    return load_experiment({"traces": ["chat.parquet"]} | more, "x.toml", folder)


def test_a_trace_is_replayed_a_second_time_without_the_users(tmp_path: Path) -> None:
    whole, other = open_traces(experiment(tmp_path, without_users=["pipeline"]))
    assert (whole.name, other.name, other.origin) == ("chat", "chat without pipeline", "chat")
    assert (len(whole.frame), len(other.frame)) == (4, 2)
    assert other.frame["arrival"].to_list() == [0, 1_000_000_000]  # from each other as they were
    assert other.frame["max_tokens"].to_list() == [50, 50]  # what a policy may see of them is what it was
    assert [change.transform for change in other.changes] == ["without_users"]


def test_a_user_of_whom_there_is_nothing_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"without_users names 'pipelin', .* did you mean 'pipeline'\?"):
        open_traces(experiment(tmp_path, without_users=["pipelin"]))
    with pytest.raises(ExperimentError, match="without_users: 'ana' stands in the list twice"):
        experiment(tmp_path, without_users=["ana", "ana"])
    with pytest.raises(ExperimentError, match="without_users"):
        experiment(tmp_path, without_users="pipeline")


def test_a_trace_of_which_nothing_is_left_is_a_sentence(tmp_path: Path) -> None:
    declared = experiment(tmp_path, transforms=[{"limit": 2}], without_users=["pipeline"])
    with pytest.raises(TraceError, match="leaves no request"):
        open_traces(declared)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"service": {"prompts": 1.0}}, "service.prompts: there is no such setting; did you mean 'prompt'"),
        ({"service": {"prompt": -1.0}}, "service.prompt: .* greater than or equal to 0"),
        ({"service": {"prompt": 0, "output": 0}}, "service: prompt and output are both 0"),
        ({"service": {"window_s": 0}}, "service.window_s: .* greater than 0"),
        ({"goals": {"reading_tokens_per_s": 10}}, "goals.reading_tokens_per_s: needs goals.ttft_ms"),
    ],
)
def test_a_wrong_measure_is_a_sentence(tmp_path: Path, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExperimentError, match=sentence):
        experiment(tmp_path, **given)


def test_the_template_shows_the_keys_as_they_are_right(tmp_path: Path) -> None:
    shown = {name for name in ("without_users", "reading_tokens_per_s", r"window_s") if f"# {name}" in TEMPLATE}
    assert shown == {"without_users", "reading_tokens_per_s", "window_s"}
    uncommented = re.sub(
        r"^# (without_users|reading_tokens_per_s|\[service\]|prompt|output|window_s)", r"\1", TEMPLATE, flags=re.M
    )
    document = merged(tomllib.loads(uncommented), {"traces": ["chat.parquet"]})
    experiment(tmp_path)
    loaded = load_experiment(document, "x.toml", tmp_path)
    assert (loaded.service.prompt, loaded.service.output, loaded.service.window_s) == (1.0, 2.0, 60)
    assert loaded.goals.reading_tokens_per_s == 10


def test_from_the_file_to_the_report(tmp_path: Path) -> None:
    flood = [
        {"arrival_s": 0.001 * row, "prompt_tokens": 200, "output_tokens": 40, "user": "pipeline"} for row in range(40)
    ]
    chat = [{"arrival_s": 0.1 * row, "prompt_tokens": 20, "output_tokens": 10, "user": "ana"} for row in range(10)]
    pl.DataFrame(sorted(flood + chat, key=lambda row: row["arrival_s"])).write_parquet(tmp_path / "chat.parquet")
    (tmp_path / "experiment.toml").write_text("""
        traces = ["chat.parquet"]
        without_users = ["pipeline"]
        engine = { kind = "simulated" }
        modes = { continuous = { max_running = 4 } }
        policies = { fifo = {}, fair = {} }
        goals = { ttft_ms = 1000, reading_tokens_per_s = 20 }
        service = { prompt = 1.0, output = 3.0, window_s = 2.0 }
    """)
    done = replay("run", "experiment.toml", "--output", "run", "--no-plots", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert [trace["name"] for trace in manifest["traces"]] == ["chat", "chat without pipeline"]
    assert manifest["service"] == {"prompt": 1.0, "output": 3.0, "window_s": 2.0}
    assert len(manifest["cells"]) == 4
    text = (tmp_path / "run" / "comparison.md").read_text()
    section = text.partition("### Isolation")[2].partition("###")[0]
    ratios = {line.split(" | ")[1]: _ratio(line) for line in section.splitlines() if "| ana |" in line}
    assert ratios["fifo"] > ratios["fair"] > 1  # first come first served, the flood is served before her
    assert "### Fairness between users" in text
    assert "Service is 1 for a prompt token and 3 for an answer's" in text
    assert "The others are of windows of 2.00 s" in text
    summary = pl.read_parquet(tmp_path / "run" / "summary.parquet").filter(metric="service", by="all")
    assert summary.filter(trace="chat without pipeline")["value"].unique().to_list() == [10 * (20 + 3 * 10)]


def _ratio(line: str) -> float:
    found = re.search(r"\(([\d.]+)x\)", line)
    assert found is not None
    return float(found[1])

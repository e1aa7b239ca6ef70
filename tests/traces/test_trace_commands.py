"""The commands on traces, as they are typed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from replay.cli.trace import trace
from replay.errors import ExperimentError, OutputError, TraceError
from replay.traces.formats import formats
from replay.traces.reading import read_trace
from replay.traces.transforms import transforms


def run(*arguments: object, fails: type[Exception] | None = None, quiet: bool = False):
    result = CliRunner().invoke(trace, [str(argument) for argument in arguments], obj={"quiet": quiet})
    if fails is not None:
        assert isinstance(result.exception, fails), result.output
    elif result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "chat.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens,NumImages\n"
        "2024-05-10 00:00:00,10,5,0\n2024-05-10 00:00:01.5,20,0,0\n2024-05-10 00:00:02.25,30,7,1\n"
    )
    return path


def test_import_says_the_result_on_stdout_and_remarks_on_stderr(csv, tmp_path):
    out = tmp_path / "chat.parquet"
    result = run("import", "azure", csv, out)
    assert result.stdout == (
        f"{csv}: 3 rows read, 2 kept, 1 skipped (1 zero output tokens)\n{out}: 2 requests, span 2.25 s\n"
    )
    assert result.stderr == "columns left out: NumImages\n"
    assert read_trace(out).frame["prompt_tokens"].to_list() == [10, 30]


def test_a_log_of_ones_own_is_imported_by_the_names_of_its_columns(tmp_path):
    log, out = tmp_path / "log.jsonl", tmp_path / "log.parquet"
    log.write_text(
        '{"ts": 10535, "in": 3, "out": 5, "tenant": "a", "status": 200}\n'
        '{"ts": 0, "in": 4, "out": 6, "tenant": "b", "status": 200}\n'
        '{"ts": 27482, "in": 5, "out": 7, "tenant": null, "status": 200}\n'
        '{"ts": 99999, "in": 5, "out": 0, "tenant": "a", "status": 500}\n'
        '{"ts": 99999, "in": 5, "out": 0, "tenant": "a", "status": 200}\n'
    )
    columns = "arrival_ms=ts,prompt_tokens=in,output_tokens=out,user=tenant"
    result = run("import", "table", log, out, "--map", columns, "-o", "keep=status=200")
    assert result.stdout == (
        f"{log}: 5 rows read, 3 kept, 2 skipped (1 status is not 200, 1 zero output tokens)\n"
        f"{out}: 3 requests, span 27.482 s\n"
    )
    assert result.stderr == "1 row out of order: sorted by arrival\n"
    assert read_trace(out).frame.select("arrival", "user").rows() == [
        (0, "b"),
        (10_535_000_000, "a"),
        (27_482_000_000, None),
    ]
    run("import", "table", log, out, "--force", "--strict", "--map", columns, fails=TraceError)
    run("import", "azure", log, out, "--force", "--map", columns, fails=ExperimentError)
    run("import", "auto", log, out, "--force", "--map", columns, fails=ExperimentError)
    wrong = run("import", "table", log, out, "--force", "-o", "kep=status=200", fails=ExperimentError)
    assert str(wrong.exception) == "table: kep: there is no such setting; did you mean 'keep'?"
    twice = ("--map", columns, "-o", "map=user=tenant")
    wrong = run("import", "table", log, out, "--force", *twice, fails=ExperimentError)
    assert str(wrong.exception) == "--map and -o map are the same: leave one of them"


def test_formats_lists_all_and_shows_the_settings_of_one():
    listing = run("formats").stdout
    assert all(f"\n{name} " in f"\n{listing}" for name in formats)
    shown = run("formats", "table").stdout
    assert shown.startswith("table: Any CSV, JSON or Parquet file with a row for each request")
    assert "\nSettings:\n  map: OURS=THEIRS,..." in shown
    assert (
        "  hash_tail: whether a prompt's last, partial block has a hash (ceil) or not (floor) (default: ceil)" in shown
    )
    assert "None" not in shown
    wrong = run("formats", "tabel", fails=ExperimentError)
    assert str(wrong.exception) == "there is no trace format 'tabel': did you mean 'table'?"


def test_a_format_that_is_none_and_one_that_cannot_be_written_are_told_what_would_do(csv, tmp_path):
    wrong = run("import", "csv", csv, tmp_path / "out.parquet", fails=ExperimentError)
    assert "a log of your own is a 'table'" in str(wrong.exception)
    for name in ("auto", "table", "nothing"):
        wrong = run("export", name, csv, tmp_path / "out", fails=ExperimentError)
        sentence = f"a trace cannot be written as {name}; known: aiperf, azure, mooncake, vidur, vllm"
        assert str(wrong.exception) == sentence


def test_quiet_leaves_the_remarks_out(csv, tmp_path):
    result = run("import", "azure", csv, tmp_path / "chat.parquet", quiet=True)
    assert (result.stderr, "2 requests" in result.stdout) == ("", True)


def test_show_speaks_text_and_strict_json(csv, tmp_path):
    run("import", "azure", csv, tmp_path / "chat.parquet")
    assert "rows          2\nspan          2.25 s\n" in run("show", tmp_path / "chat.parquet").stdout
    found = json.loads(run("show", "--json", tmp_path / "chat.parquet").stdout, parse_constant=pytest.fail)
    assert (found["rows"], found["span_s"], found["users"][0]["user"]) == (2, 2.25, None)
    assert "imported as azure from chat.csv" in found["history"][0]


def test_transform_takes_fragments_in_order_and_keeps_a_history(csv, tmp_path):
    run("import", "azure", csv, tmp_path / "chat.parquet")
    out = tmp_path / "out.parquet"
    result = run("transform", tmp_path / "chat.parquet", out, "-t", "speed = 2.0\nscale_tokens = 0.5", "-t", "limit=1")
    assert [line.split(":")[0] for line in result.stdout.splitlines()[:3]] == [
        "speed = 2.0",
        "scale_tokens = 0.5",
        "limit = 1",
    ]
    written = read_trace(out)
    assert written.frame["prompt_tokens"].to_list() == [5]
    assert written.history[1:] == result.stdout.splitlines()[:3]
    braces = ("-t", "{ speed = 2.0 }", "-t", "{scale_tokens = 0.5}", "-t", " {limit=1}")  # as an experiment has them
    assert run("transform", tmp_path / "chat.parquet", out, "--force", *braces).stdout == result.stdout


@pytest.mark.parametrize(
    ("fragment", "sentence"),
    [
        ("speed = ", "-t 'speed = ': is not TOML such as 'speed = 2.0'"),
        ("", "-t '': names no transform"),
        ("sped = 2", "-t 'sped = 2': there is no transform 'sped': did you mean 'speed'?"),
        ("{ speed = 2", "-t '{ speed = 2': is not TOML such as 'speed = 2.0'"),
        ("{}", "-t '{}': names no transform"),
    ],
)
def test_a_wrong_transform_is_refused_before_the_trace_is_read(tmp_path, fragment, sentence):
    result = run("transform", tmp_path / "absent", tmp_path / "out", "-t", fragment, fails=ExperimentError)
    assert sentence in str(result.exception)


def test_generate_makes_the_trace_and_never_replaces_one_unasked(tmp_path):
    spec, out = tmp_path / "spec.toml", tmp_path / "out.parquet"
    spec.write_text(
        'duration = "2s"\n[[users]]\nname = "a"\ncount = 4\n'
        "prompt = { median = 8, most = 9 }\noutput = { median = 5, most = 9 }\n"
    )
    assert "4 requests" in run("generate", spec, out).stdout
    before = out.read_bytes()
    result = run("generate", spec, out, fails=OutputError)
    assert "is there already" in str(result.exception)
    assert out.read_bytes() == before
    run("generate", "--force", spec, out)
    assert out.read_bytes() == before  # the same, to the byte


def test_a_trace_without_rows_fails_with_one_sentence(parquet):
    result = run("show", parquet(arrival_s=[]), fails=TraceError)
    assert result.exit_code != 0
    assert "holds no requests" in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["import", "show", "transform", "generate"])
def test_help_has_an_example_and_lists_what_there_is(command):
    text = run(command, "-h").stdout
    assert f"Example:\n    replay trace {command} " in text
    listed = {"import": formats, "transform": transforms}.get(command, ())
    assert all(f"  {name} " in text for name in listed)


def test_help_does_not_import_polars():
    code = (
        "import sys; from click.testing import CliRunner; from replay.cli.trace import trace; "
        "assert CliRunner().invoke(trace, ['show', '-h']).exit_code == 0; print('polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

"""What an import says of its rows, in every format: read, kept, skipped and why; and that `--strict` skips none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from test_trace_auto import EXAMPLES, NEEDED, Example

from replay.cli.trace import trace
from replay.errors import TraceError
from replay.traces.formats import formats, import_trace

# What stands for an answer's length in the examples, and for none.
LENGTHS = r'("(?:Output Length|output_length|completion|output_toks|out)": |"intValue": ")(?:5|4)\b'
TEXTS = r'("output": |"from": "gpt", "value": )"hi"'
FITTED = "servegen"  # whose requests are drawn from what was fitted: none of them can have failed


def command(*arguments: str) -> Any:
    result = CliRunner().invoke(trace, arguments, obj={})
    if isinstance(result.exception, TraceError):
        return result
    assert result.exception is None, result.output
    return result


def options(name: str) -> list[str]:
    return [part for key, value in NEEDED.get(name, {}).items() for part in ("-o", f"{key}={value}")]


def failed(content: str | pl.DataFrame, file: str) -> str | pl.DataFrame:
    """The file with its last request's answer gone."""
    if isinstance(content, pl.DataFrame):
        return content.with_columns(output_tokens=0)
    if file.endswith(".csv"):
        head, row = content.splitlines()[0].split(","), content.splitlines()[-1].split(",")
        outputs = {"GeneratedTokens", "Response tokens", "token_size", "output_tokens", "output_len"}
        (column,) = [head.index(name) for name in {*outputs, "num_decode_tokens"} & {*head}]
        row[column] = "0"
        return f"{','.join(head)}\n{','.join(row)}\n"
    if re.search(TEXTS, content):
        return re.sub(TEXTS, r'\1""', content)
    return re.sub(LENGTHS, r"\g<1>0", content)


def both(name: str) -> Example:
    """The format's example, and after it the same with an answer of no tokens."""
    files: dict[str, str | pl.DataFrame] = {}
    for file, content in EXAMPLES[name].files.items():
        bad = failed(content, file)
        if isinstance(content, pl.DataFrame):
            assert isinstance(bad, pl.DataFrame)
            files[file] = pl.concat([content, bad.cast(dict(content.schema))])
        elif file.endswith(".csv"):
            assert isinstance(bad, str)
            files[file] = content + bad.splitlines()[-1] + "\n"
        elif file.endswith(".json") and name != "weka":
            assert isinstance(bad, str)
            first, second = json.loads(content), json.loads(bad)
            files[file] = json.dumps(first + second if isinstance(first, list) else joined(first, second))
        elif name == "weka":
            assert isinstance(bad, str)
            files[file] = content if file == "a.json" else bad
        else:
            assert isinstance(bad, str)
            files[file] = content + bad.splitlines()[-1].replace('"session_id": "a"', '"session_id": "z"') + "\n"
    return Example(files)


def joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """OTLP's two exports as one."""
    text = json.dumps(second).replace('"spanId": "s"', '"spanId": "z"').replace('"traceId": "t"', '"traceId": "z"')
    return {"resourceSpans": first["resourceSpans"] + json.loads(text)["resourceSpans"]}


@pytest.mark.parametrize("name", formats)
def test_rows_read_kept_and_skipped_are_said_and_the_span_with_its_unit(tmp_path: Path, name: str) -> None:
    path, out = EXAMPLES[name].write(tmp_path / "in"), tmp_path / "trace.parquet"
    said = command("import", name, str(path), str(out), *options(name)).stdout.splitlines()
    found = re.fullmatch(re.escape(str(path)) + r": ([\d,]+) rows? read, ([\d,]+) kept, 0 skipped", said[0])
    assert found, said
    assert found[1] == found[2]
    assert re.fullmatch(re.escape(str(out)) + rf": {found[2]} requests?, span [\d,.]+ s(?: \([\d.]+ \w+\))?", said[1])


@pytest.mark.parametrize("name", [name for name in formats if name != FITTED])
def test_what_has_no_answer_is_skipped_by_reason_and_refused_if_strict(tmp_path: Path, name: str) -> None:
    path, settings = both(name).write(tmp_path / "in"), NEEDED.get(name, {})
    read = import_trace(name, path, settings=settings)
    assert sum(read.skipped.values()) == read.rows_read - read.frame.height == 1
    arguments = ["import", name, str(path), str(tmp_path / "trace.parquet"), *options(name)]
    ((reason, _),) = read.skipped.items()
    assert f" read, {read.frame.height} kept, 1 skipped (1 {reason})\n" in command(*arguments).stdout
    refused = command(*arguments, "--force", "--strict").exception
    assert isinstance(refused, TraceError)
    assert str(refused).endswith(f"{reason}, which --strict refuses")

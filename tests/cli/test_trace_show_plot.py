"""`replay trace show --plot`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replay.cli.trace import trace
from replay.errors import OutputError


def show(*arguments: object) -> Result:
    result = CliRunner().invoke(trace, ["show", *map(str, arguments)], obj={})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def two_requests(tmp_path: Path) -> Path:
    import polars as pl

    frame = pl.DataFrame({"arrival_s": [0.0, 1.0], "prompt_tokens": [9, 20], "output_tokens": [3, 4]})
    frame.write_parquet(tmp_path / "two.parquet")
    return tmp_path / "two.parquet"


def test_it_draws_into_a_folder_says_what_is_there_and_replaces_it_only_when_told(
    two_requests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = show(two_requests, "--plot").stdout
    assert "rows          2\n" in said
    assert "pictures      outputs/two-plots: gaps, lengths, memory, rate (each as PNG and SVG)\n" in said
    assert "              no users: the trace names no users\n" in said
    assert sorted(file.name for file in (tmp_path / "outputs" / "two-plots").iterdir()) == [
        f"{name}.{kind}" for name in ("gaps", "lengths", "memory", "rate") for kind in ("png", "svg")
    ]
    with pytest.raises(OutputError, match=r"gaps.png: is there already"):
        show(two_requests, "--plot")
    seen = Path("outputs/two-plots")
    (seen / "gaps.png").write_bytes(b"")
    again = json.loads(show("--json", "--plot", seen, two_requests, "--force").stdout)
    assert (seen / "gaps.png").stat().st_size > 0
    assert again["rows"] == 2
    assert again["pictures"][0] == str(seen / "gaps.png")
    assert set(again["not_drawn"]) == {"prefixes", "users"}


def test_force_alone_forces_nothing(two_requests: Path) -> None:
    result = show(two_requests, "--force")
    assert (result.exit_code, "--force replaces pictures; name --plot too" in result.stderr) == (2, True)

"""The page on generating a trace: every block of it is a file that makes what the page says, and it has every word."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from replay.cli.trace import trace as trace_commands
from replay.clock import NANOSECONDS
from replay.traces.generate import generate_trace
from replay.traces.generating.classes import ServiceClass
from replay.traces.generating.lengths import FORMS
from replay.traces.generating.patterns import Diurnal, OnOff, Spike
from replay.traces.generating.prefixes import Prefix
from replay.traces.generating.rates import Phase
from replay.traces.generating.sections import Section
from replay.traces.generating.sessions import ClosedLoop, Sessions
from replay.traces.generating.specification import Spec, User

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "generating-a-trace.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def frames(tmp_path) -> dict[str, pl.DataFrame]:
    """What each block makes, by the name of its first user."""
    shutil.copy(ROOT / "traces" / "sample.parquet", tmp_path / "chat.parquet")
    made = {}
    for block in BLOCKS:
        path = tmp_path / "spec.toml"
        path.write_text(block, encoding="utf-8")
        name = re.search(r'\[\[users\]\]\nname +=\s"(.*?)"', block)
        assert name is not None
        made[name[1]] = generate_trace(path).frame
    return made


def within(frame: pl.DataFrame, begin: float, end: float) -> int:
    return frame.filter(pl.col("arrival").is_between(begin * NANOSECONDS, end * NANOSECONDS)).height


def test_every_block_makes_what_the_page_says(frames):
    assert len(frames) == len(BLOCKS) == 7
    assert frames["ada"].height == pytest.approx(1200, abs=4 * 1200**0.5)
    people = frames["people"].filter(pl.col("user") == "people")
    assert within(people, 13 * 3600, 15 * 3600) > 4 * within(people, 1 * 3600, 3 * 3600)
    assert within(people, 9 * 3600, 9 * 3600 + 600) > 3 * within(people, 9 * 3600 + 600, 9 * 3600 + 1200)
    client = frames["client-17"]
    assert within(client, 1200, 1800) > 100
    assert within(client, 660, 1190) == 0
    seen = pl.read_parquet(ROOT / "traces" / "sample.parquet").select("prompt_tokens", "output_tokens").rows()
    assert set(frames["replica"].select("prompt_tokens", "output_tokens").rows()) <= set(seen)
    customers = frames["customer"]["user"].value_counts(sort=True)
    assert customers["user"][0] == "customer-1"
    assert set(frames["customer"]["priority"]) == {0, 1}
    assert frames["chat"]["prefix_hashes"].drop_nulls().n_unique() == 20
    coder = frames["coder"].filter(pl.col("user") == "coder")
    assert coder.filter(pl.col("turn") == 0)["prompt_tokens"].unique().to_list() == [2048 + 3000]
    assert (coder["prompt_tokens"] + coder["output_tokens"]).max() <= 32_768
    assert frames["coder"].filter(pl.col("user") == "load").height == 16 * 50


def words(table: type[Section]) -> set[str]:
    return set(table.model_fields)


TABLES = (User, Spec, ServiceClass, Sessions, ClosedLoop, Phase, Prefix, Diurnal, Spike, OnOff)
WORDS = FORMS.keys() | {word for table in TABLES for word in words(table)} - {"users", "prefixes"}


@pytest.mark.parametrize("word", sorted(WORDS))
def test_the_page_and_the_help_know_every_word(word):
    help_text = CliRunner().invoke(trace_commands, ["generate", "-h"]).stdout
    for text in (PAGE, help_text):
        assert re.search(rf"\b{word}\b", text)


def test_without_a_second_name_the_trace_lies_beside_its_specification(tmp_path):
    path = tmp_path / "quick.toml"
    path.write_text(BLOCKS[0], encoding="utf-8")
    result = CliRunner().invoke(trace_commands, ["generate", str(path)])
    assert result.exit_code == 0, result.output
    assert pl.read_parquet(tmp_path / "quick.parquet").height > 1000

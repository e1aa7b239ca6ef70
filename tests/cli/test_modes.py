"""`replay modes`: the modes, the batch sizes that adapt, and all that is known of one of them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from replay.cli.modes import modes_command
from replay.errors import ExperimentError
from replay.scheduler import batch_sizes, modes


def output(*arguments: str) -> str:
    result = CliRunner().invoke(modes_command, arguments)
    assert result.exit_code == 0
    return result.output


def test_modes_and_batch_sizes_are_listed_with_their_settings() -> None:
    listed = output()
    for name in [*modes, *batch_sizes]:
        assert f"\n{name} " in f"\n{listed}"
    assert 'max_running = 8  # resident requests, at most; a number, or "adaptive" or "aimd"' in listed
    assert "long_queue = 100  # waiting requests: above them, long_size" in listed
    assert "tpot_ms = 50.0  # the goal: mean time per token, in ms, at most" in listed


def test_the_help_names_every_batch_size() -> None:
    told = output("--help")
    for name in batch_sizes:
        assert f"\n  {name} " in told.split("Batch sizes that adapt:")[1]


@pytest.mark.parametrize("name", list(batch_sizes))
def test_one_batch_size_is_told_with_its_weakness(name: str) -> None:
    told = output(name)
    assert told.startswith(f"{name}\n")
    assert "Does badly:" in told
    assert "Options:\n" in told


def test_a_wrong_name_is_looked_for_among_both() -> None:
    result = CliRunner().invoke(modes_command, ["amid"])
    assert isinstance(result.exception, ExperimentError)
    assert str(result.exception) == "there is no mode or batch size 'amid': did you mean 'aimd'?"

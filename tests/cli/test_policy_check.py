"""`replay policy check`: what it prints of a policy that keeps its promises, of one that does not, and of misuse."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replay.cli.policy_check import misspelt, policy
from replay.cli.run import run
from replay.contract.promises import promises
from replay.errors import ExperimentError, OutputError
from replay.scheduler import policies

HEAD = "from dataclasses import dataclass, field\nfrom replay.scheduler import Ordered, Policy, Request, Step\n\n\n"


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(policy, ["check", *map(str, arguments)])


def write(file: Path, name: str, body: str, base: str = "Ordered") -> str:
    """A file with one policy; the specification that names it."""
    file.write_text(f'{HEAD}@dataclass\nclass {name}({base}):\n    """A rule."""\n\n{body}')
    return f"{file}:{name}"


BY_ID = (
    "    def key(self, request: Request, step: Step) -> float:\n        return sum(map(ord, request.request_id)) % 5\n"
)
IDLE = "    def schedule(self, step: Step) -> None:\n        if step.running:\n            super().schedule(step)\n"


def test_a_good_policy_keeps_every_promise() -> None:
    done = check("sjf", "--examples", "3", "--set", "ageing=2.0")
    assert done.exit_code == 0, done.output
    for name, promise in promises.items():
        (line,) = (line for line in done.stdout.splitlines() if line.startswith(f"{name} "))
        assert line.split(maxsplit=2)[1:] == ["kept", promise.sentence]
    assert done.stdout.endswith("sjf keeps every promise that it makes (3 traces each, seed 0)\n")
    assert f"[{len(promises)}/{len(promises)}] shifted ...\n" in done.stderr


def test_a_misspelt_method_is_remarked_upon(tmp_path: Path) -> None:
    spec = write(tmp_path / "mine.py", "Spelt", BY_ID.replace("def key", "def kye").replace("% 5", "* 0"))
    done = check(spec, "--examples", "1")
    assert done.exit_code == 0, done.output
    assert "replay: Spelt.kye is no method of its bases, and nobody calls it: was 'key' meant?" in done.stderr
    ours = [policies[name] for name in policies if policies[name].__module__.startswith("policies.")]
    assert ours
    assert not any(map(misspelt, ours))


def test_a_broken_promise_is_shown_with_a_trace_that_can_be_replayed(tmp_path: Path) -> None:
    spec, saved = write(tmp_path / "mine.py", "ById", BY_ID), tmp_path / "broken.parquet"
    done = check(spec, "--examples", "6", "--save", saved)
    assert done.exit_code == 1
    assert "\nnames       BROKEN  Who is who does not matter" in done.stdout
    assert "\nserved      kept    " in done.stdout
    assert "\n    row  arrival s  prompt  output" in done.stdout
    assert "\n    with " in done.stdout
    assert " KV blocks of " in done.stdout
    assert done.stdout.endswith("ById breaks 1 promise (6 traces each, seed 0)\n")
    (command,) = (line for line in done.stdout.splitlines() if line.startswith("  replay run "))
    again = CliRunner().invoke(run, [*shlex.split(command)[2:], "--no-plots", "--output", str(tmp_path / "run")])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "run" / "comparison.md").is_file()


def test_replays_that_do_not_end_are_shown_once(tmp_path: Path) -> None:
    done = check(write(tmp_path / "mine.py", "Idler", IDLE), "--examples", "3")
    assert done.exit_code == 1
    assert "\n  At step " in done.stdout
    assert "no progress: request '0' (row 0) is never given tokens" in done.stdout
    assert "the policy Idler names no time to look again" in done.stdout
    assert done.stdout.count("BROKEN") == 1
    assert done.stdout.count("unknown Replays do not come to their end") == len(promises) - 1
    assert done.stdout.count("  row  arrival s") == 1


def test_a_rate_limit_idles_on_purpose() -> None:
    done = check("rate_limit", "--examples", "15", "--set", "per_minute=1")
    assert done.exit_code == 0, done.output
    assert "\nbusy        on purpose: users wait for their minute, and the engine with them\n" in done.stdout


def test_a_promise_that_is_broken_on_purpose_is_not_held_to(tmp_path: Path) -> None:
    body = '    breaks = {"names": "it goes by the names"}\n\n' + BY_ID
    done = check(write(tmp_path / "mine.py", "OnPurpose", body), "--examples", "3")
    assert done.exit_code == 0, done.output
    assert "\nnames       on purpose: it goes by the names\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sfj"], "there is no policy 'sfj': did you mean 'sjf'?"),
        (["./nowhere.py:A"], "./nowhere.py: there is no such file"),
        (["sjf", "--set", "agein=1"], "--set: sjf.agein: there is no such setting; did you mean 'ageing'?"),
        (["sjf", "--set", "ageing=[1.0, 2.0]"], "one policy is checked at a time; 2 settings of it are given"),
    ],
)
def test_misuse_is_one_sentence(arguments: list[str], sentence: str) -> None:
    done = check(*arguments)
    assert isinstance(done.exception, ExperimentError)
    assert done.exception.exit_status == 2
    assert sentence in str(done.exception)


def test_a_place_that_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    done = check("fifo", "--save", tmp_path / "nowhere" / "trace.parquet")
    assert isinstance(done.exception, OutputError)
    assert done.stdout == ""

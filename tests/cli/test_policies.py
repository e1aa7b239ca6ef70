"""Policies from elsewhere: a file of one's own, an installed package; and what `replay policies` tells of them all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from replay.cli.policies import policies_command
from replay.cli.run import run
from replay.errors import ExperimentError
from replay.report import write_report
from replay.scheduler import admissions, policies

HEAD = "from dataclasses import dataclass, field\nfrom replay.scheduler import Ordered, Policy, policy\n\n\n"
PLAIN = '@dataclass\nclass {name}(Ordered):\n    """The newest first.\n\n    Does badly: much."""\n    most: int = 3\n'
SAMPLE = str(Path("traces/sample.parquet").resolve())
SIMULATED = ["--trace", SAMPLE, "--limit", "8", "--mode", "continuous", "--set", "engine.kind=simulated", "--no-plots"]


def write(file: Path, text: str) -> Path:
    file.write_text(HEAD + text, encoding="utf-8")
    return file


def plain(name: str) -> str:
    return PLAIN.format(name=name)


def replay(
    *arguments: str | Path, cwd: Path | None = None, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `replay` in a process of its own, with `path` among the places where packages are."""
    places = os.pathsep.join(str(place) for place in (path, Path().resolve()) if place is not None)
    return subprocess.run(
        [sys.executable, "-m", "replay", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": places},
        timeout=120,
        check=False,
    )


def fault(*arguments: str) -> str:
    """What is wrong with a policy's name."""
    result = CliRunner().invoke(policies_command, arguments)
    assert isinstance(result.exception, ExperimentError), result.output
    return str(result.exception)


def test_a_file_is_a_policy_from_the_run_to_a_report_without_it(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py", plain("Newest"))
    folder = tmp_path / "run"
    done = replay(
        "run", *SIMULATED, "--policy", "./mine.py:Newest", "--policy", "fifo", "--output", folder, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "continuous-Newest: 8 of 8 completed" in done.stderr
    assert sorted(cell.name for cell in (folder / "cells").iterdir()) == ["continuous-Newest", "continuous-fifo"]
    manifest = json.loads((folder / "manifest.json").read_text())
    mine, fifo = manifest["policies"]
    assert mine == {"name": "Newest", "path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    assert fifo["name"] == "fifo"
    assert Path(fifo["path"]).name == "fifo.py"
    assert '"./mine.py:Newest"' in (folder / "experiment.toml").read_text()
    file.unlink()
    report = write_report(folder, plots=False)
    assert "Newest" in report.table
    assert set(pl.read_parquet(folder / "summary.parquet")["policy"].unique()) >= {"Newest", "fifo"}


def test_an_experiment_names_a_file_beside_it_with_options(tmp_path: Path) -> None:
    (tmp_path / "exp").mkdir()
    write(tmp_path / "exp" / "mine.py", plain("Beside"))
    experiment = tmp_path / "exp" / "e.toml"
    experiment.write_text(
        f'traces = ["{SAMPLE}"]\n[engine]\nkind = "simulated"\n[modes]\nstatic = {{}}\n'
        '[policies]\nfifo = {}\n"./mine.py:Beside" = { most = [1, 2] }\n'
    )
    result = CliRunner().invoke(run, [str(experiment), "--dry-run"])
    assert result.exit_code == 0, result.exception
    assert [cell for cell in result.output.split() if "Beside" in cell and cell.startswith("static-")] == [
        "static-Beside-most=1",
        "static-Beside-most=2",
    ]
    experiment.write_text(experiment.read_text().replace("most", "mosd"))
    result = CliRunner().invoke(run, [str(experiment), "--dry-run"])
    assert "policies.Beside.mosd: there is no such setting; did you mean 'most'?" in str(result.exception)


def test_options_of_a_file_can_be_set_by_its_name_as_given(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py", plain("Settable"))
    arguments = [*SIMULATED, "--policy", f"{file}:Settable", "--dry-run", "--set"]
    result = CliRunner().invoke(run, [*arguments, f'policies."{file}:Settable".most=[4, 5]'])
    assert result.exit_code == 0, result.exception
    assert "continuous-Settable-most=5" in result.output
    result = CliRunner().invoke(run, [*arguments, f'policies."{file}:Settable".most="x"'])
    assert "policies.Settable.most: input should be a valid integer" in str(result.exception)


def test_all_policies_and_a_file_beside_them(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py", plain("Extra"))
    result = CliRunner().invoke(run, [*SIMULATED, "--policy", "all", "--policy", f"{file}:Extra", "--dry-run"])
    assert result.exit_code == 0, result.exception
    assert {"continuous-Extra", "continuous-fifo", "continuous-vtc"} <= set(result.output.split())


def test_a_file_with_one_policy_needs_no_name_and_a_registered_one_keeps_its_own(tmp_path: Path) -> None:
    registered = write(tmp_path / "one.py", "@policy('newest_first')\n" + plain("Given"))
    for spec in (f"{registered}", f"{registered}:Given"):
        assert CliRunner().invoke(policies_command, [spec]).output.startswith("newest_first\n\nThe newest first.\n")


def test_what_lies_beside_a_file_can_be_imported_and_nothing_is_left_there(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("MOST = 17\n")
    text = "from beside_it import MOST\n\n\n" + plain("Importing").replace("= 3", "= MOST")
    told = CliRunner().invoke(policies_command, [str(write(tmp_path / "mine.py", text))]).output
    assert "most = 17" in told
    assert sorted(file.name for file in tmp_path.iterdir()) == ["beside_it.py", "mine.py"]


def test_a_file_that_came_with_replay_is_the_policy_that_it_registered() -> None:
    told = CliRunner().invoke(policies_command, ["policies/fifo.py"])
    assert told.output.startswith("fifo: ")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("Mien", plain("Mine1"), "mine.py: there is no class 'Mien'; did you mean 'Mine1'?"),
        ("", plain("Mine2"), "mine.py: there is no class ''; known: Mine2"),
        ("A", "A = 3\n", "mine.py: A is no policy; a policy is a class on Ordered, PerUser, Ranked or Policy"),
        ("A", "class A:\n    pass\n", "mine.py: A is no policy"),
        ("A", "class A(Ordered):\n    'A.'\n", "mine.py: class A is no dataclass, so its options would be lost"),
        ("A", "@dataclass\nclass A(Ordered):\n    pass\n", "mine.py: class A has no docstring; its first line is"),
        ("A", "@dataclass\nclass A(Policy):\n    'A.'\n", "class A is no whole policy: it lacks schedule"),
        ("A", "class A(:\n", "mine.py, line 5: invalid syntax"),
        ("A", "import nowhere_at_all\n", "mine.py, line 5: No module named 'nowhere_at_all'"),
        ("A", "\n1 / 0\n", "mine.py, line 6: division by zero"),
        ("A", "{}['x']\n", "mine.py, line 5: KeyError: 'x'"),
        ("A", "raise SystemExit(3)\n", "mine.py, line 5: SystemExit: 3"),
        ("fifo", plain("fifo"), "mine.py: class fifo: the name 'fifo' is taken by another policy"),
        ("A", "@policy('fifo')\n" + plain("A"), "two policy entries are named 'fifo'; give this one another name"),
        ("A", "@policy('bare')\nclass A(Ordered):\n    'A.'\n", "put @dataclass between @policy and class A"),
        (None, "", "mine.py: holds no policy; a policy is a class on Ordered"),
        (None, plain("First") + "\n\n" + plain("Second"), "mine.py: holds 2 policies: say which, as "),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path, name: str | None, text: str, sentence: str) -> None:
    file = write(tmp_path / "mine.py", text)
    fifo = policies["fifo"]
    told = fault(str(file) if name is None else f"{file}:{name}")
    assert sentence in told
    assert "\n" not in told
    assert policies["fifo"] is fifo


def test_a_file_that_is_not_there_and_a_name_that_is_no_file(tmp_path: Path) -> None:
    assert fault("./nowhere.py:A") == "./nowhere.py: there is no such file (looked for nowhere.py)"
    assert "such as ./mine.py:Name" in fault("./mine:A")
    assert fault("fifi") == "there is no policy or admission rule 'fifi': did you mean 'fifo'?"
    result = CliRunner().invoke(run, [*SIMULATED, "--policy", f"{tmp_path}/nowhere.py:A", "--dry-run"])
    assert "there is no such file" in str(result.exception)


def test_two_files_of_one_name_are_refused_and_so_is_one_policy_named_twice(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, second = write(tmp_path / "a.py", plain("Twin")), write(tmp_path / "other" / "a.py", plain("Twin"))
    policies_of = [part for file in (first, second) for part in ("--policy", f"{file}:Twin")]
    result = CliRunner().invoke(run, [*SIMULATED, *policies_of, "--dry-run"])
    assert "other/a.py: class Twin: the name 'Twin' is taken by another policy" in str(result.exception)
    result = CliRunner().invoke(run, [*SIMULATED, "--policy", f"{first}:Twin", "--policy", str(first), "--dry-run"])
    assert "the policy 'Twin' is named twice" in str(result.exception)


def install(place: Path, name: str, text: str, entry: str) -> None:
    """An installed package: a module, and the metadata that an installer leaves, with an entry point."""
    place.mkdir(exist_ok=True)
    write(place / f"{name}.py", text)
    metadata = place / f"{name}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(f"[replay.policies]\n{entry}\n")
    (metadata / "RECORD").write_text("")


def test_the_policies_of_installed_packages_are_there_and_a_broken_one_stops_nobody(tmp_path: Path) -> None:
    place = tmp_path / "site"
    install(place, "elsewhere", plain("Elsewhere"), "else_first = elsewhere:Elsewhere")
    install(place, "several", "@policy('third')\n" + plain("Third"), "several = several")
    install(place, "broken_one", "import nowhere_at_all\n", "broken = broken_one:Broken")
    install(place, "taken_one", "@policy('fifo')\n" + plain("Taken"), "taken = taken_one:Taken")
    listed = replay("policies", path=place)
    assert listed.returncode == 0, listed.stderr
    assert "  else_first " in listed.stdout
    assert "  third " in listed.stdout
    warning = "warning: broken-one 1.2: its policy 'broken' cannot be used: "
    (line,) = (line for line in listed.stderr.splitlines() if "broken" in line)
    assert line.replace("broken_one 1.2", "broken-one 1.2").startswith(warning)
    assert line.endswith("broken_one.py, line 5: No module named 'nowhere_at_all'")
    assert "taken_one 1.2: its policy 'taken' cannot be used: " in listed.stderr
    assert "two policy entries are named 'fifo'" in listed.stderr
    ran = replay(
        "run", *SIMULATED, "--policy", "else_first", "--policy", "third", "--dry-run", path=place, cwd=tmp_path
    )
    assert ran.stdout.split() == ["continuous-else_first", "continuous-third"]
    asked = replay("-q", "run", *SIMULATED, "--policy", "broken", "--dry-run", path=place, cwd=tmp_path)
    assert asked.returncode == 2
    assert asked.stderr.count("its policy 'broken' cannot be used") == 1
    assert "Traceback" not in asked.stderr


def test_every_policy_is_listed_once_and_what_all_share_is_told_once() -> None:
    listed = CliRunner().invoke(policies_command).output
    for name in [*policies, *admissions]:
        assert listed.count(f"\n  {name} ") == 1, name
    assert listed.count("whether who is next may join") == 1
    assert "One level of priority is worth `band_s` seconds of waiting. [band_s]" in listed
    built_in = [name for name in policies if policies[name].__module__.startswith("policies.")]
    assert len(listed.splitlines()) < 25 + len(policies)
    assert len(built_in) >= 30


@pytest.mark.parametrize("name", [name for name in policies if policies[name].__module__.startswith("policies.")])
def test_one_policy_is_told_with_its_rule_options_source_and_failings(name: str) -> None:
    told = CliRunner().invoke(policies_command, [name]).output
    assert told.startswith(f"{name}: ")
    assert "\nDoes badly: " in told
    assert f"\nFile: policies/{Path(policies[name].__module__.replace('.', '/')).name}.py\n" in told
    assert "\nSource: " in told


def test_options_are_told_as_an_experiment_has_them_tables_too(tmp_path: Path) -> None:
    told = CliRunner().invoke(policies_command, ["hybrid"]).output
    assert "  band_s = 30.0  # seconds of waiting that one level is worth\n" in told
    assert '  admission = "headroom"  # ' in told
    text = plain("Tabled").replace(
        "    most: int = 3\n", "    shares: dict[str, float] = field(default_factory=dict)\n"
    )
    text += "    more: dict[str, float] = field(default_factory=lambda: {'ada': 2.0})\n"
    told = CliRunner().invoke(policies_command, [str(write(tmp_path / "mine.py", text))]).output
    assert "  shares = unset\n" in told
    assert "  more = { ada = 2.0 }\n" in told


def test_an_admission_rule_and_the_option_itself_are_told() -> None:
    told = CliRunner().invoke(policies_command, ["past_future"]).output
    assert told.startswith("past_future\n\nWho joins ")
    assert "Does badly:" in told
    assert "\n  window = " in told
    told = CliRunner().invoke(policies_command, ["admission"]).output
    assert told.startswith("Every policy that admits in an order takes admission: ")
    for name in admissions:
        assert f"\n  {name} " in told


@pytest.mark.parametrize(
    "arguments", [["policies"], ["policies", "vtc"], ["trace", "formats"], ["trace", "formats", "table"]], ids=" ".join
)
def test_on_a_terminal_of_eighty_columns_nothing_is_wider(arguments: list[str]) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 80))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "replay", *arguments]
    process = subprocess.Popen(command, stdout=theirs, stdin=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    complaints = process.communicate(timeout=60)[1]
    lines = shown.decode().replace("\r", "").splitlines()
    assert (process.returncode, complaints) == (0, b"")
    assert 60 < max(map(len, lines)) <= 80


def test_the_listing_imports_no_model_no_plots_and_no_test_library() -> None:
    script = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from replay.cli import group\n"
        "assert 'vtc' in CliRunner().invoke(group, ['policies']).output\n"
        "heavy = {'torch', 'transformers', 'hypothesis', 'seaborn', 'matplotlib', 'polars'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")

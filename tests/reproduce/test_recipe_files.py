"""Recipes as files: what is wrong with one is told with file and key, and those that come with replay are right."""

from __future__ import annotations

import tomllib
from pathlib import Path

import polars as pl
import pytest
from recipes import write_recipe

from replay.errors import ExperimentError
from replay.reproduce.arms import laid_over
from replay.reproduce.findings import find
from replay.reproduce.recipe import read_recipe
from replay.reproduce.running import Figures
from replay.reproduce.shelf import FOLDER, find_recipe, recipe_names
from replay.reproduce.text import claim_told


def test_a_recipe_has_its_arms_and_its_workload(tmp_path: Path) -> None:
    recipe = read_recipe(write_recipe(tmp_path))
    assert (recipe.name, recipe.reference) == ("small", "Smith, NRLQ, 1956")
    assert [(arm.name, arm.policy, arm.mode) for arm in recipe.arms.values()] == [
        ("fifo", "fifo", "continuous"),
        ("sjf", "sjf", "continuous"),
    ]
    assert [(one.metric, one.statistic) for one in recipe.columns] == [("e2e", "mean")]


def test_an_arm_that_names_a_mode_a_policy_or_a_predictor_has_only_that() -> None:
    base = {
        "modes": {"continuous": {"max_running": 4}},
        "policies": {"sjf": {"ageing": 1.0}},
        "lengths": {"predictor": "user_mean", "last": 3},
    }
    assert laid_over(base, {"modes": {"continuous": {"token_budget": 9}}})["modes"] == {
        "continuous": {"max_running": 4, "token_budget": 9}
    }
    changed = laid_over(base, {"modes": {"static": {}}, "policies": {"fifo": {}}, "lengths": {"predictor": "oracle"}})
    assert changed == {"modes": {"static": {}}, "policies": {"fifo": {}}, "lengths": {"predictor": "oracle"}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"metric = \"e2e\"\norder": "metric = \"e2\"\norder"}, "claims[0].metric: there is no metric 'e2'; did you"),
        ({"[outcome]": "[outcom]"}, "outcom: there is no such setting; did you mean 'outcome'?"),
        ({"regime = \"one slot\"\n": ""}, "regime: is required"),
        ({"year = 1956": 'year = "1956"'}, "paper.year: input should be a valid integer, not '1956'"),
        ({"sjf.policies.sjf = {}": "sjf.policies.sfj = {}"}, "arms.sjf: policies.sfj: there is no policy of this name"),
        ({"sjf.policies.sjf = {}": "sjf.policies.sjf.age = 1"}, "arms.sjf: policies.sjf.age: there is no such setting"),
        ({"sjf.policies.sjf = {}": "sjf.policies.sjf.ageing = [1.0, 2.0]"}, "arms.sjf: must come to one policy in one"),
        ({'order = ["sjf"': 'order = ["sfj"'}, "claims[0]: there is no arm 'sfj'; did you mean 'sjf'?"),
        ({'order = ["sjf"': 'order = ["sjf@burst"'}, "claims[0]: there is no workload 'burst'"),
        ({'order = ["sjf", "<"': 'order = ["sjf", "less"'}, "claims[0].order: there is no sign 'less'; known: "),
        ({'says =': 'by = "user"\nsays ='}, "claims[0]: says of no group by user what it is about"),
        ({'says =': 'statistic = "p42"\nsays ='}, "claims[0].statistic: e2e has no statistic 'p42'"),
        ({'over = "fifo"': 'over = "lifo"'}, "ours: there is no arm 'lifo'"),
        ({"fixed = 8": "fixd = 8"}, "workload: users.0.prompt.fixd: there is no such key: did you mean 'fixed'?"),
        ({"[workload]": "[workloads.x]", "workload.users": "workloads.y.users"}, "workload x: users: is required"),
        ({'recorded = "holds"': 'recorded = "fails"'}, "claims[0].reason: is required where the claim is recorded"),
        ({'result = "holds"': 'result = "not reproduced"'}, 'outcome.result: is "holds" by what is recorded of the'),
        ({'says =': 'whose = "ours"\nsays ='}, "claims: are all ours; one at least must be the paper's"),
        ({"[workload]": "[workload"}, "is not TOML"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_file_and_key(tmp_path: Path, changes: dict[str, str], sentence: str) -> None:
    file = write_recipe(tmp_path, changes=changes)
    with pytest.raises(ExperimentError) as fault:
        read_recipe(file)
    found = [line for line in str(fault.value).splitlines() if sentence in line]
    assert found, str(fault.value)
    assert found[0].startswith(str(file))


def test_several_workloads_must_be_told_apart(tmp_path: Path) -> None:
    text = write_recipe(tmp_path).read_text()
    start, end = text.index("[workload]"), text.index("[experiment]")
    workload = text[start:end]
    two = workload.replace("workload", "workloads.x") + workload.replace("workload", "workloads.y")
    file = tmp_path / "two.toml"
    file.write_text(text[:start] + two + text[end:])
    with pytest.raises(ExperimentError, match=r"claims\[0\]: says of no workload what it is about; there are: x, y"):
        read_recipe(file)


def test_torch_needs_a_table_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"has no \[torch\] table, so it runs on the simulated engine only"):
        read_recipe(write_recipe(tmp_path), torch=True)


def test_a_name_that_is_no_recipe_is_told_the_nearest() -> None:
    with pytest.raises(ExperimentError, match="there is no recipe 'sfj'; did you mean 'sjf'"):
        find_recipe("sfj")


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_that_comes_with_replay_names_what_there_is(name: str) -> None:
    recipe = find_recipe(name)
    assert len(recipe.arms) > 1
    assert not [warning for arm in recipe.arms.values() for warning in arm.experiment.warnings]
    if recipe.document.torch is not None:
        assert {arm.experiment.engines[0][0].kind for arm in find_recipe(name, torch=True).arms.values()} == {"torch"}


def test_recipes_lie_inside_the_package_that_is_built() -> None:
    built = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert FOLDER.relative_to(Path.cwd()).parts[0] in built


def summary(**figures: float) -> pl.DataFrame:
    rows = [("all", "all", "e2e", statistic, value) for statistic, value in figures.items()]
    return pl.DataFrame(rows, schema=["by", "group", "metric", "statistic", "value"], orient="row")


def test_a_claim_holds_only_if_it_does_for_every_seed(tmp_path: Path) -> None:
    recipe = read_recipe(write_recipe(tmp_path))
    figures = Figures(recipe.document.seeds)
    for arm, seed, mean in (("fifo", 1, 4.0), ("fifo", 2, 5.0), ("sjf", 1, 2.0), ("sjf", 2, 6.0)):
        figures.keep(arm, "", seed, summary(mean=mean))
    found = find(recipe, figures)
    (claim,) = found.claims
    assert claim.kept == [True, False]
    assert claim.means == [4.0, 4.5]
    assert "but seed 2: sjf 6.00 s < fifo 5.00 s" in claim_told(claim)
    assert (claim.holds, claim.as_recorded, found.as_recorded, found.result) == (False, False, False, "not reproduced")
    assert found.ours == pytest.approx((0.85, 0.5, 1.2))


def test_what_we_expect_ourselves_does_not_decide_the_outcome(tmp_path: Path) -> None:
    ours = '[[claims]]\nsays = "our own"\nwhose = "ours"\nmetric = "e2e"\norder = ["fifo", "<", "sjf"]\n'
    record = 'recorded = "fails"\nreason = "it does not"\n'
    recipe = read_recipe(write_recipe(tmp_path, changes={"[outcome]": f"{ours}{record}\n[outcome]"}))
    figures = Figures(recipe.document.seeds)
    for seed in (1, 2):
        figures.keep("fifo", "", seed, summary(mean=4.0))
        figures.keep("sjf", "", seed, summary(mean=2.0))
    found = find(recipe, figures)
    assert [finding.holds for finding in found.claims] == [True, False]
    assert (found.result, found.as_recorded) == ("holds", True)


def test_figures_may_be_told_relative_to_an_arm(tmp_path: Path) -> None:
    file = write_recipe(tmp_path, '[0.4, "<", "sjf", "<=", 0.5]\nrelative_to = "fifo"')
    recipe = read_recipe(file)
    figures = Figures(recipe.document.seeds)
    for seed in (1, 2):
        figures.keep("fifo", "", seed, summary(mean=4.0 * seed))
        figures.keep("sjf", "", seed, summary(mean=2.0 * seed))
    (claim,) = find(recipe, figures).claims
    assert claim.holds
    assert claim.means == [0.4, 0.5, 0.5]

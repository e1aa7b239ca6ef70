"""The recipes that come with replay: one TOML file each, beside this module."""

from __future__ import annotations

from pathlib import Path

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.reproduce.recipe import Recipe, read_recipe

FOLDER = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """By name, in alphabetical order."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def find_recipe(name: str, *, torch: bool = False) -> Recipe:
    """The recipe of that name, or in that file. Raises ExperimentError where there is none, or one with faults."""
    file = Path(name)
    if file.suffix != ".toml":
        file = FOLDER / f"{name}.toml"
        if not file.is_file():
            raise ExperimentError(f"there is no recipe {name!r}; {nearest(name, recipe_names())}")
    return read_recipe(file, torch=torch)

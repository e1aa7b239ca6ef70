"""The page on the command line: every command with its options, statuses of ending, variables of the environment."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from replay.cli import COMMANDS, CONTEXT, STATUSES, group
from replay.cli.reference.markdown import code, words

OPENING = """\
# The command line

`replay COMMAND -h` says the same. Results go to stdout, progress and remarks to stderr."""
ENVIRONMENT = {
    "NO_COLOR": "set: no colours in the live view",
    "TERM": "dumb, or unset: plain lines in place of the live view",
    "TMPDIR": "where rows of traces lie that are too many for memory",
    "TRITON_INTERPRET": "1: Triton's kernels run in its interpreter, on a CPU",
    "XDG_CACHE_HOME": "where compiled code and measured ceilings are kept, in its folder replay; else ~/.cache",
}
OTHERS = {
    "COLUMNS": "width of the text, of the terminal where it is not set",
    "CUDA_VISIBLE_DEVICES": "which GPUs there are",
    "HF_HOME": "where models of a hub are kept",
    "HF_HUB_OFFLINE": "1: nothing is fetched from a hub",
    "HF_TOKEN": "for models that a hub gives to some only",
    "OMP_NUM_THREADS": "threads of torch on a CPU where `engine.threads` is unset",
    "POLARS_MAX_THREADS": "threads of what reads traces and works out metrics",
}


def page() -> str:
    parts = [OPENING]
    for path, command in _commands(group, "replay"):
        parts += [f"## {path}", *_told(path, command)]
    parts += [
        "## Exit status",
        words(("status", "meaning"), [[str(status), meaning] for status, meaning in STATUSES.items()]),
        "## Environment",
        words(("variable", "what it does"), [[code(name), meaning] for name, meaning in ENVIRONMENT.items()]),
        "Those of libraries that replay builds on hold as well, among them:",
        words(("variable", "what it does"), [[code(name), meaning] for name, meaning in OTHERS.items()]),
    ]
    return "\n\n".join(parts)


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """The command and those below it, with what is typed for each."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path, **CONTEXT)
        for name in COMMANDS if command is group else command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, f"{path} lists {name}"
            yield from _commands(below, f"{path} {name}")


def _told(path: str, command: click.Command) -> list[str]:
    context = click.Context(command, info_name=path, **CONTEXT)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    options = [one.get_help_record(context) for one in command.params if isinstance(one, click.Option)]
    rows = [[code(record[0]), record[1]] for record in options if record is not None]
    parts = [f"```sh\n{usage}\n```", *_paragraphs(command.help or "")]
    return [*parts, words(("option", "what it does"), rows)] if rows else parts


def _paragraphs(text: str) -> list[str]:
    """The help's paragraphs; one that click is told not to wrap is shown as it is typed."""
    found = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if not paragraph.startswith("\b\n"):
            found.append(" ".join(paragraph.split()))
            continue
        title, _, lines = paragraph.removeprefix("\b\n").partition("\n")
        shown = re.sub(r"^  ", "", lines, flags=re.MULTILINE)
        found += [title, f"```sh\n{shown}\n```"]
    return found

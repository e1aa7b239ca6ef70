"""What the commands on traces have in common: options, listings in their help, and what they say of a trace.

They print and nothing else here does; what they do is in `replay.traces`, which is imported only once a command runs,
so that help comes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from replay.traces.table import Trace

Listing = Callable[[], Iterable[tuple[str, str]]]
FILE = click.Path(path_type=Path)
force_option = click.option("--force", is_flag=True, help="Replace OUT if it is there already.")


class ListingCommand(click.Command):
    """A command whose help ends with what is registered, looked up only when the help is asked for."""

    listing: Listing
    heading: str

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(self.heading):
            formatter.write_dl(list(self.listing()))


def finish(made: Trace, out: Path, *, force: bool, told: bool = False) -> None:
    """Write the trace, say what it holds, and remark on what was noted, and on what was skipped unless that is told."""
    from replay.traces.wording import duration_text
    from replay.traces.writing import write_trace

    write_trace(made, out, force=force)
    click.echo(f"{out}: {counted(made.extent().rows, 'request')}, span {duration_text(made.span_nanoseconds)}")
    remark(made, told=told)


def remark(made: Trace, further: Iterable[str] = (), *, told: bool = False) -> None:
    """What was skipped and noted, and what is `further` to say, on stderr, unless the group was told to be quiet."""

    from replay.traces.wording import skipped_text

    if (click.get_current_context().obj or {}).get("quiet"):
        return
    skipped = [skipped_text(made.skipped)] if made.skipped and not told else []
    for line in [*skipped, *made.notes, *further]:
        click.echo(line, err=True)


def counted(count: int, noun: str) -> str:
    """ "1 row", "1,024 rows"."""
    from replay.traces.wording import counted

    return counted(count, noun)


def first_line(text: str | None) -> str:
    """The first line of a docstring."""
    return (text or "").strip().splitlines()[0]

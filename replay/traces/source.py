"""What one file gives before it is a trace: its rows under canonical names, and what its reader knows of them.

It knows no file format and no rule of a trace. Rows are a lazy query, so that a file of any size can be a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.faults import FILE, ROW, Rule, refuse_broken
from replay.traces.table import HashScope, HashTail
from replay.traces.wording import listed

BROKEN, SKIP = "__broken", "__skip"  # beside a source's columns: whether a value is none, and why a row is left out
LARGE = 64 << 20  # bytes of text that are read into memory; more go through a file


@dataclass(slots=True)
class Source:
    """One file as it is read: columns by their canonical names, in whatever type and order the file has them.

    `rows` may have a column `ROW` with each row's number in the file (from 0), so that a refusal names the right one,
    and a column `SKIP` with the reason for which a row is to be left out, null for one that is kept; other columns
    with names that are not canonical are left out, and that is said. `skipped` counts the rows that are not even here.
    A `log` is what some other program wrote down: its rows without an arrival or with no tokens are skipped. `large`
    means that the rows should not be collected. `check` raises `TraceError` for a value that could not be read, which
    a column `BROKEN` marks; `misread` puts another library's complaint into a sentence.
    """

    path: Path
    rows: pl.LazyFrame
    block_size: int | None = None
    hash_scope: HashScope = "global"
    hash_tail: HashTail = "ceil"
    log: bool = True
    large: bool = False
    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    check: Callable[[], None] = lambda: None
    misread: Callable[[Exception], TraceError] | None = None

    def explain(self, fault: Exception) -> TraceError:
        """The sentence for a file that could not be read."""
        return self.misread(fault) if self.misread else TraceError(f"{self.path}: cannot be read ({first_line(fault)})")


@dataclass(frozen=True, slots=True)
class Field:
    """How a canonical column comes from a column of a foreign file: `value` is null where that holds no such thing.

    `right` completes "must be ..." for a value that is none. Where the file need not have the column, the field is not
    `required`. An empty value is not a wrong one: it is null.
    """

    column: str
    value: pl.Expr
    right: str
    required: bool = True

    @property
    def rule(self) -> Rule:
        return Rule(self.column, pl.col(self.column).is_not_null() & self.value.is_null(), self.right)


@dataclass(frozen=True, slots=True)
class Raw:
    """A foreign table as it stands: `rows` with the names of its file, and `ROW`."""

    path: Path
    rows: pl.LazyFrame
    names: list[str]
    large: bool
    misread: Callable[[Exception], TraceError]

    def source(
        self,
        fields: Mapping[str, Field],
        *,
        skips: Mapping[str, pl.Expr] | None = None,
        known: tuple[str, ...] = (),
        block_size: int | None = None,
        hash_scope: HashScope = "global",
        hash_tail: HashTail = "ceil",
    ) -> Source:
        """The source that `fields` make of this table, by canonical name.

        `skips` are reasons to leave a row out, as expressions over the columns of the file; the first that holds
        counts. Columns of the file that no field uses are left out, and that is said of all but the `known` ones.
        Raises `TraceError` if a column is missing that is required, or that a reason looks at.
        """
        needed = [each.column for each in fields.values() if each.required]
        for name in needed + [name for holds in (skips or {}).values() for name in holds.meta.root_names()]:
            if name not in self.names:
                raise TraceError(f"{self.path}: the column {name!r} is missing; there are: {listed(self.names)}")
        used = {name: each for name, each in fields.items() if each.column in self.names}
        rules = [each.rule for each in used.values()]
        reasons = [pl.when(holds).then(pl.lit(reason)) for reason, holds in (skips or {}).items()]
        skip = pl.coalesce(reasons) if reasons else pl.lit(None, pl.String)
        value = {name: f"__{name}" for name in used}  # beside the raw columns, one of which may have its name
        unread = [pl.col(each.column).is_not_null() & pl.col(value[name]).is_null() for name, each in used.items()]
        rows = self.rows.with_columns(*(each.value.alias(value[name]) for name, each in used.items())).select(
            ROW,
            skip.alias(SKIP),
            (pl.any_horizontal(unread) & skip.is_null()).alias(BROKEN),
            *(pl.col(value[name]).alias(name) for name in used),
        )

        def check() -> None:
            kept = self.rows.filter(skip.is_null()).with_columns(pl.lit(0, pl.Int32).alias(FILE))
            refuse_broken(kept, [self.path], rules)

        strange = [name for name in self.names if name not in known and name not in {f.column for f in used.values()}]
        return Source(
            self.path,
            rows,
            block_size=block_size,
            hash_scope=hash_scope,
            hash_tail=hash_tail,
            large=self.large,
            notes=[f"columns left out: {listed(strange, None)}"] if strange else [],
            check=check,
            misread=self.misread,
        )


def files_below(folder: Path, pattern: str = "*") -> list[Path]:
    """The files in a folder and below it, in order of name; those that start with . or _ are not data."""
    return sorted(file for file in folder.rglob(pattern) if file.name[0] not in "._" and file.is_file())


def is_large(path: Path) -> bool:
    """Whether a text file, packed or not, is to be read piece by piece."""
    packed = path.suffix in (".gz", ".zst", ".zstd")
    return path.stat().st_size * (8 if packed else 1) > LARGE


def first_line(fault: BaseException) -> str:
    """The first line of another library's complaint."""
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0]

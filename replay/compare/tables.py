"""A comparison for people: what differs, a line for each run of each cell, what each check found. Text or Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from replay.compare.checks import Breach, Outcome
from replay.compare.comparison import BASELINE, Comparison, label
from replay.compare.expression import WORDS
from replay.compare.figures import Figure
from replay.compare.matching import Row
from replay.metrics.notation import UNDEFINED, aligned, enumerate_words, plural, several
from replay.report.tables import markdown
from replay.traces.wording import named

LONGEST = 30
"""Characters of a name in a table for a terminal."""
MOST = 8
"""Cells that are named for one check."""
MARKS = {True: "!", False: "+", None: "*"}


def table(comparison: Comparison) -> str:
    """Aligned text for a terminal."""
    parts = ["\n".join(_opening(comparison))]
    heads = ["mode", "policy", "run", *(figure.name for figure in comparison.figures)]
    for trace in comparison.matching.traces:
        rows = [row for row in comparison.matching.rows if row.trace == trace]
        if rows:
            lines = [line for row in rows for line in _lines(comparison, row, repeated=False)]
            words = [list(column) for column in zip(*(line[:3] for line in lines), strict=True)]
            short = [_shortened(column) for column in words]
            lines = [[*(column[place] for column in short), *line[3:]] for place, line in enumerate(lines)]
            title = f"{named(trace)}\n" if len(comparison.matching.traces) > 1 else ""
            parts.append(title + aligned(heads, _even(lines), words=3))
    parts.append("\n".join([_units(comparison), *_legend(comparison)]))
    parts += ["\n".join(lines) for lines in (_summary(comparison), _lone(comparison)) if lines]
    return "\n\n".join(parts)


def document(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> str:
    """Markdown: the same, for a pull request."""
    first, *rest = _opening(comparison)
    facts = {f"  {fact}" for fact in comparison.facts}
    parts = [f"## {first}", "\n".join(f"  - {line.strip()}" if line in facts else f"- {line.strip()}" for line in rest)]
    heads = ["mode", "policy", "run", *(figure.name for figure in comparison.figures)]
    for trace in comparison.matching.traces:
        rows = [row for row in comparison.matching.rows if row.trace == trace]
        lines = [line for row in rows for line in _lines(comparison, row, repeated=True)]
        if lines:
            parts += [f"### {named(trace)}"] if len(comparison.matching.traces) > 1 else []
            parts.append(markdown(heads, [_escaped(line) for line in lines], words=3))
    parts.append("\n".join([_units(comparison), *_legend(comparison)]).replace("*", "\\*"))
    parts += [_listed(lines) for lines in (_summary(comparison), _lone(comparison)) if lines]
    parts += ["\n".join(["```text", *verdict(comparison, outcome), "```"]) for outcome in outcomes]
    return "\n\n".join(part for part in parts if part)


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line.strip()}" for line in lines)


def _escaped(line: Sequence[str]) -> list[str]:
    return [text.replace("*", "\\*").replace("_", "\\_") for text in line]


def _opening(comparison: Comparison) -> list[str]:
    """Which runs, in what they differ, and what must be known before any figure."""
    labels = comparison.names
    head = f"{enumerate_words(labels[1:])} against {labels[BASELINE]}" if len(labels) > 1 else labels[BASELINE]
    lines = [head] + [f"  {name}: {side.told}" for name, side in zip(comparison.names, comparison.sides, strict=True)]
    if comparison.facts:
        lines.append(f"The runs differ in ({' / '.join(labels)}):")
        lines += [f"  {fact}" for fact in comparison.facts]
    elif len(labels) > 1:
        lines.append("The runs differ in nothing that their manifests tell.")
    return lines + [f"Note: {note}." for note in comparison.notes]


def _lines(comparison: Comparison, row: Row, *, repeated: bool) -> list[list[str]]:
    """A line for each run that has the cell; its name on the first alone, unless it is `repeated`."""
    lines: list[list[str]] = []
    for number, place in row.places.items():
        names = [row.setting, row.policy] if repeated or not lines else ["", ""]
        texts = [_text(comparison, row, number, figure) for figure in comparison.figures]
        lines.append([*names, comparison.names[number] + place.mark, *texts])
    return lines


def _text(comparison: Comparison, row: Row, side: int, figure: Figure) -> str:
    """`455 ×1.10 !`: the value, how many times the baseline's it is, and whether that is seen."""  # noqa: RUF002
    value = comparison.value(row, side, figure)
    if side == BASELINE or value is None:
        return figure.write(value)
    ratio = comparison.ratio(row, side, figure)
    return f"{figure.write(value)} {_times(ratio)} {_mark(comparison, row, side, figure)}".rstrip()


def _times(ratio: float | None) -> str:
    return UNDEFINED if ratio is None else f"×{ratio:.2f}"  # noqa: RUF001


def _mark(comparison: Comparison, row: Row, side: int, figure: Figure) -> str:
    sight = comparison.sight(row, side, figure)
    if sight.verdict != "seen":
        return sight.mark
    base, value = comparison.value(row, BASELINE, figure), comparison.value(row, side, figure)
    assert base is not None
    assert value is not None
    return MARKS[figure.worse(value - base)]


def _even(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """With value, ratio and mark below each other in each column."""
    columns: list[list[str]] = []
    for column in zip(*lines, strict=True):
        if len(columns) < 3:
            columns.append(list(column))
            continue
        pieces = [_pieces(text) for text in column]
        widths = [max(len(each[place]) for each in pieces) for place in range(3)]
        columns.append(
            [
                f"{value.rjust(widths[0])} {ratio.rjust(widths[1])} {mark.ljust(widths[2])}" if widths[1] else value
                for value, ratio, mark in pieces
            ]
        )
    return [list(line) for line in zip(*columns, strict=True)]


def _pieces(text: str) -> tuple[str, str, str]:
    """A cell's text as value, ratio and mark. A value may hold a blank: `9.4 %`."""
    words = text.split(" ")
    mark = words.pop() if words[-1] in (*MARKS.values(), "?") else ""
    has_ratio = len(words) > 1 and (words[-1].startswith("×") or words[-1] == UNDEFINED)  # noqa: RUF001
    ratio = words.pop() if has_ratio else ""
    return " ".join(words), ratio, mark


def _shortened(names: Sequence[str]) -> list[str]:
    """Long names without their middle, unless two would then be one."""
    ends = LONGEST // 2
    short = [name if len(name) <= LONGEST else f"{name[: ends - 1]}…{name[-ends:]}" for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)


def _units(comparison: Comparison) -> str:
    units: dict[str, list[str]] = {}
    for figure in comparison.figures:
        if figure.unit and figure.unit_shown != "%" and not figure.unit.startswith(("B", "FLOP")):
            units.setdefault(figure.unit_shown, []).append(figure.name)
    told = "; ".join(f"{enumerate_words(names)} in {unit}" for unit, names in units.items())
    return f"{told}." if told else ""


def _legend(comparison: Comparison) -> list[str]:
    if len(comparison.sides) < 2:
        return []
    machine = any(not cell.simulated for side in comparison.sides for cell in side.run.recorded)
    return [
        f"×: of {comparison.names[BASELINE]}. ! worse, + better, * other: the difference is seen"  # noqa: RUF001
        " (its interval, request by request, leaves out zero;",
        "all intervals of this table hold together with 95 %; repeats differ by less). No mark: not seen. ?: cannot be",
        "told (one number a run without repeats, too few requests, or a cell that is invalid or partial)."
        + (" What is seen may still be the machine's on that day." if machine else ""),
    ]


def _summary(comparison: Comparison) -> list[str]:
    """For each run and figure, in how many cells it is worse or better."""
    lines = []
    for side in comparison.others:
        for figure in comparison.figures:
            rows = [row for row in comparison.matching.rows if BASELINE in row.places and side in row.places]
            ratios = [ratio for row in rows if (ratio := comparison.ratio(row, side, figure)) is not None]
            marks = Counter(_verdict(comparison, row, side, figure) for row in rows)
            told = ", ".join(f"{verdict} in {count}" for verdict, count in sorted(marks.items(), key=_place_of))
            extent = f" ({_span(ratios)})" if ratios else ""
            lines.append(f"{comparison.names[side]}, {figure.name}: of {plural(len(rows), 'cell')}, {told}{extent}")
    return lines


VERDICTS = ("worse", "better", "other", "no difference seen", "cannot be told")


def _place_of(entry: tuple[str, int]) -> int:
    return VERDICTS.index(entry[0])


def _verdict(comparison: Comparison, row: Row, side: int, figure: Figure) -> str:
    mark = _mark(comparison, row, side, figure)
    return dict(zip(("!", "+", "*", "", "?"), VERDICTS, strict=True))[mark]


def _span(ratios: Sequence[float]) -> str:
    ends = list(dict.fromkeys(_times(end) for end in (min(ratios), max(ratios))))
    return " to ".join(ends)


def _lone(comparison: Comparison) -> list[str]:
    """What one run has and no other."""
    lines = []
    for number, name in enumerate(comparison.names):
        names = [label(comparison, row) for row in comparison.matching.lone if number in row.places]
        if names:
            lines.append(f"Only {name} has {plural(len(names), 'cell')}: {'; '.join(names)}")
    return lines


def verdict(comparison: Comparison, outcome: Outcome) -> list[str]:
    """What became of a check: one line where it passed, and the cells where not."""
    check = outcome.check
    cells = plural(outcome.judged, "cell")
    unseen = f"; {outcome.unseen} would be in breach, but the difference is not seen" if outcome.unseen else ""
    lone = f"; {plural(outcome.lone, 'cell')} of one run only not judged" if outcome.lone else ""
    if outcome.passed:
        return [f"passed: {check} in none of {cells}{unseen}{lone}"]
    lines = []
    if outcome.breaches:
        lines.append(f"FAILED: {check} in {len(outcome.breaches)} of {cells}{unseen}{lone}")
        lines += [f"  {_told(comparison, outcome, breach)}" for breach in outcome.breaches[:MOST]]
        lines += [f"  and {len(outcome.breaches) - MOST} more"] if len(outcome.breaches) > MOST else []
    if outcome.undecided:
        lines.append(f"FAILED: {check} cannot be decided for {len(outcome.undecided)} of {cells}")
        reasons: dict[str, list[str]] = {}
        for each in outcome.undecided:
            reasons.setdefault(each.why, []).append(label(comparison, each.row))
        lines += [f"  {several(names)}: {why}" for why, names in reasons.items()]
    return lines


def _told(comparison: Comparison, outcome: Outcome, breach: Breach) -> str:
    check, figure = outcome.check, outcome.check.figure
    words = f"{WORDS[check.operator]} {figure.told(breach.bound)}"
    text = f"{label(comparison, breach.row)}: {figure.told(breach.value)} in {comparison.names[breach.side]}, {words}"
    if not check.bound.relative:
        return text
    seen = f", {breach.sight.verdict}" if breach.sight else ""
    return f"{text} (baseline {figure.told(breach.baseline)}, {_times(breach.ratio)}{seen})"

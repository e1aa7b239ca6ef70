"""`replay trace generate`: the trace that a specification describes."""

from __future__ import annotations

from pathlib import Path

import click

from replay.cli.trace_said import FILE, finish, force_option


class GenerateCommand(click.Command):
    """`trace generate`, which lists the forms of lengths and what makes a rate rise and fall."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from replay.traces.generating.lengths import FORMS
        from replay.traces.generating.patterns import Patterns

        with formatter.section("Lengths (prompt, output, turns, think_ms)"):
            formatter.write_dl([(form.example, form.meaning) for form in FORMS.values()])
        with formatter.section("Patterns, which multiply a rate; they combine"):
            fields = Patterns.model_fields.items()
            formatter.write_dl(
                [(f"{name} = {(field.examples or [''])[0]}", field.description or "") for name, field in fields]
            )


@click.command("generate", cls=GenerateCommand, short_help="Make the trace that a specification describes.")
@click.argument("spec", metavar="SPEC.toml", type=FILE)
@click.argument("out", metavar="[OUT.parquet]", type=FILE, required=False)
@force_option
def generate_command(spec: Path, out: Path | None, *, force: bool) -> None:
    """Make the trace that SPEC.toml describes: users, when they come, what they ask for, how urgent it is.

    The same file makes the same trace every time, on every machine. Without OUT.parquet it lies beside SPEC.toml, by
    the same name.

    \b
    docs/generating-a-trace.md goes through it, example by example.

    \b
    Above the users  seed, duration, block_size; diurnal, spikes for all of them
    [[prefixes]]     name, tokens, parent, copies, share = { zipf }
    [[users]]        name, copies, share = { zipf }, start, stop, nobody
      when           count, or rate, or phases = [{ rate or count, rate_at_end,
                     lasts, burstiness, gaps }, ...], or closed_loop =
                     { clients, ramp, and as sessions }
      gaps           gaps = "gamma" or "weibull", burstiness (the coefficient of
                     variation; 1 is Poisson), stationary
      patterns       diurnal, spikes, on_off
      lengths        prompt, output; or both at once: lengths = { trace }
      urgency        priority, slo, deadline_ms, max_tokens, or some of each in
                     classes = [{ slo, priority, ..., prompt, output,
                     prefix, share }, ...]
      prefixes       prefix, prefix_share
      sessions       sessions = { turns, first, think_ms, grows, context }

    \b
    Example:
      replay trace generate traces/sample.toml sample.parquet
      replay trace generate busy.toml
    """
    from replay.traces.generate import generate_trace
    from replay.traces.writing import check_target

    out = out or spec.with_suffix(".parquet")
    check_target(out, force=force)
    finish(generate_trace(spec), out, force=force)

"""How long prompts and answers are: scaled, or cut at a number of tokens, with their hashes and token ids."""

from __future__ import annotations

import polars as pl

from replay.errors import TraceError
from replay.traces.table import Trace
from replay.traces.transforms.arguments import positive, whole
from replay.traces.transforms.declaring import Transform, noted, transforms
from replay.traces.validation import blocks
from replay.traces.wording import counted


@transforms.register("scale_tokens")
def scale_tokens(argument: object) -> Transform:
    """Multiply all token counts, never below one, and the hashes' block size: { scale_tokens = 0.25 }"""
    factor = positive("scale_tokens", argument)

    def scale(trace: Trace) -> Trace:
        refuse_content(trace, "scale_tokens")
        counts = pl.col("prompt_tokens", "output_tokens", "max_tokens")
        if trace.values(most=pl.max_horizontal(counts.max()))["most"] * factor >= 2**62:
            raise TraceError(f"{trace.path}: scale_tokens = {argument} makes more tokens than can be counted")
        rows = trace.rows.with_columns((counts * factor).round().clip(1).cast(pl.Int64))
        if trace.block_size is None:
            return trace.with_rows(rows)
        scaled = trace.block_size * factor
        if scaled < 1:
            raise TraceError(
                f"{trace.path}: scale_tokens = {argument} leaves less than one token of the hashes' blocks of "
                f"{trace.block_size}; use at least {1 / trace.block_size:.4g}"
            )
        block = round(scaled)
        note = f"the hashes' block of {scaled:g} tokens is rounded to {block}"
        changed = fit_hashes(trace.with_rows(rows, block_size=block))
        return changed if block == scaled else noted(changed, note)

    return scale


@transforms.register("max_prompt")
def max_prompt(argument: object) -> Transform:
    """Cut longer prompts to N tokens, their hashes and token ids too: { max_prompt = 2048 }"""
    tokens = whole("max_prompt", argument)

    def cut(trace: Trace) -> Trace:
        longer = pl.col("prompt_tokens") > tokens
        cut_texts = longer & pl.col("prompt").is_not_null() & pl.col("prompt_token_ids").is_null()
        texts = trace.values(texts=cut_texts.sum())["texts"]
        if texts:
            raise TraceError(
                f"{trace.path}: max_prompt cannot cut text, which {counted(texts, 'longer prompt')} have; "
                "give the prompts as prompt_token_ids, or leave the column 'prompt' out"
            )
        rows = trace.rows.with_columns(
            pl.col("prompt_tokens").clip(upper_bound=tokens),
            pl.col("prompt_token_ids").list.head(tokens),
            pl.when(longer).then(None).otherwise(pl.col("prompt")).alias("prompt"),
        )
        return fit_hashes(trace.with_rows(rows))

    return cut


@transforms.register("max_output")
def max_output(argument: object) -> Transform:
    """Cut longer answers to N tokens, and what clients declared: { max_output = 512 }"""
    tokens = whole("max_output", argument)
    capped = pl.col("output_tokens", "max_tokens").clip(upper_bound=tokens)
    return lambda trace: trace.with_rows(trace.rows.with_columns(capped))


def fit_hashes(trace: Trace) -> Trace:
    """The trace without hashes of blocks that begin beyond a prompt's end; a block that is cut keeps its hash."""
    if trace.block_size is None:
        return trace
    started = blocks(pl.col("prompt_tokens"), trace.block_size, "ceil")
    return trace.with_rows(trace.rows.with_columns(pl.col("prefix_hashes").list.head(started)), hash_tail="ceil")


def refuse_content(trace: Trace, name: str) -> None:
    """Refuse a trace with real prompts: their number of tokens is what it is."""
    for column in ("prompt", "prompt_token_ids"):
        if trace.values(given=pl.col(column).is_not_null().any())["given"]:
            raise TraceError(f"{trace.path}: {name} cannot change real prompts; leave the column {column!r} out")

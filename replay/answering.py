"""One prompt through the engine, and what it answers: text in, text out, by the same steps as a replay.

Greedy. It serves nobody else meanwhile, and measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from replay.clock import WallClock
from replay.errors import EngineError
from replay.executors.torch import build_torch_executor
from replay.executors.torch.model_facts import check_name
from replay.executors.torch.shapes import SHAPES
from replay.pool import KVPool
from replay.predictors import predictors
from replay.records import Records
from replay.replayer import Replayer
from replay.request import Request, Workload
from replay.scheduler import Policy, modes

BLOCK_SIZE = 16


@dataclass(slots=True, frozen=True)
class Answer:
    """The text, how many tokens it and its prompt took, and whether the model itself ended it."""

    text: str
    tokens: int
    prompt_tokens: int
    ended: bool


def answer(
    model: str, prompt: str, *, tokens: int, policy: Policy, device: str = "auto", dtype: str = "auto"
) -> Answer:
    """At most `tokens` tokens of what `model`, a folder or hub name, says to `prompt`, as a chat where it is made for
    one. Raises EngineError for a named shape, whose weights mean nothing, and for a prompt that the model cannot take.
    """
    if model in SHAPES:
        raise EngineError(f"{model} is a named shape with dummy weights, whose words mean nothing; name a folder")
    check_name(model)
    tokenizer = _tokenizer(model)
    ids, ends = _ids(tokenizer, prompt), _ends(model, tokenizer)
    total = len(ids) + tokens
    blocks = -(-total // BLOCK_SIZE)
    executor = build_torch_executor(model=model, device=device, dtype=dtype, blocks=blocks, block_size=BLOCK_SIZE)
    request = Request(0, "0", 0.0, len(ids), tokens)
    workload = Workload([request], [tokens], prompts={0: ids})
    executor.prepare(workload)
    replayer = Replayer(
        workload=workload,
        executor=executor,
        clock=WallClock(),
        policy=policy,
        mode=modes["continuous"](),
        pool=KVPool(blocks, BLOCK_SIZE),
        predictor=predictors["oracle"](),
        records=Records(),
    )
    replayer.run()
    if request.status != "completed":
        raise EngineError(f"{model}: the prompt was {request.status}: {request.reason}")
    said = executor.outputs(0)
    end = next((place for place, token in enumerate(said) if token in ends), None)
    text = tokenizer.decode(said[:end], skip_special_tokens=True)
    return Answer(text, tokens=len(said[:end]), prompt_tokens=len(ids), ended=end is not None)


def _tokenizer(model: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise EngineError(f"{model}: has no tokenizer that can be read, so it takes no text") from error


def _ids(tokenizer: Any, prompt: str) -> list[int]:
    """The prompt's token ids: as a user's turn of a chat where there is a template for one."""
    if tokenizer.chat_template:
        turns = [{"role": "user", "content": prompt}]
        prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        ids: list[int] = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    else:
        ids = tokenizer(prompt)["input_ids"]
    if not ids:
        raise EngineError("the prompt has no tokens; write something")
    return ids


def _ends(model: str, tokenizer: Any) -> set[int]:
    """The tokens with which the model ends an answer."""
    from transformers import GenerationConfig

    try:
        named = GenerationConfig.from_pretrained(model).eos_token_id
    except OSError:  # it has none of its own
        named = None
    ends = named if isinstance(named, list) else [named]
    return {token for token in (*ends, tokenizer.eos_token_id) if token is not None}

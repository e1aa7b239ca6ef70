"""What an engine's work is counted by: its model's shape, the bytes of its numbers, and the key of its ceilings.

It goes by what an executor says of itself, and measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.errors import EngineError
from replay.executors.torch.model_facts import model_facts
from replay.executors.work import Work
from replay.machine import hardware

ITEMSIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
PLAIN = 0.01  # share by which a shape's parameters may differ from the model's: with experts, say, it is far more


def work_of(details: Mapping[str, Any]) -> Work | None:
    """What a step's FLOP and bytes are counted from; None for a model that is not of the plain shape that is counted.

    `details` are an executor's own, with `model`, `dtype`, `kv_dtype` and `linears`.
    """
    try:
        facts = model_facts(details["model"])
    except (EngineError, KeyError):
        return None
    if abs(facts.shape.parameters - facts.parameters) > PLAIN * facts.parameters:
        return None
    weights = "float16" if details["linears"] == "fp16" else details["dtype"]
    return Work(facts.shape, weight_itemsize=ITEMSIZES[weights], kv_itemsize=ITEMSIZES[details["kv_dtype"]])


def probe_command(details: Mapping[str, Any]) -> str:
    """What measures the ceilings of this engine; every number type is measured anyway."""
    device = str(details["device"])
    return f"replay probe --device {device}" + (f" --threads {details['threads']}" if device == "cpu" else "")


def ceilings_key(details: Mapping[str, Any]) -> tuple[str, int | None, str]:
    """The device's name, its threads if it is a CPU, and the number type: what its ceilings are kept under."""
    if str(details["device"]).startswith("cuda"):
        return str(details["device_name"]), None, str(details["dtype"])
    return str(hardware()["processor"]), int(details["threads"]), str(details["dtype"])

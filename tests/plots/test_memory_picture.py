"""KV memory over time, as it is drawn; its numbers are tested with `replay.traces.describing.resident`."""

from __future__ import annotations

import pytest
from drawn_traces import figure_of, title, trace_of

from replay.plots.traces.kv import gib, size_text, sizes_text


def test_tokens_in_bytes_of_a_model() -> None:
    """llama-3.1-8b: 2 x 32 layers x 8 KV heads x 128 numbers x 2 bytes = 128 KiB a token."""
    assert gib(8192) == 1
    assert [size_text(tokens) for tokens in (8, 8192 * 3)] == ["1 MiB", "3 GiB"]
    assert sizes_text(8192).endswith(", 896 MiB for llama-3.2-3b, 1 GiB for llama-3.1-8b")


def test_the_title_says_the_peak_and_the_pace_is_said() -> None:
    """Of 100 + 10 tokens one until 0.95 s, the other from 0.9 s on: 109 + 100 just before the first has its last."""
    figure = figure_of("memory", trace_of([0, 0.9], prompt_tokens=[100, 100], output_tokens=[10, 10]))
    assert title(figure) == "Up to 210 tokens at once, 26.2 MiB of KV for llama-3.1-8b, if nobody waits"
    said = " ".join(figure.legends[0].get_title().get_text().split())
    assert said.startswith("First token 0.5 s after a request is due, then one each 50 ms, however many run;")
    above, below = figure.axes
    assert (above.get_ylabel(), below.get_ylabel()) == ("tokens resident", "requests resident")
    assert above.get_xlim()[1] == below.get_xlim()[1] == pytest.approx(1850)
    (second,) = above.child_axes
    assert second.get_ylabel() == "GiB of KV, llama-3.1-8b, 16 bit"
    assert second.get_ylim()[1] == pytest.approx(gib(above.get_ylim()[1]))

"""Every published sample, as a whole: rows, sums, and the arrivals next to the first and at the end, to the nanosecond.

The figures are sums over the files, made by plain Python with its csv and json modules and exact fractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from replay.traces.formats import import_trace


@dataclass(frozen=True)
class Sample:
    """A file, and what it holds; arrivals count from the first of a row that is kept."""

    form: str
    path: str
    rows: int
    prompts: int
    outputs: int
    arrivals: tuple[int, int, int]  # the second, the last but one, the last: ns
    total: int  # of all arrivals: ns
    failed: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)


WEKA = {"map": "user=user_id,session=session_id,prefix_hashes=hash_ids", "block_size": 64, "hash_tail": "floor"}
SAMPLES = [
    Sample(
        "azure", "azure2023/AzureLLMInferenceTrace_conv.csv", 19_366, 22_361_870, 4_088_665,
        (4_314_579_000, 3_501_060_254_000, 3_501_721_937_000), 33_473_340_385_407_000,
    ),
    Sample(
        "azure", "azure2024/azure2024_code_head5_tail5_from_notebook.csv", 10, 24_016, 180,
        (7_405_000, 604_799_918_768_000, 604_799_919_571_000), 3_023_999_670_413_000,
    ),
    Sample(
        "azure", "azure2024/azure2024_conv_head5_tail5_from_notebook.csv", 10, 12_767, 856,
        (40_520_000, 604_799_924_061_000, 604_799_994_297_000), 3_023_999_976_025_000,
    ),
    Sample(
        "azure", "azure2025/azure2025_lmm_head5_tail5_from_notebook.csv", 10, 12_859, 1_395,
        (5_550_000_000, 604_799_693_000_000, 604_799_695_000_000), 3_024_023_818_000_000,
    ),
    Sample(
        "azure", "inference-perf/trace.csv", 20, 11_540, 1_674,
        (4_314_579_000, 12_886_545_000, 13_025_088_000), 167_269_884_000,
    ),
    Sample(
        "burstgpt", "burstgpt/BurstGPT_1_first400.csv", 400, 208_189, 110_612,
        (40_000_000_000, 37_269_000_000_000, 37_269_000_000_000), 10_707_189_000_000_000, failed=17,
    ),
    Sample(
        "mooncake", "mooncake/synthetic_trace.jsonl", 3_993, 61_194_628, 595_432,
        (0, 1_022_018_000_000, 1_022_025_000_000), 2_097_594_543_000_000,
    ),
    Sample(
        "aiperf", "aiperf/precise_schedule.jsonl", 8, 2_800, 2_056,
        (500_000_000, 3_000_000_000, 5_000_000_000), 13_750_000_000,
    ),
    Sample(
        "aiperf", "aiperf/production_trace.jsonl", 10, 7_680, 1_856,
        (50_000_000, 1_100_000_000, 1_500_000_000), 5_470_000_000,
    ),
    Sample(
        "vtc", "vtc/vtc_real_trace.csv", 1_500, 204_398, 384_297,
        (207_937_542, 598_265_181_674, 600_000_000_000), 468_485_718_265_477,
    ),
    Sample(
        "table", "weka/weka_60sessions_synthetic_offsets.canon.parquet", 1_579, 106_158_952, 672_970,
        (2_755_913_000, 8_654_674_566_000, 8_658_686_951_000), 4_037_400_351_400_000, settings=WEKA,
    ),
    Sample(
        "splitwise-sim", "splitwise-sim/test_trace.csv", 3, 8_192, 56,
        (2_000_000_000, 2_000_000_000, 3_000_000_000), 5_000_000_000,
    ),
    Sample(
        "vidur", "vidur/splitwise_conv_first2000.csv", 2_000, 2_209_565, 529_807,
        (4_314_579_000, 423_184_196_000, 424_259_457_000), 437_711_519_758_000,
    ),
    Sample(
        "tracelab", "tracelab/multi_session_example.csv", 8, 5_308, 448,
        (0, 500_000_000, 500_000_000), 1_900_000_000,
    ),
    Sample(
        "llmservingsim", "llmservingsim/example_trace.jsonl", 10, 120, 591,
        (301_012_144, 856_918_263, 980_043_269), 5_522_384_906,
    ),
    Sample(
        "llmservingsim", "llmservingsim/workload_me2_01_mixed.jsonl", 608, 5_604_402, 1_837_003,
        (42_833_000, 60_890_651_000, 60_898_463_000), 18_692_748_081_989,
    ),
]  # fmt: skip


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_a_sample_is_imported_whole(samples: Path, sample: Sample) -> None:
    trace = import_trace(sample.form, samples / sample.path, settings=sample.settings)
    arrival = trace.frame["arrival"]
    assert (trace.rows_read, trace.frame.height) == (sample.rows, sample.rows - sample.failed)
    assert trace.skipped == ({"zero output tokens": sample.failed} if sample.failed else {})
    assert (arrival[0], arrival[1], arrival[-2], arrival[-1]) == (0, *sample.arrivals)
    assert trace.span_nanoseconds == sample.arrivals[-1]
    assert arrival.sum() == sample.total
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (sample.prompts, sample.outputs)


def test_no_sample_is_forgotten(samples: Path) -> None:
    files = {str(file.relative_to(samples)) for file in samples.rglob("*") if file.is_file()}
    assert files - {"README.md"} == {sample.path for sample in SAMPLES}

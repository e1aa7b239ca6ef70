"""The file of ceilings: kept by key, whole or not at all, and never trusted blindly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from replay.ceilings import Ceilings, cache_file, find_ceilings, keep_ceilings, read_ceilings
from replay.errors import OutputError
from replay.executors.roofline import Roofline

CEILINGS = Ceilings(
    device="A Processor",
    threads=2,
    dtype="float32",
    arithmetic=100e9,
    read=20e9,
    copy=16e9,
    how={"arithmetic": "products", "read": "sums", "copy": "copies"},
    measured="2026-01-02T03:04:05+00:00",
    versions={"replay": "0.1.0", "torch": None},
)


def test_what_is_kept_is_found_by_device_threads_and_number_type(tmp_path: Path) -> None:
    file = tmp_path / "made" / "ceilings.json"
    others = [
        replace(CEILINGS, threads=1, read=10e9),
        replace(CEILINGS, dtype="bfloat16"),
        replace(CEILINGS, device="B"),
    ]
    keep_ceilings(file, [CEILINGS])
    keep_ceilings(file, others)
    assert read_ceilings(file) == [CEILINGS, *others]
    assert find_ceilings(file, ("A Processor", 1, "float32")) == others[0]
    assert find_ceilings(file, ("A Processor", None, "float32")) is None
    assert [path.name for path in file.parent.iterdir()] == ["ceilings.json"]  # nothing half-written beside it


def test_a_later_measurement_takes_the_place_of_an_earlier(tmp_path: Path) -> None:
    file = tmp_path / "ceilings.json"
    keep_ceilings(file, [CEILINGS])
    keep_ceilings(file, [replace(CEILINGS, arithmetic=150e9)])
    assert [ceilings.arithmetic for ceilings in read_ceilings(file)] == [150e9]


def test_no_file_holds_nothing(tmp_path: Path) -> None:
    assert read_ceilings(tmp_path / "ceilings.json") == []
    assert find_ceilings(tmp_path / "ceilings.json", CEILINGS.key) is None


def kept_text(tmp_path: Path, **changes: object) -> str:
    """The text of a file with one entry, of which some fields are others."""
    keep_ceilings(tmp_path / "whole.json", [CEILINGS])
    document = json.loads((tmp_path / "whole.json").read_text())
    document["ceilings"][0] |= changes
    return json.dumps(document)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": 1}', '{"format": 2, "ceilings": []}', '{"format": 1, "ceilings": [{}]}'],
)
def test_a_file_of_something_else_is_told_and_then_replaced(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ceilings.json"
    file.write_text(text)
    with pytest.raises(OutputError, match=r"holds no ceilings that can be read .*; `replay probe` writes it anew"):
        find_ceilings(file, CEILINGS.key)
    keep_ceilings(file, [CEILINGS])
    assert read_ceilings(file) == [CEILINGS]


@pytest.mark.parametrize("rate", [0, -1, "fast", None, True, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(tmp_path: Path, rate: object) -> None:
    file = tmp_path / "ceilings.json"
    file.write_text(kept_text(tmp_path, read=rate))
    with pytest.raises(OutputError, match=r"read is .*, not a rate"):
        read_ceilings(file)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        keep_ceilings(tmp_path / "file" / "replay" / "ceilings.json", [CEILINGS])
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        keep_ceilings(tmp_path / "folder.json", [CEILINGS])


def test_the_file_lies_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_file() == tmp_path / "cache" / "replay" / "ceilings.json"
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_file() == tmp_path / ".cache" / "replay" / "ceilings.json"


def test_the_roofline_by_hand() -> None:
    # 3 GFLOP at 100 GFLOP/s take 30 ms, 1 GB at the faster of 20 and 16 GB/s takes 50 ms
    roof = Roofline(flops=3e9, traffic=1e9, ceilings=CEILINGS)
    assert (roof.arithmetic_seconds, roof.memory_seconds) == (pytest.approx(0.03), pytest.approx(0.05))
    assert (roof.least_seconds, roof.bound) == (roof.memory_seconds, "memory")
    # in 100 ms: 30 GFLOP/s of 100, 10 GB/s of 20
    assert roof.arithmetic_used(0.1) == pytest.approx(0.3)
    assert roof.bandwidth_used(0.1) == pytest.approx(0.5)
    assert Roofline(flops=6e9, traffic=1e9, ceilings=CEILINGS).bound == "arithmetic"

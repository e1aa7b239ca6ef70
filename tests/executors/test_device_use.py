"""What is seen of a device while an engine runs."""

from __future__ import annotations

import threading
from mmap import mmap

import pytest
import torch

from replay.executors.torch.probing.device_use import CLEAR, DeviceUse, nvml_sampler


def test_the_highest_memory_counts_from_the_start() -> None:
    use = DeviceUse("cpu")
    use.start()
    with mmap(-1, 64 * 2**20) as pages:  # no allocator, which might keep what is freed
        for page in range(0, len(pages), 4096):
            pages[page] = 1
        held = use.stop()
    later = DeviceUse("cpu")
    later.start()
    after = later.stop()
    if held.memory is None or after.memory is None:
        pytest.skip("this system does not tell a process its memory")
    assert held.memory >= 64 * 2**20
    if CLEAR.exists() and "while it ran" in str(after.memory_source):
        assert after.memory <= held.memory - 32 * 2**20
    assert (held.reserved, held.gpu_use_mean, held.gpu_samples) == (None, None, 0)


def test_samples_are_taken_by_another_thread_until_the_end() -> None:
    taken = threading.Semaphore(0)
    shares = iter([0.2, 0.6])

    def sample() -> float:
        assert threading.current_thread() is not threading.main_thread()
        share = next(shares)
        taken.release()
        return share

    use = DeviceUse("cpu", sample)
    use.start()
    assert taken.acquire(timeout=60)
    assert taken.acquire(timeout=60)
    seen = use.stop()  # the third sample, if it came to one, ended the sampling and nothing else
    assert (seen.gpu_use_mean, seen.gpu_use_max, seen.gpu_samples) == (pytest.approx(0.4), 0.6, 2)


def test_a_device_that_answers_nothing_is_unknown_and_not_idle() -> None:
    def gone() -> float:
        raise RuntimeError("the driver is gone")

    use = DeviceUse("cpu", gone)
    use.start()
    seen = use.stop()
    assert (seen.gpu_use_mean, seen.gpu_use_max, seen.gpu_samples) == (None, None, 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_there_is_nothing_to_sample() -> None:
    assert nvml_sampler(torch.device("cuda")) is None

"""How much of its device an engine used over a while: memory at its highest, and how busy a GPU was.

What cannot be found out on a machine is None, never a zero. It knows a device and nothing of what runs on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

SAMPLE_SECONDS = 0.25
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(slots=True, frozen=True)
class Use:
    """Bytes at the highest, and the share of time in which a GPU had work, as NVML samples it.

    `memory` on CUDA is what torch had given out to tensors, and `reserved` what it had taken from the device for that;
    on a CPU `memory` is the resident set of the whole process. `memory_source` says which, and since when.
    """

    memory: int | None
    memory_source: str | None
    reserved: int | None = None
    gpu_use_mean: float | None = None
    gpu_use_max: float | None = None
    gpu_samples: int = 0


class DeviceUse:
    """Watches a device between `start` and `stop`. A thread asks `sampler` (NVML's, on a GPU) a few times a second."""

    def __init__(self, device: str, sampler: Callable[[], float] | None = None) -> None:
        self._device = torch.device(device)
        self._sampler = sampler
        self._samples: list[float] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._fresh = False  # whether the highest memory counts from the start and not from the process's

    def start(self) -> None:
        """Forget what was highest before, and begin to sample."""
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
            self._sampler = self._sampler or nvml_sampler(self._device)
        else:
            self._fresh = _forget_peak()
        if self._sampler is not None:
            self._thread = threading.Thread(target=self._sample, args=(self._sampler,), name="device use", daemon=True)
            self._thread.start()

    def stop(self) -> Use:
        """End the sampling; what was seen since `start`."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        samples = self._samples
        busy = (sum(samples) / len(samples), max(samples), len(samples)) if samples else (None, None, 0)
        if self._device.type == "cuda":
            memory, reserved = (
                int(count(self._device)) for count in (torch.cuda.max_memory_allocated, torch.cuda.max_memory_reserved)
            )
            return Use(memory, "most bytes of tensors on the device", reserved, *busy)
        peak = _peak()
        since = "while it ran" if self._fresh else "since the process began"
        return Use(peak, None if peak is None else f"largest resident set of the process, {since}", None, *busy)

    def _sample(self, sampler: Callable[[], float]) -> None:
        """Until the end; a device that stops answering ends it too, and what was seen before counts."""
        with suppress(Exception):  # whatever NVML raises, the replay is not to fail for it
            while not self._ended.wait(SAMPLE_SECONDS):
                self._samples.append(sampler())


def nvml_sampler(device: torch.device) -> Callable[[], float] | None:
    """A function that gives the share of time in which the GPU was busy lately; None where NVML cannot tell."""
    try:
        import pynvml  # of the package nvidia-ml-py, which need not be there

        pynvml.nvmlInit()
        identity = str(torch.cuda.get_device_properties(device).uuid)  # indices may differ from torch's
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{identity.removeprefix('GPU-')}")
        utilisation: Callable[[Any], Any] = pynvml.nvmlDeviceGetUtilizationRates
        utilisation(handle)
    except Exception:  # no package, no driver, no permission, a slice of a GPU: all mean that nothing is known
        return None
    return lambda: float(utilisation(handle).gpu) / 100


def _forget_peak() -> bool:
    """Have Linux count the process's largest resident set from now on; False where it does not."""
    try:
        CLEAR.write_text("5")
    except OSError:
        return False
    return True


def _peak() -> int | None:
    """The largest resident set of this process, in bytes."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)

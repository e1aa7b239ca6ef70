"""The traces of the VTC artefact (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024) as CSV.

Times are seconds since the start. The adapter that a request asks for (`adapter_dir`) stands for its user there, and
does so here; the model (`model_dir`) is the same for all and left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replay.traces.foreign.delimited import elapsed, scan_csv, text, whole
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.formats import formats
from replay.traces.source import Source

NAMES = ("req_id", "req_time_s", "adapter_dir", "prompt_len", "output_len")


@formats.register("vtc")
@dataclass(frozen=True, slots=True)
class Vtc:
    """The traces of the VTC artefact (CSV, seconds; the adapter is the user)"""

    def fits(self, look: Glimpse) -> bool:
        return look.includes("csv", all_of=NAMES)

    def read(self, path: Path) -> Source:
        identity, time, user, prompt, output = NAMES
        return scan_csv(path).source(
            {
                "arrival_ns": elapsed(time, "s"),
                "prompt_tokens": whole(prompt),
                "output_tokens": whole(output),
                "request_id": text(identity),
                "user": text(user),
            }
        )

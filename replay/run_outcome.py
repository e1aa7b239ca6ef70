"""How a run ended: where it lies, what did not succeed in it, and what of it may not be taken at face value.

It knows a manifest, and no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Run:
    """A run that has ended, or was stopped: where it lies, and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def interrupted(self) -> bool:
        return bool(self.manifest["status"] == "interrupted")

    def failures(self) -> list[str]:
        """Why this run did not succeed: cells that failed, or that completed nothing."""
        sentences = []
        for entry in self.manifest["cells"]:
            if entry["status"] == "failed":
                sentences.append(f"{entry['cell']} failed: {entry['error']}")
            elif entry["status"] == "complete" and not entry["completed"]:
                sentences.append(f"{entry['cell']}: 0 of {entry['requests']} requests completed")
        return sentences

    def doubts(self) -> list[str]:
        """Why its figures may not be taken at face value: invalid cells, and requests that did not complete."""
        sentences = [f"{entry['cell']} is invalid: {entry['invalid_reason']}" for entry in self._ended("valid", False)]
        sentences += [
            f"{entry['cell']}: {entry['completed']} of {entry['requests']} requests completed"
            for entry in self._ended("status", "complete")
            if 0 < entry["completed"] < entry["requests"]
        ]
        return sentences

    def _ended(self, key: str, value: object) -> list[dict[str, Any]]:
        return [entry for entry in self.manifest["cells"] if entry.get(key) == value]

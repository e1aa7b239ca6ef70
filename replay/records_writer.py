"""Rows to disk while a cell runs: numbered part files, joined under the final name when the cell ends.

A thread writes, so that the loop that measures does not wait for a disk. A file under its final name is complete; what
a killed replay leaves are parts, each complete in itself.
"""

from __future__ import annotations

import queue
import threading
from functools import partial
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from replay.records import SCHEMAS, Records
from replay.whole_files import replace_file


class RecordsWriter:
    """Writes a cell's records into `folder`. Call `flush` now and then while it runs, and `close` at its end."""

    def __init__(self, records: Records, folder: Path) -> None:
        self._records = records
        self._folder = folder
        self._parts: dict[str, list[Path]] = {name: [] for name in SCHEMAS}
        self._tables: queue.SimpleQueue[tuple[str, pa.Table] | None] = queue.SimpleQueue()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._write_parts, name="records", daemon=True)
        folder.mkdir(parents=True, exist_ok=True)
        for schema in SCHEMAS.values():  # the first write of a process takes long: let it be now, not in the loop
            pq.write_table(schema.empty_table(), BytesIO(), compression="zstd")
        self._thread.start()

    def flush(self) -> None:
        """Hand the rows so far to the writing thread. Raises the error that it met, if it met one."""
        if self._fault is not None:
            raise self._fault
        for name, columns in self._records.items():
            if (table := columns.take()) is not None:
                self._tables.put((name, table))

    def close(self) -> None:
        """Write the rest, join the parts under their final names, and remove them."""
        self.flush()
        self._tables.put(None)
        self._thread.join()
        if self._fault is not None:
            raise self._fault
        for name, schema in SCHEMAS.items():
            parts = self._parts[name]
            replace_file(self._folder / f"{name}.parquet", partial(_join, parts, schema))
            for part in parts:
                part.unlink()

    def _write_parts(self) -> None:
        while (item := self._tables.get()) is not None:
            name, table = item
            part = self._folder / f"{name}.part-{len(self._parts[name]):04d}.parquet"
            try:
                replace_file(part, partial(pq.write_table, table, compression="zstd"))
            except Exception as fault:
                self._fault = fault  # raised where it can be told: in the thread that flushes
                return
            self._parts[name].append(part)


def _join(parts: list[Path], schema: pa.Schema, target: Path) -> None:
    """All parts as one table, in order of its first column: the row of the trace, or the step."""
    table = pa.concat_tables([schema.empty_table(), *(pq.read_table(part) for part in parts)])
    pq.write_table(table.sort_by(schema.names[0]), target, compression="zstd")

"""Files of single pictures: PNG, SVG and PDF, the same bytes each time. They replace only what was drawn so before."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from replay.errors import ExperimentError, OutputError
from replay.plots.canvas import DPI, look
from replay.registry import nearest
from replay.whole_files import replace_file

MARK = "drawn by replay plot"
"""Stands in every file that was drawn on demand: such a file may be replaced."""
METADATA: dict[str, dict[str, str | None]] = {  # without dates and versions
    ".png": {"Software": None, "Description": MARK},
    ".svg": {"Date": None, "Creator": None, "Description": MARK},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Subject": MARK},
}


def check_file(file: Path, *, force: bool) -> None:
    """Raise ExperimentError for a kind that is not known, OutputError where another's file is or no folder."""
    if file.suffix not in METADATA:
        raise ExperimentError(f"{file}: a picture is a .png, .svg or .pdf; {nearest(file.suffix, METADATA)}")
    if not file.parent.is_dir():
        raise OutputError(f"{file}: there is no folder {file.parent}")
    check_free(file, force=force)


def check_free(file: Path, *, force: bool) -> None:
    """Raise OutputError where a folder is, or a file that was not drawn on demand and may not be replaced."""
    if file.is_dir():
        raise OutputError(f"{file}: is a folder")
    if file.exists() and not force and MARK.encode() not in file.read_bytes():
        raise OutputError(f"{file}: is there already, and `replay plot` did not draw it; --force replaces it")


def write_picture(figure: Figure, file: Path) -> None:
    """The figure as the kind of file that its ending names. OutputError where it cannot be written."""

    def write(path: Path) -> None:
        figure.savefig(path, format=file.suffix[1:], dpi=DPI, metadata=METADATA[file.suffix])

    with look(**{"pdf.fonttype": 42}):  # what publishers take
        replace_file(file, write)

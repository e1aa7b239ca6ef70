"""Imported before matplotlib is: no window toolkit is asked for, and a home that cannot be written to is no news."""

from __future__ import annotations

import logging
import os

os.environ["MPLBACKEND"] = "Agg"  # whatever the user's settings name
logging.getLogger("matplotlib").setLevel(logging.ERROR)

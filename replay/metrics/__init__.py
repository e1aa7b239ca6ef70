"""Numbers from a run's rows: metrics as named expressions, their summary, and paired comparisons.

It reads Parquet and knows nothing of the engine that wrote it.
"""

from replay.metrics import (
    attainment,
    backlog,
    cache,
    engine,
    experience,
    fairness,
    latency,
    queueing,
    rates,
    service,
    sessions,
    starvation,
    utilisation,
    windows,
)
from replay.metrics.metric import Metric, metrics
from replay.metrics.summary import Measured, measure

__all__ = [
    "Measured",
    "Metric",
    "attainment",
    "backlog",
    "cache",
    "engine",
    "experience",
    "fairness",
    "latency",
    "measure",
    "metrics",
    "queueing",
    "rates",
    "service",
    "sessions",
    "starvation",
    "utilisation",
    "windows",
]

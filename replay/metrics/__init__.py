"""Numbers from a run's rows: metrics as named expressions, their summary, and paired comparisons.

It reads Parquet and knows nothing of the engine that wrote it.
"""

from replay.metrics import cache, engine, fairness, latency, queueing, rates, utilisation
from replay.metrics.metric import Metric, metrics
from replay.metrics.summary import Measured, measure

__all__ = [
    "Measured",
    "Metric",
    "cache",
    "engine",
    "fairness",
    "latency",
    "measure",
    "metrics",
    "queueing",
    "rates",
    "utilisation",
]

"""Length predictors: all that a policy may know of how long an answer will be.

A predictor is named by the experiment, and the report says which, and how much of the truth it knows.
"""

from replay.predictors.disturbed import Bucket, Noisy, Oracle, Uniform
from replay.predictors.finished import History, MaxTokens, UserMean
from replay.predictors.predictor import Knows, Predictor, predictors
from replay.predictors.ranker import Ranker

__all__ = [
    "Bucket",
    "History",
    "Knows",
    "MaxTokens",
    "Noisy",
    "Oracle",
    "Predictor",
    "Ranker",
    "Uniform",
    "UserMean",
    "predictors",
]

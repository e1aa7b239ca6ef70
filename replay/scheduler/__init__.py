"""The scheduler, and all that the author of a policy needs."""

from replay.request import Request
from replay.scheduler.batch_size import BatchSize, batch_sizes
from replay.scheduler.limits import Limits
from replay.scheduler.modes import Mode, modes
from replay.scheduler.policy import Ordered, PerUser, Policy, policies, policy
from replay.scheduler.scheduler import Scheduler
from replay.scheduler.step import Step

__all__ = [
    "BatchSize",
    "Limits",
    "Mode",
    "Ordered",
    "PerUser",
    "Policy",
    "Request",
    "Scheduler",
    "Step",
    "batch_sizes",
    "modes",
    "policies",
    "policy",
]

"""The scheduler, and all that the author of a policy needs."""

from replay.request import Request
from replay.scheduler.admission import Admission, admissions
from replay.scheduler.batch_size import BatchSize, batch_sizes
from replay.scheduler.limits import Limits
from replay.scheduler.modes import Mode, modes
from replay.scheduler.ordered import Ordered
from replay.scheduler.per_user import PerUser
from replay.scheduler.policy import Policy, policies, policy
from replay.scheduler.ranked import Ranked
from replay.scheduler.scheduler import Scheduler
from replay.scheduler.step import Step

__all__ = [
    "Admission",
    "BatchSize",
    "Limits",
    "Mode",
    "Ordered",
    "PerUser",
    "Policy",
    "Ranked",
    "Request",
    "Scheduler",
    "Step",
    "admissions",
    "batch_sizes",
    "modes",
    "policies",
    "policy",
]

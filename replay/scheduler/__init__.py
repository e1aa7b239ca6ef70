"""The scheduler, and all that the author of a policy needs."""

from replay.request import Request
from replay.scheduler.admission import Admission, ReserveMax, admissions
from replay.scheduler.batch_size import BatchSize, batch_sizes
from replay.scheduler.foresight import FuturePeak, PastFuture
from replay.scheduler.levelled import Levelled
from replay.scheduler.limits import Limits
from replay.scheduler.modes import Mode, modes
from replay.scheduler.ordered import ADMISSION, Ordered
from replay.scheduler.per_user import PerUser
from replay.scheduler.policy import Policy, policies, policy
from replay.scheduler.prefix_aware import PrefixAware
from replay.scheduler.ranked import Ranked
from replay.scheduler.reading import Reader
from replay.scheduler.scheduler import Scheduler
from replay.scheduler.service import Deficits, Served
from replay.scheduler.step import Step
from replay.scheduler.token_ratio import TokenRatio

__all__ = [
    "ADMISSION",
    "Admission",
    "BatchSize",
    "Deficits",
    "FuturePeak",
    "Levelled",
    "Limits",
    "Mode",
    "Ordered",
    "PastFuture",
    "PerUser",
    "Policy",
    "PrefixAware",
    "Ranked",
    "Reader",
    "Request",
    "ReserveMax",
    "Scheduler",
    "Served",
    "Step",
    "TokenRatio",
    "admissions",
    "batch_sizes",
    "modes",
    "policies",
    "policy",
]

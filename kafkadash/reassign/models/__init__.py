"""What belongs to reassignments alone: what was brought and planned, and what runs."""

from kafkadash.reassign.models.execution import RUN_FORMAT, Deed, Execution, Move, MoveState, Order, Outcome
from kafkadash.reassign.models.plan import PlanReport, PlanTopic, Upload, Verification, VerificationPart
from kafkadash.reassign.models.throttle import EntryState, ThrottleEntry

__all__ = [
    "RUN_FORMAT",
    "Deed",
    "EntryState",
    "Execution",
    "Move",
    "MoveState",
    "Order",
    "Outcome",
    "PlanReport",
    "PlanTopic",
    "ThrottleEntry",
    "Upload",
    "Verification",
    "VerificationPart",
]

"""Change requests of any kind: content, approvals, checks, states, and the pages of them."""

PUBLIC_MODULES = (
    "access",
    "checks",
    "errors",
    "expiry",
    "kinds",
    "models",
    "plan",
    "plans",
    "policy",
    "recheck",
    "request_validation",
    "review",
    "rights",
    "risk",
    "services",
    "state_machine",
    "step_checks",
    "steps",
    "trail",
    "transitions",
    "troubles",
    "views",
    "worker_transitions",
)
"""Modules that other rooms may import (``tests.doors``)."""

"""Rounds of kafkadash's own scheduled tasks, the tasks that are overdue, and the dead-man URL (ADR 31)."""

PUBLIC_MODULES = ("dead_man", "models", "rounds", "rules", "tasks")
"""Modules that other rooms may import (``tests.doors``)."""

"""Maintenance windows and silences: findings that are expected, or that nobody is told of (ADR 32)."""

PUBLIC_MODULES = ("models", "services")
"""Modules that other rooms may import (``tests.doors``)."""

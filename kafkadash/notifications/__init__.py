"""Notifications to receivers when findings open and close, and when changes go on (docs/notifications.md)."""

PUBLIC_MODULES = ("delivery", "errors", "guarded_http", "kinds", "models", "outbox", "routing", "tasks")
"""Modules that other rooms may import (``tests.doors``)."""

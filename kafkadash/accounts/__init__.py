"""Users, sign-in and audit events."""

PUBLIC_MODULES = ("errors", "models", "passwords", "services", "sessions", "templatetags.refusals")
"""Modules that other rooms may import (``tests.doors``)."""

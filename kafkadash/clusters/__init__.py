"""Registered clusters: connection, encrypted credentials, roles, and the settings pages."""

PUBLIC_MODULES = (
    "access",
    "allowed_lag",
    "contact",
    "errors",
    "forms",
    "metadata_mode",
    "models",
    "passwords",
    "removal",
    "secrets",
    "services",
)
"""Modules that other rooms may import (``tests.doors``)."""

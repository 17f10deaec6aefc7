"""Operation of the product itself: tick, retention, health, audit pages."""

PUBLIC_MODULES = ("models",)
"""Modules that other rooms may import (``tests.doors``)."""

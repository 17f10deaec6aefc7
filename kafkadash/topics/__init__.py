"""Changes of topics themselves: their creation, more partitions, and their deletion."""

PUBLIC_MODULES = ("creation", "errors", "growth", "placement")
"""Modules that other rooms may import (``tests.doors``)."""

"""Changes of consumer groups: new committed offsets, and their deletion with or without the group."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

"""Removal of orphan throttles as changes."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

"""Elections of leaders as changes: of preferred replicas, and unclean ones as an emergency."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

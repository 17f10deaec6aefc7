"""Changes of topics themselves: their creation, and more partitions."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

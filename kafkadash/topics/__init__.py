"""Changes of topics themselves: their creation, more partitions, and their deletion."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

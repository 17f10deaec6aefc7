"""What changed in a cluster, on one axis: the timeline and closed findings, read from rows of the rooms below."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

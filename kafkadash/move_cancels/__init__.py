"""Cancellation of reassignments that kafkadash did not start, as changes."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

"""Life cycle of a broker as changes: directories are cordoned, a stopped broker is unregistered; the steps to there."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

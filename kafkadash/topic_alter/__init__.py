"""Alteration of several aspects of topics in one request (KIP-179, KIP-4), as ordered steps of one change."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

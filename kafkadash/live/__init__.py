"""Pushed updates: panels, frames and the WebSocket."""

PUBLIC_MODULES = ("consumer", "frames", "panels", "publisher", "routing")
"""Modules that other rooms may import (``tests.doors``)."""

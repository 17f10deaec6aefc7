VERSION = "0.1.0"
"""The same as in ``pyproject.toml``, which an installation need not have."""

"""The error that ends a command of the pipeline."""

from __future__ import annotations

from kafkadash.core.errors import UserError


class PipelineFault(UserError):
    """A command of the pipeline ends with this error."""

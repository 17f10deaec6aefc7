"""The error that ends a command of the pipeline."""

from __future__ import annotations

from kafkadash.domain.errors import UserError


class PipelineFault(UserError):
    """What a command of the pipeline ends with."""

"""What ends a command of the pipeline with a sentence."""

from __future__ import annotations


class PipelineFault(Exception):
    """The text is for a person and says what to do."""

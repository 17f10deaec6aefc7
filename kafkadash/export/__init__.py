"""Export of facts for the pipeline: schema, outbox and Parquet files."""

PUBLIC_MODULES = ("encoding", "flusher", "outbox", "results", "schema", "tasks")
"""Modules that other rooms may import (``tests.doors``)."""

"""Results of the pipeline: ingest, tables and charts. Only ``ingest`` and ``results`` load PyArrow."""

PUBLIC_MODULES = ("models", "partitions", "schedule", "standing", "tasks")
"""Modules that other rooms may import (``tests.doors``)."""

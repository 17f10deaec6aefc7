"""Spark's daemon of Python workers with what they need imported: a worker is a fork of it, and imports nothing again.

``spark.python.daemon.module`` names it. None of these imports starts a thread, which a fork would lose.
"""

from __future__ import annotations

import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

import kafkadash.pipeline.batch  # noqa: F401

if __name__ == "__main__":
    manager()

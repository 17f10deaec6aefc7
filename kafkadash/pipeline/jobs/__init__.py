"""The pipeline's jobs: plain functions from frames to frames, used by stream, backfill and tests alike.

Frames of facts have the columns of ``domain.segments``, frames of results those of ``domain.pipeline_results``. A job
reads no clock, uses nothing but the public DataFrame API (so that it runs through Spark Connect and on a cluster
unchanged) and no Python function per row; one, that of verdicts, is told files and reads them (ADR 17). The same rows
give the same result, whatever files and order they come in: sums of doubles are therefore taken in an order, or over
decimals.
"""

"""The pipeline's jobs: plain functions from frames to frames, used by stream, backfill and tests alike.

Frames of facts have the columns of ``export.schema``, frames of results those of ``export.results``. A job reads no
clock, uses nothing but the public DataFrame API (so that it runs through Spark Connect and on a cluster unchanged) and
no Python function per row; only the job of verdicts gets file names and reads the files (ADR 17). The same rows give
the same result, in whatever files and order they come: sums of doubles are therefore taken in an order, or over
decimals.
"""

"""Facts on their way out: from a refresh into the outbox, from there into Parquet files (``domain.segments``)."""

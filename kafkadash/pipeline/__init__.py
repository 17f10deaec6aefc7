"""The data pipeline: Spark jobs over segments. Imports the domain only; no page and no worker imports it."""

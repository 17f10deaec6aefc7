"""The data pipeline, on real Spark, with real segments."""

"""The Spark application: segments in, lake and results out. ``python -m kafkadash.pipeline`` starts it.

It knows the domain, files and the DataFrame API, and nothing of Django, of the database or of Kafka.
"""

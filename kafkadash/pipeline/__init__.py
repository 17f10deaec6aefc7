"""Spark application: reads segments, keeps the lake, writes results. It loads neither Django nor a Kafka client."""

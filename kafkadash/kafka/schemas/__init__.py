"""Schemas of Kafka's messages that kafka-python does not bring, in the form of Kafka's own message definitions."""

"""Port to Kafka clusters (``api``) and its adapter over kafka-python, and over kazoo for ZooKeeper."""

PUBLIC_MODULES = ("api", "config_values", "connect", "connections", "errors", "probe", "tokens", "throttles", "znodes")
"""Modules that other rooms may import (``tests.doors``)."""

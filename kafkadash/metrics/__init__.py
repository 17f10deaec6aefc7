"""Metrics of kafkadash and of what it stores about clusters, for Prometheus: ``/metrics``."""

PUBLIC_MODULES = ()
"""Modules that other rooms may import (``tests.doors``)."""

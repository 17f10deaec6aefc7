"""What Spark is told in tests, where most is reckoned once: little of it is worth being optimised."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kafkadash.pipeline.session import CONF, settings

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
TOLD = {
    # The quick compiler alone: the other one would spend more time on a method than all its calls do.
    JAVA_OPTIONS: f"{settings({})[JAVA_OPTIONS]} -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    # On a machine that is busy a Python worker takes its time to say who it is.
    "spark.python.authenticate.socketTimeout": "120s",
}
SPARING: Mapping[str, str] = MappingProxyType({CONF: ";".join(f"{name}={value}" for name, value in TOLD.items())})

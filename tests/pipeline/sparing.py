"""What Spark is told in tests, where most is reckoned once: little of it is worth being optimised."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kafkadash.pipeline.session import CONF, build_settings

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_JAVA = (
    # The quick compiler alone: the other one would spend more time on a method than all its calls do.
    "-XX:TieredStopAtLevel=1",
    # Thousands of classes are loaded for little work; that they are sound is not what is tested.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
TOLD = {
    JAVA_OPTIONS: " ".join((build_settings({})[JAVA_OPTIONS], *_JAVA)),
    "spark.sql.shuffle.partitions": "2",
    # Dozens of Python workers come and go, and each would spend a second on imports.
    "spark.python.daemon.module": "tests.pipeline.warm_daemon",
    # On a machine that is busy a Python worker takes its time to say who it is.
    "spark.python.authenticate.socketTimeout": "120s",
}
SPARING: Mapping[str, str] = MappingProxyType({CONF: ";".join(f"{name}={value}" for name, value in TOLD.items())})

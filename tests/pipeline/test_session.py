"""The session's ports on this machine take only what knows its secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkadash.pipeline.session import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_of_this_machine__has_a_random_secret(spark: SparkSession) -> None:
    """Spark keeps it under this name of org.apache.spark.SecurityManager."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    held = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getCredentials()
    assert len(held.getSecretKey(jvm.org.apache.hadoop.io.Text("sparkCookie"))) >= 32


def test_spark_elsewhere__has_the_secret_that_is_set_there() -> None:
    environment = {"PYSPARK_SUBMIT_ARGS": "--master spark://host:7077 pyspark-shell"}
    assert "spark.authenticate" not in settings(environment)

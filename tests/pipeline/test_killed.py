"""A sample of the proof: driver and ingest die by SIGKILL in the middle of their work, and nothing shows it."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from django.db import connection

from kafkadash.clusters.models import Cluster
from kafkadash.history.models import PipelineLedger
from tests.pipeline.answers import of_the_rest, of_the_same_batches
from tests.pipeline.killing import driver, taker
from tests.pipeline.making import Maker
from tests.pipeline.sparing import SPARING
from tests.pipeline.stored import Rows, differing, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("spark")]


def _url() -> str:
    database = connection.settings_dict
    return f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}"


def _fetched(statement: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _drain(folder: Path) -> None:
    with taker(folder, _url(), "drain") as process:
        process.ends()


@pytest.mark.long
def test_driver_and_ingest__killed_in_the_middle__nothing_is_doubled_or_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("east", "west"):
        Cluster.objects.create(name=name, slug=name, bootstrap_servers="127.0.0.1:1")
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    # Ahead of us, so that no hour of it is over.
    began = datetime.now(UTC).replace(minute=50, second=7, microsecond=0) + timedelta(hours=1)
    Maker(disturbed / "segments", groups=2, partitions=2, began=began).flushes(12)
    with driver(disturbed, 6, 0, "topic_rollup written", "1", told=SPARING) as killed:
        killed.at_its_point()
    of_the_rest(spark, disturbed, 6)
    with taker(disturbed, _url(), point="portion-stored") as killed:
        killed.at_its_point()
    assert not PipelineLedger.objects.exists()
    _drain(disturbed)
    found = stored(_fetched)
    batches = list(PipelineLedger.objects.values_list("query", "batch", "flushes", "set_aside"))
    assert len(batches) == 2
    assert min(len(found[name]) for name in ("rollups", "catch-ups", "verdict counts", "differences")) > 0

    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE history_rollup, history_series, history_catchup, history_verdictcount,"
            " history_verdictdifference, history_pipelineledger"
        )
    shutil.copytree(disturbed / "segments", undisturbed / "segments", copy_function=os.link)
    of_the_same_batches(spark, undisturbed, batches)
    _drain(undisturbed)
    assert differing(found, stored(_fetched)) == {}

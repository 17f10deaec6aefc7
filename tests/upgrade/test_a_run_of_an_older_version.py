"""A run that an older version left in the middle: its database is migrated, and this version ends what it began.

``run_at_7964bcf.sql.gz`` was written by that commit's code; ``make_dump`` makes it anew. The cluster is real: what the
dump says of it (moves in flight, throttles) is set on it first.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.domain.run_reasons import NewerVersion
from kafkadash.embedded.postgres import install_folder
from kafkadash.kafka.connect import close_all
from kafkadash.observe import collection
from kafkadash.observe.models import CollectorRun, Kind
from kafkadash.playground.cluster import Playground
from kafkadash.playground.load import MIB, Topic, load
from kafkadash.reassign.models import Execution, Move, Outcome, ThrottleEntry
from kafkadash.reassign.run.measure import stored_progress
from tests.agreement.conftest import tools
from tests.agreement.runs import Run, alter
from tests.agreement.tools import Tools
from tests.other_database import led_to
from tests.reassign.runs import approve_as_stored
from tests.upgrade.make_dump import BOOTSTRAP, CLUSTER_ID, COMMIT, TOPIC_ID, file_of
from tests.upgrade.older import PLACEMENT

__all__ = ["tools"]

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("kraft"), pytest.mark.django_db(transaction=True)]
IN_FLIGHT = ("submitting", "moving", "catching_up")
NEWER = zlib.compress(json.dumps({"format": 99}).encode())
_names = count(1)


@pytest.fixture
def older(playground: Playground, tools: Tools, transactional_db: None, tmp_path: Path) -> Iterator[Run]:
    """The run as the older version left it, on the schema of this one."""
    names = ("upgrade-1", "upgrade-2")
    load(playground.bootstrap, [Topic(name, placement=[PLACEMENT], fill_bytes=8 * MIB) for name in names])
    ids = {name: topic.topic_id for name, topic in tools.topics().items() if name in names}
    text = gzip.decompress(file_of(COMMIT).read_bytes()).decode()
    text = text.replace(BOOTSTRAP, playground.bootstrap).replace(CLUSTER_ID, playground.cluster.cluster_id)
    for name, topic_id in ids.items():
        text = text.replace(TOPIC_ID % name, topic_id)
    name = f"upgrade_{next(_names)}"
    _restore(text, name)
    try:
        with led_to(NAME=name):
            call_command("migrate", verbosity=0)
            approve_as_stored(ChangeRequest.objects.get())  # its cluster has another id now, which is in the digest
            run = Run(ChangeRequest.objects.get(), User.objects.get(username="alice"))
            _as_the_dump_says(run, playground, tools, tmp_path)
            yield run
    finally:
        close_all()
        for topic in names:
            tools.run("topics", "--delete", "--topic", topic)


def test_it_is_finished(older: Run, tools: Tools) -> None:
    assert older.state == RequestState.EXECUTING
    assert stored_progress(older.execution) is None, "its figures have another format, and are measured anew"
    before = {row.topic: row.state for row in Move.objects.all()}
    assert set(before.values()) & set(IN_FLIGHT)
    _read_all()

    older.step()
    after = older.now
    assert after is not None
    assert all(0 <= (row.percent or 0) <= 100 for row in after.rows)
    older.raise_throttle("1000")
    older.until_it_is(RequestState.DONE, 120)

    assert older.execution.outcome == Outcome.CLEAN
    topics = tools.topics()
    for row in Move.objects.all():
        assert row.state == "done"
        assert list(topics[row.topic].partitions[row.partition].replicas) == row.target
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert tools.throttles(*before, 1, 2, 3) == {}


def test_what_a_newer_version_stored__is_not_misread(older: Run, tools: Tools) -> None:
    """As an older version finds it that takes over: figures are measured anew, the run is not touched."""
    _read_all()
    for unknown in (NEWER + NEWER, NEWER, b"laid out otherwise"):
        Execution.objects.update(progress=unknown, samples=unknown)
        assert stored_progress(Execution.objects.get()) is None
        older.step()
        assert older.now is not None
        assert older.execution.error_code == ""

    Execution.objects.update(format=2)
    rows = list(Move.objects.values_list("state", "attempt", "since"))
    throttles = tools.throttles("upgrade-1", "upgrade-2", 1, 2)
    older.step()
    assert older.execution.error == NewerVersion(2, 1)
    assert list(Move.objects.values_list("state", "attempt", "since")) == rows
    assert tools.throttles("upgrade-1", "upgrade-2", 1, 2) == throttles

    Execution.objects.update(format=1)
    older.step()
    assert older.execution.error_code == ""
    older.cancel("Seen enough.")


def _as_the_dump_says(run: Run, playground: Playground, tools: Tools, folder: Path) -> None:
    """Throttles first, then the moves that they are for."""
    for entry in ThrottleEntry.objects.filter(state="set"):
        owner = int(entry.name) if entry.resource == "broker" else entry.name
        alter(playground, owner, **{entry.key: ",".join(entry.pairs) or entry.value})
    rows = [
        {"topic": row.topic, "partition": row.partition, "replicas": row.target}
        for row in Move.objects.filter(execution=run.execution, state__in=IN_FLIGHT)
    ]
    file = folder / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}), encoding="utf-8")
    tools.run("reassign", "--reassignment-json-file", str(file), "--execute")


def _read_all() -> None:
    cluster = Cluster.objects.get()
    for kind in (Kind.METADATA, Kind.REASSIGNMENTS, Kind.QUORUM, Kind.LOG_DIRS, Kind.CONFIGS):
        collection.refresh(CollectorRun.objects.get(cluster=cluster, kind=kind).pk, only_if_due=False)


def _restore(text: str, name: str) -> None:
    """psql reads what pg_dump wrote."""
    own = connection.get_connection_params()
    server = {"host": own["host"], "user": own["user"]}
    with psycopg.connect(**server, dbname="postgres", autocommit=True) as there:
        there.execute(f'CREATE DATABASE "{name}"')
    into = psycopg.conninfo.make_conninfo(**server, dbname=name)
    program = install_folder() / "bin" / "psql"
    command: list[str | Path] = [program, "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", into]
    subprocess.run(command, input=text.encode(), capture_output=True, check=True)

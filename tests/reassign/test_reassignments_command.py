"""``manage.py reassignments``: Kafka's words and an exit code for verify, KIP-240's fields for list and describe."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command

from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_advice, message_text
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import Unreachable
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import CollectorRun, Kind, Outcome
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.management.commands import reassignments
from tests.factories import (
    NOW,
    ClusterFactory,
    ReassignmentFactory,
    ThrottleFactory,
    TopicFactory,
    ended,
    silent,
    watched,
)
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db
UNCHANGED = "Nothing was changed; throttles stay as they are."
STARTED = "started between 2026-11-21 01:58:54 UTC and 2026-11-21 01:59:04 UTC, first seen"
Write = Callable[..., str]


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and everything that was printed."""
    out = io.StringIO()
    try:
        call_command("reassignments", *arguments, "--cluster", "demo", stdout=out, stderr=out)
    except SystemExit as exit_:
        return int(exit_.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


@pytest.fixture
def demo() -> Iterator[Cluster]:
    with time_machine.travel(NOW, tick=False):
        yield watched("demo")


@pytest.fixture
def kafka(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    memory = MemoryCluster(clock=time.time)

    @contextmanager
    def admin(_: Connection) -> Iterator[MemoryCluster]:
        yield memory

    monkeypatch.setattr(reassignments, "own_admin", admin)
    return memory


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(*rows: tuple[str, int, list[int]], text: str = "") -> str:
        entries = [{"topic": topic, "partition": p, "replicas": replicas} for topic, p, replicas in rows]
        file = tmp_path / "move.json"
        file.write_text(text or json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
        return str(file)

    return written


def test_verify_prints_kafkas_words_and_ends_with_1_unless_all_is_completed(kafka: MemoryCluster, write: Write) -> None:
    kafka.add("foo", 0, 1, 2)
    kafka.add("foo", 1, 1, 2)
    kafka.move("foo", 1, 3, 2)
    code, said = run("verify", write(("foo", 1, [3, 2]), ("foo", 0, [1, 2]), ("foo", 7, [1])))
    assert code == 1
    assert said.splitlines() == [
        "Status of partition reassignment:",
        "Reassignment of partition foo-0 is completed.",
        "Reassignment of partition foo-1 is still in progress.",
        "There is no active reassignment of partition foo-7, but replica set is  rather than 1.",
        "  Partition foo-7 does not exist.",
        f"1 of 3 partitions is done, 1 is in progress, 1 does not exist. {UNCHANGED}",
    ]


def test_verify_ends_with_0_when_all_is_completed(kafka: MemoryCluster, write: Write) -> None:
    kafka.add("foo", 0, 1, 2)
    code, said = run("verify", write(("foo", 0, [1, 2])))
    assert (code, said.splitlines()[-1]) == (0, f"It is done. {UNCHANGED}")


def test_verify_of_a_bad_file_lists_what_is_wrong_and_ends_with_2(kafka: MemoryCluster, write: Write) -> None:
    file = write(text='{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,1]}]}')
    code, said = run("verify", file)
    assert code == 2
    assert "Line 1: " in said
    assert said.endswith("(file-not-verified)")


def test_verify_of_a_file_that_is_not_there_ends_with_2(kafka: MemoryCluster) -> None:
    sentence = message_text(
        ReassignmentErrorCode.FILE_NOT_READ, file="/nowhere/move.json", fault="No such file or directory"
    )
    assert run("verify", "/nowhere/move.json") == (2, f"{sentence} (file-not-read)")


def test_verify_of_a_cluster_that_does_not_answer_ends_with_2_and_its_sentence(
    kafka: MemoryCluster, write: Write
) -> None:
    kafka.fail = Unreachable("127.0.0.1:1 refused the connection.")
    assert run("verify", write(("foo", 0, [1]))) == (2, "127.0.0.1:1 refused the connection.")


def test_verify_of_another_cluster_behind_the_address_ends_with_2(
    kafka: MemoryCluster, cluster: Cluster, write: Write
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kafka_id="the-right-one")
    code, said = run("verify", write(("foo", 0, [1])))
    assert code == 2
    assert "and not the-right-one as before" in said


def test_a_cluster_that_nobody_registered_ends_with_2(db: None) -> None:
    ClusterFactory.create(name="prod")
    assert run("list") == (2, "There is no cluster demo. Registered: prod. (cluster-unknown)")


def test_list_says_how_old_it_is_and_each_move_as_kafkas_tool_and_with_its_id(demo: Cluster) -> None:
    one = ReassignmentFactory.create(cluster=demo, partition=7)
    other = ReassignmentFactory.create(cluster=demo, topic="a", partition=0, adding=[], replicas=[1, 2, 3])
    ended(demo, Outcome.COMPLETED, NOW, partition=8)
    code, said = run("list")
    assert code == 0
    assert said.splitlines() == [
        "As of 2026-11-21 02:03:01 UTC, 3 s ago.",
        "Current partition reassignments:",
        "a-0: replicas: 1,2,3. removing: 3.",
        f"  {other.public_id}, dropping replicas, {STARTED}",
        "cart.events-7: replicas: 6,2,1,3. adding: 6. removing: 3.",
        f"  {one.public_id}, copying, 43.2 % copied, {STARTED}",
    ]


def test_list_of_nothing_is_said_and_what_is_old_is_called_old(demo: Cluster) -> None:
    silent(demo, NOW - timedelta(hours=2))
    _, said = run("list")
    assert said.splitlines() == [
        "As of 2026-11-21 00:03:04 UTC, 2 h ago: too old to be what is now.",
        "No partition reassignments found.",
    ]


def test_list_before_anything_was_collected_is_an_error_and_not_an_empty_list(demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=Kind.REASSIGNMENTS).update(succeeded_at=None)
    for command in (["list"], ["list", "--json"], ["describe", "a-0"]):
        told = message_text(ReassignmentErrorCode.NOT_COLLECTED, cluster="demo")
        assert run(*command) == (2, f"{told} (not-collected)")


def test_list_as_json_has_every_field_and_null_for_what_nobody_could_read(demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7, percent=None, leader=None)
    _, said = run("list", "--json")
    listed = json.loads(said)
    assert (listed["taken_at"], listed["age_s"], listed["stale"]) == ("2026-11-21T02:03:01Z", 3.0, False)
    [found] = listed["reassignments"]
    assert found == {
        "id": row.public_id,
        "topic": "cart.events",
        "partition": 7,
        "state": "copying, progress unknown",
        "running": True,
        "started": {
            "not_before": "2026-11-21T01:58:54.000Z",
            "not_after": "2026-11-21T01:59:04.000Z",
            "from": "first_seen",
            "continuity_observed": True,
        },
        "ended_at": None,
        "leader": None,
        "leader_throttle": "unknown",
        "targets": [
            {"broker": 6, "adding": True, "throttle": "not throttled"},
            {"broker": 2, "adding": False, "throttle": "not throttled"},
            {"broker": 1, "adding": False, "throttle": "not throttled"},
        ],
        "adding": [6],
        "removing": [3],
        "percent": None,
        "replicas": [
            {
                "broker": 6,
                "percent": None,
                "lag_records": None,
                "in_sync": False,
                "taken_at": None,
                "error": "no answer within 8 s",
            }
        ],
        "last_seen_at": "2026-11-21T02:03:03.000Z",
    }


@pytest.mark.parametrize("by", ["id", "name"])
def test_describe_has_the_fields_of_kip_240(demo: Cluster, by: str) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7, continuity_gap=True)
    ThrottleFactory.create(cluster=demo, name="6", key="follower.replication.throttled.rate", value="20000000")
    key = "follower.replication.throttled.replicas"
    ThrottleFactory.create(cluster=demo, resource="topic", name="cart.events", key=key, value="7:6")
    code, said = run("describe", row.public_id if by == "id" else "cart.events-7")
    assert code == 0
    assert said.splitlines() == [
        "As of 2026-11-21 02:03:01 UTC, 3 s ago.",
        "topic:     cart.events",
        "partition: 7",
        f"id:        {row.public_id}",
        "state:     copying",
        "started:   between 2026-11-21 01:58:54 UTC and 2026-11-21 01:59:04 UTC, first seen; continuity not observed",
        "leader:    2, throttle: not throttled",
        "target:    6 (preferred leader), throttle: 20.0 MB/s",
        "target:    2, throttle: not throttled, holds it already",
        "target:    1, throttle: not throttled, holds it already",
        "adding:    6",
        "removing:  3",
        "progress:  6: 43.2 % at 2026-11-21 02:03:03 UTC, not in sync, lag 567,810 records",
        "in sync:   no",
        "last seen: 2026-11-21 02:03:03 UTC",
    ]


def test_describe_of_an_id_that_is_over_is_not_running_and_never_shows_a_later_one(demo: Cluster) -> None:
    row = ended(demo, Outcome.CANCELLED, NOW - timedelta(hours=1), partition=7)
    ReassignmentFactory.create(cluster=demo, partition=7, adding=[9])
    _, said = run("describe", row.public_id)
    assert f"{row.public_id} is not running: cancelled." in said
    assert "adding:    6" in said
    assert "throttle" not in said
    assert json.loads(run("describe", row.public_id, "--json")[1])["reassignment"]["running"] is False


def test_describe_of_a_partition_that_does_not_move_says_so_with_its_last_outcome(demo: Cluster) -> None:
    TopicFactory.create(cluster=demo, name="payments.ledger")
    _, said = run("describe", "payments.ledger-0")
    assert said.splitlines()[1:] == ["payments.ledger-0 is not being reassigned."]
    row = ended(demo, Outcome.COMPLETED, NOW - timedelta(hours=1), topic="payments.ledger", partition=0)
    _, said = run("describe", "payments.ledger-0")
    assert f"the last one, {row.public_id}, is not running: completed." in said


@pytest.mark.parametrize(
    ("which", "sentence", "then"),
    [
        (
            "payments.ledger-5",
            "Partition payments.ledger-5 does not exist, as of 2026-11-21 02:03:01 UTC.",
            message_advice(ReassignmentErrorCode.PARTITION_NOT_THERE),
        ),
        (
            "nowhere-0",
            "Partition nowhere-0 does not exist, as of 2026-11-21 02:03:01 UTC.",
            message_advice(ReassignmentErrorCode.PARTITION_NOT_THERE),
        ),
        (
            "r-cafe",
            "demo has no reassignment r-cafe, or it ended so long ago that it is forgotten.",
            message_advice(CollectionErrorCode.NO_SUCH_REASSIGNMENT),
        ),
        (
            "so what",
            "demo has no reassignment so what, or it ended so long ago that it is forgotten.",
            message_advice(CollectionErrorCode.NO_SUCH_REASSIGNMENT),
        ),
        (
            "a-99999999999",
            "demo has no reassignment a-99999999999, or it ended so long ago that it is forgotten.",
            message_advice(CollectionErrorCode.NO_SUCH_REASSIGNMENT),
        ),
    ],
)
def test_describe_of_what_does_not_exist_is_an_error(demo: Cluster, which: str, sentence: str, then: str) -> None:
    TopicFactory.create(cluster=demo, name="payments.ledger")
    assert run("describe", which) == (2, f"{sentence} {then}")


def test_describe_without_topics_read_does_not_call_a_partition_missing(demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=Kind.METADATA).update(succeeded_at=None)
    assert run("describe", "a-0") == (2, message_text(ReassignmentErrorCode.EXISTENCE_NOT_KNOWN, row="a-0"))

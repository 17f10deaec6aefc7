"""Reassignments as stored, against ``kafka-reassign-partitions`` and raw reads of the replicas' log ends.

Verify, list and describe, against ``kafka-reassign-partitions --verify`` and ``--list``, sentence by sentence.
"""

from __future__ import annotations

import io
import itertools
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.jobs.models import JobState
from kafkadash.jobs.runner import attempt_job
from kafkadash.monitoring.models import CollectorKind, MoveOutcome, ReassignmentSnapshot
from kafkadash.verify.job import load_verdicts, start_verification
from kafkadash.verify.models import Verification
from kafkadash.verify.rules import PartitionVerdict, VerifyState
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.runs import HELD_MIB, SLOW, broker_hung
from tests.agreement.tools import EARLIEST, LATEST, ListedMove, Tools
from tests.waiting import wait_until


def test_reassignments__throttled_move__equal_the_listing_until_it_completes(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    mover.start(topic, [3, 2], throttle=SLOW)

    refresh(CollectorKind.REASSIGNMENTS)
    listed = tools.moves()
    assert stored_moves(cluster) == listed
    assert ListedMove(topic, 0, (3, 2, 1), (3,), (1,)) in listed

    mover.let_go(topic)
    wait_until(lambda: tools.replicas(topic) == (3, 2), "the move is over", 30)
    refresh(CollectorKind.REASSIGNMENTS)
    listed = tools.moves()
    assert stored_moves(cluster) == listed
    assert topic not in {move.topic for move in listed}
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    assert (row.outcome, row.percent) == (MoveOutcome.COMPLETED, 100.0)
    assert tuple(row.target) == tools.topics("--topic", topic)[topic].partitions[0].replicas == (3, 2)


def test_reassignments__cancelled_by_kafkas_tool__end_as_cancelled(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[2, 1]], mib=HELD_MIB)
    mover.start(topic, [3, 1], throttle=SLOW)
    wait_until(lambda: tools.has_copy(3, topic), "the copy has begun", 30)
    refresh(CollectorKind.REASSIGNMENTS)
    assert topic in {move.topic for move in stored_moves(cluster)}

    mover.cancel(topic)
    refresh(CollectorKind.REASSIGNMENTS)
    listed = tools.moves()
    assert stored_moves(cluster) == listed
    assert topic not in {move.topic for move in listed}
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    assert row.outcome == MoveOutcome.CANCELLED
    assert row.percent is not None
    assert row.percent < 100.0
    assert set(row.original) == set(tools.topics("--topic", topic)[topic].partitions[0].replicas) == {1, 2}


@pytest.mark.long
def test_reassignments__topic_deleted_while_it_moves__end_as_topic_deleted(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[3, 1]], mib=HELD_MIB)
    mover.start(topic, [2, 1], throttle=SLOW)
    refresh(CollectorKind.REASSIGNMENTS)
    assert topic in {move.topic for move in stored_moves(cluster)}

    tools.run("topics", "--delete", "--topic", topic)
    mover.forget(topic)
    wait_until(lambda: tools.replicas(topic) == (), "no broker knows the topic any more", 30)
    wait_until(lambda: topic not in {move.topic for move in tools.moves()}, "its move is not listed any more", 30)
    refresh(CollectorKind.REASSIGNMENTS)
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    assert row.outcome == MoveOutcome.TOPIC_DELETED


@pytest.mark.long
def test_reassignments__destination_hangs_and_goes_on__equal_the_listing_all_along(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    mover: Mover,
    playground: KafkaPlayground,
    tools: Tools,
) -> None:
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    mover.start(topic, [3, 2], throttle=SLOW)
    refresh(CollectorKind.REASSIGNMENTS)
    row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    with broker_hung(playground, tools, 3):
        refresh(CollectorKind.REASSIGNMENTS)
        assert stored_moves(cluster) == tools.moves()
        row.refresh_from_db()
        assert (row.outcome, row.percent) == (MoveOutcome.RUNNING, None), "nobody can tell how far it is"
    refresh(CollectorKind.REASSIGNMENTS)
    assert stored_moves(cluster) == tools.moves()
    mover.let_go(topic)
    wait_until(lambda: tools.replicas(topic) == (3, 2), "the move is over", 60)
    refresh(CollectorKind.REASSIGNMENTS)
    assert stored_moves(cluster) == tools.moves()
    row.refresh_from_db()
    assert (row.outcome, row.percent) == (MoveOutcome.COMPLETED, 100.0), "the same row, to its end"
    wait_until(tools.in_sync, "every replica is in sync again", 60)


def test_percent__while_it_copies__lies_between_raw_reads_just_before_and_after(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1, 2]], mib=24)
    mover.start(topic, [1, 3], throttle=500_000)
    wait_until(lambda: tools.has_copy(3, topic), "the copy has begun", 30)
    # Nobody writes to the topic, so only the log end of the replica that is added moves.
    start, end = tools.offset(1, topic, EARLIEST), tools.offset(1, topic, LATEST)

    def copied() -> float:
        return 100.0 * (tools.offset(3, topic, LATEST) - start) / (end - start)

    def more_than(least: float) -> Callable[[], bool]:
        return lambda: copied() > least

    seen: list[float] = []
    last = 0.0
    while len(seen) < 4 and last < 85.0:
        wait_until(more_than(last + 3.0), f"more than {last + 3.0:.1f} % is copied", 30)
        before = copied()
        refresh(CollectorKind.REASSIGNMENTS)
        last = copied()
        row = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
        assert row.percent is not None
        assert before - 1e-6 <= row.percent <= last + 1e-6
        assert (row.leader_log_start, row.leader_log_end) == (start, end)
        seen.append(row.percent)
    assert len(seen) == 4, f"the copy outran the test: {seen}"
    assert all(earlier < later for earlier, later in itertools.pairwise(seen))


def stored_moves(cluster: Cluster) -> list[ListedMove]:
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
    return [
        ListedMove(row.topic, row.partition, tuple(row.replicas), tuple(row.adding), tuple(row.removing))
        for row in running.order_by("topic", "partition")
    ]


Row = dict[str, Any]
Verify = Callable[[list[Row]], tuple[list[PartitionVerdict], list[str]]]


def row(topic: str, partition: int, replicas: list[int], **more: Any) -> Row:
    return {"topic": topic, "partition": partition, "replicas": replicas, **more}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[list[Row]], Path]:
    def written(rows: list[Row]) -> Path:
        file = tmp_path / "verify.json"
        file.write_text(json.dumps({"version": 1, "partitions": rows}), encoding="utf-8")
        return file

    return written


@pytest.fixture
def verify(cluster: Cluster, viewer: User, tools: Tools, write: Callable[[list[Row]], Path]) -> Verify:
    """What our job finds in rows of a file, and what Kafka's tool prints of the same file."""

    def both(rows: list[Row]) -> tuple[list[PartitionVerdict], list[str]]:
        file = write(rows)
        theirs = tools.verify(file)
        content = file.read_bytes()
        job = start_verification(cluster, viewer, name=file.name, size=len(content), data=zlib.compress(content))
        attempt_job(job.pk)
        job.refresh_from_db()
        assert (job.state, job.error) == (JobState.DONE, None)
        return load_verdicts(Verification.objects.get(job=job), 0, len(rows)), theirs

    return both


def states(verdicts: list[PartitionVerdict]) -> dict[str, VerifyState]:
    return {verdict.name: verdict.state for verdict in verdicts}


def sentences(verdicts: list[PartitionVerdict]) -> list[str]:
    return sorted(sentence for verdict in verdicts for sentence in verdict.words)


def test_running_finished_cancelled_reordered_and_missing_get_the_sentences_of_the_tool(
    verify: Verify, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    running, elsewhere, finished, cancelled, reordered = (
        make_topic([[1, 2]], mib=mib) for mib in (HELD_MIB, HELD_MIB, 0, HELD_MIB, 0)
    )
    mover.start(finished, [3, 2], throttle=SLOW)
    wait_until(lambda: tools.replicas(finished) == (3, 2), "the empty topic has moved", 30)
    mover.cancel(finished)
    mover.start(cancelled, [3, 2], throttle=SLOW)
    mover.cancel(cancelled)
    mover.start(running, [3, 2], throttle=SLOW)
    mover.start(elsewhere, [2, 3], throttle=SLOW, beside=True)

    verdicts, theirs = verify(
        [
            row(running, 0, [3, 2]),
            row(elsewhere, 0, [3, 1]),
            row(finished, 0, [3, 2]),
            row(cancelled, 0, [3, 2]),
            row(reordered, 0, [2, 1]),
            row("no-such-topic", 0, [1, 2]),
        ]
    )
    assert sentences(verdicts) == sorted(theirs)
    assert states(verdicts) == {
        f"{running}-0": VerifyState.IN_PROGRESS,
        f"{elsewhere}-0": VerifyState.IN_PROGRESS,
        f"{finished}-0": VerifyState.COMPLETED,
        f"{cancelled}-0": VerifyState.FAILED,
        f"{reordered}-0": VerifyState.FAILED,
        "no-such-topic-0": VerifyState.MISSING,
    }
    notes = {verdict.name: verdict.note for verdict in verdicts}
    assert "2,3" in notes[f"{elsewhere}-0"]
    assert "no-such-topic-0" in notes["no-such-topic-0"]


def test_a_partition_beyond_the_last_is_missing_for_both(verify: Verify, make_topic: TopicMaker) -> None:
    topic = make_topic([[1, 2]])
    verdicts, theirs = verify([row(topic, 0, [1, 2]), row(topic, 9, [1, 2])])
    assert sentences(verdicts) == sorted(theirs)
    assert states(verdicts) == {f"{topic}-0": VerifyState.COMPLETED, f"{topic}-9": VerifyState.MISSING}


def test_directories_that_the_file_names_get_the_sentences_of_the_tool(
    verify: Verify, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[1, 2]])

    def find_directories() -> dict[int, str]:
        return {broker: path for broker, dirs in tools.sizes(topic).items() for path, held in dirs.items() if held}

    wait_until(lambda: find_directories().keys() == {1, 2}, "both brokers have their replica", 30)
    here = find_directories()
    other = next(path for path in tools.all_sizes([2])[2] if path != here[2])
    verdicts, theirs = verify([row(topic, 0, [1, 2], log_dirs=[here[1], other])])
    assert sentences(verdicts) == sorted(theirs)
    assert states(verdicts) == {f"{topic}-0": VerifyState.FAILED}


def test_the_command_prints_what_the_tool_prints_and_says_by_its_exit_whether_all_is_done(
    cluster: Cluster, write: Callable[[list[Row]], Path], make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[1, 2], [2, 3]])
    file = write([row(topic, 1, [2, 3]), row(topic, 0, [1, 2])])
    out = io.StringIO()
    call_command("reassignments", "verify", str(file), "--cluster", cluster.slug, stdout=out)
    assert out.getvalue().splitlines()[1:-1] == tools.verify(file)
    file = write([row(topic, 0, [2, 1])])
    with pytest.raises(SystemExit, match="1"):
        call_command("reassignments", "verify", str(file), "--cluster", cluster.slug, stdout=out)


def test_list_and_describe_say_what_the_tool_lists(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    mover.start(topic, [3, 2], throttle=SLOW)
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.CONFIGS)
    refresh(CollectorKind.REASSIGNMENTS)
    listed = [line for line in tools.run("reassign", "--list").splitlines() if ": replicas: " in line]
    said = _said("list", cluster)
    assert [line for line in said if ": replicas: " in line] == listed
    assert any(line.startswith(f"{topic}-0: ") for line in listed)

    found = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    described = _said("describe", cluster, f"{topic}-0")
    assert f"id:        {found.public_id}" in described
    assert f"leader:    {found.leader}, throttle: 0.2 MB/s" in described
    assert [line.endswith(" 0.2 MB/s") for line in described if line.startswith("target:    3 ")] == [True]
    assert "adding:    3" in described
    assert "removing:  1" in described
    mover.cancel(topic)
    refresh(CollectorKind.REASSIGNMENTS)
    assert f"{found.public_id} is not in progress: cancelled." in _said("describe", cluster, found.public_id)


def _said(command: str, cluster: Cluster, *which: str) -> list[str]:
    out = io.StringIO()
    call_command("reassignments", command, *which, "--cluster", cluster.slug, stdout=out)
    return out.getvalue().splitlines()

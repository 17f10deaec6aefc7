"""Verify, list and describe, against ``kafka-reassign-partitions --verify`` and ``--list``, sentence by sentence."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.domain.verify import State, Verdict
from kafkadash.jobs.models import JobState
from kafkadash.jobs.run import attempt
from kafkadash.observe.models import Kind, ReassignmentSnapshot
from kafkadash.reassign.models import Verification
from kafkadash.reassign.verify_job import start_verification, stored
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.waiting import wait_until

SLOW = 200_000  # bytes per second: a few MiB last longer than a test looks at them
Row = dict[str, Any]
Verify = Callable[[list[Row]], tuple[list[Verdict], list[str]]]


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

    def both(rows: list[Row]) -> tuple[list[Verdict], list[str]]:
        file = write(rows)
        theirs = tools.verify(file)
        content = file.read_bytes()
        job = start_verification(cluster, viewer, name=file.name, size=len(content), data=zlib.compress(content))
        attempt(job.pk)
        job.refresh_from_db()
        assert (job.state, job.error) == (JobState.DONE, "")
        return stored(Verification.objects.get(job=job), 0, len(rows)), theirs

    return both


def states(verdicts: list[Verdict]) -> dict[str, State]:
    return {verdict.name: verdict.state for verdict in verdicts}


def sentences(verdicts: list[Verdict]) -> list[str]:
    return sorted(sentence for verdict in verdicts for sentence in verdict.words)


def test_running_finished_cancelled_reordered_and_missing_get_the_sentences_of_the_tool(
    verify: Verify, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    running, elsewhere, finished, cancelled, reordered = (make_topic([[1, 2]], mib=mib) for mib in (4, 4, 0, 4, 0))
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
        f"{running}-0": State.IN_PROGRESS,
        f"{elsewhere}-0": State.IN_PROGRESS,
        f"{finished}-0": State.COMPLETED,
        f"{cancelled}-0": State.FAILED,
        f"{reordered}-0": State.FAILED,
        "no-such-topic-0": State.MISSING,
    }
    notes = {verdict.name: verdict.note for verdict in verdicts}
    assert notes[f"{elsewhere}-0"] == "It moves to 2,3, not to what the file says."
    assert notes["no-such-topic-0"] == "Partition no-such-topic-0 does not exist."


def test_a_partition_beyond_the_last_is_missing_for_both(verify: Verify, make_topic: TopicMaker) -> None:
    topic = make_topic([[1, 2]])
    verdicts, theirs = verify([row(topic, 0, [1, 2]), row(topic, 9, [1, 2])])
    assert sentences(verdicts) == sorted(theirs)
    assert states(verdicts) == {f"{topic}-0": State.COMPLETED, f"{topic}-9": State.MISSING}


def test_directories_that_the_file_names_get_the_sentences_of_the_tool(
    verify: Verify, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[1, 2]])
    here = {broker: path for broker, dirs in tools.sizes(topic).items() for path, held in dirs.items() if held}
    other = next(path for path in tools.all_sizes([2])[2] if path != here[2])
    verdicts, theirs = verify([row(topic, 0, [1, 2], log_dirs=[here[1], other])])
    assert sentences(verdicts) == sorted(theirs)
    assert states(verdicts) == {f"{topic}-0": State.FAILED}


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
    topic = make_topic([[1, 2]], mib=4)
    mover.start(topic, [3, 2], throttle=SLOW)
    refresh(Kind.METADATA)
    refresh(Kind.CONFIGS)
    refresh(Kind.REASSIGNMENTS)
    listed = [line for line in tools.run("reassign", "--list").splitlines() if ": replicas: " in line]
    said = _said("list", cluster)
    assert [line for line in said if ": replicas: " in line] == listed
    assert any(line.startswith(f"{topic}-0: ") for line in listed)

    found = ReassignmentSnapshot.objects.get(cluster=cluster, topic=topic)
    described = _said("describe", cluster, f"{topic}-0")
    assert f"id:        {found.public_id}" in described
    assert f"leader:    {found.leader}, throttle: 0.2 MB/s" in described
    assert "target:    3 (preferred leader), throttle: 0.2 MB/s" in described
    assert "adding:    3" in described
    assert "removing:  1" in described
    mover.cancel(topic)
    refresh(Kind.REASSIGNMENTS)
    assert f"{found.public_id} is not running: cancelled." in _said("describe", cluster, found.public_id)


def _said(command: str, cluster: Cluster, *which: str) -> list[str]:
    out = io.StringIO()
    call_command("reassignments", command, *which, "--cluster", cluster.slug, stdout=out)
    return out.getvalue().splitlines()

"""The report of a run: made when it ends, the same on its page and as files, and honest about what is not known.

The figures of a run as they are stored with it, and what is read for them.

The way back: from the rows that were moved, in their order, planned and checked like anything else.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from string import Formatter
from typing import Any
from unittest import mock

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import record
from kafkadash.changes import services
from kafkadash.changes import services as running
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.core.messages import CodedMessage, PlainReason, as_message, coded, message_text, reason_columns
from kafkadash.execution import commands as orders
from kafkadash.execution import report
from kafkadash.execution.engine.reasons import NotAsPlanned, RowReasonCode, TopicDeleted
from kafkadash.execution.engine.state import CopyWork, RowState, RunRow
from kafkadash.execution.engine.throttle_ledger import ThrottlePlace
from kafkadash.execution.messages import REPORT_NOTE_MESSAGES, ReportNoteCode
from kafkadash.execution.models import Execution, Move, RunOutcome, ThrottleEntry
from kafkadash.execution.pages.report import ReportShown, render_markdown
from kafkadash.execution.progress.figures import FlowDirection
from kafkadash.execution.report import stored_report
from kafkadash.execution.rollback import left_words, propose_back
from kafkadash.execution.worker.measure import (
    FreshSizes,
    fresh_sizes,
    inbound_of,
    measure,
    moved_at_end,
    stored_progress,
    stored_samples,
)
from kafkadash.jobs.runner import attempt_job
from kafkadash.kafka.api import ItemError, OffsetKind, OffsetQuery, ReplicaOffset, ReplicaOffsets
from kafkadash.kafka.throttles import LEADER_RATE
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    CollectorKind,
    CollectorRun,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.problem_codes import CheckTitle
from kafkadash.planning.stored_checks import plan_rows
from tests.execution.executor_cluster import START
from tests.execution.run_model import MB, Logs, Running
from tests.execution.worlds import ROWS, World
from tests.factories import ReassignmentFactory
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db


@pytest.fixture
def done(world: World, operator: User) -> ChangeRequest:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    running.pause(world.change(), operator, "p99 is high.")
    world.tick(120)
    running.resume(world.change(), operator, "It is down.")
    orders.set_throttle(world.change(), operator, "600", "*All* quiet | now.")
    return world.until(RequestState.DONE)


def meanwhile(world: World) -> list[CodedMessage]:
    return list(ReportShown(stored(world)).meanwhile)


def stored(world: World) -> Mapping[str, Any]:
    made: Mapping[str, Any] = Execution.objects.get(request=world.runs[0]).report
    return made


def test_each_note__has_a_message_that_is_filled_from_what_is_stored() -> None:
    at = datetime(2026, 11, 24, 10, 2, 13, tzinfo=UTC)
    samples: dict[str, Any] = {"named": "orders-0", "found": "Another rate.", "state": "cancelled"}
    samples |= dict.fromkeys(("at", "gone", "back"), at) | dict.fromkeys(("ratio", "paused", "gap", "away_s"), 61.5)
    assert REPORT_NOTE_MESSAGES.keys() == set(ReportNoteCode)
    for code, message in REPORT_NOTE_MESSAGES.items():
        named = {name for _, name, _, _ in Formatter().parse(message.text + message.many) if name}
        note = coded(code, **{name: samples.get(name, 2) for name in named | {message.by} - {""}})
        read = CodedMessage.from_json(json.loads(json.dumps(note.as_json())))
        assert str(read) == str(note)
        assert code.value not in str(note)


def test_it_is_stored_when_the_run_ends(world: World, done: ChangeRequest, operator: User) -> None:
    made = ReportShown(stored(world))
    run = world.run()
    assert (made.number, made.ended, made.state) == (done.pk, "Done, clean", "ok")
    assert made.started_at == run.started_at
    assert made.ended_at == run.ended_at
    assert made.stored["rows"] == {"total": len(ROWS), "by_end": {"done": len(ROWS)}}
    assert made.headline.startswith(f"{len(ROWS)} of {len(ROWS)} partitions moved")
    assert made.stored["obligations"] == []
    assert [one.who for one in made.people if one.person] == [operator.username] * 4
    assert "500 → 600 MB/s" in [one.did for one in made.people if one.person][-1]


def test_what_came_otherwise_is_said(world: World, done: ChangeRequest) -> None:
    said = {note.code: note.params for note in ReportShown(stored(world)).deviations}
    took = said[ReportNoteCode.TOOK_OTHER_TIME]
    assert (int(took["planned"]), took["rate"], took["took"] // 60) == (42, 500_000_000, 2)
    assert took["ratio"] == pytest.approx(took["took"] / took["planned"])
    assert said[ReportNoteCode.THROTTLE_CHANGED] == {"times": 1, "rate": 600_000_000}


def test_a_page_shows_what_was_stored_and_makes_it_where_that_failed(world: World, operator: User) -> None:
    world.queue(operator)
    with mock.patch.object(report, "report_of", side_effect=RuntimeError("a fault of ours")):
        change = world.until(RequestState.DONE)
    assert stored(world) == {}, "the run ended all the same"
    made = stored_report(change)
    assert made is not None
    assert ReportShown(made).ended == "Done, clean"
    assert stored_report(ChangeRequest(pk=change.pk + 1)) is None


def test_rows_that_ended_otherwise_are_named_with_their_reasons(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    orders.order_row(world.change(), operator, "orders", 0, "cancel_row", "Not this one.")
    world.until(RequestState.DONE)
    made = ReportShown(stored(world))
    assert (made.ended, made.state) == ("Done, with exceptions", "warning")
    (row,) = made.otherwise
    assert (row.name, row.words) == ("orders-0", "cancelled")
    assert "Not this one." in row.reason
    ended = coded(ReportNoteCode.ENDED_OTHERWISE, rows=1, total=len(ROWS), state="cancelled")
    assert ended in made.deviations
    assert made.headline.startswith(f"{len(ROWS) - 1} of {len(ROWS)} partitions moved")
    assert made.ends == [("completed", len(ROWS) - 1), ("cancelled", 1)]


def test_many_of_them_are_counted(world: World, operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_ROWS", 2)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    running.cancel(world.change(), operator, "Enough.")
    world.until(RequestState.CANCELLED)
    made = ReportShown(stored(world))
    assert (made.ended, len(made.otherwise), made.more_otherwise) == ("Cancelled", 2, len(ROWS) - 2)
    assert f"and {len(ROWS) - 2} more" in render_markdown(made)
    assert any(one.did == "cancelled the run" and one.detail == ("Enough.",) for one in made.people)


def test_what_changed_elsewhere_is_said_as_far_as_it_is_stored(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    seen = {"cluster": world.cluster, "started_before": world.clock, "last_seen_at": world.clock}
    ReassignmentFactory.create(topic="audit", partition=7, target=[1, 2, 4], **seen)
    ReassignmentFactory.create(topic="orders", partition=0, target=[1, 2, 6], **seen)
    world.until(RequestState.DONE)
    assert meanwhile(world) == [
        coded(ReportNoteCode.OTHERS_MOVED, rows=1, named="audit-7"),
        coded(ReportNoteCode.BROKERS_STAYED),
        coded(ReportNoteCode.TOPICS_NOT_RECORDED),
        coded(ReportNoteCode.NO_OTHER_THROTTLES),
    ]


def test_a_broker_that_was_away_is_told_with_its_times(world: World, operator: User) -> None:
    """KRaft keeps a dead broker registered and fences it; it never leaves the list of brokers."""
    world.model.brokers[7] = True  # nothing of the run lies on it, so that the run ends without it
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.model.stop(5)
    left = world.clock
    world.tick()
    world.tick()
    world.model.start(5)
    back = world.clock
    world.tick()
    world.model.stop(7)
    gone = world.clock
    world.until(RequestState.DONE)
    between, at_the_end = meanwhile(world)[1:3]
    assert (between.code, at_the_end.code) == (ReportNoteCode.AWAY_BETWEEN, ReportNoteCode.AWAY_AT_THE_END)
    assert str(between) == message_text(between.code, broker=5, gone=left, back=back, away_s=4)
    assert str(at_the_end) == message_text(at_the_end.code, broker=7, gone=gone)
    assert coded(ReportNoteCode.BROKERS_STAYED) not in meanwhile(world)


def test_brokers_are_not_said_to_have_stayed_where_nobody_looked(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.passes(180)
    change = world.until(RequestState.DONE)
    unseen = meanwhile(world)[1]
    assert (unseen.code, unseen.params["gap"] // 60) == (ReportNoteCode.BROKERS_NOT_WATCHED, 3)
    Execution.objects.update(report={}, absences=None)
    made = stored_report(change)
    assert made is not None
    assert ReportShown(made).meanwhile[1].code == ReportNoteCode.ABSENCES_NOT_RECORDED


def test_what_others_did_to_its_rows_and_throttles_is_told_once(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.until(RequestState.VERIFYING)
    Move.objects.filter(topic="orders", partition=4).update(
        state=RowState.SUPERSEDED, **reason_columns(PlainReason(RowReasonCode.CANCELLED_BY_OTHERS))
    )
    Move.objects.filter(topic="clicks").update(state=RowState.TOPIC_DELETED, **reason_columns(TopicDeleted("clicks")))
    about = ("changerequest", str(world.runs[0]))
    for _ in range(2):
        record("kafkadash", "change.throttle_foreign", about, cluster="demo", reason="Another rate: broker 4.")
    change = world.change()
    run = Execution.objects.select_related("request", "cluster").get()
    told = ReportShown(report.report_of(run, ChangeState(change.state), "", world.clock)).meanwhile
    assert told[0] == coded(ReportNoteCode.OTHERS_MOVED, rows=1, named="orders-4")
    assert told[2] == coded(ReportNoteCode.TOPICS_DELETED, topics=1, named="clicks")
    assert len(told) == 4
    assert told[3].code == ReportNoteCode.OTHER_THROTTLE
    assert (told[3].params["found"], told[3].params["times"]) == ("Another rate: broker 4.", 2)
    ThrottleEntry.objects.filter(name="4", key=LEADER_RATE).update(again_at=world.clock)
    told = ReportShown(report.report_of(run, ChangeState(change.state), "", world.clock)).meanwhile
    named = ThrottlePlace("broker", "4", LEADER_RATE).words
    assert told[4] == coded(ReportNoteCode.RATES_UNCERTAIN, named=named)


def test_bytes_that_are_not_known_are_not_zero(world: World, operator: User) -> None:
    world.queue(operator)
    change = world.until(RequestState.DONE)
    Move.objects.update(moved_bytes=None)
    Execution.objects.update(report={})
    none = ReportShown(stored_report(change) or {})
    assert (none.bytes_words, none.rate_words) == ("unknown", "unknown")
    Move.objects.filter(topic="orders").update(moved_bytes=3_000_000_000)
    some = ReportShown(stored_report(change) or {})
    assert (some.stored["bytes"], some.stored["bytes_unknown"]) == (15 * 10**9, 1)
    assert "15.0 GB" in some.bytes_words


def test_what_is_still_owed_is_said(world: World, done: ChangeRequest) -> None:
    owed = {**stored(world), "outcome": "obligations", "obligations": ["The rate of broker 4: it is away."]}
    made = ReportShown(owed)
    assert (made.ended, made.state) == (f"Done, {RunOutcome.OBLIGATIONS.label}", "warning")
    assert made.throttle_words != ReportShown(stored(world)).throttle_words
    assert f"- {owed['obligations'][0]}" in render_markdown(made).splitlines()


def test_the_files_say_the_same_and_text_of_people_is_no_markup(world: World, done: ChangeRequest) -> None:
    ChangeRequest.objects.update(title="<b>3</b>\n# now [x](http://evil)")
    made = stored(world)
    text = render_markdown(ReportShown({**made, "title": ChangeRequest.objects.get().title}))
    first = text.splitlines()[0]
    assert first.endswith(r"\<b\>3\</b\> \# now \[x\]\(http://evil\)")
    assert r"\*All\* quiet \| now." in text
    assert text.count("\n## ") == 5  # no section of rows that ended otherwise
    assert json.loads(json.dumps(made)) == made


def test_the_report_costs_a_few_queries_for_any_number_of_rows(
    world: World, done: ChangeRequest, django_assert_max_num_queries: object
) -> None:
    run = Execution.objects.select_related("request", "cluster").get()
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        report.report_of(run, RequestState.DONE, "clean", world.clock)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [RowState.FAILED, RowState.TOPIC_DELETED])
def test_every_end_has_words(state: RowState, world: World, done: ChangeRequest) -> None:
    made = {**stored(world), "rows": {"total": 5, "by_end": {"done": 4, state.value: 1}}}
    assert ReportShown(made).ends[0] == ("completed", 4)
    assert ReportShown({**made, "state": "failed", "outcome": ""}).state == "critical"


MEASURED_ROWS = (
    PartitionMove("orders", "id-of-orders", 0, (1, 2, 3), (1, 2, 6)),
    PartitionMove("clicks", "id-of-clicks", 0, (3, 5), (6, 5)),
)
RATE = 60 * MB
NEWER = zlib.compress(json.dumps({"format": 99}).encode())


class Stored:
    """A run on the model of ``tests.execution.run_model`` whose figures go through the database after each step."""

    def __init__(self, execution: Execution) -> None:
        self.pk = execution.pk
        self.cluster = Logs(
            MEASURED_ROWS, {(r.topic, r.partition): 6000.0 * MB for r in MEASURED_ROWS}, range(1, 7), RATE
        )
        self.cluster.number = type(self.cluster.number)({"orders": 9, "clicks": 9})
        self.run = Running(self.cluster, MEASURED_ROWS, RunOptions(RATE, 1, 10**12))
        Execution.objects.filter(pk=self.pk).update(throttle=RATE)
        BrokerWeights.objects.update(taken_at=START - timedelta(hours=1))
        self.errors: dict[OffsetQuery, ItemError] = {}

    def tick(self, fresh: FreshSizes | None = None) -> Execution:
        """As a worker that has just been started."""
        self.run.tick(2.0, measure=False)
        execution = Execution.objects.get(pk=self.pk)
        fresh = fresh or fresh_sizes(execution, self.run.moves)
        measure(execution, self.run.moves, self.cluster.look(), self.offsets(), fresh, self.cluster.now)
        execution.save(update_fields=["progress", "progress_at", "samples"])
        return Execution.objects.get(pk=self.pk)

    def ticks(self, number: int) -> Execution:
        for _ in range(number - 1):
            self.tick()
        return self.tick()

    def offsets(self) -> ReplicaOffsets:
        at, found = self.cluster.now.timestamp(), {}
        for key in self.cluster.moving:
            read = self.cluster.read(key)
            assert read.source is not None
            assert read.log_start is not None
            assert read.log_end is not None
            found[OffsetQuery(read.source, *key, OffsetKind.LATEST)] = ReplicaOffset(read.log_end, at)
            found[OffsetQuery(read.source, *key, OffsetKind.EARLIEST_LOCAL)] = ReplicaOffset(read.log_start, at)
            for broker, end in (read.ends or {}).items():
                found[OffsetQuery(broker, *key, OffsetKind.LATEST)] = ReplicaOffset(end, at)
        answered = {query: offset for query, offset in found.items() if query not in self.errors}
        return ReplicaOffsets(answered, self.errors)


@pytest.fixture
def stored_run(world: World, operator: User) -> Stored:
    world.queue(operator)
    return Stored(world.run())


def test_measure__each_step_by_another_worker__goes_on_from_what_is_stored(stored_run: Stored) -> None:
    execution = stored_run.ticks(30)

    run = stored_progress(execution)

    assert run is not None
    assert run.rate == pytest.approx(RATE, rel=0.05)
    assert run.percent == pytest.approx(100 * 29 * 2 * RATE / (12_000 * MB), abs=3)
    assert run.binding == (6, FlowDirection.IN)
    assert run.eta_s == pytest.approx(12_000 / 60 - 58, rel=0.1)
    assert {row.topic for row in run.rows} == {"orders", "clicks"}
    assert execution.progress_at is not None
    assert abs((execution.progress_at - stored_run.cluster.now).total_seconds()) < 0.01


@pytest.mark.parametrize("stored", [NEWER, NEWER + NEWER, b"no zlib"])
def test_progress__in_another_format__is_measured_anew(stored_run: Stored, stored: bytes) -> None:
    Execution.objects.update(progress=stored, samples=stored)
    assert stored_progress(Execution.objects.get()) is None

    assert stored_progress(stored_run.tick()) is not None


def test_measure__keeps_a_history_with_the_throttle(stored_run: Stored) -> None:
    stored_run.ticks(20)
    stored_run.run.throttle(30 * MB)
    Execution.objects.filter(pk=stored_run.pk).update(throttle=30 * MB)

    history = stored_samples(stored_run.ticks(20))

    assert history is not None
    assert len(history.points) >= 5
    assert [(mark.before, mark.after) for mark in history.marks] == [(RATE, 30 * MB)]
    assert history.line((6, FlowDirection.IN))[-1] == pytest.approx(30 * MB, rel=0.1)


def test_measure__nothing_was_answered__keeps_figures_with_their_age(stored_run: Stored) -> None:
    before = stored_progress(stored_run.ticks(10))
    stored_run.errors = {
        query: ItemError(as_message("did not answer in time")) for query in stored_run.offsets().offsets
    }

    after = stored_progress(stored_run.ticks(3))

    assert before is not None
    assert after is not None
    assert [row.sampled_at for row in after.rows] == [row.sampled_at for row in before.rows]
    assert [row.percent for row in after.rows] == [row.percent for row in before.rows]


def test_measure__kafka_refuses_to_tell_of_a_topic__its_words_are_the_cause(stored_run: Stored) -> None:
    stored_run.ticks(10)
    query = OffsetQuery(6, "orders", 0, OffsetKind.LATEST)
    stored_run.errors = {query: ItemError(as_message("Topic authorization failed."), 29, "TOPIC_AUTHORIZATION_FAILED")}

    run = stored_progress(stored_run.ticks(60))

    assert run is not None
    row = next(row for row in run.rows if row.topic == "orders")
    assert row.mark is not None


def test_fresh_sizes__first_step_asks_for_configs_too_and_later_ones_only_for_what_is_new(
    stored_run: Stored, world: World
) -> None:
    demo = world.cluster
    TopicState.objects.filter(cluster=demo, name="orders").update(config={"cleanup.policy": ["compact", "topic"]})
    execution = stored_run.tick()
    with CaptureQueriesContext(connection) as queries:
        again = fresh_sizes(execution, stored_run.run.moves)
    run = stored_progress(stored_run.tick())
    _weigh(demo, 6, {"orders": {"0": 55}})

    newer = fresh_sizes(execution, stored_run.run.moves)

    assert len(queries) == 1
    assert again.sizes == {}
    assert newer.sizes[6][1] == {("orders", 0): 55}
    assert run is not None
    assert {row.topic: row.estimate for row in run.rows} == {"orders": "compacted", "clicks": ""}


def _weigh(cluster: Cluster, broker: int, sizes: dict[str, dict[str, int]]) -> None:
    later = max(BrokerWeights.objects.filter(cluster=cluster).values_list("taken_at", flat=True)) + timedelta(seconds=9)
    packed = zlib.compress(json.dumps(sizes).encode())
    BrokerWeights.objects.filter(cluster=cluster, broker_id=broker).update(data=packed, taken_at=later)


def test_inbound__nothing_measured__is_not_known_and_says_so(stored_run: Stored) -> None:
    found, words = inbound_of(Execution.objects.get(pk=stored_run.pk))
    early, early_words = inbound_of(stored_run.ticks(3))

    assert found is early is None
    assert "2 moves" in early_words
    assert "2 moves" not in words


def test_inbound__producers_write_to_two_partitions__adds_up_where_both_arrive(stored_run: Stored) -> None:
    stored_run.cluster.inbound = {("orders", 0): 2.0 * MB, ("clicks", 0): 3.0 * MB}

    found, words = inbound_of(stored_run.ticks(20))

    assert found == pytest.approx(5 * MB, rel=0.05)
    assert "copied to broker 6" in words


def test_inbound__nobody_writes__is_nothing(stored_run: Stored) -> None:
    assert inbound_of(stored_run.ticks(20))[0] == 0.0


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RowState.DONE, lambda row: row.size_bytes),
        (RowState.CANCELLED, lambda row: row.moved_bytes),
    ],
)
def test_moved_at_end__is_all_of_what_is_done_and_what_was_there_of_the_others(
    stored_run: Stored, state: RowState, expected: Callable[..., int]
) -> None:
    before = stored_progress(stored_run.ticks(10))
    assert before is not None
    move = stored_run.run.moves[0].to(state, START)

    row = next(row for row in before.rows if row.topic == "orders")
    assert moved_at_end(before, move) == expected(row)
    assert row.moved_bytes is not None
    assert 0 < row.moved_bytes < 6000 * MB


def test_moved_at_end__never_measured__is_known_only_where_it_cannot_be_otherwise() -> None:
    sized = RunRow(CopyWork(MEASURED_ROWS[0], 500), RowState.DONE, submitted_at=START)

    assert moved_at_end(None, sized) == 500
    assert moved_at_end(None, RunRow(CopyWork(MEASURED_ROWS[0]), RowState.DONE, submitted_at=START)) is None
    assert moved_at_end(None, RunRow(CopyWork(MEASURED_ROWS[0], 500), RowState.SKIPPED)) == 0
    assert moved_at_end(None, RunRow(CopyWork(MEASURED_ROWS[0], 500), RowState.CANCELLED, submitted_at=START)) is None
    assert moved_at_end(None, RunRow(CopyWork(PartitionMove("orders", "", 0, (1, 2), (2, 1))), RowState.DONE)) == 0


ORIGINAL = {f"{row.topic}-{row.partition}": row.current for row in ROWS}
TARGET = {f"{row.topic}-{row.partition}": row.target for row in ROWS}


def collected(world: World) -> None:
    """The collectors read the cluster as the virtual Kafka has it, after what happened last."""
    world.passes(3)
    for topic in TopicState.objects.filter(cluster=world.cluster):
        topic.partitions = [
            [number, leader, epoch, list(there.replicas), sorted(there.isr), offline]
            for number, leader, epoch, _, _, offline in topic.partitions
            if (there := world.model.partitions.get((topic.name, number)))
        ]
        topic.shape = f"{topic.shape}+"[-32:]
        topic.save()


def plan_of(draft: ChangeRequest) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Partition → current and target replicas, by the plan that its job made."""
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    attempt_job(job.pk)
    made = ChangeRequest.objects.get(pk=draft.pk)
    rows = plan_rows(made.artifact_id) if made.artifact_id else ()
    return {row.name: (row.current, row.target) for row in rows}


def notices(draft: ChangeRequest) -> list[CodedMessage]:
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    assert job.result is not None, job.error
    return [CodedMessage.from_json(notice) for notice in job.result["notices"]]


@pytest.fixture
def finished(world: World, operator: User) -> ChangeRequest:
    world.queue(operator)
    return world.until(RequestState.DONE)


def test_it_gives_every_partition_its_original_replicas_in_order(
    world: World, finished: ChangeRequest, operator: User
) -> None:
    collected(world)
    draft = propose_back(finished, operator)
    assert (draft.state, draft.title) == (RequestState.DRAFT, f"Rollback of #{finished.pk}: Drain broker 3")
    assert (draft.origin_id, draft.origin_word, draft.contributor_ids) == (finished.pk, "rollback", [operator.pk])
    assert plan_of(draft) == {name: (TARGET[name], original) for name, original in ORIGINAL.items()}
    (event,) = AuditEvent.objects.filter(action="change.rollback_proposed")
    assert (event.object_id, event.after) == (str(finished.pk), {"rollback": draft.pk})


def test_its_limits_are_those_of_the_run_without_its_window(
    world: World, finished: ChangeRequest, operator: User
) -> None:
    begin = (timezone.now() - timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ChangeRequest.objects.filter(pk=finished.pk).update(options={**finished.options, "not_before": begin})
    draft = propose_back(world.change(), operator)
    assert draft.options == {
        **finished.options,
        "not_before": "",
        "not_after": "",
        "may_lose_racks": True,
        "disk_limit_percent": 80.0,
    }
    assert draft.not_before is None


def test_pressed_twice_it_is_one_draft(finished: ChangeRequest, operator: User, make_user: Callable[..., User]) -> None:
    first = propose_back(finished, operator)
    assert propose_back(finished, operator) == first
    assert propose_back(finished, make_user("olaf", Role.OPERATOR)) != first, "somebody else's draft is his own"


def test_only_what_was_moved_goes_back_and_the_rest_is_named(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    by_now = NotAsPlanned((5, 6), (1, 2))
    Move.objects.filter(topic="clicks").update(state=RowState.SKIPPED, **reason_columns(by_now))
    Move.objects.filter(topic="orders", partition=4).update(
        state=RowState.SUPERSEDED, **reason_columns(PlainReason(RowReasonCode.CANCELLED_BY_OTHERS))
    )
    Move.objects.filter(topic="orders", partition__lt=4).update(state=RowState.DONE)
    ChangeRequest.objects.update(state=RequestState.DONE)
    for name in ("orders-0", "orders-1", "orders-2"):
        world.model.partitions["orders", int(name[-1])].replicas = TARGET[name]
    ReassignmentSnapshot.objects.all().delete()
    run = world.run()
    type(run).objects.filter(pk=run.pk).update(ended_at=world.clock, active=False)
    collected(world)
    draft = propose_back(world.change(), operator)
    assert plan_of(draft) == {name: (TARGET[name], ORIGINAL[name]) for name in ("orders-0", "orders-1", "orders-2")}
    told = [notice.as_json() for notice in notices(draft)]
    for name, state, why in (
        ("clicks-0", RowState.SKIPPED, by_now),
        ("orders-4", RowState.SUPERSEDED, PlainReason(RowReasonCode.CANCELLED_BY_OTHERS)),
    ):
        assert coded(ReassignmentErrorCode.BACK_NOT_MOVED_WHY, row=name, state=state, why=why).as_json() in told
    words = left_words(world.change().pk)
    assert re.findall(r"(?<![#\d])\d+ \w+", words) == ["2 partitions", "1 skipped", "1 superseded"]
    assert f"#{world.change().pk}" in words


def test_what_the_cluster_changed_since_is_left_out_with_its_reason(
    world: World, finished: ChangeRequest, operator: User
) -> None:
    world.model.partitions["orders", 0].replicas = (1, 2, 5)
    world.model.partitions["orders", 1].replicas = ORIGINAL["orders-1"]
    collected(world)
    TopicState.objects.filter(name="clicks").update(topic_id="another-id")
    draft = propose_back(finished, operator)
    assert plan_of(draft).keys() == {"orders-2", "orders-3", "orders-4"}
    told = notices(draft)
    for reason in (
        coded(ReassignmentErrorCode.BACK_CHANGED, row="orders-0", replicas=(1, 2, 5), left=(1, 2, 6)),
        coded(ReassignmentErrorCode.BACK_ALREADY, row="orders-1"),
        coded(ReassignmentErrorCode.BACK_OTHER_TOPIC, row="clicks-0"),
    ):
        assert reason in told


def test_where_nothing_is_left_the_plan_says_why(world: World, finished: ChangeRequest, operator: User) -> None:
    collected(world)
    TopicState.objects.filter(cluster=world.cluster).delete()
    draft = propose_back(finished, operator)
    assert plan_of(draft) == {}
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    first = coded(ReassignmentErrorCode.BACK_GONE, row=min(ORIGINAL))
    assert job.error == coded(ReassignmentErrorCode.NOTHING_TAKEN_BACK, number=finished.pk, why=first)


def test_facts_from_before_the_end_are_not_planned_with(
    world: World, finished: ChangeRequest, operator: User, settings: object
) -> None:
    settings.PLAN_WAIT = 0  # type: ignore[attr-defined]
    before = world.run().ended_at
    draft = propose_back(finished, operator)
    CollectorRun.objects.filter(kind=CollectorKind.METADATA).update(succeeded_at=before)
    with time_machine.travel(world.clock, tick=True):
        assert plan_of(draft) == {}
    job = ChangeRequest.objects.get(pk=draft.pk).job
    assert job is not None
    assert job.error_code == ReassignmentErrorCode.NOT_READ_SINCE


def test_a_cancelled_run_goes_back_as_far_as_it_got(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    while not Move.objects.filter(state=RowState.DONE).exists():
        world.tick()
    running.cancel(world.change(), operator, "Enough.")
    cancelled = world.until(RequestState.CANCELLED)
    moved = {str(move) for move in Move.objects.filter(state=RowState.DONE)}
    collected(world)
    assert plan_of(propose_back(cancelled, operator)).keys() == moved


def test_what_runs_or_moved_nothing_has_no_way_back(world: World, operator: User) -> None:
    queued = world.queue(operator)
    with raises_code(ReassignmentErrorCode.RUN_NOT_ENDED, ChangeRefused):
        propose_back(queued, operator)
    ChangeRequest.objects.update(state=RequestState.FAILED)
    with raises_code(ReassignmentErrorCode.MOVED_NOTHING, ChangeRefused):
        propose_back(queued, operator)


def test_it_needs_the_right_to_propose(finished: ChangeRequest, operator: User, approver: User) -> None:
    for user, change_it in ((approver, lambda: None), (operator, partial(Cluster.objects.update, read_only=True))):
        change_it()
        with pytest.raises(ChangeRefused, match=r"you need the role operator|is read-only"):
            propose_back(finished, user)
    Cluster.objects.update(read_only=False)
    ClusterRole.objects.filter(user=operator).delete()
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused):
        propose_back(finished, operator)
    assert not ChangeRequest.objects.filter(origin=finished).exists()


def test_racks_that_the_run_mended__go_back_without_an_acceptance(
    world: World, operator: User, approver: User, make_user: Callable[..., User]
) -> None:
    BrokerState.objects.filter(cluster=world.cluster, broker_id=3).update(rack="eu-1b")
    world.queue(operator)
    draft = propose_back(world.until(RequestState.DONE), operator)
    collected(world)
    assert plan_of(draft).keys() == ORIGINAL.keys()
    draft.refresh_from_db()
    assert draft.risk is None
    proposed = services.submit(draft, operator, why="It was wrong.", version=draft.version)
    (racks,) = [check for check in proposed.checks if check["code"] == "rack_spread"]
    title = coded(CheckTitle.SPREAD_AS_BEFORE, number=draft.origin_id)
    assert (racks["result"], racks["title"]) == ("passed", title.as_json())
    assert racks["figure"].endswith("worse")
    for user in (approver, make_user("ada", Role.APPROVER)):
        services.approve(proposed, user, proposed.digest)
    running.start(proposed, operator, "Now.")
    world.runs = [draft.pk]
    world.executions[draft.pk] = world.run().pk
    world.until(RequestState.DONE)
    replicas = {f"{topic}-{n}": p.replicas for (topic, n), p in world.model.partitions.items()}
    assert {name: replicas[name] for name in ORIGINAL} == ORIGINAL

"""Single rules of the executor, one row or few at a time.

What may be submitted now, and in what order: content, brokers, the cluster, the brake, the window.

Rows that are given back, one or all, while requests and looks come late.

Why a row waits, was left out or ended otherwise, as the pure step decides it from one look.

Whatever goes wrong, and in whatever order: nothing is sent that must not be, and in the end every row ends.

How long a plan takes under the rolling window, against what no order can beat.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.core.messages import CodedReason, PlainReason, find_reason
from kafkadash.execution.engine import step as executor
from kafkadash.execution.engine.reasons import (
    AnswerUnclear,
    BrokerAway,
    BrokerCordoned,
    BrokerFenced,
    BrokerNotRegistered,
    ChangedByOthers,
    DisksNotRead,
    EndedByOperator,
    EndedByOperatorWithNote,
    EndUntold,
    FactorNotApproved,
    LookTooOld,
    MovedByOthers,
    NotAsPlanned,
    NotElected,
    NoTraceOfIt,
    OrderNotRestored,
    RateInUse,
    ReassignedByOthers,
    RefusedByKafka,
    RowReasonCode,
    RunReasonCode,
    ThereAlready,
    TopicCreatedAgain,
    TopicDeleted,
    UnderMinIsr,
    UnderMinIsrBrake,
)
from kafkadash.execution.engine.state import (
    ENDED,
    BrokerSeen,
    BrokerSlot,
    CallReply,
    CancelAction,
    ClusterObservation,
    CopyWork,
    ElectAction,
    Key,
    ListedReassignment,
    PartitionBelowMinIsr,
    PartitionSeen,
    ReorderAction,
    RowState,
    RunMode,
    RunRow,
    SubmitAction,
    TopicSeen,
)
from kafkadash.execution.engine.step import (
    ChangeLists,
    ClearRate,
    SetRate,
    StepThrottles,
    ThrottledPairs,
    apply_answer,
    apply_reply,
    cancel_row,
    compute_wanted_throttles,
    plan_step,
)
from tests.execution.executor_cluster import (
    AT_REST,
    IN_FLIGHT,
    KEY,
    OPTIONS,
    RATE,
    ROW,
    START,
    Cluster,
    after,
    moving,
    seen,
)
from tests.execution.executor_run import MOST_LATE, Fate, Run

pytestmark = pytest.mark.domain


def test_submit__comes_after_its_throttle_and_has_its_intent() -> None:
    taken = plan_step([RunRow(CopyWork(ROW, 10))], seen(), OPTIONS, START)

    pairs = ThrottledPairs(frozenset({(0, 1), (0, 2), (0, 3)}), frozenset({(0, 5)}))
    assert taken.actions == (
        ChangeLists("t", pairs, ThrottledPairs(), (KEY,)),
        *(SetRate(broker, RATE, (KEY,)) for broker in (1, 2, 3, 5)),
        SubmitAction(KEY, (2, 5, 3)),
    )
    intent = taken.transitions[0].after
    assert (intent.state, intent.attempt, intent.since) == (RowState.SUBMITTING, 1, START)


def test_submit__comes_after_its_directories_at_every_attempt() -> None:
    row = replace(ROW, log_dirs=("any", "/d2", "any"))
    run = Run.of([row, replace(row, topic="u", log_dirs=("any", "any", "any"))], 5, OPTIONS)
    for _ in range(2):
        actions = [a for a in run.tick(Fate.NOT_SENT).actions if isinstance(a, BrokerSlot | SubmitAction)]
        assert actions == [
            BrokerSlot(KEY, ((5, "/d2"),)),
            SubmitAction(KEY, (2, 5, 3)),
            SubmitAction(("u", 0), (2, 5, 3)),
        ]
    run.tick()
    assert run.placed == {(KEY, 5): "/d2"}


def test_replied__a_directory_that_was_refused_ends_the_row_in_kafkas_words() -> None:
    row = replace(ROW, log_dirs=("any", "/d2", "any"))
    intent = plan_step([RunRow(CopyWork(row, 10))], seen(), OPTIONS, START).transitions[0].after

    refused = apply_reply(intent, CallReply.REFUSED, START, "Broker 5 has no directory /d2.")

    assert (refused.state, refused.reason, refused.unanswered) == (
        RowState.FAILED,
        RefusedByKafka("Broker 5 has no directory /d2."),
        0,
    )


def test_intent_without_trace__is_sent_again_twice_then_the_operator_is_asked() -> None:
    run = Run.of([ROW], 5, OPTIONS)
    for _ in range(3):
        assert any(isinstance(action, SubmitAction) for action in run.tick(Fate.NOT_SENT).actions)

    assert not any(isinstance(action, SubmitAction) for action in run.tick().actions)
    row = run.moves[0]
    assert (row.state, row.asks) == (RowState.UNKNOWN, True)
    assert row.reason == NoTraceOfIt(3)

    run.moves = [apply_answer(row, run.cluster.now, again=True)]
    assert SubmitAction(KEY, (2, 5, 3)) in run.tick().actions


def test_intent_older_than_ten_minutes__asks_at_once() -> None:
    long_ago = START - timedelta(minutes=10)
    assert after(moving(state=RowState.SUBMITTING, first_at=long_ago), seen()).asks


def test_intent_that_reached_kafka__is_moving_then_done() -> None:
    run = Run.of([ROW], 5, OPTIONS)
    run.tick(Fate.ANSWER_NOT_STORED)
    run.tick()
    assert run.states() == [RowState.MOVING]
    run.settle()
    assert run.states() == [RowState.DONE]
    assert run.cluster.partitions[KEY].leader == 2


@pytest.mark.parametrize(
    ("replicas", "state", "reason"),
    [
        ((2, 5, 3), RowState.DONE, None),
        ((5, 2, 3), RowState.SUPERSEDED, ChangedByOthers((5, 2, 3), (2, 5, 3))),
        ((3, 1, 6), RowState.SUPERSEDED, ChangedByOthers((3, 1, 6), (2, 5, 3))),
        ((3, 1, 2), RowState.CANCELLED, PlainReason(RowReasonCode.CANCELLED_BY_OTHERS)),
        ((2, 3, 1), RowState.CANCELLING, PlainReason(RowReasonCode.CANCELLED_BY_OTHERS)),
    ],
)
def test_left_the_listing__is_read_from_the_partition(
    replicas: tuple[int, ...], state: RowState, reason: CodedReason | None
) -> None:
    now = PartitionSeen(replicas, frozenset(replicas), replicas[0])
    row = after(moving(), seen(now), seen(now, seconds=2))
    assert (row.state, row.reason) == (state, reason)


def test_left_the_listing__metadata_from_before_is_no_end() -> None:
    stale = replace(IN_FLIGHT, listed=None)
    row = after(moving(), seen(stale), seen(stale, seconds=2))
    assert row.state is RowState.MOVING


def test_look_from_before_the_request__says_nothing() -> None:
    assert not plan_step([moving(state=RowState.SUBMITTING, acted_at=START)], seen(), OPTIONS, START).transitions


def test_adding_copied_but_not_in_sync__is_catching_up() -> None:
    assert after(moving(), seen(replace(IN_FLIGHT, copied=frozenset({5})))).state is RowState.CATCHING_UP


def test_foreign_retarget_in_flight__is_superseded_and_not_fought() -> None:
    theirs = replace(IN_FLIGHT, listed=ListedReassignment((2, 6, 3, 1), frozenset({6}), frozenset({1})))
    for mode in RunMode:
        taken = plan_step([moving()], seen(theirs), OPTIONS, START, mode)
        assert taken.transitions[0].after.state is RowState.SUPERSEDED
        assert not any(isinstance(action, SubmitAction | CancelAction | ReorderAction) for action in taken.actions)


def test_zombie_made_by_somebody__says_that_it_can_never_end() -> None:
    zombie = replace(IN_FLIGHT, listed=ListedReassignment((3, 1, 2, 5), frozenset({5}), frozenset({5})))
    row = after(moving(), seen(zombie))
    assert (row.state, row.reason) == (RowState.SUPERSEDED, PlainReason(RowReasonCode.OLD_REPLICAS_SUBMITTED))


@pytest.mark.parametrize("mode", [RunMode.EXECUTING, RunMode.CANCELLING])
def test_metadata_from_before_the_submission__is_no_end_however_often_it_is_read(mode: RunMode) -> None:
    """The listing is the controller's; the partition is what some broker has heard of it."""
    row = moving(submitted_at=START - timedelta(seconds=2))
    looks = [seen(seconds=seconds) for seconds in (0, 2, 4, 6)]
    assert after(row, *looks, mode=mode).state not in ENDED
    fresh = seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 2), seconds=8)
    assert after(row, *looks, fresh, mode=mode).state is RowState.DONE
    late = [seen(seconds=seconds) for seconds in (8, 10)]
    assert after(row, *looks, *late, mode=mode).state is RowState.CANCELLED


@pytest.mark.parametrize("again", [False, True])
def test_topic_gone__ends_its_rows_wherever_they_stand(again: bool) -> None:
    topics = {"t": TopicSeen("other", 8)} if again else {}
    first, second = (seen(AT_REST if again else None, seconds=s, topics=topics) for s in (0, 2))
    for row in (RunRow(CopyWork(ROW, 10)), moving(), moving(state=RowState.CANCELLING)):
        assert after(row, first, second).state is RowState.TOPIC_DELETED


def test_topic_nobody_answered_for__is_not_gone_and_nothing_is_submitted() -> None:
    unread = seen(None, topics={}, unread=frozenset({"t"}))
    assert plan_step([RunRow(CopyWork(ROW, 10)), moving()], unread, OPTIONS, START).transitions == ()


def test_throttle__leaves_with_its_partition_and_a_rate_stays_while_it_is_used() -> None:
    rows = [PartitionMove("t", "id", 0, (1, 2), (1, 3)), PartitionMove("t", "id", 1, (1, 4), (1, 5))]
    run = Run.of(rows, 5, OPTIONS)
    run.cluster.number["t"] = 8
    run.tick()
    run.cluster.partitions["t", 0].left[3] = 0
    run.cluster.pass_time(0)

    taken = run.tick()

    gone = ThrottledPairs(frozenset({(0, 1), (0, 2)}), frozenset({(0, 3)}))
    assert taken.actions == (ChangeLists("t", ThrottledPairs(), gone, (KEY,)), ClearRate(2), ClearRate(3))
    assert set(run.ours.rates) == {1, 4, 5}


def test_throttle__raised_while_it_runs_is_set_and_an_unreachable_broker_is_told() -> None:
    ours = StepThrottles(
        {"t": ThrottledPairs(frozenset({(0, 1), (0, 2), (0, 3)}), frozenset({(0, 5)}))}, dict.fromkeys((1, 2, 5), 9)
    )
    brokers = {b: BrokerSeen(alive=b != 3) for b in range(1, 7)}
    taken = plan_step([moving()], seen(IN_FLIGHT, brokers=brokers), OPTIONS, START, throttles=ours)
    assert taken.actions == tuple(SetRate(broker, RATE, (KEY,)) for broker in (1, 2, 5))
    assert taken.unreachable == (3,)


def test_only_reordered__takes_no_throttle_and_is_done_by_its_order() -> None:
    row = PartitionMove("t", "id", 0, (3, 1, 2), (1, 3, 2))
    run = Run.of([row], 5, OPTIONS)
    assert run.tick().actions == (SubmitAction(KEY, (1, 3, 2)),)
    assert run.tick().actions == (ElectAction(KEY),)
    assert run.states() == [RowState.DONE]
    assert run.tick().over


def test_elections__held_up_are_waited_for_and_given_up_with_the_reason() -> None:
    done = moving(state=RowState.DONE, since=START)
    look = replace(
        seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3)),
        withheld=(PlainReason(RunReasonCode.OTHER_TOPICS_NEVER_READ),),
    )
    waits = plan_step([done], look, OPTIONS, START)
    assert (waits.actions, waits.transitions, waits.over) == ((), (), False)

    later = START + timedelta(minutes=10)
    for given_up in (
        plan_step([done], replace(look, at=later), OPTIONS, later),
        plan_step([done], replace(look, window_open=False, withheld=()), OPTIONS, START),
    ):
        assert given_up.actions == ()
        assert given_up.over
        [after] = [transition.after for transition in given_up.transitions]
        assert after.state is RowState.DONE
        assert after.reason in (
            NotElected(PlainReason(RunReasonCode.OTHER_TOPICS_NEVER_READ)),
            NotElected(PlainReason(RunReasonCode.WINDOW_CLOSED)),
        )


def test_elections__not_without_the_option_nor_while_rows_move() -> None:
    done = moving(state=RowState.DONE)
    look = seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3))
    assert plan_step([done], look, OPTIONS, START).actions == (ElectAction(KEY),)
    assert plan_step([done], look, replace(OPTIONS, elect_leaders=False), START).actions == ()
    assert plan_step(
        [done], replace(look, partitions={KEY: PartitionSeen((2, 5, 3), frozenset({3}), 3)}), OPTIONS, START
    ).over


def test_refused__ends_in_kafkas_words() -> None:
    row = apply_reply(
        moving(state=RowState.SUBMITTING, unanswered=1), CallReply.REFUSED, START, "INVALID_REPLICA_ASSIGNMENT: 9."
    )
    assert (row.state, row.reason, row.unanswered) == (
        RowState.FAILED,
        RefusedByKafka("INVALID_REPLICA_ASSIGNMENT: 9."),
        0,
    )


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (IN_FLIGHT, ReassignedByOthers((2, 5, 3))),
        (replace(AT_REST, replicas=(1, 3, 2)), NotAsPlanned((1, 3, 2), (3, 1, 2))),
        (replace(AT_REST, replicas=(2, 5, 3)), ThereAlready((2, 5, 3), (3, 1, 2))),
    ],
)
def test_content_changed_before_its_submit__is_skipped(partition: PartitionSeen, reason: CodedReason) -> None:
    row = after(RunRow(CopyWork(ROW, 10)), seen(partition), seen(partition, seconds=2))
    assert (row.state, row.reason) == (RowState.SKIPPED, reason)


def test_replication_factor__is_not_changed_without_approval() -> None:
    row = RunRow(CopyWork(PartitionMove("t", "id", 0, (3, 1, 2), (3, 1)), 10))
    assert after(row, seen()).reason == FactorNotApproved(3, 2)


@pytest.mark.parametrize(
    ("broker", "known", "reason"),
    [
        (5, None, BrokerNotRegistered(5)),
        (5, BrokerSeen(fenced=True), BrokerFenced(5)),
        (5, BrokerSeen(cordoned=True), BrokerCordoned(5)),
        (5, BrokerSeen(full=DisksNotRead(5)), DisksNotRead(5)),
        (2, BrokerSeen(alive=False), BrokerAway(2)),
    ],
)
def test_target_unwell__waits_and_goes_on_when_it_is_well(
    broker: int, known: BrokerSeen | None, reason: CodedReason
) -> None:
    brokers = {b: BrokerSeen() for b in range(1, 7)} | ({broker: known} if known else {})
    if known is None:
        del brokers[broker]
    row = after(RunRow(CopyWork(ROW, 10)), seen(brokers=brokers))
    assert (row.state, row.reason) == (RowState.WAITING, reason)
    assert after(row, seen(seconds=2)).state is RowState.SUBMITTING


@pytest.mark.parametrize(
    ("other", "held"),
    [
        ({"quorum": False}, PlainReason(RunReasonCode.QUORUM_SILENT)),
        ({"listing": False}, PlainReason(RunReasonCode.LISTING_UNREAD)),
        ({"window_open": False}, PlainReason(RunReasonCode.WINDOW_CLOSED)),
    ],
)
def test_cluster_unwell__holds_everything(other: dict[str, Any], held: CodedReason) -> None:
    taken = plan_step([RunRow(CopyWork(ROW, 10))], seen(**other), OPTIONS, START)
    assert taken.held == (held,)
    assert taken.actions == ()


def test_old_look__is_not_acted_on() -> None:
    assert plan_step([RunRow(CopyWork(ROW, 10))], seen(), OPTIONS, START + timedelta(minutes=1)).held == (
        LookTooOld(60.0),
    )


def pressed(isr: set[int], *, offline: tuple[int, ...] = ()) -> tuple[PartitionBelowMinIsr, ...]:
    return (PartitionBelowMinIsr("other", 3, (3, 5, 6), frozenset(isr), 2, frozenset(offline)),)


def test_brake__under_min_isr_with_nobody_away_submits_nothing() -> None:
    taken = plan_step([RunRow(CopyWork(ROW, 10))], seen(pressed=pressed({3})), OPTIONS, START)
    assert taken.actions == ()
    assert taken.brake.reason == UnderMinIsrBrake("other-3", 1)


def test_brake__the_missing_replicas_are_offline__changes_nothing() -> None:
    taken = plan_step([RunRow(CopyWork(ROW, 10))], seen(pressed=pressed({3}, offline=(5, 6))), OPTIONS, START)
    assert SubmitAction(KEY, (2, 5, 3)) in taken.actions


def test_brake__a_row_that_repairs_the_partition_passes() -> None:
    lags = replace(AT_REST, isr=frozenset({3}))
    repair = RunRow(CopyWork(PartitionMove("t", "id", 0, (3, 1, 2), (3, 5, 6)), 10))
    look = seen(lags, pressed=(PartitionBelowMinIsr("t", 0, (3, 1, 2), frozenset({3}), 2),))
    assert SubmitAction(KEY, (3, 5, 6)) in plan_step([repair], look, OPTIONS, START).actions


def fleet(count: int, size: int = 10) -> tuple[list[RunRow], ClusterObservation]:
    rows = [PartitionMove("t", "id", number, (number % 2 + 1, 3, 4), (number % 2 + 1, 3, 5)) for number in range(count)]
    there = {("t", row.partition): PartitionSeen(row.current, frozenset(row.current), row.current[0]) for row in rows}
    look = seen(partitions=there, topics={"t": TopicSeen("id", 100)})
    return [RunRow(CopyWork(row, size * (row.partition + 1))) for row in rows], look


def submits(moves: list[RunRow], look: ClusterObservation, options: RunOptions = OPTIONS) -> list[int]:
    return [a.key[1] for a in plan_step(moves, look, options, START).actions if isinstance(a, SubmitAction)]


def test_window__k_per_broker_n_per_cluster_and_half_of_a_topic() -> None:
    moves, look = fleet(20)
    assert submits(moves, look) == [19, 18, 17, 16, 15]
    assert submits(moves, look, replace(OPTIONS, per_cluster=3)) == [19, 18, 17]
    assert submits(moves, replace(look, topics={"t": TopicSeen("id", 4)})) == [19, 18]
    assert submits(moves, replace(look, topics={"t": TopicSeen("id", 1)})) == [19]


def test_window__at_min_isr_halves_the_moves_of_its_brokers() -> None:
    moves, look = fleet(20)
    assert submits(moves, replace(look, pressed=pressed({3, 6}))) == [19, 18]
    assert submits(moves, replace(look, pressed=pressed({3, 6}, offline=(5,)))) == [19, 18, 17, 16, 15]


def test_order__repairs_then_racks_then_the_largest() -> None:
    moves, look = fleet(4)
    moves[1] = replace(moves[1], work=CopyWork(moves[1].work.row, 1, mends_racks=True))
    broken = replace(look.partitions["t", 0], isr=frozenset({1, 3}), offline=frozenset({4}))
    look = replace(look, partitions={**look.partitions, ("t", 0): broken})
    assert submits(moves, look) == [0, 1, 3, 2]


def test_intents_of_one_step__are_few_enough_for_a_short_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many may move at once: the others begin in the next steps."""
    monkeypatch.setattr(executor, "MOST_SUBMITTED", 2)
    rows = [PartitionMove("t", "id", number, (3, 1, 2), (2, 5, 3)) for number in range(5)]
    partitions = {("t", number): AT_REST for number in range(5)}
    look = seen(partitions=partitions)
    limits = replace(OPTIONS, per_broker=100, per_cluster=100)
    moves = [RunRow(CopyWork(row, 10)) for row in rows]
    taken = plan_step(moves, replace(look, topics={"t": TopicSeen("id", 50)}), limits, START)
    assert len([action for action in taken.actions if isinstance(action, SubmitAction)]) == 2
    assert [t.after.state for t in taken.transitions] == [RowState.SUBMITTING] * 2


def test_asked_and_answered__takes_its_turn_in_the_window() -> None:
    moves, look = fleet(2)
    asks = replace(moves[0], state=RowState.UNKNOWN, asks=True, attempt=3, acted_at=START - timedelta(hours=1))
    again = apply_answer(asks, START, again=True)
    assert submits([again, moves[1]], look, replace(OPTIONS, per_cluster=1)) == [1]


def test_cancel__ends_what_moves_restores_the_order_and_leaves_what_is_done() -> None:
    other = PartitionMove("t", "id", 1, (1, 2, 3), (1, 2, 4))
    run = Run.of([ROW, other], 6, OPTIONS)
    run.cluster.number["t"] = 8
    run.tick()
    run.cluster.partitions["t", 1].left[4] = 0
    run.tick()
    run.tick()
    assert run.states()[1] is RowState.DONE
    run.mode = RunMode.CANCELLING

    assert CancelAction(KEY) in run.tick().actions
    assert run.cluster.partitions[KEY].replicas == (2, 3, 1)
    run.settle()

    assert run.states() == [RowState.CANCELLED, RowState.DONE]
    assert run.cluster.partitions[KEY].replicas == (3, 1, 2)
    assert [a for s in run.steps for a in s.actions if isinstance(a, ReorderAction)] == [ReorderAction(KEY, (3, 1, 2))]


def test_late_submission_after_the_cancel__is_cancelled_again() -> None:
    run = Run.of([ROW], 6, OPTIONS)
    run.tick(Fate.LATE)
    run.mode = RunMode.CANCELLING
    run.settle()
    assert run.states() == [RowState.CANCELLED]
    assert run.cluster.partitions[KEY].replicas == (3, 1, 2)
    assert sum(isinstance(action, CancelAction) for taken in run.steps for action in taken.actions) == 1


def test_order_after_a_cancel__is_not_restored_while_a_lost_submission_may_arrive() -> None:
    """The original replicas submitted to a row that moves make a zombie."""
    lost = moving(state=RowState.CANCELLING, unanswered=1, submitted_at=START - timedelta(seconds=5))
    other_order = PartitionSeen((2, 3, 1), frozenset({1, 2, 3}), 3)
    for seconds, expected in ((0, []), (2, []), (71, []), (73, [ReorderAction(KEY, (3, 1, 2))])):
        look = seen(other_order, seconds=seconds)
        taken = plan_step([lost], look, OPTIONS, look.at)
        lost = taken.transitions[0].after if taken.transitions else lost
        assert [action for action in taken.actions if isinstance(action, ReorderAction)] == expected


def test_cancelled_with_an_answer_missing__is_over_only_when_nothing_can_arrive() -> None:
    row = moving(state=RowState.CANCELLED, unanswered=1, submitted_at=START - timedelta(seconds=5))
    assert not plan_step([row], seen(), OPTIONS, START, RunMode.CANCELLING).over
    late = plan_step([row], seen(IN_FLIGHT), OPTIONS, START, RunMode.CANCELLING)
    assert late.transitions[0].after.state is RowState.CANCELLING
    assert CancelAction(KEY) in late.actions
    look = seen(seconds=69)
    assert not plan_step([row], look, OPTIONS, look.at, RunMode.CANCELLING).over
    look = seen(seconds=70)
    assert plan_step([row], look, OPTIONS, look.at, RunMode.CANCELLING).over


def test_only_added__metadata_from_before_the_cancel_is_not_done() -> None:
    row = moving(PartitionMove("t", "id", 0, (3, 1), (3, 1, 2)), RowState.CANCELLING)
    stale = seen(PartitionSeen((3, 1, 2), frozenset({1, 2, 3}), 3))
    then = seen(PartitionSeen((3, 1), frozenset({1, 3}), 3), seconds=2)
    assert after(row, stale, then, replace(then, at=START + timedelta(seconds=4))).state is RowState.CANCELLED


def test_pending_rows__end_with_the_cancel_and_wait_through_a_pause() -> None:
    pending = RunRow(CopyWork(ROW, 10))
    paused = plan_step([pending], seen(), OPTIONS, START, RunMode.PAUSED)
    assert (paused.transitions, paused.actions) == ((), ())
    assert paused.held == (PlainReason(RunReasonCode.PAUSED),)
    assert after(pending, seen(), mode=RunMode.CANCELLING).state is RowState.CANCELLED


class TestTopicThatIsNotDescribedAnyMore:
    LISTED = {KEY: ListedReassignment((2, 5, 3, 1), frozenset({5}), frozenset({1}))}

    @staticmethod
    def unread(seconds: float, **other: object) -> ClusterObservation:
        return seen(None, seconds=seconds, topics={}, unread=frozenset({"t"}), **other)

    def test_its_row_is_cancelled_by_what_is_listed(self) -> None:
        taken = plan_step([moving()], self.unread(0, unread_listed=self.LISTED), OPTIONS, START, RunMode.CANCELLING)
        assert [action for action in taken.actions if isinstance(action, CancelAction)] == [CancelAction(KEY)]
        assert taken.transitions[0].after.state is RowState.CANCELLING
        theirs = {KEY: ListedReassignment((4, 3, 1), frozenset({4}), frozenset())}
        assert (
            after(moving(), self.unread(0, unread_listed=theirs), mode=RunMode.CANCELLING).state is RowState.SUPERSEDED
        )

    @pytest.mark.parametrize("mode", [RunMode.CANCELLING, RunMode.EXECUTING])
    def test_its_row_ends_after_ten_minutes_and_says_that_nobody_knows_how(self, mode: RunMode) -> None:
        """Of a run that is cancelled, and of one row that is."""
        row = moving(state=RowState.MOVING if mode is RunMode.CANCELLING else RowState.CANCELLING)
        early = after(row, self.unread(0), self.unread(599), mode=mode)
        assert (early.state, early.hint) == (RowState.CANCELLING, RowState.FAILED)
        late = after(row, self.unread(0), self.unread(601), mode=mode)
        assert (late.state, late.reason) == (RowState.FAILED, EndUntold("t"))

    def test_described_again_it_is_told(self) -> None:
        original = replace(AT_REST, replicas=ROW.current)
        looks = (self.unread(0), seen(original, seconds=590), seen(original, seconds=601))
        assert after(moving(), *looks, mode=RunMode.CANCELLING).state is RowState.CANCELLED

    def test_while_a_lost_request_may_still_arrive__it_does_not_end(self) -> None:
        lost = moving(state=RowState.UNKNOWN, submitted_at=START, unanswered=1)
        looks = (self.unread(0), self.unread(74), self.unread(601))
        assert after(lost, *looks, mode=RunMode.CANCELLING).state is not RowState.FAILED

    def test_nothing_of_a_run_that_goes_on_is_ended(self) -> None:
        row = moving()
        assert after(row, self.unread(0), self.unread(3600)) is row
        assert after(row, self.unread(0), self.unread(3600), mode=RunMode.PAUSED) is row


def test_one_row_cancelled_in_a_run_that_goes_on() -> None:
    asked = EndedByOperatorWithNote("alice", "Taken out.")
    row = cancel_row(moving(), START, asked)
    taken = plan_step([row], seen(IN_FLIGHT), OPTIONS, START)
    assert CancelAction(KEY) in taken.actions
    assert taken.transitions[0].after.reason == asked


LATER = 30.0
"""Seconds after which a broker's metadata are not late any more."""


def ended(
    partition: PartitionSeen, move: RunRow | None = None, mode: RunMode = RunMode.EXECUTING
) -> CodedReason | None:
    """The reason of a row after three looks that say the same."""
    looks = [seen(partition, seconds=LATER + 2 * number) for number in range(3)]
    return after(move or moving(), *looks, mode=mode).reason


def waits(partition: PartitionSeen = AT_REST, **brokers: BrokerSeen | None) -> CodedReason | None:
    """The reason of a row that is pending, with these brokers (b5=…) otherwise than well; None: not there."""
    known: dict[int, BrokerSeen] = {number: BrokerSeen() for number in range(1, 7)}
    for name, broker in brokers.items():
        known.pop(int(name[1:]))
        if broker is not None:
            known[int(name[1:])] = broker
    return after(RunRow(CopyWork(ROW, 10)), seen(partition, brokers=known)).reason


def held(mode: RunMode = RunMode.EXECUTING, late: float = 0.0, **other: object) -> CodedReason:
    taken = plan_step([RunRow(CopyWork(ROW, 10))], seen(**other), OPTIONS, START + timedelta(seconds=late), mode)  # type: ignore[arg-type]
    return taken.held[0]


def gone(**topics: TopicSeen) -> CodedReason | None:
    looks = [replace(seen(None, seconds=LATER + 2 * n), topics=topics) for n in range(3)]
    return after(moving(), *looks).reason


def asks() -> CodedReason | None:
    long_ago = START - timedelta(minutes=20)
    move = moving(state=RowState.UNKNOWN, attempt=3, unanswered=3, first_at=long_ago, submitted_at=long_ago)
    return after(replace(move, acted_at=long_ago), seen()).reason


def reordered_by_others() -> CodedReason | None:
    row = replace(ROW, target=(1, 3, 2))
    return ended(PartitionSeen((2, 1, 3), frozenset({1, 2, 3}), 2), moving(row))


def order_not_restored() -> CodedReason | None:
    partition = PartitionSeen((2, 3, 1), frozenset({1, 2, 3}), 2)
    return ended(partition, moving(state=RowState.CANCELLING, reorders=3), RunMode.CANCELLING)


def late(mode: RunMode, state: RowState = RowState.SUPERSEDED) -> CodedReason | None:
    return after(moving(state=state, unanswered=1), seen(IN_FLIGHT, seconds=2), mode=mode).reason


def brake() -> CodedReason | None:
    pressed = PartitionBelowMinIsr("other", 3, (1, 2, 3), frozenset({1}), 2)
    taken = plan_step([RunRow(CopyWork(ROW, 10))], replace(seen(), pressed=(pressed,)), OPTIONS, START)
    return taken.brake.reason


def untold() -> CodedReason | None:
    """Cancelled, and nobody describes its topic for ten minutes."""
    nothing = {"topics": {}, "unread": frozenset({"t"})}
    looks = [replace(seen(None, seconds=seconds), **nothing) for seconds in (0, 601)]  # type: ignore[arg-type]
    return after(moving(), *looks, mode=RunMode.CANCELLING).reason


def not_elected() -> CodedReason | None:
    done = RunRow(CopyWork(ROW, 10), RowState.DONE, since=START - timedelta(hours=1))
    look = replace(seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3)), window_open=False)
    return plan_step([done], look, OPTIONS, START).transitions[0].after.reason


FOREIGN = ListedReassignment((4, 6, 3, 1), frozenset({4, 6}), frozenset({1}))
ZOMBIE = ListedReassignment((3, 1, 2, 5), frozenset({5}), frozenset({5}))


REASONS: Sequence[tuple[Callable[[], CodedReason | None], CodedReason]] = (
    (lambda: waits(replace(AT_REST, listed=FOREIGN)), ReassignedByOthers((4, 6, 3))),
    (
        lambda: ended(replace(AT_REST, replicas=(1, 3, 2)), RunRow(CopyWork(ROW, 10))),
        NotAsPlanned((1, 3, 2), (3, 1, 2)),
    ),
    (
        lambda: ended(replace(AT_REST, replicas=(2, 5, 3)), RunRow(CopyWork(ROW, 10))),
        ThereAlready((2, 5, 3), (3, 1, 2)),
    ),
    (lambda: ended(AT_REST, RunRow(CopyWork(replace(ROW, target=(2, 5)), 10))), FactorNotApproved(3, 2)),
    (gone, TopicDeleted("t")),
    (lambda: gone(t=replace(seen().topics["t"], id="another")), TopicCreatedAgain("t")),
    (lambda: ended(replace(IN_FLIGHT, listed=FOREIGN)), MovedByOthers((4, 6, 3))),
    (
        lambda: ended(PartitionSeen((3, 1, 2, 5), frozenset({1, 2, 3}), 3, 2, listed=ZOMBIE)),
        PlainReason(RowReasonCode.OLD_REPLICAS_SUBMITTED),
    ),
    (lambda: ended(PartitionSeen((3, 1, 6), frozenset({1, 3, 6}), 3)), ChangedByOthers((3, 1, 6), (2, 5, 3))),
    (lambda: ended(AT_REST), PlainReason(RowReasonCode.CANCELLED_BY_OTHERS)),
    (reordered_by_others, PlainReason(RowReasonCode.ORDERED_BY_OTHERS)),
    (order_not_restored, OrderNotRestored((2, 3, 1))),
    (asks, NoTraceOfIt(3)),
    (
        lambda: apply_reply(moving(state=RowState.SUBMITTING), CallReply.LOST, START).reason,
        PlainReason(RowReasonCode.ANSWER_LOST),
    ),
    (
        lambda: apply_reply(moving(state=RowState.SUBMITTING), CallReply.LOST, START, "Timed out.").reason,
        AnswerUnclear("Timed out."),
    ),
    (
        lambda: apply_reply(moving(state=RowState.SUBMITTING), CallReply.REFUSED, START, "No.").reason,
        RefusedByKafka("No."),
    ),
    (lambda: late(RunMode.EXECUTING), PlainReason(RowReasonCode.ARRIVED_LATE)),
    (lambda: late(RunMode.CANCELLING), PlainReason(RowReasonCode.ARRIVED_LATE_CANCELLED)),
    (untold, EndUntold("t")),
    (
        lambda: apply_answer(replace(moving(), asks=True), START, again=False).reason,
        PlainReason(RowReasonCode.GIVEN_UP),
    ),
    (
        lambda: ended(AT_REST, RunRow(CopyWork(ROW, 10)), RunMode.CANCELLING),
        PlainReason(RowReasonCode.CANCELLED_BEFORE),
    ),
    (not_elected, NotElected(PlainReason(RunReasonCode.WINDOW_CLOSED))),
    (lambda: waits(b2=BrokerSeen(alive=False)), BrokerAway(2)),
    (lambda: waits(b5=BrokerSeen(fenced=True)), BrokerFenced(5)),
    (lambda: waits(b5=None), BrokerNotRegistered(5)),
    (lambda: waits(b5=BrokerSeen(cordoned=True)), BrokerCordoned(5)),
    (lambda: waits(b5=BrokerSeen(others_rate="60000000")), RateInUse(5, "60000000")),
    (lambda: waits(replace(AT_REST, leader=None)), PlainReason(RowReasonCode.NO_LEADER)),
    (lambda: waits(replace(AT_REST, isr=frozenset({3}), min_isr=2)), UnderMinIsr((1, 2))),
    (brake, UnderMinIsrBrake("other-3", 1)),
    (lambda: held(RunMode.PAUSED), PlainReason(RunReasonCode.PAUSED)),
    (lambda: held(window_open=False), PlainReason(RunReasonCode.WINDOW_CLOSED)),
    (lambda: held(late=60), LookTooOld(60.0)),
    (lambda: held(quorum=False), PlainReason(RunReasonCode.QUORUM_SILENT)),
    (lambda: held(listing=False), PlainReason(RunReasonCode.LISTING_UNREAD)),
)


@pytest.mark.parametrize(("see", "reason"), REASONS, ids=[reason.stored_code for _, reason in REASONS])
def test_reason_of_a_step(see: Callable[[], CodedReason | None], reason: CodedReason) -> None:
    assert see() == reason


BROKERS = 6
ROWS = (
    PartitionMove("a", "id-a", 0, (1, 2, 3), (4, 2, 3)),
    PartitionMove("a", "id-a", 1, (2, 3, 1), (2, 5, 1)),
    PartitionMove("a", "id-a", 2, (3, 1, 2), (2, 5, 3)),
    PartitionMove("a", "id-a", 3, (1, 2, 3), (3, 2, 1)),
    PartitionMove("b", "id-b", 0, (1, 2), (4, 5)),
    PartitionMove("b", "id-b", 1, (2, 1), (2, 1, 4)),
    PartitionMove("b", "id-b", 2, (1, 2, 3), (1, 2)),
    PartitionMove("c", "id-c", 0, (5, 6), (6, 4)),
)
KEYS = [(row.topic, row.partition) for row in ROWS]

keys = st.sampled_from(KEYS)
ticks = st.tuples(st.just("tick"), st.sampled_from(Fate))
events = st.one_of(
    ticks,
    ticks,
    ticks,
    ticks,
    st.tuples(st.just("tick"), st.just(Fate.ANSWERED)),
    st.tuples(st.just("mode"), st.sampled_from(RunMode)),
    st.tuples(st.just("cancel row"), keys),
    st.tuples(st.just("foreign cancel"), keys),
    st.tuples(
        st.just("foreign target"),
        st.tuples(keys, st.lists(st.integers(1, BROKERS), min_size=1, max_size=3, unique=True).map(tuple)),
    ),
    st.tuples(st.just("delete"), st.sampled_from("abc")),
    st.tuples(st.just("recreate"), st.sampled_from("abc")),
    st.tuples(st.just("stop"), st.integers(1, BROKERS)),
    st.tuples(st.just("start"), st.integers(1, BROKERS)),
    st.tuples(st.just("late metadata"), st.integers(0, MOST_LATE)),
)


def happens(run: Run, kind: str, what: object) -> None:
    cluster = run.cluster
    match kind, what:
        case "tick", Fate() as fate:
            run.tick(fate)
        case "mode", RunMode() as mode:
            run.mode = mode
        case "cancel row", (str(topic), int(partition)):
            at = cluster.now
            run.moves = [
                cancel_row(m, at, EndedByOperator("alice")) if m.key == (topic, partition) else m for m in run.moves
            ]
        case "foreign cancel", (str(topic), int(partition)):
            run.disturbed.add((topic, partition))
            cluster.cancel((topic, partition))
        case "foreign target", ((str(topic), int(partition)), tuple(replicas)):
            run.disturbed.add((topic, partition))
            cluster.submit((topic, partition), replicas)
        case "delete", str(topic):
            run.disturbed.update(key for key in KEYS if key[0] == topic)
            cluster.delete(topic)
        case "recreate", str(topic):
            run.disturbed.update(key for key in KEYS if key[0] == topic)
            cluster.delete(topic)
            cluster.create(topic, f"id-{topic}-{cluster.now:%H%M%S%f}", 4, (1, 2, 3))
        case "stop", int(broker):
            cluster.stop(broker)
        case "start", int(broker):
            cluster.start(broker)
        case "late metadata", int(looks):
            run.looks_late = looks
        case _:
            raise AssertionError((kind, what))


@settings(deadline=None, derandomize=True, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(events, max_size=40), st.integers(1, 2), st.integers(1, 5))
def test_faults__in_any_order__never_break_what_holds_and_every_row_ends(
    story: list[tuple[str, object]], k: int, n: int
) -> None:
    rate = 2_000_000
    run = Run.of(ROWS, BROKERS, RunOptions(rate, rate, rate, per_broker=k, per_cluster=n, change_rf=True))
    for kind, what in story:
        happens(run, kind, what)
    for broker in range(1, BROKERS + 1):
        run.cluster.start(broker)
    if run.mode is RunMode.PAUSED:
        run.mode = RunMode.EXECUTING

    run.settle()

    assert set(run.states()) <= ENDED
    assert run.ours == StepThrottles()
    for move in run.moves:
        partition = run.cluster.partitions.get(move.key)
        if move.state is RowState.DONE and move.key not in run.disturbed:
            assert partition is not None
            assert partition.replicas == move.work.row.target
        if move.state is RowState.CANCELLED and move.key not in run.disturbed:
            assert partition is not None
            given_up = find_reason(move.reason, OrderNotRestored)
            assert partition.replicas == move.work.row.current or given_up
            assert set(partition.replicas) == set(move.work.row.current)


MB = 1_000_000
MAKESPAN_RATE = 50 * MB


def plan(number: int, brokers: int, seed: int) -> tuple[list[PartitionMove], dict[Key, float]]:
    """One replica of each partition moves to a broker chosen at random; few partitions hold most of the bytes."""
    chance = random.Random(seed)
    rows, sizes = [], {}
    for place in range(number):
        held = chance.sample(range(brokers), 4)
        row = PartitionMove(f"topic-{place // 56}", "id", place % 56, tuple(held[:3]), (held[0], held[1], held[3]))
        rows.append(row)
        sizes[row.topic, row.partition] = min(chance.lognormvariate(5.6, 1.0), 4000) * MB
    return rows, sizes


def bound(rows: list[PartitionMove], sizes: dict[Key, float]) -> float:
    """Seconds that any order takes: the most loaded broker in either direction, and the largest move."""
    into: Counter[int] = Counter()
    out: Counter[int] = Counter()
    for row in rows:
        size = int(sizes[row.topic, row.partition])
        out[row.current[0]] += size * len(row.adding)
        for broker in row.adding:
            into[broker] += size
    return max(*into.values(), *out.values(), *(int(size) for size in sizes.values())) / MAKESPAN_RATE


def run(
    rows: list[PartitionMove], sizes: dict[Key, float], brokers: int, options: RunOptions, every: float
) -> tuple[float, float]:
    """Seconds of the clock of the cluster that the whole plan takes, and of the real one that a step takes at most."""
    cluster = Cluster(rows, sizes, range(brokers), MAKESPAN_RATE)
    moves = [RunRow(CopyWork(row, int(sizes[row.topic, row.partition]))) for row in rows]
    place = {move.key: number for number, move in enumerate(moves)}
    ours, began, slowest = StepThrottles(), cluster.now, 0.0
    while True:
        seen = cluster.look()
        started = time.process_time()
        taken = plan_step(moves, seen, options, cluster.now, throttles=ours)
        slowest = max(slowest, time.process_time() - started)
        for transition in taken.transitions:
            moves[place[transition.after.key]] = transition.after
        for action in taken.actions:
            assert not isinstance(action, CancelAction | ReorderAction)
            if isinstance(action, SubmitAction):
                assert cluster.submit(action.key, action.replicas)
        if any(isinstance(action, ChangeLists | SetRate | ClearRate) for action in taken.actions):
            ours = compute_wanted_throttles(moves, options.throttle)
        if taken.over:
            break
        cluster.pass_time(every)
    assert {move.state for move in moves} == {RowState.DONE}
    assert all(cluster.partitions[move.key].replicas == move.work.row.target for move in moves)
    return (cluster.now - began).total_seconds(), slowest


def test_rolling_window__fourteen_thousand_moves_of_three_hundred_brokers__takes_what_the_busiest_broker_needs() -> (
    None
):
    rows, sizes = plan(14_000, 300, seed=7)
    least = bound(rows, sizes)

    took, slowest = run(
        rows, sizes, 300, RunOptions(MAKESPAN_RATE, MAKESPAN_RATE, MAKESPAN_RATE, per_cluster=2000), every=least / 150
    )

    said = f"bound {least:.0f} s, took {took:.0f} s = {took / least:.3f}, slowest step {slowest * 1000:.0f} ms"
    sys.stdout.write(f"{said}\n")
    assert took <= 1.05 * least, said
    assert slowest < 1, said

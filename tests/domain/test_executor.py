"""Single rules of the executor, one row or few at a time (04-changes.md §2 to §4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kafkadash.domain.executor import answered, replied, step
from kafkadash.domain.executor_state import (
    ENDED,
    BrokerSeen,
    Cancel,
    Elect,
    Listed,
    Mode,
    Move,
    PartitionSeen,
    Place,
    Reorder,
    Reply,
    State,
    Submit,
    TopicSeen,
    Work,
)
from kafkadash.domain.executor_throttles import ChangeLists, ClearRate, Pairs, SetRate, Throttles
from kafkadash.domain.plan import Row
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import (
    CancelledByOthers,
    ChangedByOthers,
    NotElected,
    NoTraceOfIt,
    OldReplicasSubmitted,
    RefusedByKafka,
)
from kafkadash.domain.run_reasons import OtherTopicsNeverRead, RunWindowClosed
from tests.domain.executor_cluster import START
from tests.domain.executor_run import Fate, Run
from tests.domain.one_row import AT_REST, IN_FLIGHT, KEY, OPTIONS, RATE, ROW, after, moving, seen


def test_submit__comes_after_its_throttle_and_has_its_intent() -> None:
    taken = step([Move(Work(ROW, 10))], seen(), OPTIONS, START)

    pairs = Pairs(frozenset({(0, 1), (0, 2), (0, 3)}), frozenset({(0, 5)}))
    assert taken.actions == (
        ChangeLists("t", pairs, Pairs(), (KEY,)),
        *(SetRate(broker, RATE, (KEY,)) for broker in (1, 2, 3, 5)),
        Submit(KEY, (2, 5, 3)),
    )
    intent = taken.transitions[0].after
    assert (intent.state, intent.attempt, intent.since) == (State.SUBMITTING, 1, START)


def test_submit__comes_after_its_directories_at_every_attempt() -> None:
    row = replace(ROW, log_dirs=("any", "/d2", "any"))
    run = Run.of([row, replace(row, topic="u", log_dirs=("any", "any", "any"))], 5, OPTIONS)
    for _ in range(2):
        actions = [a for a in run.tick(Fate.NOT_SENT).actions if isinstance(a, Place | Submit)]
        assert actions == [Place(KEY, ((5, "/d2"),)), Submit(KEY, (2, 5, 3)), Submit(("u", 0), (2, 5, 3))]
    run.tick()
    assert run.placed == {(KEY, 5): "/d2"}


def test_replied__a_directory_that_was_refused_ends_the_row_in_kafkas_words() -> None:
    row = replace(ROW, log_dirs=("any", "/d2", "any"))
    intent = step([Move(Work(row, 10))], seen(), OPTIONS, START).transitions[0].after

    refused = replied(intent, Reply.REFUSED, START, "Broker 5 has no directory /d2.")

    assert (refused.state, refused.reason, refused.unanswered) == (
        State.FAILED,
        RefusedByKafka("Broker 5 has no directory /d2."),
        0,
    )


def test_intent_without_trace__is_sent_again_twice_then_the_operator_is_asked() -> None:
    run = Run.of([ROW], 5, OPTIONS)
    for _ in range(3):
        assert any(isinstance(action, Submit) for action in run.tick(Fate.NOT_SENT).actions)

    assert not any(isinstance(action, Submit) for action in run.tick().actions)
    row = run.moves[0]
    assert (row.state, row.asks) == (State.UNKNOWN, True)
    assert row.reason == NoTraceOfIt(3)

    run.moves = [answered(row, run.cluster.now, again=True)]
    assert Submit(KEY, (2, 5, 3)) in run.tick().actions


def test_intent_older_than_ten_minutes__asks_at_once() -> None:
    long_ago = START - timedelta(minutes=10)
    assert after(moving(state=State.SUBMITTING, first_at=long_ago), seen()).asks


def test_intent_that_reached_kafka__is_moving_then_done() -> None:
    run = Run.of([ROW], 5, OPTIONS)
    run.tick(Fate.ANSWER_NOT_STORED)
    run.tick()
    assert run.states() == [State.MOVING]
    run.settle()
    assert run.states() == [State.DONE]
    assert run.cluster.partitions[KEY].leader == 2


@pytest.mark.parametrize(
    ("replicas", "state", "reason"),
    [
        ((2, 5, 3), State.DONE, None),
        ((5, 2, 3), State.SUPERSEDED, ChangedByOthers((5, 2, 3), (2, 5, 3))),
        ((3, 1, 6), State.SUPERSEDED, ChangedByOthers((3, 1, 6), (2, 5, 3))),
        ((3, 1, 2), State.CANCELLED, CancelledByOthers()),
        ((2, 3, 1), State.CANCELLING, CancelledByOthers()),
    ],
)
def test_left_the_listing__is_read_from_the_partition(
    replicas: tuple[int, ...], state: State, reason: CodedReason | None
) -> None:
    now = PartitionSeen(replicas, frozenset(replicas), replicas[0])
    row = after(moving(), seen(now), seen(now, seconds=2))
    assert (row.state, row.reason) == (state, reason)


def test_left_the_listing__metadata_from_before_is_no_end() -> None:
    stale = replace(IN_FLIGHT, listed=None)
    row = after(moving(), seen(stale), seen(stale, seconds=2))
    assert row.state is State.MOVING


def test_look_from_before_the_request__says_nothing() -> None:
    assert not step([moving(state=State.SUBMITTING, acted_at=START)], seen(), OPTIONS, START).transitions


def test_adding_copied_but_not_in_sync__is_catching_up() -> None:
    assert after(moving(), seen(replace(IN_FLIGHT, copied=frozenset({5})))).state is State.CATCHING_UP


def test_foreign_retarget_in_flight__is_superseded_and_not_fought() -> None:
    theirs = replace(IN_FLIGHT, listed=Listed((2, 6, 3, 1), frozenset({6}), frozenset({1})))
    for mode in Mode:
        taken = step([moving()], seen(theirs), OPTIONS, START, mode)
        assert taken.transitions[0].after.state is State.SUPERSEDED
        assert not any(isinstance(action, Submit | Cancel | Reorder) for action in taken.actions)


def test_zombie_made_by_somebody__says_that_it_can_never_end() -> None:
    zombie = replace(IN_FLIGHT, listed=Listed((3, 1, 2, 5), frozenset({5}), frozenset({5})))
    row = after(moving(), seen(zombie))
    assert (row.state, row.reason) == (State.SUPERSEDED, OldReplicasSubmitted())


@pytest.mark.parametrize("mode", [Mode.EXECUTING, Mode.CANCELLING])
def test_metadata_from_before_the_submission__is_no_end_however_often_it_is_read(mode: Mode) -> None:
    """The listing is the controller's; the partition is what some broker has heard of it."""
    row = moving(submitted_at=START - timedelta(seconds=2))
    looks = [seen(seconds=seconds) for seconds in (0, 2, 4, 6)]
    assert after(row, *looks, mode=mode).state not in ENDED
    fresh = seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 2), seconds=8)
    assert after(row, *looks, fresh, mode=mode).state is State.DONE
    late = [seen(seconds=seconds) for seconds in (8, 10)]
    assert after(row, *looks, *late, mode=mode).state is State.CANCELLED


@pytest.mark.parametrize("again", [False, True])
def test_topic_gone__ends_its_rows_wherever_they_stand(again: bool) -> None:
    topics = {"t": TopicSeen("other", 8)} if again else {}
    first, second = (seen(AT_REST if again else None, seconds=s, topics=topics) for s in (0, 2))
    for row in (Move(Work(ROW, 10)), moving(), moving(state=State.CANCELLING)):
        assert after(row, first, second).state is State.TOPIC_DELETED


def test_topic_nobody_answered_for__is_not_gone_and_nothing_is_submitted() -> None:
    unread = seen(None, topics={}, unread=frozenset({"t"}))
    assert step([Move(Work(ROW, 10)), moving()], unread, OPTIONS, START).transitions == ()


def test_throttle__leaves_with_its_partition_and_a_rate_stays_while_it_is_used() -> None:
    rows = [Row("t", "id", 0, (1, 2), (1, 3)), Row("t", "id", 1, (1, 4), (1, 5))]
    run = Run.of(rows, 5, OPTIONS)
    run.cluster.number["t"] = 8
    run.tick()
    run.cluster.partitions["t", 0].left[3] = 0
    run.cluster.pass_time(0)

    taken = run.tick()

    gone = Pairs(frozenset({(0, 1), (0, 2)}), frozenset({(0, 3)}))
    assert taken.actions == (ChangeLists("t", Pairs(), gone, (KEY,)), ClearRate(2), ClearRate(3))
    assert set(run.ours.rates) == {1, 4, 5}


def test_throttle__raised_while_it_runs_is_set_and_an_unreachable_broker_is_told() -> None:
    ours = Throttles(
        {"t": Pairs(frozenset({(0, 1), (0, 2), (0, 3)}), frozenset({(0, 5)}))}, dict.fromkeys((1, 2, 5), 9)
    )
    brokers = {b: BrokerSeen(alive=b != 3) for b in range(1, 7)}
    taken = step([moving()], seen(IN_FLIGHT, brokers=brokers), OPTIONS, START, throttles=ours)
    assert taken.actions == tuple(SetRate(broker, RATE, (KEY,)) for broker in (1, 2, 5))
    assert taken.unreachable == (3,)


def test_only_reordered__takes_no_throttle_and_is_done_by_its_order() -> None:
    row = Row("t", "id", 0, (3, 1, 2), (1, 3, 2))
    run = Run.of([row], 5, OPTIONS)
    assert run.tick().actions == (Submit(KEY, (1, 3, 2)),)
    assert run.tick().actions == (Elect(KEY),)
    assert run.states() == [State.DONE]
    assert run.tick().over


def test_elections__held_up_are_waited_for_and_given_up_with_the_reason() -> None:
    done = moving(state=State.DONE, since=START)
    look = replace(seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3)), withheld=(OtherTopicsNeverRead(),))
    waits = step([done], look, OPTIONS, START)
    assert (waits.actions, waits.transitions, waits.over) == ((), (), False)

    later = START + timedelta(minutes=10)
    for given_up in (
        step([done], replace(look, at=later), OPTIONS, later),
        step([done], replace(look, window_open=False, withheld=()), OPTIONS, START),
    ):
        assert given_up.actions == ()
        assert given_up.over
        [after] = [transition.after for transition in given_up.transitions]
        assert after.state is State.DONE
        assert after.reason in (
            NotElected(OtherTopicsNeverRead()),
            NotElected(RunWindowClosed()),
        )


def test_elections__not_without_the_option_nor_while_rows_move() -> None:
    done = moving(state=State.DONE)
    look = seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3))
    assert step([done], look, OPTIONS, START).actions == (Elect(KEY),)
    assert step([done], look, replace(OPTIONS, elect_leaders=False), START).actions == ()
    assert step(
        [done], replace(look, partitions={KEY: PartitionSeen((2, 5, 3), frozenset({3}), 3)}), OPTIONS, START
    ).over


def test_refused__ends_in_kafkas_words() -> None:
    row = replied(moving(state=State.SUBMITTING, unanswered=1), Reply.REFUSED, START, "INVALID_REPLICA_ASSIGNMENT: 9.")
    assert (row.state, row.reason, row.unanswered) == (
        State.FAILED,
        RefusedByKafka("INVALID_REPLICA_ASSIGNMENT: 9."),
        0,
    )

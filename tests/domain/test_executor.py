"""Single rules of the executor, one row or few at a time (04-changes.md §2 to §4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.domain import executor
from kafkadash.domain.executor import answered, cancelled, replied, step
from kafkadash.domain.executor_state import (
    ENDED,
    BrokerSeen,
    Cancel,
    Elect,
    Listed,
    Mode,
    Move,
    Observation,
    PartitionSeen,
    Place,
    Pressed,
    Reorder,
    Reply,
    State,
    Submit,
    TopicSeen,
    Work,
)
from kafkadash.domain.executor_throttles import ChangeLists, ClearRate, Pairs, SetRate, Throttles
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.refusals import rows as said
from tests.domain.executor_cluster import START
from tests.domain.executor_run import Fate, Run

RATE = 2_000_000
OPTIONS = Options(RATE, RATE, RATE)
ROW = Row("t", "id", 0, (3, 1, 2), (2, 5, 3))
KEY = ("t", 0)
IN_FLIGHT = PartitionSeen(
    (2, 5, 3, 1), frozenset({1, 2, 3}), 3, 2, listed=Listed((2, 5, 3, 1), frozenset({5}), frozenset({1}))
)
AT_REST = PartitionSeen((3, 1, 2), frozenset({1, 2, 3}), 3, 2)


def seen(partition: PartitionSeen | None = AT_REST, *, seconds: float = 0, **other: object) -> Observation:
    there = {KEY: partition} if partition else {}
    look = Observation(
        START + timedelta(seconds=seconds), {"t": TopicSeen("id", 8)}, there, {b: BrokerSeen() for b in range(1, 7)}
    )
    return replace(look, **other)  # type: ignore[arg-type]


def moving(row: Row = ROW, state: State = State.MOVING, **other: object) -> Move:
    before = START - timedelta(minutes=1)
    move = Move(Work(row, 10), state, since=before, attempt=1, first_at=before, submitted_at=before, acted_at=before)
    return replace(move, **other)  # type: ignore[arg-type]


def after(move: Move, *looks: Observation, mode: Mode = Mode.EXECUTING) -> Move:
    """The row after these looks, with every request answered well."""
    for look in looks:
        taken = step([move], look, OPTIONS, look.at, mode)
        move = taken.transitions[0].after if taken.transitions else move
    return move


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

    assert (refused.state, refused.reason, refused.unanswered) == (State.FAILED, "Broker 5 has no directory /d2.", 0)


def test_intent_without_trace__is_sent_again_twice_then_the_operator_is_asked() -> None:
    run = Run.of([ROW], 5, OPTIONS)
    for _ in range(3):
        assert any(isinstance(action, Submit) for action in run.tick(Fate.NOT_SENT).actions)

    assert not any(isinstance(action, Submit) for action in run.tick().actions)
    row = run.moves[0]
    assert (row.state, row.asks) == (State.UNKNOWN, True)
    assert row.reason == "It was submitted 3 times and Kafka shows no trace of it. Submit it again, or give it up?"

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
        ((2, 5, 3), State.DONE, ""),
        ((5, 2, 3), State.SUPERSEDED, "Somebody else changed it: its replicas are 5, 2, 3, not 2, 5, 3."),
        ((3, 1, 6), State.SUPERSEDED, "Somebody else changed it: its replicas are 3, 1, 6, not 2, 5, 3."),
        ((3, 1, 2), State.CANCELLED, "Somebody else cancelled it."),
        ((2, 3, 1), State.CANCELLING, "Somebody else cancelled it."),
    ],
)
def test_left_the_listing__is_read_from_the_partition(replicas: tuple[int, ...], state: State, reason: str) -> None:
    now = PartitionSeen(replicas, frozenset(replicas), replicas[0])
    row = after(moving(), seen(now), seen(now, seconds=2))
    assert (row.state, bool(row.reason)) == (state, bool(reason))
    assert row.reason.startswith(reason)


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
    assert (row.state, row.reason[-10:]) == (State.SUPERSEDED, "Cancel it.")


def test_cancel__ends_what_moves_restores_the_order_and_leaves_what_is_done() -> None:
    other = Row("t", "id", 1, (1, 2, 3), (1, 2, 4))
    run = Run.of([ROW, other], 6, OPTIONS)
    run.cluster.number["t"] = 8
    run.tick()
    run.cluster.partitions["t", 1].left[4] = 0
    run.tick()
    run.tick()
    assert run.states()[1] is State.DONE
    run.mode = Mode.CANCELLING

    assert Cancel(KEY) in run.tick().actions
    assert run.cluster.partitions[KEY].replicas == (2, 3, 1)
    run.settle()

    assert run.states() == [State.CANCELLED, State.DONE]
    assert run.cluster.partitions[KEY].replicas == (3, 1, 2)
    assert [a for s in run.steps for a in s.actions if isinstance(a, Reorder)] == [Reorder(KEY, (3, 1, 2))]


def test_late_submission_after_the_cancel__is_cancelled_again() -> None:
    run = Run.of([ROW], 6, OPTIONS)
    run.tick(Fate.LATE)
    run.mode = Mode.CANCELLING
    run.settle()
    assert run.states() == [State.CANCELLED]
    assert run.cluster.partitions[KEY].replicas == (3, 1, 2)
    assert sum(isinstance(action, Cancel) for taken in run.steps for action in taken.actions) == 1


def test_order_after_a_cancel__is_not_restored_while_a_lost_submission_may_arrive() -> None:
    """The original replicas submitted to a row that moves make a zombie."""
    lost = moving(state=State.CANCELLING, unanswered=1, submitted_at=START - timedelta(seconds=5))
    other_order = PartitionSeen((2, 3, 1), frozenset({1, 2, 3}), 3)
    for seconds, expected in ((0, []), (2, []), (71, []), (73, [Reorder(KEY, (3, 1, 2))])):
        look = seen(other_order, seconds=seconds)
        taken = step([lost], look, OPTIONS, look.at)
        lost = taken.transitions[0].after if taken.transitions else lost
        assert [action for action in taken.actions if isinstance(action, Reorder)] == expected


def test_cancelled_with_an_answer_missing__is_over_only_when_nothing_can_arrive() -> None:
    row = moving(state=State.CANCELLED, unanswered=1, submitted_at=START - timedelta(seconds=5))
    assert not step([row], seen(), OPTIONS, START, Mode.CANCELLING).over
    late = step([row], seen(IN_FLIGHT), OPTIONS, START, Mode.CANCELLING)
    assert late.transitions[0].after.state is State.CANCELLING
    assert Cancel(KEY) in late.actions
    look = seen(seconds=69)
    assert not step([row], look, OPTIONS, look.at, Mode.CANCELLING).over
    look = seen(seconds=70)
    assert step([row], look, OPTIONS, look.at, Mode.CANCELLING).over


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


def test_only_added__metadata_from_before_the_cancel_is_not_done() -> None:
    row = moving(Row("t", "id", 0, (3, 1), (3, 1, 2)), State.CANCELLING)
    stale = seen(PartitionSeen((3, 1, 2), frozenset({1, 2, 3}), 3))
    then = seen(PartitionSeen((3, 1), frozenset({1, 3}), 3), seconds=2)
    assert after(row, stale, then, replace(then, at=START + timedelta(seconds=4))).state is State.CANCELLED


def test_asked_and_answered__takes_its_turn_in_the_window() -> None:
    moves, look = fleet(2)
    asks = replace(moves[0], state=State.UNKNOWN, asks=True, attempt=3, acted_at=START - timedelta(hours=1))
    again = answered(asks, START, again=True)
    assert submits([again, moves[1]], look, replace(OPTIONS, per_cluster=1)) == [1]


def test_pending_rows__end_with_the_cancel_and_wait_through_a_pause() -> None:
    pending = Move(Work(ROW, 10))
    paused = step([pending], seen(), OPTIONS, START, Mode.PAUSED)
    assert (paused.transitions, paused.actions) == ((), ())
    assert paused.held == (said.PAUSED(),)
    assert after(pending, seen(), mode=Mode.CANCELLING).state is State.CANCELLED


@pytest.mark.parametrize("again", [False, True])
def test_topic_gone__ends_its_rows_wherever_they_stand(again: bool) -> None:
    topics = {"t": TopicSeen("other", 8)} if again else {}
    first, second = (seen(AT_REST if again else None, seconds=s, topics=topics) for s in (0, 2))
    for row in (Move(Work(ROW, 10)), moving(), moving(state=State.CANCELLING)):
        assert after(row, first, second).state is State.TOPIC_DELETED


def test_topic_nobody_answered_for__is_not_gone_and_nothing_is_submitted() -> None:
    unread = seen(None, topics={}, unread=frozenset({"t"}))
    assert step([Move(Work(ROW, 10)), moving()], unread, OPTIONS, START).transitions == ()


def test_intents_of_one_step__are_few_enough_for_a_short_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many may move at once: the others begin in the next steps."""
    monkeypatch.setattr(executor, "MOST_SUBMITTED", 2)
    rows = [Row("t", "id", number, (3, 1, 2), (2, 5, 3)) for number in range(5)]
    partitions = {("t", number): AT_REST for number in range(5)}
    look = seen(partitions=partitions)
    limits = replace(OPTIONS, per_broker=100, per_cluster=100)
    moves = [Move(Work(row, 10)) for row in rows]
    taken = step(moves, replace(look, topics={"t": TopicSeen("id", 50)}), limits, START)
    assert len([action for action in taken.actions if isinstance(action, Submit)]) == 2
    assert [t.after.state for t in taken.transitions] == [State.SUBMITTING] * 2


class TestTopicThatIsNotDescribedAnyMore:
    LISTED = {KEY: Listed((2, 5, 3, 1), frozenset({5}), frozenset({1}))}

    @staticmethod
    def unread(seconds: float, **other: object) -> Observation:
        return seen(None, seconds=seconds, topics={}, unread=frozenset({"t"}), **other)

    def test_its_row_is_cancelled_by_what_is_listed(self) -> None:
        taken = step([moving()], self.unread(0, unread_listed=self.LISTED), OPTIONS, START, Mode.CANCELLING)
        assert [action for action in taken.actions if isinstance(action, Cancel)] == [Cancel(KEY)]
        assert taken.transitions[0].after.state is State.CANCELLING
        theirs = {KEY: Listed((4, 3, 1), frozenset({4}), frozenset())}
        assert after(moving(), self.unread(0, unread_listed=theirs), mode=Mode.CANCELLING).state is State.SUPERSEDED

    @pytest.mark.parametrize("mode", [Mode.CANCELLING, Mode.EXECUTING])
    def test_its_row_ends_after_ten_minutes_and_says_that_nobody_knows_how(self, mode: Mode) -> None:
        """Of a run that is cancelled, and of one row that is."""
        row = moving(state=State.MOVING if mode is Mode.CANCELLING else State.CANCELLING)
        early = after(row, self.unread(0), self.unread(599), mode=mode)
        assert (early.state, early.hint) == (State.CANCELLING, State.FAILED)
        late = after(row, self.unread(0), self.unread(601), mode=mode)
        assert late.state is State.FAILED
        assert late.reason.startswith("Nobody can tell how it ended: Kafka lists no move of it, but t is not described")

    def test_described_again_it_is_told(self) -> None:
        original = replace(AT_REST, replicas=ROW.current)
        looks = (self.unread(0), seen(original, seconds=590), seen(original, seconds=601))
        assert after(moving(), *looks, mode=Mode.CANCELLING).state is State.CANCELLED

    def test_while_a_lost_request_may_still_arrive__it_does_not_end(self) -> None:
        lost = moving(state=State.UNKNOWN, submitted_at=START, unanswered=1)
        looks = (self.unread(0), self.unread(74), self.unread(601))
        assert after(lost, *looks, mode=Mode.CANCELLING).state is not State.FAILED

    def test_nothing_of_a_run_that_goes_on_is_ended(self) -> None:
        row = moving()
        assert after(row, self.unread(0), self.unread(3600)) is row
        assert after(row, self.unread(0), self.unread(3600), mode=Mode.PAUSED) is row


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (IN_FLIGHT, "Somebody else reassigns it, to 2, 5, 3."),
        (replace(AT_REST, replicas=(1, 3, 2)), "Its replicas are 1, 3, 2; the plan expects 3, 1, 2 before."),
        (
            replace(AT_REST, replicas=(2, 5, 3)),
            "Its replicas are 2, 5, 3 already, as the plan asks; the plan expects 3, 1, 2 before.",
        ),
    ],
)
def test_content_changed_before_its_submit__is_skipped(partition: PartitionSeen, reason: str) -> None:
    row = after(Move(Work(ROW, 10)), seen(partition), seen(partition, seconds=2))
    assert row.state is State.SKIPPED
    assert row.reason.startswith(reason)


def test_replication_factor__is_not_changed_without_approval() -> None:
    row = Move(Work(Row("t", "id", 0, (3, 1, 2), (3, 1)), 10))
    assert after(row, seen()).reason == said.FACTOR_NOT_APPROVED(has="3 replicas", target=2)


@pytest.mark.parametrize(
    ("broker", "known", "reason"),
    [
        (5, None, "Broker 5 is not registered; a move with it would not end."),
        (5, BrokerSeen(fenced=True), "Broker 5 is fenced; a move with it would not end."),
        (5, BrokerSeen(cordoned=True), "All log directories of broker 5 are cordoned."),
        (5, BrokerSeen(full="Broker 5 would come to 97 % of its disk."), "Broker 5 would come to 97 % of its disk."),
        (2, BrokerSeen(alive=False), "Broker 2 is away; a move with it would not end."),
    ],
)
def test_target_unwell__waits_and_goes_on_when_it_is_well(broker: int, known: BrokerSeen | None, reason: str) -> None:
    brokers = {b: BrokerSeen() for b in range(1, 7)} | ({broker: known} if known else {})
    if known is None:
        del brokers[broker]
    row = after(Move(Work(ROW, 10)), seen(brokers=brokers))
    assert row.state is State.WAITING
    assert row.reason.startswith(reason)
    assert after(row, seen(seconds=2)).state is State.SUBMITTING


@pytest.mark.parametrize(
    ("other", "held"),
    [
        ({"quorum": False}, "The controller quorum does not answer."),
        ({"listing": False}, "The reassignments in flight could not be read."),
        ({"window_open": False}, "The window is closed."),
    ],
)
def test_cluster_unwell__holds_everything(other: dict[str, Any], held: str) -> None:
    taken = step([Move(Work(ROW, 10))], seen(**other), OPTIONS, START)
    assert [words.startswith(held) for words in taken.held] == [True]
    assert taken.actions == ()


def test_old_look__is_not_acted_on() -> None:
    assert step([Move(Work(ROW, 10))], seen(), OPTIONS, START + timedelta(minutes=1)).held == (
        said.LOOK_TOO_OLD(age="1 min"),
    )


def pressed(isr: set[int], *, offline: tuple[int, ...] = ()) -> tuple[Pressed, ...]:
    return (Pressed("other", 3, (3, 5, 6), frozenset(isr), 2, frozenset(offline)),)


def test_brake__under_min_isr_with_nobody_away_submits_nothing() -> None:
    taken = step([Move(Work(ROW, 10))], seen(pressed=pressed({3})), OPTIONS, START)
    assert taken.actions == ()
    assert taken.brake.words == "other-3 is under min-ISR, and no broker is away that would explain it."


def test_brake__the_missing_replicas_are_offline__changes_nothing() -> None:
    taken = step([Move(Work(ROW, 10))], seen(pressed=pressed({3}, offline=(5, 6))), OPTIONS, START)
    assert Submit(KEY, (2, 5, 3)) in taken.actions


def test_brake__a_row_that_repairs_the_partition_passes() -> None:
    lags = replace(AT_REST, isr=frozenset({3}))
    repair = Move(Work(Row("t", "id", 0, (3, 1, 2), (3, 5, 6)), 10))
    look = seen(lags, pressed=(Pressed("t", 0, (3, 1, 2), frozenset({3}), 2),))
    assert Submit(KEY, (3, 5, 6)) in step([repair], look, OPTIONS, START).actions


def fleet(count: int, size: int = 10) -> tuple[list[Move], Observation]:
    rows = [Row("t", "id", number, (number % 2 + 1, 3, 4), (number % 2 + 1, 3, 5)) for number in range(count)]
    there = {("t", row.partition): PartitionSeen(row.current, frozenset(row.current), row.current[0]) for row in rows}
    look = seen(partitions=there, topics={"t": TopicSeen("id", 100)})
    return [Move(Work(row, size * (row.partition + 1))) for row in rows], look


def submits(moves: list[Move], look: Observation, options: Options = OPTIONS) -> list[int]:
    return [a.key[1] for a in step(moves, look, options, START).actions if isinstance(a, Submit)]


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
    moves[1] = replace(moves[1], work=Work(moves[1].work.row, 1, mends_racks=True))
    broken = replace(look.partitions["t", 0], isr=frozenset({1, 3}), offline=frozenset({4}))
    look = replace(look, partitions={**look.partitions, ("t", 0): broken})
    assert submits(moves, look) == [0, 1, 3, 2]


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
    look = replace(seen(PartitionSeen((2, 5, 3), frozenset({2, 3, 5}), 3)), withheld=("Nobody can tell.",))
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
            said.NOT_ELECTED(why="Nobody can tell."),
            said.NOT_ELECTED(why=said.WINDOW_CLOSED()),
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
    assert (row.state, row.reason, row.unanswered) == (State.FAILED, "INVALID_REPLICA_ASSIGNMENT: 9.", 0)


def test_one_row_cancelled_in_a_run_that_goes_on() -> None:
    row = cancelled(moving(), START, "Taken out.")
    taken = step([row], seen(IN_FLIGHT), OPTIONS, START)
    assert Cancel(KEY) in taken.actions
    assert taken.transitions[0].after.reason == "Taken out."

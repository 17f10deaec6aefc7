"""Rows that are given back, one or all, while requests and looks come late."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kafkadash.domain.executor import cancelled, step
from kafkadash.domain.executor_state import (
    Cancel,
    Listed,
    Mode,
    Move,
    Observation,
    PartitionSeen,
    Reorder,
    State,
    Work,
)
from kafkadash.domain.plan import Row
from kafkadash.domain.row_reasons import EndedByOperatorWithNote, EndUntold
from kafkadash.domain.run_reasons import RunPaused
from tests.domain.executor_cluster import START
from tests.domain.executor_run import Fate, Run
from tests.domain.one_row import AT_REST, IN_FLIGHT, KEY, OPTIONS, ROW, after, moving, seen


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


def test_only_added__metadata_from_before_the_cancel_is_not_done() -> None:
    row = moving(Row("t", "id", 0, (3, 1), (3, 1, 2)), State.CANCELLING)
    stale = seen(PartitionSeen((3, 1, 2), frozenset({1, 2, 3}), 3))
    then = seen(PartitionSeen((3, 1), frozenset({1, 3}), 3), seconds=2)
    assert after(row, stale, then, replace(then, at=START + timedelta(seconds=4))).state is State.CANCELLED


def test_pending_rows__end_with_the_cancel_and_wait_through_a_pause() -> None:
    pending = Move(Work(ROW, 10))
    paused = step([pending], seen(), OPTIONS, START, Mode.PAUSED)
    assert (paused.transitions, paused.actions) == ((), ())
    assert paused.held == (RunPaused(),)
    assert after(pending, seen(), mode=Mode.CANCELLING).state is State.CANCELLED


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
        assert (late.state, late.reason) == (State.FAILED, EndUntold("t"))

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


def test_one_row_cancelled_in_a_run_that_goes_on() -> None:
    asked = EndedByOperatorWithNote("alice", "Taken out.")
    row = cancelled(moving(), START, asked)
    taken = step([row], seen(IN_FLIGHT), OPTIONS, START)
    assert Cancel(KEY) in taken.actions
    assert taken.transitions[0].after.reason == asked

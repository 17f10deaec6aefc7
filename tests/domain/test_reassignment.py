"""Which reassignment is which, and how one ended."""

from __future__ import annotations

import pytest

from kafkadash.domain.reassignment import Continuity, End, PartitionNow, Sight, continuity, ended_as, replaced_as


def sight(
    replicas: tuple[int, ...] = (4, 2, 3, 1),
    adding: tuple[int, ...] = (4,),
    removing: tuple[int, ...] = (1,),
    epoch: int | None = 7,
    ends: dict[int, int] | None = None,
) -> Sight:
    return Sight(replicas, frozenset(adding), frozenset(removing), epoch, ends or {})


def now(*replicas: int, topic_id: str = "id-1", isr: tuple[int, ...] = ()) -> PartitionNow:
    return PartitionNow(topic_id, replicas, frozenset(isr or replicas))


def test_continuity__same_sets_and_epoch__is_the_same() -> None:
    assert continuity(sight(ends={4: 900}), sight(ends={4: 100})) is Continuity.SAME


def test_continuity__leader_elected_while_copying__is_the_same() -> None:
    assert continuity(sight(epoch=7, ends={4: 100}), sight(epoch=8, ends={4: 100})) is Continuity.SAME


def test_continuity__new_epoch_and_the_copy_started_over__is_another_one() -> None:
    assert continuity(sight(epoch=7, ends={4: 900}), sight(epoch=9, ends={4: 0})) is Continuity.RESTARTED


def test_continuity__new_epoch_and_the_broker_did_not_answer__is_no_evidence_for_another_one() -> None:
    assert continuity(sight(epoch=7, ends={4: 900}), sight(epoch=9)) is Continuity.SAME


def test_continuity__retargeted__supersedes_the_old_one() -> None:
    assert continuity(sight(), sight(replicas=(5, 2, 3, 1), adding=(5,))) is Continuity.SUPERSEDED


def test_replaced__the_new_one_starts_from_the_old_target__the_old_one_was_completed() -> None:
    """[1, 2, 3] → [4, 2, 3] was through when somebody moved on to [4, 5, 3]."""
    assert replaced_as(sight(), sight(replicas=(4, 5, 3, 2), adding=(5,), removing=(2,))) is End.COMPLETED


def test_replaced__the_new_one_starts_from_where_the_old_one_did__the_old_one_was_superseded() -> None:
    """[1, 2, 3] → [4, 2, 3] was under way when somebody asked for [4, 5, 3], or for [5, 2, 3]."""
    assert replaced_as(sight(), sight(replicas=(4, 5, 3, 1, 2), adding=(4, 5), removing=(1, 2))) is End.SUPERSEDED
    assert replaced_as(sight(), sight(replicas=(5, 2, 3, 1), adding=(5,))) is End.SUPERSEDED


def end(last: Sight, partition: PartitionNow | None, *, settled: bool = False) -> End | None:
    return ended_as(last, "id-1", partition, settled=settled)


def test_end__target_reached__is_completed_in_whatever_order() -> None:
    assert end(sight(), now(4, 2, 3)) is End.COMPLETED
    assert end(sight(), now(2, 4, 3)) is End.COMPLETED


def test_end__original_set_again__is_cancelled_though_kafka_does_not_restore_the_order() -> None:
    original_was_3_1_2 = sight(replicas=(2, 5, 3, 1), adding=(5,), removing=(1,))
    assert end(original_was_3_1_2, now(2, 3, 1)) is End.CANCELLED


def test_end__left_the_listing_while_metadata_still_shows_both_sets__is_not_decided_yet() -> None:
    assert end(sight(), now(4, 2, 3, 1)) is None


def test_end__both_sets_stay__somebody_made_them_the_target() -> None:
    assert end(sight(), now(4, 2, 3, 1), settled=True) is End.SUPERSEDED


def test_end__another_set__was_changed_by_somebody_else() -> None:
    assert end(sight(), now(2, 3, 5)) is End.SUPERSEDED


@pytest.mark.parametrize("partition", [None, now(1, 2, 3, topic_id="id-2")])
def test_end__topic_gone_or_recreated__says_so(partition: PartitionNow | None) -> None:
    assert end(sight(), partition) is End.TOPIC_DELETED


def test_end__replication_factor_raised_then_cancelled__is_cancelled() -> None:
    grown = sight(replicas=(1, 2, 3), adding=(3,), removing=())
    assert end(grown, now(1, 2)) is End.CANCELLED


def test_end__replication_factor_raised__a_broker_that_lags_would_tell_the_same_as_success() -> None:
    grown = sight(replicas=(1, 2, 3), adding=(3,), removing=())
    assert end(grown, now(1, 2, 3)) is None
    assert end(grown, now(1, 2, 3), settled=True) is End.COMPLETED


def test_end__replication_factor_lowered__a_broker_that_lags_would_tell_the_same_as_a_cancel() -> None:
    shrunk = sight(replicas=(1, 2, 3), adding=(), removing=(3,))
    assert end(shrunk, now(1, 2, 3)) is None
    assert end(shrunk, now(1, 2, 3), settled=True) is End.CANCELLED
    assert end(shrunk, now(1, 2)) is End.COMPLETED

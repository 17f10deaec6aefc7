from __future__ import annotations

import pytest

from kafkadash.domain.partition_state import PartitionTrouble, trouble_of
from kafkadash.domain.topology import PartitionShape

THREE = (1, 2, 3)


@pytest.mark.parametrize(
    ("leader", "isr", "adding", "min_isr", "trouble"),
    [
        (1, (1, 2, 3), (), 2, PartitionTrouble.NONE),
        (1, (1, 2, 3), (), 3, PartitionTrouble.NONE),
        (1, (1, 2), (), 2, PartitionTrouble.AT_MIN_ISR),
        (1, (1, 2), (), 1, PartitionTrouble.UNDER_REPLICATED),
        (1, (1, 2), (), None, PartitionTrouble.UNDER_REPLICATED),
        (1, (1,), (), 2, PartitionTrouble.UNDER_MIN_ISR),
        (1, (1,), (2, 3), 2, PartitionTrouble.UNDER_MIN_ISR),
        (1, (1, 2), (3,), 2, PartitionTrouble.CATCHING_UP),
        (1, (1, 3), (3,), 2, PartitionTrouble.AT_MIN_ISR),
        (None, (), (), 2, PartitionTrouble.OFFLINE),
        (None, (1,), (3,), None, PartitionTrouble.OFFLINE),
    ],
)
def test_the_worst_class_is_said(
    leader: int | None, isr: tuple[int, ...], adding: tuple[int, ...], min_isr: int | None, trouble: PartitionTrouble
) -> None:
    assert trouble_of(PartitionShape(leader, THREE, isr, frozenset(adding)), min_isr) is trouble


def test_only_what_refuses_clients_now_is_critical() -> None:
    critical = {trouble for trouble in PartitionTrouble if trouble.state == "critical"}
    assert critical == {PartitionTrouble.OFFLINE, PartitionTrouble.LEADER_SILENT, PartitionTrouble.UNDER_MIN_ISR}
    assert PartitionTrouble.OFFLINE.rank < PartitionTrouble.AT_MIN_ISR.rank < PartitionTrouble.NONE.rank


@pytest.mark.parametrize(
    ("leader", "trouble"),
    [(1, PartitionTrouble.LEADER_SILENT), (2, PartitionTrouble.IN_DOUBT)],
    ids=["leads", "follows"],
)
def test_a_broker_that_does_not_answer_makes_nothing_well(leader: int, trouble: PartitionTrouble) -> None:
    shape = PartitionShape(leader, THREE, THREE)
    assert trouble_of(shape, 2) is PartitionTrouble.NONE
    assert trouble_of(shape, 2, frozenset({1})) is trouble
    assert trouble.state != "ok"

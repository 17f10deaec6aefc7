"""The active controller and its followers."""

import pytest

from kafkadash.kafka.admin import WireAdmin
from tests.contract.backends import Backend

pytestmark = pytest.mark.contract

DEADLINE = 10.0


def test_the_leader_is_the_one_that_kafka_names(admin: WireAdmin, backend: Backend) -> None:
    quorum = admin.quorum(deadline=DEADLINE)

    assert quorum.leader_id == backend.controller()
    assert quorum.leader_epoch > 0
    assert quorum.high_watermark is not None
    assert quorum.high_watermark > 0


def test_voters_and_observers_come_with_directories_and_offsets(admin: WireAdmin, backend: Backend) -> None:
    quorum = admin.quorum(deadline=DEADLINE)

    assert {voter.id: voter.directory_id for voter in quorum.voters} == backend.voters()
    assert [observer.id for observer in quorum.observers] == backend.broker_ids
    leader = next(voter for voter in quorum.voters if voter.id == quorum.leader_id)
    assert leader.log_end_offset is not None
    for replica in [*quorum.voters, *quorum.observers]:
        assert replica.log_end_offset is not None
        assert replica.log_end_offset <= leader.log_end_offset
        assert replica.last_caught_up_ms is not None

"""A member of a classic consumer group on real Kafka that assigns itself any bytes: brokers do not look into them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from kio.static.primitive import i8, i32Timedelta

from tests.contract import raw
from tests.waiting import wait_until

FIND_COORDINATOR, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP = 10, 11, 13, 14
MEMBER_ID_REQUIRED = 79  # KIP-394
COMES_UP = (14, 15, 16)  # the coordinator loads, is not there yet, is another broker now
COMES_UP_S = 60.0
STAYS = timedelta(minutes=10)  # without a heartbeat

MOVES_BACKWARDS = struct.pack(">hih", 0, 2**31 - 1, 1) + b"a" + struct.pack(">ih", 0, -6)
"""Topics without number, of which each has the decoder read the same bytes again."""
NUL_IN_A_TOPIC = struct.pack(">hih", 0, 1, 3) + b"a\0b" + struct.pack(">ii", 1, 0)
SLASH_IN_A_TOPIC = struct.pack(">hih", 0, 1, 3) + b"a/b" + struct.pack(">ii", 1, 0)
HOSTILE_ASSIGNMENTS = (MOVES_BACKWARDS, NUL_IN_A_TOPIC, SLASH_IN_A_TOPIC)


@contextmanager
def hostile_member(address: str, group: str, assignment: bytes) -> Iterator[str]:
    """Its member id. It leads the group alone, and leaves it at the end; ``address`` is of any broker."""
    found = _find_coordinator(address, group)
    with socket.create_connection((str(found.host), int(found.port)), timeout=raw.TIMEOUT_S) as connection:
        member = _join(connection, group)
        try:
            joined = _joined(connection, group, member)
            types = raw.request_types(SYNC_GROUP, 3)
            own = types.SyncGroupRequestAssignment(member_id=member, assignment=assignment)
            synced = raw.exchange(
                connection,
                SYNC_GROUP,
                3,
                group_id=group,
                generation_id=joined.generation_id,
                member_id=member,
                group_instance_id=None,
                assignments=(own,),
            )
            assert synced.error_code == 0, synced
            yield member
        finally:
            _leave(connection, group, member)


def coordinator_of(address: str, group: str) -> int:
    """The id of the broker that coordinates this group, as the broker at ``address`` says."""
    return int(_find_coordinator(address, group).node_id)


def _find_coordinator(address: str, group: str) -> Any:
    return _up(lambda: raw.ask(address, FIND_COORDINATOR, 2, key=group, key_type=i8(0)), 0)


def _join(connection: socket.socket, group: str) -> str:
    return str(_up(lambda: _joined(connection, group, ""), MEMBER_ID_REQUIRED).member_id)


def _up(ask: Callable[[], Any], expected: int) -> Any:
    """The answer of a coordinator that is up; asserts its error code."""
    answers = [ask()]

    def is_up() -> bool:
        if answers[-1].error_code in COMES_UP:
            answers.append(ask())
        return answers[-1].error_code not in COMES_UP

    wait_until(is_up, "the group's coordinator is up", COMES_UP_S)
    assert answers[-1].error_code == expected, answers[-1]
    return answers[-1]


def _joined(connection: socket.socket, group: str, member: str) -> Any:
    types = raw.request_types(JOIN_GROUP, 5)
    return raw.exchange(
        connection,
        JOIN_GROUP,
        5,
        group_id=group,
        session_timeout=i32Timedelta.parse(STAYS),
        rebalance_timeout=i32Timedelta.parse(STAYS),
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=(types.JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def _leave(connection: socket.socket, group: str, member: str) -> None:
    types = raw.request_types(LEAVE_GROUP, 3)
    identity = types.MemberIdentity(member_id=member, group_instance_id=None)
    left = raw.exchange(connection, LEAVE_GROUP, 3, group_id=group, members=(identity,))
    assert left.error_code == 0, left

"""The clusters that the contract suite runs on, and how each tells the truth past the adapter.

The fake's truth is its model. Real Kafka's truth is what its own tools print, or a raw request of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from kafkadash.kafka.api import ClusterConnection, OngoingReassignment

RACKS = ("a", "b", "c")


class Backend(Protocol):
    """``has_quorum``: in KRaft mode. Tests marked ``quorum`` are of such clusters only. ``release`` of its brokers."""

    name: str
    has_quorum: bool
    release: tuple[int, int]
    connection: ClusterConnection
    broker_ids: list[int]

    def create_topic(self, name: str, placement: Sequence[Sequence[int]], records: int = 0) -> None:
        """``records`` go into each partition."""
        ...

    def start_move(self, topic: str, partition: int, target: Sequence[int]) -> None:
        """A reassignment that stays in flight, and that copies a little whenever ``keep_moving`` is called."""
        ...

    def keep_moving(self, topic: str, partition: int, broker: int) -> None: ...

    def finish_move(self, topic: str, partition: int, broker: int) -> None:
        """What is being added on ``broker`` has all records."""
        ...

    def cancel_move(self, topic: str, partition: int) -> None: ...

    def cluster_id(self) -> str: ...

    def topic(self, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        """(leader, replicas, ISR) of each partition."""
        ...

    def reassignments(self) -> list[OngoingReassignment]: ...

    def sizes(self, broker: int) -> dict[tuple[str, str, int], int]:
        """(directory, topic, partition) → bytes."""
        ...

    def end_offset(self, broker: int, topic: str, partition: int) -> int: ...

    def set_config(self, owner: str | int | None, key: str, value: str | None) -> None:
        """Of a topic (its name), of a broker (its id), or None: of all brokers. The value None deletes it."""
        ...

    def configs(self, owner: str | int | None) -> dict[str, tuple[str | None, str]]:
        """Config name → (value or None where it is kept back, source in Kafka's words)."""
        ...

    def finalized_features(self) -> dict[str, int]: ...

    def controller(self) -> int: ...

    def voters(self) -> dict[int, str]:
        """Voter id → directory id."""
        ...

    def frozen(self, broker: int) -> AbstractContextManager[None]: ...

    def fenced(self, broker: int) -> AbstractContextManager[None]:
        """It does not answer, and the cluster knows it."""
        ...

    def controller_servers(self) -> tuple[str, ...]:
        """host:port of the controllers' own listeners."""
        ...

    def without_controllers(self) -> AbstractContextManager[None]: ...

"""Clients of the registered clusters: one per process and connection, made when first asked for."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kafkadash.kafka.api import CanaryAnswer, ClusterConnection, WholeClient, ZooKeeperConnection, wire_thread
from kafkadash.kafka.znodes import ZNodeReader

if TYPE_CHECKING:
    from kafkadash.kafka.mutations import WireClient


class _ProcessClients:
    """The clients of one process, by connection key, with the version they were made for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.admins: dict[str, tuple[int, WireClient]] = {}


# The last one is this process's own; the others came with a fork and are never touched: the parent's clients have no
# thread here, and closing or collecting them would shut the parent's sockets or warn about them.
_clients = [_ProcessClients()]


def admin_for(connection: ClusterConnection) -> WholeClient:
    """The client of ``connection.key``; a new one when ``connection.version`` is not that of the one in use.

    Cheap: nothing is connected before the first call. A replaced client is closed, and calls still under way on it
    raise Unreachable.
    """
    # Only who talks to Kafka loads the client library: the web imports this module and never calls it.
    from kafkadash.kafka.mutations import WireClient

    clients = _clients[-1]
    with clients.lock:
        present = clients.admins.get(connection.key)
        if present is not None and present[0] == connection.version:
            return present[1]
        admin = WireClient(connection)
        clients.admins[connection.key] = (connection.version, admin)
    if present is not None:
        present[1].close()
    return admin


def processor_s(key: str) -> float:
    """Processor time that this thread and the one that drives the sockets of a connection have taken, in seconds.

    The difference of two is the cost of what was asked in between, and of what others asked the same cluster meanwhile.
    Where the system does not tell the time of other threads (no Linux), that of this one alone.
    """
    spent = time.thread_time()
    for thread in threading.enumerate():
        if thread.name == wire_thread(key):
            with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
                spent += int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0]) / 1e9
    return spent


def run_canary(connection: ClusterConnection, kafka_id: str, topic: str, *, deadline: float) -> CanaryAnswer:
    """Return ``canary_probe.probe_partitions``, whose client library is loaded when it is first asked for."""
    from kafkadash.kafka.canary_probe import probe_partitions

    return probe_partitions(connection, kafka_id, topic, deadline=deadline)


@contextmanager
def own_admin(connection: ClusterConnection) -> Iterator[WholeClient]:
    """A client that nobody shares and that is closed at the end: what it meets is met now, nothing is remembered."""
    from kafkadash.kafka.mutations import WireClient

    admin = WireClient(connection)
    try:
        yield admin
    finally:
        admin.close()


def open_zookeeper(connection: ZooKeeperConnection, *, deadline: float) -> AbstractContextManager[ZNodeReader]:
    """A session with the ensemble, as of ``zookeeper.open_session``."""
    from kafkadash.kafka.zookeeper import open_session

    return open_session(connection, deadline=deadline)


def close_all() -> None:
    """Closes every client of this process, for the end of a worker."""
    clients = _clients[-1]
    with clients.lock:
        admins = [admin for _, admin in clients.admins.values()]
        clients.admins.clear()
    for admin in admins:
        admin.close()


os.register_at_fork(after_in_child=lambda: _clients.append(_ProcessClients()))

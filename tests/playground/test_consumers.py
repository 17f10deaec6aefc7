"""Consumer groups of the playground do what their behaviour says."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kafkadash.kafka.connection import Connection
from kafkadash.kafka.groups import Group
from kafkadash.kafka.wire_client import WireClient
from kafkadash.playground.cluster import Playground
from kafkadash.playground.consumers import FED, GROUPS, QUIET, Behaviour, Consumers
from tests.playground.test_command import command, environment
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("own-playground")

DEADLINE = 10.0
JOINED_S = 60  # in a group of KIP-848 members hear of their partitions with a heartbeat, every five seconds
PARTITIONS = 6


@contextmanager
def client(playground: Playground) -> Iterator[WireClient]:
    admin = WireClient(Connection("playground", 1, tuple(playground.bootstrap.split(","))))
    try:
        yield admin
    finally:
        admin.close()


def committed(admin: WireClient, group: str, topic: str = FED) -> int:
    """Over all partitions; −1 where one has no commit yet."""
    offsets = admin.committed([group], deadline=DEADLINE).offsets[group].get(topic, {})
    return sum(offsets.values()) if len(offsets) == (1 if topic == QUIET else PARTITIONS) else -1


def end(admin: WireClient, topic: str = FED) -> int:
    count = 1 if topic == QUIET else PARTITIONS
    return sum(span.end for span in admin.log_spans({topic: range(count)}, deadline=DEADLINE).spans[topic].values())


def group(admin: WireClient, name: str) -> Group:
    return admin.groups(deadline=DEADLINE).groups[name]


def begins(admin: WireClient, name: str, topic: str) -> None:
    wait_until(lambda: committed(admin, name, topic) >= 0, f"{name} commits", JOINED_S)


def moves_on(read: Callable[[], int], what: str) -> None:
    first = read()
    wait_until(lambda: read() > first, what)


def goes_back(read: Callable[[], int], what: str) -> None:
    seen = [read()]

    def less_than_before() -> bool:
        seen.append(read())
        return seen[-1] < seen[-2]

    wait_until(less_than_before, what)


def test_each_group_behaves_as_it_is_meant_to(whole: Playground) -> None:
    names = [each.group for each in GROUPS]
    with client(whole) as admin, Consumers(whole.bootstrap, rewind_every=3.0) as consumers:
        for each in GROUPS:
            begins(admin, each.group, each.topic)
        stalled, stopped = committed(admin, "invoice-writer"), committed(admin, "mail-sender")
        moves_on(lambda: committed(admin, "dispatch"), "the healthy group commits on")
        moves_on(lambda: end(admin) - committed(admin, "delivery-statistics"), "the lagging group falls behind")
        goes_back(lambda: committed(admin, "search-index"), "the rewinding group goes back")

        assert set(names) <= admin.groups(deadline=DEADLINE).groups.keys()
        assert (group(admin, "dispatch").type, len(group(admin, "dispatch").members or ())) == ("Consumer", 2)
        assert len(group(admin, "invoice-writer").members or ()) == 2
        assert committed(admin, "invoice-writer") == stalled < end(admin)
        assert (group(admin, "mail-sender").state, committed(admin, "mail-sender")) == ("Empty", stopped)
        assert stopped < end(admin)
        assert group(admin, "price-import").state == "Empty"
        assert committed(admin, "price-import", QUIET) == end(admin, QUIET) > 0

        consumers.behave("dispatch", Behaviour.STOPPED)
        assert group(admin, "dispatch").state == "Empty"
        consumers.behave("invoice-writer", Behaviour.HEALTHY)
        moves_on(lambda: committed(admin, "invoice-writer"), "it commits again")
        before = committed(admin, "delivery-statistics")
        consumers.rewind("delivery-statistics", 20)
        assert committed(admin, "delivery-statistics") < before
    with client(whole) as admin:
        assert {group(admin, name).state for name in names} == {"Empty"}


def test_the_command_runs_them_until_it_is_told_to_stop(whole: Playground) -> None:
    with subprocess.Popen(
        command(whole.folder, "consume", "--rate", "10"), stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout
        said = [process.stdout.readline() for _ in range(len(GROUPS) + 1)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [line.split()[0] for line in said[:-1]] == [each.group for each in GROUPS]
    assert said[-1] == "Feeding 10 records/s until Ctrl-C\n"

"""Calls of the Kafka port while answers are broken, and what each of them has to tell all the same.

Every call is back within its deadline and half a second, with an answer, or a failure that the port names. An answer
is never wrong: it is what was told before, or says what is missing. A change that is told as done is done, one that is
told as refused is not. Corrupted bytes may spell another value, which nobody can tell, so of these the answers are not
compared.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kafkadash.kafka.api import (
    TRANSACTIONS_TOPIC,
    ClusterConnection,
    ConfigChange,
    ConfigResource,
    GroupDescription,
    ItemChanged,
    KafkaFailure,
    OffsetKind,
    OffsetQuery,
    OtherGroup,
    TopicPartition,
)
from kafkadash.kafka.mutations import WireClient
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_groups import FakeMember
from tests.contract.fake_model import ClusterModel
from tests.contract.faulty_proxy import CORRUPTING, FaultKind, FaultyProxy
from tests.contract.timing import in_time
from tests.waiting import wait_until

DEADLINE_S = 0.6
RECOVERS_S = 10.0
THREAD_ENDS_S = 10.0
LATE_S = DEADLINE_S * 1.5
TOPIC, MOVING, MOVED, GROUP, KEY = "orders", "moving", "moved", "billing", "retention.ms"
SHARED, STREAMS = "shared", "streams"
TRANSACTIONAL, WITHOUT_COORDINATOR = (11, 12), 13
"""Producers of open transactions; no coordinator knows the last one."""


@dataclass
class FaultTally:
    """Calls by the kind of their fault and by what became of them; ``wrong``: what was told wrong, or too late."""

    answered: Counter[FaultKind] = field(default_factory=Counter)
    failed: Counter[FaultKind] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    threads_left: list[str] = field(default_factory=list)

    def count(self, kind: FaultKind, *, failed: bool) -> None:
        (self.failed if failed else self.answered)[kind] += 1

    @property
    def injected(self) -> int:
        return self.answered.total() + self.failed.total()


@dataclass(frozen=True)
class CheckedCall:
    """``ask`` returns what a call told, by item; what it did not tell is left out.

    ``judge`` returns what is wrong with that.
    """

    name: str
    ask: Callable[[], Mapping[Any, Any]]
    judge: Callable[[Mapping[Any, Any]], str]


def inject_faults(proxy: FaultyProxy, calls: list[CheckedCall], number: int, faults: int, tally: FaultTally) -> None:
    """Break calls one after the other, in an order that ``number`` decides; after each fault all is well again."""
    chosen = random.Random(number)
    kinds = list(FaultKind)
    attempt = 0
    while tally.injected < faults:
        attempt += 1
        call, kind = chosen.choice(calls), chosen.choice(kinds)
        where = f"cluster {number}, attempt {attempt}: {call.name}, {kind}"
        whole, broken = chosen.choice((0, 0, 0, 1, 1, 2, 4)), chosen.choice((1, 1, 2, 3, 9))
        proxy.arm(kind, whole=whole, broken=broken, seed=chosen.randrange(1 << 30))
        failed, told = False, None
        try:
            with in_time(DEADLINE_S):
                told = call.ask()
        except KafkaFailure:
            failed = True
        except AssertionError as late:
            tally.wrong.append(f"{where}: {late}")
        except Exception as error:  # noqa: BLE001  (any other is what this looks for)
            tally.wrong.append(f"{where}: {error!r}")
        if proxy.disarm():
            tally.count(kind, failed=failed)
        if told is not None and kind not in CORRUPTING and (fault := call.judge(told)):
            tally.wrong.append(f"{where}: {fault}")
        wait_until(partial(is_well, call), f"{where}: it is well again", RECOVERS_S)


def is_well(call: CheckedCall) -> bool:
    try:
        told = call.ask()
    except KafkaFailure:
        return False
    return not call.judge(told) and bool(told)


def break_kafka(number: int, faults: int) -> FaultTally:
    """Break that many calls of a fake cluster, chosen by ``number``."""
    with counting_threads(FaultTally()) as tally:
        _break_kafka(number, faults, tally)
    return tally


@contextmanager
def counting_threads(tally: FaultTally) -> Iterator[FaultTally]:
    before = set(threading.enumerate())
    yield tally
    until = time.monotonic() + THREAD_ENDS_S
    for thread in set(threading.enumerate()) - before:
        thread.join(max(0.0, until - time.monotonic()))  # a client that was closed ends its thread by itself
        if thread.is_alive():
            tally.threads_left.append(thread.name)


def _break_kafka(number: int, faults: int, tally: FaultTally) -> None:
    with ExitStack() as held:
        kafka = held.enter_context(FakeKafka(ClusterModel(3)))
        kafka.model.add_topic(TOPIC, [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 20, records=100)
        for topic in (MOVING, MOVED):
            kafka.model.add_topic(topic, [[1, 2]], records=50)
            kafka.model.reassign(topic, 0, [2, 3])
        kafka.model.add_group(GROUP, coordinator=2)
        kafka.model.commit(GROUP, TOPIC, dict.fromkeys(range(60), 42))
        _add_typed_groups(kafka.model)
        _open_transactions(kafka.model)
        kafka.model.partitions_per_page = 25
        kafka.model.eligible = {(TOPIC, index): ([3], [2]) for index in range(0, 60, 7)}
        proxy = held.enter_context(FaultyProxy(LATE_S))
        for broker in kafka.model.brokers.values():
            kafka.model.set_port(broker.id, proxy.stand_before(broker.port))
        client = WireClient(ClusterConnection(f"faults-{number}", 1, kafka.bootstrap_servers))
        held.callback(client.close)
        calls = list_calls(client, kafka.model)
        inject_faults(proxy, calls, number, faults, tally)


def _add_typed_groups(model: ClusterModel) -> None:
    """A share group and a streams group, coordinated by brokers of which one coordinates ``GROUP`` too."""
    members = [FakeMember(f"m-{number}", "picker", {TOPIC: (0, 1)}) for number in range(2)]
    shared = {TOPIC: {index: (40 + index, 7) for index in range(30)}}
    share = {"type": "share", "protocol_type": "share", "members": members, "shared": shared}
    model.add_group(SHARED, coordinator=3, **share)
    model.add_group(f"{SHARED}-2", coordinator=1, **share)
    streams = {"type": "streams", "protocol_type": "streams", "members": members, "sources": (TOPIC,)}
    model.add_group(STREAMS, coordinator=2, **streams)


def _open_transactions(model: ClusterModel) -> None:
    model.add_topic(TRANSACTIONS_TOPIC, [[1], [1]], internal=True)
    model.transactional_ids = {producer: f"tx-{producer}" for producer in TRANSACTIONAL}
    producers = (*TRANSACTIONAL, WITHOUT_COORDINATOR)
    model.open_transactions = {(TOPIC, index): [(producers[index % 3], 40 + index)] for index in range(30)}


def list_calls(client: WireClient, model: ClusterModel) -> list[CheckedCall]:
    """Return the reads, each compared with what it told before any fault, and changes compared with the model."""
    queries = [OffsetQuery(broker, TOPIC, index, OffsetKind.LATEST) for broker in (1, 2, 3) for index in range(10)]
    resources = [ConfigResource.topic(TOPIC), *map(ConfigResource.broker, (1, 2, 3))]
    wanted = {TOPIC: range(60)}

    def spans(read: Callable[..., Any]) -> Mapping[Any, Any]:
        found = read(wanted, deadline=DEADLINE_S).spans
        return {(topic, index): span[:2] for topic, own in found.items() for index, span in own.items()}

    def offsets() -> Mapping[Any, Any]:
        found = client.replica_offsets(queries, deadline=DEADLINE_S).offsets
        return {query: answer.offset for query, answer in found.items()}

    def quorum() -> Mapping[Any, Any]:
        found = client.quorum(deadline=DEADLINE_S)
        ends = {voter.id: voter.log_end_offset for voter in found.voters}
        return {"leader": found.leader_id, "epoch": found.leader_epoch, "end": found.high_watermark, **ends}

    def groups() -> Mapping[Any, Any]:
        """Those that were not described say so."""
        found = client.groups(deadline=DEADLINE_S)
        described: list[GroupDescription | OtherGroup] = [*found.groups.values(), *found.others.values()]
        return {group.name: group for group in described if group.error is None}

    def share_offsets() -> Mapping[Any, Any]:
        found = client.share_offsets([SHARED, f"{SHARED}-2"], deadline=DEADLINE_S)
        return {group: own for group, own in found.offsets.items() if group not in found.errors}

    def open_transactions() -> Mapping[Any, Any]:
        found = client.open_transactions(wanted, deadline=DEADLINE_S)
        return {(topic, index): list(opened) for topic, own in found.items() for index, opened in own.items()}

    def coordinated() -> Mapping[Any, Any]:
        """Only an answer that is complete tells by what it lacks: no coordinator knows that producer."""
        found = client.coordinated_transactions((*TRANSACTIONAL, WITHOUT_COORDINATOR), deadline=DEADLINE_S)
        described = {producer: own for producer, own in found.described.items() if own is not None}
        return described | ({"known": frozenset(found.described)} if found.complete and found.sees_all else {})

    def transactional_ids() -> Mapping[Any, Any]:
        found = client.transactional_ids((*TRANSACTIONAL, WITHOUT_COORDINATOR), deadline=DEADLINE_S)
        return {} if found is None else {"": found}

    reads: dict[str, Callable[[], Mapping[Any, Any]]] = {
        "metadata": lambda: {"": replace(client.metadata(deadline=DEADLINE_S, topics=[TOPIC]), taken_at=0.0)},
        "cluster": lambda: {
            "": replace(client.describe_cluster(deadline=DEADLINE_S), taken_at=0.0, controller_id=None)
        },
        "reassignments": lambda: {
            "": [row for row in client.list_reassignments(deadline=DEADLINE_S).rows if row.topic == MOVING]
        },
        "quorum": quorum,
        "versions": lambda: client.api_versions(deadline=DEADLINE_S).brokers,
        "directories": lambda: client.log_dirs((1, 2, 3), deadline=DEADLINE_S).brokers,
        "spans": lambda: spans(client.log_spans),
        "stable spans": lambda: spans(client.stable_spans),
        "replica offsets": offsets,
        "configs": lambda: client.describe_configs(resources, deadline=DEADLINE_S).resources,
        "committed": lambda: client.committed([GROUP], deadline=DEADLINE_S).offsets,
        "groups": groups,
        "share offsets": share_offsets,
        "unstable spans": lambda: spans(client.unstable_spans),
        "open transactions": open_transactions,
        "coordinated transactions": coordinated,
        "transactional ids": transactional_ids,
        "eligible replicas": lambda: client.eligible_replicas(wanted, deadline=DEADLINE_S),
    }
    calls = []
    for name, ask in reads.items():
        expected = first_answer(ask)
        calls.append(CheckedCall(name, ask, partial(list_differences, expected)))
    return [*calls, config_call(client, model), move_call(client, model)]


def first_answer(ask: Callable[[], Mapping[Any, Any]]) -> Mapping[Any, Any]:
    """Return what a read tells while nothing is broken; the first connection of a busy machine may be late."""
    told: list[Mapping[Any, Any]] = []

    def asked() -> bool:
        with suppress(KafkaFailure):
            told.append(ask())
        return bool(told)

    wait_until(asked, "there is an answer", RECOVERS_S)
    return told[0]


def list_differences(expected: Mapping[Any, Any], told: Mapping[Any, Any]) -> str:
    """Return what was told wrong; an item that is missing is said to be missing."""
    return "; ".join(f"{item}: {value!r:.300}" for item, value in told.items() if expected.get(item) != value)


def config_call(client: WireClient, model: ClusterModel) -> CheckedCall:
    """Each call sets another value."""
    resource, values = ConfigResource.topic(MOVED), iter(range(1, 1 << 40))

    def current() -> str | None:
        with model.lock:
            return model.configs.of_topic(MOVED)[KEY][0]

    def ask() -> Mapping[Any, Any]:
        value, old = str(next(values)), current()
        answer = client.alter_configs([ConfigChange.set_or_delete(resource, KEY, value)], deadline=DEADLINE_S)
        return {"outcome": _outcome(answer), "new": value, "old": old, "now": current()}

    return CheckedCall("alter configs", ask, judge_change)


def move_call(client: WireClient, model: ClusterModel) -> CheckedCall:
    """Each call moves the partition to the other of two places."""
    place = TopicPartition(MOVED, 0)

    def current() -> int:
        with model.lock:
            return model.partition(place.topic, place.partition).order[0]

    def ask() -> Mapping[Any, Any]:
        old = current()
        target = (1, 3) if old == 2 else (2, 3)
        answer = client.alter_reassignments({place: target}, deadline=DEADLINE_S, keep_factor=True)
        return {"outcome": _outcome(answer), "new": target[0], "old": old, "now": current()}

    return CheckedCall("alter reassignments", ask, judge_change)


def _outcome(answer: ItemChanged[Any]) -> str:
    [outcome] = [name for name in ("done", "refused", "lost") if getattr(answer, name)]
    return outcome


def judge_change(told: Mapping[Any, Any]) -> str:
    if told["outcome"] == "done" and told["now"] != told["new"]:
        return f"told as done, and is {told['now']}"
    if told["outcome"] == "refused" and told["now"] != told["old"]:
        return f"told as refused, and is {told['now']}"
    return ""

"""Questions to brokers, as coroutines on the thread of a wire's loop. Nothing here blocks or locks.

Two lanes, each with its own sockets: brokers answer the requests of one connection in order, so a question that is
forwarded to a controller that does not answer must not hold up what a broker can answer by itself.

``until`` is on the monotonic clock everywhere; every question ends by then on its own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from kafkadash.kafka import clock
from kafkadash.kafka.client import (
    AnswerOversized,
    ConnectFailed,
    Loop,
    Manager,
    Network,
    NodeConnection,
    NodeId,
    Promise,
    new_promise,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.failures import SLACK, explained, label, most_telling
from kafkadash.kafka.kafka_python import errors
from kafkadash.kafka.messages import ApiRanges, MetadataAnswer, Request, Response, brokers_only, metadata_request
from kafkadash.kafka.once import Once
from kafkadash.kafka.port import DeadlineExceeded, KafkaFailure, QuorumUnavailable, Unreachable

_BOOTSTRAP_STAGGER = 0.25  # seconds until the next bootstrap address is tried beside a silent one
_DISTRUST = 30.0  # seconds for which a broker that failed is asked last
_PAUSE = 0.05  # seconds between attempts while a broker throttles us (KIP-219)

R = TypeVar("R", bound=Response)


class Lane(Enum):
    BROKER = "answered by the broker that is asked"
    CONTROLLER = "forwarded to the active controller"


@dataclass(frozen=True, slots=True)
class Ask(Generic[R]):
    """A question; ``build`` makes the request from the versions a broker offers, and may raise NotSupported.

    With ``once`` it is a change: it goes out a single time, to a single broker, whatever comes of it. ``learns``: its
    answer is what others wait for to learn the brokers' addresses, so that it must not wait for them itself.
    """

    build: Callable[[ApiRanges], Request]
    lane: Lane = Lane.BROKER
    once: Once | None = None
    learns: bool = False


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """``sent_at`` and ``received_at`` are seconds since the epoch; received is its last byte, before decoding."""

    node: NodeId
    response: R
    sent_at: float
    received_at: float

    @property
    def taken_at(self) -> float:
        """When the broker looked, as near as can be told: it did so between the two, nobody knows at which moment."""
        return (self.sent_at + self.received_at) / 2

    @property
    def took(self) -> float:
        """In seconds."""
        return self.received_at - self.sent_at


class Asker:
    """Asks over two managers of connections that share a loop. All methods run on the loop's thread."""

    def __init__(
        self,
        loop: Loop,
        options: Mapping[str, object],
        bootstrap_servers: Sequence[str],
        networks: Sequence[Network] = (),
    ) -> None:
        self.lanes = {lane: Manager(loop, **options) for lane in Lane}
        for manager in self.lanes.values():
            manager.networks = networks
        self._loop = loop
        self._bootstrap_servers = bootstrap_servers
        self._refreshing: tuple[Promise, float] | None = None
        self._failed_at: dict[NodeId, float] = {}
        self._open: set[NodeConnection] = set()
        # Questions that wait for their answer, in the order in which a broker answers them.
        self._waiting: WeakKeyDictionary[NodeConnection, list[Promise]] = WeakKeyDictionary()

    def close(self) -> None:
        """Closes every connection; questions under way fail."""
        for conn in list(self._open):
            conn.close(errors.KafkaConnectionError("closed by us"))
        for manager in self.lanes.values():
            manager.close()

    async def any(self, ask: Ask[R], until: float, turn: int | None = None) -> Answer[R]:
        await self._know_brokers(until)
        manager = self.lanes[ask.lane]
        candidates = self._candidates(manager, turn)
        if ask.once is not None:
            return await self._one_only(candidates, ask, ask.once, until)
        stagger = (until - time.monotonic()) / 3
        return await self._first(candidates, ask, until, stagger)

    async def one(self, broker: int, ask: Ask[R], until: float) -> Answer[R]:
        await self._know_brokers(until)
        return await self._ask_node(broker, ask, until)

    async def each(self, asks: Sequence[tuple[int, Ask[R]]], until: float) -> list[Answer[R] | KafkaFailure]:
        await self._know_brokers(until)
        promises = [self._loop.call_soon_with_future(self._ask_node, node, ask, until) for node, ask in asks]
        return await _outcomes(promises)

    async def in_turn(self, asks: Sequence[tuple[int, Ask[R]]], until: float) -> list[Answer[R] | KafkaFailure]:
        return await _outcomes([self._loop.call_soon_with_future(self.any, ask, until, turn) for turn, ask in asks])

    async def bootstrap_each(self, ask: Ask[R], until: float) -> list[Answer[R] | KafkaFailure]:
        """Every bootstrap server for itself, and no broker that they may name."""
        nodes = self.lanes[ask.lane].bootstrap_nodes()
        return await _outcomes([self._loop.call_soon_with_future(self._ask_node, n, ask, until) for n in nodes])

    async def bootstrap_one(self, node: NodeId, ask: Ask[R], until: float) -> Answer[R]:
        """One of the nodes that answered ``bootstrap_each`` in the same lane."""
        return await self._ask_node(node, ask, until)

    async def controller(self, ask: Ask[R], until: float, deadline: float) -> Answer[R]:
        probe: Ask[MetadataAnswer] = Ask(lambda offered: metadata_request(offered, ()))
        probed = self._loop.call_soon_with_future(self.any, probe, until)
        try:
            return await self.any(ask, until)
        except DeadlineExceeded:
            if not (probed.is_done and probed.exception is None):
                raise
        raise QuorumUnavailable(KafkaErrorCode.CONTROLLERS_SILENT, seconds=round(deadline, 1))

    async def _know_brokers(self, until: float) -> None:
        if not self.lanes[Lane.BROKER].nodes():
            await self._refresh(until)

    async def _refresh(self, until: float) -> None:
        """Learns the brokers' present addresses. Callers at the same time share one question."""
        while True:
            if self._refreshing is None:
                promise = self._loop.call_soon_with_future(self._learn_brokers, until)
                self._refreshing = (promise, until)
                promise.add_both(lambda _: self._refreshed())
            shared, shared_until = self._refreshing
            try:
                # What is shared ends by itself; the extra time lets it say why, if it ends when we must.
                await self.lanes[Lane.BROKER].within(shared, until - time.monotonic() + 3 * SLACK)
                return
            except errors.KafkaTimeoutError:
                raise DeadlineExceeded(KafkaErrorCode.BOOTSTRAP_SILENT, servers=self._servers()) from None
            except KafkaFailure:
                if shared_until >= until:
                    raise

    def _refreshed(self) -> None:
        self._refreshing = None

    async def _learn_brokers(self, until: float) -> None:
        manager = self.lanes[Lane.BROKER]
        ask: Ask[MetadataAnswer] = Ask(lambda offered: metadata_request(offered, ()), learns=True)
        nodes = self._candidates(manager)
        stagger = min(_BOOTSTRAP_STAGGER, (until - time.monotonic()) / (2 * len(nodes)))
        answer = await self._first(nodes, ask, until, stagger)
        if not answer.response.brokers:
            raise Unreachable(KafkaErrorCode.NO_LIVE_BROKER, servers=self._servers())
        for lane in self.lanes.values():
            lane.cluster.update_metadata(brokers_only(answer.response))

    async def _first(self, nodes: Iterable[NodeId], ask: Ask[R], until: float, stagger: float) -> Answer[R]:
        """Asks one node after the other, the next as soon as one failed or was silent for ``stagger`` seconds."""
        waiting = list(nodes)
        failures: list[KafkaFailure] = []
        won = new_promise()
        asked = 0

        def ask_next() -> None:
            nonlocal asked
            if waiting and time.monotonic() < until and not won.is_done:
                asked += 1
                node = waiting.pop(0)
                promise = self._loop.call_soon_with_future(self._ask_node, node, ask, until)
                promise.add_both(settle)
                if waiting:
                    turn = asked
                    self._loop.call_later(stagger, lambda: give_up_waiting(node, turn))

        def give_up_waiting(node: NodeId, turn: int) -> None:
            """The node may still answer, and is trusted again when it does."""
            if asked == turn and not won.is_done:
                self._failed_at[node] = time.monotonic()
                ask_next()

        def settle(result: Answer[R] | BaseException) -> None:
            if won.is_done:
                return
            if isinstance(result, Answer):
                won.success(result)
                return
            if not isinstance(result, KafkaFailure):
                won.failure(result)
                return
            failures.append(result)
            if waiting and time.monotonic() < until:
                ask_next()
            elif len(failures) == asked:
                won.failure(most_telling(failures))

        ask_next()
        answer: Answer[R] = await won
        return answer

    async def _one_only(self, nodes: Sequence[NodeId], ask: Ask[R], once: Once, until: float) -> Answer[R]:
        """Sends to the first node that can be connected; nobody else is asked once the request may have left."""
        failures: list[KafkaFailure] = []
        for index, node in enumerate(nodes):
            now = time.monotonic()
            connect_by = now + (until - now) / (len(nodes) - index + 1)
            try:
                return await self._ask_node(node, ask, until, connect_by)
            except KafkaFailure as failure:
                if once.begun or not isinstance(failure, DeadlineExceeded | Unreachable):
                    raise
                failures.append(failure)
        raise (
            most_telling(failures) if failures else Unreachable(KafkaErrorCode.NO_LIVE_BROKER, servers=self._servers())
        )

    async def _ask_node(self, node: NodeId, ask: Ask[R], until: float, connect_by: float | None = None) -> Answer[R]:
        """One attempt, another where the connection was lost, and another where the broker has a new address.

        A broker that refuses a connection, or loses a second one, may have left: the cluster is asked where it is.

        A connection must be up at ``connect_by``. Raises KafkaFailure.
        """
        manager = self.lanes[ask.lane]
        if manager.address(node) is None and not ask.learns:
            await self._refresh(until)
        lost = moved = False
        while True:
            address = manager.address(node)
            if address is None:
                raise Unreachable(KafkaErrorCode.BROKER_NOT_LIVE, broker=node)
            try:
                answer = await self._exchange(manager, node, ask, until, connect_by or until)
            except KafkaFailure:
                raise
            except Exception as error:  # explained: it becomes the failure of this node
                failure = explained(error, label(node, address), until)
                self._failed_at[node] = time.monotonic()
                sent_once = ask.once is not None and ask.once.begun
                if sent_once or not isinstance(failure, Unreachable) or until - time.monotonic() < SLACK:
                    again = False
                elif isinstance(error, ConnectFailed) or (lost and isinstance(error, errors.KafkaConnectionError)):
                    again = not (moved or ask.learns) and await self._moved(manager, node, address, until)
                    moved = True
                else:
                    again = not lost
                    lost = True
                if not again:
                    raise failure from error
            else:
                self._failed_at.pop(node, None)
                return answer

    async def _moved(self, manager: Manager, node: NodeId, address: str, until: float) -> bool:
        """Whether the cluster now gives another address for a broker that could not be connected."""
        if isinstance(node, str):
            return False
        with suppress(KafkaFailure):  # the failure of the broker itself is the one to tell
            await self._refresh(until)
        return manager.address(node) not in (None, address)

    async def _exchange(
        self, manager: Manager, node: NodeId, ask: Ask[R], until: float, connect_by: float
    ) -> Answer[R]:
        while True:
            conn = manager.connection(node, connect_by - time.monotonic())
            self._track(conn)
            try:
                await manager.within(conn.init_future, connect_by - time.monotonic() + SLACK)
            except errors.KafkaTimeoutError:
                if conn.transport is None:
                    raise ConnectFailed("the connection was not accepted in time") from None
                raise
            request = ask.build(conn.broker_version_data.api_versions)
            if ask.once is not None:
                _begin(ask.once, conn, request, until)
            stamps: list[float] = []
            sent_at = clock.seconds()
            promise = conn.send_request(request, request_timeout_ms=(until - time.monotonic()) * 1000)
            del request  # encoded by now: one about thousands of partitions is not kept until its answer comes
            promise.add_callback(partial(_stamp, stamps, conn))
            oversized: list[bool] = []
            waiting = self._waiting.setdefault(conn, [])
            waiting.append(promise)
            promise.add_both(partial(_note_answer, waiting, promise, oversized))
            try:
                response: R = await manager.within(promise, until - time.monotonic() + SLACK)
            except errors.NodeNotReadyError:  # told before anything is sent
                if ask.once is not None:
                    ask.once.not_begun()
                if time.monotonic() + _PAUSE >= until:
                    raise errors.KafkaTimeoutError("the broker throttles this client") from None
                await self._loop.sleep(_PAUSE)
                continue
            except errors.InvalidReceiveError as error:
                if oversized:
                    raise AnswerOversized(str(error)) from error
                raise errors.KafkaConnectionError("the answer to another question was too large") from error
            return Answer(node, response, sent_at, max(sent_at, stamps[0]))

    def _track(self, conn: NodeConnection) -> None:
        if conn not in self._open:
            self._open.add(conn)
            conn.close_future.add_both(lambda _: self._open.discard(conn))

    def _candidates(self, manager: Manager, turn: int | None = None) -> list[NodeId]:
        """Whom to ask what any broker can answer: the brokers, then bootstrap servers at other addresses.

        At random, or with a ``turn`` always in the same order; those that failed lately come last.
        """
        brokers = sorted(manager.nodes())
        known = {manager.address(broker) for broker in brokers}
        others = [node for node in manager.bootstrap_nodes() if manager.address(node) not in known]
        if turn is None:
            random.shuffle(brokers)
            random.shuffle(others)
        elif brokers:
            first = turn % len(brokers)
            brokers = brokers[first:] + brokers[:first]
        return [*sorted(brokers, key=self._distrusted), *sorted(others, key=self._distrusted)]

    def _distrusted(self, node: NodeId) -> bool:
        failed_at = self._failed_at.get(node)
        return failed_at is not None and time.monotonic() - failed_at < _DISTRUST

    def _servers(self) -> str:
        return ", ".join(self._bootstrap_servers)


def _note_answer(waiting: list[Promise], promise: Promise, oversized: list[bool], result: object) -> None:
    """Mark the question whose answer is too large: the first of all that a connection fails at once."""
    if isinstance(result, errors.InvalidReceiveError) and waiting and waiting[0] is promise:
        oversized.append(True)
        waiting.clear()
    elif promise in waiting:
        waiting.remove(promise)


async def _outcomes(promises: Sequence[Promise]) -> list[Any]:
    """One answer or KafkaFailure for each promise, in order."""
    results: list[Any] = []
    for promise in promises:
        try:
            results.append(await promise)
        except KafkaFailure as failure:
            results.append(failure)
    return results


def _begin(once: Once, conn: NodeConnection, request: Request, until: float) -> None:
    """Notes that a change is about to leave. Raises where it certainly cannot: no connection, version or time."""
    request.API_VERSION = conn.broker_version_data.api_version(request)
    if not conn.connected:
        raise errors.KafkaConnectionError("closed before the request was sent")
    if time.monotonic() >= until or not once.begin():
        raise errors.KafkaTimeoutError("the time was over before the request was sent")


def _stamp(stamps: list[float], conn: NodeConnection, _: object) -> None:
    """Notes when the last bytes of this connection were read, in seconds since the epoch."""
    transport = conn.transport
    stamps.append(clock.seconds() - (time.monotonic() - transport.last_read if transport is not None else 0.0))

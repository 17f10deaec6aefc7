"""The wire core: a ``ClusterWire`` sends requests on one connection of this process, and every call returns in time.

A thread per wire drives the sockets; callers wait on an event of their own with their deadline. A wire whose thread
does not come back is given up: it takes no new calls, and ends when the calls in progress are over.

Requests are coroutines on that thread, and nothing in them blocks or locks. There are two lanes, each with its own
sockets: brokers answer the requests of one connection in order, so a request that is forwarded to a silent controller
must not delay requests that a broker can answer by itself. ``until`` is on the monotonic clock everywhere, and every
request ends by then on its own.

A ``FanOut`` asks many brokers many things, where the next request depends on earlier answers. Answers are handled one
after the other, in the caller's thread, as they arrive, so a silent broker delays no other part. A coordinator or
leader that moves meanwhile is looked up again after a pause; a broker that never answers is known only at the deadline.

A request that changes something is sent at most once (``AtMostOnce``), and its outcome is an answer, certainly not
sent, or unknown. Failures become one sentence about a node, and ``most_telling`` picks one of several.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import random
import re
import ssl
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from ipaddress import ip_network
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from kafkadash.core import clock
from kafkadash.core.messages import CodedMessage, join_messages
from kafkadash.kafka.api import (
    AnswerTooLarge,
    AuthenticationFailed,
    ClusterConnection,
    DeadlineExceeded,
    KafkaFailure,
    KafkaUnreachable,
    NotAuthorized,
    NotSupported,
    QuorumUnavailable,
    TokenUnavailable,
    wire_thread,
)
from kafkadash.kafka.connections import (
    MOST_ANSWER_BYTES,
    AnswerOversized,
    ConnectFailed,
    Network,
    NodeConnection,
    NodeId,
    TlsFailed,
    WireLoop,
    WireManager,
    WirePromise,
    client_options,
    new_loop,
    new_promise,
    quiet_client_logs,
    tls_reason,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import errors
from kafkadash.kafka.messages import ApiRanges, KafkaResponse, MetadataAnswer, Request, brokers_only, metadata_request
from kafkadash.kafka.tokens import OAUTHBEARER, TokenSource


class AtMostOnce:
    """Request that is sent at most once. The loop's thread begins it, the caller's thread gives it up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = False
        self._given_up = False

    @property
    def begun(self) -> bool:
        return self._begun

    def begin(self) -> bool:
        """Just before the first byte is written. False: its caller went away, so it must not be sent any more."""
        with self._lock:
            self._begun = not self._given_up
            return self._begun

    def not_begun(self) -> None:
        """Undo ``begin``: no byte was written."""
        with self._lock:
            self._begun = False

    def give_up(self) -> bool:
        """The caller waits no longer. Returns whether it may have left; if not, it never will."""
        with self._lock:
            self._given_up = True
            return self._begun


log = logging.getLogger(__name__)

SLACK = 0.03  # seconds: lets a connection's own time limit speak first, as it knows better what was waited for

# What is raised instead of other failures of the same call when several nodes were tried.
_MOST_TELLING = (
    AuthenticationFailed,
    TokenUnavailable,
    NotAuthorized,
    NotSupported,
    AnswerTooLarge,
    DeadlineExceeded,
    KafkaUnreachable,
)


_CLASS_NAME = re.compile(r"^\w+Error: ")  # kafka-python puts its own class names in front of Kafka's words


def label_node(node: NodeId, address: str | None) -> str:
    return f"Broker {node} ({address})" if isinstance(node, int) else f"The bootstrap server {address}"


def explain_error(error: Exception, who: str, until: float, tokens: TokenSource | None = None) -> KafkaFailure:
    """A library's error as one sentence about ``who``, for a question that had time until ``until`` (monotonic)."""
    cause = error.args[0] if error.args else "no reason was given"
    detail = _CLASS_NAME.sub("", str(cause)).rstrip(".")
    if tokens is not None and isinstance(error, errors.SaslAuthenticationFailedError):
        return AuthenticationFailed(KafkaErrorCode.TOKEN_REFUSED, who=who, claims=tokens.claims, detail=detail)
    if refused := _explain_refusal(error, cause, who, detail):
        return refused
    if isinstance(error, AnswerOversized):
        return AnswerTooLarge(KafkaErrorCode.ANSWER_TOO_LARGE, who=who, most=MOST_ANSWER_BYTES // 10**6)
    if isinstance(error, ConnectFailed):
        return KafkaUnreachable(KafkaErrorCode.NODE_NOT_CONNECTED, who=who, detail=detail)
    if isinstance(error, errors.UnsupportedVersionError):
        return NotSupported(KafkaErrorCode.NODE_TOO_OLD, who=who, detail=detail)
    if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError):
        if time.monotonic() < until - SLACK:
            return KafkaUnreachable(KafkaErrorCode.EARLIER_UNANSWERED, who=who)
        return DeadlineExceeded(KafkaErrorCode.NODE_TOO_SLOW, who=who)
    if isinstance(error, errors.KafkaProtocolError):
        return KafkaUnreachable(KafkaErrorCode.NOT_KAFKA, who=who)
    if isinstance(error, errors.KafkaConnectionError):
        return KafkaUnreachable(KafkaErrorCode.CLOSED_INSTEAD, who=who, detail=detail)
    if isinstance(error, errors.KafkaError):
        return KafkaUnreachable(KafkaErrorCode.NODE_NOT_ASKED, who=who, detail=detail)
    log.error("kafka.asking_crashed", exc_info=error)
    return KafkaUnreachable(KafkaErrorCode.ASKING_CRASHED, who=who)


def _explain_refusal(error: Exception, cause: object, who: str, detail: str) -> AuthenticationFailed | None:
    """Return the failure where TLS or SASL did not let us in, else None."""
    if isinstance(cause, ssl.SSLError):  # TLS 1.3: the broker's verdict on our certificate comes after the handshake
        return AuthenticationFailed(KafkaErrorCode.CLIENT_CERTIFICATE_REFUSED, who=who, detail=tls_reason(cause))
    if isinstance(error, TlsFailed):
        return AuthenticationFailed(KafkaErrorCode.HANDSHAKE_FAILED, who=who, detail=detail)
    if isinstance(error, errors.UnsupportedSaslMechanismError | errors.IllegalSaslStateError):
        return AuthenticationFailed(KafkaErrorCode.SASL_MECHANISM_REFUSED, who=who, detail=detail)
    if isinstance(error, errors.SaslAuthenticationFailedError | errors.AuthorizationError | ValueError | KeyError):
        return AuthenticationFailed(KafkaErrorCode.CREDENTIALS_REFUSED, who=who, detail=detail)
    return None


def most_telling(failures: Sequence[KafkaFailure]) -> KafkaFailure:
    """Return the most telling failure of a question that several nodes failed to answer."""
    for kind in _MOST_TELLING:
        same = [failure for failure in failures if isinstance(failure, kind)]
        if same:
            special = type(same[0]) if len({type(failure) for failure in same}) == 1 else kind
            return special(join_messages(failure.message for failure in same)) if len(same) > 1 else same[0]
    return failures[-1]


_BOOTSTRAP_STAGGER = 0.25  # seconds until the next bootstrap address is tried beside a silent one
_DISTRUST = 30.0  # seconds for which a broker that failed is asked last
_PAUSE = 0.05  # seconds between attempts while a broker throttles us (KIP-219)

R = TypeVar("R", bound=KafkaResponse)


class ConnectionPool(Enum):
    BROKER = "answered by the broker that is asked"
    CONTROLLER = "forwarded to the active controller"


@dataclass(frozen=True, slots=True)
class BrokerRequest(Generic[R]):
    """A question; ``build`` makes the request from the versions a broker offers, and may raise NotSupported.

    With ``once`` it is a change: it goes out a single time, to a single broker, whatever comes of it. ``learns``: its
    answer is what others wait for to learn the brokers' addresses, so that it must not wait for them itself.
    """

    build: Callable[[ApiRanges], Request]
    lane: ConnectionPool = ConnectionPool.BROKER
    once: AtMostOnce | None = None
    learns: bool = False


@dataclass(frozen=True, slots=True)
class BrokerAnswer(Generic[R]):
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


class RequestDispatcher:
    """Asks over two managers of connections that share a loop. All methods run on the loop's thread."""

    def __init__(
        self,
        loop: WireLoop,
        options: Mapping[str, object],
        bootstrap_servers: Sequence[str],
        networks: Sequence[Network] = (),
        tokens: TokenSource | None = None,
    ) -> None:
        self.lanes = {lane: WireManager(loop, **options) for lane in ConnectionPool}
        for manager in self.lanes.values():
            manager.networks = networks
        self._loop = loop
        self._closed = False
        self._tokens = tokens
        self._bootstrap_servers = bootstrap_servers
        self._refreshing: tuple[WirePromise, float] | None = None
        self._failed_at: dict[NodeId, float] = {}
        self._open: set[NodeConnection] = set()
        # Questions that wait for their answer, in the order in which a broker answers them.
        self._waiting: WeakKeyDictionary[NodeConnection, list[WirePromise]] = WeakKeyDictionary()

    def close(self) -> None:
        """Closes every connection; questions under way fail."""
        self._closed = True
        for conn in list(self._open):
            conn.close(errors.KafkaConnectionError("closed by kafkadash"))
        for manager in self.lanes.values():
            manager.close()

    async def any(self, ask: BrokerRequest[R], until: float, turn: int | None = None) -> BrokerAnswer[R]:
        await self._know_brokers(until)
        manager = self.lanes[ask.lane]
        candidates = self._candidates(manager, turn)
        if ask.once is not None:
            return await self._one_only(candidates, ask, ask.once, until)
        stagger = (until - time.monotonic()) / 3
        return await self._first(candidates, ask, until, stagger)

    async def one(self, broker: int, ask: BrokerRequest[R], until: float) -> BrokerAnswer[R]:
        await self._know_brokers(until)
        return await self._ask_node(broker, ask, until)

    async def each(
        self, asks: Sequence[tuple[int, BrokerRequest[R]]], until: float
    ) -> list[BrokerAnswer[R] | KafkaFailure]:
        await self._know_brokers(until)
        promises = [self._loop.call_soon_with_future(self._ask_node, node, ask, until) for node, ask in asks]
        return await _gather_outcomes(promises)

    async def in_turn(
        self, asks: Sequence[tuple[int, BrokerRequest[R]]], until: float
    ) -> list[BrokerAnswer[R] | KafkaFailure]:
        return await _gather_outcomes(
            [self._loop.call_soon_with_future(self.any, ask, until, turn) for turn, ask in asks]
        )

    async def bootstrap_each(self, ask: BrokerRequest[R], until: float) -> list[BrokerAnswer[R] | KafkaFailure]:
        """Every bootstrap server for itself, and no broker that they may name."""
        nodes = self.lanes[ask.lane].bootstrap_nodes()
        return await _gather_outcomes([self._loop.call_soon_with_future(self._ask_node, n, ask, until) for n in nodes])

    async def bootstrap_one(self, node: NodeId, ask: BrokerRequest[R], until: float) -> BrokerAnswer[R]:
        """Ask one of the nodes that answered ``bootstrap_each`` in the same lane."""
        return await self._ask_node(node, ask, until)

    async def controller(self, ask: BrokerRequest[R], until: float, deadline: float) -> BrokerAnswer[R]:
        probe: BrokerRequest[MetadataAnswer] = BrokerRequest(lambda offered: metadata_request(offered, ()))
        probed = self._loop.call_soon_with_future(self.any, probe, until)
        try:
            return await self.any(ask, until)
        except DeadlineExceeded:
            if not (probed.is_done and probed.exception is None):
                raise
        raise QuorumUnavailable(KafkaErrorCode.CONTROLLERS_SILENT, seconds=round(deadline, 1))

    async def _know_brokers(self, until: float) -> None:
        if not self.lanes[ConnectionPool.BROKER].nodes():
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
                await self.lanes[ConnectionPool.BROKER].within(shared, until - time.monotonic() + 3 * SLACK)
                return
            except errors.KafkaTimeoutError:
                raise DeadlineExceeded(KafkaErrorCode.BOOTSTRAP_SILENT, servers=self._servers()) from None
            except KafkaFailure:
                if shared_until >= until:
                    raise

    def _refreshed(self) -> None:
        self._refreshing = None

    async def _learn_brokers(self, until: float) -> None:
        manager = self.lanes[ConnectionPool.BROKER]
        ask: BrokerRequest[MetadataAnswer] = BrokerRequest(lambda offered: metadata_request(offered, ()), learns=True)
        nodes = self._candidates(manager)
        stagger = min(_BOOTSTRAP_STAGGER, (until - time.monotonic()) / (2 * len(nodes)))
        answer = await self._first(nodes, ask, until, stagger)
        if not answer.response.brokers:
            raise KafkaUnreachable(KafkaErrorCode.NO_LIVE_BROKER, servers=self._servers())
        for lane in self.lanes.values():
            lane.cluster.update_metadata(brokers_only(answer.response))

    async def _first(
        self, nodes: Iterable[NodeId], ask: BrokerRequest[R], until: float, stagger: float
    ) -> BrokerAnswer[R]:
        """Asks one node after the other, the next as soon as one failed or was silent for ``stagger`` seconds."""
        waiting = list(nodes)
        failures: list[KafkaFailure] = []
        won = new_promise()
        count = 0

        def ask_next() -> None:
            nonlocal count
            if waiting and time.monotonic() < until and not won.is_done:
                count += 1
                node = waiting.pop(0)
                promise = self._loop.call_soon_with_future(self._ask_node, node, ask, until)
                promise.add_both(settle)
                if waiting:
                    turn = count
                    self._loop.call_later(stagger, lambda: give_up_waiting(node, turn))

        def give_up_waiting(node: NodeId, turn: int) -> None:
            """The node may still answer, and is trusted again when it does."""
            if count == turn and not won.is_done:
                self._failed_at[node] = time.monotonic()
                ask_next()

        def settle(result: BrokerAnswer[R] | BaseException) -> None:
            if won.is_done:
                return
            if isinstance(result, BrokerAnswer):
                won.success(result)
                return
            if not isinstance(result, KafkaFailure):
                won.failure(result)
                return
            failures.append(result)
            if waiting and time.monotonic() < until:
                ask_next()
            elif len(failures) == count:
                won.failure(most_telling(failures))

        ask_next()
        answer: BrokerAnswer[R] = await won
        return answer

    async def _one_only(
        self, nodes: Sequence[NodeId], ask: BrokerRequest[R], once: AtMostOnce, until: float
    ) -> BrokerAnswer[R]:
        """Sends to the first node that can be connected; nobody else is asked once the request may have left."""
        failures: list[KafkaFailure] = []
        for index, node in enumerate(nodes):
            now = time.monotonic()
            connect_by = now + (until - now) / (len(nodes) - index + 1)
            try:
                return await self._ask_node(node, ask, until, connect_by)
            except KafkaFailure as failure:
                if once.begun or not isinstance(failure, DeadlineExceeded | KafkaUnreachable):
                    raise
                failures.append(failure)
        if failures:
            raise most_telling(failures)
        raise KafkaUnreachable(KafkaErrorCode.NO_LIVE_BROKER, servers=self._servers())

    async def _ask_node(
        self, node: NodeId, ask: BrokerRequest[R], until: float, connect_by: float | None = None
    ) -> BrokerAnswer[R]:
        """Ask the node, once more where the connection was lost, and once more where the broker has a new address.

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
                raise KafkaUnreachable(KafkaErrorCode.BROKER_NOT_LIVE, broker=node)
            try:
                answer = await self._exchange(manager, node, ask, until, connect_by or until)
            except KafkaFailure:
                raise
            except Exception as error:  # explained: it becomes the failure of this node
                if self._closed:
                    raise KafkaUnreachable(KafkaErrorCode.CONNECTION_RENEWED) from error
                failure = explain_error(error, label_node(node, address), until, self._tokens)
                self._failed_at[node] = time.monotonic()
                sent_once = ask.once is not None and ask.once.begun
                if sent_once or not isinstance(failure, KafkaUnreachable) or until - time.monotonic() < SLACK:
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

    async def _moved(self, manager: WireManager, node: NodeId, address: str, until: float) -> bool:
        """Return whether the cluster now gives another address for a broker that could not be connected."""
        if isinstance(node, str):
            return False
        with suppress(KafkaFailure):  # the failure of the broker itself is the one to tell
            await self._refresh(until)
        return manager.address(node) not in (None, address)

    async def _exchange(
        self, manager: WireManager, node: NodeId, ask: BrokerRequest[R], until: float, connect_by: float
    ) -> BrokerAnswer[R]:
        while True:
            if self._tokens is not None and manager.is_connected(node):
                self._tokens.renew_if_due()
            elif self._tokens is not None:
                await self._tokens.wait_for_token(manager.within, connect_by)
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
            promise.add_callback(partial(_note_read_time, stamps, conn))
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
                raise errors.KafkaConnectionError("the response to another request was too large") from error
            return BrokerAnswer(node, response, sent_at, max(sent_at, stamps[0]))

    def _track(self, conn: NodeConnection) -> None:
        if conn not in self._open:
            self._open.add(conn)
            conn.close_future.add_both(lambda _: self._open.discard(conn))

    def _candidates(self, manager: WireManager, turn: int | None = None) -> list[NodeId]:
        """Return the nodes for what any broker can answer: the brokers, then bootstrap servers at other addresses.

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


def _note_answer(waiting: list[WirePromise], promise: WirePromise, oversized: list[bool], result: object) -> None:
    """Mark the question whose answer is too large: the first of all that a connection fails at once."""
    if isinstance(result, errors.InvalidReceiveError) and waiting and waiting[0] is promise:
        oversized.append(True)
        waiting.clear()
    elif promise in waiting:
        waiting.remove(promise)


async def _gather_outcomes(promises: Sequence[WirePromise]) -> list[Any]:
    """Return an answer or KafkaFailure for each promise, in order."""
    results: list[Any] = []
    for promise in promises:
        try:
            results.append(await promise)
        except KafkaFailure as failure:
            results.append(failure)
    return results


def _begin(once: AtMostOnce, conn: NodeConnection, request: Request, until: float) -> None:
    """Notes that a change is about to leave. Raises where it certainly cannot: no connection, version or time."""
    request.API_VERSION = conn.broker_version_data.api_version(request)
    if not conn.connected:
        raise errors.KafkaConnectionError("closed before the request was sent")
    if time.monotonic() >= until or not once.begin():
        raise errors.KafkaTimeoutError("timed out before the request was sent")


def _note_read_time(stamps: list[float], conn: NodeConnection, _: object) -> None:
    """Notes when the last bytes of this connection were read, in seconds since the epoch."""
    transport = conn.transport
    stamps.append(clock.seconds() - (time.monotonic() - transport.last_read if transport is not None else 0.0))


GRACE = 0.25  # seconds beyond a deadline after which the loop's thread itself is considered stuck
T = TypeVar("T")


class WireClosed(Exception):
    """The call was not begun, because the wire takes no more calls: ask a new one."""


class ClusterWire:
    """See the module's text. Thread-safe; not to be used in a forked child.

    Raises what ``client_options`` raises.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        options = dict(client_options(connection))
        quiet_client_logs(connection.security.sasl_password, connection.security.key_pem)
        self.pid = os.getpid()
        self._key = connection.key
        self._loop: WireLoop = new_loop(connection.client_id)
        networks = [ip_network(text) for text in connection.networks]
        tokens = None
        if options.get("sasl_mechanism") == OAUTHBEARER:
            tokens = options["sasl_oauth_token_provider"] = TokenSource(connection, self._loop)
        self._asker = RequestDispatcher(self._loop, options, connection.bootstrap_servers, networks, tokens)
        self._lock = threading.Lock()
        self._calls: set[_WireCall[Any] | FanOutCall] = set()
        self._accepting = True
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._drive, name=wire_thread(connection.key), daemon=True)
        self._thread.start()

    @property
    def usable(self) -> bool:
        return self._accepting and self.pid == os.getpid()

    def ask_any(self, ask: BrokerRequest[R], *, deadline: float) -> BrokerAnswer[R]:
        """The first answer from whichever broker gives one; a silent broker is not waited for alone."""
        return self._call(lambda until: self._asker.any(ask, until), deadline)

    def ask_controller(self, ask: BrokerRequest[R], *, deadline: float) -> BrokerAnswer[R]:
        """Like ``ask_any`` for what brokers forward to the active controller.

        Raises QuorumUnavailable where the brokers answer by themselves, but none brings an answer of a controller.
        """
        return self._call(lambda until: self._asker.controller(ask, until, deadline), deadline)

    def ask_each(
        self, asks: Sequence[tuple[int, BrokerRequest[R]]], *, deadline: float
    ) -> list[BrokerAnswer[R] | KafkaFailure]:
        """Return a result for each (broker, question), in order; the failure of a broker is its result.

        Raises KafkaFailure only where no bootstrap server answers at all.
        """
        return self._call(lambda until: self._asker.each(asks, until), deadline)

    def ask_in_turn(
        self, asks: Sequence[tuple[int, BrokerRequest[R]]], *, deadline: float
    ) -> list[BrokerAnswer[R] | KafkaFailure]:
        """Like ``ask_any`` for each (turn, question), all at the same time; one result for each, in order.

        The same turn goes to the same broker first, as long as the cluster has the same brokers.
        """
        return self._call(lambda until: self._asker.in_turn(asks, until), deadline)

    def ask_each_bootstrap(self, ask: BrokerRequest[R], *, deadline: float) -> list[BrokerAnswer[R] | KafkaFailure]:
        """Every bootstrap server, in order: for listeners that know no Metadata, as those of controllers."""
        return self._call(lambda until: self._asker.bootstrap_each(ask, until), deadline)

    def ask_bootstrap(self, node: NodeId, ask: BrokerRequest[R], *, deadline: float) -> BrokerAnswer[R]:
        """The bootstrap server that answered ``ask_each_bootstrap`` in the same lane as this node."""
        return self._call(lambda until: self._asker.bootstrap_one(node, ask, until), deadline)

    @contextmanager
    def conversation(self, *, deadline: float) -> Iterator[FanOutCall]:
        """Open a call whose later questions follow from earlier answers. All of it is over when the block ends."""
        conversation = FanOutCall(self, time.monotonic() + deadline)
        with self._lock:
            if not self._accepting:
                raise WireClosed
            self._calls.add(conversation)
        try:
            yield conversation
        finally:
            self._leave(conversation)

    def retire(self) -> None:
        """No new calls; closes as soon as the calls under way are over, which their deadlines guarantee."""
        with self._lock:
            self._accepting = False
            idle = not self._calls
        if idle:
            self._stop()

    def close(self) -> None:
        """Ends at once: calls under way fail with Unreachable."""
        self._accepting = False
        self._stop()

    def join(self, timeout: float) -> bool:
        """Waits for the thread after ``retire`` or ``close``; True if it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # ---- callers' threads

    def _call(self, question: Callable[[float], Coroutine[Any, Any, T]], deadline: float) -> T:
        call = _WireCall[T]()
        until = time.monotonic() + deadline

        async def answer() -> None:
            try:
                call.succeed(await question(until))
            except Exception as error:  # noqa: BLE001  (raised again in the caller's thread)
                call.fail(error)

        self._enter(call, answer)
        try:
            if not call.done.wait(deadline + GRACE):
                self.retire()
                raise DeadlineExceeded(KafkaErrorCode.CONNECTION_HUNG, seconds=deadline)
            return call.outcome()
        finally:
            self._leave(call)

    def _enter(self, call: _WireCall[Any], task: Callable[[], object]) -> None:
        with self._lock:
            if not self._accepting:
                raise WireClosed
            self._calls.add(call)
            self._loop.call_soon_threadsafe(task)

    def _ask_on(self, conversation: FanOutCall, task: Callable[[], object]) -> None:
        with self._lock:
            if conversation.error is None:  # else the loop is closed, and the conversation says so
                self._loop.call_soon_threadsafe(task)

    def _leave(self, call: _WireCall[Any] | FanOutCall) -> None:
        with self._lock:
            self._calls.discard(call)
            last = not self._accepting and not self._calls
        if last:
            self._stop()

    def _stop(self) -> None:
        self._stopping.set()
        self._loop.wakeup()

    # ---- the loop's thread

    def _drive(self) -> None:
        try:
            while not self._stopping.is_set():
                self._loop.poll()
        except Exception:
            log.exception("kafka.connection_thread_ended: %s", self._key)
        finally:
            self._shut_down()

    def _shut_down(self) -> None:
        """The loop is closed under the lock, so that no caller schedules anything on a closed loop."""
        self._asker.close()
        with self._lock:
            self._accepting = False
            self._loop.close()
            for call in self._calls:
                call.fail(KafkaUnreachable(KafkaErrorCode.CLOSED_WHILE_WAITING))


class FanOutCall:
    """Questions of one caller, and their answers in the order in which they arrive. For one thread.

    ``until`` is on the monotonic clock: every question ends by then.
    """

    def __init__(self, wire: ClusterWire, until: float) -> None:
        self.until = until
        self.error: Exception | None = None
        self._wire = wire
        self._arrived: SimpleQueue[tuple[int, BrokerAnswer[Any] | Exception]] = SimpleQueue()

    def ask(self, number: int, broker: int | None, ask: BrokerRequest[R]) -> None:
        """Ask a broker, or any (None); the answer or failure arrives under this number."""

        async def answer() -> None:
            asker = self._wire._asker  # noqa: SLF001  (a part of the wire, on the loop's thread)
            outcome: BrokerAnswer[R] | Exception
            try:
                if broker is None:
                    outcome = await asker.any(ask, self.until)
                else:
                    outcome = await asker.one(broker, ask, self.until)
            except Exception as error:  # noqa: BLE001  (told or raised again in the caller's thread)
                outcome = error
            self._arrived.put((number, outcome))

        self._wire._ask_on(self, answer)  # noqa: SLF001

    def next(self, timeout: float) -> tuple[int, BrokerAnswer[Any] | KafkaFailure] | None:
        """Return the next number and its outcome, or None. Raises Unreachable when the wire was closed."""
        try:
            number, outcome = self._arrived.get(timeout=max(0.0, timeout))
        except Empty:
            return None
        if self.error is not None:
            raise self.error
        if isinstance(outcome, BrokerAnswer | KafkaFailure):
            return number, outcome
        raise outcome

    def give_up(self) -> None:
        """The loop's thread does not come back: nobody else shall wait for it."""
        self._wire.retire()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._arrived.put((-1, error))  # wakes who waits


class _WireCall(Generic[T]):
    """Pending result of one waiting caller."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self._value: list[T] = []
        self._error: BaseException | None = None

    def succeed(self, value: T) -> None:
        if not self.done.is_set():
            self._value.append(value)
            self.done.set()

    def fail(self, error: Exception) -> None:
        if not self.done.is_set():
            self._error = error
            self.done.set()

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value[0]


Then = Callable[[BrokerAnswer[R] | KafkaFailure], None]

# Questions to one broker at a time: it answers them in order anyway, what they hold stays small, and beyond 1,000 on a
# connection kafka-python takes no more.
WINDOW = 8
PAUSE = 0.2  # seconds until what has moved is looked for again
# Coordinators and leaders move within seconds, or not before a dead broker's session ends: whoever waits longer
# makes what the others answered old.
PATIENCE = 5.0  # seconds, at most half of the deadline


class FanOut:
    """See the module's text. ``ask`` and ``later`` are for the callbacks as well; ``run`` is called once."""

    def __init__(self, conversation: FanOutCall) -> None:
        self._conversation = conversation
        began = time.monotonic()
        self._deadline = conversation.until - began
        self._patience_until = began + min(PATIENCE, self._deadline / 2)
        self._numbers = itertools.count()
        self._waiting: dict[int | None, deque[tuple[BrokerRequest[Any], Then[Any]]]] = defaultdict(deque)
        self._asked: dict[int, tuple[int | None, Then[Any]]] = {}
        self._under_way: dict[int | None, int] = defaultdict(int)
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._answered = False
        self._failures: list[KafkaFailure] = []

    def left(self) -> float:
        """Seconds."""
        return max(0.0, self._conversation.until - time.monotonic())

    def ask(self, broker: int | None, ask: BrokerRequest[R], then: Then[R]) -> None:
        """Asks a broker, or any (None); ``then`` gets its answer, or why there is none."""
        self._waiting[broker].append((ask, then))

    def later(self, work: Callable[[], None]) -> bool:
        """Does ``work`` after a pause. False, and it is not done, when the call has no patience left for that."""
        at = time.monotonic() + PAUSE
        if at > self._patience_until:
            return False
        heapq.heappush(self._timers, (at, next(self._numbers), work))
        return True

    def run(self) -> None:
        """Until everything is answered or failed. Raises a KafkaFailure when nothing at all was answered."""
        while self._asked or self._timers or any(self._waiting.values()):
            while self._timers and self._timers[0][0] <= time.monotonic():
                heapq.heappop(self._timers)[2]()
            self._send()
            self._wait()
        if self._failures and not self._answered:
            raise most_telling(self._failures)

    def _send(self) -> None:
        for broker, questions in list(self._waiting.items()):
            while questions and (self._under_way[broker] < WINDOW or not self.left()):
                ask, then = questions.popleft()
                if not self.left():
                    self._tell(then, DeadlineExceeded(KafkaErrorCode.TURN_TOO_LATE))
                    continue
                number = next(self._numbers)
                self._asked[number] = broker, then
                self._under_way[broker] += 1
                self._conversation.ask(number, broker, ask)

    def _wait(self) -> None:
        """For the next answer, or until something is to be done."""
        hung_at = self._conversation.until + GRACE
        wake_at = self._timers[0][0] if self._timers else hung_at
        if not self._asked and not self._timers:
            return
        arrived = self._conversation.next(min(wake_at, hung_at) - time.monotonic())
        if arrived is not None:
            number, outcome = arrived
            broker, then = self._asked.pop(number)
            self._under_way[broker] -= 1
            self._tell(then, outcome)
        elif self._asked and time.monotonic() >= hung_at:
            self._conversation.give_up()
            asked, self._asked = self._asked, {}
            for _, then in asked.values():
                self._tell(then, DeadlineExceeded(KafkaErrorCode.CONNECTION_HUNG, seconds=round(self._deadline, 1)))

    def _tell(self, then: Then[Any], outcome: BrokerAnswer[Any] | KafkaFailure) -> None:
        if isinstance(outcome, KafkaFailure):
            self._failures.append(outcome)
        else:
            self._answered = True
        then(outcome)


Told = list[BrokerAnswer[R] | KafkaFailure]
WithWire = Callable[[Callable[[ClusterWire], Told[R]]], Told[R]]


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """No answer came to a request that may have left: the change may be done, or may still be. ``why`` tells it."""

    why: CodedMessage


def send_once(ask: BrokerRequest[R], question: Callable[[], BrokerAnswer[R]]) -> BrokerAnswer[R] | UnknownOutcome:
    """The answer to a change. Raises KafkaFailure only where it certainly was not and will not be sent."""
    assert ask.once is not None
    try:
        return question()
    except KafkaFailure as failure:
        if ask.once.give_up():
            return UnknownOutcome(failure.message)
        raise


def send_each_once(
    asks: Sequence[tuple[int, BrokerRequest[R]]], with_wire: WithWire[R], deadline: float
) -> list[BrokerAnswer[R] | UnknownOutcome | KafkaFailure]:
    """Each change to its own broker, all at the same time; a KafkaFailure where it certainly was not sent."""
    results: Sequence[BrokerAnswer[R] | KafkaFailure]
    try:
        results = with_wire(lambda wire: wire.ask_each(asks, deadline=deadline))
    except KafkaFailure as failure:
        results = [failure] * len(asks)
    found: list[BrokerAnswer[R] | UnknownOutcome | KafkaFailure] = []
    for (_, ask), result in zip(asks, results, strict=True):
        assert ask.once is not None
        if isinstance(result, KafkaFailure) and ask.once.give_up():
            found.append(UnknownOutcome(result.message))
        else:
            found.append(result)
    return found

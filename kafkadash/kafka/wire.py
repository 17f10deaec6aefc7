"""The wire core: one ``Wire`` serves one connection of one process, and every call on it comes back in time.

A thread of its own drives the sockets; callers wait on an event of their own with their deadline. A wire whose thread
does not come back by itself is given up: it takes no new calls, and ends when the ones under way are over.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from kafkadash.kafka.asking import Answer, Ask, Asker
from kafkadash.kafka.client import Loop, NodeId, client_options, new_loop
from kafkadash.kafka.client_logs import quiet_client_logs
from kafkadash.kafka.connect import wire_thread
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.messages import Response
from kafkadash.kafka.port import DeadlineExceeded, KafkaFailure, Unreachable

GRACE = 0.25  # seconds beyond a deadline after which the loop's thread itself is considered stuck

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Response)
T = TypeVar("T")


class WireClosed(Exception):
    """The call was not begun, because the wire takes no more calls: ask a new one."""


class Wire:
    """See the module's text. Thread-safe; not to be used in a forked child.

    Raises what ``client_options`` raises.
    """

    def __init__(self, connection: Connection) -> None:
        options = client_options(connection)
        quiet_client_logs(connection.security.sasl_password, connection.security.key_pem)
        self.pid = os.getpid()
        self._key = connection.key
        self._loop: Loop = new_loop(connection.client_id)
        networks = [ip_network(text) for text in connection.networks]
        self._asker = Asker(self._loop, options, connection.bootstrap_servers, networks)
        self._lock = threading.Lock()
        self._calls: set[_Call[Any] | Conversation] = set()
        self._accepting = True
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._drive, name=wire_thread(connection.key), daemon=True)
        self._thread.start()

    @property
    def usable(self) -> bool:
        return self._accepting and self.pid == os.getpid()

    def ask_any(self, ask: Ask[R], *, deadline: float) -> Answer[R]:
        """The first answer from whichever broker gives one; a silent broker is not waited for alone."""
        return self._call(lambda until: self._asker.any(ask, until), deadline)

    def ask_controller(self, ask: Ask[R], *, deadline: float) -> Answer[R]:
        """Like ``ask_any`` for what brokers forward to the active controller.

        Raises QuorumUnavailable where the brokers answer by themselves, but none brings an answer of a controller.
        """
        return self._call(lambda until: self._asker.controller(ask, until, deadline), deadline)

    def ask_each(self, asks: Sequence[tuple[int, Ask[R]]], *, deadline: float) -> list[Answer[R] | KafkaFailure]:
        """One result for each (broker, question), in order; what fails for one broker is its result.

        Raises KafkaFailure only where no bootstrap server answers at all.
        """
        return self._call(lambda until: self._asker.each(asks, until), deadline)

    def ask_in_turn(self, asks: Sequence[tuple[int, Ask[R]]], *, deadline: float) -> list[Answer[R] | KafkaFailure]:
        """Like ``ask_any`` for each (turn, question), all at the same time; one result for each, in order.

        The same turn goes to the same broker first, as long as the cluster has the same brokers.
        """
        return self._call(lambda until: self._asker.in_turn(asks, until), deadline)

    def ask_each_bootstrap(self, ask: Ask[R], *, deadline: float) -> list[Answer[R] | KafkaFailure]:
        """Every bootstrap server, in order: for listeners that know no Metadata, as those of controllers."""
        return self._call(lambda until: self._asker.bootstrap_each(ask, until), deadline)

    def ask_bootstrap(self, node: NodeId, ask: Ask[R], *, deadline: float) -> Answer[R]:
        """The bootstrap server that answered ``ask_each_bootstrap`` in the same lane as this node."""
        return self._call(lambda until: self._asker.bootstrap_one(node, ask, until), deadline)

    @contextmanager
    def conversation(self, *, deadline: float) -> Iterator[Conversation]:
        """One call whose later questions follow from earlier answers. All of it is over when the block ends."""
        conversation = Conversation(self, time.monotonic() + deadline)
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
        call = _Call[T]()
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

    def _enter(self, call: _Call[Any], task: Callable[[], object]) -> None:
        with self._lock:
            if not self._accepting:
                raise WireClosed
            self._calls.add(call)
            self._loop.call_soon_threadsafe(task)

    def _ask_on(self, conversation: Conversation, task: Callable[[], object]) -> None:
        with self._lock:
            if conversation.error is None:  # else the loop is closed, and the conversation says so
                self._loop.call_soon_threadsafe(task)

    def _leave(self, call: _Call[Any] | Conversation) -> None:
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
                call.fail(Unreachable(KafkaErrorCode.CLOSED_WHILE_WAITING))


class Conversation:
    """Questions of one caller, and their answers in the order in which they arrive. For one thread.

    ``until`` is on the monotonic clock: every question ends by then.
    """

    def __init__(self, wire: Wire, until: float) -> None:
        self.until = until
        self.error: Exception | None = None
        self._wire = wire
        self._arrived: SimpleQueue[tuple[int, Answer[Any] | Exception]] = SimpleQueue()

    def ask(self, number: int, broker: int | None, ask: Ask[R]) -> None:
        """Of a broker, or of any (None); what comes of it arrives under this number."""

        async def answer() -> None:
            asker = self._wire._asker  # noqa: SLF001  (a part of the wire, on the loop's thread)
            outcome: Answer[R] | Exception
            try:
                if broker is None:
                    outcome = await asker.any(ask, self.until)
                else:
                    outcome = await asker.one(broker, ask, self.until)
            except Exception as error:  # noqa: BLE001  (told or raised again in the caller's thread)
                outcome = error
            self._arrived.put((number, outcome))

        self._wire._ask_on(self, answer)  # noqa: SLF001

    def next(self, timeout: float) -> tuple[int, Answer[Any] | KafkaFailure] | None:
        """What arrives next, or None. Raises Unreachable when the wire was closed."""
        try:
            number, outcome = self._arrived.get(timeout=max(0.0, timeout))
        except Empty:
            return None
        if self.error is not None:
            raise self.error
        if isinstance(outcome, Answer | KafkaFailure):
            return number, outcome
        raise outcome

    def give_up(self) -> None:
        """The loop's thread does not come back: nobody else shall wait for it."""
        self._wire.retire()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._arrived.put((-1, error))  # wakes who waits


class _Call(Generic[T]):
    """One waiting caller."""

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

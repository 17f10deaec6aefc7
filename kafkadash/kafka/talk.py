"""A call that asks many brokers many things, where what is asked next depends on what was answered.

Answers are dealt with one after the other, in the caller's thread, as they arrive: a broker that is silent holds up
nobody else's part. What moves meanwhile (a coordinator, a leader) is looked for again after a pause, for as long as the
call has patience; a broker that never answers is known only when the deadline is over.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, TypeVar

from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.failures import most_telling
from kafkadash.kafka.messages import Response
from kafkadash.kafka.port import DeadlineExceeded, KafkaFailure
from kafkadash.kafka.wire import GRACE, Conversation

R = TypeVar("R", bound=Response)
Then = Callable[[Answer[R] | KafkaFailure], None]

# Questions to one broker at a time: it answers them in order anyway, what they hold stays small, and beyond 1,000 on a
# connection kafka-python takes no more.
WINDOW = 8
PAUSE = 0.2  # seconds until what has moved is looked for again
# Coordinators and leaders move within seconds, or not before a dead broker's session ends: whoever waits longer
# makes what the others answered old.
PATIENCE = 5.0  # seconds, at most half of the deadline


class Talk:
    """See the module's text. ``ask`` and ``later`` are for the callbacks as well; ``run`` is called once."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        began = time.monotonic()
        self._deadline = conversation.until - began
        self._patience_until = began + min(PATIENCE, self._deadline / 2)
        self._numbers = itertools.count()
        self._waiting: dict[int | None, deque[tuple[Ask[Any], Then[Any]]]] = defaultdict(deque)
        self._asked: dict[int, tuple[int | None, Then[Any]]] = {}
        self._under_way: dict[int | None, int] = defaultdict(int)
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._answered = False
        self._failures: list[KafkaFailure] = []

    def left(self) -> float:
        """Seconds."""
        return max(0.0, self._conversation.until - time.monotonic())

    def ask(self, broker: int | None, ask: Ask[R], then: Then[R]) -> None:
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

    def _tell(self, then: Then[Any], outcome: Answer[Any] | KafkaFailure) -> None:
        if isinstance(outcome, KafkaFailure):
            self._failures.append(outcome)
        else:
            self._answered = True
        then(outcome)

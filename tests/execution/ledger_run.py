"""A run that sets and clears throttles step by step, with what its caller would store; processes may die in between.

Configs of a cluster in memory, with Kafka's operations on them, and what may become of a request to it.

APPEND and SUBTRACT as in org.apache.kafka.controller.ConfigurationControlManager; a list that loses its last entry
stays set to ''. Shown as DescribeConfigs shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from kafkadash.core.messages import as_message, coded, message_reason
from kafkadash.execution.engine.reasons import ThrottleNotRead
from kafkadash.execution.engine.step import Action, Pair, StepThrottles, ThrottledPairs, plan_throttle_changes
from kafkadash.execution.engine.throttle_ledger import LedgerEntry, ThrottlePlace
from kafkadash.execution.models import Execution
from kafkadash.execution.worker.throttle_ledger import RunLedger
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigOrigin,
    ConfigResource,
    ConfigResourceType,
    ItemChanged,
    ItemError,
    KafkaUnreachable,
    ResourceConfigs,
)
from kafkadash.kafka.throttles import EVERY_REPLICA, FOLLOWER_LIST, LEADER_LIST, LISTS, RATES
from kafkadash.planning.errors import ReassignmentErrorCode


class Fate(Enum):
    """What becomes of a request."""

    DONE = "done"
    REFUSED = "refused"
    ANSWER_LOST = "done, and its answer lost"
    LOST = "lost on its way"
    LATE = "its answer lost, and done later"
    NOT_SENT = "the cluster is unreachable"


@dataclass
class ConfigStore:
    """What is set: (resource, key) → value. ``away`` are brokers that do not answer, ``gone`` topics that are not.

    ``shown`` is what brokers show that have not heard of the newest changes yet; None: all of it.
    """

    values: dict[tuple[ConfigResource, str], str] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    fate: Fate = Fate.DONE
    late: list[Sequence[ConfigChange]] = field(default_factory=list)
    shown: dict[tuple[ConfigResource, str], str] | None = None
    reads: int = 0
    calls: list[Sequence[ConfigChange]] = field(default_factory=list)

    def describe_configs(
        self, resources: Collection[ConfigResource], *, deadline: float, keys: Collection[str] | None = None
    ) -> ResourceConfigs:
        self.reads += len(resources)
        found, errors = {}, {}
        for resource in resources:
            if self._away(resource):
                errors[resource] = ItemError(as_message(f"{resource} does not answer."))
            elif resource.type is ConfigResourceType.TOPIC and resource.name in self.gone:
                errors[resource] = ItemError(as_message("There is no such topic."), 3, "UNKNOWN_TOPIC_OR_PARTITION")
            else:
                found[resource] = {entry.name: entry for entry in self._entries(resource)}
        return ResourceConfigs(found, errors, 0.0)

    def alter_configs(self, changes: Sequence[ConfigChange], *, deadline: float) -> ItemChanged[ConfigResource]:
        named = [(change.resource, change.key) for change in changes]
        assert len(set(named)) == len(named), "the same key twice in one request: INVALID_REQUEST 42"
        if self.fate is Fate.NOT_SENT:
            raise KafkaUnreachable(as_message("No broker accepted a connection."))
        self.calls.append(changes)
        resources = {change.resource for change in changes}
        if self.fate is Fate.LATE:
            self.late.append(changes)
        if self.fate in (Fate.LATE, Fate.LOST, Fate.ANSWER_LOST):
            if self.fate is Fate.ANSWER_LOST:
                self._apply(changes)
            return ItemChanged(lost={resource: ItemError(as_message("No answer.")) for resource in resources})
        if self.fate is Fate.REFUSED:
            return ItemChanged(
                refused={resource: ItemError(as_message("Not authorized."), 31) for resource in resources}
            )
        refused = self._apply(changes)
        return ItemChanged(done=frozenset(resources - refused.keys()), refused=refused)

    def arrive(self) -> None:
        """Late requests reach the cluster."""
        late, self.late = self.late, []
        for late_changes in late:
            self._apply(late_changes)

    def _apply(self, changes: Iterable[ConfigChange]) -> dict[ConfigResource, ItemError]:
        refused: dict[ConfigResource, ItemError] = {}
        for resource in {change.resource: None for change in changes}:
            own = [change for change in changes if change.resource == resource]
            if self._away(resource):
                refused[resource] = ItemError(as_message(f"{resource} does not answer."))
            elif resource.type is ConfigResourceType.TOPIC and resource.name in self.gone:
                refused[resource] = ItemError(as_message("There is no such topic."), 3)
            elif any(self._forbidden(change) for change in own):
                refused[resource] = ItemError(as_message("INVALID_CONFIG"), 40)
            else:
                for change in own:
                    self._change(change)
        return refused

    def _forbidden(self, change: ConfigChange) -> bool:
        return change.operation is ConfigOperation.APPEND and self._held(change) == [EVERY_REPLICA]

    def _change(self, change: ConfigChange) -> None:
        place = change.resource, change.key
        if change.operation is ConfigOperation.DELETE:
            self.values.pop(place, None)
            return
        assert change.value
        if change.operation is ConfigOperation.SET:
            self.values[place] = change.value
            return
        given, held = change.value.split(","), self._held(change)
        if change.operation is ConfigOperation.APPEND:
            held += [part for part in given if part not in held]
        else:
            held = [part for part in held if part not in given]
        self.values[place] = ",".join(held)

    def _held(self, change: ConfigChange) -> list[str]:
        return [part for part in self.values.get((change.resource, change.key), "").split(",") if part]

    def _away(self, resource: ConfigResource) -> bool:
        return resource.type is ConfigResourceType.BROKER and bool(resource.name) and int(resource.name) in self.away

    def _entries(self, resource: ConfigResource) -> Iterable[ConfigEntry]:
        for key in LISTS if resource.type is ConfigResourceType.TOPIC else RATES:
            shown = self.values if self.shown is None else self.shown
            own = shown.get((resource, key))
            topic = resource.type is ConfigResourceType.TOPIC
            source = ConfigOrigin.DYNAMIC_TOPIC_CONFIG if topic else ConfigOrigin.DYNAMIC_BROKER_CONFIG
            if own is None and not topic:
                own, source = shown.get((CLUSTER_DEFAULT, key)), ConfigOrigin.DYNAMIC_DEFAULT_BROKER_CONFIG
            if own is None and topic:
                own, source = "", ConfigOrigin.DEFAULT_CONFIG
            if own is not None:
                yield ConfigEntry(key, own, source, sensitive=False, read_only=False)


def as_client(store: ConfigStore) -> Any:
    """The two calls that a ledger makes are all there is of the port."""
    return store


BROKERS = (1, 2, 3)
EVERY = timedelta(seconds=2)


class Death(Enum):
    """Where in a step the process dies."""

    NONE = "not at all"
    BEFORE_CALLS = "after the intents were stored"
    BEFORE_CLEARS = "after it set what it wanted to"
    BEFORE_STORE = "after all calls, before their answers were stored"


@dataclass
class LedgerRun:
    store: ConfigStore = field(default_factory=ConfigStore)
    client: Any = None
    before: dict[tuple[ConfigResource, str], str] | None = None
    want: StepThrottles = field(default_factory=StepThrottles)
    now: datetime = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
    rows: dict[ThrottlePlace, LedgerEntry] = field(default_factory=dict)
    execution: Execution = field(default_factory=lambda: Execution(throttle=1))
    found: list[str] = field(default_factory=list)

    def step(self, death: Death = Death.NONE) -> RunLedger:
        client, alive = self.client or as_client(self.store), {b for b in BROKERS if b not in self.store.away}
        ledger = RunLedger(self.execution, self.rows)
        ledger.prepare(client, alive, self.now, deadline=1)
        taken = plan_throttle_changes(ledger.throttles(), self.want, (), alive)
        actions: list[Action] = [*taken.lists, *taken.rates, *taken.clears]
        ledger.intend(actions, self.now, deadline=1)
        self._stored(ledger)
        if death is not Death.BEFORE_CALLS:
            ledger.send_limits(self.now, deadline=1)
            if death is not Death.BEFORE_CLEARS:
                ledger.send_restores(self.now, deadline=1)
                if death is not Death.BEFORE_STORE:
                    self._stored(ledger)
        self.now += EVERY
        return ledger

    def settle(self, most: int = 90) -> RunLedger:
        """Nothing is wanted and nothing fails any more; until nothing is left to be looked after."""
        self.want = StepThrottles()
        for _ in range(most):
            ledger = self.step()
            if not ledger.pending(self.now) and not ledger.obligations():
                return ledger
        raise AssertionError(self.rows)

    def wants(self, pairs: Mapping[str, ThrottledPairs], brokers: Iterable[int], rate: int) -> None:
        self.want = StepThrottles(pairs, dict.fromkeys(brokers, rate))

    def _stored(self, ledger: RunLedger) -> None:
        """As ``RunLedger.commit``, which needs a database: what was cleared is forgotten, but for late calls."""
        ledger.take_over()
        self.found += [found.value for found in ledger.found]
        ledger.found.clear()
        self.rows = {e.place: e for e in ledger.entries if e.open or e.lost_at is not None}


def pairs_of(pairs: Iterable[Pair]) -> ThrottledPairs:
    """The same pairs in both lists."""
    return ThrottledPairs(frozenset(pairs), frozenset(pairs))


def broker_away(number: int) -> ThrottleNotRead:
    told = coded(ReassignmentErrorCode.BROKER_OF_THROTTLE_AWAY, broker=str(number))
    return ThrottleNotRead(message_reason(told))


def topic(name: str) -> ConfigResource:
    return ConfigResource.topic(name)


def broker(number: int) -> ConfigResource:
    return ConfigResource.broker(number)


__all__ = ["FOLLOWER_LIST", "LEADER_LIST", "Death", "LedgerRun", "broker", "broker_away", "pairs_of", "topic"]

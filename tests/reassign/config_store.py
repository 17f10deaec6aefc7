"""Configs of a cluster in memory, with Kafka's operations on them, and what may become of a request to it.

APPEND and SUBTRACT as in org.apache.kafka.controller.ConfigurationControlManager; a list that loses its last entry
stays set to ''. Shown as DescribeConfigs shows them (03-kafka.md §7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kafkadash.domain.throttles import EVERY_REPLICA, LISTS, RATES
from kafkadash.kafka.changing import Changed, ConfigChange, ConfigOperation
from kafkadash.kafka.port import (
    CLUSTER_DEFAULT,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    Configs,
    ConfigSource,
    ItemError,
    Unreachable,
)


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
    ) -> Configs:
        self.reads += len(resources)
        found, errors = {}, {}
        for resource in resources:
            if self._away(resource):
                errors[resource] = ItemError(f"{resource} does not answer.")
            elif resource.type is ConfigResourceType.TOPIC and resource.name in self.gone:
                errors[resource] = ItemError("There is no such topic.", 3, "UNKNOWN_TOPIC_OR_PARTITION")
            else:
                found[resource] = {entry.name: entry for entry in self._entries(resource)}
        return Configs(found, errors, 0.0)

    def alter_configs(self, changes: Sequence[ConfigChange], *, deadline: float) -> Changed[ConfigResource]:
        named = [(change.resource, change.key) for change in changes]
        assert len(set(named)) == len(named), "the same key twice in one request: INVALID_REQUEST 42"
        if self.fate is Fate.NOT_SENT:
            raise Unreachable("No broker accepted a connection.")
        self.calls.append(changes)
        resources = {change.resource for change in changes}
        if self.fate is Fate.LATE:
            self.late.append(changes)
        if self.fate in (Fate.LATE, Fate.LOST, Fate.ANSWER_LOST):
            if self.fate is Fate.ANSWER_LOST:
                self._apply(changes)
            return Changed(lost={resource: ItemError("No answer.") for resource in resources})
        if self.fate is Fate.REFUSED:
            return Changed(refused={resource: ItemError("Not authorized.", 31) for resource in resources})
        refused = self._apply(changes)
        return Changed(done=frozenset(resources - refused.keys()), refused=refused)

    def arrive(self) -> None:
        """Late requests reach the cluster."""
        late, self.late = self.late, []
        for changes in late:
            self._apply(changes)

    def _apply(self, changes: Iterable[ConfigChange]) -> dict[ConfigResource, ItemError]:
        refused: dict[ConfigResource, ItemError] = {}
        for resource in {change.resource: None for change in changes}:
            own = [change for change in changes if change.resource == resource]
            if self._away(resource):
                refused[resource] = ItemError(f"{resource} does not answer.")
            elif resource.type is ConfigResourceType.TOPIC and resource.name in self.gone:
                refused[resource] = ItemError("There is no such topic.", 3)
            elif any(self._forbidden(change) for change in own):
                refused[resource] = ItemError("INVALID_CONFIG", 40)
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
            source = ConfigSource.DYNAMIC_TOPIC_CONFIG if topic else ConfigSource.DYNAMIC_BROKER_CONFIG
            if own is None and not topic:
                own, source = shown.get((CLUSTER_DEFAULT, key)), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            if own is None and topic:
                own, source = "", ConfigSource.DEFAULT_CONFIG
            if own is not None:
                yield ConfigEntry(key, own, source, sensitive=False, read_only=False)


def as_client(store: ConfigStore) -> Any:
    """The two calls that a ledger makes are all there is of the port."""
    return store

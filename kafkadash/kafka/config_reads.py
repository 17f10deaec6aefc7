"""DescribeConfigs: each broker is asked for itself, topics are asked for in portions of any broker."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from kafkadash.domain.messages import message_text
from kafkadash.kafka import clock, port
from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.codes import item_error
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.messages import ConfigAnswer, ConfigsAnswer, ConfigsResult, configs_request
from kafkadash.kafka.port import (
    CLUSTER_DEFAULT,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    DeadlineExceeded,
    ItemError,
    KafkaFailure,
)
from kafkadash.kafka.wire import Wire

# A topic has some thirty configs: a portion is about a megabyte, and a wave of portions a few tens of megabytes once
# decoded, however many topics there are.
TOPICS_PER_QUESTION = 500
QUESTIONS_PER_WAVE = 4

_PERMISSIONS = {
    ConfigResourceType.TOPIC: "DescribeConfigs on the topic",
    ConfigResourceType.BROKER: "DescribeConfigs on the cluster",
}
Result = Answer[ConfigsAnswer] | KafkaFailure


class ConfigReading:
    """Collects the answers of one call. Equal entries are kept once: most topics have most values by default."""

    def __init__(self, keys: Collection[str] | None) -> None:
        self._keys = keys
        self._found: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
        self._errors: dict[ConfigResource, ItemError] = {}
        self._entries: dict[tuple[str, str | None, int, bool, bool], ConfigEntry] = {}
        self._taken_at: list[float] = []
        self._failures: list[KafkaFailure] = []

    def read(
        self,
        resources: Collection[ConfigResource],
        with_wire: Callable[[Callable[[Wire], list[Result]]], list[Result]],
        left: Callable[[], float],
    ) -> port.Configs:
        """Raises the first KafkaFailure when nothing at all was answered."""
        unique = list(dict.fromkeys(resources))
        portions = _portions([r for r in unique if r.type is ConfigResourceType.TOPIC])
        if CLUSTER_DEFAULT in unique:
            portions.append((0, [CLUSTER_DEFAULT]))
        for start in range(0, len(portions), QUESTIONS_PER_WAVE):
            wave = portions[start : start + QUESTIONS_PER_WAVE]
            asked = [portion for _, portion in wave]
            if left() > 0:
                turns = [(turn, self._ask(portion)) for turn, portion in wave]
                self._round(asked, partial(with_wire, partial(_ask_in_turn, turns, left)))
            else:
                self._fail(asked, DeadlineExceeded(KafkaErrorCode.TURN_TOO_LATE))
        # Brokers come last: one that is silent takes all the time there is.
        brokers = [r for r in unique if r.type is ConfigResourceType.BROKER and r != CLUSTER_DEFAULT]
        if brokers:
            asks = [(int(broker.name), self._ask([broker])) for broker in brokers]
            self._round([[b] for b in brokers], lambda: with_wire(lambda wire: wire.ask_each(asks, deadline=left())))
        if self._failures and not self._taken_at:
            raise self._failures[0]
        return port.Configs(self._found, self._errors, min(self._taken_at, default=clock.seconds()))

    def _round(self, portions: Sequence[Sequence[ConfigResource]], ask: Callable[[], list[Result]]) -> None:
        try:
            results = ask()
        except KafkaFailure as failure:
            self._fail(portions, failure)
        else:
            for portion, result in zip(portions, results, strict=True):
                self._sort(portion, result)

    def _fail(self, portions: Sequence[Sequence[ConfigResource]], failure: KafkaFailure) -> None:
        for portion in portions:
            self._sort(portion, failure)

    def _ask(self, resources: Sequence[ConfigResource]) -> Ask[ConfigsAnswer]:
        return Ask(lambda offered: configs_request(offered, [(r.type, r.name) for r in resources], self._keys))

    def _sort(self, asked: Sequence[ConfigResource], result: Result) -> None:
        """Puts each resource that was asked in one request into what was found or into the errors."""
        if isinstance(result, KafkaFailure):
            self._failures.append(result)
            self._errors.update(dict.fromkeys(asked, ItemError(result.message)))
            return
        self._taken_at.append(result.taken_at)
        answers = {(row.resource_type, row.resource_name): row for row in result.response.results}
        for resource in asked:
            row = answers.get((int(resource.type), resource.name))
            if row is None:
                self._errors[resource] = ItemError(
                    message_text(
                        KafkaErrorCode.NOT_IN_ANSWER, subject=f"The configuration of {resource} cannot be read"
                    )
                )
            elif row.error_code:
                self._errors[resource] = _error(resource, row)
            else:
                self._found[resource] = {config.name: self._entry(config) for config in row.configs}

    def _entry(self, config: ConfigAnswer) -> ConfigEntry:
        value = None if config.is_sensitive else config.value
        key = (config.name, value, config.config_source, config.is_sensitive, config.read_only)
        entry = self._entries.get(key)
        if entry is None:
            entry = ConfigEntry(
                config.name, value, _source(config.config_source), config.is_sensitive, config.read_only
            )
            self._entries[key] = entry
        return entry


def _portions(topics: Sequence[ConfigResource]) -> list[tuple[int, list[ConfigResource]]]:
    """(turn, topics) by a digest of their names, so that one is asked of the same broker time after time.

    Where a topic's value comes from the static config of brokers, brokers may differ, and an answer that changes with
    whoever gives it looks like a change.
    """
    count = 1
    while count * TOPICS_PER_QUESTION < len(topics):
        count *= 2
    portions: list[list[ConfigResource]] = [[] for _ in range(count)]
    for topic in topics:
        portions[zlib.crc32(topic.name.encode()) % count].append(topic)
    return [(turn, portion) for turn, portion in enumerate(portions) if portion]


def _ask_in_turn(
    turns: Sequence[tuple[int, Ask[ConfigsAnswer]]], left: Callable[[], float], wire: Wire
) -> list[Result]:
    return wire.ask_in_turn(turns, deadline=left())


def _error(resource: ConfigResource, row: ConfigsResult) -> ItemError:
    return item_error(
        row.error_code,
        f"The configuration of {resource} cannot be read",
        detail=row.error_message,
        permission=_PERMISSIONS[resource.type],
    )


def _source(number: int) -> ConfigSource:
    """A source that is newer than this program is unknown, as in Kafka's own clients."""
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN

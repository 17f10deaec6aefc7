"""Topic rules of a cluster, what of a change they judge, and which rules no topic can keep. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafkadash.core.messages import CodedMessage, CodedReason, coded
from kafkadash.kafka.api import ConfigType
from kafkadash.kafka.config_values import MIN_ISR, largest_number, read_number
from kafkadash.topic_rules.errors import RuleConflictCode
from kafkadash.topic_rules.reasons import (
    FactorNotAllowed,
    InheritedNotAllowed,
    InheritedUnknown,
    KeyNotAllowed,
    Limits,
    ValueNotAllowed,
)

_WITHOUT_LIMIT = frozenset({"retention.ms", "retention.bytes", "local.retention.ms", "local.retention.bytes"})
"""Configs of which a negative value is none that Kafka keeps to: no bound from above holds then."""
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ValueRange:
    """``least`` and ``most`` belong to it; None: there is no limit."""

    least: int | None = None
    most: int | None = None

    @property
    def limits(self) -> Limits:
        return self.least, self.most

    def allows(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


class KeyScope(StrEnum):
    """Which configs may be changed; the values are stored."""

    ALL = "all"
    ONLY = "only"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class KeyRule:
    """``keys``: those that the scope names."""

    scope: KeyScope = KeyScope.ALL
    keys: frozenset[str] = frozenset()

    def allows(self, key: str) -> bool:
        return self.scope is KeyScope.ALL or (key in self.keys) is (self.scope is KeyScope.ONLY)


@dataclass(frozen=True, slots=True)
class TopicRuleSet:
    """``ranges``: of configs of topics. That of min.insync.replicas also holds for brokers and their default, of which
    topics inherit it.
    """

    name_pattern: str = ""
    factor: ValueRange = ValueRange()
    ranges: Mapping[str, ValueRange] = field(default_factory=dict)
    topic_keys: KeyRule = KeyRule()
    broker_keys: KeyRule = KeyRule()


@dataclass(frozen=True, slots=True)
class RuledItem:
    """Values that a change gives to a topic or broker, as the rules judge them.

    ``new_topic``: name of a topic that is created, '' else. ``factor``: replication factor, None where it stays.
    ``configs``: None removes a value. ``inherited``: what is in force without values of the owner's own, where known.
    """

    subject: str
    new_topic: str = ""
    factor: int | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)
    inherited: Mapping[str, str | None] = field(default_factory=dict)
    of_broker: bool = False


def find_broken(rules: TopicRuleSet, item: RuledItem) -> Iterator[CodedReason]:
    """Yield what of an item the rules do not allow, and what nobody can tell; its name is judged elsewhere."""
    if item.factor is not None and not rules.factor.allows(item.factor):
        yield FactorNotAllowed(item.factor, rules.factor.limits)
    keys = rules.broker_keys if item.of_broker else rules.topic_keys
    yield from (KeyNotAllowed(key) for key in item.configs if not keys.allows(key))
    for key, allowed in rules.ranges.items():
        judged = key in item.configs or bool(item.new_topic)
        if judged and (key == MIN_ISR or not item.of_broker):
            broken = _judge_value(key, item, allowed)
            if broken is not None:
                yield broken


def _judge_value(key: str, item: RuledItem, allowed: ValueRange) -> CodedReason | None:
    own = item.configs.get(key)
    if own is not None:
        return None if is_allowed_value(key, own, allowed) else ValueNotAllowed(key, own[:_SHOWN], allowed.limits)
    inherited = item.inherited.get(key)
    if inherited is None:
        return InheritedUnknown(key, allowed.limits)
    if is_allowed_value(key, inherited, allowed):
        return None
    return InheritedNotAllowed(key, inherited[:_SHOWN], allowed.limits)


def is_allowed_value(key: str, value: str, allowed: ValueRange) -> bool:
    """Return whether a value is a number within limits."""
    number = read_number(value)
    if number is None:
        return False
    return allowed.allows(float("inf") if number < 0 and key in _WITHOUT_LIMIT else number)


def find_type_conflict(key: str, allowed: ValueRange, kind: ConfigType) -> CodedMessage | None:
    """Return why Kafka takes no value of a config that is within limits, as far as its type tells."""
    largest, name = largest_number(kind), kind.name.lower()
    if largest is None:
        return None if kind is ConfigType.UNKNOWN else coded(RuleConflictCode.NOT_NUMERIC, key=key, type=name)
    above = allowed.least is not None and allowed.least > largest
    below = allowed.most is not None and allowed.most < -largest - 1
    return coded(RuleConflictCode.OUTSIDE_TYPE, key=key, type=name, allowed=allowed.limits) if above or below else None


def find_conflicts(
    rules: TopicRuleSet, brokers: int | None, types: Mapping[str, ConfigType], inherited: Mapping[str, str | None]
) -> tuple[list[CodedMessage], list[CodedMessage]]:
    """Return which rules no topic can keep now, and which configs new topics have to set because of a rule.

    ``brokers`` that are registered, None where they were not read; ``types`` of configs of topics; ``inherited``:
    values of a new topic, where known.
    """
    impossible, notes = [], []
    least_isr = rules.ranges.get(MIN_ISR, ValueRange()).least
    floors = (
        (RuleConflictCode.FACTOR_ABOVE_BROKERS, rules.factor.least),
        (RuleConflictCode.MIN_ISR_ABOVE_BROKERS, least_isr),
    )
    for code, least in floors:
        if brokers is not None and least is not None and least > brokers:
            impossible.append(coded(code, least=least, brokers=brokers))
    for key, allowed in rules.ranges.items():
        conflict, value = find_type_conflict(key, allowed, types.get(key, ConfigType.UNKNOWN)), inherited.get(key)
        if conflict is not None:
            impossible.append(conflict)
        elif value is not None and not is_allowed_value(key, value, allowed):
            told = {"key": key, "value": value[:_SHOWN], "allowed": allowed.limits}
            if rules.topic_keys.allows(key):
                notes.append(coded(RuleConflictCode.DEFAULT_OUTSIDE, **told))
            else:
                impossible.append(coded(RuleConflictCode.DEFAULT_LOCKED, **told))
    return impossible, notes

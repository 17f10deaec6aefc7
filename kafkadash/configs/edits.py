"""Edits of the configs of one owner: the lines of the form, and what was typed in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.kind import find_isr_fault, rule_edit
from kafkadash.configs.stored import ConfigKey, ConfigOwner, OwnerKind, describe_value
from kafkadash.core.messages import CodedMessage, coded, reason_message
from kafkadash.kafka.config_values import is_of_type
from kafkadash.monitoring.configs import source_words
from kafkadash.monitoring.models import ConfigSource
from kafkadash.topic_rules.reasons import KeyNotAllowed, RuleReasonCode
from kafkadash.topic_rules.rules import TopicRuleSet, find_broken

MOST_CHARACTERS = 4_000
EMPTY = '""'
"""Text that is typed for a value that is set and empty: an empty field is a config that is not set."""
_SHOWN = 40
_LOCK_WORDS: Mapping[object, str] = {
    ConfigErrorCode.KEY_READ_ONLY: "read-only: set in the properties file of a broker",
    ConfigErrorCode.KEY_SENSITIVE: "sensitive: set with kafka-configs",
    ConfigErrorCode.KEY_OF_THROTTLES: "throttle: set and removed by runs",
    ConfigErrorCode.KEY_TOO_LONG: "set with kafka-configs",
    RuleReasonCode.KEY: "not allowed by the topic rules",
}


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """A config of an owner in the form. ``own``: value as it is typed, '' where none is set. ``value``: in force."""

    key: ConfigKey
    own: str
    value: str
    source: str
    inherited: str
    lock: CodedMessage | None
    typed: str = ""
    wrong: CodedMessage | None = None

    @property
    def lock_words(self) -> str:
        return _LOCK_WORDS[self.lock.code] if self.lock else ""


def list_lines(
    owner: ConfigOwner,
    keys: Mapping[str, ConfigKey],
    typed: Mapping[str, str],
    wrong: Mapping[str, CodedMessage],
    rules: TopicRuleSet,
) -> list[ConfigLine]:
    """Return a line for each config, those that are set on the owner first, then by key."""
    lines = [_show_line(owner, key, typed, wrong, rules) for key in keys.values()]
    return sorted(lines, key=lambda line: (not line.own, line.key.key))


def _show_line(
    owner: ConfigOwner,
    key: ConfigKey,
    typed: Mapping[str, str],
    wrong: Mapping[str, CodedMessage],
    rules: TopicRuleSet,
) -> ConfigLine:
    own = type_value(owner.own_value(key.key))
    value, source = owner.in_force(key)
    inherited = describe_value(*key.inherited) if key.inherited else ""
    if key.inherited and key.inherited[1] == ConfigSource.DEFAULT:
        inherited = describe_value(key.inherited[0])
    hidden = key.sensitive or (value is None and not source)
    return ConfigLine(
        key=key,
        own=own,
        value="" if hidden else describe_value(value),
        source=source_words(source) if source else "not set",
        inherited="" if key.sensitive else inherited,
        lock=find_lock(key, rules, owner),
        typed=typed.get(key.key, own),
        wrong=wrong.get(key.key),
    )


def type_value(value: str | None) -> str:
    """Return a value as it is typed into a field."""
    return "" if value is None else value or EMPTY


def read_typed(typed: str) -> str | None:
    """Return the value that a field holds, None where the config is not to be set."""
    value = typed.replace("\0", "").strip()
    return None if not value else "" if value == EMPTY else value


def find_value_fault(key: ConfigKey, value: str | None) -> CodedMessage | None:
    """Return why a value cannot be the one of a config, as far as its type tells."""
    if value is None:
        return None
    if len(value) > MOST_CHARACTERS:
        return coded(ConfigErrorCode.VALUE_TOO_LONG, key=key.key, length=len(value), most=MOST_CHARACTERS)
    if not is_of_type(value, key.type):
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        return coded(ConfigErrorCode.VALUE_OF_TYPE, key=key.key, value=shown or EMPTY, type=key.type_words)
    return None


@dataclass(frozen=True, slots=True)
class TypedEdits:
    """Edits as the input of a change, or by key why they cannot be."""

    edits: list[dict[str, Any]]
    wrong: Mapping[str, CodedMessage]
    typed: Mapping[str, str]


def read_edits(
    owner: ConfigOwner, keys: Mapping[str, ConfigKey], sent: Mapping[str, str], rules: TopicRuleSet
) -> TypedEdits:
    """Return what somebody changed in the form: fields whose text is another one than the form was shown with.

    A field is ``value:KEY``, with its first text in ``was:KEY``. Fields of keys that Kafka does not describe are wrong.
    """
    edits, wrong, typed = [], {}, {}
    for name, text in sent.items():
        prefix, _, key_name = name.partition(":")
        if prefix != "value":
            continue
        value = read_typed(text)
        key = keys.get(key_name)
        if value == read_typed(sent.get(f"was:{key_name}", "")):
            continue
        typed[key_name] = text
        fault = find_edit_fault(owner, key_name, key, value, rules)
        if fault is not None:
            wrong[key_name] = fault
        else:
            edits.append({"of": str(owner.kind), "ids": [owner.identity], "key": key_name, "value": value})
    return TypedEdits(edits, wrong, typed)


def find_lock(key: ConfigKey, rules: TopicRuleSet, owner: ConfigOwner | None = None) -> CodedMessage | None:
    """Return why nobody edits this config of an owner, of topics where none is given; None where somebody may."""
    allowed = rules.topic_keys if owner is None or owner.kind is OwnerKind.TOPIC else rules.broker_keys
    ruled = None if allowed.allows(key.key) else reason_message(KeyNotAllowed(key.key))
    return key.find_lock(owner) or ruled


def find_edit_fault(
    owner: ConfigOwner | None, name: str, key: ConfigKey | None, value: str | None, rules: TopicRuleSet
) -> CodedMessage | None:
    """Return why a config of an owner, or of topics, cannot be edited so.

    None where Kafka may take it and the topic rules allow it.
    """
    if key is None:
        return coded(ConfigErrorCode.KEY_UNKNOWN, key=name[:_SHOWN] or EMPTY)
    if fault := find_lock(key, rules, owner) or find_value_fault(key, value):
        return fault
    of = owner.kind if owner is not None else OwnerKind.TOPIC
    for broken in find_broken(rules, rule_edit(name, of, name, value, key.inherited or ())):
        return reason_message(broken)
    isr_fault = find_isr_fault(owner, name, value) if owner is not None else None
    return reason_message(isr_fault) if isr_fault is not None else None

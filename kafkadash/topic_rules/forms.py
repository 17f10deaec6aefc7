"""The form of the topic rules of a cluster: each rule is checked for itself, then with the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from kafkadash.accounts.services import LONGEST_REASON
from kafkadash.clusters.forms import SettingsForm
from kafkadash.core.formatting import read_whole_number
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.kafka.api import ConfigType
from kafkadash.kafka.config_values import MIN_ISR
from kafkadash.topic_rules.errors import RuleErrorCode
from kafkadash.topic_rules.models import StoredKeyScope, TopicRules
from kafkadash.topic_rules.name_match import TIME_S, PatternFault, PatternTimeout, check_pattern
from kafkadash.topic_rules.rules import KeyScope, ValueRange, find_type_conflict

LONGEST_PATTERN = 200
MOST_LINES = 200
MOST_TYPED = 10_000
LARGEST_FACTOR = 2**15 - 1  # INT16 in CreateTopics
_LONGEST_NAME = 249
_KEY = re.compile(r"[a-z0-9._-]{1,100}")
_LIMIT = re.compile(r"(-?[0-9]{1,18}) ?(ms|s|min|h|d|B|KiB|MiB|GiB)?")
_UNITS = {
    ".ms": {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000},
    ".bytes": {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
}
_SHOWN = 60
_LIMITS = ("factor_least", "factor_most", "min_isr_least", "min_isr_most")
FIELDS = ("name_pattern", *_LIMITS, "topic_scope", "topic_keys", "broker_scope", "broker_keys", "bounds")


class TopicRulesForm(SettingsForm):
    """``topics`` and ``brokers``: configs that Kafka describes, as of ``ConfigCatalog``; none where they were not read.

    ``names``: of topics, with which a pattern is tried.
    """

    hints = {
        "name_pattern": "Regular expression; must match the whole name: payments[.][a-z.]+",
        "min_isr_least": "Of topics, brokers and the default of all brokers.",
        "topic_keys": "One per line. They can be neither set nor removed where they are not allowed.",
        "bounds": "One per line: retention.ms=1h..30d. Limits may be open: segment.bytes=1MiB..",
        "broker_keys": "One per line; for brokers and the default of all brokers.",
        "reason": "Shown in the audit log.",
    }

    version = forms.CharField(widget=forms.HiddenInput, required=False)
    name_pattern = forms.CharField(label="Name pattern of new topics", required=False)
    factor_least = forms.CharField(label="Minimum replication factor", required=False)
    factor_most = forms.CharField(label="Maximum replication factor", required=False)
    min_isr_least = forms.CharField(label="Minimum min.insync.replicas", required=False)
    min_isr_most = forms.CharField(label="Maximum min.insync.replicas", required=False)
    topic_scope = forms.CharField(label="Topic configs that may change", required=False)
    topic_keys = forms.CharField(label="Listed topic configs", required=False)
    bounds = forms.CharField(label="Bounds of topic configs", required=False)
    broker_scope = forms.CharField(label="Broker configs that may change", required=False)
    broker_keys = forms.CharField(label="Listed broker configs", required=False)
    reason = forms.CharField(label="Reason", required=False, max_length=LONGEST_REASON)

    def __init__(
        self,
        *args: Any,
        topics: Mapping[str, Sequence[Any]],
        brokers: Mapping[str, Sequence[Any]],
        names: Sequence[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._topics, self._brokers, self._names = topics, brokers, names
        for name in ("topic_scope", "broker_scope"):
            self.fields[name].choices = StoredKeyScope.choices  # type: ignore[attr-defined]  # which the page lists

    def clean(self) -> dict[str, Any]:
        """Return the columns of ``TopicRules``, with ``version`` and ``reason``."""
        values = self.cleaned_data
        checked: dict[str, Any] = {"name_pattern": self._check_pattern(values.get("name_pattern", "").strip())}
        checked |= {name: self._check_number(name, values.get(name, "").strip()) for name in _LIMITS}
        for of in ("factor", "min_isr"):
            self._check_order(f"{of}_least", ValueRange(checked[f"{of}_least"], checked[f"{of}_most"]))
        least_isr, factor = checked["min_isr_least"], checked["factor_most"]
        if least_isr is not None and factor is not None and least_isr > factor:
            self._refuse("min_isr_least", coded(RuleErrorCode.MIN_ISR_ABOVE_FACTOR, min_isr=least_isr, factor=factor))
        for of, catalog in (("topic", self._topics), ("broker", self._brokers)):
            scope = values.get(f"{of}_scope") or KeyScope.ALL.value
            if scope not in StoredKeyScope.values:
                self._refuse(f"{of}_scope", RuleErrorCode.SCOPE_UNKNOWN)
            keys = self._check_keys(f"{of}_keys", catalog)
            if scope == KeyScope.EXCEPT and not keys and f"{of}_keys" not in self.errors:
                self._refuse(f"{of}_keys", RuleErrorCode.KEYS_MISSING)
            elif scope == KeyScope.ALL and keys:
                self._refuse(f"{of}_scope", RuleErrorCode.KEYS_UNUSED)
            checked |= {f"{of}_scope": scope, f"{of}_keys": keys}
        checked["bounds"] = self._check_bounds()
        reason = values.get("reason", "").strip()
        if not reason and "reason" not in self.errors:
            self._refuse("reason", RuleErrorCode.REASON_MISSING)
        version = read_whole_number(values.get("version", ""))
        return {**checked, "reason": reason, "version": -1 if version is None else version}

    def refuse_whole(self, message: CodedMessage) -> None:
        self._refuse(None, message)

    def _check_pattern(self, pattern: str) -> str:
        """Try the pattern on the names of topics, and on long ones, with which a slow one takes its time."""
        if not pattern:
            return ""
        hostile = [letter * _LONGEST_NAME for letter in "ax0."]
        if len(pattern) > LONGEST_PATTERN:
            too_long = coded(RuleErrorCode.PATTERN_TOO_LONG, length=len(pattern), most=LONGEST_PATTERN)
            self._refuse("name_pattern", too_long)
            return ""
        try:
            check_pattern(pattern, [*self._names, *hostile])
        except PatternFault as fault:
            self._refuse("name_pattern", coded(RuleErrorCode.PATTERN_WRONG, fault=str(fault)))
        except PatternTimeout:
            self._refuse("name_pattern", coded(RuleErrorCode.PATTERN_TOO_SLOW, seconds=TIME_S))
        return pattern

    def _check_number(self, name: str, typed: str) -> int | None:
        number = read_whole_number(typed, LARGEST_FACTOR)
        if typed and not number:
            self._refuse(name, coded(RuleErrorCode.NO_NUMBER, most=LARGEST_FACTOR))
        return number

    def _check_order(self, name: str, limits: ValueRange) -> bool:
        if limits.least is None or limits.most is None or limits.least <= limits.most:
            return True
        self._refuse(name, coded(RuleErrorCode.RANGE_REVERSED, least=limits.least, most=limits.most))
        return False

    def _lines(self, name: str) -> list[str]:
        typed = self.cleaned_data.get(name, "")
        lines = [line.strip() for line in typed[:MOST_TYPED].splitlines() if line.strip()]
        if len(lines) > MOST_LINES or len(typed) > MOST_TYPED:
            self._refuse(name, coded(RuleErrorCode.TOO_MANY_LINES, most=MOST_LINES))
            return []
        return lines

    def _check_keys(self, name: str, catalog: Mapping[str, Sequence[Any]]) -> list[str]:
        keys = sorted(set(self._lines(name)))
        for key in keys:
            if fault := _find_key_fault(key, key, catalog):
                self._refuse(name, fault)
                return []
        return keys

    def _check_bounds(self) -> dict[str, list[int | None]]:
        found: dict[str, list[int | None]] = {}
        for line in self._lines("bounds"):
            key, _, typed = (part.strip() for part in line.partition("="))
            limits = read_limits(key, typed)
            if fault := _find_key_fault(key, line, self._topics):
                self._refuse("bounds", fault)
            elif key == MIN_ISR:
                self._refuse("bounds", RuleErrorCode.BOUND_OF_MIN_ISR)
            elif key in found:
                self._refuse("bounds", coded(RuleErrorCode.BOUND_REPEATED, key=key))
            elif limits is None:
                self._refuse("bounds", coded(RuleErrorCode.BOUND_FORMAT, line=line[:_SHOWN]))
            elif self._check_order("bounds", limits):
                kind = ConfigType(self._topics[key][0]) if key in self._topics else ConfigType.UNKNOWN
                if conflict := find_type_conflict(key, limits, kind):
                    self._refuse("bounds", conflict)
                found[key] = [*limits.limits]
        return found


def _find_key_fault(key: str, line: str, catalog: Mapping[str, Sequence[Any]]) -> CodedMessage | None:
    if not _KEY.fullmatch(key):
        return coded(RuleErrorCode.KEY_FORMAT, line=line[:_SHOWN])
    return coded(RuleErrorCode.KEY_UNKNOWN, key=key) if catalog and key not in catalog else None


def read_limits(key: str, typed: str) -> ValueRange | None:
    """Return the limits that a text such as "1h..30d" or "..100" names; units go with .ms and .bytes. None: none."""
    first, dots, last = (part.strip() for part in typed.partition(".."))
    if not dots or not (first or last):
        return None
    limits = [_read_limit(key, part) if part else None for part in (first, last)]
    wrong = any(part and limit is None for part, limit in zip((first, last), limits, strict=True))
    return None if wrong else ValueRange(*limits)


def _read_limit(key: str, typed: str) -> int | None:
    found = _LIMIT.fullmatch(typed)
    if found is None:
        return None
    units = next((units for ending, units in _UNITS.items() if key.endswith(ending)), {})
    factor = units.get(found[2]) if found[2] else 1
    return None if factor is None else int(found[1]) * factor


def write_limits(key: str, limits: Sequence[int | None]) -> str:
    """Return a line as ``read_limits`` reads it, with the largest unit that is exact."""
    units = next((units for ending, units in _UNITS.items() if key.endswith(ending)), {})
    return f"{key}=" + "..".join("" if limit is None else _write_limit(limit, units) for limit in limits)


def _write_limit(limit: int, units: Mapping[str, int]) -> str:
    for unit, factor in reversed([*units.items()]):
        if limit > 0 and limit % factor == 0 and factor > 1:
            return f"{limit // factor}{unit}"
    return str(limit)


def show_rules(stored: TopicRules) -> dict[str, Any]:
    """Return the fields of the form as they are typed."""
    values = {name: getattr(stored, name) for name in FIELDS}
    return {
        **{name: "" if value is None else value for name, value in values.items()},
        "topic_keys": "\n".join(stored.topic_keys),
        "broker_keys": "\n".join(stored.broker_keys),
        "bounds": "\n".join(write_limits(key, limits) for key, limits in sorted(stored.bounds.items())),
        "version": stored.version,
    }

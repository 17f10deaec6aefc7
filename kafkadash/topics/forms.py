"""The form of new topics: names, placement and configs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django import forms

from kafkadash.clusters.forms import CodedForm
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.formatting import read_whole_number
from kafkadash.core.messages import CodedMessage, coded, reason_message
from kafkadash.kafka.config_values import MIN_ISR, read_number
from kafkadash.monitoring.models import TopicState
from kafkadash.topic_rules.checks import judge_items
from kafkadash.topic_rules.reasons import RuleReasonCode
from kafkadash.topic_rules.rules import RuledItem
from kafkadash.topics.creation import PlacementBrokers
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.names import check_topic_name, metric_name
from kafkadash.topics.placement import MOST_PARTITIONS, take_assignment

KIP_36, BALANCED, TYPED = "kip-36", "balanced", "typed"
PLACEMENTS = (
    (KIP_36, "Rack-aware, as KIP-36 places"),
    (BALANCED, "Rack-aware, balanced by what brokers hold"),
    (TYPED, "Typed assignment"),
)
MOST_NAMES = 5_000
MOST_REPLICAS = 150_000
MOST_CONFIG_CHARACTERS = 4_000
MOST_DRAW = 9_999
_KEY = re.compile(r"[a-z0-9.]{1,100}")
_THROTTLES = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})
_SHOWN = 60
_REASONS_SHOWN = 20


class TopicsForm(CodedForm):
    """``cleaned_data`` is the input of the change once the form is valid."""

    names = forms.CharField(label="Names", required=False)
    placement = forms.CharField(label="Placement", required=False)
    partitions = forms.CharField(label="Partitions", required=False)
    factor = forms.CharField(label="Replication factor", required=False)
    start = forms.CharField(label="Start", required=False)
    shift = forms.CharField(label="Shift", required=False)
    assignment = forms.CharField(label="Assignment", required=False)
    configs = forms.CharField(label="Configs", required=False)

    def __init__(self, *args: Any, cluster: Cluster, brokers: PlacementBrokers, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cluster, self._brokers = cluster, brokers
        self.fields["placement"].choices = PLACEMENTS  # type: ignore[attr-defined]  # which the page lists

    def clean(self) -> dict[str, Any]:
        """Check each field for itself, then what they say together."""
        values = self.cleaned_data
        checked: dict[str, Any] = {"names": self._check_names(values.get("names", ""))}
        if not self._brokers.racks:
            self._refuse(None, coded(TopicErrorCode.NO_BROKERS, cluster=self._cluster.name))
        elif values.get("placement") == TYPED:
            checked["assignment"] = self._check_assignment(values.get("assignment", ""))
        elif values.get("placement") in (KIP_36, BALANCED):
            checked |= self._check_numbers(values)
        else:
            self._refuse("placement", coded(TopicErrorCode.PLACEMENT_UNKNOWN))
        checked["configs"] = self._check_configs(values.get("configs", ""))
        self._check_min_isr(checked)
        self._check_total(checked)
        if not self.errors:
            self._check_rules(checked)
        return checked

    def _check_names(self, typed: str) -> list[str]:
        names = list(filter(None, map(str.strip, typed.splitlines())))
        if not names:
            self._refuse("names", coded(TopicErrorCode.NAME_MISSING))
        elif len(names) > MOST_NAMES:
            self._refuse("names", coded(TopicErrorCode.TOO_MANY_NAMES, names=len(names), most=MOST_NAMES))
        elif fault := self._find_name_fault(names):
            self._refuse("names", fault)
        return names

    def _find_name_fault(self, names: list[str]) -> CodedMessage | None:
        stored = set(TopicState.objects.filter(cluster=self._cluster).values_list("name", flat=True))
        by_metric = {metric_name(name): name for name in stored}
        listed = set()
        for name in names:
            if fault := check_topic_name(name):
                return fault
            if name in listed:
                return coded(TopicErrorCode.NAME_REPEATED, name=name)
            if name in stored:
                return coded(TopicErrorCode.NAME_TAKEN, cluster=self._cluster.name, name=name)
            other = by_metric.setdefault(metric_name(name), name)
            if other != name:
                return coded(TopicErrorCode.NAME_COLLIDES, name=name, other=other)
            listed.add(name)
        return None

    def _check_numbers(self, values: Mapping[str, str]) -> dict[str, int]:
        """Check the numbers of partitions and replicas and, for KIP-36, the two numbers that Kafka draws."""
        many = len(self._brokers.racks)
        limits = {
            "partitions": (1, MOST_PARTITIONS, coded(TopicErrorCode.PARTITIONS_WRONG, most=MOST_PARTITIONS)),
            "factor": (1, many, coded(TopicErrorCode.FACTOR_WRONG, brokers=many)),
        }
        if values["placement"] == KIP_36:
            draw = (0, MOST_DRAW, coded(TopicErrorCode.DRAW_WRONG, most=MOST_DRAW))
            limits |= {"start": draw, "shift": draw}
        found = {}
        for name, (least, most, message) in limits.items():
            number = read_whole_number(values.get(name, ""))
            if number is None or not least <= number <= most:
                self._refuse(name, message)
            else:
                found[name] = number
        if self._brokers.lacking:
            self._refuse("placement", coded(TopicErrorCode.RACK_MISSING, brokers=list(self._brokers.lacking)))
        return found

    def _check_assignment(self, typed: str) -> list[list[int]]:
        taken = take_assignment(typed, self._brokers.racks.keys())
        if isinstance(taken, CodedMessage):
            self._refuse("assignment", taken)
            return []
        return [list(replicas) for replicas in taken]

    def _check_configs(self, typed: str) -> dict[str, str]:
        """Read ``key=value`` lines; whether Kafka knows the key and takes the value, Kafka says."""
        found: dict[str, str] = {}
        if len(typed) > MOST_CONFIG_CHARACTERS:
            too_long = coded(TopicErrorCode.CONFIGS_TOO_LONG, length=len(typed), most=MOST_CONFIG_CHARACTERS)
            self._refuse("configs", too_long)
            return found
        for line in filter(None, map(str.strip, typed.splitlines())):
            key, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not _KEY.fullmatch(key):
                self._refuse("configs", coded(TopicErrorCode.CONFIG_FORMAT, line=line[:_SHOWN]))
            elif key in _THROTTLES:
                self._refuse("configs", coded(TopicErrorCode.CONFIG_OF_THROTTLES, key=key))
            elif key in found:
                self._refuse("configs", coded(TopicErrorCode.CONFIG_REPEATED, key=key))
            else:
                found[key] = value
        return found

    def _check_min_isr(self, checked: Mapping[str, Any]) -> None:
        min_isr = read_number(checked["configs"].get(MIN_ISR, ""))
        rows = checked.get("assignment")
        factor = len(rows[0]) if rows else checked.get("factor")
        if min_isr is not None and factor is not None and min_isr > factor:
            self._refuse("configs", coded(TopicErrorCode.MIN_ISR_TOO_HIGH, min_isr=int(min_isr), factor=factor))

    def _check_rules(self, checked: Mapping[str, Any]) -> None:
        """Refuse what the topic rules of the cluster do not allow, each reason once and at its field."""
        rows = checked.get("assignment")
        factor, configs = len(rows[0]) if rows else checked["factor"], checked["configs"]
        items = [RuledItem(name, new_topic=name, factor=factor, configs=configs) for name in checked["names"]]
        broken = judge_items(self._cluster, items, clock.now()).broken
        fields: dict[StrEnum, str] = {
            RuleReasonCode.NAME: "names",
            RuleReasonCode.NAME_UNJUDGED: "names",
            RuleReasonCode.FACTOR: "assignment" if rows else "factor",
        }
        told = dict.fromkeys(reason for reasons in broken.values() for reason in reasons)
        for reason in [*told][:_REASONS_SHOWN]:
            self._refuse(fields.get(reason.code, "configs"), reason_message(reason))

    def _check_total(self, checked: Mapping[str, Any]) -> None:
        """Limit what one change plans, shows and stores."""
        rows = checked.get("assignment")
        each = sum(map(len, rows)) if rows else checked.get("partitions", 0) * checked.get("factor", 0)
        total = len(checked["names"]) * each
        if total > MOST_REPLICAS:
            self._refuse("names", coded(TopicErrorCode.TOO_MANY_REPLICAS, replicas=total, most=MOST_REPLICAS))

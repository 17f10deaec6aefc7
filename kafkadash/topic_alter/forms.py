"""The form that alters topics: empty or -1 is no change (KIP-179)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from kafkadash.clusters.models import Cluster
from kafkadash.configs.edits import find_edit_fault, read_typed
from kafkadash.configs.stored import ConfigKey
from kafkadash.core.formatting import read_whole_number
from kafkadash.core.messages import CodedMessage, coded, reason_message
from kafkadash.kafka.config_values import MIN_ISR, read_number
from kafkadash.monitoring.models import TopicState
from kafkadash.planning.options import BadRate, bytes_per_second
from kafkadash.planning.topic_form import TopicChoiceForm
from kafkadash.topic_alter.alteration import TopicAlteration
from kafkadash.topic_alter.errors import AlterErrorCode
from kafkadash.topic_rules.models import load_rules
from kafkadash.topic_rules.rules import RuledItem, find_broken
from kafkadash.topics.creation import PlacementBrokers
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.growth import moving_topics
from kafkadash.topics.placement import MOST_PARTITIONS, take_assignment

MOST_ADDED = 50_000
"""New partitions of one change: what it plans, stores and shows."""
MOST_CONFIG_CHARACTERS = 4_000
NO_CHANGE = ("", "-1")
_SHOWN = 60


class AlterForm(TopicChoiceForm):
    """``alteration`` is what is to be done, once the form is valid."""

    partitions = forms.CharField(label="Partitions", required=False, help_text="Empty or -1: no change.")
    factor = forms.CharField(label="Replication factor", required=False, help_text="Empty or -1: no change.")
    assignment = forms.CharField(label="Assignment", required=False)
    throttle = forms.CharField(label="Throttle", required=False)
    added = forms.CharField(label="Configs to set", required=False)
    removed = forms.CharField(label="Configs to remove", required=False)
    alteration: TopicAlteration

    def __init__(
        self, *args: Any, cluster: Cluster, brokers: PlacementBrokers, keys: Mapping[str, ConfigKey], **kwargs: Any
    ) -> None:
        super().__init__(*args, cluster=cluster, **kwargs)
        self._brokers, self._keys, self._rules = brokers, keys, load_rules(cluster)

    def clean(self) -> dict[str, Any]:
        """Check each field for itself, then with the topics that are chosen."""
        values: dict[str, str] = {name: text.strip() for name, text in self.cleaned_data.items()}
        count, factor = (self._read_number(name, values.get(name, "")) for name in ("partitions", "factor"))
        assignment = self._read_assignment(values.get("assignment", ""))
        configs = self._read_configs(values.get("added", ""), values.get("removed", ""))
        if factor is not None and not 1 <= factor <= len(self._brokers.racks):
            self._refuse("factor", coded(TopicErrorCode.FACTOR_WRONG, brokers=len(self._brokers.racks)))
        if assignment and factor is not None and len(assignment[0]) != factor:
            contradicts = coded(AlterErrorCode.FACTOR_CONTRADICTS, replicas=len(assignment[0]), factor=factor)
            self._refuse("assignment", contradicts)
        throttle = self._read_throttle(values.get("throttle", "")) if assignment or factor is not None else 0
        topics = self._choose_topics()
        if not self.errors and count is None and factor is None and not assignment and not configs:
            self._refuse(None, coded(AlterErrorCode.NOTHING_ASKED))
        if self.errors:
            return values
        if assignment:
            factor = len(assignment[0])
        self.alteration = TopicAlteration(topics, count, factor, assignment, configs, throttle)
        self._check_partitions(self.alteration)
        self._check_min_isr(self.alteration)
        self._check_factor_rule(self.alteration)
        if not self.alteration.configs_only:
            self._check_moves(topics)
        return values

    def _choose_topics(self) -> list[TopicState]:
        ids = self.choose_ids(internal=True)
        rows = TopicState.objects.filter(cluster=self._cluster, topic_id__in=ids).order_by("changed_at")
        topics = sorted({row.name: row for row in rows}.values(), key=lambda row: row.name)
        internal = next((topic.name for topic in topics if topic.internal), None)
        if internal is not None:
            self._refuse("topics", coded(AlterErrorCode.INTERNAL_TOPIC, topic=internal))
        return topics

    def _read_number(self, name: str, typed: str) -> int | None:
        if typed in NO_CHANGE:
            return None
        number = read_whole_number(typed)
        if number is None:
            self._refuse(name, coded(AlterErrorCode.NO_NUMBER, typed=typed[:_SHOWN]))
        return number

    def _read_assignment(self, typed: str) -> list[list[int]]:
        if not typed:
            return []
        taken = take_assignment(typed, self._brokers.racks.keys())
        if isinstance(taken, CodedMessage):
            self._refuse("assignment", taken)
            return []
        return [list(replicas) for replicas in taken]

    def _read_throttle(self, typed: str) -> int:
        try:
            return bytes_per_second(typed)
        except BadRate as bad:
            self._refuse("throttle", bad.message)
            return 0

    def _read_configs(self, added: str, removed: str) -> dict[str, str | None]:
        """Return the values by key, None for those to remove."""
        found: dict[str, str | None] = {}
        for name, typed in (("added", added), ("removed", removed)):
            if len(typed) > MOST_CONFIG_CHARACTERS:
                too_long = {"length": len(typed), "most": MOST_CONFIG_CHARACTERS}
                self._refuse(name, coded(AlterErrorCode.CONFIGS_TOO_LONG, **too_long))
                continue
            for line in filter(None, map(str.strip, typed.splitlines())):
                key, equals, text = (part.strip() for part in line.partition("="))
                value = (read_typed(text) or "") if name == "added" else None
                if bool(equals) is not (name == "added"):
                    self._refuse(name, coded(AlterErrorCode.CONFIG_FORMAT, line=line[:_SHOWN]))
                elif key in found:
                    self._refuse(name, coded(AlterErrorCode.CONFIG_TWICE, key=key[:_SHOWN]))
                elif fault := find_edit_fault(None, key, self._keys.get(key), value, self._rules):
                    self._refuse(name, fault)
                else:
                    found[key] = value
        return found

    def _check_partitions(self, wanted: TopicAlteration) -> None:
        if wanted.assignment and len(wanted.topics) != 1:
            self._refuse("assignment", coded(AlterErrorCode.ASSIGNMENT_OF_ONE, topics=len(wanted.topics)))
            return
        if wanted.count is not None:
            widest = max(wanted.topics, key=lambda topic: topic.partition_count)
            growths = [wanted.count - topic.partition_count for topic in wanted.topics]
            if min(growths) < 0:
                fewer = {"topic": widest.name, "partitions": widest.partition_count}
                self._refuse("partitions", coded(AlterErrorCode.FEWER_PARTITIONS, **fewer))
            elif sum(growths) > MOST_ADDED or max(growths) > MOST_PARTITIONS:
                most = MOST_ADDED if max(growths) <= MOST_PARTITIONS else MOST_PARTITIONS
                self._refuse("partitions", coded(AlterErrorCode.TOO_MANY_PARTITIONS, added=sum(growths), most=most))
        expected = wanted.count or wanted.topics[0].partition_count
        if wanted.assignment and len(wanted.assignment) != expected:
            lengths = {"given": len(wanted.assignment), "expected": expected}
            self._refuse("assignment", coded(AlterErrorCode.ASSIGNMENT_LENGTH, **lengths))

    def _check_min_isr(self, wanted: TopicAlteration) -> None:
        """Producers with acks=all could not write to a topic with fewer replicas than have to be in sync."""
        value = wanted.configs.get(MIN_ISR)
        if value is None and MIN_ISR in wanted.configs:
            value = (self._keys[MIN_ISR].inherited or (None,))[0]
        typed = None if value is None else read_number(value)
        for topic in wanted.topics:
            factor = wanted.factor or topic.replication_factor
            if typed is not None and typed > factor:
                self._refuse(
                    "removed" if wanted.configs[MIN_ISR] is None else "added",
                    coded(TopicErrorCode.MIN_ISR_TOO_HIGH, min_isr=int(typed), factor=factor),
                )
                return
            stays = MIN_ISR not in wanted.configs and topic.min_isr is not None and topic.min_isr > factor
            if stays and factor < topic.replication_factor:
                told = {"topic": topic.name, "factor": factor, "min_isr": topic.min_isr}
                self._refuse("factor", coded(AlterErrorCode.MIN_ISR_STAYS, **told))
                return

    def _check_factor_rule(self, wanted: TopicAlteration) -> None:
        """Refuse a factor that the topic rules of the cluster do not allow, where it is another one than now."""
        if any(topic.replication_factor != wanted.factor for topic in wanted.topics):
            for broken in find_broken(self._rules, RuledItem("", factor=wanted.factor)):
                self._refuse("assignment" if wanted.assignment else "factor", reason_message(broken))

    def _check_moves(self, topics: list[TopicState]) -> None:
        moving = sorted(moving_topics(self._cluster, [topic.name for topic in topics]))
        if moving:
            self._refuse("topics", coded(AlterErrorCode.TOPIC_MOVING, topic=moving[0]))

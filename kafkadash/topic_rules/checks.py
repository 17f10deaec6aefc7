"""Judgement of changes by the topic rules of their cluster, from stored rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, CodedReason, coded, reason_message
from kafkadash.kafka.api import ConfigType
from kafkadash.kafka.config_values import MIN_ISR
from kafkadash.monitoring.freshness import freshness_of
from kafkadash.monitoring.models import BrokerState, CollectorKind, CollectorRun, ConfigCatalog
from kafkadash.topic_rules.errors import RuleCheckTitle, RuleErrorCode
from kafkadash.topic_rules.models import load_rules
from kafkadash.topic_rules.name_match import PatternFault, PatternTimeout, find_unmatched
from kafkadash.topic_rules.reasons import UNJUDGED, NameNotAllowed, NameUnjudged
from kafkadash.topic_rules.rules import RuledItem, TopicRuleSet, find_broken, find_conflicts

CODE = "topic_rules"
MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Why items break the rules, by subject, or why nobody can tell. ``judged``: whether there are rules at all."""

    judged: bool = False
    broken: Mapping[str, Sequence[CodedReason]] = field(default_factory=dict)

    @property
    def first(self) -> dict[str, CodedReason]:
        """Return the first reason of each subject, one that is certain before one that is not."""
        return {
            subject: next((each for each in reasons if not isinstance(each, UNJUDGED)), reasons[0])
            for subject, reasons in self.broken.items()
        }


def judge_items(cluster: Cluster, items: Sequence[RuledItem], now: datetime) -> RuleVerdict:
    """Judge items by the topic rules of a cluster. At most three queries, and those of the pattern for new topics."""
    rules = load_rules(cluster)
    if rules == TopicRuleSet():
        return RuleVerdict()
    new = [item.new_topic for item in items if item.new_topic]
    inherited = _load_inherited(cluster, now) if new and rules.ranges else {}
    names = _judge_names(rules.name_pattern, new) if new and rules.name_pattern else {}
    broken = {}
    for item in items:
        known = replace(item, inherited=inherited) if item.new_topic else item
        reasons = [*find_broken(rules, known)]
        if item.new_topic in names:
            reasons.insert(0, names[item.new_topic])
        if reasons:
            broken[item.subject] = reasons
    return RuleVerdict(judged=True, broken=broken)


def _judge_names(pattern: str, names: Sequence[str]) -> dict[str, CodedReason]:
    try:
        return {name: NameNotAllowed(name, pattern) for name in find_unmatched(pattern, names)}
    except (PatternTimeout, PatternFault):
        return dict.fromkeys(names, NameUnjudged(pattern))


def _load_inherited(cluster: Cluster, now: datetime) -> dict[str, str | None]:
    """Return the values that a new topic inherits, where known: none from configs that were read too long ago."""
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.CONFIGS).first()
    return {} if freshness_of(run, now).stale else list_inherited(load_catalog(cluster))


def load_catalog(cluster: Cluster) -> ConfigCatalog:
    """Return the configs that topics and brokers have; none before they were read. One query."""
    return ConfigCatalog.objects.filter(cluster=cluster).first() or ConfigCatalog()


def list_inherited(catalog: ConfigCatalog) -> dict[str, str | None]:
    """Return the values that a new topic inherits, where known.

    Where no topic tells what it inherits, the brokers tell their min.insync.replicas; other configs have other names
    there, and several of them make one value of a topic.
    """
    of_broker = (catalog.default or {}).get(MIN_ISR) or catalog.brokers.get(MIN_ISR, [None])[-1]
    told = {MIN_ISR: of_broker} | {key: row[3] for key, row in catalog.topics.items() if row[3]}
    return {key: inherited[0] for key, inherited in told.items() if inherited}


def check_rules(
    cluster: Cluster, items: Sequence[RuledItem], now: datetime, *, restores: bool
) -> tuple[ChangeCheck, ...]:
    """Return the check of a change against the topic rules; none where there are no rules.

    Content: what breaks a rule is not submitted, and what was approved before the rule makes the change stale. A
    rollback (``restores``) may give back values that are outside the rules; the check tells them.
    """
    verdict = judge_items(cluster, items, now)
    if not verdict.judged:
        return ()
    first = verdict.first
    failed = {subject: why for subject, why in first.items() if not isinstance(why, UNJUDGED)}
    problems = tuple(describe_broken(subject, why) for subject, why in [*(failed or first).items()][:MOST_PROBLEMS])
    result = CheckResult.FAILED if failed else CheckResult.UNKNOWN if first else CheckResult.PASSED
    if restores and first:
        result = CheckResult.PASSED
    title = coded(RuleCheckTitle.RESTORED if restores and first else RuleCheckTitle.KEPT)
    figure = f"{len(items) - len(first):,} of {len(items):,}"
    return (ChangeCheck(CODE, CheckSubject.CONTENT, result, title, figure, problems, len(first)),)


def note_left_out(broken: Mapping[str, CodedReason]) -> list[CodedMessage]:
    """Return a message for each reason why items are left out of a plan."""
    subjects: dict[CodedReason, list[str]] = {}
    for subject, why in broken.items():
        subjects.setdefault(why, []).append(subject)
    return [
        coded(RuleErrorCode.LEFT_OUT, items=len(names), first=names[0], why=reason_message(why))
        for why, names in [*subjects.items()][:MOST_PROBLEMS]
    ]


def describe_broken(subject: str, why: CodedReason) -> CodedMessage:
    return coded(RuleErrorCode.BROKEN, item=subject, why=reason_message(why))


def load_conflicts(cluster: Cluster) -> tuple[list[CodedMessage], list[CodedMessage]]:
    """Return which rules no topic can keep, and which configs new topics have to set. One query without rules."""
    rules = load_rules(cluster)
    if rules == TopicRuleSet():
        return [], []
    brokers = BrokerState.objects.filter(cluster=cluster, gone_at=None).count() or None
    catalog = load_catalog(cluster)
    types = {key: ConfigType(row[0]) for key, row in catalog.topics.items()}
    return find_conflicts(rules, brokers, types, list_inherited(catalog))

"""Topic rules of clusters."""

from __future__ import annotations

from django.db import models

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.config_values import MIN_ISR
from kafkadash.topic_rules.rules import KeyRule, KeyScope, TopicRuleSet, ValueRange


class StoredKeyScope(models.TextChoices):
    """``rules.KeyScope`` with the words that pages show."""

    ALL = KeyScope.ALL.value, "all"
    ONLY = KeyScope.ONLY.value, "only these"
    EXCEPT = KeyScope.EXCEPT.value, "all except these"


class TopicRules(models.Model):
    """Topic rules of one cluster; ``rules.TopicRuleSet`` says what they mean.

    ``version`` counts changes: an editor names the one that was on the page. ``bounds``: {config: [least, most]} of
    topics, null where there is no limit, without min.insync.replicas.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="topic_rules")
    version = models.PositiveIntegerField(default=0)
    name_pattern = models.CharField(max_length=200, blank=True, help_text="regular expression of whole names")
    factor_least = models.PositiveSmallIntegerField(null=True, blank=True)
    factor_most = models.PositiveSmallIntegerField(null=True, blank=True)
    min_isr_least = models.PositiveSmallIntegerField(null=True, blank=True)
    min_isr_most = models.PositiveSmallIntegerField(null=True, blank=True)
    topic_scope = models.CharField(max_length=8, choices=StoredKeyScope, default=StoredKeyScope.ALL)
    topic_keys = models.JSONField(default=list, blank=True)
    broker_scope = models.CharField(max_length=8, choices=StoredKeyScope, default=StoredKeyScope.ALL)
    broker_keys = models.JSONField(default=list, blank=True)
    bounds = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name_plural = "topic rules"

    def __str__(self) -> str:
        return f"topic rules of cluster {self.cluster_id}"

    @property
    def rule_set(self) -> TopicRuleSet:
        ranges = {key: ValueRange(*limits) for key, limits in self.bounds.items()}
        min_isr = ValueRange(self.min_isr_least, self.min_isr_most)
        return TopicRuleSet(
            self.name_pattern,
            ValueRange(self.factor_least, self.factor_most),
            {MIN_ISR: min_isr, **ranges} if min_isr != ValueRange() else ranges,
            KeyRule(KeyScope(self.topic_scope), frozenset(self.topic_keys)),
            KeyRule(KeyScope(self.broker_scope), frozenset(self.broker_keys)),
        )


def load_rules(cluster: Cluster) -> TopicRuleSet:
    """Return the rules of a cluster; those without any where none are stored. One query."""
    stored = TopicRules.objects.filter(cluster=cluster).first()
    return stored.rule_set if stored else TopicRuleSet()

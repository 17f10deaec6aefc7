"""The shape and the weights of a cluster as last seen: cluster, topics, brokers, throttles, capabilities."""

from __future__ import annotations

from django.db import models

from kafkadash.clusters.models import Cluster


class ClusterState(models.Model):
    """Figures of a whole cluster as last seen, one row, written when they change. Empty means not known."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="state")
    brokers = models.PositiveIntegerField(null=True)
    brokers_fenced = models.PositiveIntegerField(null=True)
    brokers_gone = models.PositiveIntegerField(null=True, help_text="hold replicas, but are not registered")
    racks = models.PositiveIntegerField(null=True)
    topics = models.PositiveIntegerField(null=True)
    partitions = models.PositiveIntegerField(null=True)
    offline_partitions = models.PositiveIntegerField(null=True)
    under_replicated = models.PositiveIntegerField(null=True)
    under_replicated_moving = models.PositiveIntegerField(null=True, help_text="of these, explained by a reassignment")
    offline_replicas = models.PositiveIntegerField(null=True)
    under_min_isr = models.PositiveIntegerField(null=True, help_text="partitions, offline ones included")
    at_min_isr = models.PositiveIntegerField(null=True, help_text="partitions")
    at_min_isr_moving = models.PositiveIntegerField(null=True, help_text="of these, explained by a reassignment")
    rack_violations = models.PositiveIntegerField(null=True, help_text="partitions; empty where racks are not known")
    brokers_without_rack = models.PositiveIntegerField(null=True)
    preferred_leaders = models.PositiveIntegerField(null=True, help_text="partitions led by their first replica")
    orphan_throttles = models.PositiveIntegerField(null=True, help_text="resources with a throttle that nothing needs")
    hidden_topics = models.PositiveIntegerField(
        null=True, help_text="on the disks, but not shown to our principal; at least so many"
    )
    kafka_version = models.CharField(max_length=32, blank=True, help_text="as far as API versions tell")

    def __str__(self) -> str:
        return f"state of cluster {self.cluster_id}"


class TopicState(models.Model):
    """Shape of a topic: assignment, leaders and ISR, packed; written only when it changed.

    ``partitions``, format 1: a list of [partition, leader or null, leader epoch or null, [replicas], [isr],
    [offline]], sorted by partition. ``config``: {key: [value, source]} of every key whose source is not the default of
    Kafka; sources as ``ConfigSource``, a sensitive value is null.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    topic_id = models.CharField(max_length=36, help_text="Kafka's topic id, or the name before Kafka 2.8")
    name = models.CharField(max_length=249)
    internal = models.BooleanField(default=False)
    format = models.PositiveSmallIntegerField(default=1)
    partitions = models.JSONField()
    shape = models.CharField(max_length=32, help_text="digest of name and partitions, to find what changed")
    partition_count = models.PositiveIntegerField()
    replication_factor = models.PositiveSmallIntegerField(help_text="of the widest partition")
    offline_partitions = models.PositiveIntegerField(default=0)
    under_replicated = models.PositiveIntegerField(default=0)
    offline_replicas = models.PositiveIntegerField(default=0, help_text="on brokers or directories that are away")
    preferred_leaders = models.PositiveIntegerField(null=True, help_text="partitions led by their first replica")
    min_isr = models.PositiveIntegerField(null=True, help_text="min.insync.replicas in force; empty if not read")
    under_min_isr = models.PositiveIntegerField(null=True, help_text="partitions; empty while min_isr is not known")
    at_min_isr = models.PositiveIntegerField(null=True, help_text="partitions with exactly min_isr in sync")
    rack_violations = models.PositiveIntegerField(
        null=True, help_text="partitions (domain.rack_spread); empty where not all brokers name their rack"
    )
    config = models.JSONField(null=True, help_text="what is not default, see above; empty: not read")
    config_shape = models.CharField(max_length=32, blank=True, help_text="digest of config and min_isr")
    size_bytes = models.BigIntegerField(null=True, help_text="all replicas, 2 significant digits; empty if not known")
    changed_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "topic_id"], name="one_state_per_topic"),)
        indexes = (models.Index(fields=["cluster", "name"], name="topic_name"),)

    def __str__(self) -> str:
        return self.name


class BrokerState(models.Model):
    """A broker as last seen; the row stays when it goes, with ``gone_at`` set."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    broker_id = models.IntegerField()
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField()
    rack = models.CharField(max_length=255, null=True)  # noqa: DJ001  None: the broker has no rack; '' is a rack
    fenced = models.BooleanField(null=True)
    replicas = models.PositiveIntegerField(default=0)
    leaders = models.PositiveIntegerField(default=0)
    offline_replicas = models.PositiveIntegerField(default=0)
    preferred = models.PositiveIntegerField(null=True, help_text="partitions whose first replica is here")
    config = models.JSONField(null=True, help_text="as TopicState.config; empty: not read")
    config_at = models.DateTimeField(null=True, help_text="when the config was last read or found unchanged")
    release = models.CharField(max_length=32, blank=True, help_text="as far as its API versions tell")
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)
    silent_since = models.DateTimeField(null=True, help_text="since when it does not answer us; empty: it does")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "broker_id"], name="one_state_per_broker"),)
        ordering = ("broker_id",)

    def __str__(self) -> str:
        return f"broker {self.broker_id}"


class BrokerWeights(models.Model):
    """Sizes of all replicas a broker hosts, one packed row, overwritten by each refresh.

    ``data``, format 1: zlib of JSON {topic: {partition: bytes}}, current replicas only.
    ``dirs``: list of {path, total_bytes, usable_bytes, replica_bytes, replicas, copies, cordoned, error}; None where
    not known. ``copies`` are replicas on their way there from another directory of the broker.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    broker_id = models.IntegerField()
    format = models.PositiveSmallIntegerField(default=1)
    data = models.BinaryField()
    dirs = models.JSONField(default=list)
    replica_bytes = models.BigIntegerField()
    taken_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "broker_id"], name="one_weight_per_broker"),)

    def __str__(self) -> str:
        return f"weights of broker {self.broker_id}"


class ConfigSource(models.TextChoices):
    """Where a config value comes from (Kafka's ConfigEntry.ConfigSource)."""

    TOPIC = "topic", "topic"
    BROKER = "broker", "broker"
    CLUSTER_DEFAULT = "cluster_default", "cluster default"
    STATIC = "static", "static broker config"
    DEFAULT = "default", "default"
    OTHER = "other", "other"


class ThrottledResource(models.TextChoices):
    """What a throttle is set on. The rate of a broker may come from the cluster default."""

    CLUSTER = "cluster", "cluster default"
    BROKER = "broker", "broker"
    TOPIC = "topic", "topic"


class ThrottleState(models.Model):
    """One replication throttle that is set (KIP-73): a rate of a broker or of all, or the list of replicas of a topic.

    Only what is set has a row. A rate's ``value`` is bytes per second as text, a list's ``partition:broker,…`` or
    ``*``; an empty list is off, but set. ``read_at`` ages when the broker cannot be asked.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    resource = models.CharField(max_length=8, choices=ThrottledResource)
    name = models.CharField(max_length=249, blank=True, help_text="broker id or topic; empty for the cluster default")
    key = models.CharField(max_length=64)
    value = models.TextField(blank=True)
    source = models.CharField(max_length=16, choices=ConfigSource)
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    read_at = models.DateTimeField(help_text="last time it was read")
    unneeded_since = models.DateTimeField(null=True, help_text="since when nothing in flight needs it, as far as seen")
    orphan = models.BooleanField(default=False, help_text="in force, needed by nothing, seen so in two refreshes")
    claimed_by = models.CharField(max_length=64, blank=True)
    claim_url = models.CharField(max_length=255, blank=True)
    claimed_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True, help_text="when who claims it took it away, not read since")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "resource", "name", "key"], name="one_state_per_throttle"),
        )

    def __str__(self) -> str:
        return f"{self.key} of {self.resource} {self.name}".strip()


class Capabilities(models.Model):
    """What the software of a cluster can do, from ApiVersions of every broker that answered.

    ``apis``: {API key: [lowest, highest]} that all of them offer. ``features``: {name: {finalized, supported: [lowest,
    highest]}} (KIP-584); ``finalized`` is null where no level is, ``supported`` where not all brokers know the feature.
    ``releases``: {broker: oldest release it can be}; a broker that did not answer is what it was the last time.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="capabilities")
    format = models.PositiveSmallIntegerField(default=1)
    apis = models.JSONField(default=dict)
    features = models.JSONField(default=dict)
    releases = models.JSONField(default=dict)
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "capabilities"

    def __str__(self) -> str:
        return f"capabilities of cluster {self.cluster_id}"

"""What was seen in the clusters. Pages read only these rows; only collectors write them.

Packed columns carry the layout's number in ``format``; readers know the current one and the one before.
Ages are always those of the data (``taken_at`` in an answer), not of the row.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster


class Kind(models.TextChoices):
    """The kinds of facts, each with its own interval (``settings.COLLECT_INTERVALS``)."""

    METADATA = "metadata", "topics and brokers"
    REASSIGNMENTS = "reassignments", "reassignments"
    QUORUM = "quorum", "controller quorum"
    LOG_DIRS = "log_dirs", "log directories"
    VERSIONS = "versions", "API versions"


class CollectorRun(models.Model):
    """The collector of one kind on one cluster: when it is due, who holds it (lease and epoch), how it last went.

    Taking the lease adds one to ``epoch``; every write transaction of the holder begins by finding that epoch
    unchanged, so a collector that slept past its lease can write nothing.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="collector_runs")
    kind = models.CharField(max_length=16, choices=Kind)
    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    seq = models.PositiveBigIntegerField(default=0, help_text="number of the last stored refresh of this epoch")
    interval_s = models.FloatField(default=30, help_text="interval in force, in seconds")
    attempted_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True, help_text="when the newest stored data was taken")
    failures = models.PositiveIntegerField(default=0, help_text="failed refreshes since the last good one")
    last_error = models.TextField(blank=True)
    last_failure = models.CharField(
        max_length=32, blank=True, help_text="class of the last failure (kafka.port), empty after a good refresh"
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "kind"], name="one_run_per_kind"),)
        indexes = (models.Index(fields=["next_at"], name="run_due"),)

    def __str__(self) -> str:
        return f"{self.kind} of cluster {self.cluster_id}"


class Collection(models.Model):
    """One refresh, good or not. ``not_answered`` keeps missing apart from zero."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    kind = models.CharField(max_length=16, choices=Kind)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True, help_text="when the data was taken; empty when there is none")
    duration_ms = models.PositiveIntegerField()
    ok = models.BooleanField()
    not_answered = models.JSONField(default=list, help_text="ids of brokers that were asked and did not answer")
    errors = models.JSONField(default=list, help_text="sentences, at most 20")
    rows = models.PositiveIntegerField(null=True, help_text="facts in the answer, of the kind's own grain")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "kind", "epoch", "seq"], name="one_collection_per_seq"),
        )
        indexes = (
            models.Index(fields=["cluster", "kind", "-started_at"], name="collection_newest"),
            models.Index(fields=["started_at"], name="collection_age"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.epoch}.{self.seq} of cluster {self.cluster_id}"


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
    kafka_version = models.CharField(max_length=32, blank=True, help_text="as far as API versions tell")

    def __str__(self) -> str:
        return f"state of cluster {self.cluster_id}"


class TopicState(models.Model):
    """Shape of a topic: assignment, leaders and ISR, packed; written only when it changed.

    ``partitions``, format 1: a list of [partition, leader or null, leader epoch or null, [replicas], [isr],
    [offline]], sorted by partition.
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
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "broker_id"], name="one_state_per_broker"),)
        ordering = ("broker_id",)

    def __str__(self) -> str:
        return f"broker {self.broker_id}"


class BrokerWeights(models.Model):
    """Sizes of all replicas a broker hosts, one packed row, overwritten by each refresh.

    ``data``, format 1: zlib of JSON {topic: {partition: bytes}}, current replicas only.
    ``dirs``: list of {path, total_bytes, usable_bytes, replica_bytes, cordoned, error}; None where not known.
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


class Outcome(models.TextChoices):
    """How a reassignment ended. Leaving Kafka's listing is not an outcome: the partition itself is read."""

    RUNNING = "running", "running"
    COMPLETED = "completed", "completed"
    CANCELLED = "cancelled", "cancelled"
    SUPERSEDED = "superseded", "superseded"
    TOPIC_DELETED = "topic_deleted", "topic deleted"
    UNKNOWN = "unknown", "unknown"


class StartedFrom(models.TextChoices):
    """Where the started interval comes from."""

    FIRST_SEEN = "first_seen", "first seen"
    SUBMITTED = "submitted", "submitted by kafkadash"
    ZK_CTIME = "zk_ctime", "creation of the legacy znode"
    ZK_MTIME = "zk_mtime", "change of the topic's znode"


class ReassignmentSnapshot(models.Model):
    """One reassignment of one partition as seen in the cluster (KIP-240). Observed facts live only here.

    It began after ``started_after`` (empty: nobody looked before) and not later than ``started_before``.
    ``replicas_progress``, format 1: one object per adding replica: {broker, log_end, percent, in_isr, lag_records,
    taken_at, error}; figures are null where the broker did not answer. ``percent`` of the row is the least of them.
    ``rate_state`` is what the next sample needs to go on measuring the rate.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    public_id = models.CharField(max_length=32, unique=True)
    topic_id = models.CharField(max_length=36)
    topic = models.CharField(max_length=249)
    partition = models.PositiveIntegerField()
    replicas = models.JSONField()
    adding = models.JSONField()
    removing = models.JSONField()
    target = models.JSONField()
    original = models.JSONField(help_text="replicas before, as far as seen; order only if seen before the start")
    started_after = models.DateTimeField(null=True)
    started_before = models.DateTimeField()
    started_from = models.CharField(max_length=16, choices=StartedFrom, default=StartedFrom.FIRST_SEEN)
    continuity_gap = models.BooleanField(default=False, help_text="nobody looked for longer than two intervals")
    leader = models.IntegerField(null=True)
    leader_epoch = models.IntegerField(null=True)
    leader_log_end = models.BigIntegerField(null=True)
    leader_log_start = models.BigIntegerField(null=True)
    format = models.PositiveSmallIntegerField(default=1)
    replicas_progress = models.JSONField(default=list)
    percent = models.FloatField(null=True)
    sampled_at = models.DateTimeField(null=True, help_text="when the offsets behind percent were read")
    size_bytes = models.BigIntegerField(null=True, help_text="the leader's log, from its last log directory read")
    size_taken_at = models.DateTimeField(null=True)
    rate_bytes = models.FloatField(null=True, help_text="bytes per second over the last minute, estimated")
    rate_state = models.JSONField(null=True)
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.RUNNING)
    ended_at = models.DateTimeField(null=True, help_text="when the end was seen")
    last_seen_at = models.DateTimeField()
    claimed_by = models.CharField(max_length=64, blank=True)
    claim_url = models.CharField(max_length=255, blank=True)
    claimed_at = models.DateTimeField(null=True)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "topic_id", "partition"],
                condition=Q(outcome=Outcome.RUNNING),
                name="one_running_reassignment",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "outcome", "-ended_at"], name="reassignment_ended"),
            models.Index(fields=["cluster", "topic", "partition"], name="reassignment_partition"),
        )

    def __str__(self) -> str:
        return f"{self.public_id} {self.topic}-{self.partition} {self.outcome}"


class QuorumSnapshot(models.Model):
    """One describe-quorum answer (KIP-836). ``leader_id`` is the active controller.

    ``replicas``, format 1: a list of {id, directory_id, voter, log_end_offset, last_fetch_ms, last_caught_up_ms};
    milliseconds on the leader's clock, null where unknown.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    taken_at = models.DateTimeField()
    leader_id = models.IntegerField()
    leader_epoch = models.BigIntegerField()
    high_watermark = models.BigIntegerField(null=True, help_text="empty while a new leader does not know it")
    format = models.PositiveSmallIntegerField(default=1)
    replicas = models.JSONField()
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "epoch", "seq"], name="one_quorum_snapshot_per_seq"),)
        indexes = (
            models.Index(fields=["cluster", "-taken_at"], name="quorum_newest"),
            models.Index(fields=["taken_at"], name="quorum_age"),
        )

    def __str__(self) -> str:
        return f"quorum of cluster {self.cluster_id} at {self.taken_at:%H:%M:%S}"

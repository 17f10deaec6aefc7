"""Facts seen in the clusters, and how they were collected. Pages read only these rows; only collectors write them.

Reassignments are those of KIP-240, quorum answers those of KIP-836. Packed columns carry the layout's number in
``format``; readers know the current layout and the one before. Ages are always those of the data (``taken_at`` in an
answer), not of the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import CodedMessage, read_message, stored_message


class CollectorKind(models.TextChoices):
    """The kinds of facts, each with its own interval (``monitoring.collection.interval_for``)."""

    ANSWERS = "answers", "broker responses"
    METADATA = "metadata", "topics and brokers"
    REASSIGNMENTS = "reassignments", "reassignments"
    QUORUM = "quorum", "controller quorum"
    LOG_DIRS = "log_dirs", "log directories"
    CONFIGS = "configs", "configs and throttles"
    VERSIONS = "versions", "API versions and features"
    GROUPS = "groups", "consumer groups"
    TRAFFIC = "traffic", "records and bytes in"
    CATCH_UP = "catch_up", "replicas catching up"
    CANARY = "canary", "canary records"
    TRANSACTIONS = "transactions", "open transactions"


ON_REQUEST = frozenset({CollectorKind.CANARY})
"""Kinds that are collected only where somebody asked for it: their ``CollectorRun`` exists there."""


def failure_kind_choices() -> list[tuple[str, str]]:
    """Named by migrations, so that a new kind needs none."""
    return [(kind.value, kind.value) for kind in FailureKind]


class CollectorRun(models.Model):
    """The collector of one kind on one cluster: when it is due, who holds it (lease and epoch), how it last went.

    Taking the lease adds one to ``epoch``; every write transaction of the holder begins by finding that epoch
    unchanged, so a collector that slept past its lease can write nothing.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="collector_runs")
    kind = models.CharField(max_length=16, choices=CollectorKind)
    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    seq = models.PositiveBigIntegerField(default=0, help_text="number of the last stored refresh of this epoch")
    interval_s = models.FloatField(default=30, help_text="interval in force, in seconds")
    attempted_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True, help_text="when the newest stored data was taken")
    complete_at = models.DateTimeField(null=True, help_text="the same of data without gaps and errors")
    failures = models.PositiveIntegerField(default=0, help_text="failed refreshes since the last good one")
    refusals = models.PositiveIntegerField(
        default=0, db_default=0, help_text="refreshes that ended with refused credentials since the last good one"
    )
    overruns = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="leases in a row that ran out before their refresh was stored"
    )
    processor_s = models.FloatField(
        null=True, help_text="processor time of a refresh in seconds, over the last few; empty before the first"
    )
    last_error_code = models.CharField(max_length=64, blank=True)
    last_error_params = models.JSONField(default=dict, blank=True)
    last_failure = models.CharField(
        max_length=32, choices=failure_kind_choices, blank=True, help_text="empty after a good refresh"
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "kind"], name="one_run_per_kind"),)
        indexes = (models.Index(fields=["next_at"], name="run_due"),)

    def __str__(self) -> str:
        return f"{self.kind} of cluster {self.cluster_id}"

    @property
    def last_error(self) -> CodedMessage | None:
        """Message that says why the last refresh failed; None after a good one."""
        return stored_message(self.last_error_code, self.last_error_params)


class Collection(models.Model):
    """Result of one refresh, also of a failed one. ``not_answered`` distinguishes missing answers from zero."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    kind = models.CharField(max_length=16, choices=CollectorKind)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True, help_text="when the data was taken; empty when there is none")
    duration_ms = models.PositiveIntegerField()
    ok = models.BooleanField()
    not_answered = models.JSONField(default=list, help_text="ids of brokers that were asked and did not answer")
    errors = models.JSONField(default=list, help_text="messages as of CodedMessage.as_json, at most 20")
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

    @property
    def messages(self) -> list[CodedMessage]:
        """``errors``, to be told to a person."""
        return [read_message(each) for each in self.errors]


class GroupState(models.Model):
    """Consumer group with Kafka's description and the result of its last samples. Offsets and lag are records.

    ``key`` is a digest of the name (``monitoring.groups.names.key_of``): Kafka accepts any name of any length.
    ``times``: seconds since the epoch of the samples, oldest first; their offsets are in ``GroupWindow``. ``counts``:
    {state (``groups.rules.LagState``): partitions}. ``topics``: {topic: [partitions, lag or null, worst state]}.
    A group whose brokers do not answer keeps its row and ages; a group that Kafka no longer lists has ``gone_at``.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    key = models.CharField(max_length=32)
    name = models.TextField(blank=True)
    state = models.CharField(max_length=32, help_text="Kafka's word")
    type = models.CharField(max_length=16, blank=True, help_text="Kafka's word: Classic or Consumer (KIP-848)")
    assignor = models.TextField(blank=True)
    coordinator = models.IntegerField(null=True)
    members = models.PositiveIntegerField(null=True, help_text="empty where the group could not be described")
    members_since = models.DateTimeField(null=True, help_text="since when these are its members, as far as seen")
    verdict = models.CharField(max_length=8, blank=True, help_text="of all; empty where nothing is committed")
    worst = models.CharField(max_length=8, blank=True, help_text="state of the worst partition")
    rank = models.PositiveSmallIntegerField(help_text="of the verdict, the worst is 0")
    verdict_since = models.DateTimeField(help_text="since when the group has its worst state")
    allowed_lag = models.BigIntegerField(default=0)
    partitions = models.PositiveIntegerField(help_text="with a commit, or assigned to a member")
    counts = models.JSONField(default=dict)
    topics = models.JSONField(default=dict)
    lag = models.BigIntegerField(null=True, help_text="of all partitions whose lag is known; empty where it is of none")
    lag_unknown = models.PositiveIntegerField(
        default=0, help_text="partitions whose lag is not known, those without a commit included"
    )
    in_doubt = models.PositiveIntegerField(
        default=0, help_text="partitions that cannot be judged now, and in which more waited than is allowed"
    )
    worst_topic = models.TextField(blank=True)
    worst_partition = models.IntegerField(null=True)
    worst_lag = models.BigIntegerField(null=True)
    time_lag_s = models.FloatField(null=True, help_text="of the partition where it is longest")
    rest_time_lag_s = models.FloatField(null=True, help_text="the longest of the others")
    read_rate = models.FloatField(null=True, help_text="records per second over the window, of all partitions")
    written_rate = models.FloatField(null=True)
    drain_s = models.FloatField(null=True, help_text="of the partition that takes longest")
    never_drains = models.BooleanField(default=False)
    lost = models.BigIntegerField(null=True, help_text="records that were deleted before they were committed, at most")
    held = models.JSONField(
        default=list,
        db_default=[],
        help_text="partitions that an open transaction holds back, as of monitoring.groups.held_reads",
    )
    times = models.JSONField(default=list)
    taken_at = models.DateTimeField()
    point_at = models.DateTimeField(null=True, help_text="since when the figures are those of its newest GroupLagPoint")
    first_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)

    class Meta:
        # No column that a refresh changes is indexed, so that an update writes one row and no index; a list reads all
        # groups of its cluster through the constraint's index.
        constraints = (models.UniqueConstraint(fields=["cluster", "key"], name="one_state_per_group"),)

    def __str__(self) -> str:
        return self.name


class UnjudgedGroup(models.Model):
    """Group without committed offsets, so that its lag is not judged: a share group, or one of which Kafka tells no
    more than that it exists.

    ``key`` as of ``GroupState``. The row goes when Kafka no longer lists the group. ``offsets`` and ``member_rows`` of
    a share group are packed (``monitoring.groups.shares``): offsets as of ``read_at``, which is empty as long as they
    were never read. ``lag`` is in records.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    key = models.CharField(max_length=32)
    name = models.TextField(blank=True)
    kind = models.CharField(max_length=32, help_text="Kafka's word for its type or protocol, such as share")
    is_share = models.BooleanField(default=False, db_default=False)
    state = models.CharField(max_length=32, help_text="Kafka's word")
    coordinator = models.IntegerField(null=True)
    members = models.PositiveIntegerField(null=True, help_text="empty where the group was not described")
    partitions = models.PositiveIntegerField(
        default=0, db_default=0, help_text="share partitions, and those assigned to a member"
    )
    topics = models.JSONField(default=list, db_default=[])
    lag = models.BigIntegerField(null=True, help_text="of all partitions whose lag Kafka tells; empty if of none")
    lag_unknown = models.PositiveIntegerField(default=0, db_default=0, help_text="partitions whose lag is not known")
    offsets = models.BinaryField(default=bytes, db_default=b"")
    member_rows = models.BinaryField(default=bytes, db_default=b"")
    first_seen_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True, help_text="when Kafka last listed the group")
    read_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "key"], name="one_row_per_unjudged_group"),)

    def __str__(self) -> str:
        return self.name


class GroupWindow(models.Model):
    """The last samples of a group's partitions, and its members, packed; written only when they differ.

    ``data``: ``monitoring.groups.window.pack_window``, which names its own format. ``members``, format 1: zlib of JSON
    [[member id, client id, host, instance id or null, {topic: [partitions]}]].
    """

    group = models.OneToOneField(GroupState, on_delete=models.CASCADE, primary_key=True, related_name="window")
    format = models.PositiveSmallIntegerField(default=1)
    data = models.BinaryField()
    members = models.BinaryField()

    def __str__(self) -> str:
        return f"window of group {self.group_id}"


class GroupLagPoint(models.Model):
    """The lag of a group from ``since`` to ``at``: seen to be this at both times and at every refresh between.

    The newest holds on up to its group's ``taken_at``. A group whose figures rest writes none.
    """

    group = models.ForeignKey(GroupState, on_delete=models.CASCADE)
    since = models.DateTimeField()
    at = models.DateTimeField()
    worst = models.CharField(max_length=8)
    lag = models.BigIntegerField(null=True)
    worst_lag = models.BigIntegerField(null=True)
    time_lag_s = models.FloatField(null=True)
    rest_time_lag_s = models.FloatField(null=True)

    class Meta:
        indexes = (
            models.Index(fields=["group", "at"], name="lag_point_of_group"),
            models.Index(fields=["at"], name="lag_point_age"),
        )

    def __str__(self) -> str:
        return f"lag of group {self.group_id} at {self.at:%H:%M:%S}"


class LogEndWindow(models.Model):
    """Log ends of all partitions at the last refresh of traffic, one row per shard of topics.

    ``data``, format 1: zlib of JSON {topic: [topic id, {partition: [end, seconds since the epoch]}]}.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    shard = models.PositiveSmallIntegerField()
    format = models.PositiveSmallIntegerField(default=1)
    data = models.BinaryField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "shard"], name="one_window_per_shard"),)

    def __str__(self) -> str:
        return f"log ends {self.shard} of cluster {self.cluster_id}"


class TransactionSnapshot(models.Model):
    """Last stable offsets and open transactions of a cluster at its last reading, one row.

    ``gaps``, format 1: {topic: [topic id, {partition: [last stable offset, log end, first seen, read]}]}, the
    ``MOST_GAPS`` that stand still for longest; times in seconds since the epoch. ``transactions``: those in partitions
    whose last stable offset stood still since the reading before, as ``StuckTransaction.as_json``
    (``monitoring.transactions.rules``), hanging ones first. At the first reading all gaps are ``unasked``: it cannot
    tell which of them stand still.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="transactions")
    format = models.PositiveSmallIntegerField(default=1)
    taken_at = models.DateTimeField()
    gaps = models.JSONField(default=dict)
    gap_count = models.PositiveIntegerField(help_text="partitions whose last stable offset is below the log end")
    unread = models.PositiveIntegerField(help_text="partitions whose offsets were not read")
    unasked = models.PositiveIntegerField(help_text="partitions with a gap that were too many to ask for producers")
    transactions = models.JSONField(default=list)
    transaction_count = models.PositiveIntegerField()
    limit_s = models.FloatField(null=True, help_text="highest transaction.max.timeout.ms of the brokers in seconds")

    def __str__(self) -> str:
        return f"open transactions of cluster {self.cluster_id}"


class ClusterPoint(models.Model):
    """Figures of a cluster at one time, for its charts; empty is unknown. Rates are per second since the point before.

    ``bytes_rate`` is estimated (``traffic.rules.byte_rate``), without the partitions that ``without_bytes`` counts.
    ``brokers``, format 1: {broker: [records per second, bytes per second, unknown, without_bytes, bytes used, bytes in
    all]}, rates and counts of the partitions that it leads.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    taken_at = models.DateTimeField()
    records_rate = models.FloatField(null=True)
    bytes_rate = models.FloatField(null=True)
    partitions = models.PositiveIntegerField(help_text="that the cluster has")
    unknown = models.PositiveIntegerField(help_text="partitions whose rate is not known")
    without_bytes = models.PositiveIntegerField(help_text="partitions with records whose bytes are not known")
    lag = models.BigIntegerField(null=True, help_text="records, of all groups")
    under_replicated = models.PositiveIntegerField(null=True)
    offline = models.PositiveIntegerField(null=True)
    disk_used = models.BigIntegerField(null=True, help_text="bytes")
    disk_total = models.BigIntegerField(null=True, help_text="bytes")
    format = models.PositiveSmallIntegerField(default=1)
    brokers = models.JSONField(default=dict)

    class Meta:
        indexes = (
            models.Index(fields=["cluster", "taken_at"], name="cluster_point_time"),
            models.Index(fields=["taken_at"], name="cluster_point_age"),
        )

    def __str__(self) -> str:
        return f"figures of cluster {self.cluster_id} at {self.taken_at:%H:%M:%S}"


class ClusterTrend(models.Model):
    """Records written to a cluster over 24 h, in short, for lists of clusters.

    ``rate``: records per second at ``taken_at``. ``slots``, format 1: the highest rate of each half hour, the newest
    last, which began at ``slot_at``; null where no rate is known.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="trend")
    taken_at = models.DateTimeField()
    rate = models.FloatField(null=True)
    slot_at = models.DateTimeField()
    format = models.PositiveSmallIntegerField(default=1)
    slots = models.JSONField()

    def __str__(self) -> str:
        return f"trend of cluster {self.cluster_id} to {self.taken_at:%H:%M:%S}"


class TopicTraffic(models.Model):
    """Rates of the topics of one shard at one time.

    ``topics``, format 1: {topic: [records per second, bytes per second or null, unknown, without_bytes]}, counts as in
    ``ClusterPoint``. A topic without any known rate is left out.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    shard = models.PositiveSmallIntegerField()
    taken_at = models.DateTimeField()
    format = models.PositiveSmallIntegerField(default=1)
    topics = models.JSONField()

    class Meta:
        indexes = (
            models.Index(fields=["cluster", "shard", "taken_at"], name="topic_traffic_time"),
            models.Index(fields=["taken_at"], name="topic_traffic_age"),
        )

    def __str__(self) -> str:
        return f"traffic of shard {self.shard} of cluster {self.cluster_id} at {self.taken_at:%H:%M:%S}"


class QuorumSnapshot(models.Model):
    """Answer to one DescribeQuorum request (KIP-836). ``leader_id`` is the active controller.

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
            models.Index(fields=["cluster", "leader_epoch", "taken_at"], name="quorum_epoch"),
            models.Index(fields=["taken_at"], name="quorum_age"),
        )

    def __str__(self) -> str:
        return f"quorum of cluster {self.cluster_id} at {self.taken_at:%H:%M:%S}"


class QuorumReplicaState(models.Model):
    """The status of one voter or observer, written when it changes; the row stays when the node leaves the answer.

    ``status`` is one of ``monitoring.quorum.rules.NodeStatus``, or "Gone" for a node that is no longer listed.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    node_id = models.IntegerField()
    directory_id = models.CharField(max_length=22, blank=True)
    voter = models.BooleanField()
    status = models.CharField(max_length=16)
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField(help_text="since when it has this status, as far as seen")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "node_id", "directory_id"], name="one_state_per_quorum_replica"),
        )

    def __str__(self) -> str:
        return f"node {self.node_id} {self.status}"


class MoveOutcome(models.TextChoices):
    """How a reassignment ended. Leaving Kafka's listing is not an outcome: the partition itself is read."""

    RUNNING = "running", "running"
    COMPLETED = "completed", "completed"
    CANCELLED = "cancelled", "cancelled"
    SUPERSEDED = "superseded", "superseded"
    TOPIC_DELETED = "topic_deleted", "topic deleted"
    UNKNOWN = "unknown", "unknown"


class StartedFrom(models.TextChoices):
    """Source of the started interval."""

    FIRST_SEEN = "first_seen", "first seen"
    SUBMITTED = "submitted", "submitted by kafkadash"
    ZK_CTIME = "zk_ctime", "creation of the legacy znode"
    ZK_MTIME = "zk_mtime", "change of the topic's znode"


class StartedThrough(models.TextChoices):
    """How a reassignment was started in a cluster with ZooKeeper; empty: not known, or the only way there is."""

    API = "api", "Kafka's API"
    ZNODE = "znode", "the legacy znode"


class ReassignmentSnapshot(models.Model):
    """Reassignment of one partition as seen in the cluster (KIP-240). Observed facts live only here.

    The move started after ``started_after`` (empty: no earlier observation) and not later than ``started_before``.
    ``replicas_progress``, format 1: one object per adding replica: {broker, log_end, seen_end, percent, in_isr,
    lag_records, taken_at, error}; figures are null where the broker did not answer, but for ``seen_end``, the log end
    that was read last. ``copy_start`` is the first offset that the replica gets, which rows from before do not have.
    ``percent`` of the row is the least of them. ``leader_log_start`` is that of the leader's disk (KIP-405).
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
    started_through = models.CharField(max_length=8, choices=StartedThrough, blank=True, default="", db_default="")
    batch_id = models.CharField(
        max_length=18, blank=True, default="", db_default="", help_text="czxid of the legacy znode that started it"
    )
    continuity_gap = models.BooleanField(default=False, help_text="not observed for longer than two intervals")
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
    outcome = models.CharField(max_length=16, choices=MoveOutcome, default=MoveOutcome.RUNNING)
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
                condition=Q(outcome=MoveOutcome.RUNNING),
                name="one_running_reassignment",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "outcome", "-ended_at"], name="reassignment_ended"),
            models.Index(fields=["cluster", "topic", "partition"], name="reassignment_partition"),
            models.Index(fields=["cluster", "started_before"], name="reassignment_started"),
        )

    def __str__(self) -> str:
        return f"{self.public_id} {self.topic}-{self.partition} {self.outcome}"


class ZooKeeperState(models.Model):
    """Newest reading of a cluster's ZooKeeper: the controller, and what is pending there.

    ``queued``, format 1: a list of [topic, partition, [replicas]], entries of the legacy znode that Kafka does not
    list; the first ``MOST_PENDING``. ``elections``: [topic, partition], ``deletions``: topics, likewise. The values
    stay when ZooKeeper is not read; ``failed_at`` and the message are then of the newest try.
    """

    MOST_PENDING = 1000

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="zookeeper_state")
    format = models.PositiveSmallIntegerField(default=1)
    taken_at = models.DateTimeField(null=True, help_text="empty: never read")
    controller_id = models.IntegerField(null=True, help_text="empty: there is none")
    controller_epoch = models.IntegerField(null=True)
    elected_at = models.DateTimeField(null=True, help_text="by the clock of the controller")
    kraft_epoch = models.IntegerField(null=True, help_text="above 0 while the cluster migrates to KRaft")
    batch_id = models.CharField(max_length=18, blank=True, help_text="czxid of the legacy znode; empty: there is none")
    batch_at = models.DateTimeField(null=True, help_text="when it was created, by ZooKeeper's clock")
    batch_count = models.PositiveIntegerField(default=0, help_text="entries of the legacy znode")
    queued = models.JSONField(default=list)
    queued_count = models.PositiveIntegerField(default=0)
    elections = models.JSONField(default=list)
    elections_count = models.PositiveIntegerField(default=0)
    deletions = models.JSONField(default=list)
    deletions_count = models.PositiveIntegerField(default=0)
    failed_at = models.DateTimeField(null=True, help_text="empty after a good reading")
    error_code = models.CharField(max_length=64, blank=True)
    error_params = models.JSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return f"ZooKeeper of cluster {self.cluster_id}"

    @property
    def error(self) -> CodedMessage | None:
        """Message that says why it could not be read; None after a good reading."""
        return stored_message(self.error_code, self.error_params)

    @property
    def migrating(self) -> bool:
        return self.kraft_epoch is not None and self.kraft_epoch > 0


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
    absent_brokers = models.JSONField(
        null=True, help_text="by the name of a count of partitions: IDs of the brokers whose replicas these lack"
    )
    rack_violations = models.PositiveIntegerField(null=True, help_text="partitions; empty where racks are not known")
    brokers_without_rack = models.PositiveIntegerField(null=True)
    preferred_leaders = models.PositiveIntegerField(null=True, help_text="partitions led by their first replica")
    orphan_throttles = models.PositiveIntegerField(null=True, help_text="resources with a throttle that nothing needs")
    hidden_topics = models.PositiveIntegerField(
        null=True, help_text="on the disks, but hidden from the principal of kafkadash; a lower bound"
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
    offline_replicas = models.PositiveIntegerField(default=0, help_text="on offline brokers or directories")
    preferred_leaders = models.PositiveIntegerField(null=True, help_text="partitions led by their first replica")
    min_isr = models.PositiveIntegerField(null=True, help_text="min.insync.replicas in force; empty if not read")
    under_min_isr = models.PositiveIntegerField(null=True, help_text="partitions; empty while min_isr is not known")
    at_min_isr = models.PositiveIntegerField(null=True, help_text="partitions with exactly min_isr in sync")
    rack_violations = models.PositiveIntegerField(
        null=True, help_text="partitions (core.racks); empty where not all brokers name their rack"
    )
    config = models.JSONField(null=True, help_text="entries that differ from the default, see above; empty: not read")
    config_shape = models.CharField(max_length=32, blank=True, help_text="digest of config and min_isr")
    size_bytes = models.BigIntegerField(null=True, help_text="all replicas, 2 significant digits; empty if not known")
    changed_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "topic_id"], name="one_state_per_topic"),)
        indexes = (models.Index(fields=["cluster", "name"], name="topic_name"),)

    def __str__(self) -> str:
        return self.name

    @property
    def deletable(self) -> bool:
        """Return whether kafkadash deletes the topic; internal ones and those without an ID (before Kafka 2.8) stay."""
        return not self.internal and self.topic_id != self.name


class EligibleReplicaState(models.Model):
    """Replicas of a topic's troubled partitions that may lead (KIP-966), as of the last refresh of metadata.

    ``partitions``, format 1: {partition: [ELR or null, last known ELR or null, {broker: [log end, seconds since the
    epoch]}]}. Null: the brokers do not offer it. Log ends are those of live replicas, where the partition has no
    leader. A partition that is not in here was not asked for.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    topic_id = models.CharField(max_length=36, help_text="as of TopicState")
    format = models.PositiveSmallIntegerField(default=1)
    partitions = models.JSONField()
    taken_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "topic_id"], name="one_eligible_row_per_topic"),)

    def __str__(self) -> str:
        return f"eligible replicas of topic {self.topic_id}"


class TierState(models.Model):
    """Offsets of a tiered topic (KIP-405), as of the last refresh of log directories.

    ``partitions``, format 1: {partition: [log start, local log start, last tiered offset, log end, bytes]}, as the
    leader told them, with the bytes of its replica. Null: not told; the last tiered offset is −1 where nothing is in
    remote storage or the leader does not know yet, and null before Kafka 3.9. A partition whose leader did not answer
    is not in here.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    topic_id = models.CharField(max_length=36, help_text="as of TopicState")
    format = models.PositiveSmallIntegerField(default=1)
    partitions = models.JSONField()
    taken_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "topic_id"], name="one_tier_row_per_topic"),)

    def __str__(self) -> str:
        return f"tiers of topic {self.topic_id}"


class PrincipalRights(models.Model):
    """Operations that Kafka grants to kafkadash's principal (KIP-430), by the names of AclOperation.

    ``on_cluster``: null where the brokers do not tell, empty for a principal without Describe on the cluster.
    ``on_topics``: {usual: those on most topics, others: {topic: those on it}, names: all topics that were told}, where
    ``names`` is left out if all have the usual ones; null where a broker did not tell. ``on_groups`` likewise, of
    consumer groups.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="rights")
    format = models.PositiveSmallIntegerField(default=1)
    on_cluster = models.JSONField(null=True)
    on_topics = models.JSONField(default=dict)
    on_groups = models.JSONField(default=dict, db_default={})
    taken_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "principal rights"

    def __str__(self) -> str:
        return f"rights on cluster {self.cluster_id}"


class BrokerState(models.Model):
    """A broker as last seen; the row stays when it goes, with ``gone_at`` set."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    broker_id = models.IntegerField()
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField()
    rack = models.CharField(max_length=255, null=True)  # noqa: DJ001  None: the broker has no rack; '' is a rack
    # None: the cluster does not tell (before Kafka 4.0). It lists no fenced brokers then, so they count as gone.
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
    silent_since = models.DateTimeField(
        null=True, help_text="since when the broker does not respond; empty: it responds"
    )

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


class BrokerCatchUp(models.Model):
    """Replicas on a broker that are outside the ISR and that no reassignment adds; the row goes when all are in sync.

    Figures as ``monitoring.catch_up.rules.CatchUpFigures``. ``data``, format 1: zlib of JSON, ``FollowerList`` without
    the replicas that were skipped.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    broker_id = models.IntegerField()
    replicas = models.PositiveIntegerField(help_text="outside the ISR, those included that were not read")
    counts = models.JSONField()
    records = models.BigIntegerField(null=True)
    bytes_behind = models.BigIntegerField(null=True, help_text="estimated")
    unsized = models.PositiveIntegerField()
    rate = models.FloatField(null=True, help_text="records per second that the replicas get")
    rate_bytes = models.FloatField(null=True, help_text="estimated")
    seconds_left = models.FloatField(null=True, help_text="of the slowest replica; empty where it is not known of all")
    sampled_at = models.DateTimeField(null=True, help_text="when the oldest of the offsets was read")
    taken_at = models.DateTimeField()
    format = models.PositiveSmallIntegerField(default=1)
    data = models.BinaryField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "broker_id"], name="one_catch_up_per_broker"),)

    def __str__(self) -> str:
        return f"catch-up of broker {self.broker_id}"


def is_closed(directory: Mapping[str, Any]) -> bool:
    """Return whether a stored log directory takes no replicas: it is cordoned, or offline, which is the same here."""
    return bool(directory["cordoned"]) or bool(directory["error"])


class ConfigSource(models.TextChoices):
    """Source of a config value (Kafka's ConfigEntry.ConfigSource)."""

    TOPIC = "topic", "topic"
    BROKER = "broker", "broker"
    CLUSTER_DEFAULT = "cluster_default", "cluster default"
    STATIC = "static", "static broker config"
    DEFAULT = "default", "default"
    OTHER = "other", "other"


class ConfigCatalog(models.Model):
    """Configs that topics and brokers of a cluster have, as Kafka describes them, and the brokers' default.

    ``topics`` and ``brokers``: {key: [type, read-only, sensitive, inherited]}. ``type`` as ``kafka.api.ConfigType``.
    ``inherited``: [value, source] of a topic or broker that does not set the key; null where all of them set it.
    ``default``: as ``TopicState.config``, of the dynamic default of all brokers.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="config_catalog")
    topics = models.JSONField(default=dict)
    brokers = models.JSONField(default=dict)
    default = models.JSONField(null=True, help_text="empty: not read")

    def __str__(self) -> str:
        return f"configs of cluster {self.cluster_id}"


class ConfigDrift(models.Model):
    """Configs that differ between brokers, though nothing in them belongs to a single broker.

    ``keys``, format 1: {key: [seconds since the epoch when brokers were first seen to differ, [[value, source,
    [brokers]], …]]}, the most brokers first. Sensitive configs are not compared. A broker that did not answer counts as
    last read.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="config_drift")
    format = models.PositiveSmallIntegerField(default=1)
    keys = models.JSONField(default=dict)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"configs that differ between brokers of cluster {self.cluster_id}"


class ThrottledResource(models.TextChoices):
    """Kind of resource on which a throttle is set. The rate of a broker may come from the cluster default."""

    CLUSTER = "cluster", "cluster default"
    BROKER = "broker", "broker"
    TOPIC = "topic", "topic"


class ThrottleState(models.Model):
    """Replication throttle that is set (KIP-73): a rate of one broker or of all, or a topic's list of replicas.

    Only a config that is set has a row. A rate's ``value`` is bytes per second as text, a list's ``partition:broker,…``
    or ``*``; an empty list is set but throttles nothing. ``read_at`` ages while the broker cannot be asked.
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
    from_znode = models.BooleanField(
        default=False, db_default=False, help_text="read from ZooKeeper, because the broker was not registered"
    )
    unneeded_since = models.DateTimeField(null=True, help_text="since when nothing in flight needs it, as far as seen")
    orphan = models.BooleanField(default=False, help_text="in force, needed by nothing, seen so in two refreshes")
    claimed_by = models.CharField(max_length=64, blank=True)
    claim_url = models.CharField(max_length=255, blank=True)
    claimed_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True, help_text="when its owner removed it, not read since")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "resource", "name", "key"], name="one_state_per_throttle"),
        )

    def __str__(self) -> str:
        return f"{self.key} of {self.resource} {self.name}".strip()


class Capabilities(models.Model):
    """Capabilities of a cluster's software, from ApiVersions of every broker.

    A broker that did not answer counts with what it told last. ``releases``: {broker: oldest release it can be} of all
    that told something. ``apis``: {API key: [lowest, highest]} that all brokers offer; empty where one never told
    any. ``features``: {name: {finalized, supported: [lowest, highest]}} (KIP-584) of those that told; ``finalized`` is
    null where no level is, ``supported`` where one of them does not know the feature. ``software``: brokers with the
    same API versions and levels, the largest set first: [{brokers, release, apis: {API key: [lowest, highest]},
    features: {name: [lowest, highest]}}].
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="capabilities")
    format = models.PositiveSmallIntegerField(default=1)
    apis = models.JSONField(default=dict)
    features = models.JSONField(default=dict)
    releases = models.JSONField(default=dict)
    software = models.JSONField(default=list, db_default=[])
    mixed_since = models.DateTimeField(
        null=True, help_text="since when brokers differ, as far as seen; empty: no two do"
    )
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "capabilities"

    def __str__(self) -> str:
        return f"capabilities of cluster {self.cluster_id}"


class CanaryPoint(models.Model):
    """Probe of the canary. ``readings``: {broker: ``monitoring.canary.rules.CanaryReading`` as JSON}."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="canary_points")
    format = models.PositiveSmallIntegerField(default=1)
    taken_at = models.DateTimeField()
    readings = models.JSONField(default=dict)

    class Meta:
        indexes = (models.Index(fields=("cluster", "taken_at"), name="canary_by_time"),)

    def __str__(self) -> str:
        return f"canary of cluster {self.cluster_id} at {self.taken_at}"


class ClusterEvent(models.Model):
    """Change that a collector found between two readings: after ``not_before`` and not later than ``at``. Append-only.

    All that has one cause is one row (``monitoring.cluster_events.rules``). ``code``: EventCode. ``brokers``: all that
    it is about. ``marks``: of the names of its topics or groups (``mark_subject``). ``data``, format 1: {values: what
    all have in common, details: lists of the first 50 subjects}.
    """

    id = models.BigAutoField(primary_key=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=16)
    code = models.CharField(max_length=32)
    at = models.DateTimeField(help_text="the reading that showed it")
    not_before = models.DateTimeField(null=True, help_text="the reading before, which did not show it")
    count = models.PositiveIntegerField(help_text="partitions, topics, brokers or groups")
    brokers = ArrayField(models.IntegerField(), default=list)
    marks = ArrayField(models.IntegerField(), default=list)
    format = models.PositiveSmallIntegerField(default=1)
    data = models.JSONField(default=dict)

    class Meta:
        indexes = (
            models.Index(fields=["cluster", "at", "kind"], name="cluster_event_time"),
            models.Index(fields=["at"], name="cluster_event_age"),
            GinIndex(fields=["brokers", "marks"], name="cluster_event_subjects"),
        )

    def __str__(self) -> str:
        return f"{self.code} of cluster {self.cluster_id} at {self.at}"

"""Consumer groups as last seen, the last samples of their partitions, and a short history of their lag."""

from __future__ import annotations

from django.db import models

from kafkadash.clusters.models import Cluster


class GroupState(models.Model):
    """One consumer group: what Kafka says of it, and what its last samples come to. Offsets and lag are records.

    ``key`` is a digest of the name (``observe.group_names.key_of``): Kafka takes names of any length and characters.
    ``times``: seconds since the epoch of the samples, oldest first; their offsets are in ``GroupWindow``. ``counts``:
    {state (``domain.lag.LagState``): partitions}. ``topics``: {topic: [partitions, lag or null, its worst state]}.
    A group whose brokers do not answer keeps its row, with its age; one that Kafka no longer lists has ``gone_at``.
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
    verdict_since = models.DateTimeField(help_text="since when the worst state is what it is")
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
    """A group that Kafka lists and that is no consumer group, such as a share group: nothing of it is judged.

    ``key`` as of ``GroupState``. The row goes when Kafka no longer lists the group.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    key = models.CharField(max_length=32)
    name = models.TextField(blank=True)
    kind = models.CharField(max_length=32, help_text="Kafka's word for its type or protocol, such as share")
    state = models.CharField(max_length=32, help_text="Kafka's word")
    first_seen_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "key"], name="one_row_per_unjudged_group"),)

    def __str__(self) -> str:
        return self.name


class GroupWindow(models.Model):
    """The last samples of a group's partitions, and its members, packed; written only when they differ.

    ``data``: ``observe.group_window.pack``, which names its own format. ``members``, format 1: zlib of JSON
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

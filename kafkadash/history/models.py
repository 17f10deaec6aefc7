"""Models of the history that the pipeline makes from all samples, and of the ledger of its results.

Only the ingest writes here. Rollups are most of the data. Their table is partitioned by grain and time, so that
retention drops whole tables; names are stored once, in ``Series`` (ADR 15).
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, read_message, stored_message


class SeriesKind(models.TextChoices):
    """Subject of rollups; the values are those of ``export.results.ResultKind``.

    ``BYTES_IN`` and ``RECORDS_IN`` are of a topic, of the partitions that a broker leads, or of the whole cluster.
    """

    GROUP = "lag_rollup", "lag of a group in a topic"
    TOPIC = "topic_rollup", "lag of all groups of a topic"
    BROKER = "broker_rollup", "bytes of replicas on a broker"
    CLUSTER = "cluster_rollup", "lag of all groups of a cluster"
    QUORUM = "quorum_rollup", "lag of a node of the quorum"
    BYTES_IN = "bytes_in", "bytes in per second, estimated"
    RECORDS_IN = "records_in", "thousandths of a record in per second"


class Series(models.Model):
    """Time series of one subject. ``node``: id of a broker or quorum node; fields a kind does not use are empty."""

    NO_NODE = -1

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    kind = models.CharField(max_length=16, choices=SeriesKind)
    group = models.CharField(max_length=255, blank=True)
    topic = models.CharField(max_length=249, blank=True)
    node = models.IntegerField(default=NO_NODE)
    seen_on = models.DateField(help_text="day (UTC) of its newest bucket")

    class Meta:
        verbose_name_plural = "series"
        constraints = (
            models.UniqueConstraint(fields=["cluster", "kind", "group", "topic", "node"], name="one_series"),
        )
        indexes = (models.Index(fields=["seen_on"], name="series_age"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.group} {self.topic} of cluster {self.cluster_id}"


class Rollup(models.Model):
    """All samples of a series in one bucket of ``grain`` seconds (60, 3600 or 86,400).

    Unit of the figures: records (lag), bytes (brokers), ms (quorum), bytes per second and thousandths of a record per
    second (traffic). ``other``: bytes on disk of a topic, replicas of a broker, the largest age of a fetch of a node in
    ms, the most partitions that a sum of traffic left out. ``changes``: leader changes of the quorum. ``version``: when
    the result was written, in microseconds since the epoch; of two answers about a bucket the one from more samples
    stays, then the later one. No foreign key in the database: it would cost every row, and old ones go with their
    partition.
    """

    pk = models.CompositePrimaryKey("series_id", "grain", "bucket")
    series = models.ForeignKey(Series, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    grain = models.IntegerField()
    bucket = models.DateTimeField()
    version = models.BigIntegerField()
    samples = models.BigIntegerField()
    most = models.BigIntegerField(null=True)
    p50 = models.BigIntegerField(null=True)
    p95 = models.BigIntegerField(null=True)
    p99 = models.BigIntegerField(null=True)
    mean = models.FloatField(null=True)
    other = models.BigIntegerField(null=True)
    changes = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.grain} s from {self.bucket:%Y-%m-%d %H:%M} of series {self.series_id}"


class CatchUp(models.Model):
    """A replica that is being added, as the pipeline last saw it; null is not known."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    broker = models.IntegerField()
    observed_at = models.DateTimeField()
    version = models.BigIntegerField()
    bytes_per_second = models.FloatField(null=True, help_text="net of produced bytes")
    left_bytes = models.BigIntegerField(null=True)
    eta_seconds = models.FloatField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "topic", "partition", "broker"], name="one_catch_up"),
        )
        indexes = (models.Index(fields=["observed_at"], name="catch_up_age"),)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on {self.broker} of cluster {self.cluster_id}"


class Workload(models.Model):
    """Workload of a topic's partitions, packed: a list for each of partition, in, peak, hour, grows, size and samples,
    the order of the partitions.

    ``in``: bytes per second that the leader took in, the mean over the hours of the week of their median; ``peak``: the
    largest 95th percentile of an hour of the week, which is ``hour`` (0 is Monday 00:00 UTC); ``grows``: bytes a day;
    ``size``: bytes; ``samples``: rates that were seen. Null where the pipeline could not tell.

    ``by_hour``: see ``HourlyRates``; null where facts of another cluster of the same name are in the model.
    """

    FORMAT = 2
    """Another one is not read: with the next model it is gone."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    topic = models.CharField(max_length=249)
    format = models.PositiveSmallIntegerField(default=1)
    partitions = models.JSONField()
    by_hour = models.JSONField(null=True, help_text="bytes in per second by hour of the week")
    from_at = models.DateTimeField()
    to_at = models.DateTimeField()
    version = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "topic"], name="one_workload_per_topic"),)
        indexes = (models.Index(fields=["to_at"], name="workload_age"),)

    def __str__(self) -> str:
        return f"workload of {self.topic} of cluster {self.cluster_id}"


class ClusterWorkload(models.Model):
    """Rates of all topics of a cluster by hour of the week; ``by_hour`` as in ``Workload``."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE)
    by_hour = models.JSONField(help_text="bytes in per second by hour of the week")
    from_at = models.DateTimeField()
    to_at = models.DateTimeField()
    version = models.BigIntegerField()

    class Meta:
        indexes = (models.Index(fields=["to_at"], name="cluster_workload_age"),)

    def __str__(self) -> str:
        return f"workload of cluster {self.cluster_id}"


class DiskForecast(models.Model):
    """When a log directory will be 80 and 90 % full: likely, and between low and high; null where it does not fill."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    broker = models.IntegerField()
    directory = models.CharField(max_length=1024)
    observed_at = models.DateTimeField()
    version = models.BigIntegerField()
    used_bytes = models.BigIntegerField()
    total_bytes = models.BigIntegerField()
    grows_per_day = models.FloatField(help_text="bytes")
    days_to_80 = models.FloatField(null=True)
    days_to_80_low = models.FloatField(null=True)
    days_to_80_high = models.FloatField(null=True)
    days_to_90 = models.FloatField(null=True)
    days_to_90_low = models.FloatField(null=True)
    days_to_90_high = models.FloatField(null=True)
    samples = models.BigIntegerField()
    from_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "broker", "directory"], name="one_forecast"),)
        indexes = (models.Index(fields=["observed_at"], name="forecast_age"),)

    def __str__(self) -> str:
        return f"{self.directory} of broker {self.broker} of cluster {self.cluster_id}"


class VerdictCount(models.Model):
    """How often in an hour the pipeline's verdict of a partition was compared with the worker's, and differed.

    Of each query for itself: one that begins anew from the segments that are kept judges the same once more. What holds
    of an hour is the count of the query that judged most in it.
    """

    query = models.CharField(max_length=128, default="", help_text="of the ledger; empty: counted over all queries")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    hour = models.DateTimeField(help_text="when the pipeline judged, by the time of the samples")
    judged = models.BigIntegerField(default=0)
    differed = models.BigIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["query", "cluster", "hour"], name="one_count_per_query_and_hour"),
        )
        indexes = (models.Index(fields=["hour"], name="verdict_count_age"),)

    def __str__(self) -> str:
        return f"{self.differed} of {self.judged} of cluster {self.cluster_id}"


class VerdictDifference(models.Model):
    """The newest time that both judged a partition differently."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    group = models.CharField(max_length=255)
    topic = models.CharField(max_length=249)
    partition = models.IntegerField()
    observed_at = models.DateTimeField()
    verdict = models.CharField(max_length=16, help_text="the pipeline's")
    worker_verdict = models.CharField(max_length=16)
    version = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "group", "topic", "partition"], name="one_difference"),
        )
        indexes = (models.Index(fields=["-observed_at"], name="difference_newest"),)

    def __str__(self) -> str:
        return f"{self.group} {self.topic}-{self.partition}: {self.verdict}, {self.worker_verdict}"


class PipelineLedger(models.Model):
    """Result that was ingested or set aside. The row is written with the result's last rows, in one transaction.

    ``flushes``: [epoch, seq] of the segments in it. ``set_aside``: [{file, why}], of its own and of the segments that
    the pipeline could not read.
    """

    query = models.CharField(max_length=128)
    batch = models.BigIntegerField()
    written_at = models.DateTimeField(null=True, help_text="when the pipeline wrote it; empty where its marker is none")
    ingested_at = models.DateTimeField(db_default=Now())
    newest_at = models.DateTimeField(null=True, help_text="when its newest segment was written")
    rows = models.JSONField(default=dict, help_text="kind → rows ingested")
    skipped = models.PositiveBigIntegerField(
        default=0, help_text="rows of unknown clusters, or older than the retention"
    )
    flushes = models.JSONField(default=list)
    set_aside = models.JSONField(default=list)
    took_ms = models.PositiveIntegerField(default=0)
    deleted_at = models.DateTimeField(null=True, help_text="when its files were deleted")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["query", "batch"], name="one_entry_per_batch"),)
        indexes = (
            models.Index(fields=["-ingested_at"], name="ledger_newest"),
            models.Index(fields=["ingested_at"], condition=models.Q(deleted_at=None), name="ledger_to_delete"),
        )

    def __str__(self) -> str:
        return f"{self.query} {self.batch}"

    @property
    def files_set_aside(self) -> list[tuple[str, CodedMessage]]:
        return [(str(each.get("file", "")), read_message(each.get("why", ""))) for each in self.set_aside]


class PipelineState(models.Model):
    """The one row of the ingest: its lease, and what it last saw of the pipeline."""

    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    epoch = models.PositiveBigIntegerField(default=0, db_default=0)
    seq = models.PositiveBigIntegerField(default=0, db_default=0, help_text="number of the last turn of this epoch")
    attempted_at = models.DateTimeField(null=True, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True, help_text="when the folders were last read")
    last_error_code = models.CharField(max_length=64, blank=True, db_default="")
    last_error_params = models.JSONField(default=dict, blank=True, db_default={})
    heartbeats = models.JSONField(default=list, db_default=[], help_text="as the pipeline wrote them")
    results_waiting = models.PositiveIntegerField(null=True, help_text="markers that are not ingested")
    segments_waiting = models.PositiveIntegerField(null=True, help_text="flushes that are in no result")
    oldest_waiting_at = models.DateTimeField(null=True, help_text="when the oldest of them was written")

    def __str__(self) -> str:
        return f"ingest, checked at {self.looked_at}"

    @property
    def last_error(self) -> CodedMessage | None:
        """Message of what the last turn met; None where all was well."""
        return stored_message(self.last_error_code, self.last_error_params)

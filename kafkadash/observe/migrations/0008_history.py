import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


# Django knows no partitions. Columns are in the order in which they take the least room. The partitions of days, months
# and years are made when there is something to put into them (observe.history.partitions).
ROLLUPS = """
CREATE TABLE observe_rollup (
    bucket timestamptz NOT NULL,
    version bigint NOT NULL,
    samples bigint NOT NULL,
    series_id bigint NOT NULL,
    grain integer NOT NULL,
    most bigint,
    p50 bigint,
    p95 bigint,
    p99 bigint,
    mean double precision,
    other bigint,
    changes bigint,
    PRIMARY KEY (series_id, grain, bucket)
) PARTITION BY LIST (grain);
CREATE TABLE observe_rollup_60 PARTITION OF observe_rollup FOR VALUES IN (60) PARTITION BY RANGE (bucket);
CREATE TABLE observe_rollup_3600 PARTITION OF observe_rollup FOR VALUES IN (3600) PARTITION BY RANGE (bucket);
CREATE TABLE observe_rollup_86400 PARTITION OF observe_rollup FOR VALUES IN (86400) PARTITION BY RANGE (bucket);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0002_cluster_removed_at"),
        ("observe", "0007_kind_of_groups"),
    ]

    operations = [
        migrations.CreateModel(
            name="PipelineState",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("dispatched_until", models.DateTimeField(blank=True, null=True)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("epoch", models.PositiveBigIntegerField(db_default=0, default=0)),
                (
                    "seq",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="number of the last turn of this epoch"
                    ),
                ),
                ("attempted_at", models.DateTimeField(blank=True, null=True)),
                ("looked_at", models.DateTimeField(blank=True, help_text="when the folders were last read", null=True)),
                ("last_error", models.TextField(blank=True, db_default="")),
                ("heartbeats", models.JSONField(db_default=[], default=list, help_text="as the pipeline wrote them")),
                ("results_waiting", models.PositiveIntegerField(help_text="markers that are not taken in", null=True)),
                ("segments_waiting", models.PositiveIntegerField(help_text="flushes that are in no result", null=True)),
                ("oldest_waiting_at", models.DateTimeField(help_text="when the oldest of them was written", null=True)),
            ],
        ),
        migrations.CreateModel(
            name="PipelineLedger",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("query", models.CharField(max_length=128)),
                ("batch", models.BigIntegerField()),
                (
                    "written_at",
                    models.DateTimeField(
                        help_text="when the pipeline wrote it; empty where its marker is none", null=True
                    ),
                ),
                ("ingested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("newest_at", models.DateTimeField(help_text="when its newest segment was written", null=True)),
                ("rows", models.JSONField(default=dict, help_text="kind → rows taken in")),
                (
                    "skipped",
                    models.PositiveBigIntegerField(
                        default=0, help_text="rows of unknown clusters, or past what is kept"
                    ),
                ),
                ("flushes", models.JSONField(default=list)),
                ("set_aside", models.JSONField(default=list)),
                ("took_ms", models.PositiveIntegerField(default=0)),
                ("deleted_at", models.DateTimeField(help_text="when its files were deleted", null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-ingested_at"], name="ledger_newest"),
                    models.Index(
                        condition=models.Q(("deleted_at", None)), fields=["ingested_at"], name="ledger_to_delete"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("query", "batch"), name="one_entry_per_batch")],
            },
        ),
        migrations.CreateModel(
            name="Series",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("lag_rollup", "lag of a group in a topic"),
                            ("topic_rollup", "lag of all groups of a topic"),
                            ("broker_rollup", "bytes of replicas on a broker"),
                            ("cluster_rollup", "lag of all groups of a cluster"),
                            ("quorum_rollup", "lag of a node of the quorum"),
                        ],
                        max_length=16,
                    ),
                ),
                ("group", models.CharField(blank=True, max_length=255)),
                ("topic", models.CharField(blank=True, max_length=249)),
                ("node", models.IntegerField(default=-1)),
                ("seen_on", models.DateField(help_text="day (UTC) of its newest bucket")),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="clusters.cluster")),
            ],
            options={
                "verbose_name_plural": "series",
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ROLLUPS, "DROP TABLE observe_rollup")],
            state_operations=[
                migrations.CreateModel(
                    name="Rollup",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "series_id",
                                "grain",
                                "bucket",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("grain", models.IntegerField()),
                        ("bucket", models.DateTimeField()),
                        ("version", models.BigIntegerField()),
                        ("samples", models.BigIntegerField()),
                        ("most", models.BigIntegerField(null=True)),
                        ("p50", models.BigIntegerField(null=True)),
                        ("p95", models.BigIntegerField(null=True)),
                        ("p99", models.BigIntegerField(null=True)),
                        ("mean", models.FloatField(null=True)),
                        ("other", models.BigIntegerField(null=True)),
                        ("changes", models.BigIntegerField(null=True)),
                        (
                            "series",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                to="observe.series",
                            ),
                        ),
                    ],
                ),
            ],
        ),
        migrations.CreateModel(
            name="VerdictCount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hour", models.DateTimeField(help_text="when the pipeline judged, by the time of the samples")),
                ("judged", models.BigIntegerField(default=0)),
                ("differed", models.BigIntegerField(default=0)),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="clusters.cluster")),
            ],
        ),
        migrations.CreateModel(
            name="VerdictDifference",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("group", models.CharField(max_length=255)),
                ("topic", models.CharField(max_length=249)),
                ("partition", models.IntegerField()),
                ("observed_at", models.DateTimeField()),
                ("verdict", models.CharField(help_text="the pipeline's", max_length=16)),
                ("worker_verdict", models.CharField(max_length=16)),
                ("version", models.BigIntegerField()),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="clusters.cluster")),
            ],
        ),
        migrations.CreateModel(
            name="Workload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic", models.CharField(max_length=249)),
                ("format", models.PositiveSmallIntegerField(default=1)),
                ("partitions", models.JSONField()),
                ("from_at", models.DateTimeField()),
                ("to_at", models.DateTimeField()),
                ("version", models.BigIntegerField()),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="clusters.cluster")),
            ],
        ),
        migrations.CreateModel(
            name="CatchUp",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic", models.CharField(max_length=249)),
                ("partition", models.IntegerField()),
                ("broker", models.IntegerField()),
                ("observed_at", models.DateTimeField()),
                ("version", models.BigIntegerField()),
                ("bytes_per_second", models.FloatField(help_text="net of what is produced", null=True)),
                ("left_bytes", models.BigIntegerField(null=True)),
                ("eta_seconds", models.FloatField(null=True)),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="clusters.cluster")),
            ],
            options={
                "indexes": [models.Index(fields=["observed_at"], name="catch_up_age")],
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "topic", "partition", "broker"), name="one_catch_up")
                ],
            },
        ),
        migrations.CreateModel(
            name="DiskForecast",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("broker", models.IntegerField()),
                ("directory", models.CharField(max_length=1024)),
                ("observed_at", models.DateTimeField()),
                ("version", models.BigIntegerField()),
                ("used_bytes", models.BigIntegerField()),
                ("total_bytes", models.BigIntegerField()),
                ("grows_per_day", models.FloatField(help_text="bytes")),
                ("days_to_80", models.FloatField(null=True)),
                ("days_to_80_low", models.FloatField(null=True)),
                ("days_to_80_high", models.FloatField(null=True)),
                ("days_to_90", models.FloatField(null=True)),
                ("days_to_90_low", models.FloatField(null=True)),
                ("days_to_90_high", models.FloatField(null=True)),
                ("samples", models.BigIntegerField()),
                ("from_at", models.DateTimeField()),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="clusters.cluster")),
            ],
            options={
                "indexes": [models.Index(fields=["observed_at"], name="forecast_age")],
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "broker", "directory"), name="one_forecast")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="series",
            index=models.Index(fields=["seen_on"], name="series_age"),
        ),
        migrations.AddConstraint(
            model_name="series",
            constraint=models.UniqueConstraint(fields=("cluster", "kind", "group", "topic", "node"), name="one_series"),
        ),
        migrations.AddIndex(
            model_name="verdictcount",
            index=models.Index(fields=["hour"], name="verdict_count_age"),
        ),
        migrations.AddConstraint(
            model_name="verdictcount",
            constraint=models.UniqueConstraint(fields=("cluster", "hour"), name="one_count_per_hour"),
        ),
        migrations.AddIndex(
            model_name="verdictdifference",
            index=models.Index(fields=["-observed_at"], name="difference_newest"),
        ),
        migrations.AddConstraint(
            model_name="verdictdifference",
            constraint=models.UniqueConstraint(
                fields=("cluster", "group", "topic", "partition"), name="one_difference"
            ),
        ),
        migrations.AddIndex(
            model_name="workload",
            index=models.Index(fields=["to_at"], name="workload_age"),
        ),
        migrations.AddConstraint(
            model_name="workload",
            constraint=models.UniqueConstraint(fields=("cluster", "topic"), name="one_workload_per_topic"),
        ),
    ]

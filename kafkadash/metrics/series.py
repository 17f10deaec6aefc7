"""Catalogue of all series: name, labels, meaning, source, and when a series is absent.

A value that is unknown or too old is absent, never 0. Units are the base units of Prometheus, and the end of the name
says which: seconds, bytes, records, ratio. Ages are timestamps, so that Prometheus computes the age at query time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_UNITS = ("bytes_per_second", "seconds", "bytes", "records", "ratio")


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """``absent`` completes "Absent …"; '' where the series always exists. ``is_info``: its value is always 1."""

    name: str
    labels: tuple[str, ...]
    meaning: str
    source: str
    absent: str = ""
    is_info: bool = False

    @property
    def unit(self) -> str:
        """Return the unit; '' for a number of things."""
        return next((unit for unit in _UNITS if self.name.endswith(f"_{unit}")), "")

    @property
    def help(self) -> str:
        return f"{self.meaning} Absent {self.absent}." if self.absent else self.meaning


_OLD_METADATA = "while topics and brokers are stale or were never read"
_OLD_QUORUM = "in ZooKeeper mode, and while the controller quorum is stale or was never read"
_OLD_GROUP = "while the data of the group is stale"
_OLD_CONFIGS = "while configs are stale or were never read"
_OLD_RUN = "while the figures of the run are stale, and for runs of items"
_OF_CLUSTER = ("cluster",)
_OF_COLLECTOR = ("cluster", "collector")
_OF_FINDINGS = ("cluster", "kind", "severity")
_OF_GROUP = ("cluster", "group")
_OF_RUN = ("cluster", "change")

_ALL = (
    # kafkadash itself
    MetricSeries(
        "kafkadash_build_info",
        ("version", "python"),
        "Version of kafkadash and of its Python.",
        "process",
        is_info=True,
    ),
    MetricSeries(
        "kafkadash_heartbeat_timestamp_seconds",
        ("part",),
        "Time of the last round of a part of kafkadash. The tick needs beat and a worker.",
        "heartbeats",
        "before its first round",
    ),
    MetricSeries(
        "kafkadash_task_round_timestamp_seconds",
        ("task",),
        "Time of the newest round of a scheduled task: beat, tick, workers of each queue, the audit of these tasks.",
        "rounds",
        "before its first round",
    ),
    MetricSeries(
        "kafkadash_collection_attempt_timestamp_seconds",
        (),
        "Time when a worker last began to read a cluster.",
        "collectors",
        "before the first attempt, and without an enabled cluster",
    ),
    MetricSeries(
        "kafkadash_pipeline_check_timestamp_seconds",
        (),
        "Time when a worker last checked the folder of the pipeline.",
        "pipeline",
        "before the first check",
    ),
    MetricSeries(
        "kafkadash_pipeline_heartbeat_timestamp_seconds",
        (),
        "Time of the newest heartbeat of the pipeline, by its own clock.",
        "pipeline",
        "without a pipeline",
    ),
    MetricSeries(
        "kafkadash_pipeline_batch_timestamp_seconds",
        (),
        "Time when the pipeline ended its newest batch, by its own clock.",
        "pipeline",
        "before the first batch",
    ),
    MetricSeries(
        "kafkadash_pipeline_history_timestamp_seconds",
        (),
        "Time up to which history is stored.",
        "pipeline",
        "before the first result",
    ),
    MetricSeries(
        "kafkadash_pipeline_waiting_segments",
        (),
        "Segments that are in no result yet.",
        "pipeline",
        "while no worker checks the folder of the pipeline",
    ),
    MetricSeries(
        "kafkadash_pipeline_waiting_results",
        (),
        "Results of the pipeline that are not stored yet.",
        "pipeline",
        "while no worker checks the folder of the pipeline",
    ),
    # Clusters and findings
    MetricSeries(
        "kafkadash_cluster_info",
        ("cluster", "name", "kafka_id", "mode"),
        "Registered cluster. The label cluster is its name in addresses.",
        "registration",
        is_info=True,
    ),
    MetricSeries(
        "kafkadash_cluster_collection_enabled",
        _OF_CLUSTER,
        "1 if the cluster is read, 0 if its collection is disabled.",
        "registration",
    ),
    MetricSeries(
        "kafkadash_cluster_state",
        ("cluster", "state"),
        "1 for the state of the cluster on the status board; other states have no series.",
        "findings",
        is_info=True,
    ),
    MetricSeries(
        "kafkadash_cluster_judgement_timestamp_seconds",
        _OF_CLUSTER,
        "Time when the findings of the cluster were last evaluated.",
        "findings",
        "before the first evaluation",
    ),
    MetricSeries(
        "kafkadash_findings_open",
        _OF_FINDINGS,
        "Open findings. One whose data is stale has the severity unknown. Cluster is empty for kafkadash itself.",
        "findings",
        "instead of 0 while the data that would show such a finding is stale or unknown",
    ),
    MetricSeries(
        "kafkadash_findings_acknowledged",
        _OF_FINDINGS,
        "Open findings that a person acknowledged.",
        "findings",
        "if no finding of the kind is open",
    ),
    MetricSeries(
        "kafkadash_findings_first_seen_timestamp_seconds",
        _OF_FINDINGS,
        "Time when the oldest open finding of the kind was first seen.",
        "findings",
        "if no finding of the kind is open, and before it is stored",
    ),
    # Collectors
    MetricSeries(
        "kafkadash_collector_success_timestamp_seconds",
        _OF_COLLECTOR,
        "Time when the newest data of this kind was read.",
        "collectors",
        "before the first success, and while collection is disabled",
    ),
    MetricSeries(
        "kafkadash_collector_failures",
        _OF_COLLECTOR,
        "Failed refreshes since the last success.",
        "collectors",
        "while collection is disabled",
    ),
    MetricSeries(
        "kafkadash_collector_interval_seconds",
        _OF_COLLECTOR,
        "Interval of the collector. Data older than twice this, and than 10 s, is stale.",
        "collectors",
        "while collection is disabled",
    ),
    # Brokers, partitions, quorum
    MetricSeries(
        "kafkadash_brokers_registered",
        _OF_CLUSTER,
        "Registered brokers, fenced ones included.",
        "metadata",
        _OLD_METADATA,
    ),
    MetricSeries(
        "kafkadash_brokers_fenced",
        _OF_CLUSTER,
        "Brokers that are registered and fenced.",
        "metadata",
        f"if the cluster does not report them (before Kafka 4.0), and {_OLD_METADATA}",
    ),
    MetricSeries(
        "kafkadash_brokers_unregistered",
        _OF_CLUSTER,
        "Brokers that hold replicas and are not registered.",
        "metadata",
        _OLD_METADATA,
    ),
    MetricSeries(
        "kafkadash_brokers_unresponsive",
        _OF_CLUSTER,
        "Registered, unfenced brokers that do not answer kafkadash.",
        "answers",
        "while broker responses, or topics and brokers, are stale or were never read",
    ),
    MetricSeries("kafkadash_topics", _OF_CLUSTER, "Topics.", "metadata", _OLD_METADATA),
    MetricSeries("kafkadash_partitions", _OF_CLUSTER, "Partitions.", "metadata", _OLD_METADATA),
    MetricSeries(
        "kafkadash_partitions_offline", _OF_CLUSTER, "Partitions without a leader.", "metadata", _OLD_METADATA
    ),
    MetricSeries(
        "kafkadash_partitions_under_replicated",
        _OF_CLUSTER,
        "Partitions with a replica that is not in sync.",
        "metadata",
        _OLD_METADATA,
    ),
    MetricSeries(
        "kafkadash_partitions_under_min_isr",
        _OF_CLUSTER,
        "Partitions with fewer replicas in sync than min.insync.replicas.",
        "metadata, configs",
        f"while min.insync.replicas is unknown, and {_OLD_METADATA}",
    ),
    MetricSeries(
        "kafkadash_partitions_at_min_isr",
        _OF_CLUSTER,
        "Partitions with exactly min.insync.replicas in sync, also those that have no more replicas.",
        "metadata, configs",
        f"while min.insync.replicas is unknown, and {_OLD_METADATA}",
    ),
    MetricSeries(
        "kafkadash_partitions_reassigning",
        _OF_CLUSTER,
        "Partitions in a reassignment, by whomever.",
        "reassignments",
        "while reassignments are stale or were never read",
    ),
    MetricSeries("kafkadash_quorum_leader_id", _OF_CLUSTER, "Node ID of the active controller.", "quorum", _OLD_QUORUM),
    MetricSeries(
        "kafkadash_quorum_leader_epoch",
        _OF_CLUSTER,
        "Epoch of the active controller; it rises with each election.",
        "quorum",
        _OLD_QUORUM,
    ),
    MetricSeries("kafkadash_quorum_voters", _OF_CLUSTER, "Voters of the quorum.", "quorum", _OLD_QUORUM),
    MetricSeries("kafkadash_quorum_voters_in_sync", _OF_CLUSTER, "Voters known to be in sync.", "quorum", _OLD_QUORUM),
    MetricSeries(
        "kafkadash_quorum_margin",
        _OF_CLUSTER,
        "Voters that may fail before the majority is lost.",
        "quorum",
        f"while the state of a voter is unknown, {_OLD_QUORUM}",
    ),
    # Groups
    MetricSeries(
        "kafkadash_groups",
        _OF_CLUSTER,
        "Groups with committed offsets, and share groups.",
        "groups",
        "while groups are stale or were never read",
    ),
    MetricSeries(
        "kafkadash_groups_left_out",
        _OF_CLUSTER,
        "Groups that have no series here: their data is stale, or there are too many.",
        "groups",
        "while groups are stale or were never read",
    ),
    MetricSeries(
        "kafkadash_group_lag_records",
        _OF_GROUP,
        "Lag of all partitions of the group whose lag is known. For a share group, as Kafka reports it.",
        "groups",
        f"if the lag of no partition is known, and {_OLD_GROUP}",
    ),
    MetricSeries(
        "kafkadash_group_lag_seconds",
        _OF_GROUP,
        "Time that the next record waits to be read, in the partition where it is longest.",
        "groups",
        f"for share groups, while the window has too few samples, and {_OLD_GROUP}",
    ),
    MetricSeries(
        "kafkadash_group_unknown_lag_partitions",
        _OF_GROUP,
        "Partitions of the group whose lag is unknown. If there are any, the lag is a lower bound.",
        "groups",
        _OLD_GROUP,
    ),
    MetricSeries(
        "kafkadash_group_members",
        _OF_GROUP,
        "Members of the group.",
        "groups",
        f"if the group could not be described, and {_OLD_GROUP}",
    ),
    MetricSeries(
        "kafkadash_group_state",
        ("cluster", "group", "type", "state", "verdict"),
        "1 for the type and state that Kafka reports, and the verdict on the lag; others have no series.",
        "groups",
        _OLD_GROUP,
        is_info=True,
    ),
    # Throttles
    MetricSeries(
        "kafkadash_throttles",
        ("cluster", "resource"),
        "Replication throttles that are set. A broker that does not answer counts as last read.",
        "configs",
        _OLD_CONFIGS,
    ),
    MetricSeries(
        "kafkadash_throttles_orphan",
        _OF_CLUSTER,
        "Replication throttles that are in force and that no move needs.",
        "configs",
        _OLD_CONFIGS,
    ),
    MetricSeries(
        "kafkadash_throttle_rate_bytes_per_second",
        ("cluster", "broker", "direction"),
        "Throttle rate of a broker; the broker default is the rate of all others.",
        "configs",
        "if no rate is set or it is not a number, and while the broker was not read lately",
    ),
    # Changes and runs
    MetricSeries(
        "kafkadash_change_requests", ("cluster", "state"), "Change requests in each state.", "change requests"
    ),
    MetricSeries(
        "kafkadash_run_state",
        ("cluster", "change", "kind", "state"),
        "1 for the state of a change request that is queued or runs; others have no series.",
        "change requests",
        "after its end",
        is_info=True,
    ),
    MetricSeries(
        "kafkadash_run_start_timestamp_seconds", _OF_RUN, "Time when the run began.", "runs", "before its turn"
    ),
    MetricSeries(
        "kafkadash_run_blocked_timestamp_seconds",
        _OF_RUN,
        "Time since when a queued run cannot begin although it is its turn.",
        "runs",
        "if nothing blocks the run",
    ),
    MetricSeries(
        "kafkadash_run_read_timestamp_seconds",
        _OF_RUN,
        "Time when the cluster was last read for the run.",
        "runs",
        "before the first step",
    ),
    MetricSeries("kafkadash_run_items", _OF_RUN, "Moves or items of the run.", "runs", "before its plan is stored"),
    MetricSeries(
        "kafkadash_run_items_ended",
        _OF_RUN,
        "Moves or items that ended, whatever their result.",
        "runs",
        "before the first step",
    ),
    MetricSeries(
        "kafkadash_run_size_bytes",
        _OF_RUN,
        "Bytes of all copies that the plan makes.",
        "runs",
        f"if the size of a partition is unknown, and {_OLD_RUN}",
    ),
    MetricSeries(
        "kafkadash_run_copied_bytes",
        _OF_RUN,
        "Bytes of these copies that are there.",
        "runs",
        f"if the size of a partition is unknown, and {_OLD_RUN}",
    ),
    MetricSeries(
        "kafkadash_run_progress_ratio",
        _OF_RUN,
        "Share of the run that is done, 0 to 1; 1 only at the end.",
        "runs",
        f"if the size of a partition is unknown, and {_OLD_RUN}",
    ),
    MetricSeries(
        "kafkadash_run_rate_bytes_per_second",
        _OF_RUN,
        "Rate of all copies of the run together.",
        "runs",
        f"before it is measured, and {_OLD_RUN}",
    ),
    MetricSeries(
        "kafkadash_run_throttle_bytes_per_second",
        _OF_RUN,
        "Throttle of the run, for each broker and direction.",
        "runs",
        "for runs of items",
    ),
    MetricSeries(
        "kafkadash_run_remaining_seconds",
        _OF_RUN,
        "Estimated time until all is copied.",
        "runs",
        f"if it is unknown or nothing gets on, and {_OLD_RUN}",
    ),
    MetricSeries(
        "kafkadash_run_stuck_moves",
        _OF_RUN,
        "Moves in flight without growth for five minutes.",
        "runs",
        _OLD_RUN,
    ),
)
SERIES: Mapping[str, MetricSeries] = {series.name: series for series in _ALL}


def list_series() -> Iterator[MetricSeries]:
    """Yield the catalogue in the order of a scrape."""
    yield from _ALL

"""``manage.py quorum``: the controller quorum (KIP-836) as stored, in the columns of ``kafka-metadata-quorum``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkadash.accounts.errors import command_error
from kafkadash.core import clock
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import QuorumSeen, load_standing
from kafkadash.monitoring.models import CollectorKind
from kafkadash.monitoring.quorum.rules import NodeStanding, NodeStatus
from kafkadash.monitoring.stored_commands import (
    BAD,
    StoredFactsCommand,
    add_output_options,
    align_columns,
    find_cluster,
    find_freshness,
)

UNKNOWN = -1
"""Kafka's tool prints this where the leader does not know a figure."""

_REPLICATION = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")


class Command(StoredFactsCommand):
    help = "Shows the controller quorum, from collected data. Timestamps are milliseconds on the leader's clock."

    def add_arguments(self, parser: ArgumentParser) -> None:
        part = parser.add_mutually_exclusive_group()
        part.add_argument("--status", action="store_true", help="leader, epoch, high watermark, lag and members")
        part.add_argument("--replication", action="store_true", help="a row for each voter and observer")
        add_output_options(parser)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        freshness = find_freshness(cluster, CollectorKind.QUORUM)
        seen = load_standing(cluster, clock.now()).quorum
        if seen is None:
            raise command_error(CollectionErrorCode.NOT_COLLECTED, cluster=cluster.name, returncode=BAD)
        if options["json"]:
            self.print_json(freshness, describe_quorum(seen))
            return
        self.print_age(freshness)
        if not options["replication"]:
            for name, value in _status_lines(seen):
                self.stdout.write(f"{name + ':':<24}{value}")
        if not options["status"]:
            for line in align_columns([_REPLICATION, *map(_replication_row, _standings(seen))]):
                self.stdout.write(line)


def describe_quorum(seen: QuorumSeen) -> dict[str, Any]:
    """Return the quorum for programs; null where the leader does not know a figure."""
    return {
        "leader_id": seen.snapshot.leader_id,
        "leader_epoch": seen.snapshot.leader_epoch,
        "high_watermark": seen.snapshot.high_watermark,
        "majority": seen.quorum.majority,
        "survives": seen.quorum.survives,
        "replicas": [
            {
                "node_id": standing.node.id,
                "directory_id": standing.node.directory_id or None,
                "role": name_role(standing),
                "status": standing.status.value,
                "log_end_offset": standing.node.log_end_offset,
                "lag": standing.lag_records,
                "lag_ms": standing.lag_ms,
                "last_fetch_timestamp": standing.node.last_fetch_ms,
                "last_caught_up_timestamp": standing.node.last_caught_up_ms,
            }
            for standing in _standings(seen)
        ],
    }


def name_role(standing: NodeStanding) -> str:
    """Return the role as KIP-836 names it."""
    if standing.status is NodeStatus.LEADER:
        return "Leader"
    return "Follower" if standing.node.voter else "Observer"


def _standings(seen: QuorumSeen) -> Sequence[NodeStanding]:
    """Return the leader first, then followers and observers, as Kafka's tool lists them."""
    leads = [each for each in seen.quorum.voters if each.status is NodeStatus.LEADER]
    return [*leads, *(each for each in seen.quorum.voters if each not in leads), *seen.quorum.observers]


def _status_lines(seen: QuorumSeen) -> Iterator[tuple[str, object]]:
    followers = [each for each in seen.quorum.voters if each.status is not NodeStatus.LEADER]
    yield "LeaderId", seen.snapshot.leader_id
    yield "LeaderEpoch", seen.snapshot.leader_epoch
    yield "HighWatermark", _or_unknown(seen.snapshot.high_watermark)
    yield "MaxFollowerLag", _find_largest([each.lag_records for each in followers])
    yield "MaxFollowerLagTimeMs", _find_largest([each.lag_ms for each in followers])
    yield "CurrentVoters", f"[{', '.join(_name_node(each) for each in seen.quorum.voters)}]"
    yield "CurrentObservers", f"[{', '.join(_name_node(each) for each in seen.quorum.observers)}]"


def _find_largest(lags: Sequence[int | None]) -> int:
    """Return the largest lag; unknown as soon as one is, because that one may be the largest."""
    known = [lag for lag in lags if lag is not None]
    return UNKNOWN if len(known) < len(lags) else max(known, default=0)


def _name_node(standing: NodeStanding) -> str:
    node = standing.node
    return f"{node.id} ({node.directory_id})" if node.directory_id else str(node.id)


def _replication_row(standing: NodeStanding) -> Sequence[str]:
    node = standing.node
    figures = (node.log_end_offset, standing.lag_records, node.last_fetch_ms, node.last_caught_up_ms)
    return [str(node.id), node.directory_id or "-", *(str(_or_unknown(each)) for each in figures), name_role(standing)]


def _or_unknown(figure: int | None) -> int:
    return UNKNOWN if figure is None else figure

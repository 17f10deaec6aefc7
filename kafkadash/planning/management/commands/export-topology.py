"""``manage.py export-topology``: a cluster as it was collected, for ``plan`` and ``check-plan``. Asks no Kafka."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from datetime import UTC
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import freshness_of
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from kafkadash.planning.command_options import BAD, NotPlanned, require_places, write_all
from kafkadash.planning.stored_topology import load_topology, model_of
from kafkadash.planning.topology import write_topology
from kafkadash.planning.window import model_words

_KINDS = (
    (CollectorKind.METADATA, "assignment"),
    (CollectorKind.REASSIGNMENTS, "reassignments"),
    (CollectorKind.LOG_DIRS, "sizes and disks"),
)


class Command(BaseCommand):
    help = "Write the collected topology of a cluster; print the age of the data to standard error."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("cluster", metavar="CLUSTER", help="slug of the cluster, as in its URL")
        parser.add_argument("--out", metavar="FILE", help="output file (default: standard output)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._export(options["cluster"], options["out"])
        except NotPlanned as error:
            for sentence in error.shown:
                self.stderr.write(sentence)
            sys.exit(BAD)

    def _export(self, slug: str, out: str | None) -> None:
        """Raises NotPlanned."""
        cluster = Cluster.objects.filter(slug=slug).first()
        if cluster is None:
            known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none yet"
            raise NotPlanned(ClusterErrorCode.CLUSTER_UNKNOWN, slug=slug, known=known)
        require_places([out])
        loaded = load_topology(cluster)
        if loaded.seen.metadata.taken_at is None:
            raise NotPlanned(CollectionErrorCode.NOT_COLLECTED, cluster=cluster.name)
        content = write_topology(loaded.topology)
        if out is None:
            self.stdout.write(content.decode(), ending="")
        else:
            write_all({out: content})
        number = sum(len(topic.partitions) for topic in loaded.topology.topics.values())
        brokers = choose_plural("# broker|# brokers", len(loaded.topology.brokers))
        topics = choose_plural("# topic|# topics", len(loaded.topology.topics))
        partitions = choose_plural("# partition|# partitions", number)
        self.stderr.write(f"{cluster.name}: {brokers}, {topics}, {partitions}")
        for line in _describe_ages(cluster):
            self.stderr.write(line)


def _describe_ages(cluster: Cluster) -> list[str]:
    """How old each kind of facts is."""
    now = timezone.now()
    runs = {run.kind: run for run in CollectorRun.objects.filter(cluster=cluster)}
    found = []
    for kind, name in _KINDS:
        fresh = freshness_of(runs.get(kind), now)
        if fresh.taken_at is None or fresh.age_s is None:
            found.append(f"{name}: never read, not included")
            continue
        at = fresh.taken_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        old = " (stale)" if fresh.stale else ""
        found.append(f"{name}: as of {at}, {format_duration(fresh.age_s)} ago{old}")
    return [*found, f"rates: {model_words(model_of(cluster, now), now)}"]

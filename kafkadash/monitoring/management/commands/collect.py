"""``manage.py collect CLUSTER [--kind KIND]``: refresh now, under the same lease as the workers."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from kafkadash.accounts.errors import command_error, with_code
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.monitoring.collection import ensure_runs, refresh
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CollectorKind, CollectorRun


class Command(BaseCommand):
    help = "Collect data of a cluster now. Exit status 1: a kind failed; 3: another collector is running."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("cluster", help="cluster name in the URL")
        parser.add_argument("--kind", choices=CollectorKind.values, action="append", help="kind of data; repeatable")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(slug=options["cluster"]).first()
        if cluster is None:
            known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none yet"
            raise command_error(ClusterErrorCode.CLUSTER_UNKNOWN, slug=options["cluster"], known=known)
        ensure_runs()
        worst = 0
        runs = {run.kind: run for run in CollectorRun.objects.filter(cluster=cluster)}
        for kind in options["kind"] or [kind for kind in CollectorKind.values if kind in runs]:
            if kind not in runs:
                raise command_error(CollectionErrorCode.KIND_NOT_STARTED, kind=kind, cluster=cluster.name)
            worst = max(worst, self._refresh(runs[kind], kind))
        if worst:
            sys.exit(worst)

    def _refresh(self, run: CollectorRun, kind: str) -> int:
        result = refresh(run.pk, only_if_due=False)
        if result is None:
            self.stderr.write(with_code(coded(CollectionErrorCode.COLLECTED_BY_ANOTHER, kind=kind)))
            return 3
        if result.error:
            self.stderr.write(f"{kind}: {with_code(result.error)}")
            return 1 if result.seq else 3
        self.stdout.write(f"{kind}: stored as refresh {result.epoch}.{result.seq}")
        return 0

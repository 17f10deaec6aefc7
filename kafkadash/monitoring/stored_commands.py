"""Base of commands that print stored facts of one cluster, as lines or as JSON, with their age."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from kafkadash.accounts.errors import CodedCommandError, command_error
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import message_json
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import FactFreshness, load_standing
from kafkadash.monitoring.models import CollectorKind

BAD = 2
"""Exit code: bad input, or nothing was collected."""


class StoredFactsCommand(BaseCommand, ABC):
    """``answer`` prints; with ``--json`` it ends with ``print_json``, and so does a failure."""

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.answer(options)
        except CodedCommandError as error:
            if not options.get("json"):
                raise
            self.stdout.write(json.dumps(message_json(error.message), indent=2, ensure_ascii=False))
            sys.exit(error.returncode)

    @abstractmethod
    def answer(self, options: Mapping[str, Any]) -> None:
        """Raises CodedCommandError."""

    def print_age(self, freshness: FactFreshness) -> None:
        assert freshness.taken_at is not None, "find_freshness came first"
        assert freshness.age_s is not None
        old = " (stale)" if freshness.stale else ""
        self.stdout.write(f"As of {format_time(freshness.taken_at)}, {format_duration(freshness.age_s)} ago{old}.")

    def print_json(self, freshness: FactFreshness, content: Mapping[str, Any]) -> None:
        assert freshness.taken_at is not None, "find_freshness came first"
        age = {
            "taken_at": freshness.taken_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "age_s": freshness.age_s,
            "stale": freshness.stale,
        }
        self.stdout.write(json.dumps({**age, **content}, indent=2, ensure_ascii=False))


def add_output_options(*parsers: ArgumentParser) -> None:
    for parser in parsers:
        parser.add_argument("--json", action="store_true", help="print JSON")
        add_cluster_option(parser)


def add_cluster_option(parser: ArgumentParser) -> None:
    parser.add_argument("--cluster", required=True, metavar="NAME", help="cluster name in the URL of its pages")


def find_cluster(slug: str) -> Cluster:
    """Raises CodedCommandError."""
    cluster = Cluster.objects.filter(slug=slug).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none yet"
        raise command_error(ClusterErrorCode.CLUSTER_UNKNOWN, slug=slug, known=known, returncode=BAD)
    return cluster


def find_freshness(cluster: Cluster, kind: CollectorKind) -> FactFreshness:
    """Nothing collected is an error, not an empty list. Raises CodedCommandError."""
    freshness = load_standing(cluster, clock.now()).freshness_of(kind)
    if freshness.taken_at is None:
        raise command_error(CollectionErrorCode.NOT_COLLECTED, cluster=cluster.name, returncode=BAD)
    return freshness


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def format_iso(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None


def join_brokers(brokers: Iterable[int]) -> str:
    """Return ids as Kafka's tools write them."""
    return ",".join(map(str, brokers))


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines whose columns begin at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()

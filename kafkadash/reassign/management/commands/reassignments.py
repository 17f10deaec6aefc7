"""``manage.py reassignments verify|list|describe``: what moves, and what became of a file, without a browser.

``verify`` asks Kafka itself; ``list`` and ``describe`` tell what was collected, with its age.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from kafkadash.accounts.errors import command_error
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import IdentityChanged, check_identity
from kafkadash.domain.kafka_json import JsonRow, read_reassignment
from kafkadash.domain.verify import State, Told, Verdict, answer, brokers_of, tally, topics_of, verify
from kafkadash.domain.wording import count, duration
from kafkadash.kafka.connect import own_admin
from kafkadash.kafka.port import KafkaFailure
from kafkadash.observe.models import CollectorRun, Kind
from kafkadash.observe.queries.reassignments import reassignment_rows, running_rows
from kafkadash.observe.standing import Freshness, freshness_of
from kafkadash.reassign.described import NotDescribed, as_json, find, in_kafkas_words, lines, started
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.uploads import LARGEST_BYTES
from kafkadash.reassign.verify_ask import verify_now

BAD = 2  # exit: bad input, or the cluster does not answer
MOST_PROBLEMS = 20


class Command(BaseCommand):
    help = "Reassignments of a cluster: verify a file, list what moves, describe one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        verifier = commands.add_parser(
            "verify",
            help="Compares a file of kafka-reassign-partitions with the cluster; changes nothing, no throttles either. "
            "Exit 0 if all is completed, 1 if not, 2 if the file or the cluster cannot be read.",
        )
        verifier.add_argument("file", help='Kafka\'s JSON; "-" for standard input')
        lister = commands.add_parser("list", help="What moves, as collected.")
        lister.add_argument("--json", action="store_true", help="for programs")
        describe = commands.add_parser("describe", help="One reassignment, as collected.")
        describe.add_argument("which", metavar="ID|TOPIC-PARTITION", help="r-…, or for example orders-0")
        describe.add_argument("--json", action="store_true", help="for programs")
        for each in (verifier, lister, describe):
            each.add_argument("--cluster", required=True, metavar="NAME", help="name in the URL of the cluster's pages")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = _cluster(options["cluster"])
        match options["command"]:
            case "verify":
                self._verify(cluster, options["file"])
            case "list":
                self._list(cluster, as_data=options["json"])
            case _:
                self._describe(cluster, options["which"], as_data=options["json"])

    def _verify(self, cluster: Cluster, file: str) -> None:
        # In the order in which Kafka's tool prints them.
        found = sorted(_asked(cluster, self._rows(file)), key=lambda verdict: (verdict.topic, verdict.partition))
        self.stdout.write("Status of partition reassignment:")
        for verdict in found:
            for sentence in verdict.words:
                self.stdout.write(sentence)
            if verdict.note:
                self.stdout.write(f"  {verdict.note}")
        self.stdout.write(f"{answer(tally(found))} Nothing was changed; throttles stay as they are.")
        if any(verdict.state != State.COMPLETED for verdict in found):
            sys.exit(1)

    def _rows(self, file: str) -> list[JsonRow]:
        """Raises CommandError with one sentence; problems of the file are listed before it."""
        parsed = read_reassignment(_content(file))
        for notice in parsed.notices:
            self.stderr.write(str(notice))
        for problem in parsed.problems[:MOST_PROBLEMS]:
            self.stderr.write(str(problem))
        if parsed.problems:
            more = f", of which {MOST_PROBLEMS} are listed" if len(parsed.problems) > MOST_PROBLEMS else ""
            raise command_error(
                ReassignmentErrorCode.FILE_NOT_VERIFIED,
                file=file,
                problems=f"{count(len(parsed.problems), 'problem')}{more}",
                returncode=BAD,
            )
        return parsed.rows

    def _list(self, cluster: Cluster, *, as_data: bool) -> None:
        freshness = _freshness(cluster)
        age = _age(cluster, freshness)
        rows = reassignment_rows(cluster, running_rows(cluster), freshness.now)
        if as_data:
            self._json(freshness, {"reassignments": [as_json(row) for row in rows]})
            return
        self.stdout.write(age)
        self.stdout.write("Current partition reassignments:" if rows else "No partition reassignments found.")
        for row in sorted(rows, key=lambda row: (row.snapshot.topic, row.snapshot.partition)):
            self.stdout.write(in_kafkas_words(row))
            percent = "unknown" if row.percent is None else f"{int(row.percent * 10) / 10:.1f} %"
            copied = f", {percent} copied" if row.snapshot.adding else ""
            self.stdout.write(f"  {row.id}, {row.state}{copied}, started {started(row)}")

    def _describe(self, cluster: Cluster, which: str, *, as_data: bool) -> None:
        freshness = _freshness(cluster)
        age = _age(cluster, freshness)
        try:
            found = find(cluster, which, freshness.now)
        except NotDescribed as error:
            raise CommandError(str(error), returncode=BAD) from error
        if as_data:
            described = as_json(found.row) if found.row else None
            self._json(freshness, {"reassignment": described, "sentence": found.sentence})
            return
        self.stdout.write(age)
        if found.sentence:
            self.stdout.write(found.sentence)
        for field, value in lines(found.row) if found.row else ():
            self.stdout.write(f"{field + ':':<11}{value}")

    def _json(self, freshness: Freshness, content: dict[str, Any]) -> None:
        assert freshness.taken_at is not None  # ``_age`` came first
        age = {
            "taken_at": freshness.taken_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "age_s": freshness.age_s,
            "stale": freshness.stale,
        }
        self.stdout.write(json.dumps({**age, **content}, indent=2, ensure_ascii=False))


def _asked(cluster: Cluster, rows: list[JsonRow]) -> list[Verdict]:
    """Raises CommandError."""
    verdicts: list[Verdict] = []

    def judge(told: Told) -> Mapping[State, int]:
        verdicts[:] = verify(rows, told)
        return tally(verdicts)

    try:
        with own_admin(cluster.connection()) as admin:
            verify_now(
                admin,
                topics_of(rows),
                brokers_of(rows),
                judge,
                deadline=lambda: float(settings.KAFKA_DEADLINE),
                step=lambda _share, _note: None,
                check_cluster=lambda kafka_id: check_identity(cluster, kafka_id),
            )
    except (KafkaFailure, SecretError, IdentityChanged) as error:
        raise CommandError(str(error), returncode=BAD) from error
    return verdicts


def _content(file: str) -> bytes:
    """Raises CommandError."""
    try:
        if file == "-":
            content = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise command_error(
            ReassignmentErrorCode.FILE_NOT_READ, file=file, fault=error.strerror or error, returncode=BAD
        ) from error
    if len(content) > LARGEST_BYTES:
        raise command_error(
            ReassignmentErrorCode.FILE_TOO_LONG, file=file, megabytes=LARGEST_BYTES // 10**6, returncode=BAD
        )
    return content


def _freshness(cluster: Cluster) -> Freshness:
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.REASSIGNMENTS).first()
    return freshness_of(run, timezone.now())


def _age(cluster: Cluster, freshness: Freshness) -> str:
    """Nothing collected is an error, not an empty list. Raises CommandError."""
    if freshness.taken_at is None or freshness.age_s is None:
        raise command_error(ReassignmentErrorCode.NOT_COLLECTED, cluster=cluster.name, returncode=BAD)
    then = freshness.taken_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    old = ": too old to be what is now" if freshness.stale else ""
    return f"As of {then}, {duration(freshness.age_s)} ago{old}."


def _cluster(slug: str) -> Cluster:
    """Raises CommandError."""
    cluster = Cluster.objects.filter(slug=slug).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none yet"
        raise command_error(ClusterErrorCode.CLUSTER_UNKNOWN, slug=slug, known=known, returncode=BAD)
    return cluster

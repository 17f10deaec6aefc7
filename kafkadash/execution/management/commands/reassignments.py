"""``manage.py reassignments verify|list|describe``: reassignments (KIP-240) on the command line, as lines or JSON.

``verify`` asks Kafka itself; ``list`` and ``describe`` show what was collected, with its age.
"""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone
from django.utils.html import strip_tags

from kafkadash.accounts.errors import CodedCommandError, command_error
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import IdentityChanged, check_identity
from kafkadash.core.errors import UserError
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import message_json
from kafkadash.kafka.api import KafkaFailure
from kafkadash.kafka.connect import own_admin
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import FactFreshness, freshness_of
from kafkadash.monitoring.models import CollectorKind, CollectorRun, MoveOutcome, ReassignmentSnapshot, TopicState
from kafkadash.monitoring.reassignments.pages import ReassignmentRow, reassignment_rows, running_rows
from kafkadash.monitoring.templatetags.figures import percent_figure
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.kafka_json import JsonRow, read_reassignment
from kafkadash.planning.proposal import LARGEST_BYTES
from kafkadash.verify.job import verify_now
from kafkadash.verify.rules import (
    ClusterAnswers,
    PartitionVerdict,
    VerifyState,
    brokers_of,
    summarize_counts,
    tally,
    topics_of,
    verify,
)

_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})")
_PUBLIC_ID = re.compile(r"r-[a-z0-9]+")


class NotDescribed(UserError):
    """Error when there is nothing to describe; ``str()`` is a sentence."""


@dataclass(frozen=True, slots=True)
class DescribedMoves:
    """Description of a row, running or over, or of a partition that exists and is not being reassigned."""

    row: ReassignmentRow | None
    sentence: str = ""


def find(cluster: Cluster, name: str, now: datetime) -> DescribedMoves:
    """By id (``r-…``) or as Kafka's tools name a partition (topic-partition).

    Kafka's own listing answers nothing for a partition that does not exist; here that is an error, told from the stored
    topics. Raises NotDescribed.
    """
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster)
    if _PUBLIC_ID.fullmatch(name) and (snapshot := rows.filter(public_id=name).first()) is not None:
        [row] = reassignment_rows(cluster, [snapshot], now)
        return DescribedMoves(row, "" if row.running else f"{row.id} is not in progress: {row.state}.")
    named = _NAME.fullmatch(name)
    if named is None or int(named["partition"]) > 2**31 - 1:
        raise NotDescribed(CollectionErrorCode.NO_SUCH_REASSIGNMENT, cluster=cluster.name, asked=name)
    topic, partition = named["topic"], int(named["partition"])
    of_partition = rows.filter(topic=topic, partition=partition)
    running = of_partition.filter(outcome=MoveOutcome.RUNNING).first()
    if running is not None:
        return DescribedMoves(reassignment_rows(cluster, [running], now)[0])
    _check_exists(cluster, topic, partition)
    last = of_partition.order_by("-ended_at").first()
    sentence = f"{name} is not being reassigned"
    if last is None:
        return DescribedMoves(None, f"{sentence}.")
    ended = reassignment_rows(cluster, [last], now)[0]
    return DescribedMoves(None, f"{sentence}. The last reassignment, {ended.id}, has ended: {ended.state}.")


def list_fields(row: ReassignmentRow) -> Iterator[tuple[str, str]]:
    """Field and value, in the order of KIP-240 and the reassignment's own page."""
    seen = row.snapshot
    yield "topic", seen.topic
    yield "partition", str(seen.partition)
    yield "id", row.id
    yield "state", row.state if row.running else f"ended: {row.state}"
    yield "started", describe_start(row)
    if seen.ended_at:
        yield "ended", f"{_format_time(seen.ended_at)}, {row.took}"
    if row.running:
        yield "leader", f"{_format_number(seen.leader)}, throttle: {_strip_markup(row.leader_throttle)}"
        for place, target in enumerate(row.target_throttles):
            role = " (preferred leader)" if place == 0 else ""
            holds = "" if target.adding else ", replica exists"
            yield "target", f"{target.broker}{role}, throttle: {_strip_markup(target.words)}{holds}"
    else:
        yield "target", _format_brokers(seen.target)
    yield "adding", _format_brokers(seen.adding)
    yield "removing", _format_brokers(seen.removing)
    for replica in row.replicas:
        yield "progress", _describe_progress(replica)
    yield "in sync", row.in_sync_words
    yield "last seen", _format_time(seen.last_seen_at)


def as_json(row: ReassignmentRow) -> dict[str, Any]:
    """The same; what nobody could read is null. ``leader_throttle`` and the throttles of targets are words."""
    seen = row.snapshot
    return {
        "id": row.id,
        "topic": seen.topic,
        "partition": seen.partition,
        "state": row.state,
        "running": row.running,
        "started": {
            "not_before": _iso(seen.started_after),
            "not_after": _iso(seen.started_before),
            "from": seen.started_from,
            "continuity_observed": not seen.continuity_gap,
        },
        "ended_at": _iso(seen.ended_at),
        "leader": seen.leader,
        "leader_throttle": _strip_markup(row.leader_throttle) if row.running else None,
        "targets": [
            {
                "broker": target.broker,
                "adding": target.adding,
                "throttle": _strip_markup(target.words) if row.running else None,
            }
            for target in row.target_throttles
        ],
        "adding": seen.adding,
        "removing": seen.removing,
        "percent": seen.percent,
        "replicas": [
            {
                "broker": replica["broker"],
                "percent": replica["percent"],
                "lag_records": replica["lag_records"],
                "in_sync": replica["in_isr"],
                "taken_at": _iso(replica["taken_at"]),
                "error": replica["error"],
            }
            for replica in row.replicas
        ],
        "last_seen_at": _iso(seen.last_seen_at),
    }


def describe_start(row: ReassignmentRow) -> str:
    """The interval with where it comes from."""
    seen = row.snapshot
    when = f"not later than {_format_time(seen.started_before)}"
    if seen.started_after is not None:
        when = f"between {_format_time(seen.started_after)} and {_format_time(seen.started_before)}"
    gap = "; continuity not observed" if seen.continuity_gap else ""
    return f"{when}, {row.started_source}{gap}"


def in_kafkas_words(row: ReassignmentRow) -> str:
    """Format the row like ``kafka-reassign-partitions --list`` (ReassignPartitionsCommand.curReassignmentsToString)."""
    seen = row.snapshot
    adding = f" adding: {_join_brokers(seen.adding)}." if seen.adding else ""
    removing = f" removing: {_join_brokers(seen.removing)}." if seen.removing else ""
    return f"{row.name}: replicas: {_join_brokers(seen.replicas)}.{adding}{removing}"


def _check_exists(cluster: Cluster, topic: str, partition: int) -> None:
    """Raises NotDescribed unless the stored topics have this partition."""
    stored = TopicState.objects.filter(cluster=cluster, name=topic).values_list("partitions", flat=True).first()
    if stored is not None and any(row[0] == partition for row in stored):
        return
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.METADATA).first()
    if run is None or run.succeeded_at is None:
        raise NotDescribed(ReassignmentErrorCode.EXISTENCE_NOT_KNOWN, row=f"{topic}-{partition}")
    raise NotDescribed(
        ReassignmentErrorCode.PARTITION_NOT_THERE, row=f"{topic}-{partition}", at=_format_time(run.succeeded_at)
    )


def _describe_progress(replica: Mapping[str, Any]) -> str:
    """Return the progress of one adding replica as text."""
    broker = replica["broker"]
    if replica["percent"] is None:
        why = f": {replica['error']}" if replica["error"] else ""
        return f"{broker}: unknown{why}"
    lag = replica["lag_records"]
    in_sync = {True: "in sync", False: "not in sync", None: "in-sync state unknown"}[replica["in_isr"]]
    behind = "lag unknown" if lag is None else f"lag {lag:,} records"
    return (
        f"{broker}: {percent_figure(replica['percent'])} % at {_format_time(replica['taken_at'])}, {in_sync}, {behind}"
    )


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _iso(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None


def _format_number(value: int | None) -> str:
    return "none or unknown" if value is None else str(value)


def _strip_markup(words: str) -> str:
    return strip_tags(words)


def _format_brokers(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def _join_brokers(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


BAD = 2  # exit: bad input, or the cluster does not answer
MOST_PROBLEMS = 20


class Command(BaseCommand):
    help = "Verifies a reassignment file, and lists or describes the reassignments of a cluster."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        verifier = commands.add_parser(
            "verify",
            help="Compares a kafka-reassign-partitions file with the cluster. Changes nothing, not even throttles. "
            "Exit code 0: all completed; 1: not all completed; 2: the file or the cluster cannot be read.",
        )
        verifier.add_argument("file", help='reassignment JSON; "-" for standard input')
        lister = commands.add_parser("list", help="Lists the reassignments in progress, from collected data.")
        lister.add_argument("--json", action="store_true", help="print JSON")
        describe = commands.add_parser("describe", help="Describes one reassignment, from collected data.")
        describe.add_argument("which", metavar="ID|TOPIC-PARTITION", help="ID (r-…) or partition (orders-0)")
        describe.add_argument("--json", action="store_true", help="print JSON")
        for each in (verifier, lister, describe):
            each.add_argument("--cluster", required=True, metavar="NAME", help="cluster name in the URL of its pages")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._do(options)
        except CodedCommandError as error:
            if not options.get("json"):
                raise
            self.stdout.write(json.dumps(message_json(error.message), indent=2, ensure_ascii=False))
            sys.exit(error.returncode)

    def _do(self, options: Mapping[str, Any]) -> None:
        cluster = _get_cluster(options["cluster"])
        match options["command"]:
            case "verify":
                self._verify(cluster, options["file"])
            case "list":
                self._list(cluster, as_data=options["json"])
            case _:
                self._describe(cluster, options["which"], as_data=options["json"])

    def _verify(self, cluster: Cluster, file: str) -> None:
        # In the order in which Kafka's tool prints them.
        found = sorted(_verify_rows(cluster, self._rows(file)), key=lambda verdict: (verdict.topic, verdict.partition))
        self.stdout.write("Status of partition reassignment:")
        for verdict in found:
            for sentence in verdict.words:
                self.stdout.write(sentence)
            if verdict.note:
                self.stdout.write(f"  {verdict.note}")
        self.stdout.write(f"{summarize_counts(tally(found))}. Nothing was changed, not even throttles.")
        if any(verdict.state != VerifyState.COMPLETED for verdict in found):
            sys.exit(1)

    def _rows(self, file: str) -> list[JsonRow]:
        """Raises CommandError with one sentence; problems of the file are listed before it."""
        parsed = read_reassignment(_read_content(file))
        for notice in parsed.notices:
            self.stderr.write(str(notice))
        for problem in parsed.problems[:MOST_PROBLEMS]:
            self.stderr.write(str(problem))
        if parsed.problems:
            if len(parsed.problems) > MOST_PROBLEMS:
                self.stderr.write(f"… and {len(parsed.problems) - MOST_PROBLEMS:,} more")
            code = ReassignmentErrorCode.FILE_NOT_VERIFIED
            raise command_error(code, file=file, problems=len(parsed.problems), returncode=BAD)
        return parsed.rows

    def _list(self, cluster: Cluster, *, as_data: bool) -> None:
        freshness = _read_freshness(cluster)
        age = _describe_age(cluster, freshness)
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
            self.stdout.write(f"  {row.id}, {row.state}{copied}, started {describe_start(row)}")

    def _describe(self, cluster: Cluster, which: str, *, as_data: bool) -> None:
        freshness = _read_freshness(cluster)
        age = _describe_age(cluster, freshness)
        try:
            found = find(cluster, which, freshness.now)
        except NotDescribed as error:
            raise command_error(error.message, returncode=BAD) from error
        if as_data:
            described = as_json(found.row) if found.row else None
            self._json(freshness, {"reassignment": described, "sentence": found.sentence})
            return
        self.stdout.write(age)
        if found.sentence:
            self.stdout.write(found.sentence)
        for field, value in list_fields(found.row) if found.row else ():
            self.stdout.write(f"{field + ':':<11}{value}")

    def _json(self, freshness: FactFreshness, content: dict[str, Any]) -> None:
        assert freshness.taken_at is not None  # ``_describe_age`` came first
        age = {
            "taken_at": freshness.taken_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "age_s": freshness.age_s,
            "stale": freshness.stale,
        }
        self.stdout.write(json.dumps({**age, **content}, indent=2, ensure_ascii=False))


def _verify_rows(cluster: Cluster, rows: list[JsonRow]) -> list[PartitionVerdict]:
    """Raises CommandError."""
    verdicts: list[PartitionVerdict] = []

    def judge(told: ClusterAnswers) -> Mapping[VerifyState, int]:
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
        raise command_error(error.message, returncode=BAD) from error
    return verdicts


def _read_content(file: str) -> bytes:
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


def _read_freshness(cluster: Cluster) -> FactFreshness:
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.REASSIGNMENTS).first()
    return freshness_of(run, timezone.now())


def _describe_age(cluster: Cluster, freshness: FactFreshness) -> str:
    """Nothing collected is an error, not an empty list. Raises CommandError."""
    if freshness.taken_at is None or freshness.age_s is None:
        raise command_error(ReassignmentErrorCode.NOT_COLLECTED, cluster=cluster.name, returncode=BAD)
    then = freshness.taken_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    old = " (stale)" if freshness.stale else ""
    return f"As of {then}, {format_duration(freshness.age_s)} ago{old}."


def _get_cluster(slug: str) -> Cluster:
    """Raises CommandError."""
    cluster = Cluster.objects.filter(slug=slug).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("slug", flat=True)) or "none yet"
        raise command_error(ClusterErrorCode.CLUSTER_UNKNOWN, slug=slug, known=known, returncode=BAD)
    return cluster

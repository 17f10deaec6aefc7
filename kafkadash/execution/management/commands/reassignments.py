"""``manage.py reassignments verify|list|describe``: reassignments (KIP-240) on the command line, as lines or JSON.

``list`` may be narrowed to partitions, and ``describe`` takes several ids or partitions.

``verify`` asks Kafka itself; ``list`` and ``describe`` show what was collected, with its age.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from kafkadash.accounts.errors import command_error, with_code
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import IdentityChanged, check_identity
from kafkadash.core.errors import UserError
from kafkadash.core.messages import message_json
from kafkadash.kafka.api import KafkaFailure
from kafkadash.kafka.connect import own_admin
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CollectorKind, CollectorRun, MoveOutcome, ReassignmentSnapshot, TopicState
from kafkadash.monitoring.reassignments.pages import ReassignmentRow, reassignment_rows, running_rows
from kafkadash.monitoring.stored_commands import (
    BAD,
    StoredFactsCommand,
    add_cluster_option,
    add_output_options,
    find_cluster,
    find_freshness,
    format_iso,
    format_time,
    join_brokers,
)
from kafkadash.monitoring.templatetags.figures import percent_figure
from kafkadash.monitoring.throttles import ThrottleLimit
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
        yield "ended", f"{format_time(seen.ended_at)}, {row.took}"
    if row.running:
        yield "leader", f"{_format_number(seen.leader)}, throttle: {row.leader_throttle}"
        for place, target in enumerate(row.target_throttles):
            role = " (preferred leader)" if place == 0 else ""
            holds = "" if target.adding else ", replica exists"
            yield "target", f"{target.broker}{role}, throttle: {target.limit}{holds}"
    else:
        yield "target", _format_brokers(seen.target)
    yield "adding", _format_brokers(seen.adding)
    yield "removing", _format_brokers(seen.removing)
    for replica in row.replicas:
        yield "progress", _describe_progress(replica)
    yield "in sync", row.in_sync_words
    yield "last seen", format_time(seen.last_seen_at) if row.listed else "not listed at any refresh"


def as_json(row: ReassignmentRow) -> dict[str, Any]:
    """The same; what nobody could read is null.

    A throttle has ``known``, and ``bytes_per_second``, which is null also where the replica is not throttled.
    """
    seen = row.snapshot
    return {
        "id": row.id,
        "topic": seen.topic,
        "partition": seen.partition,
        "state": row.state,
        "running": row.running,
        "started": {
            "not_before": format_iso(seen.started_after),
            "not_after": format_iso(seen.started_before),
            "from": seen.started_from,
            "through": seen.started_through or None,
            "batch": seen.batch_id or None,
            "continuity_observed": not seen.continuity_gap,
        },
        "ended_at": format_iso(seen.ended_at),
        "leader": seen.leader,
        "leader_log_end": seen.leader_log_end,
        "leader_throttle": _limit_json(row.leader_throttle) if row.running else None,
        "targets": [
            {
                "broker": target.broker,
                "adding": target.adding,
                "throttle": _limit_json(target.limit) if row.running else None,
            }
            for target in row.target_throttles
        ],
        "adding": seen.adding,
        "removing": seen.removing,
        "percent": seen.percent,
        "replicas": [
            {
                "broker": replica["broker"],
                "log_end": replica["log_end"],
                "percent": replica["percent"],
                "lag_records": replica["lag_records"],
                "in_sync": replica["in_isr"],
                "taken_at": format_iso(replica["taken_at"]),
                "error": replica["error"],
            }
            for replica in row.replicas
        ],
        "last_seen_at": format_iso(seen.last_seen_at) if row.listed else None,
    }


def _limit_json(limit: ThrottleLimit) -> dict[str, Any]:
    return {"known": not limit.unknown, "bytes_per_second": limit.bytes_per_second}


def describe_start(row: ReassignmentRow) -> str:
    """The interval with where it comes from."""
    seen = row.snapshot
    when = f"not later than {format_time(seen.started_before)}"
    if seen.started_after is not None:
        when = f"between {format_time(seen.started_after)} and {format_time(seen.started_before)}"
    gap = "; continuity not observed" if seen.continuity_gap else ""
    return f"{when}, {row.started_source}{gap}"


def in_kafkas_words(row: ReassignmentRow) -> str:
    """Format the row like ``kafka-reassign-partitions --list`` (ReassignPartitionsCommand.curReassignmentsToString)."""
    seen = row.snapshot
    adding = f" adding: {join_brokers(seen.adding)}." if seen.adding else ""
    removing = f" removing: {join_brokers(seen.removing)}." if seen.removing else ""
    return f"{row.name}: replicas: {join_brokers(seen.replicas)}.{adding}{removing}"


def _check_exists(cluster: Cluster, topic: str, partition: int) -> None:
    """Raises NotDescribed unless the stored topics have this partition."""
    stored = TopicState.objects.filter(cluster=cluster, name=topic).values_list("partitions", flat=True).first()
    if stored is not None and any(row[0] == partition for row in stored):
        return
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.METADATA).first()
    if run is None or run.succeeded_at is None:
        raise NotDescribed(ReassignmentErrorCode.EXISTENCE_NOT_KNOWN, row=f"{topic}-{partition}")
    raise NotDescribed(
        ReassignmentErrorCode.PARTITION_NOT_THERE, row=f"{topic}-{partition}", at=format_time(run.succeeded_at)
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
        f"{broker}: {percent_figure(replica['percent'])} % at {format_time(replica['taken_at'])}, {in_sync}, {behind}"
    )


def _format_number(value: int | None) -> str:
    return "none or unknown" if value is None else str(value)


def _format_brokers(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


MOST_PROBLEMS = 20


class Command(StoredFactsCommand):
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
        lister.add_argument(
            "-p", "--partitions", nargs="+", metavar="TOPIC-PARTITION", help="list only those of these partitions"
        )
        describe = commands.add_parser(
            "describe",
            help="Describes reassignments, from collected data. Exit code 2: one of them is not known.",
        )
        describe.add_argument("which", nargs="+", metavar="ID|TOPIC-PARTITION", help="ID (r-…) or partition (orders-0)")
        add_cluster_option(verifier)
        add_output_options(lister, describe)

    def answer(self, options: Mapping[str, Any]) -> None:
        cluster = find_cluster(options["cluster"])
        match options["command"]:
            case "verify":
                self._verify(cluster, options["file"])
            case "list":
                self._list(cluster, options["partitions"], as_data=options["json"])
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

    def _list(self, cluster: Cluster, partitions: Sequence[str] | None, *, as_data: bool) -> None:
        freshness = find_freshness(cluster, CollectorKind.REASSIGNMENTS)
        running = running_rows(cluster)
        if partitions is not None:
            wanted = _read_partitions(cluster, partitions)
            running = running.filter(topic__in={topic for topic, _ in wanted})
            rows = [row for row in running if (row.topic, row.partition) in wanted]
        else:
            rows = list(running)
        moves = reassignment_rows(cluster, rows, freshness.now)
        if as_data:
            self.print_json(freshness, {"reassignments": [as_json(row) for row in moves]})
            return
        self.print_age(freshness)
        self.stdout.write("Current partition reassignments:" if moves else "No partition reassignments found.")
        for row in sorted(moves, key=lambda row: (row.snapshot.topic, row.snapshot.partition)):
            self.stdout.write(in_kafkas_words(row))
            percent = "unknown" if row.percent is None else f"{int(row.percent * 10) / 10:.1f} %"
            copied = f", {percent} copied" if row.snapshot.adding else ""
            self.stdout.write(f"  {row.id}, {row.state}{copied}, started {describe_start(row)}")

    def _describe(self, cluster: Cluster, which: Sequence[str], *, as_data: bool) -> None:
        """Describe each; one that is not known does not hide the others (KIP-240), but is told and ends with 2."""
        freshness = find_freshness(cluster, CollectorKind.REASSIGNMENTS)
        found, unknown = [], []
        for name in dict.fromkeys(which):
            try:
                found.append((name, find(cluster, name, freshness.now)))
            except NotDescribed as error:
                unknown.append(error)
        if not found:
            raise command_error(unknown[0].message, returncode=BAD) from unknown[0]
        if as_data:
            told = [
                {"asked": name, "reassignment": as_json(one.row) if one.row else None, "sentence": one.sentence}
                for name, one in found
            ]
            self.print_json(
                freshness, {"reassignments": told, "unknown": [message_json(missing.message) for missing in unknown]}
            )
        else:
            self.print_age(freshness)
            for place, (_, one) in enumerate(found):
                self._print_described(one, apart=place > 0)
        for missing in unknown:
            self.stderr.write(with_code(missing.message))
        if unknown:
            sys.exit(BAD)

    def _print_described(self, described: DescribedMoves, *, apart: bool) -> None:
        if apart:
            self.stdout.write("")
        if described.sentence:
            self.stdout.write(described.sentence)
        for field, value in list_fields(described.row) if described.row else ():
            self.stdout.write(f"{field + ':':<11}{value}")


def _read_partitions(cluster: Cluster, names: Sequence[str]) -> set[tuple[str, int]]:
    """Raises CodedCommandError for a partition that the cluster does not have, of which Kafka's listing is silent."""
    found = set()
    for name in names:
        named = _NAME.fullmatch(name)
        if named is None or int(named["partition"]) > 2**31 - 1:
            code = CollectionErrorCode.NO_SUCH_REASSIGNMENT
            raise command_error(code, cluster=cluster.name, asked=name, returncode=BAD)
        try:
            _check_exists(cluster, named["topic"], int(named["partition"]))
        except NotDescribed as error:
            raise command_error(error.message, returncode=BAD) from error
        found.add((named["topic"], int(named["partition"])))
    return found


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

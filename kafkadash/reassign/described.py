"""A reassignment as a command describes it (KIP-240), of stored rows: in lines for a person, in JSON for a program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.html import strip_tags

from kafkadash.clusters.models import Cluster
from kafkadash.domain.errors import UserError
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import CollectorRun, Kind, Outcome, ReassignmentSnapshot, TopicState
from kafkadash.observe.queries.reassignments import reassignment_rows
from kafkadash.observe.reassignment_rows import ReassignmentRow
from kafkadash.observe.templatetags.figures import percent_figure
from kafkadash.reassign.errors import ReassignmentErrorCode

_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})")
_PUBLIC_ID = re.compile(r"r-[a-z0-9]+")


class NotDescribed(UserError):
    """There is nothing to describe; ``str()`` is a sentence."""


@dataclass(frozen=True, slots=True)
class Described:
    """What was asked for: a row, running or over; or a partition that exists and is not being reassigned."""

    row: ReassignmentRow | None
    sentence: str = ""


def find(cluster: Cluster, asked: str, now: datetime) -> Described:
    """By id (``r-…``) or as Kafka's tools name a partition (topic-partition).

    Kafka's own listing answers nothing for a partition that does not exist; here that is an error, told from the stored
    topics. Raises NotDescribed.
    """
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster)
    if _PUBLIC_ID.fullmatch(asked) and (snapshot := rows.filter(public_id=asked).first()) is not None:
        [row] = reassignment_rows(cluster, [snapshot], now)
        return Described(row, "" if row.running else f"{row.id} is not running: {row.state}.")
    named = _NAME.fullmatch(asked)
    if named is None or int(named["partition"]) > 2**31 - 1:
        raise NotDescribed(CollectionErrorCode.NO_SUCH_REASSIGNMENT, cluster=cluster.name, asked=asked)
    topic, partition = named["topic"], int(named["partition"])
    of_partition = rows.filter(topic=topic, partition=partition)
    running = of_partition.filter(outcome=Outcome.RUNNING).first()
    if running is not None:
        return Described(reassignment_rows(cluster, [running], now)[0])
    _check_exists(cluster, topic, partition)
    last = of_partition.order_by("-ended_at").first()
    sentence = f"{asked} is not being reassigned"
    if last is None:
        return Described(None, f"{sentence}.")
    ended = reassignment_rows(cluster, [last], now)[0]
    return Described(None, f"{sentence}; the last one, {ended.id}, is not running: {ended.state}.")


def lines(row: ReassignmentRow) -> Iterator[tuple[str, str]]:
    """Field and value, in the order of KIP-240 and the reassignment's own page."""
    seen = row.snapshot
    yield "topic", seen.topic
    yield "partition", str(seen.partition)
    yield "id", row.id
    yield "state", row.state if row.running else f"not running: {row.state}"
    yield "started", started(row)
    if seen.ended_at:
        yield "ended", f"{_moment(seen.ended_at)}, {row.took}"
    if row.running:
        yield "leader", f"{_known(seen.leader)}, throttle: {_plain(row.leader_throttle)}"
        for place, target in enumerate(row.target_throttles):
            role = " (preferred leader)" if place == 0 else ""
            holds = "" if target.adding else ", holds it already"
            yield "target", f"{target.broker}{role}, throttle: {_plain(target.words)}{holds}"
    else:
        yield "target", _ids(seen.target)
    yield "adding", _ids(seen.adding)
    yield "removing", _ids(seen.removing)
    for replica in row.replicas:
        yield "progress", _progress(replica)
    yield "in sync", row.in_sync_words
    yield "last seen", _moment(seen.last_seen_at)


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
        "leader_throttle": _plain(row.leader_throttle) if row.running else None,
        "targets": [
            {
                "broker": target.broker,
                "adding": target.adding,
                "throttle": _plain(target.words) if row.running else None,
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


def started(row: ReassignmentRow) -> str:
    """The interval with where it comes from."""
    seen = row.snapshot
    when = f"not later than {_moment(seen.started_before)}"
    if seen.started_after is not None:
        when = f"between {_moment(seen.started_after)} and {_moment(seen.started_before)}"
    gap = "; continuity not observed" if seen.continuity_gap else ""
    return f"{when}, {row.started_source}{gap}"


def in_kafkas_words(row: ReassignmentRow) -> str:
    """As ``kafka-reassign-partitions --list`` prints it (ReassignPartitionsCommand.curReassignmentsToString)."""
    seen = row.snapshot
    adding = f" adding: {_joined(seen.adding)}." if seen.adding else ""
    removing = f" removing: {_joined(seen.removing)}." if seen.removing else ""
    return f"{row.name}: replicas: {_joined(seen.replicas)}.{adding}{removing}"


def _check_exists(cluster: Cluster, topic: str, partition: int) -> None:
    """Raises NotDescribed unless the stored topics have this partition."""
    stored = TopicState.objects.filter(cluster=cluster, name=topic).values_list("partitions", flat=True).first()
    if stored is not None and any(row[0] == partition for row in stored):
        return
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.METADATA).first()
    if run is None or run.succeeded_at is None:
        raise NotDescribed(ReassignmentErrorCode.EXISTENCE_NOT_KNOWN, row=f"{topic}-{partition}")
    raise NotDescribed(
        ReassignmentErrorCode.PARTITION_NOT_THERE, row=f"{topic}-{partition}", at=_moment(run.succeeded_at)
    )


def _progress(replica: Mapping[str, Any]) -> str:
    """Of one adding replica."""
    broker = replica["broker"]
    if replica["percent"] is None:
        why = f": {replica['error']}" if replica["error"] else ""
        return f"{broker}: unknown{why}"
    lag = replica["lag_records"]
    in_sync = {True: "in sync", False: "not in sync", None: "in sync unknown"}[replica["in_isr"]]
    behind = "lag unknown" if lag is None else f"lag {lag:,} records"
    return f"{broker}: {percent_figure(replica['percent'])} % at {_moment(replica['taken_at'])}, {in_sync}, {behind}"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _iso(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None


def _known(value: int | None) -> str:
    return "none or unknown" if value is None else str(value)


def _plain(words: str) -> str:
    return strip_tags(words)


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def _joined(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))

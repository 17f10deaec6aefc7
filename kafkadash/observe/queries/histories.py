"""History of groups, topics, brokers and the quorum, as their pages show it: five queries at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.messages import message_text
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.history.names import stored_name
from kafkadash.observe.history.standing import pipeline_standing
from kafkadash.observe.models import Series, SeriesKind
from kafkadash.observe.queries.rollup_panel import (
    BYTES,
    MILLISECONDS,
    PERCENTILES,
    RECORDS,
    REPLICAS,
    Line,
    Shown,
    panel,
)
from kafkadash.observe.queries.rollups import RANGES, Lines, Range, read_lines, worst_of

_GROUP = Shown("group-history", "Records of lag", RECORDS, PERCENTILES, "p95", "p95", "Of all partitions and samples.")
_TOPIC_LAG = Shown(
    "topic-lag-history",
    "Records of lag",
    RECORDS,
    PERCENTILES,
    "p95",
    "p95",
    "Of all groups, partitions and samples.",
    empty="It may be that no group read the topic.",
)
_TOPIC_SIZE = Shown(
    "topic-size-history",
    "Bytes on disk",
    BYTES,
    [Line("other", "all replicas", 1, 1.5)],
    "other",
    "Its size",
    "Of all replicas, as they were last read.",
    empty="Bytes are told where every broker answered.",
)
_BROKER_BYTES = Shown(
    "broker-bytes-history",
    "Bytes of its replicas",
    BYTES,
    [Line("total", "all replicas together", 1, 1.5), Line("most", "the largest replica", 2)],
    "total",
    "All together",
    "All together is the mean size of a replica times their number: an estimate where that changes.",
)
_BROKER_REPLICAS = Shown(
    "broker-replicas-history",
    "Number of replicas",
    REPLICAS,
    [Line("other", "replicas", 1, 1.5)],
    "other",
    "Their number",
    "What its log directories hold, as last read.",
)
_NODE_LAG = Shown(
    "node-lag-history",
    "Lag in ms",
    MILLISECONDS,
    PERCENTILES,
    "p95",
    "p95",
    "Of all samples, on the leader’s clock.",
    events=("changes", "leader change"),
    empty="A node that led all the time has none.",
)
_NODE_FETCH = Shown(
    "node-fetch-history",
    "Age of the last fetch in ms",
    MILLISECONDS,
    [Line("other", "age of its last fetch", 1, 1.5)],
    "other",
    "Its age",
    "Of all samples, on the leader’s clock.",
    empty="A node that led all the time has none.",
)


def group_history_context(
    cluster: Cluster, group: str, topic: str | None, chosen: Range, now: datetime
) -> dict[str, Any]:
    """One topic of the group; the one with the largest lag where none is asked for."""
    series = _series(cluster, SeriesKind.GROUP, "topic", group=stored_name(group))
    shown = topic if topic in series else worst_of(series, chosen, now)
    unknown = topic and topic not in series
    return {
        "group": group,
        "choices": sorted(series),
        "choice": shown or "",
        "choice_name": "topic",
        "problem": message_text(CollectionErrorCode.NO_HISTORY_OF_TOPIC, topic=topic[:249])
        if topic and unknown
        else "",
        **_context(cluster, series.get(shown or ""), [_GROUP], chosen, now),
    }


def topic_history_context(cluster: Cluster, topic: str, chosen: Range, now: datetime) -> dict[str, Any]:
    series = _series(cluster, SeriesKind.TOPIC, "topic", topic=topic)
    return {"topic": topic, **_context(cluster, series.get(topic), [_TOPIC_LAG, _TOPIC_SIZE], chosen, now)}


def broker_history_context(cluster: Cluster, broker: int, chosen: Range, now: datetime) -> dict[str, Any]:
    series = _series(cluster, SeriesKind.BROKER, "node", node=broker)
    return {"broker": broker, **_context(cluster, series.get(broker), [_BROKER_BYTES, _BROKER_REPLICAS], chosen, now)}


def quorum_history_context(cluster: Cluster, node: str | None, chosen: Range, now: datetime) -> dict[str, Any]:
    """One node of the quorum; the one that was farthest behind where none is asked for."""
    series = _series(cluster, SeriesKind.QUORUM, "node")
    asked = next((known for known in series if str(known) == node), None)
    shown = worst_of(series, chosen, now) if asked is None else asked
    return {
        "choices": sorted(series),
        "choice": shown,
        "choice_name": "node",
        "zookeeper": cluster.mode == Mode.ZOOKEEPER,
        "problem": message_text(CollectionErrorCode.NO_HISTORY_OF_NODE, typed=node[:20])
        if node and series and asked is None
        else "",
        **_context(cluster, None if shown is None else series[shown], [_NODE_LAG, _NODE_FETCH], chosen, now),
    }


def _series(cluster: Cluster, kind: SeriesKind, by: str, **about: Any) -> Mapping[Any, int]:
    return dict(Series.objects.filter(cluster=cluster, kind=kind, **about).values_list(by, "pk"))


def _context(
    cluster: Cluster, series: int | None, shown: Sequence[Shown], chosen: Range, now: datetime
) -> dict[str, Any]:
    lines = _read(series, shown, chosen, now)
    return {
        "cluster": cluster,
        "now": now,
        "chosen": chosen,
        "ranges": RANGES,
        "standing": pipeline_standing(now),
        "lines": lines,
        "newest_at": lines.newest_at,
        "panels": [panel(one, lines, chosen) for one in shown],
    }


def _read(series: int | None, shown: Sequence[Shown], chosen: Range, now: datetime) -> Lines:
    """``total``: bytes of all replicas. A rollup has the mean size of one, and their number."""
    named = {column for one in shown for column in (*one.columns, *(one.events or ())[:1])}
    stored = (named - {"total"}) | ({"mean", "other"} if "total" in named else set())
    lines = read_lines(series, sorted(stored), chosen, now)
    if "total" not in named:
        return lines
    pairs = zip(lines.values["mean"], lines.values["other"], strict=True)
    total = [None if mean is None or number is None else mean * number for mean, number in pairs]
    return Lines(lines.begin, lines.grain, {**lines.values, "total": total})

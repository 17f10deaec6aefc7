"""What a plan does, what proves it and what is left, as data: the report of ``manage.py plan`` (05-planner.md §1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from kafkadash.domain.impact import BrokerImpact, Impact, rates_around, seconds
from kafkadash.domain.plan import Row, canonical, sha256
from kafkadash.domain.planner.planned import Planned
from kafkadash.domain.planner.request import DRAIN, REPLACE, PlanRequest
from kafkadash.domain.planner.request_problems import receivers
from kafkadash.domain.planner.topic_choice import chosen
from kafkadash.domain.planner.topology import Partition, Topic, Topology
from kafkadash.domain.rack_spread import spread
from kafkadash.domain.wording import count

FORMAT = 1
THROTTLE = 50_000_000
"""Bytes per second per broker and direction, around which durations are told."""
PER_BROKER = 5
"""Moves at once per broker and direction, as ``plan.Options`` has it."""
MOST_LISTED = 1_000


def report_of(topology: Topology, request: PlanRequest, planned: Planned, impact: Impact) -> dict[str, Any]:
    """For JSON: counts are replicas or partitions, bytes are bytes, None is not known. ``impact``: of the same rows.

    ``violations_left`` and ``risky_rows`` list the first 1,000 of ``count``. The makespan is the least time: the most
    that one broker receives or sends at a rate, or the largest single replica; waves are told for moves that take
    equally long, each from the leader to the new replica.
    """
    proof, rows = planned.proof, planned.rows
    return {
        "format": FORMAT,
        "mode": request.mode,
        "request": request.as_json(),
        "plan_sha256": sha256(canonical(rows)),
        "partitions": len(rows),
        "partitions_total": impact.partitions_total,
        "moves": sum(len(row.adding) for row in rows),
        "only_reordered": impact.only_reordered,
        "leaders_moved": impact.leaders_moved,
        "bytes_moved": impact.copied_bytes,
        "bytes_moved_known": impact.known_bytes,
        "unsized_partitions": impact.unsized,
        "lower_bound": proof.lowest if proof else None,
        "ratio": proof.ratio if proof else None,
        "proven_least": bool(proof and proof.exact),
        "certificate": proof.as_json() if proof else None,
        "brokers": [_broker(one) for one in impact.brokers],
        "racks": list(_racks(impact.brokers, request)),
        "rack_spread": {
            "judged": impact.violations_before is not None,
            "violations_before": impact.violations_before,
            "violations_after": impact.violations_after,
            "partitions_in_fewer_racks": impact.racks_lost,
            "partitions_less_even": impact.spread_worse,
        },
        "violations_left": _violations_left(topology, request, rows),
        "notices": [str(notice) for notice in planned.notices],
        "risky_rows": {
            "count": len(impact.exceptions),
            "listed": [asdict(one) for one in impact.exceptions[:MOST_LISTED]],
        },
        "makespan": _makespan(topology, rows, impact),
    }


def _broker(one: BrokerImpact) -> dict[str, Any]:
    used = _used(one)
    after = None
    if used is not None and one.bytes_before is not None and one.bytes_after is not None:
        after = used + one.bytes_after - one.bytes_before
    return {
        "id": one.id,
        "rack": one.rack,
        "alive": one.alive,
        "replicas": {"before": one.replicas_before, "after": one.replicas_after},
        "leaders": {"before": one.leaders_before, "after": one.leaders_after},
        "bytes": {"before": one.bytes_before, "after": one.bytes_after},
        "disk": {"total": one.disk_bytes, "before": used, "peak": one.peak_bytes, "after": after},
        "bytes_in": one.bytes_in,
        "bytes_out": one.bytes_out,
    }


def _used(one: BrokerImpact) -> int | None:
    """Before anything moves; what is copied to it comes on top at worst."""
    return one.bytes_before if one.peak_bytes is None else one.peak_bytes - one.bytes_in


def _racks(brokers: Sequence[BrokerImpact], request: PlanRequest) -> Iterator[dict[str, Any]]:
    """``per_broker``: least and most replicas of one that is alive and not emptied, before and after; None where none
    is.
    """
    emptied = request.brokers if request.mode in (DRAIN, REPLACE) else ()
    by_rack: defaultdict[str | None, list[BrokerImpact]] = defaultdict(list)
    for one in brokers:
        by_rack[one.rack].append(one)
    for rack, own in sorted(by_rack.items(), key=lambda item: (item[0] is None, item[0] or "")):
        alive = [one for one in own if one.alive and one.id not in emptied]
        yield {
            "rack": rack,
            "brokers": len(own),
            "replicas": {
                "before": sum(one.replicas_before for one in own),
                "after": sum(one.replicas_after for one in own),
            },
            "leaders": {
                "before": sum(one.leaders_before for one in own),
                "after": sum(one.leaders_after for one in own),
            },
            "bytes": {
                "before": _sum([one.bytes_before for one in own]),
                "after": _sum([one.bytes_after for one in own]),
            },
            "per_broker": {
                "before": _span([one.replicas_before for one in alive]),
                "after": _span([one.replicas_after for one in alive]),
            },
        }


def _sum(bytes_: Sequence[int | None]) -> int | None:
    known = [one for one in bytes_ if one is not None]
    return sum(known) if len(known) == len(bytes_) else None


def _span(counts: Sequence[int]) -> list[int] | None:
    return [min(counts), max(counts)] if counts else None


def _violations_left(topology: Topology, request: PlanRequest, rows: Sequence[Row]) -> dict[str, Any]:
    left = list(_Violations(topology, request, rows).all())
    reasons = Counter(one["why"] for one in left)
    by_reason = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
    return {"count": len(left), "reasons": by_reason, "listed": left[:MOST_LISTED]}


class _Violations:
    """Partitions that lie in racks less evenly than they could when all is done, and why nothing is done about it."""

    def __init__(self, topology: Topology, request: PlanRequest, rows: Sequence[Row]) -> None:
        self._topology, self._request = topology, request
        self._targets = {(row.topic, row.partition): row.target for row in rows}
        self._racks = {} if request.ignore_racks else topology.racks
        self._many = len(set(self._racks.values()))
        self._asked = frozenset(chosen(request, topology.topics))
        self._open = {self._racks[b.id] for b in receivers(request, topology) if b.id in self._racks}
        self._violates: dict[tuple[str, ...], bool] = {}

    def all(self) -> Iterator[dict[str, Any]]:
        if not self._racks:
            return
        for name, topic in sorted(self._topology.topics.items()):
            for p in topic.partitions:
                replicas = self._targets.get((name, p.partition), p.replicas)
                if self._is_uneven(replicas):
                    held = spread(replicas, self._racks, self._many).per_rack
                    yield {
                        "topic": name,
                        "partition": p.partition,
                        "per_rack": dict(sorted(held.items())),
                        "why": self._why(topic, p, replicas),
                    }

    def _is_uneven(self, replicas: tuple[int, ...]) -> bool:
        """Remembered by the racks of the replicas, of which there are few combinations."""
        key = tuple(self._racks.get(broker, "\0") for broker in replicas)
        known = self._violates.get(key)
        if known is None:
            known = self._violates[key] = spread(replicas, self._racks, self._many).violates
        return known

    def _why(self, topic: Topic, p: Partition, replicas: tuple[int, ...]) -> str:
        if p.moving:
            return "it is being reassigned already"
        if topic.name not in self._asked:
            return "its topic is not among those asked for"
        if (topic.name, p.partition) not in self._targets:
            return f"{self._request.mode} does not move it; repair-racks does"
        kept = {self._racks[broker] for broker in replicas if broker in p.replicas and broker in self._racks}
        wanted = min(len(replicas), self._many)
        if len(kept | self._open) < wanted:
            has = count(len(kept | self._open), "rack")
            return f"it needs {wanted} racks, and brokers that may hold it are in {has} only"
        return "what has to stay, and who may be given replicas, allow no more even spread"


def _makespan(topology: Topology, rows: Sequence[Row], impact: Impact) -> dict[str, Any]:
    leaders = {
        (name, p.partition): p.leader
        for name in {row.topic for row in rows if row.adding}
        for p in topology.topics[name].partitions
    }
    degree: Counter[tuple[int, str]] = Counter()
    for row in rows:
        adding = row.adding
        if adding:
            source = leaders[row.topic, row.partition]
            degree[row.current[0] if source is None else source, "out"] += len(adding)
            degree.update((broker, "in") for broker in adding)
    most = max(degree.values(), default=0)
    known = impact.binding_bytes is not None and impact.largest_bytes is not None
    return {
        "bound_bytes": max(impact.binding_bytes or 0, impact.largest_bytes or 0) if known else None,
        "broker": impact.binding_broker,
        "direction": impact.binding_direction or None,
        "broker_bytes": impact.binding_bytes,
        "largest_move_bytes": impact.largest_bytes,
        "at": [{"bytes_per_s": rate, "seconds": seconds(impact, rate)} for rate in rates_around(THROTTLE)],
        "waves": {"moves_at_once": PER_BROKER, "most_moves_of_a_broker": most, "waves": -(-most // PER_BROKER)},
    }

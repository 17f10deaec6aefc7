"""Report of a plan (``manage.py plan``): its effect, its proof and what is left, as data and as text for a terminal.

A report can be read back: the request and the proof, all validated, because the file is not trusted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kafkadash.changes.plan import PartitionMove, canonical_bytes, hash_artifact
from kafkadash.core.formatting import format_size, run_time
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import choose_plural
from kafkadash.core.racks import judge_spread
from kafkadash.planning.impact import BrokerImpact, PlanImpact, estimate_copy_seconds, rates_around
from kafkadash.planning.solver.request import DRAIN, MODES, REPLACE, PlanProof, PlanRequest, choose_topics
from kafkadash.planning.solver.request_problems import PlanAnswer, list_receivers
from kafkadash.planning.topology import LARGEST_ID, MOST_BYTES, ClusterTopology, PlannedPartition, PlannedTopic

FORMAT = 1
THROTTLE = 50_000_000
"""Bytes per second per broker and direction, around which durations are told."""
PER_BROKER = 5
"""Moves at once per broker and direction, as ``plan.Options`` has it."""
MOST_LISTED = 1_000


def report_of(
    topology: ClusterTopology, request: PlanRequest, planned: PlanAnswer, impact: PlanImpact
) -> dict[str, Any]:
    """For JSON: counts are replicas or partitions, bytes are bytes, None is not known. ``impact``: of the same rows.

    ``violations_left`` and ``risky_rows`` list the first 1,000 of ``count``. The makespan is the least time: the most
    that one broker receives or sends at a rate, or the largest single replica; waves are told for moves that take
    equally long, each from the leader to the new replica.
    """
    proof, rows = planned.proof, planned.rows
    return {
        "format": FORMAT,
        "mode": request.mode,
        "request": pack_dataclass(request),
        "plan_sha256": hash_artifact(canonical_bytes(rows)),
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
        "certificate": pack_dataclass(proof) if proof else None,
        "brokers": [_summarize_broker(one) for one in impact.brokers],
        "racks": list(_summarize_racks(impact.brokers, request)),
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
        "makespan": _summarize_makespan(topology, rows, impact),
    }


def _summarize_broker(one: BrokerImpact) -> dict[str, Any]:
    used = _compute_used(one)
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


def _compute_used(one: BrokerImpact) -> int | None:
    """Before anything moves; what is copied to it comes on top at worst."""
    return one.bytes_before if one.peak_bytes is None else one.peak_bytes - one.bytes_in


def _summarize_racks(brokers: Sequence[BrokerImpact], request: PlanRequest) -> Iterator[dict[str, Any]]:
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


def _violations_left(topology: ClusterTopology, request: PlanRequest, rows: Sequence[PartitionMove]) -> dict[str, Any]:
    left = list(_RackViolations(topology, request, rows).all())
    reasons = Counter(one["why"] for one in left)
    by_reason = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
    return {"count": len(left), "reasons": by_reason, "listed": left[:MOST_LISTED]}


class _RackViolations:
    """Partitions that lie in racks less evenly than they could when all is done, and why nothing is done about it."""

    def __init__(self, topology: ClusterTopology, request: PlanRequest, rows: Sequence[PartitionMove]) -> None:
        self._topology, self._request = topology, request
        self._targets = {(row.topic, row.partition): row.target for row in rows}
        self._racks = {} if request.ignore_racks else topology.racks
        self._many = len(set(self._racks.values()))
        self._asked = frozenset(choose_topics(request, topology.topics, topology.internal_topics))
        self._open = {self._racks[b.id] for b in list_receivers(request, topology) if b.id in self._racks}
        self._violates: dict[tuple[str, ...], bool] = {}

    def all(self) -> Iterator[dict[str, Any]]:
        if not self._racks:
            return
        for name, topic in sorted(self._topology.topics.items()):
            for p in topic.partitions:
                replicas = self._targets.get((name, p.partition), p.replicas)
                if self._is_uneven(replicas):
                    held = judge_spread(replicas, self._racks, self._many).per_rack
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
            known = self._violates[key] = judge_spread(replicas, self._racks, self._many).violates
        return known

    def _why(self, topic: PlannedTopic, p: PlannedPartition, replicas: tuple[int, ...]) -> str:
        if p.moving:
            return "already being reassigned"
        if topic.name not in self._asked:
            return "topic not selected"
        if (topic.name, p.partition) not in self._targets:
            return f"not moved by {self._request.mode}; use repair-racks"
        kept = {self._racks[broker] for broker in replicas if broker in p.replicas and broker in self._racks}
        wanted = min(len(replicas), self._many)
        if len(kept | self._open) < wanted:
            has = choose_plural("# rack|# racks", len(kept | self._open))
            return f"needs {wanted} racks, but eligible brokers are in {has} only"
        return "no better spread possible with fixed replicas and allowed target brokers"


def _summarize_makespan(topology: ClusterTopology, rows: Sequence[PartitionMove], impact: PlanImpact) -> dict[str, Any]:
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
        "at": [
            {"bytes_per_s": rate, "seconds": estimate_copy_seconds(impact, rate)} for rate in rates_around(THROTTLE)
        ],
        "waves": {"moves_at_once": PER_BROKER, "most_moves_of_a_broker": most, "waves": -(-most // PER_BROKER)},
    }


class BadReport(Exception):
    """The file is not a report of a plan."""


def request_in(report: object) -> PlanRequest:
    """Return the request that the plan was made for. Raises BadReport."""
    stored = _read_part(report, "request")
    if not all(name in _FIELDS and _FIELDS[name](value) for name, value in stored.items()) or "mode" not in stored:
        raise BadReport
    return unpack_dataclass(PlanRequest, stored)


def proof_in(report: object) -> PlanProof | None:
    """The proof, None where there is none. Raises BadReport."""
    if isinstance(report, dict) and report.get("format") == FORMAT and report.get("certificate") is None:
        return None
    given = _read_part(report, "certificate")
    figures = all(_is_bytes(given.get(name)) for name in ("moved", "bound", "estimated"))
    disk_bound = given.get("disk_bound")
    if not figures or not (disk_bound is None or _is_bytes(disk_bound)):
        raise BadReport
    if not _of_brokers(given.get("prices"), _is_bytes) or not _of_brokers(given.get("widened"), _is_pair):
        raise BadReport
    if not _of_brokers(given.get("outside"), _is_text):
        raise BadReport
    return unpack_dataclass(PlanProof, {**given, "disk_bound": disk_bound})


def _read_part(report: object, part: str) -> dict[str, Any]:
    found = report.get(part) if isinstance(report, dict) and report.get("format") == FORMAT else None
    if not isinstance(found, dict):
        raise BadReport
    return found


def _of_brokers(value: object, fits: Callable[[object], bool]) -> bool:
    """Return whether the value is an object of broker ids, and everything in the object fits."""
    if not isinstance(value, dict):
        return False
    return all(id_.isascii() and id_.isdigit() and int(id_) <= LARGEST_ID and fits(one) for id_, one in value.items())


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_ID


def _is_bytes(value: object) -> bool:
    return type(value) is int and abs(value) <= MOST_BYTES


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_whole(one) for one in value)


def _is_share(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return value is None or _is_whole(value)


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(_is_whole(one) for one in value)


_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "mode": lambda value: value in MODES if isinstance(value, str) else False,
    "brokers": _are_ids,
    "replacements": _are_ids,
    "targets": lambda value: value is None or _are_ids(value),
    "factor": _is_number,
    "topics": lambda value: isinstance(value, list) and all(_is_text(one) for one in value),
    "pattern": _is_text,
    "excluded": _is_text,
    "eps": _is_share,
    "disk_limit": _is_share,
    "most_replicas": _is_number,
    "rebalance": _is_flag,
    "ignore_racks": _is_flag,
    "accept_fewer_racks": _is_flag,
    "leaders": _is_flag,
    "change_rf": _is_flag,
    "internal": _is_flag,
}


MOST_RISKY = 20
MOST_VIOLATIONS = 10
UNKNOWN = "?"


def format_report(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a report of ``report.report_of``."""
    yield from _headline(report)
    yield ""
    yield from _rack_lines(report["racks"])
    yield ""
    yield from _format_brokers(report["brokers"])
    for part in (
        _format_spread(report),
        _format_makespan(report["makespan"]),
        _notices(report["notices"]),
        _format_risky_rows(report["risky_rows"]),
    ):
        told = list(part)
        if told:
            yield ""
            yield from told


def proof_words(report: Mapping[str, Any]) -> str:
    """How far the plan is from the least that has to move; '' where nothing was proven."""
    bound, ratio = report["lower_bound"], report["ratio"]
    if bound is None:
        return ""
    moved = report["certificate"]["moved"]
    about = ""
    if report["certificate"]["estimated"]:
        unsized = choose_plural("# partition|# partitions", report["certificate"]["estimated"])
        about = f" Assumes typical sizes for {unsized} of unknown size."
    if report["proven_least"]:
        return f"Proven least movement: {format_size(moved)}, bound {format_size(bound)}."
    if ratio is None:
        return f"Moves {format_size(moved)}; the lower bound is 0 B.{about}"
    if ratio == 1:
        return f"Least movement for the assumed sizes: {format_size(moved)}, bound {format_size(bound)}.{about}"
    return f"Moves {format_size(moved)}, {ratio:.3f} × the lower bound of {format_size(bound)}.{about}"


def _headline(report: Mapping[str, Any]) -> Iterator[str]:
    if not report["partitions"]:
        yield f"{report['mode']}: nothing to move."
    else:
        partitions = choose_plural("# partition|# partitions", report["partitions_total"])
        moved = "an unknown amount" if report["bytes_moved"] is None else format_size(report["bytes_moved"])
        if report["bytes_moved"] is None and report["bytes_moved_known"]:
            moved = f"{format_size(report['bytes_moved_known'])} plus unknown sizes"
        copies = choose_plural("# new replica|# new replicas", report["moves"])
        yield f"{report['mode']}: {report['partitions']:,} of {partitions} change, {copies}, {moved} to copy."
        if report["leaders_moved"]:
            yield f"Leaders of {choose_plural('# partition|# partitions', report['leaders_moved'])} change."
    proof = proof_words(report)
    if proof:
        yield proof
    yield f"plan_sha256 {report['plan_sha256']}"


def _rack_lines(racks: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            _rack(one["rack"]),
            f"{one['brokers']:,}",
            _change(one["replicas"]),
            _spans(one["per_broker"]),
            _change(one["leaders"]),
            _sizes(one["bytes"]),
        ]
        for one in racks
    ]
    return _table(["rack", "brokers", "replicas", "min–max per broker", "leaders", "bytes"], rows)


def _format_brokers(brokers: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            f"{one['id']}{'' if one['alive'] else ' (offline)'}",
            _rack(one["rack"]),
            _change(one["replicas"]),
            _change(one["leaders"]),
            _sizes(one["bytes"]),
            _size(one["disk"]["peak"]),
            *(_share(one["disk"][when], one["disk"]["total"]) for when in ("before", "peak", "after")),
        ]
        for one in brokers
    ]
    heads = ["broker", "rack", "replicas", "leaders", "bytes", "peak on disk", "disk now", "peak", "after"]
    return _table(heads, rows)


def _format_spread(report: Mapping[str, Any]) -> Iterator[str]:
    spread, left = report["rack_spread"], report["violations_left"]
    if not spread["judged"]:
        yield "Rack spread unknown: some or all brokers have no rack, or there is only one rack."
        return
    before, after = spread["violations_before"], spread["violations_after"]
    yield f"Rack violations (partitions that could be spread more evenly): {before:,} before, {after:,} after."
    if spread["partitions_in_fewer_racks"]:
        partitions = choose_plural("# partition|# partitions", spread["partitions_in_fewer_racks"])
        yield f"Partitions that end in fewer racks: {partitions}."
    for why, number in left["reasons"].items():
        examples = [f"{one['topic']}-{one['partition']}" for one in left["listed"] if one["why"] == why]
        shown = ", ".join(examples[:MOST_VIOLATIONS]) + (", …" if number > len(examples[:MOST_VIOLATIONS]) else "")
        yield f"  {number:,}: {why}" + (f" ({shown})" if examples else "")


def _format_makespan(makespan: Mapping[str, Any]) -> Iterator[str]:
    if makespan["bound_bytes"] == 0:
        return
    if makespan["bound_bytes"] is None:
        yield "Duration unknown: sizes are missing."
        return
    times = [f"{run_time(at['seconds'])} at {format_size(at['bytes_per_s'])}/s" for at in makespan["at"]]
    way = "receives" if makespan["direction"] == "in" else "sends"
    yield f"Minimum duration: {', '.join(times)} per broker and direction (estimate)."
    yield (
        f"Broker {makespan['broker']} {way} most: {format_size(makespan['broker_bytes'])}. The largest replica has "
        f"{format_size(makespan['largest_move_bytes'])}."
    )
    at_once = makespan["waves"]["moves_at_once"]
    waves = choose_plural("# wave|# waves", makespan["waves"]["waves"])
    moves = choose_plural("# move|# moves", makespan["waves"]["most_moves_of_a_broker"])
    yield f"With {at_once} concurrent moves per broker and direction: at least {waves}, up to {moves} per broker."


def _notices(notices: Sequence[str]) -> Iterator[str]:
    if notices:
        yield "Notices:"
    for notice in notices:
        yield f"  {notice}"


def _format_risky_rows(risky: Mapping[str, Any]) -> list[str]:
    if not risky["count"]:
        return []
    shown = risky["listed"][:MOST_RISKY]
    first = f", first {len(shown)}" if len(shown) < risky["count"] else ""
    rows = [[f"{one['topic']}-{one['partition']}", _size(one["bytes"]), ", ".join(one["why"])] for one in shown]
    return [
        f"Partitions to review: {risky['count']:,}{first}",
        *_table(["partition", "to copy", "reason"], rows, words=(0, 2)),
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0, 1)) -> list[str]:
    """``words``: columns that begin on the left; figures end on the right."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]


def _change(figures: Mapping[str, int]) -> str:
    before, after = figures["before"], figures["after"]
    return f"{before:,}" if before == after else f"{before:,} → {after:,}"


def _sizes(figures: Mapping[str, int | None]) -> str:
    before, after = _size(figures["before"]), _size(figures["after"])
    return before if before == after else f"{before} → {after}"


def _spans(figures: Mapping[str, Sequence[int] | None]) -> str:
    before, after = _span_text(figures["before"]), _span_text(figures["after"])
    return before if before == after else f"{before} → {after}"


def _span_text(span: Sequence[int] | None) -> str:
    return UNKNOWN if span is None else f"{span[0]:,}–{span[1]:,}"


def _size(number: int | None) -> str:
    return UNKNOWN if number is None else format_size(number)


def _share(used: int | None, total: int | None) -> str:
    return UNKNOWN if used is None or not total else f"{100 * used / total:.1f} %"


def _rack(name: str | None) -> str:
    return "–" if name is None else name

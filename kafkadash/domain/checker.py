"""Judges a plan without knowing how it was made: every plan is checked here, a brought one too (05-planner.md §4).

Nothing of the planners is used, and no sum of theirs is believed: what a row adds and removes is derived from the
assignment that the topology tells, and bytes are added up again. A rule is passed, failed, or cannot be judged (None).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkadash.domain.impact import Impact
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Broker, Partition, Topology
from kafkadash.domain.wording import count, size

MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan may do. ``drained``: for a drain the brokers to empty, None for other modes. Limits as elsewhere.

    ``fewer_racks``: partitions may end in fewer racks; ``spread_free``: the spread over racks is not asked for at all.
    """

    mode: str
    drained: frozenset[int] | None = None
    targets: frozenset[int] | None = None
    disk_limit: float | None = None
    change_rf: bool = False
    fewer_racks: bool = False
    spread_free: bool = False

    @classmethod
    def of_request(cls, request: Mapping[str, Any]) -> Asked:
        """From the request of ``kafkadash.plan_job``."""
        targets = request.get("targets")
        is_drain = request["mode"] == "drain"
        return cls(
            mode=request["mode"],
            drained=frozenset(request.get("brokers", ())) if is_drain else None,
            targets=frozenset(targets) if is_drain and targets is not None else None,
            disk_limit=request.get("disk_limit"),
            change_rf=bool(request.get("change_rf")) and not is_drain,
            fewer_racks=bool(request.get("accept_fewer_racks")),
            # Who brings a plan has chosen its racks; what becomes of the spread is shown, and judged as health.
            spread_free=bool(request.get("ignore_racks")) or not is_drain,
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """``passed`` None: cannot be judged, ``problems`` say why. ``figure`` is what was counted: "230 of 230"."""

    name: str
    passed: bool | None
    figure: str
    problems: tuple[str, ...] = ()

    def as_json(self) -> list[Any]:
        return [self.name, self.passed, self.figure, list(self.problems)]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Rule:
        name, passed, figure, problems = stored
        return cls(name, passed, figure, tuple(problems))


def check(rows: Sequence[Row], topology: Topology, asked: Asked, impact: Impact | None = None) -> tuple[Rule, ...]:
    """All rules in their fixed order. ``impact``: totals reckoned elsewhere, to be compared."""
    return _Checker(rows, topology, asked).rules(impact)


class _Checker:
    def __init__(self, rows: Sequence[Row], topology: Topology, asked: Asked) -> None:
        self._rows, self._topology, self._asked = rows, topology, asked
        self._live: dict[tuple[str, int], Partition] = {
            (name, p.partition): p for name, topic in topology.topics.items() for p in topic.partitions
        }
        self._known = [(row, p) for row in rows if (p := self._live.get((row.topic, row.partition)))]

    def rules(self, impact: Impact | None) -> tuple[Rule, ...]:
        total = len(self._rows)
        rules = [
            _by_row("current assignment", self._current(), total),
            _by_row("replication factor", self._factor(), total),
            _by_row("distinct brokers", self._distinct(), total),
            _by_row("eligible brokers", self._eligible(), total),
            _by_row("only what was asked", self._allowed(), total),
            self._racks(),
            self._complete(),
            self._capacity(),
        ]
        return tuple(rules) if impact is None else (*rules, self._totals(impact))

    def _current(self) -> Iterator[str]:
        """Every row is of a partition there is, once, with its replicas and topic id, and changes something."""
        seen: set[tuple[str, int]] = set()
        for row in self._rows:
            key = row.topic, row.partition
            partition = self._live.get(key)
            if key in seen:
                yield f"{row.name} is in the plan twice."
            elif partition is None:
                yield f"There is no partition {row.name}."
            elif row.topic_id != self._topology.topics[row.topic].id:
                yield f"{row.name} is of another topic of that name."
            elif row.current != partition.replicas:
                yield f"{row.name} is on {_ids(partition.replicas)}; the plan expects {_ids(row.current)}."
            elif row.kept_directories:
                broker, path = row.kept_directories[0]
                yield f"{row.name} would stay on broker {broker} and move to {path}; disk moves are not run here."
            elif row.target == partition.replicas:
                yield f"{row.name} changes nothing."
            elif partition.moving:
                yield f"{row.name} is being reassigned already."
            seen.add(key)

    def _factor(self) -> Iterator[str]:
        for row, partition in self._known:
            if len(row.target) != len(partition.replicas) and not self._asked.change_rf:
                yield f"{row.name} would have {len(row.target)} replicas instead of {len(partition.replicas)}."

    def _distinct(self) -> Iterator[str]:
        for row in self._rows:
            if not row.target:
                yield f"{row.name} would have no replicas."
            elif len(set(row.target)) != len(row.target):
                yield f"{row.name} would have two replicas on one broker: {_ids(row.target)}."

    def _eligible(self) -> Iterator[str]:
        for row, partition in self._known:
            for broker in row.target:
                known = self._topology.brokers.get(broker)
                if broker not in partition.replicas and (known is None or not _takes(known)):
                    yield f"{row.name} would get a replica on broker {broker}, which cannot be given any."

    def _allowed(self) -> Iterator[str]:
        """A drain takes replicas off the named brokers, off no other, and puts them where it may."""
        drained = self._asked.drained
        if drained is None:
            return
        for row, partition in self._known:
            before, after = set(partition.replicas), set(row.target)
            stayed = [b for b in partition.replicas if b not in drained]
            moved = sorted(before - after - drained)
            if moved:
                yield f"{row.name} would leave {_ids(moved)}, which is not drained."
            elif after & drained:
                yield f"{row.name} would be on {_ids(sorted(after & drained))}, which is drained."
            elif self._asked.targets is not None and not after - before <= self._asked.targets:
                yield f"{row.name} would go to {_ids(sorted(after - before - self._asked.targets))}, which is left out."
            elif not before & drained:
                yield f"{row.name} has no replica on a drained broker."
            elif partition.replicas[0] not in drained and [b for b in row.target if b in before] != stayed:
                yield f"{row.name} would change the order of the replicas that stay."

    def _complete(self) -> Rule:
        """Afterwards the drained brokers are empty; counts of replicas change by what the rows add and remove only."""
        drained = self._asked.drained
        targets = {(row.topic, row.partition): row.target for row, _ in self._known}
        left: Counter[int] = Counter()
        for key, partition in self._live.items():
            left.update(targets.get(key, partition.replicas))
        if drained is None:
            return Rule("counts", passed=True, figure=f"{left.total():,} replicas")
        problems = [f"Broker {b} would keep {count(left[b], 'replica')}." for b in sorted(drained) if left[b]]
        return Rule(
            "counts", not problems, f"{sum(left[b] for b in drained):,} left on drained brokers", tuple(problems)
        )

    def _racks(self) -> Rule:
        """As even as what stays allows: no newcomer shares a rack while a rack with fewer could have held it."""
        name = "spread over racks"
        if self._asked.spread_free:
            return Rule(name, passed=True, figure="not asked for")
        registered = [b for b in self._topology.brokers.values() if b.alive]
        if all(b.rack is None for b in registered):
            return Rule(name, passed=True, figure="no racks")
        unnamed = [str(b.id) for b in registered if b.rack is None]
        if unnamed:
            return Rule(name, None, "", (f"Brokers without a rack: {', '.join(unnamed)}.",))
        problems = list(self._uneven())
        return Rule(name, not problems, f"{len(self._rows) - len(problems):,} of {len(self._rows):,}", _first(problems))

    def _uneven(self) -> Iterator[str]:
        rack_of = {b.id: b.rack for b in self._topology.brokers.values() if b.rack is not None}
        drained, targets = self._asked.drained or frozenset(), self._asked.targets
        open_: defaultdict[str, set[int]] = defaultdict(set)
        for b in self._topology.brokers.values():
            if b.rack is not None and _takes(b) and b.id not in drained and (targets is None or b.id in targets):
                open_[b.rack].add(b.id)
        for row, partition in self._known:
            racks_before = len({rack_of[b] for b in partition.replicas if b in rack_of})
            held = Counter(rack_of[b] for b in row.target if b in rack_of)
            if len(held) < racks_before and not self._asked.fewer_racks:
                yield f"{row.name} would be in {count(len(held), 'rack')} instead of {racks_before}."
                continue
            added = {rack_of[b] for b in row.target if b in rack_of and b not in partition.replicas}
            free = [rack for rack, brokers in open_.items() if brokers - set(row.target)]
            for rack in sorted(added):
                better = sorted((held[other], other) for other in free if held[other] < held[rack] - 1)
                if better:
                    less = f"{better[0][0]} in {better[0][1]}"
                    yield f"{row.name} would have {held[rack]} replicas in rack {rack} and {less}."
                    break

    def _capacity(self) -> Rule:
        """Every broker that receives stays below the limit while nothing of what leaves is deleted."""
        limit = self._asked.disk_limit
        if limit is None:
            return Rule("disk", passed=True, figure="no limit")
        incoming, unsized = self._incoming()
        largest = self._largest()
        worst, problems, unknown = 0.0, [], []
        for id_ in sorted(incoming):
            broker = self._topology.brokers.get(id_)
            dirs = broker.dirs if broker else ()
            free = used = total = widest = 0
            for d in dirs:
                if d.total_bytes is None or d.used_bytes is None:
                    break
                used, total = used + d.used_bytes, total + d.total_bytes
                if not d.cordoned:
                    own = max(0, int(d.total_bytes * limit) - d.used_bytes)
                    free, widest = free + own, max(widest, own)
            else:
                if total:
                    worst = max(worst, (used + incoming[id_]) / total)
                    if incoming[id_] > free:
                        problems.append(
                            f"Broker {id_} would hold {size(used + incoming[id_])} of {size(total)} at its peak; "
                            f"the limit is {100 * limit:.0f} %."
                        )
                    elif largest[id_] > widest:
                        problems.append(f"No directory of broker {id_} has room for a replica of {size(largest[id_])}.")
                    continue
            unknown.append(f"The disk of broker {id_} is not known.")
        if unsized:
            unknown.append(f"The size of {count(unsized, 'partition')} is not known.")
        figure = f"{100 * worst:.1f} %" if worst else ""
        if problems:
            return Rule("disk", passed=False, figure=figure, problems=_first(problems))
        return Rule("disk", None if unknown else True, figure, _first(unknown))

    def _incoming(self) -> tuple[Counter[int], int]:
        incoming: Counter[int] = Counter()
        unsized = 0
        for row, partition in self._known:
            added = set(row.target).difference(partition.replicas)
            unsized += bool(added) and partition.size_bytes is None
            for broker in added:
                incoming[broker] += partition.size_bytes or 0
        return incoming, unsized

    def _largest(self) -> dict[int, int]:
        """Broker → bytes of the largest replica that it gets."""
        largest: defaultdict[int, int] = defaultdict(int)
        for row, partition in self._known:
            for broker in set(row.target).difference(partition.replicas):
                largest[broker] = max(largest[broker], partition.size_bytes or 0)
        return largest

    def _totals(self, impact: Impact) -> Rule:
        incoming, unsized = self._incoming()
        total = None if unsized else incoming.total()
        shown = {b.id: b.bytes_in for b in impact.brokers}
        problems = []
        if impact.copied_bytes != total:
            problems.append(f"The rows copy {_bytes(total)}; the report says {_bytes(impact.copied_bytes)}.")
        if impact.partitions_moved != len(self._rows):
            problems.append(f"There are {len(self._rows):,} rows; the report says {impact.partitions_moved:,}.")
        problems += [
            f"Broker {broker} gets {incoming[broker]:,} B; the report says {shown.get(broker, 0):,} B."
            for broker in sorted({*shown, *incoming})
            if incoming[broker] != shown.get(broker, 0)
        ]
        return Rule("totals", not problems, _bytes(total), _first(problems))


def _by_row(name: str, found: Iterable[str], total: int) -> Rule:
    problems = list(found)
    return Rule(name, not problems, f"{max(0, total - len(problems)):,} of {total:,}", _first(problems))


def _first(problems: Sequence[str]) -> tuple[str, ...]:
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], f"And {more:,} more.") if more > 0 else tuple(problems)


def _takes(broker: Broker) -> bool:
    """Whether it may be given replicas: registered, not fenced, and with a directory that is not cordoned."""
    cordoned = bool(broker.dirs) and all(directory.cordoned for directory in broker.dirs)
    return broker.alive and not broker.fenced and not cordoned


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(str(broker) for broker in brokers)


def _bytes(number: int | None) -> str:
    return "an unknown amount" if number is None else f"{number:,} B"

"""Judges a plan without knowing how it was made: every plan is checked here, a brought one too (05-planner.md §4).

Nothing of the planners is used, and no sum of theirs is believed: what a row adds and removes is derived from the
assignment that the topology tells, and bytes are added up again. A rule is passed, failed, or cannot be judged (None).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafkadash.domain.impact import Impact
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.held_against import demand_rules
from kafkadash.domain.planner.request import DRAIN, PLANNED_MODES, REPLACE, SET_RF, PlanRequest, Proof
from kafkadash.domain.planner.topic_choice import chosen
from kafkadash.domain.planner.topology import Broker, Partition, Topology
from kafkadash.domain.refusals import checked as said
from kafkadash.domain.refusals import checks
from kafkadash.domain.rule import Rule
from kafkadash.domain.wording import count, listed_shortly, size

MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan may do. ``drained``: for a drain the brokers to empty, None for other modes. Limits as elsewhere.

    ``fewer_racks``: partitions may end in fewer racks; ``spread_free``: the spread over racks is not asked for at all.
    ``request``: what the planner was asked for, where it chose.
    """

    mode: str
    drained: frozenset[int] | None = None
    targets: frozenset[int] | None = None
    disk_limit: float | None = None
    change_rf: bool = False
    fewer_racks: bool = False
    spread_free: bool = False
    request: PlanRequest | None = None

    @classmethod
    def of_request(cls, request: PlanRequest) -> Asked:
        """A drain in which nothing else moves is judged by rules of its own as well."""
        emptied = request.mode in (DRAIN, REPLACE) and not request.rebalance
        targets = request.replacements if request.mode == REPLACE else request.targets
        return cls(
            mode=request.mode,
            drained=frozenset(request.brokers) if emptied else None,
            targets=frozenset(targets) if emptied and targets is not None else None,
            disk_limit=request.disk_limit,
            change_rf=request.change_rf or request.mode == SET_RF,
            fewer_racks=request.accept_fewer_racks,
            # Who brings a plan has chosen its racks; what becomes of the spread is shown, and judged as health.
            spread_free=request.ignore_racks or not emptied,
            request=request if request.mode in PLANNED_MODES else None,
        )


def check(
    rows: Sequence[Row], topology: Topology, asked: Asked, impact: Impact | None = None, proof: Proof | None = None
) -> tuple[Rule, ...]:
    """All rules in their fixed order. ``impact``: totals reckoned elsewhere, to be compared. ``proof``: its claim."""
    rules = _Checker(rows, topology, asked).rules(impact)
    if asked.request is None:
        return rules
    own = {rule.name: rule for rule in demand_rules(rows, topology, asked.request, proof)}
    # The stricter of both: what one of them finds stands.
    merged = tuple(own.get(rule.name, rule) if rule.passed else rule for rule in rules)
    return (*merged, *(rule for name, rule in own.items() if name not in {rule.name for rule in rules}))


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
                yield said.ROW_TWICE.cause(row=row.name)
            elif partition is None:
                yield said.ROW_OF_NOTHING.cause(row=row.name)
            elif row.topic_id != self._topology.topics[row.topic].id:
                yield said.ROW_OF_NAMESAKE.cause(row=row.name)
            elif row.current != partition.replicas:
                there, expected = _ids(partition.replicas), _ids(row.current)
                yield said.ROW_ELSEWHERE.cause(row=row.name, there=there, expected=expected)
            elif row.kept_directories:
                broker, path = row.kept_directories[0]
                yield said.ROW_CHANGES_DISK.cause(row=row.name, broker=broker, path=path)
            elif row.target == partition.replicas:
                yield said.ROW_CHANGES_NOTHING.cause(row=row.name)
            elif partition.moving:
                yield said.ROW_MOVES_ALREADY.cause(row=row.name)
            seen.add(key)

    def _factor(self) -> Iterator[str]:
        for row, partition in self._known:
            after, before = len(row.target), len(partition.replicas)
            if after != before and not self._asked.change_rf:
                yield said.ROW_WITH_OTHER_FACTOR.cause(row=row.name, after=after, before=before)

    def _distinct(self) -> Iterator[str]:
        for row in self._rows:
            if not row.target:
                yield said.ROW_WITHOUT_REPLICAS.cause(row=row.name)
            elif len(set(row.target)) != len(row.target):
                yield said.ROW_TWICE_ON_ONE.cause(row=row.name, brokers=_ids(row.target))

    def _eligible(self) -> Iterator[str]:
        for row, partition in self._known:
            for broker in row.target:
                known = self._topology.brokers.get(broker)
                if broker not in partition.replicas and (known is None or not _takes(known)):
                    yield said.ROW_ON_INELIGIBLE.cause(row=row.name, broker=broker)

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
                yield said.ROW_LEAVES_OTHERS.cause(row=row.name, brokers=_ids(moved))
            elif after & drained:
                yield said.ROW_ON_DRAINED.cause(row=row.name, brokers=_ids(sorted(after & drained)))
            elif self._asked.targets is not None and not after - before <= self._asked.targets:
                outside = _ids(sorted(after - before - self._asked.targets))
                yield said.ROW_ON_LEFT_OUT.cause(row=row.name, brokers=outside)
            elif not before & drained:
                yield said.ROW_NOT_ASKED_FOR.cause(row=row.name)
            elif partition.replicas[0] not in drained and [b for b in row.target if b in before] != stayed:
                yield said.ROW_REORDERED.cause(row=row.name)

    def _complete(self) -> Rule:
        """Afterwards the drained brokers are empty, of the topics that were asked for; counts of replicas change by
        what the rows add and remove only.
        """
        drained, request = self._asked.drained, self._asked.request
        asked = frozenset(self._topology.topics if request is None else chosen(request, self._topology.topics))
        targets = {(row.topic, row.partition): row.target for row, _ in self._known}
        left: Counter[int] = Counter()
        for key, partition in self._live.items():
            if drained is None or key[0] in asked:
                left.update(targets.get(key, partition.replicas))
        if drained is None:
            return Rule("counts", passed=True, figure=f"{left.total():,} replicas")
        problems = [
            said.BROKER_NOT_EMPTY.cause(broker=b, replicas=count(left[b], "replica"))
            for b in sorted(drained)
            if left[b]
        ]
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
            return Rule(name, None, "", (said.BROKERS_WITHOUT_RACK(brokers=", ".join(unnamed)),))
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
                racks = count(len(held), "rack")
                yield said.ROW_IN_FEWER_RACKS.cause(row=row.name, after=racks, before=racks_before)
                continue
            added = {rack_of[b] for b in row.target if b in rack_of and b not in partition.replicas}
            free = [rack for rack, brokers in open_.items() if brokers - set(row.target)]
            for rack in sorted(added):
                better = sorted((held[other], other) for other in free if held[other] < held[rack] - 1)
                if better:
                    fewer, other = better[0]
                    yield said.ROW_UNEVEN.cause(row=row.name, held=held[rack], rack=rack, fewer=fewer, other=other)
                    break

    def _capacity(self) -> Rule:
        """Every broker that receives stays below the limit while nothing of what leaves is deleted."""
        limit = self._asked.disk_limit
        if limit is None:
            return Rule("disk", passed=True, figure="no limit")
        incoming, unsized = self._incoming()
        largest = self._largest()
        worst, problems, undisked = 0.0, [], []
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
                        peak = size(used + incoming[id_])
                        problems.append(
                            said.BROKER_OVER_LIMIT.cause(broker=id_, peak=peak, total=size(total), limit=100 * limit)
                        )
                    elif largest[id_] > widest:
                        problems.append(said.NO_DIRECTORY_HOLDS_IT.cause(broker=id_, size=size(largest[id_])))
                    continue
            undisked.append(str(id_))
        unknown = []
        if undisked:
            brokers = f"{'broker' if len(undisked) == 1 else 'brokers'} {listed_shortly(undisked)}"
            unknown.append(checks.DISK_NOT_KNOWN(brokers=brokers))
        if unsized:
            unknown.append(checks.SIZE_NOT_KNOWN(partitions=count(unsized, "partition")))
        figure = f"{100 * worst:.1f} %" if worst else ""
        if problems:
            return Rule("disk", passed=False, figure=figure, problems=_first(problems))
        return Rule("disk", None if unknown else True, figure, tuple(unknown))

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
            problems.append(said.TOTAL_COPIED_DIFFERS.cause(rows=_bytes(total), report=_bytes(impact.copied_bytes)))
        if impact.partitions_moved != len(self._rows):
            problems.append(said.TOTAL_ROWS_DIFFERS.cause(rows=len(self._rows), report=impact.partitions_moved))
        problems += [
            said.TOTAL_OF_BROKER_DIFFERS.cause(broker=broker, rows=incoming[broker], report=shown.get(broker, 0))
            for broker in sorted({*shown, *incoming})
            if incoming[broker] != shown.get(broker, 0)
        ]
        return Rule("totals", not problems, _bytes(total), _first(problems))


def _by_row(name: str, found: Iterable[str], total: int) -> Rule:
    problems = list(found)
    return Rule(name, not problems, f"{max(0, total - len(problems)):,} of {total:,}", _first(problems))


def _first(problems: Sequence[str]) -> tuple[str, ...]:
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], said.MORE_FAULTS.cause(more=more)) if more > 0 else tuple(problems)


def _takes(broker: Broker) -> bool:
    """Return whether a broker may be given replicas: up, and with a directory that is not cordoned."""
    cordoned = bool(broker.dirs) and all(directory.cordoned for directory in broker.dirs)
    return broker.up and not cordoned


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(str(broker) for broker in brokers)


def _bytes(number: int | None) -> str:
    return "an unknown amount" if number is None else f"{number:,} B"

"""Independent checker of plans: every plan is checked here, however it was made, including uploaded plans.

No code of the planners is used, and none of their sums is trusted: what a row adds and removes is derived from the
assignment in the topology, and bytes are added up again. A rule passes, fails, or cannot be judged (None).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafkadash.changes.plan import PartitionMove
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.problem_codes import CheckedRule, CheckErrorCode, RuleCode
from kafkadash.planning.solver.request import (
    DRAIN,
    PLANNED_MODES,
    REPLACE,
    SET_RF,
    PlanProof,
    PlanRequest,
    choose_topics,
)
from kafkadash.planning.solver.verification import demand_rules
from kafkadash.planning.topology import ClusterTopology, PlannedBroker, PlannedPartition

MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Permissions of a plan. ``drained``: brokers to empty in a drain, None in other modes. Limits as elsewhere.

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
    def of_request(cls, request: PlanRequest) -> CheckRequest:
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
    rows: Sequence[PartitionMove],
    topology: ClusterTopology,
    check_request: CheckRequest,
    impact: PlanImpact | None = None,
    proof: PlanProof | None = None,
) -> tuple[CheckedRule, ...]:
    """All rules in their fixed order. ``impact``: totals reckoned elsewhere, to be compared. ``proof``: its claim."""
    rules = _PlanChecker(rows, topology, check_request).rules(impact)
    if check_request.request is None:
        return rules
    own = {rule.code: rule for rule in demand_rules(rows, topology, check_request.request, proof)}
    # The stricter of both: what one of them finds stands.
    merged = tuple(own.get(rule.code, rule) if rule.passed else rule for rule in rules)
    return (*merged, *(rule for code, rule in own.items() if code not in {rule.code for rule in rules}))


class _PlanChecker:
    def __init__(self, rows: Sequence[PartitionMove], topology: ClusterTopology, check_request: CheckRequest) -> None:
        self._rows, self._topology, self._asked = rows, topology, check_request
        self._live: dict[tuple[str, int], PlannedPartition] = {
            (name, p.partition): p for name, topic in topology.topics.items() for p in topic.partitions
        }
        self._known = [(row, p) for row in rows if (p := self._live.get((row.topic, row.partition)))]

    def rules(self, impact: PlanImpact | None) -> tuple[CheckedRule, ...]:
        total = len(self._rows)
        rules = [
            _by_row(RuleCode.CURRENT_ASSIGNMENT, self._current(), total),
            _by_row(RuleCode.REPLICATION_FACTOR, self._factor(), total),
            _by_row(RuleCode.DISTINCT_BROKERS, self._distinct(), total),
            _by_row(RuleCode.ELIGIBLE_BROKERS, self._eligible(), total),
            _by_row(RuleCode.ONLY_AS_ASKED, self._allowed(), total),
            self._racks(),
            self._complete(),
            self._capacity(),
        ]
        return tuple(rules) if impact is None else (*rules, self._totals(impact))

    def _current(self) -> Iterator[CodedMessage]:
        """Every row is of a partition there is, once, with its replicas and topic id, and changes something."""
        seen: set[tuple[str, int]] = set()
        for row in self._rows:
            key = row.topic, row.partition
            partition = self._live.get(key)
            if key in seen:
                yield coded(CheckErrorCode.ROW_TWICE, row=row.name)
            elif partition is None:
                yield coded(CheckErrorCode.ROW_OF_NOTHING, row=row.name)
            elif row.topic_id != self._topology.topics[row.topic].id:
                yield coded(CheckErrorCode.ROW_OF_NAMESAKE, row=row.name)
            elif row.current != partition.replicas:
                there, expected = partition.replicas, row.current
                yield coded(CheckErrorCode.ROW_ELSEWHERE, row=row.name, there=there, expected=expected)
            elif row.kept_directories:
                broker, path = row.kept_directories[0]
                yield coded(CheckErrorCode.ROW_CHANGES_DISK, row=row.name, broker=broker, path=path)
            elif row.target == partition.replicas:
                yield coded(CheckErrorCode.ROW_CHANGES_NOTHING, row=row.name)
            elif partition.moving:
                yield coded(CheckErrorCode.ROW_MOVES_ALREADY, row=row.name)
            seen.add(key)

    def _factor(self) -> Iterator[CodedMessage]:
        for row, partition in self._known:
            after, before = len(row.target), len(partition.replicas)
            if after != before and not self._asked.change_rf:
                yield coded(CheckErrorCode.ROW_WITH_OTHER_FACTOR, row=row.name, after=after, before=before)

    def _distinct(self) -> Iterator[CodedMessage]:
        for row in self._rows:
            if not row.target:
                yield coded(CheckErrorCode.ROW_WITHOUT_REPLICAS, row=row.name)
            elif len(set(row.target)) != len(row.target):
                yield coded(CheckErrorCode.ROW_TWICE_ON_ONE, row=row.name, brokers=row.target)

    def _eligible(self) -> Iterator[CodedMessage]:
        for row, partition in self._known:
            for broker in row.target:
                known = self._topology.brokers.get(broker)
                if broker not in partition.replicas and (known is None or not _may_receive(known)):
                    yield coded(CheckErrorCode.ROW_ON_INELIGIBLE, row=row.name, broker=broker)

    def _allowed(self) -> Iterator[CodedMessage]:
        """A drain takes replicas off the named brokers, off no other, and puts them where it may."""
        drained = self._asked.drained
        if drained is None:
            return
        for row, partition in self._known:
            before, after = set(partition.replicas), set(row.target)
            stayed = [b for b in partition.replicas if b not in drained]
            moved = sorted(before - after - drained)
            if moved:
                yield coded(CheckErrorCode.ROW_LEAVES_OTHERS, row=row.name, brokers=tuple(moved))
            elif after & drained:
                yield coded(CheckErrorCode.ROW_ON_DRAINED, row=row.name, brokers=tuple(sorted(after & drained)))
            elif self._asked.targets is not None and not after - before <= self._asked.targets:
                outside = tuple(sorted(after - before - self._asked.targets))
                yield coded(CheckErrorCode.ROW_ON_LEFT_OUT, row=row.name, brokers=outside)
            elif not before & drained:
                yield coded(CheckErrorCode.ROW_NOT_ASKED_FOR, row=row.name)
            elif partition.replicas[0] not in drained and [b for b in row.target if b in before] != stayed:
                yield coded(CheckErrorCode.ROW_REORDERED, row=row.name)

    def _complete(self) -> CheckedRule:
        """Afterwards the drained brokers are empty, of the topics that were asked for; counts of replicas change by
        what the rows add and remove only.
        """
        drained, request = self._asked.drained, self._asked.request
        requested = frozenset(
            self._topology.topics
            if request is None
            else choose_topics(request, self._topology.topics, self._topology.internal_topics)
        )
        targets = {(row.topic, row.partition): row.target for row, _ in self._known}
        left: Counter[int] = Counter()
        for key, partition in self._live.items():
            if drained is None or key[0] in requested:
                left.update(targets.get(key, partition.replicas))
        if drained is None:
            return CheckedRule(RuleCode.COUNTS, passed=True, figure=f"{left.total():,} replicas")
        problems = [
            coded(CheckErrorCode.BROKER_NOT_EMPTY, broker=b, replicas=left[b]) for b in sorted(drained) if left[b]
        ]
        return CheckedRule(
            RuleCode.COUNTS, not problems, f"{sum(left[b] for b in drained):,} left on drained brokers", tuple(problems)
        )

    def _racks(self) -> CheckedRule:
        """Check that no new replica shares a rack while a rack with fewer could have held it, given those that stay."""
        code = RuleCode.SPREAD_OVER_RACKS
        if self._asked.spread_free:
            return CheckedRule(code, passed=True, figure="not required")
        registered = [b for b in self._topology.brokers.values() if b.alive]
        if all(b.rack is None for b in registered):
            return CheckedRule(code, passed=True, figure="no racks")
        unnamed = tuple(b.id for b in registered if b.rack is None)
        if unnamed:
            return CheckedRule(code, None, "", (coded(CheckErrorCode.BROKERS_WITHOUT_RACK, brokers=unnamed),))
        problems = list(self._uneven())
        return CheckedRule(
            code, not problems, f"{len(self._rows) - len(problems):,} of {len(self._rows):,}", _limit_problems(problems)
        )

    def _uneven(self) -> Iterator[CodedMessage]:
        rack_of = {b.id: b.rack for b in self._topology.brokers.values() if b.rack is not None}
        drained, targets = self._asked.drained or frozenset(), self._asked.targets
        open_: defaultdict[str, set[int]] = defaultdict(set)
        for b in self._topology.brokers.values():
            if b.rack is not None and _may_receive(b) and b.id not in drained and (targets is None or b.id in targets):
                open_[b.rack].add(b.id)
        for row, partition in self._known:
            racks_before = len({rack_of[b] for b in partition.replicas if b in rack_of})
            held = Counter(rack_of[b] for b in row.target if b in rack_of)
            if len(held) < racks_before and not self._asked.fewer_racks:
                yield coded(CheckErrorCode.ROW_IN_FEWER_RACKS, row=row.name, after=len(held), before=racks_before)
                continue
            added = {rack_of[b] for b in row.target if b in rack_of and b not in partition.replicas}
            free = [rack for rack, brokers in open_.items() if brokers - set(row.target)]
            for rack in sorted(added):
                better = sorted((held[other], other) for other in free if held[other] < held[rack] - 1)
                if better:
                    fewer, other = better[0]
                    yield coded(
                        CheckErrorCode.ROW_UNEVEN, row=row.name, held=held[rack], rack=rack, fewer=fewer, other=other
                    )
                    break

    def _capacity(self) -> CheckedRule:
        """Every broker that receives stays below the limit while nothing of what leaves is deleted."""
        limit = self._asked.disk_limit
        if limit is None:
            return CheckedRule(RuleCode.DISK, passed=True, figure="no limit")
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
                        peak = used + incoming[id_]
                        problems.append(
                            coded(
                                CheckErrorCode.BROKER_OVER_LIMIT, broker=id_, peak=peak, total=total, limit=100 * limit
                            )
                        )
                    elif largest[id_] > widest:
                        problems.append(coded(CheckErrorCode.NO_DIRECTORY_HOLDS_IT, broker=id_, size=largest[id_]))
                    continue
            undisked.append(id_)
        unknown = []
        if undisked:
            unknown.append(coded(CheckErrorCode.DISK_NOT_KNOWN, brokers=tuple(undisked)))
        if unsized:
            unknown.append(coded(CheckErrorCode.SIZE_NOT_KNOWN, partitions=unsized))
        figure = f"{100 * worst:.1f} %" if worst else ""
        if problems:
            return CheckedRule(RuleCode.DISK, passed=False, figure=figure, problems=_limit_problems(problems))
        return CheckedRule(RuleCode.DISK, None if unknown else True, figure, tuple(unknown))

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

    def _totals(self, impact: PlanImpact) -> CheckedRule:
        incoming, unsized = self._incoming()
        total = None if unsized else incoming.total()
        shown = {b.id: b.bytes_in for b in impact.brokers}
        problems = []
        if impact.copied_bytes != total:
            problems.append(coded(CheckErrorCode.TOTAL_COPIED_DIFFERS, rows=total, report=impact.copied_bytes))
        if impact.partitions_moved != len(self._rows):
            problems.append(
                coded(CheckErrorCode.TOTAL_ROWS_DIFFERS, rows=len(self._rows), report=impact.partitions_moved)
            )
        problems += [
            coded(
                CheckErrorCode.TOTAL_OF_BROKER_DIFFERS,
                broker=broker,
                rows=incoming[broker],
                report=shown.get(broker, 0),
            )
            for broker in sorted({*shown, *incoming})
            if incoming[broker] != shown.get(broker, 0)
        ]
        return CheckedRule(RuleCode.TOTALS, not problems, _bytes(total), _limit_problems(problems))


def _by_row(code: RuleCode, found: Iterable[CodedMessage], total: int) -> CheckedRule:
    problems = list(found)
    return CheckedRule(code, not problems, f"{max(0, total - len(problems)):,} of {total:,}", _limit_problems(problems))


def _limit_problems(problems: Sequence[CodedMessage]) -> tuple[CodedMessage, ...]:
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], coded(CheckErrorCode.MORE_FAULTS, more=more)) if more > 0 else tuple(problems)


def _may_receive(broker: PlannedBroker) -> bool:
    """Return whether a broker may be given replicas: up, and with a directory that is not cordoned."""
    cordoned = bool(broker.dirs) and all(directory.cordoned for directory in broker.dirs)
    return broker.up and not cordoned


def _bytes(number: int | None) -> str:
    return "an unknown amount" if number is None else f"{number:,} B"

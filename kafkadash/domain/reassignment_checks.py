"""What is checked about a reassignment before it runs (04-changes.md §2): content apart from health, in a fixed order.

A pure judgement over what was seen last. Facts that were never read, or are too old to be called now, make a check
unknown and never passed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from kafkadash.domain.checks import About, Check, Checked, Result
from kafkadash.domain.impact import run_seconds
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.planner.topology import Partition, Topic, Topology
from kafkadash.domain.quorum_verdict import majority_lost
from kafkadash.domain.rack_spread import spread
from kafkadash.domain.refusals import checks as said
from kafkadash.domain.status import NEVER, Refreshed
from kafkadash.domain.wording import count, duration, listed, run_time, size

MOST_PROBLEMS = 200
WHOLE_DISK = 1.0
WINDOW = "window"
"""Code of the check that knows how long the run would take."""

Said = tuple[str, str]
"""What is wrong, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Moving:
    """A reassignment that Kafka lists."""

    adding: frozenset[int]
    removing: frozenset[int]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is stored about the cluster: all its brokers, at least the topics of the plan, all that moves.

    The four tell how reading each kind of facts went; ``zookeeper``: there is no quorum to ask.
    """

    topology: Topology
    moving: Mapping[tuple[str, int], Moving] = field(default_factory=dict)
    metadata: Refreshed = NEVER
    reassignments: Refreshed = NEVER
    quorum: Refreshed = NEVER
    log_dirs: Refreshed = NEVER
    zookeeper: bool = False

    @property
    def facts_at(self) -> datetime | None:
        """Age of the oldest; None if some were never read."""
        kinds = [self.metadata, self.reassignments, self.log_dirs, *([] if self.zookeeper else [self.quorum])]
        times = [kind.taken_at for kind in kinds]
        known = [at for at in times if at is not None]
        return min(known) if len(known) == len(times) else None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the author asked to be kept, beside the options: ``disk``, 0 to 1 of a broker's disk (None: all of it).

    ``taken_back``: number of the request whose run a rollback takes back, 0 for what is no rollback.
    """

    disk: float | None = None
    taken_back: int = 0


def judge(rows: Sequence[Row], options: Options, limits: Limits, seen: Seen, now: datetime) -> Checked:
    """All checks, in the order of the page."""
    return _Judge(rows, options, limits, seen, now).checked()


class _Judge:
    def __init__(self, rows: Sequence[Row], options: Options, limits: Limits, seen: Seen, now: datetime) -> None:
        self._rows, self._options, self._limits, self._seen, self._now = rows, options, limits, seen, now
        topics = {row.topic for row in rows}
        self._topics: dict[str, tuple[Topic, dict[int, Partition]]] = {
            name: (topic, {p.partition: p for p in topic.partitions})
            for name, topic in seen.topology.topics.items()
            if name in topics
        }
        self._known = [
            (row, own[0], p)
            for row in rows
            if (own := self._topics.get(row.topic)) and (p := own[1].get(row.partition))
        ]
        self._receiving = sorted({broker for row in rows for broker in row.adding})

    def checked(self) -> Checked:
        checks = (
            self._as_planned(),
            self._not_moving(),
            self._factor(),
            self._targets(),
            self._cordoned(),
            self._quorum(),
            self._disk(),
            self._racks(),
            self._min_isr(),
            self._throttle(),
            self._window(),
        )
        return Checked(tuple(check for check in checks if check is not None), self._seen.facts_at)

    def _as_planned(self) -> Check:
        title = "Every partition is as it was planned"
        old = self._old("topics and brokers", self._seen.metadata)
        if old:
            return _unknown("as_planned", About.CONTENT, title, old)
        found = [problem for row in self._rows if (problem := self._differs(row))]
        wrong = len(found)
        problems = list(dict.fromkeys(found))
        return _judged("as_planned", About.CONTENT, title, problems, _of(len(self._rows) - wrong, len(self._rows)))

    def _differs(self, row: Row) -> Said | None:
        own = self._topics.get(row.topic)
        if own is None:
            return said.GONE.apart(name=row.topic)
        topic, partitions = own
        if topic.id != row.topic_id:
            return said.TOPIC_REPLACED.apart(topic=row.topic)
        partition = partitions.get(row.partition)
        if partition is None:
            return said.GONE.apart(name=row.name)
        if partition.replicas == row.current:
            return None
        moving = self._seen.moving.get((row.topic, row.partition))
        there_now = set(partition.replicas)
        if moving and moving.adding & there_now and there_now - moving.adding == set(row.current):
            return None  # that it moves is said by the next check
        entry = said.AS_PLANNED_ALREADY if partition.replicas == row.target else said.OTHER_THAN_PLANNED
        return entry.apart(row=row.name, replicas=_ids(partition.replicas), expected=_ids(row.current))

    def _not_moving(self) -> Check:
        title = "No reassignment in flight on them"
        old = self._old("reassignments", self._seen.reassignments)
        if old:
            return _unknown("not_moving", About.CONTENT, title, old)
        problems = []
        for row in self._rows:
            moving = self._seen.moving.get((row.topic, row.partition))
            if moving:
                does = [f"adding {_ids(sorted(moving.adding))}"] if moving.adding else []
                does += [f"removing {_ids(sorted(moving.removing))}"] if moving.removing else []
                what = f" ({', '.join(does)})" if does else ""
                problems.append(said.MOVING_BY_OTHERS.apart(row=row.name, what=what))
        return _judged("not_moving", About.CONTENT, title, problems, f"{len(problems):,}")

    def _factor(self) -> Check:
        if self._options.change_rf:
            changed = sum(len(row.target) != len(row.current) for row in self._rows)
            title = "Replication factor changes as asked"
            return _judged("replication_factor", About.CONTENT, title, [], f"{changed:,} of {len(self._rows):,}")
        problems = [
            said.FACTOR_CHANGES.apart(row=row.name, replicas=count(len(row.current), "replica"), target=len(row.target))
            for row in self._rows
            if len(row.target) != len(row.current)
        ]
        figure = _of(len(self._rows) - len(problems), len(self._rows))
        return _judged("replication_factor", About.CONTENT, "Replication factor unchanged", problems, figure)

    def _targets(self) -> Check:
        title = "All target brokers alive, none fenced"
        old = self._old("topics and brokers", self._seen.metadata)
        if old:
            return _unknown("targets_alive", About.HEALTH, title, old)
        problems = []
        for id_ in self._receiving:
            broker = self._seen.topology.brokers.get(id_)
            if broker is None or not broker.alive:
                problems.append(said.TARGET_NOT_REGISTERED.apart(broker=id_))
            elif broker.fenced:
                problems.append(said.TARGET_FENCED.apart(broker=id_))
            elif broker.silent:
                problems.append(said.TARGET_SILENT.apart(broker=id_))
        figure = _of(len(self._receiving) - len(problems), len(self._receiving))
        return _judged("targets_alive", About.HEALTH, title, problems, figure)

    def _cordoned(self) -> Check:
        title = "No target broker is cordoned"
        old = self._old("log directories", self._seen.log_dirs)
        if old:
            return _unknown("not_cordoned", About.HEALTH, title, old)
        known = [b for id_ in self._receiving if (b := self._seen.topology.brokers.get(id_))]
        problems = [said.TARGET_CORDONED.apart(broker=b.id) for b in known if b.cordoned]
        unread = [str(b.id) for b in known if not b.dirs]
        if unread and not problems:
            why = said.DIRECTORIES_UNREAD.apart(brokers=_brokers(unread))
            return _unknown("not_cordoned", About.HEALTH, title, why)
        return _judged("not_cordoned", About.HEALTH, title, problems, _of(len(known) - len(problems), len(known)))

    def _quorum(self) -> Check:
        seen = self._seen
        if seen.zookeeper:
            old = self._old("reassignments", seen.reassignments)
            title = "The controller answers"
            return _unknown("quorum", About.HEALTH, title, old) if old else _judged("quorum", About.HEALTH, title, [])
        title = "The controller quorum answers"
        if majority_lost(seen.quorum, seen.metadata):
            return _judged("quorum", About.HEALTH, title, [said.QUORUM_LOST.apart()])
        old = self._old("quorum", seen.quorum)
        return _unknown("quorum", About.HEALTH, title, old) if old else _judged("quorum", About.HEALTH, title, [])

    def _disk(self) -> Check:
        limit = self._limits.disk if self._limits.disk is not None else WHOLE_DISK
        title = f"Disk below {100 * limit:.0f} % during the move"
        old = self._old("log directories", self._seen.log_dirs)
        if old:
            return _unknown("disk", About.HEALTH, title, old)
        arriving, _ = self._traffic
        largest: defaultdict[int, int] = defaultdict(int)
        for row, _, p in self._known:
            for id_ in row.adding:
                largest[id_] = max(largest[id_], p.size_bytes or 0)
        problems, unread, worst = [], [], (0.0, -1)
        for id_ in self._receiving:
            broker = self._seen.topology.brokers.get(id_)
            rooms = broker.rooms(limit) if broker else None
            total, used = (broker.disk_bytes, broker.used_bytes) if broker else (None, None)
            if rooms is None:
                unread.append(str(id_))
                continue
            share = (used + arriving[id_]) / total if total and used is not None else None
            worst = max(worst, (share or 0.0, id_))
            if arriving[id_] > sum(rooms):
                comes = f"would come to {100 * share:.1f} % of its disk" if share is not None else "has too little disk"
                coming, room = size(arriving[id_]), size(sum(rooms))
                problems.append(said.DISK_TOO_SMALL.apart(broker=id_, comes=comes, coming=coming, room=room))
            elif largest[id_] > max(rooms, default=0):
                has = f"the emptiest has room for {size(max(rooms, default=0))}"
                problems.append(said.DIRECTORIES_TOO_SMALL.apart(broker=id_, replica=size(largest[id_]), has=has))
        figure = f"{100 * worst[0]:.1f} %, broker {worst[1]}" if worst[1] >= 0 else ""
        if problems:
            return _judged("disk", About.HEALTH, title, problems, figure)
        unsized = sum(bool(row.adding) and p.size_bytes is None for row, _, p in self._known)
        why = [said.DISK_NOT_KNOWN.apart(brokers=_brokers(unread))] if unread else []
        why += [said.SIZE_NOT_KNOWN.apart(partitions=count(unsized, "partition"))] if unsized else []
        return _unknown("disk", About.HEALTH, title, *why) if why else _judged("disk", About.HEALTH, title, [], figure)

    def _racks(self) -> Check:
        """Only what the digest covers allows a worse spread (``Options.may_lose_racks``)."""
        accepted, taken_back = self._options.may_lose_racks, self._limits.taken_back
        title = "Rack spread does not get worse"
        if accepted and taken_back:
            title = f"Rack spread becomes as it was before #{taken_back}"
        elif accepted:
            title = "Rack spread gets worse only as accepted"
        old = self._old("topics and brokers", self._seen.metadata)
        if old:
            return _unknown("rack_spread", About.HEALTH, title, old)
        racks = self._seen.topology.racks
        if not racks:
            registered = [b for b in self._seen.topology.brokers.values() if b.alive]
            if len({b.rack for b in registered}) <= 1:
                return _judged("rack_spread", About.HEALTH, title, [], "one rack or none")
            return _unknown("rack_spread", About.HEALTH, title, said.RACKS_NOT_NAMED.apart())
        number = len(set(racks.values()))
        moves: dict[tuple[str, ...], int] = {}
        before = after = worse = 0
        problems = []
        for row in self._rows:
            now, then = (_moves(replicas, racks, number, moves) for replicas in (row.current, row.target))
            before += now > 0
            after += then > 0
            worse += then > now
            if then > now and not accepted:
                problems.append(said.SPREAD_WORSE.apart(row=row.name, replicas=_ids(row.target)))
        figure = f"{before:,} → {count(after, 'violation')}"
        if worse and not problems:
            figure += f", {worse:,} worse"
        return replace(_judged("rack_spread", About.HEALTH, title, problems, figure), lasting=bool(problems))

    def _min_isr(self) -> Check:
        """A move costs the leader bandwidth that a replica which lags needs; one that is offline needs none."""
        title = "No partition under min-ISR that a move could worsen"
        old = self._old("topics and brokers", self._seen.metadata)
        if old:
            return _unknown("min_isr", About.HEALTH, title, old)
        brokers = self._seen.topology.brokers
        serving = {b.id for b in brokers.values() if b.up}
        problems: list[Said] = []
        unread: set[str] = set()
        for row, topic, p in self._known:
            if p.leader is None:
                problems.append(said.LEADERLESS.apart(row=row.name))
            elif topic.min_isr is None:
                unread.add(topic.name)
            elif len(p.isr) < topic.min_isr:
                missing = [b for b in p.replicas if b not in p.isr]
                repaired = bool(row.adding) and set(missing) <= set(row.removing)
                if not repaired and any(b in serving for b in missing):
                    has = f"{len(p.isr)} of {topic.min_isr} needed replicas in sync"
                    problems.append(said.LAGGING.apart(row=row.name, has=has, brokers=_brokers(missing)))
        if unread and not problems:
            why = said.MIN_ISR_UNREAD.apart(setting="min.insync.replicas", topics=count(len(unread), "topic"))
            return _unknown("min_isr", About.HEALTH, title, why)
        return _judged("min_isr", About.HEALTH, title, problems, f"{len(problems):,}")

    def _throttle(self) -> Check | None:
        """None where nobody measured what any of the partitions receives: then there is nothing to compare with."""
        title = "Throttle above what the partitions receive"
        inbound: defaultdict[int, float] = defaultdict(float)
        unknown = 0
        if all(p.bytes_in_per_s is None for row, _, p in self._known if row.adding):
            return None
        for row, _, p in self._known:
            if p.bytes_in_per_s is None:
                unknown += bool(row.adding)
                continue
            for broker in row.adding:
                inbound[broker] += p.bytes_in_per_s
        need, broker = max(((rate, -id_) for id_, rate in inbound.items()), default=(0.0, 0))
        throttle = self._options.throttle
        figure = f"{throttle / 1e6:,.1f} > {need / 1e6:,.1f} MB/s"
        if throttle <= need:
            problem = said.THROTTLE_TOO_LOW.apart(broker=-broker, inbound=need / 1e6, throttle=throttle / 1e6)
            return _judged("throttle", About.HEALTH, title, [problem], figure.replace(">", "≤"))
        if unknown:
            receive = "receives" if unknown == 1 else "receive"
            why = said.INBOUND_UNKNOWN.apart(partitions=count(unknown, "partition"), receive=receive)
            return _unknown("throttle", About.HEALTH, title, why)
        return _judged("throttle", About.HEALTH, title, [], figure)

    def _window(self) -> Check:
        """With the bytes of the busiest broker as ``amount``: how long a waiting request would take now."""
        title = "Run fits the window"
        opens, closes = _instant(self._options.not_before), _instant(self._options.not_after)
        arriving, leaving = self._traffic
        sized = all(p.size_bytes is not None for row, _, p in self._known if row.adding)
        busiest = max([0, *arriving.values(), *leaving.values()]) if sized else None
        if closes is None:
            return replace(_judged(WINDOW, About.HEALTH, title, [], "no end"), amount=busiest)
        if self._now >= closes:
            ended = _judged(WINDOW, About.HEALTH, title, [said.WINDOW_HAS_ENDED.apart(closed=closes)])
            return replace(ended, lasting=True, amount=busiest)
        start = max(self._now, opens) if opens else self._now
        length = (closes - start).total_seconds()
        needs = run_seconds(busiest, max(1, self._options.throttle))
        if needs is None:
            return _unknown(WINDOW, About.HEALTH, title, said.LENGTH_NOT_KNOWN.apart())
        figure = f"{run_time(needs)} of {duration(length)}"
        problems = []
        if start + timedelta(seconds=needs) > closes:
            problems = [said.WINDOW_TOO_SHORT.apart(needs=duration(needs), length=duration(length))]
        return replace(_judged(WINDOW, About.HEALTH, title, problems, figure), amount=busiest)

    @cached_property
    def _traffic(self) -> tuple[Counter[int], Counter[int]]:
        """Bytes that arrive at and leave from each broker, as far as sizes are known."""
        arriving: Counter[int] = Counter()
        leaving: Counter[int] = Counter()
        for row, _, p in self._known:
            adding = row.adding
            if p.size_bytes and adding:
                leaving[p.leader if p.leader is not None else row.current[0]] += p.size_bytes * len(adding)
                for broker in adding:
                    arriving[broker] += p.size_bytes
        return arriving, leaving

    def _old(self, what: str, read: Refreshed) -> Said | None:
        """Why facts cannot be relied on; None where they can."""
        if read.taken_at is None:
            return said.QUORUM_NEVER_READ.apart() if what == "quorum" else said.FACTS_NEVER_READ.apart(facts=what)
        if read.stale(self._now):
            ago = duration((self._now - read.taken_at).total_seconds())
            return said.FACTS_READ_LONG_AGO.apart(facts=what, was="was" if what == "quorum" else "were", ago=ago)
        return None


def _moves(replicas: tuple[int, ...], racks: Mapping[int, str], number: int, known: dict[tuple[str, ...], int]) -> int:
    key = tuple(racks.get(broker, "\0") for broker in replicas)
    found = known.get(key)
    if found is None:
        found = known[key] = spread(replicas, racks, number).moves
    return found


def _judged(code: str, about: About, title: str, problems: Sequence[Said], figure: str = "") -> Check:
    result = Result.FAILED if problems else Result.PASSED
    return Check(code, about, result, title, figure, *_told(problems))


def _unknown(code: str, about: About, title: str, *why: Said) -> Check:
    return Check(code, about, Result.UNKNOWN, title, "", *_told(why))


def _told(problems: Sequence[Said]) -> tuple[tuple[str, ...], int, str]:
    """The first ones, how many there are, and what to do about them, each once."""
    first = problems[:MOST_PROBLEMS]
    return tuple(what for what, _ in first), len(problems), " ".join(dict.fromkeys(then for _, then in first))


def _of(good: int, total: int) -> str:
    return f"{good:,} of {total:,}"


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(str(broker) for broker in brokers)


def _brokers(ids: Sequence[object]) -> str:
    return f"broker{'' if len(ids) == 1 else 's'} {listed([str(id_) for id_ in ids])}"


def _instant(text: str) -> datetime | None:
    """Of the options: ISO 8601; '' is open."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None

"""Rules of the controller quorum: node states and the margin of failures from one DescribeQuorum answer (KIP-836).

Every time in that answer is on the clock of the leader, whose own entry carries the leader's now. Ages are therefore
differences inside one answer; the clock of this machine is never subtracted.

Leader changes are known as far as refreshes saw them: refreshes are seconds apart, so a short reign may be missed. Lag
over time is in buckets that keep their worst value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from kafkadash.core.failures import FailureKind, controllers_are_silent
from kafkadash.core.formatting import format_duration, join_items
from kafkadash.core.messages import choose_plural
from kafkadash.core.status import HealthState, RefreshStatus

LAGGING_MS = 2_000
"""Default of controller.quorum.fetch.timeout.ms: a voter that is this far behind is about to start an election."""

OFFLINE_FETCH_MS = 300_000
"""Kafka drops observers from the answer when they have not fetched for this long."""

SILENT_GRACE_S = 15.0
"""How long after a change of the leader a replica may stay unheard of before it counts as offline."""


class NodeStatus(StrEnum):
    LEADER = "Leader"
    IN_SYNC = "In sync"
    LAGGING = "Lagging"
    OFFLINE = "Offline"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class QuorumNode:
    """A voter or observer as the leader tells it; milliseconds on the leader's clock, None where unknown."""

    id: int
    directory_id: str
    voter: bool
    log_end_offset: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """A node with what follows from the answer; ``lag_ms`` and the ages are None where the leader has no time."""

    node: QuorumNode
    status: NodeStatus
    lag_records: int | None
    lag_ms: int | None
    fetch_age_ms: int | None
    caught_up_age_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumHealth:
    """Voters and observers, each sorted by id, and what the voters can still bear."""

    voters: tuple[NodeStanding, ...]
    observers: tuple[NodeStanding, ...]

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def in_sync(self) -> int:
        """Voters that are known to be healthy; unknown is not healthy."""
        return sum(v.status in (NodeStatus.LEADER, NodeStatus.IN_SYNC) for v in self.voters)

    @property
    def failing(self) -> int:
        """Voters that are known not to be healthy."""
        return sum(v.status in (NodeStatus.LAGGING, NodeStatus.OFFLINE) for v in self.voters)

    @property
    def survives(self) -> int:
        """How many more voters may fail before the majority is gone; not below 0."""
        return max(0, self.in_sync - self.majority)


def judge_quorum(
    nodes: Sequence[QuorumNode], leader_id: int, epoch_seen_s: float, missing: Sequence[int] = ()
) -> QuorumHealth:
    """Judges every node of one answer.

    ``epoch_seen_s``: for how many seconds this leader's epoch has been seen. ``missing``: registered brokers that the
    answer does not name; the leader forgets observers that stay away, so they are offline, not healthy.
    """
    leader = next((n for n in nodes if n.id == leader_id), None)
    gone = [
        QuorumNode(b, "", voter=False, log_end_offset=None, last_fetch_ms=None, last_caught_up_ms=None)
        for b in missing
        if all(n.id != b for n in nodes)
    ]
    standings = sorted(
        [_judge_node(n, leader, leader_id, epoch_seen_s) for n in nodes]
        + [NodeStanding(n, NodeStatus.OFFLINE, None, None, None, None) for n in gone],
        key=lambda s: (s.node.id, s.node.directory_id),
    )
    return QuorumHealth(
        voters=tuple(s for s in standings if s.node.voter),
        observers=tuple(s for s in standings if not s.node.voter),
    )


def _judge_node(node: QuorumNode, leader: QuorumNode | None, leader_id: int, epoch_seen_s: float) -> NodeStanding:
    now_ms = leader.last_caught_up_ms if leader else None
    fetch_age = _elapsed_ms(now_ms, node.last_fetch_ms)
    lag_ms = _elapsed_ms(now_ms, node.last_caught_up_ms)
    records = None
    if leader and leader.log_end_offset is not None and node.log_end_offset is not None:
        records = max(0, leader.log_end_offset - node.log_end_offset)
    return NodeStanding(
        node=node,
        status=_decide_status(node, leader_id, fetch_age, lag_ms, epoch_seen_s),
        lag_records=records,
        lag_ms=lag_ms,
        fetch_age_ms=fetch_age,
        caught_up_age_ms=lag_ms,
    )


def _decide_status(
    node: QuorumNode, leader_id: int, fetch_age: int | None, lag_ms: int | None, epoch_seen_s: float
) -> NodeStatus:
    if node.id == leader_id:
        return NodeStatus.LEADER
    unheard = node.log_end_offset is None and node.last_fetch_ms is None
    if (fetch_age is not None and fetch_age > OFFLINE_FETCH_MS) or (unheard and epoch_seen_s > SILENT_GRACE_S):
        return NodeStatus.OFFLINE
    if lag_ms is None:
        return NodeStatus.UNKNOWN
    return NodeStatus.LAGGING if lag_ms >= LAGGING_MS else NodeStatus.IN_SYNC


def _elapsed_ms(now_ms: int | None, then_ms: int | None) -> int | None:
    return None if now_ms is None or then_ms is None else max(0, now_ms - then_ms)


FLAPPING_CHANGES = 3
"""More changes of the leader than this within ``FLAPPING_WITHIN`` are flapping."""

FLAPPING_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LeaderTerm:
    """Epoch of one leader. ``first_seen`` and ``last_seen``: times of the first and last kept answer that named it."""

    leader_id: int
    epoch: int
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """Another epoch than ``before`` was named for the first time at ``at``.

    ``unseen`` counts epochs in between that no answer named: elections without a winner, or reigns too short to see.
    """

    before: LeaderTerm
    after: LeaderTerm

    @property
    def at(self) -> datetime:
        return self.after.first_seen

    @property
    def reigned_s(self) -> float:
        """For how many seconds ``before`` was the leader, as far as seen: from its first answer to this change."""
        return (self.at - self.before.first_seen).total_seconds()

    @property
    def unseen(self) -> int:
        return max(0, self.after.epoch - self.before.epoch - 1)


def leader_changes(reigns: Sequence[LeaderTerm]) -> list[LeaderChange]:
    """Changes between reigns in the order of their epochs. What is known first is no change: nobody saw it begin."""
    ordered = sorted(reigns, key=lambda reign: (reign.epoch, reign.first_seen))
    return [LeaderChange(before, after) for before, after in pairwise(ordered)]


def recent_changes(seen: Sequence[LeaderChange], now: datetime) -> int:
    """How many of them are not older than ``FLAPPING_WITHIN``."""
    return sum(now - change.at <= FLAPPING_WITHIN for change in seen)


def is_flapping(seen: Sequence[LeaderChange], now: datetime) -> bool:
    return recent_changes(seen, now) > FLAPPING_CHANGES


@dataclass(frozen=True, slots=True)
class QuorumVerdict:
    """``title`` is a heading, ``detail`` has sentences below it. ``lost``: the majority is lost."""

    state: HealthState
    title: str
    detail: str = ""
    lost: bool = False


def majority_lost(quorum_status: RefreshStatus, metadata: RefreshStatus) -> bool:
    """Return whether the controllers do not answer while brokers do. An unreachable cluster is another state.

    Without a majority DescribeQuorum, listings and changes time out through every broker, while Metadata goes on
    answering and all brokers look alive.
    """
    return controllers_are_silent(quorum_status) and metadata.failures == 0


def quorum_verdict(
    quorum: QuorumHealth | None,
    quorum_status: RefreshStatus,
    metadata: RefreshStatus,
    recent_changes: int,
    now: datetime,
) -> QuorumVerdict:
    """Judge the newest answer. ``quorum_status`` and ``metadata``: how reading the quorum and the brokers went."""
    ago = format_duration((now - quorum_status.taken_at).total_seconds()) if quorum_status.taken_at else ""
    if majority_lost(quorum_status, metadata):
        known = f"The page shows data from {ago} ago." if ago else "No earlier data is available."
        return QuorumVerdict(
            HealthState.CRITICAL,
            "Controller quorum lost",
            "No leader election and no change to the cluster is possible. Brokers still serve partitions that have a "
            f"leader. Requests to the controllers time out. {known}",
            lost=True,
        )
    if quorum_status.failure == FailureKind.NOT_AUTHORIZED:
        return QuorumVerdict(
            HealthState.UNKNOWN,
            "Quorum state unknown: access denied",
            quorum_status.error_text,
        )
    if quorum is None or quorum_status.taken_at is None:
        return QuorumVerdict(
            HealthState.UNKNOWN,
            "Quorum state unknown: no response yet",
            quorum_status.error_text,
        )
    if quorum_status.stale(now):
        return QuorumVerdict(
            HealthState.UNKNOWN,
            f"Quorum state unknown: data is {ago} old",
            quorum_status.error_text,
        )
    margin = _judge_margin(quorum)
    if recent_changes > FLAPPING_CHANGES:
        minutes = round(FLAPPING_WITHIN.total_seconds() / 60)
        title = f"Quorum leader changed {recent_changes} times in {minutes} min"
        return QuorumVerdict(HealthState.WARNING, title, f"{margin.title}.")
    return margin


def _judge_margin(quorum: QuorumHealth) -> QuorumVerdict:
    voters, majority = len(quorum.voters), quorum.majority
    leads = next((voter for voter in quorum.voters if voter.status is NodeStatus.LEADER), None)
    if voters > 1 and leads is not None and leads.node.last_caught_up_ms is None:
        # DescribeQuorum v0 has no times at all, not even the leader's own (KIP-836).
        return QuorumVerdict(
            HealthState.UNKNOWN,
            "Quorum margin unknown",
            "Kafka before 3.3 does not report when voters caught up.",
        )
    unknown = sum(voter.status is NodeStatus.UNKNOWN for voter in quorum.voters)
    silent = f"No contact with {choose_plural('# voter|# voters', unknown)} since the leader changed."
    if quorum.in_sync < majority:
        if unknown and quorum.in_sync + unknown >= majority:
            return QuorumVerdict(HealthState.UNKNOWN, "Quorum margin unknown", silent)
        title = f"Only {quorum.in_sync} of {choose_plural('# quorum voter|# quorum voters', voters)} in sync"
        detail = f"The majority is {majority}. The leader stays leader only while the other voters keep fetching."
        return QuorumVerdict(HealthState.WARNING, title, detail)
    if quorum.survives:
        least = "at least " if unknown else ""
        title = f"Quorum tolerates {least}{choose_plural('# more failure|# more failures', quorum.survives)}"
        state = HealthState.WARNING if quorum.failing else HealthState.OK
        return QuorumVerdict(state, title, silent if unknown else "")
    if voters == 1:
        return QuorumVerdict(
            HealthState.OK,
            "Quorum has a single voter",
            "Without this voter, no leader election and no change to the cluster is possible.",
        )
    if unknown and not quorum.failing:
        return QuorumVerdict(HealthState.UNKNOWN, "Quorum tolerates 0 more failures (unconfirmed)", silent)
    needed = f"{quorum.in_sync} of {voters} voters are in sync; the majority is {majority}."
    return QuorumVerdict(
        HealthState.WARNING if quorum.failing else HealthState.OK, "Quorum tolerates 0 more failures", needed
    )


MOST_LINES = 12
"""Voters have a line each, then the observers that were behind most; the rest share one."""


@dataclass(frozen=True, slots=True)
class LagBuckets:
    """The largest lag in ms of each node in each bucket of ``step_s`` seconds; ``start`` is epoch seconds.

    ``lag``: node → bucket → ms; a bucket that is missing was not known for that node. ``heard``: buckets in which the
    controllers answered at all. ``watched_from``: the first bucket in which anybody asked.
    """

    start: int
    step_s: int
    buckets: int
    voters: frozenset[int]
    lag: Mapping[int, Mapping[int, int]]
    heard: frozenset[int]
    watched_from: int = 0

    @property
    def silent(self) -> int:
        """Buckets in which the controllers were asked and none answered."""
        return self.buckets - self.watched_from - len(self.heard)

    def at(self, bucket: int) -> int:
        """Begin of a bucket in epoch seconds."""
        return self.start + bucket * self.step_s


@dataclass(frozen=True, slots=True)
class LagLine:
    """Line of the chart: ``values`` in ms per bucket, None where unknown. A gap is not a zero."""

    label: str
    values: Sequence[int | None]
    voter: bool

    @property
    def worst(self) -> int | None:
        return max((v for v in self.values if v is not None), default=None)

    @property
    def lagged(self) -> bool:
        return self.worst is not None and self.worst >= LAGGING_MS


@dataclass(frozen=True, slots=True)
class LagSpike:
    """The worst of a line: ``from_bucket`` to ``to_bucket`` are the buckets around it from ``LAGGING_MS`` on."""

    line: LagLine
    ms: int
    from_bucket: int
    to_bucket: int


def lag_lines(seen: LagBuckets) -> list[LagLine]:
    """Voters, then observers by id; those that were never much behind share a line when there are too many."""
    worst = {node: max(by_bucket.values(), default=-1) for node, by_bucket in seen.lag.items()}
    voters = sorted(node for node in seen.lag if node in seen.voters)
    observers = sorted(node for node in seen.lag if node not in seen.voters)
    room = max(1, MOST_LINES - len(voters))
    alone, together = observers, list[int]()
    if len(observers) > room:
        by_worst = sorted(observers, key=lambda node: (-worst[node], node))
        alone, together = sorted(by_worst[: room - 1]), sorted(by_worst[room - 1 :])
    lines = [LagLine(f"voter {n}", _merge_values(seen, [n]), voter=True) for n in voters]
    lines += [LagLine(f"broker {n}", _merge_values(seen, [n]), voter=False) for n in alone]
    if together:
        lines.append(LagLine(f"highest of {len(together)} others", _merge_values(seen, together), voter=False))
    return lines


def find_spikes(lines: Sequence[LagLine]) -> list[LagSpike]:
    """Return one spike per lagging line, the worst first."""
    found = []
    for line in lines:
        if not line.lagged:
            continue
        ms = max(v for v in line.values if v is not None)
        low = high = next(i for i, v in enumerate(line.values) if v == ms)
        while low > 0 and (line.values[low - 1] or 0) >= LAGGING_MS:
            low -= 1
        while high + 1 < len(line.values) and (line.values[high + 1] or 0) >= LAGGING_MS:
            high += 1
        found.append(LagSpike(line, ms, low, high))
    return sorted(found, key=lambda spike: -spike.ms)


def describe_lag(seen: LagBuckets, lines: Sequence[LagLine], clock: Mapping[int, str]) -> str:
    """Return a one-line summary. ``clock`` maps buckets to the text of their start (``len`` is past the last)."""
    if not seen.heard:
        return "No responses from the controllers in this period."
    known = [line.worst for line in lines if line.worst is not None]
    if not known:
        return "No lag data: the leader did not report times of other nodes."
    lagging = find_spikes(lines)
    quorum_status = seen.buckets - seen.watched_from
    gaps = f" No response from the controllers in {seen.silent} of {quorum_status} intervals." if seen.silent else ""
    calm = [line.worst for line in lines if line.worst is not None and not line.lagged]
    below = f"Below {format_seconds(_ceil_to_tenth(max(calm)))} throughout" if calm else ""
    if not lagging:
        return f"{below}.{gaps}"
    first = lagging[0]
    when = f"{clock[first.from_bucket]} to {clock[first.to_bucket + 1]}"
    worst = f"{first.line.label}: up to {format_seconds(first.ms)}, {when}"
    others = join_items([spike.line.label for spike in lagging[1:4]])
    more = f"; {others}{' and more' if len(lagging) > 4 else ''} lagged too" if others else ""
    return (f"{below}, except {worst}{more}." if below else f"{worst[:1].upper()}{worst[1:]}{more}.") + gaps


def coarsen_values(values: Sequence[int | None], size: int) -> list[int | None]:
    """The worst of every ``size`` values; None where none of them is known."""
    parts = [values[i : i + size] for i in range(0, len(values), size)]
    return [max((v for v in part if v is not None), default=None) for part in parts]


def format_seconds(ms: int) -> str:
    """Milliseconds as seconds with one decimal, as minutes from two on: "0.6 s", "12 s", "3 min"."""
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 1000} s" if ms < 120_000 else f"{ms // 60_000} min"


def _ceil_to_tenth(ms: int) -> int:
    """The next tenth of a second that is above it."""
    return (ms // 100 + 1) * 100


def _merge_values(seen: LagBuckets, nodes: Sequence[int]) -> list[int | None]:
    of_nodes = [seen.lag[node] for node in nodes]
    if len(of_nodes) == 1:
        return [of_nodes[0].get(bucket) for bucket in range(seen.buckets)]
    return [max((lag[bucket] for lag in of_nodes if bucket in lag), default=None) for bucket in range(seen.buckets)]

"""A rolling upgrade under a move, and the comparison of what is stored with what brokers told at that time."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.broker_life.cordon import ALL, KEY, plan_cordon
from kafkadash.broker_life.reasons import BrokerReasonCode
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.execution import commands as orders
from kafkadash.findings.facts import ClusterFacts
from kafkadash.findings.judges import DRIFT_WARNS, mixed_versions
from kafkadash.findings.kinds import FindingCode
from kafkadash.findings.stored_facts import facts_of
from kafkadash.monitoring.models import (
    BrokerState,
    Capabilities,
    ClusterState,
    Collection,
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    QuorumSnapshot,
    ReassignmentSnapshot,
)
from tests.agreement.runs import Requests, Run
from tests.agreement.tools import Tools
from tests.chaos.referee import Before, judge
from tests.kafka_configs import alter
from tests.proof.raw_reads import RawReading, RawReads
from tests.stack.stack import Stack
from tests.waiting import wait_until

TOPICS, TOPIC_BYTES = 3, 24 * 1024 * 1024
RATE, FAST = 200_000, "500"  # bytes and megabytes per second
NEWEST = "4.3"
STEP_S, READ_S, RUN_S = 120.0, 60.0, 300.0
EARLY = timedelta(seconds=3)
"""A broker may tell what was so a moment ago: each has the metadata as far as it has read their log."""
COMPARED = (CollectorKind.REASSIGNMENTS, CollectorKind.METADATA, CollectorKind.QUORUM, CollectorKind.VERSIONS)


Mixture = tuple[tuple[str, int], ...]
"""Releases with the number of brokers that run each."""


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """What one refresh stored, and whether it is one of the readings around it."""

    words: str
    since: datetime
    until: datetime
    problem: Callable[[list[RawReading]], str]


@dataclass
class Watch:
    """Compares what is stored with ``raw``; ``counts`` has how many refreshes of each kind were compared."""

    cluster: Cluster
    raw: RawReads
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    percents: list[float] = field(default_factory=list)
    unknown: int = 0
    mixtures: list[Mixture] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)
    _waiting: list[StoredFacts] = field(default_factory=list)

    def until(self, condition: Callable[[], object], what: str, deadline_s: float) -> None:
        """Look again and again until it is true."""

        def after_a_look() -> object:
            self.look()
            return condition()

        wait_until(after_a_look, what, deadline_s)

    def until_all_compared(self) -> None:
        """Look until each kind was read and compared once more."""
        before = Counter(self.counts)
        self.until(
            lambda: all(self.counts[kind] > before[kind] for kind in COMPARED), "all kinds are compared again", READ_S
        )

    def look(self) -> None:
        for kind in COMPARED:
            newest = Collection.objects.filter(cluster=self.cluster, kind=kind, ok=True).order_by("-pk").first()
            if newest is None or newest.taken_at is None or self._seen.get(kind) == newest.pk:
                continue
            problem = self._describe(kind, newest.taken_at)
            again = Collection.objects.filter(cluster=self.cluster, kind=kind, ok=True).order_by("-pk").first()
            if again is None or again.pk != newest.pk:
                continue  # half of it may be of a newer refresh
            self._seen[kind] = newest.pk
            self._waiting.append(StoredFacts(kind, newest.started_at, newest.taken_at, problem))
        self._compare()

    def _compare(self) -> None:
        left = []
        for facts in self._waiting:
            readings = self.raw.around(facts.since, facts.until, EARLY)
            if readings is None:
                left.append(facts)
                continue
            self.counts[facts.words] += 1
            if problem := facts.problem(list(readings)):
                self.problems.append(f"{facts.words} at {facts.until:%H:%M:%S}: {problem}")
        self._waiting = left

    def _describe(self, kind: CollectorKind, taken_at: datetime) -> Callable[[list[RawReading]], str]:
        match kind:
            case CollectorKind.REASSIGNMENTS:
                return self._describe_moves()
            case CollectorKind.METADATA:
                return self._describe_metadata()
            case CollectorKind.QUORUM:
                return self._describe_quorum(taken_at)
            case _:
                return self._describe_versions()

    def _describe_moves(self) -> Callable[[list[RawReading]], str]:
        rows = ReassignmentSnapshot.objects.filter(cluster=self.cluster, outcome=MoveOutcome.RUNNING)
        stored, percents = set(), {}
        for row in rows:
            stored.add((row.topic, row.partition, tuple(row.adding), tuple(row.removing)))
            percents[row.topic, row.adding[0] if row.adding else -1] = (row.percent, row.sampled_at)
        self.unknown += sum(percent is None for percent, _ in percents.values())

        def problem(readings: list[RawReading]) -> str:
            told = [each.moves for each in readings if each.moves is not None]
            if not told:
                return ""
            common, any_of_them = frozenset.intersection(*told), frozenset.union(*told)
            if not common <= stored <= any_of_them:
                return f"moves {sorted(stored)}, brokers told {sorted(common)} to {sorted(any_of_them)}"
            for key, (percent, sampled_at) in percents.items():
                known = [each.percents[key] for each in self.raw.readings if key in each.percents]
                if percent is None or sampled_at is None or not known:
                    continue
                before = [
                    each.percents[key] for each in self.raw.readings if key in each.percents and each.ended < sampled_at
                ]
                after = [
                    each.percents[key] for each in self.raw.readings if key in each.percents and each.began > sampled_at
                ]
                if (before and percent < before[-1] - 0.01) or (after and percent > after[0] + 0.01):
                    return f"{key[0]} has {percent} %, read were {before[-1:]} before and {after[:1]} after"
                self.counts["percent"] += 1
            return ""

        return problem

    def _describe_metadata(self) -> Callable[[list[RawReading]], str]:
        state = ClusterState.objects.get(cluster=self.cluster)
        troubled = state.under_replicated
        rows = BrokerState.objects.filter(cluster=self.cluster)
        alive = {row.broker_id for row in rows if row.gone_at is None and row.fenced is not True}
        fenced_known = {row.fenced is not None for row in rows}

        def problem(readings: list[RawReading]) -> str:
            counts = [count for each in readings for count in each.troubled.values()]
            if troubled is not None and counts and not min(counts) <= troubled <= max(counts):
                return f"{troubled} partitions under-replicated, brokers told {min(counts)} to {max(counts)}"
            always = set.intersection(*(set(each.releases) for each in readings))
            if not always <= alive:
                return f"brokers {sorted(alive)} are there, {sorted(always)} answered all the time"
            if True in fenced_known and not any(NEWEST in each.releases.values() for each in readings):
                return "it is said which brokers are fenced, which no broker could tell"
            return ""

        return problem

    def _describe_quorum(self, taken_at: datetime) -> Callable[[list[RawReading]], str]:
        stored = QuorumSnapshot.objects.filter(cluster=self.cluster, taken_at=taken_at).first()
        row = (stored.leader_id, stored.leader_epoch) if stored else None

        def problem(readings: list[RawReading]) -> str:
            told = {each.quorum for each in readings if each.quorum is not None}
            if row is None or not told:
                return ""
            epochs = [epoch for _, epoch in told]
            leaders = {leader for leader, epoch in told if epoch == row[1]}
            if not min(epochs) <= row[1] <= max(epochs) or (leaders and row[0] not in leaders):
                return f"leader and epoch {row}, brokers told {sorted(told)}"
            return ""

        return problem

    def _describe_versions(self) -> Callable[[list[RawReading]], str]:
        capable = Capabilities.objects.get(cluster=self.cluster)
        releases = {broker: group["release"] for group in capable.software for broker in group["brokers"]}
        level = (capable.features.get("metadata.version") or {}).get("finalized")
        now = datetime.now(UTC)
        facts = facts_of(self.cluster, now)
        said = name_mixture(facts, now)

        def problem(readings: list[RawReading]) -> str:
            told = {
                broker: {each.releases[broker] for each in readings if broker in each.releases} for broker in releases
            }
            for broker, release in releases.items():
                if told[broker] and release not in told[broker]:
                    return f"broker {broker} has {release}, it told {sorted(told[broker])}"
            levels = {each for reading in readings for each in reading.level.values()}
            if levels and level not in levels:
                return f"metadata.version is {level}, brokers told {sorted(levels)}"
            for release, number in said:
                most = max(list(each.releases.values()).count(release) for each in readings)
                if number > most:
                    return f"{number} brokers are said to have {release}, at most {most} did"
            return ""

        return problem


def name_mixture(facts: ClusterFacts, now: datetime) -> Mixture:
    """Return releases with their numbers of brokers, as the finding names them once it has lasted long enough."""
    for finding in mixed_versions(facts, now, now + DRIFT_WARNS):
        if finding.message.code == FindingCode.VERSIONS_DIFFER:
            named = [part.params for part in finding.message.params["releases"]]
            return tuple(sorted((str(each["release"]), int(each["brokers"])) for each in named))
    return ()


class RollingUpgrade:
    """On a stack whose Kafka runs an older release than the one that its nodes start with from now on."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._playground = stack.playground
        self._tools = Tools(stack.playground)
        alice, bob = User.objects.get(username="alice"), User.objects.get(username="bob")
        self._cluster = Cluster.objects.get()
        self._requests = Requests(self._cluster, self._refresh, alice, bob)
        self._alice = alice
        nodes = stack.playground.cluster.brokers
        self._raw = RawReads({node.node_id: f"127.0.0.1:{node.broker_port}" for node in nodes})
        self._watch = Watch(self._cluster, self._raw)

    def run(self) -> list[str]:
        """Return every problem, a sentence each. Raises AssertionError where something did not happen in time."""
        topics = [f"upgraded-{number}" for number in range(TOPICS)]
        load_topics(
            self._playground.bootstrap,
            [LoadTopic(topic, placement=[[1, 2]], fill_bytes=TOPIC_BYTES) for topic in topics],
        )
        wait_until(self._tools.in_sync, "every replica is in sync", READ_S)
        alter(self._playground, topics[0], leader_replication_throttled_replicas="9:1")
        before = Before.of(self._tools)
        run = self._requests.approved({(topic, 0): [1, 3] for topic in topics}, throttle=RATE, elect=False)
        with self._raw.going_on():
            run.start()
            self._watch.until(lambda: len(self._moving()) == TOPICS, "all of it moves", STEP_S)
            self._roll(run)
            orders.set_throttle(run.change, self._alice, FAST, "All of it is upgraded.")
            self._watch.until(lambda: run.state == RequestState.DONE, f"#{run.change.pk} is done", RUN_S)
            self._watch.until(self._are_alike, "no mixture of releases is left", READ_S)
        problems = [*self._watch.problems, *judge(self._tools, [run.change.pk], before)]
        if self._watch.percents != sorted(self._watch.percents):
            problems.append(f"the run's percent fell: {self._watch.percents}")
        problems += self._check_mixture()
        print(f"  compared: {dict(self._watch.counts)}; percent unknown {self._watch.unknown} times")  # noqa: T201
        print(f"  mixtures that were named: {self._watch.mixtures}")  # noqa: T201
        return problems

    def _roll(self, run: Run) -> None:
        """Restart every node with the jars of the newer release, then raise the feature levels."""
        self._playground.lock = None
        controllers = [node.node_id for node in self._playground.cluster.controllers]
        leader = self._tools.quorum_status().leader_id
        brokers = [node.node_id for node in self._playground.cluster.brokers]
        for node in [*(each for each in controllers if each != leader), leader, *brokers]:
            self._restart(node)
            self._note_percent(run)
        assert self._moving(), "the move ended before the upgrade did"
        self._check_cordons(BrokerReasonCode.LEVEL_TOO_LOW)
        before = self._read_level()
        self._tools.run("features", "upgrade", "--release-version", NEWEST)
        self._watch.until(
            lambda: self._read_level() != before and self._levels_are_stored(),
            "the new feature levels are stored",
            READ_S,
        )
        assert self._moving(), "the move ended before the levels were raised"
        self._check_cordons(None)

    def _check_cordons(self, expected: BrokerReasonCode | None) -> None:
        """Below the newest metadata.version Kafka refuses what its brokers could do, and so does the product before."""
        value = {"values": {"2": ALL}}
        left_out = [why.params["why"].code for why in plan_cordon(self._cluster, value).left_out]
        key = ("--entity-type", "brokers", "--entity-name", "2")
        told = self._playground.tool("configs", ["--alter", *key, "--add-config", f"{KEY}={ALL}"])
        if told.returncode == 0:
            self._tools.run("configs", "--alter", *key, "--delete-config", KEY)
        if (left_out, told.returncode != 0) != ([expected] if expected else [], expected is not None):
            self._watch.problems.append(f"cordons are refused for {left_out}, Kafka ended with {told.returncode}")

    def _restart(self, node_id: int) -> None:
        name, began = f"kafka-{node_id}", time.monotonic()
        starts = self._stack.starts(name)
        self._stack.pause(name, signal.SIGTERM)
        self._watch.until(lambda: self._stack.pid(name) is None, f"{name} has ended", STEP_S)
        self._stack.resume(name)
        self._watch.until(
            lambda: self._stack.starts(name) > starts and self._stack.serves(name), f"{name} serves", STEP_S
        )
        self._watch.until(self._is_whole, f"all is in sync after {name}", STEP_S)
        self._watch.until(self._is_mixture_named, f"the releases after {name} are named", READ_S)
        self._watch.until_all_compared()
        moving = len(self._moving())
        print(f"  {name:<10} {time.monotonic() - began:>4.0f} s, {moving} moves in flight", flush=True)  # noqa: T201

    def _is_whole(self) -> bool:
        """Return whether all brokers answer, and only what a move adds is out of sync."""
        newest = self._raw.newest
        return (
            newest is not None
            and newest.moves is not None
            and newest.lagging == 0
            and newest.quorum is not None
            and len(newest.releases) == len(self._raw.brokers)
        )

    def _moving(self) -> frozenset[object]:
        newest = self._raw.newest
        return frozenset(newest.moves or ()) if newest else frozenset()

    def _read_level(self) -> object:
        """Return metadata.version as stored."""
        stored = Capabilities.objects.get(cluster=self._cluster).features
        return (stored.get("metadata.version") or {}).get("finalized")

    def _levels_are_stored(self) -> bool:
        newest = self._raw.newest
        levels = set(newest.level.values()) if newest else set()
        return levels == {self._read_level()} and self._tools.features()["metadata.version"][2].startswith(NEWEST)

    def _is_mixture_named(self) -> bool:
        """Return whether the finding names the releases that brokers tell, and none where they are alike."""
        newest = self._raw.newest
        if newest is None or len(newest.releases) < len(self._raw.brokers):
            return False
        counts = Counter(newest.releases.values())
        told: Mixture = tuple(sorted(counts.items())) if len(counts) > 1 else ()
        now = datetime.now(UTC)
        if name_mixture(facts_of(self._cluster, now), now) != told:
            return False
        if told and told not in self._watch.mixtures:
            self._watch.mixtures.append(told)
        return True

    def _are_alike(self) -> bool:
        software = Capabilities.objects.get(cluster=self._cluster).software
        return [group["release"] for group in software] == [NEWEST]

    def _check_mixture(self) -> list[str]:
        """Both mixtures of three brokers were named."""
        expected = [(("3.9", 2), (NEWEST, 1)), (("3.9", 1), (NEWEST, 2))]
        named = self._watch.mixtures
        return [] if named == expected else [f"mixtures that were named: {named}, expected {expected}"]

    def _note_percent(self, run: Run) -> None:
        if run.now is not None and run.now.percent is not None:
            self._watch.percents.append(run.now.percent)

    def _refresh(self, kind: CollectorKind) -> None:
        """By the stack's own collector, soon."""
        own = CollectorRun.objects.filter(cluster=self._cluster, kind=kind)
        before = own.get().succeeded_at
        own.update(next_at=Now())
        wait_until(lambda: own.get().succeeded_at != before, f"{kind} is read", READ_S)

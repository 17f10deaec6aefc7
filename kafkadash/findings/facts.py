"""Stored facts of one cluster, as the judgement takes them. None means unknown, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.core.failures import controllers_are_silent
from kafkadash.core.messages import CodedMessage
from kafkadash.core.status import NEVER, RefreshStatus
from kafkadash.findings.kinds import FactSource
from kafkadash.monitoring.canary.rules import CanaryTrouble
from kafkadash.monitoring.groups.rules import LagState
from kafkadash.watchdog.rules import TaskRound


@dataclass(frozen=True, slots=True)
class DirectoryFact:
    """A log directory of a broker; ``total_bytes`` is None where Kafka does not tell sizes (before 3.3, KIP-827)."""

    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class BrokerFact:
    """A broker as last seen.

    ``fenced``: registered but not let in (KRaft). ``gone``: no longer registered. ``silent``: neither, but it does not
    answer us. ``since``: when it got into the state it is in. ``software``: the number of the set of brokers that offer
    the same API versions and feature levels. ``directories_at``: when its directories were read, None if never.
    """

    id: int
    fenced: bool = False
    gone: bool = False
    silent: bool = False
    replicas: int = 0
    leaders: int = 0
    since: datetime | None = None
    release: str = ""
    software: int | None = None
    directories: tuple[DirectoryFact, ...] = ()
    directories_at: datetime | None = None

    @property
    def away(self) -> bool:
        return self.fenced or self.gone or self.silent


@dataclass(frozen=True, slots=True)
class GroupFact:
    """A consumer group in which something is wrong or may be, or whose data is old (``taken_at`` tells).

    ``key`` is of bounded length and stands for ``name``, which Kafka lets be anything. ``worst`` is the state of the
    worst partition, ``place`` (topic-partition) and ``place_lag``; ``lag`` that of all partitions whose lag is known;
    ``failing`` partitions stall, stopped or were set back. ``lost``: records deleted before they were committed.
    ``lag_unknown`` partitions have no lag that is known; ``in_doubt`` ones cannot be judged now, and more waited in
    them than is allowed. An open transaction holds back ``held`` partitions. Lags in records.
    """

    key: str
    name: str
    worst: LagState
    taken_at: datetime
    place: str = ""
    place_lag: int | None = None
    lag: int | None = None
    allowed: int = 0
    partitions: int = 0
    failing: int = 0
    members: int | None = None
    since: datetime | None = None
    lost: int | None = None
    lag_unknown: int = 0
    in_doubt: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class ForecastFact:
    """How a log directory fills up, as the pipeline's newest forecast (``made_at``) has it from data since ``from_at``.

    ``grows_per_day`` in bytes; ``used_bytes`` of ``total_bytes`` at ``made_at``.
    """

    broker: int
    path: str
    used_bytes: int
    total_bytes: int
    grows_per_day: float
    made_at: datetime
    from_at: datetime


@dataclass(frozen=True, slots=True)
class PipelineFact:
    """The pipeline as it was last looked at. ``batch_at``: when it finished a batch last, None if it never did.

    ``interval_s`` between two batches. ``set_aside``: files with facts of this cluster that it could not read.
    """

    batch_at: datetime | None
    interval_s: float
    set_aside: tuple[FilesSetAside, ...] = ()


@dataclass(frozen=True, slots=True)
class FilesSetAside:
    """``file`` below the segments' folder."""

    file: str
    why: CodedMessage
    at: datetime


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Some partitions of one class: their number, and the first names; a ``missing`` broker if it is the only one.

    ``number`` None is not known. ``absent``: brokers that hold replicas which these partitions lack, of offline ones
    the replicas that could lead; None where that is not known of all of them.
    """

    number: int | None = None
    names: tuple[str, ...] = ()
    missing: tuple[int, ...] = ()
    absent: frozenset[int] | None = None


NOT_KNOWN = PartitionFacts()


@dataclass(frozen=True, slots=True)
class EligibleFacts:
    """Partitions of one class by their eligible leader replicas (KIP-966), those alone whose ELR was read.

    ``eligible`` of the ``known`` ones have an eligible replica, and ``brokers`` host these: each of them one of every
    such partition where ``each`` is true, otherwise all brokers together.
    """

    known: int = 0
    eligible: int = 0
    brokers: tuple[int, ...] = ()
    each: bool = False


NO_ELR = EligibleFacts()


@dataclass(frozen=True, slots=True)
class DriftFact:
    """A config in which brokers differ; ``since`` is when they were first seen to."""

    key: str
    since: datetime


@dataclass(frozen=True, slots=True)
class RunFact:
    """Trouble of the run of a change: ``kind`` is a value of ``changes.troubles.TroubleKind``."""

    number: int
    kind: str
    count: int
    since: datetime
    why: CodedMessage | None = None


@dataclass(frozen=True, slots=True)
class IncompleteFact:
    """Kinds of facts that were never read completely since the cluster was registered at ``since``."""

    kinds: tuple[str, ...]
    since: datetime


@dataclass(frozen=True, slots=True)
class ReceiverFact:
    """Receiver of notifications whose tries fail since ``since``; ``error`` is the newest failure, if known."""

    number: int
    name: str
    since: datetime
    error: CodedMessage | None = None


@dataclass(frozen=True, slots=True)
class ProductFacts:
    """Facts about kafkadash itself: newest rounds of its tasks, and receivers that fail."""

    rounds: tuple[TaskRound, ...] = ()
    receivers: tuple[ReceiverFact, ...] = ()


@dataclass(frozen=True, slots=True)
class HangingFact:
    """Transactions that hang, by the partitions that they hold back; ``since``: when the first of them was seen.

    ``unread``: as many more may hang, and were too many to be read or kept.
    """

    transactions: int
    places: tuple[str, ...]
    since: datetime
    unread: int = 0


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Everything that a judgement needs.

    ``hidden_topics``: at least so many exist that our principal may not see.
    ``same_as``: the cluster that the same Kafka cluster is registered as.
    ``kraft``: the controllers form a quorum (ZooKeeper mode and a mode not learned yet: False). ``ensemble``: how
    ZooKeeper is read, None where its address is not entered. ``under_min_isr`` are
    those that have a leader. ``at_min_isr`` leaves out topics that were built without slack (as many replicas as
    min.insync.replicas); ``_moving`` ones are explained by a reassignment, ``_last`` ones have one replica in sync and
    are not. ``voters_in_sync`` counts those *known* to be in sync. ``elections``: leader changes of the quorum within
    ``monitoring.quorum.rules.FLAPPING_WITHIN``. ``answers``, ``groups`` and ``pipeline`` are None where nobody collects
    them and where no pipeline is set up; ``pipeline`` tells when it was last looked at, ``pipeline_stands`` what was
    seen. ``groups_in_trouble`` are all that are, with those of which a finding speaks; ``groups_named`` the keys of
    those that have one of their own, open or about to. ``offline_elr``: partitions without a leader by the replicas of
    ISR and ELR that are offline with them. ``under_elr``: those that have a leader and hold their high watermark.
    ``mixed_since``: when brokers were first seen to run different software, None while they do not. ``canary``: None
    where none was started; ``canaries`` are the brokers that fail it or are slow, ``canaries_blind`` those of which the
    newest probe tells nothing; ``canary_measured``: it tells something of a broker. ``groups_judged``: a group has a
    verdict from lately, or there are none. ``transactions``: None where nobody collects them; ``hanging_blind``: some
    hung, and nobody can tell if they still do. ``incomplete``: None where every kind of facts was read completely once.
    ``moved_by``: the change whose run moves replicas to or from a broker now.
    """

    enabled: bool = True
    kraft: bool = True
    zookeeper: bool = False
    ensemble: RefreshStatus | None = None
    addresses: int = 1
    kafka_id: str = ""
    other_kafka_id: str = ""
    same_as: str = ""
    answers: RefreshStatus | None = None
    metadata: RefreshStatus = NEVER
    reassignments: RefreshStatus = NEVER
    quorum: RefreshStatus = NEVER
    log_dirs: RefreshStatus = NEVER
    configs: RefreshStatus = NEVER
    versions: RefreshStatus = NEVER
    groups: RefreshStatus | None = None
    canary: RefreshStatus | None = None
    transactions: RefreshStatus | None = None
    pipeline: RefreshStatus | None = None
    hidden_topics: int | None = None
    partitions: int | None = None
    offline: PartitionFacts = NOT_KNOWN
    under_min_isr: PartitionFacts = NOT_KNOWN
    at_min_isr: PartitionFacts = NOT_KNOWN
    offline_elr: EligibleFacts = NO_ELR
    under_elr: EligibleFacts = NO_ELR
    at_min_isr_moving: int = 0
    at_min_isr_last: int = 0
    under_replicated: PartitionFacts = NOT_KNOWN
    under_replicated_moving: int = 0
    rack_violations: int | None = None
    brokers_without_rack: int | None = None
    brokers_registered: int | None = None
    brokers_gone: int | None = None
    brokers: tuple[BrokerFact, ...] = ()
    mixed_since: datetime | None = None
    config_drift: tuple[DriftFact, ...] = ()
    canaries: tuple[CanaryTrouble, ...] = ()
    canaries_blind: frozenset[int] = frozenset()
    canary_measured: bool = True
    runs: RefreshStatus | None = None
    run_troubles: tuple[RunFact, ...] = ()
    reading: RefreshStatus | None = None
    incomplete: IncompleteFact | None = None
    moved_by: Mapping[int, int] = field(default_factory=dict)
    hanging: HangingFact | None = None
    hanging_blind: bool = False
    voters: int | None = None
    voters_in_sync: int | None = None
    voters_failing: int | None = None
    elections: int | None = None
    zombies: tuple[str, ...] = ()
    orphan_throttles: tuple[str, ...] = ()
    groups_in_trouble: tuple[GroupFact, ...] = ()
    groups_named: frozenset[str] = frozenset()
    groups_judged: bool = True
    forecasts: tuple[ForecastFact, ...] = ()
    pipeline_stands: PipelineFact | None = None

    @property
    def collected(self) -> bool:
        """True where answers of this cluster are stored."""
        return self.enabled and not self.other_kafka_id and not self.same_as

    @property
    def controllers_silent(self) -> bool:
        """Several questions in a row got no answer from the controllers."""
        return self.kraft and controllers_are_silent(self.quorum)

    def refreshed(self, source: FactSource) -> RefreshStatus:
        """How the facts of one source stand; asking for ``FactSource.AGES`` is a KeyError, they are not read."""
        status: RefreshStatus | None = getattr(self, _FIELD_OF_SOURCE[source])
        return NEVER if status is None else status


_FIELD_OF_SOURCE = {
    FactSource.ANSWERS: "answers",
    FactSource.METADATA: "metadata",
    FactSource.REASSIGNMENTS: "reassignments",
    FactSource.QUORUM: "quorum",
    FactSource.LOG_DIRS: "log_dirs",
    FactSource.CONFIGS: "configs",
    FactSource.VERSIONS: "versions",
    FactSource.GROUPS: "groups",
    FactSource.CANARY: "canary",
    FactSource.TRANSACTIONS: "transactions",
    FactSource.RUNS: "runs",
    FactSource.READING: "reading",
    FactSource.PIPELINE: "pipeline",
}

"""The steps to decommission a broker, each with its state as stored rows have it. Nothing of it is stored.

Cordon, drain, prove that the broker is empty, stop it, unregister it. A step is done by a change of its own, or by
whoever has access to the machine; the page only tells which one is next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Q

from kafkadash.broker_life import cordon, unregister
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.state_machine import OVER
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.brokers import broker_word
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    CollectorKind,
    is_closed,
)
from kafkadash.monitoring.offers import FeatureLack, KafkaFeature, find_lack
from kafkadash.planning.proposal import DRAIN, REPLACE
from kafkadash.planning.proposal import KIND as REASSIGNMENT


class StepCode(StrEnum):
    """The steps, in their order."""

    CORDON = "cordon"
    DRAIN = "drain"
    EMPTY = "empty"
    STOP = "stop"
    UNREGISTER = "unregister"


class StepState(StrEnum):
    DONE = "done"
    NEXT = "next"
    WAITS = "waits"
    UNKNOWN = "unknown"
    NOT_OFFERED = "not offered"

    @property
    def mark(self) -> str:
        """The state of the mark on the page."""
        return {StepState.DONE: "ok", StepState.NEXT: "warning"}.get(self, "unknown")


@dataclass(frozen=True, slots=True)
class EmptyProof:
    """A source that tells whether the broker is empty: ``empty`` is None where it does not tell."""

    source: str
    empty: bool | None
    words: str
    freshness: FactFreshness


@dataclass(frozen=True, slots=True)
class DecommissionStep:
    """``change``: an open change that does the step."""

    code: StepCode
    state: StepState
    words: str
    change: ChangeRequest | None = None
    proofs: Sequence[EmptyProof] = ()

    @property
    def title(self) -> str:
        return _TITLES[self.code]


_TITLES = {
    StepCode.CORDON: "Cordon its log directories",
    StepCode.DRAIN: "Drain it",
    StepCode.EMPTY: "Prove that it is empty",
    StepCode.STOP: "Stop it",
    StepCode.UNREGISTER: "Unregister it",
}
_TO_DO = {
    StepCode.CORDON: "cordon it",
    StepCode.DRAIN: "drain it",
    StepCode.STOP: "stop it",
    StepCode.UNREGISTER: "unregister it",
}
_BY_CHANGE = {
    StepCode.CORDON: "cordons it",
    StepCode.DRAIN: "drains it",
    StepCode.UNREGISTER: "unregisters it",
}
_RESULTS = {
    StepCode.CORDON: "cordoned",
    StepCode.DRAIN: "drained",
    StepCode.EMPTY: "empty",
    StepCode.STOP: "stopped",
    StepCode.UNREGISTER: "unregistered",
}


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker as stored. ``weights`` is None where its disks were never read.

    ``no_cordons``, ``no_fenced``, ``no_unregister``: why the cluster does not offer them, None where it does or where
    that is not known.

    ``hidden``: at least so many topics were not visible when disks were last read; None is not known.
    """

    row: BrokerState
    weights: BrokerWeights | None
    no_cordons: FeatureLack | None
    no_fenced: FeatureLack | None
    no_unregister: FeatureLack | None
    adding: int
    hidden: int | None
    metadata: FactFreshness
    disks: FactFreshness
    reassignments: FactFreshness
    versions: FactFreshness

    @property
    def word(self) -> str:
        return broker_word(self.row)

    @property
    def stopped(self) -> bool:
        return self.word in ("fenced", "gone")

    @property
    def fencing_untold(self) -> bool:
        """Return whether the cluster lists no stopped brokers and does not tell which are fenced (before Kafka 4.0)."""
        return self.row.fenced is None


def load_facts(cluster: Cluster, row: BrokerState, standing: CollectionFreshness) -> BrokerFacts:
    """Load the facts behind the steps. Four queries."""
    weights = BrokerWeights.objects.filter(cluster=cluster, broker_id=row.broker_id).first()
    read = standing.freshness_of(CollectorKind.LOG_DIRS)
    hidden = ClusterState.objects.filter(cluster=cluster).values_list("hidden_topics", flat=True).first()
    capable = Capabilities.objects.filter(cluster=cluster).first()
    return BrokerFacts(
        row=row,
        weights=weights,
        no_cordons=find_lack(capable, KafkaFeature.CORDONS),
        no_fenced=find_lack(capable, KafkaFeature.FENCED_BROKERS),
        no_unregister=find_lack(capable, KafkaFeature.UNREGISTER),
        adding=unregister.count_adding(cluster, row.broker_id),
        hidden=hidden,
        metadata=standing.freshness_of(CollectorKind.METADATA),
        disks=FactFreshness(weights.taken_at if weights else None, read.interval_s, standing.now),
        reassignments=standing.freshness_of(CollectorKind.REASSIGNMENTS),
        versions=standing.freshness_of(CollectorKind.VERSIONS),
    )


def find_open_changes(cluster: Cluster, broker: int) -> dict[StepCode, ChangeRequest]:
    """Return the newest submitted change of each step that has not ended. One query."""
    of_step = {
        StepCode.CORDON: Q(kind=cordon.KIND, input__values__has_key=str(broker))
        & ~Q(**{f"input__values__{broker}": None}),
        StepCode.DRAIN: Q(kind=REASSIGNMENT, input__mode__in=[DRAIN, REPLACE], input__brokers__contains=[broker]),
        StepCode.UNREGISTER: Q(kind=unregister.KIND, input__broker=broker),
    }
    any_step = of_step[StepCode.CORDON] | of_step[StepCode.DRAIN] | of_step[StepCode.UNREGISTER]
    over = [RequestState.DRAFT, *(RequestState(state) for state in OVER)]
    found = ChangeRequest.objects.filter(any_step, cluster=cluster).exclude(state__in=over).order_by("pk")
    steps = {cordon.KIND: StepCode.CORDON, REASSIGNMENT: StepCode.DRAIN, unregister.KIND: StepCode.UNREGISTER}
    return {steps[change.kind]: change for change in found}


def list_steps(facts: BrokerFacts, changes: Mapping[StepCode, ChangeRequest]) -> list[DecommissionStep]:
    """Return all steps with their states, in order."""
    cordoned = _judge_cordon(facts)
    drained = _judge_drain(facts, cordoned[0])
    proofs = _prove_empty(facts)
    empty = _judge_empty(proofs)
    judged = {
        StepCode.CORDON: cordoned,
        StepCode.DRAIN: drained,
        StepCode.EMPTY: empty,
        StepCode.STOP: _judge_stop(facts, empty[0]),
        StepCode.UNREGISTER: _judge_unregister(facts),
    }
    return [
        DecommissionStep(code, state, words, changes.get(code), proofs if code is StepCode.EMPTY else ())
        for code, (state, words) in judged.items()
    ]


def find_current(steps: Sequence[DecommissionStep]) -> DecommissionStep | None:
    """Return the first step that is next or unknown; None where all is done or waits."""
    return next((step for step in steps if step.state in (StepState.NEXT, StepState.UNKNOWN)), None)


def name_page(facts: BrokerFacts, steps: Sequence[DecommissionStep]) -> str:
    """Return the title: what is to be done next."""
    broker = facts.row.broker_id
    if facts.metadata.stale:
        age = facts.metadata.age_s
        since = "never read" if age is None else f"last read {format_duration(age)} ago"
        return f"Decommission broker {broker}: metadata {since}"
    if steps[-1].state is StepState.DONE:
        if facts.row.replicas:
            replicas = choose_plural("# replica|# replicas", facts.row.replicas)
            return f"Broker {broker} is unregistered, {replicas} assigned"
        done = all(step.state is StepState.DONE for step in steps)
        return f"Broker {broker} is {'decommissioned' if done else 'unregistered'}"
    current = find_current(steps)
    if current is None:
        return f"Decommission broker {broker}: waits"
    if current.change:
        what = f"#{current.change.pk} {_BY_CHANGE[current.code]}"
    elif current.state is StepState.UNKNOWN:
        what = f"unknown whether it is {_RESULTS[current.code]}"
    else:
        what = _TO_DO[current.code]
    return f"Decommission broker {broker}: {what}"


Judged = tuple[StepState, str]
_NO_TOPICS = "Create no topics until the broker is stopped."


def _judge_cordon(facts: BrokerFacts) -> Judged:
    directories = facts.weights.dirs if facts.weights else []
    if facts.metadata.stale:
        return StepState.UNKNOWN, "The metadata is stale."
    if facts.word == "gone" and not facts.fencing_untold:
        return StepState.DONE, "Kafka places no replicas on a broker that is not registered."
    if not facts.stopped and not directories:
        return StepState.UNKNOWN, "Its log directories were not read."
    if not facts.stopped and facts.disks.stale:
        return StepState.UNKNOWN, "The data of its log directories is stale."
    if any(directory["cordoned"] is None for directory in directories if not directory["error"]):
        return StepState.NOT_OFFERED, f"Kafka cordons from 4.3 on. {_NO_TOPICS}"
    if facts.no_cordons is not None and not facts.stopped and facts.versions.stale:
        return StepState.UNKNOWN, "The data of Kafka versions is stale."
    if facts.no_cordons is not None and not facts.stopped:
        needed = facts.no_cordons.level or "software"
        read = f"read {format_duration(facts.versions.age_s or 0.0)} ago"
        words = f"The {needed} of the cluster, {read}, is below Kafka 4.3, which cordons. {_NO_TOPICS}"
        return StepState.NOT_OFFERED, words
    failed = sum(bool(directory["error"]) for directory in directories)
    offline = f", {failed:,} of them offline" if failed else ""
    closed = sum(map(is_closed, directories))
    if directories and closed == len(directories):
        return StepState.DONE, f"All log directories are cordoned{offline}: Kafka places no new replicas here."
    if facts.stopped:
        return StepState.NOT_OFFERED, "A stopped broker cannot be cordoned from here. Create no topics until the end."
    of_all = f"{closed:,} of {choose_plural('# directory|# directories', len(directories))} cordoned{offline}."
    return StepState.NEXT, f"{of_all} Until all are, Kafka may place new replicas here."


def _judge_drain(facts: BrokerFacts, cordoned: StepState) -> Judged:
    if facts.metadata.stale:
        return StepState.UNKNOWN, "The metadata is stale."
    if facts.reassignments.stale:
        return StepState.UNKNOWN, "The data of reassignments is stale."
    assigned = choose_plural("# replica is|# replicas are", facts.row.replicas)
    if facts.row.replicas or facts.adding:
        words = f"{assigned} assigned to it."
        words += f" {_describe_adding(facts)}." if facts.adding else ""
        if cordoned is StepState.NEXT:
            return StepState.WAITS, f"{words} Cordon it first."
        return StepState.NEXT, words
    if facts.hidden != 0:
        return StepState.UNKNOWN, f"{_describe_hidden(facts)}. Grant Describe on all topics."
    return StepState.DONE, "No replica is assigned to it."


def _describe_adding(facts: BrokerFacts) -> str:
    return choose_plural("# partition adds it|# partitions add it", facts.adding)


def _describe_hidden(facts: BrokerFacts) -> str:
    if facts.hidden is None:
        return "It is not known whether all topics are visible"
    return choose_plural("# topic was|# topics were", facts.hidden) + " not visible when disks were last read"


def _prove_empty(facts: BrokerFacts) -> list[EmptyProof]:
    return [
        _prove_by_metadata(facts),
        _prove_by_disks(facts),
        EmptyProof(
            "Reassignments",
            None if facts.reassignments.stale else not facts.adding,
            _describe_adding(facts),
            facts.reassignments,
        ),
    ]


def _prove_by_metadata(facts: BrokerFacts) -> EmptyProof:
    replicas = facts.row.replicas
    words = choose_plural("# replica assigned|# replicas assigned", replicas)
    untold = facts.hidden != 0 and not replicas
    if untold:
        words = f"{words}. {_describe_hidden(facts)}"
    return EmptyProof("Metadata", None if facts.metadata.stale or untold else not replicas, words, facts.metadata)


def _prove_by_disks(facts: BrokerFacts) -> EmptyProof:
    """Replicas on a broker that was stopped since may be gone; that there were none is still true."""
    if facts.weights is None:
        return EmptyProof("Log directories", None, "not read", facts.disks)
    on_disk = sum(unregister.count_on_disk(facts.weights).values())
    failed = sum(bool(directory["error"]) for directory in facts.weights.dirs)
    words = choose_plural("# replica|# replicas", on_disk)
    if failed:
        words = f"{words}, {choose_plural('# directory|# directories', failed)} not read"
    if facts.stopped:
        words = f"{words} when last read; a stopped broker is not read"
    told = not on_disk and not failed if facts.stopped else not facts.disks.stale and (on_disk > 0 or not failed)
    return EmptyProof("Log directories", on_disk == 0 if told else None, words, facts.disks)


def _judge_empty(proofs: Sequence[EmptyProof]) -> Judged:
    if any(proof.empty is False for proof in proofs):
        return StepState.WAITS, "It is not empty."
    if any(proof.empty is None for proof in proofs):
        return StepState.UNKNOWN, "Not all sources tell."
    return StepState.DONE, "It hosts nothing, and nothing is on its way."


def _judge_stop(facts: BrokerFacts, empty: StepState) -> Judged:
    if facts.metadata.stale:
        return StepState.UNKNOWN, "The metadata is stale."
    if facts.word == "gone" and facts.fencing_untold:
        lack = f" Fenced brokers are reported {facts.no_fenced.needed_words}." if facts.no_fenced else ""
        return StepState.UNKNOWN, f"Kafka does not list it, stopped or not. Check that its process has ended.{lack}"
    if facts.word == "gone":
        return StepState.DONE, "It is not registered."
    if facts.word == "fenced":
        return StepState.DONE, "It is fenced: the controllers do not hear from it."
    if facts.word == "silent":
        return StepState.WAITS, "It does not answer. The controllers fence it when its session has ended."
    where = f"It runs at {facts.row.host}:{facts.row.port}."
    if empty is not StepState.DONE:
        return StepState.WAITS, f"{where} Stop it when it is empty."
    how = "Stop its process there, with bin/kafka-server-stop.sh or the service manager."
    return StepState.NEXT, f"{where} {how} This page shows when it is fenced."


def _judge_unregister(facts: BrokerFacts) -> Judged:
    if facts.metadata.stale:
        return StepState.UNKNOWN, "The metadata is stale."
    if facts.fencing_untold and facts.row.cluster.mode == ClusterMode.ZOOKEEPER:
        return StepState.NOT_OFFERED, "In ZooKeeper mode a broker is registered while it runs only."
    if facts.fencing_untold:
        lack = facts.no_unregister
        told = f"Offered {lack.needed_words}" if lack else "The cluster does not tell fenced brokers"
        return StepState.NOT_OFFERED, f"{told}. Use bin/kafka-cluster.sh unregister."
    if facts.word == "gone":
        return StepState.DONE, "The cluster does not know it any more. It registers itself again when it starts."
    if facts.word != "fenced":
        return StepState.WAITS, "It has to be stopped first."
    if facts.reassignments.stale:
        return StepState.UNKNOWN, "The data of reassignments is stale."
    if facts.row.replicas or facts.adding:
        return StepState.WAITS, "It has to be empty first."
    if facts.hidden != 0:
        return StepState.NEXT, f"{_describe_hidden(facts)}. Kafka is asked again before it is unregistered."
    return StepState.NEXT, "Kafka lists it as fenced until it is unregistered."

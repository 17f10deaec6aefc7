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
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.brokers import broker_word
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness
from kafkadash.monitoring.models import BrokerState, BrokerWeights, ClusterState, CollectorKind
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
_NEXT = {
    StepCode.CORDON: ("cordon it", "cordons it"),
    StepCode.DRAIN: ("drain it", "drains it"),
    StepCode.EMPTY: ("wait until it is empty", ""),
    StepCode.STOP: ("stop it", ""),
    StepCode.UNREGISTER: ("unregister it", "unregisters it"),
}


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker as stored. ``weights`` is None where its disks were never read; ``hidden``: topics nobody may see."""

    row: BrokerState
    weights: BrokerWeights | None
    adding: int
    hidden: int
    metadata: FactFreshness
    disks: FactFreshness
    reassignments: FactFreshness

    @property
    def word(self) -> str:
        return broker_word(self.row)

    @property
    def stopped(self) -> bool:
        return self.word in ("fenced", "gone")


def load_facts(cluster: Cluster, row: BrokerState, standing: CollectionFreshness) -> BrokerFacts:
    """Load the facts behind the steps. Three queries."""
    weights = BrokerWeights.objects.filter(cluster=cluster, broker_id=row.broker_id).first()
    read = standing.freshness_of(CollectorKind.LOG_DIRS)
    hidden = ClusterState.objects.filter(cluster=cluster).values_list("hidden_topics", flat=True).first()
    return BrokerFacts(
        row=row,
        weights=weights,
        adding=unregister.count_adding(cluster, row.broker_id),
        hidden=hidden or 0,
        metadata=standing.freshness_of(CollectorKind.METADATA),
        disks=FactFreshness(weights.taken_at if weights else None, read.interval_s, standing.now),
        reassignments=standing.freshness_of(CollectorKind.REASSIGNMENTS),
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
    """Return the step to do, or else the first one that is unknown; None where all is done or waits."""
    for state in (StepState.NEXT, StepState.UNKNOWN):
        for step in steps:
            if step.state is state:
                return step
    return None


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
        return f"Broker {broker} is decommissioned"
    current = find_current(steps)
    if current is None:
        return f"Decommission broker {broker}: waits"
    do, does = _NEXT[current.code]
    change = f"#{current.change.pk} {does}" if current.change else do
    return f"Decommission broker {broker}: {change}"


Judged = tuple[StepState, str]


def _judge_cordon(facts: BrokerFacts) -> Judged:
    directories = facts.weights.dirs if facts.weights else []
    if facts.word == "gone":
        return StepState.DONE, "Kafka places no replicas on a broker that is not registered."
    if not directories:
        return StepState.UNKNOWN, "Its log directories were not read."
    if any(directory["cordoned"] is None for directory in directories):
        return StepState.NOT_OFFERED, "Kafka cordons from 4.3 on. Create no topics until the broker is stopped."
    cordoned = sum(directory["cordoned"] for directory in directories)
    if cordoned == len(directories):
        return StepState.DONE, "All log directories are cordoned: Kafka places no new replicas here."
    if facts.stopped:
        return StepState.NOT_OFFERED, "A stopped broker cannot be cordoned from here. Create no topics until the end."
    if facts.disks.stale:
        return StepState.UNKNOWN, "The data of its log directories is stale."
    of_all = f"{cordoned:,} of {choose_plural('# directory|# directories', len(directories))} cordoned."
    return StepState.NEXT, f"{of_all} Until all are, Kafka may place new replicas here."


def _judge_drain(facts: BrokerFacts, cordoned: StepState) -> Judged:
    if facts.metadata.stale:
        return StepState.UNKNOWN, "The metadata is stale."
    replicas = choose_plural("# replica is|# replicas are", facts.row.replicas)
    if not facts.row.replicas and not facts.adding:
        return StepState.DONE, "No replica is assigned to it."
    if cordoned is StepState.NEXT:
        return StepState.WAITS, f"{replicas} assigned to it. Cordon it first."
    return StepState.NEXT, f"{replicas} assigned to it."


def _prove_empty(facts: BrokerFacts) -> list[EmptyProof]:
    row, hidden = facts.row, facts.hidden
    assigned = choose_plural("# replica assigned|# replicas assigned", row.replicas)
    if hidden and not row.replicas:
        assigned = f"{assigned}, {choose_plural('# topic|# topics', hidden)} not visible"
    on_disk = sum(unregister.count_on_disk(facts.weights).values()) if facts.weights else None
    words = "not read" if on_disk is None else choose_plural("# replica|# replicas", on_disk)
    disks_told = on_disk is not None and not (facts.disks.stale if not facts.stopped else on_disk)
    if facts.stopped and on_disk is not None:
        words = f"{words} when last read; a stopped broker is not read"
    adding = choose_plural("# partition adds it|# partitions add it", facts.adding)
    return [
        EmptyProof(
            "Metadata",
            None if facts.metadata.stale or (hidden and not row.replicas) else not row.replicas,
            assigned,
            facts.metadata,
        ),
        EmptyProof("Log directories", on_disk == 0 if disks_told else None, words, facts.disks),
        EmptyProof(
            "Reassignments", None if facts.reassignments.stale else not facts.adding, adding, facts.reassignments
        ),
    ]


def _judge_empty(proofs: Sequence[EmptyProof]) -> Judged:
    if any(proof.empty is False for proof in proofs):
        return StepState.WAITS, "It is not empty."
    if any(proof.empty is None for proof in proofs):
        return StepState.UNKNOWN, "Not all sources tell."
    return StepState.DONE, "It hosts nothing, and nothing is on its way."


def _judge_stop(facts: BrokerFacts, empty: StepState) -> Judged:
    if facts.metadata.stale:
        return StepState.UNKNOWN, "The metadata is stale."
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
    if facts.word == "gone":
        return StepState.DONE, "The cluster does not know it any more. It registers itself again when it starts."
    if facts.row.fenced is None:
        return StepState.NOT_OFFERED, "The cluster does not tell fenced brokers. Use bin/kafka-cluster.sh unregister."
    if facts.word != "fenced":
        return StepState.WAITS, "It has to be stopped first."
    if facts.row.replicas or facts.adding or facts.hidden:
        return StepState.WAITS, "It has to be empty first."
    return StepState.NEXT, "Kafka lists it as fenced until it is unregistered."

"""Kinds of changes that are lists of items, each done with one request of Kafka.

A kind says how its items are read and sent; everything else (lease, intents, retries, cancel, verification, report) is
the runner's. An app builds a ``ShortKind`` and makes it known with ``make_short_kind_known`` when it is ready.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.plan import compute_digest, hash_artifact
from kafkadash.changes.rights import NeededRight
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, CodedReason
from kafkadash.kafka.api import (
    ClusterMetadata,
    ConfigChange,
    ConfigResource,
    ItemChanged,
    ItemError,
    PartitionMetadata,
    WholeClient,
    name_subjects,
)
from kafkadash.monitoring.models import CollectorKind
from kafkadash.short_runs.state import ItemReading, PlannedItem
from kafkadash.topic_rules.rules import RuledItem

FORMAT = 1
KEPT_LISTS = 8
ROLLBACK = "rollback"
"""``ChangeRequest.origin_word`` of a rollback."""

Items = Sequence[PlannedItem]
DoneItem = tuple[PlannedItem, Mapping[str, Any]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemWords:
    """An item on a page: the value that stands there, and the one that it gets; either may be ''.

    ``notes``: what else there is to know about the latter, a line each.
    """

    before: str
    after: str
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PlannedItems:
    """``left_out``: what of the scope has no item and why."""

    items: Items
    left_out: Sequence[CodedMessage] = ()


@dataclass(frozen=True, slots=True)
class ShortKind:
    """``noun``: singular and plural of an item, as for ``choose_plural``. ``batch``: the most items of one request.

    ``read`` reads items in Kafka (deadline in seconds; raises KafkaFailure; an item that it leaves out could not be
    read). ``send`` sends the requests of items, and its answer names them by subject; a request that is sent twice must
    do the same as once. Both get at most ``batch`` items.

    ``plan`` makes the items of an input, ``find_faults`` returns why some do not fit any more, by subject, ``risk``
    judges them, and ``rights`` are the ACLs that their requests need. These read stored rows of the kinds ``facts``,
    never Kafka. ``title``: of the check by ``find_faults``. ``stale``: the rows of some items are older than others of
    their kind, which makes this check unknown.
    ``words`` describes an item, with the values found before it was sent where these are known. ``start_words``:
    sentences about a start. ``columns``: heads of the columns of the item, of its value now and of the one planned.
    ``obstacle``: why a run has to wait on a cluster, as stored. ``confirm``: the text that a person has to type before
    items are submitted; None where nothing has to be typed. ``approvals_needed``: as of ``ChangeKind``.
    ``approvals_of_items``: the fewest approvals of these items, where some need more than others. ``validate``:
    Kafka says of items what ``send`` would do, and changes nothing; what it refuses makes a queued change stale.
    ``rollback_input``: the input of a change that restores what items had before, from items that are done with the
    values found before each; None where there is no rollback. ``ruled``: what of items the topic rules of the cluster
    judge, where they judge any. ``passing``: stored codes of faults that a step of a change may still end, or cause for
    a time; they count once the facts are from after the steps before.
    """

    name: str
    label: str
    noun: str
    batch: int
    plan: Callable[[Cluster, Mapping[str, Any]], PlannedItems]
    read: Callable[[Cluster, WholeClient, Items, float], Mapping[str, ItemReading]]
    send: Callable[[WholeClient, Items, float], ItemChanged[str]]
    facts: tuple[CollectorKind, ...]
    title: StrEnum
    find_faults: Callable[[Cluster, Items], Mapping[str, CodedReason]]
    risk: Callable[[Cluster, Items], RiskFacts]
    rights: Callable[[Items], Sequence[NeededRight]]
    words: Callable[[PlannedItem, Mapping[str, Any] | None], ItemWords]
    start_words: Callable[[Items], Sequence[str]]
    columns: tuple[str, str, str]
    stale: Callable[[Cluster, Items], CodedMessage | None] = lambda *_: None
    obstacle: Callable[[Cluster], CodedReason | None] = lambda _: None
    confirm: Callable[[Items], str] | None = None
    approvals_needed: int = 1
    approvals_of_items: Callable[[Items], int] | None = None
    validate: Callable[[WholeClient, Items, float], ItemChanged[str]] | None = None
    rollback_input: Callable[[Sequence[DoneItem]], Mapping[str, Any]] | None = None
    ruled: Callable[[Items], Sequence[RuledItem]] | None = None
    passing: frozenset[str] = frozenset()


_kinds: dict[str, ShortKind] = {}


UNCLEAN_APPROVALS = 2
"""Fewest approvals where records may be lost that Kafka has acknowledged: of an unclean election, and of a config with
which Kafka holds one by itself.
"""


def keep_short_kind(kind: ShortKind) -> None:
    _kinds[kind.name] = kind


def short_kind(name: str) -> ShortKind:
    """Raises KeyError for a kind that is none of this runner."""
    return _kinds[name]


def is_short(name: str) -> bool:
    return name in _kinds


def find_partitions(answer: ClusterMetadata, items: Items) -> dict[str, tuple[str, PartitionMetadata] | None]:
    """Return topic id and partition of each item by subject: None where there is none.

    An item whose topic could not be read is left out.
    """
    topics = name_subjects(answer)
    found = {(t.name, p.partition): (t.topic_id, p) for t in topics.values() if t for p in t.partitions}
    return {
        item.subject: found.get((item.content["topic"], item.content["partition"]))
        for item in items
        if item.content["topic"] in topics
    }


def name_answers(answer: ItemChanged[T], subjects: Mapping[T, Sequence[str]]) -> ItemChanged[str]:
    """Return Kafka's answers by the subjects of items; what Kafka answers for as a whole may be several of them."""

    def spread(errors: Mapping[T, ItemError]) -> dict[str, ItemError]:
        return {subject: error for thing, error in errors.items() for subject in subjects[thing]}

    done = frozenset(subject for thing in answer.done for subject in subjects[thing])
    return ItemChanged(done, spread(answer.refused), spread(answer.lost))


def alter_configs(
    make_change: Callable[[PlannedItem], ConfigChange],
    client: WholeClient,
    items: Items,
    deadline: float,
    *,
    validate_only: bool = False,
) -> ItemChanged[str]:
    """Change configs with IncrementalAlterConfigs (44). Kafka answers for a resource as a whole: all of it or none."""
    changes = [make_change(item) for item in items]
    subjects: dict[ConfigResource, list[str]] = {}
    for item, change in zip(items, changes, strict=True):
        subjects.setdefault(change.resource, []).append(item.subject)
    return name_answers(client.alter_configs(changes, deadline=deadline, validate_only=validate_only), subjects)


def doubt_refusals(answer: ItemChanged[str], *codes: int) -> ItemChanged[str]:
    """Return answers in which refusals with these codes count as lost, so that a reading tells.

    For codes by which Kafka also answers a request that repeats an earlier one whose answer was lost.
    """
    doubtful = {subject: error for subject, error in answer.refused.items() if error.code in codes}
    refused = {subject: error for subject, error in answer.refused.items() if subject not in doubtful}
    return ItemChanged(answer.done, refused, {**answer.lost, **doubtful})


def encode_items(kind: str, items: Items) -> bytes:
    """Return the artifact: canonical JSON, equal for equal items in the same order.

    Format 1: ``{"format":1,"items":[[subject, content], …],"kind":…}``.
    """
    listed = [[item.subject, item.content] for item in items]
    value = {"format": FORMAT, "kind": kind, "items": listed}
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@lru_cache(maxsize=KEPT_LISTS)
def read_items(sha256: str) -> tuple[PlannedItem, ...]:
    """Return the items of an artifact, which never changes. Raises DoesNotExist, and ValueError for other bytes."""
    data = zlib.decompress(PlanArtifact.objects.values_list("data", flat=True).get(sha256=sha256))
    if hash_artifact(data) != sha256:
        raise ValueError(f"plan {sha256}: stored bytes have another sha256")
    return tuple(PlannedItem(subject, content) for subject, content in json.loads(data)["items"])


def items_of(change: ChangeRequest) -> tuple[PlannedItem, ...]:
    """Return the items of a request; none where it has no plan yet."""
    return read_items(change.artifact_id) if change.artifact_id else ()


def digest_items(change: ChangeRequest) -> str:
    """Return the digest of items and options; '' without a plan."""
    if change.artifact_id is None:
        return ""
    return compute_digest(change.cluster.kafka_id, change.artifact_id, {"kind": change.kind, **change.options})

"""An alteration of topics, the steps that it takes in a safe order, and their drafts.

Replicas are there before min.insync.replicas rises, and it falls before they go: configs of topics that get fewer
replicas come first, those of the others last. Kafka takes new partitions with the replication factor of partition 0
only (class ReplicationControlManager, createPartitions), so they come after the reassignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.changes.steps import join_steps
from kafkadash.clusters.models import Cluster
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.kind import KIND as CONFIG_EDIT
from kafkadash.configs.stored import OwnerKind
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.models import TopicState
from kafkadash.planning.kafka_json import plan_json
from kafkadash.planning.options import bounds_of
from kafkadash.planning.proposal import (
    EXPLICIT,
    SET_RF,
    PlanInput,
    from_text,
    options_json,
    start_planning,
    store_upload,
)
from kafkadash.planning.proposal import KIND as REASSIGNMENT
from kafkadash.short_runs.kinds import short_kind
from kafkadash.short_runs.plans import create_planned_draft, plan_items, shorten_title
from kafkadash.topic_alter.errors import AlterErrorCode
from kafkadash.topics.growth import KIND as GROWTH


@dataclass(frozen=True, slots=True)
class TopicAlteration:
    """None and empty are no change. ``assignment``: replicas of every partition of the only topic, new ones too.

    ``configs``: values by key, None to remove one. ``throttle``: bytes per second of the reassignment.
    """

    topics: Sequence[TopicState]
    count: int | None = None
    factor: int | None = None
    assignment: Sequence[Sequence[int]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)
    throttle: int = 0

    @property
    def configs_only(self) -> bool:
        return self.count is None and self.factor is None and not self.assignment

    @property
    def title(self) -> str:
        names = [topic.name for topic in self.topics]
        return f"Alter {names[0]}" if len(names) == 1 else f"Alter {choose_plural('# topic|# topics', len(names))}"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """``kind`` and ``wanted`` of the change request; ``title`` says what it does, after the title of the whole."""

    kind: str
    wanted: Mapping[str, Any]
    title: str


def order_steps(wanted: TopicAlteration) -> list[PlannedStep]:
    """Return the steps in their order, without those that would change nothing."""
    shrinking = [topic for topic in wanted.topics if wanted.factor and topic.replication_factor > wanted.factor]
    others = [topic for topic in wanted.topics if topic not in shrinking]
    steps = [_edit_configs(wanted, shrinking), _reassign(wanted), _grow(wanted), _edit_configs(wanted, others)]
    return [step for step in steps if step is not None]


def _edit_configs(wanted: TopicAlteration, topics: Sequence[TopicState]) -> PlannedStep | None:
    if not topics or not wanted.configs:
        return None
    ids = [topic.topic_id for topic in topics]
    owner = {"of": str(OwnerKind.TOPIC), "ids": ids}
    edits = [{**owner, "key": key, "value": value} for key, value in wanted.configs.items()]
    return PlannedStep(CONFIG_EDIT, {"edits": edits}, choose_plural("# config|# configs", len(edits)))


def _reassign(wanted: TopicAlteration) -> PlannedStep | None:
    if wanted.assignment:
        rows = _move_rows(wanted.topics[0], wanted.assignment)
        return PlannedStep(REASSIGNMENT, {"rows": rows}, "assignment") if rows else None
    changing = [
        topic.name
        for topic in wanted.topics
        if wanted.factor and any(len(replicas) != wanted.factor for *_, replicas, _, _ in topic.partitions)
    ]
    title = f"replication factor {wanted.factor}"
    return PlannedStep(REASSIGNMENT, {"topics": changing}, title) if changing else None


def _move_rows(topic: TopicState, assignment: Sequence[Sequence[int]]) -> list[PartitionMove]:
    """Return a move for each partition of the topic whose replicas differ from the typed ones."""
    return [
        PartitionMove(topic.name, topic.topic_id, number, tuple(replicas), tuple(typed))
        for (number, _, _, replicas, _, _), typed in zip(topic.partitions, assignment, strict=False)
        if list(replicas) != list(typed)
    ]


def _grow(wanted: TopicAlteration) -> PlannedStep | None:
    growing = [topic for topic in wanted.topics if wanted.count and topic.partition_count < wanted.count]
    if not growing:
        return None
    content: dict[str, Any] = {"topics": [topic.name for topic in growing], "count": wanted.count}
    if wanted.factor:
        content["factor"] = wanted.factor
    if wanted.assignment:
        content["replicas"] = [list(row) for row in wanted.assignment[growing[0].partition_count :]]
    return PlannedStep(GROWTH, content, f"{wanted.count:,} partitions")


def create_steps(
    cluster: Cluster, user: User, wanted: TopicAlteration, request: HttpRequest | None = None
) -> list[ChangeRequest]:
    """Create a draft with its plan for each step, or none of them; the plan of a reassignment follows by its job.

    Raises ChangeRefused, also where nothing of it would change anything.
    """
    with transaction.atomic():
        steps = order_steps(wanted)
        made = [_create_draft(cluster, user, wanted, step, request) for step in steps]
        drafts = [draft for draft in made if draft is not None]
        if not drafts:
            raise ChangeRefused(AlterErrorCode.ALL_SO_ALREADY)
        if len(drafts) > 1:
            join_steps(drafts)
    return drafts


def _create_draft(
    cluster: Cluster, user: User, wanted: TopicAlteration, step: PlannedStep, request: HttpRequest | None
) -> ChangeRequest | None:
    title = shorten_title(f"{wanted.title}: {step.title}")
    if step.kind == REASSIGNMENT:
        return _create_reassignment(cluster, user, wanted, step, title, request)
    made = plan_items(short_kind(step.kind), cluster, step.wanted)
    if not made.items and all(why.code == ConfigErrorCode.LEFT_OUT_SAME for why in made.left_out):
        return None
    if step.kind == GROWTH and made.left_out:
        raise ChangeRefused(made.left_out[0])
    return create_planned_draft(cluster, user, made, step.wanted, title, request=request)


def _create_reassignment(
    cluster: Cluster, user: User, wanted: TopicAlteration, step: PlannedStep, title: str, request: HttpRequest | None
) -> ChangeRequest:
    rows = step.wanted.get("rows", ())
    brought = from_text(plan_json(rows).decode()) if rows else None
    if brought is not None:
        resized = any(len(row.current) != len(row.target) for row in rows)
        plan_input = PlanInput(EXPLICIT, upload=brought.sha256, change_rf=resized)
    else:
        topics = tuple(step.wanted["topics"])
        plan_input = PlanInput(SET_RF, factor=wanted.factor, topics=topics, internal=False)
    low, high = bounds_of(wanted.throttle)
    options = RunOptions(wanted.throttle, low, high, change_rf=plan_input.resizes)
    draft = services.create_draft(
        cluster,
        REASSIGNMENT,
        user,
        title=title,
        input=pack_dataclass(plan_input),
        options=options_json(options, plan_input),
        request=request,
    )
    if brought is not None:
        store_upload(draft, brought)
    start_planning(draft, user, draft.version)
    return draft

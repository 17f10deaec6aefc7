"""Check of the ACLs that a change needs, from the operations that Kafka grants to kafkadash (KIP-430).

A missing ACL keeps a change from being submitted: nobody is asked to approve what Kafka would refuse.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.errors import RightsCode, RightsTitle
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.monitoring.freshness import freshness_of
from kafkadash.monitoring.groups.names import label_group
from kafkadash.monitoring.models import CollectorKind, CollectorRun, PrincipalRights

CODE = "rights"


@dataclass(frozen=True, slots=True)
class NeededRight:
    """An operation of Kafka's authorizer (AclOperation), such as "Alter": on the cluster, on each of ``topics``, or on
    each of ``groups``.

    ``or_on_topics``: Kafka also takes the right on topics that do not exist yet, of which it tells nothing.
    """

    operation: str
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    or_on_topics: bool = False


def check_rights(cluster: Cluster, needed: Sequence[NeededRight], now: datetime) -> ChangeCheck:
    """Return the check of the rights that a change needs. Two queries.

    Kafka tells a principal without Describe on the cluster nothing about its rights there, and nothing about topics
    and groups that it may not describe: such a right is unknown, not missing. So is one that was read too long ago.
    """
    stored = PrincipalRights.objects.filter(cluster=cluster).first()
    if stored is None:
        return _build_check(unknown=[coded(RightsCode.UNREAD)])
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.VERSIONS).first()
    freshness = replace(freshness_of(run, now), taken_at=stored.taken_at)
    if freshness.stale:
        return _build_check(unknown=[coded(RightsCode.OLD, age=freshness.age_s or 0.0, cluster=cluster.slug)])
    judged = [judged for right in needed for judged in _judge_right(cluster, stored, right)]
    missing = [message for message in judged if message.code in _MISSING]
    return _build_check(missing, [message for message in judged if message.code not in _MISSING])


_MISSING = frozenset({RightsCode.MISSING_ON_CLUSTER, RightsCode.MISSING_ON_TOPICS, RightsCode.MISSING_ON_GROUPS})


def _build_check(missing: Sequence[CodedMessage] = (), unknown: Sequence[CodedMessage] = ()) -> ChangeCheck:
    """A right that is missing stays so until somebody grants it: the check lasts."""
    result = CheckResult.FAILED if missing else CheckResult.UNKNOWN if unknown else CheckResult.PASSED
    told = tuple({(message.code, *message.params.values()): message for message in missing or unknown}.values())
    title = coded(RightsTitle.GRANTED)
    return ChangeCheck(
        CODE,
        CheckSubject.HEALTH,
        result,
        title,
        problems=told,
        problem_count=len(missing),
        lasting=bool(missing),
    )


def _judge_right(cluster: Cluster, stored: PrincipalRights, right: NeededRight) -> Iterator[CodedMessage]:
    """Yield what is missing or unknown of a right; nothing where it is granted."""
    operation = right.operation
    if right.groups:
        lacking, untold = _find_without(stored.on_groups, right.groups, operation)
        if untold:
            yield coded(RightsCode.GROUPS_UNREAD, groups=len(untold), group=label_group(untold[0]))
        if lacking:
            line = _grant_line(cluster, f"--group {shlex.quote(lacking[0])}", operation)
            group = label_group(lacking[0])
            yield coded(RightsCode.MISSING_ON_GROUPS, operation=operation, group=group, groups=len(lacking), line=line)
    elif right.topics:
        lacking, untold = _find_without(stored.on_topics, right.topics, operation)
        if untold:
            yield coded(RightsCode.TOPICS_UNREAD, topics=len(untold), topic=untold[0])
        if lacking:
            line = _grant_line(cluster, f"--topic {shlex.quote(lacking[0])}", operation)
            yield coded(
                RightsCode.MISSING_ON_TOPICS, operation=operation, topic=lacking[0], topics=len(lacking), line=line
            )
    elif not stored.on_cluster:
        yield coded(RightsCode.UNREAD)
    elif operation not in stored.on_cluster:
        if right.or_on_topics:
            yield coded(RightsCode.MAYBE_ON_TOPICS, operation=operation)
        else:
            line = _grant_line(cluster, "--cluster", operation)
            yield coded(RightsCode.MISSING_ON_CLUSTER, operation=operation, line=line)


def _find_without(held: Mapping[str, Any], wanted: Sequence[str], operation: str) -> tuple[list[str], list[str]]:
    """Return the topics or groups that lack an operation, and those of which Kafka told nothing.

    ``held``: as in ``PrincipalRights.on_topics``.
    """
    usual, others = held.get("usual"), held.get("others", {})
    told = set(held["names"]) if "names" in held else None
    lacking, untold = [], []
    for name in wanted:
        granted = others.get(name, usual if told is None or name in told else None)
        if granted is None:
            untold.append(name)
        elif operation not in granted:
            lacking.append(name)
    return lacking, untold


def _grant_line(cluster: Cluster, resource: str, operation: str) -> str:
    """Return the command that grants the operation; the name of a principal is known only where it logs in."""
    server = shlex.quote((cluster.addresses or ["HOST:9092"])[0])
    principal = shlex.quote(f"User:{cluster.sasl_username or 'NAME'}")
    return (
        f"kafka-acls.sh --bootstrap-server {server} --add --allow-principal {principal} {resource} "
        f"--operation {operation}"
    )


def name_subjects(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))

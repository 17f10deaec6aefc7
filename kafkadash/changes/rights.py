"""Check of the ACLs that a change needs, from the operations that Kafka grants to kafkadash (KIP-430).

A missing ACL keeps a change from being submitted: nobody is asked to approve what Kafka would refuse.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.errors import RightsCode, RightsTitle
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.monitoring.models import PrincipalRights

CODE = "rights"


@dataclass(frozen=True, slots=True)
class NeededRight:
    """An operation of Kafka's authorizer (AclOperation), such as "Alter": on the cluster, on each of ``topics``, or on
    groups, whose rights are not read.

    ``or_on_topics``: Kafka also takes the right on topics that do not exist yet, of which it tells nothing.
    """

    operation: str
    topics: tuple[str, ...] = ()
    on_groups: bool = False
    or_on_topics: bool = False


def check_rights(cluster: Cluster, needed: Sequence[NeededRight], now: datetime) -> ChangeCheck:
    """Return the check of the rights that a change needs. One query.

    Kafka tells a principal without Describe on the cluster nothing about its rights there, and nothing about topics
    that it may not describe: such a right is unknown, not missing. So is one that was read too long ago.
    """
    title = coded(RightsTitle.GRANTED)
    old = now - timedelta(seconds=2 * settings.COLLECT_INTERVALS["versions"])
    stored = PrincipalRights.objects.filter(cluster=cluster, taken_at__gte=old).first()
    missing = []
    unknown: dict[str, CodedMessage] = {}
    if stored is None:
        unknown[RightsCode.UNREAD] = coded(RightsCode.UNREAD)
    for right in needed if stored is not None else ():
        assert stored is not None
        if right.on_groups:
            unknown[f"groups {right.operation}"] = coded(RightsCode.GROUPS_UNREAD, operation=right.operation)
        elif right.topics:
            lacking, untold = _find_topics_without(stored, right)
            if untold:
                unknown[RightsCode.TOPICS_UNREAD] = coded(RightsCode.TOPICS_UNREAD, topics=len(untold), topic=untold[0])
            if lacking:
                missing.append(_describe_topics(cluster, right, lacking))
        elif not stored.on_cluster:
            unknown[RightsCode.UNREAD] = coded(RightsCode.UNREAD)
        elif right.operation not in stored.on_cluster and right.or_on_topics:
            unknown[RightsCode.MAYBE_ON_TOPICS] = coded(RightsCode.MAYBE_ON_TOPICS, operation=right.operation)
        elif right.operation not in stored.on_cluster:
            line = _grant_line(cluster, "--cluster", right.operation)
            missing.append(coded(RightsCode.MISSING_ON_CLUSTER, operation=right.operation, line=line))
    if missing:
        return ChangeCheck(
            CODE,
            CheckSubject.HEALTH,
            CheckResult.FAILED,
            title,
            problems=tuple(missing),
            problem_count=len(missing),
            lasting=True,
        )
    if unknown:
        return ChangeCheck(CODE, CheckSubject.HEALTH, CheckResult.UNKNOWN, title, problems=tuple(unknown.values()))
    return ChangeCheck(CODE, CheckSubject.HEALTH, CheckResult.PASSED, title)


def _find_topics_without(stored: PrincipalRights, right: NeededRight) -> tuple[list[str], list[str]]:
    """Return the topics that lack a right, and those of which Kafka told nothing."""
    usual, others = stored.on_topics.get("usual"), stored.on_topics.get("others", {})
    told = set(stored.on_topics["names"]) if "names" in stored.on_topics else None
    lacking, untold = [], []
    for topic in right.topics:
        held = others.get(topic, usual if told is None or topic in told else None)
        if held is None:
            untold.append(topic)
        elif right.operation not in held:
            lacking.append(topic)
    return lacking, untold


def _describe_topics(cluster: Cluster, right: NeededRight, lacking: Sequence[str]) -> CodedMessage:
    return coded(
        RightsCode.MISSING_ON_TOPICS,
        operation=right.operation,
        topic=lacking[0],
        topics=len(lacking),
        line=_grant_line(cluster, f"--topic {shlex.quote(lacking[0])}", right.operation),
    )


def _grant_line(cluster: Cluster, resource: str, operation: str) -> str:
    """Return the command that grants the operation; the name of a principal is known only where it logs in."""
    server = shlex.quote((cluster.addresses or ["HOST:9092"])[0])
    principal = shlex.quote(f"User:{cluster.sasl_username or 'NAME'}")
    return (
        f"kafka-acls.sh --bootstrap-server {server} --add --allow-principal {principal} {resource} "
        f"--operation {operation}"
    )


def name_topics(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(topics)))

"""Check of the ACLs that a change needs, from the operations that Kafka grants to kafkadash (KIP-430).

A missing ACL keeps a change from being submitted: nobody is asked to approve what Kafka would refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
    """

    operation: str
    topics: tuple[str, ...] = ()
    on_groups: bool = False


def check_rights(cluster: Cluster, needed: Sequence[NeededRight]) -> ChangeCheck:
    """Return the check of the rights that a change needs. One query.

    Kafka tells a principal without Describe on the cluster nothing about its rights there, and nothing about topics
    that it may not describe: such a right is unknown, not missing.
    """
    title = coded(RightsTitle.GRANTED)
    stored = PrincipalRights.objects.filter(cluster=cluster).first()
    missing = []
    unknown = {RightsCode.UNREAD: coded(RightsCode.UNREAD)} if stored is None else {}
    for right in needed if stored is not None else ():
        assert stored is not None
        if right.on_groups:
            unknown[RightsCode.GROUPS_UNREAD] = coded(RightsCode.GROUPS_UNREAD, operation=right.operation)
        elif right.topics:
            lacking = _find_topics_without(stored, right)
            if lacking:
                missing.append(_describe_topics(cluster, right, lacking))
        elif not stored.on_cluster:
            unknown[RightsCode.UNREAD] = coded(RightsCode.UNREAD)
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


def _find_topics_without(stored: PrincipalRights, right: NeededRight) -> list[str]:
    usual, others = stored.on_topics.get("usual"), stored.on_topics.get("others", {})
    found = []
    for topic in right.topics:
        held = others.get(topic, usual)
        if held is not None and right.operation not in held:
            found.append(topic)
    return found


def _describe_topics(cluster: Cluster, right: NeededRight, lacking: Sequence[str]) -> CodedMessage:
    return coded(
        RightsCode.MISSING_ON_TOPICS,
        operation=right.operation,
        topic=lacking[0],
        topics=len(lacking),
        line=_grant_line(cluster, f"--topic {lacking[0]}", right.operation),
    )


def _grant_line(cluster: Cluster, resource: str, operation: str) -> str:
    """Return the command that grants the operation; the name of a principal is known only where it logs in."""
    principal = cluster.sasl_username or "NAME"
    return f"kafka-acls.sh --add --allow-principal User:{principal} {resource} --operation {operation}"


def name_topics(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(topics)))

"""ACLs that a change needs: what Kafka granted as stored, and what keeps a change from being submitted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.checks import ChangeCheck, CheckResult
from kafkadash.changes.errors import ChangeRefused, RightsCode
from kafkadash.changes.rights import NeededRight, check_rights
from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import PrincipalRights
from kafkadash.topics.growth import KIND as GROWTH
from tests.execution.worlds import model_of
from tests.factories import ALL_RIGHTS, NOW, watched
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld

pytestmark = pytest.mark.django_db
NEEDED = (NeededRight("Alter"), NeededRight("Delete", ("clicks", "orders")))


def grant(cluster: Cluster, on_cluster: list[str] | None, **on_topics: Any) -> ChangeCheck:
    columns = {"on_cluster": on_cluster, "on_topics": {"usual": ALL_RIGHTS, "others": {}} | on_topics}
    PrincipalRights.objects.filter(cluster=cluster).update(**columns)
    return check_rights(cluster, NEEDED, NOW)


def test_check__all_is_granted__passes() -> None:
    assert grant(watched("demo"), ["Alter", "Describe"]).result is CheckResult.PASSED


def test_check__right_is_missing_on_some_topics__names_the_line_that_grants_it() -> None:
    cluster = watched("demo")
    Cluster.objects.filter(pk=cluster.pk).update(sasl_username="dash")
    cluster.refresh_from_db()
    check = grant(cluster, ["Describe"], others={"orders": ["Describe"], "other": []})
    assert (check.result, check.lasting) == (CheckResult.FAILED, True)
    on_cluster, on_topic = check.problems
    assert (on_cluster.code, on_topic.code) == (RightsCode.MISSING_ON_CLUSTER, RightsCode.MISSING_ON_TOPICS)
    grants = "kafka-acls.sh --bootstrap-server kafka-1.internal:9092 --add --allow-principal User:dash"
    assert on_cluster.params["line"] == f"{grants} --cluster --operation Alter"
    assert (on_topic.params["topics"], on_topic.params["line"]) == (1, f"{grants} --topic orders --operation Delete")


@pytest.mark.parametrize("on_cluster", [None, []], ids=["not told", "without Describe"])
def test_check__kafka_does_not_tell__is_unknown_and_not_missing(on_cluster: list[str] | None) -> None:
    check = grant(watched("demo"), on_cluster, usual=None)
    assert (check.result, check.problems[0].code) == (CheckResult.UNKNOWN, RightsCode.UNREAD)


def test_check__never_read__is_unknown() -> None:
    cluster = watched("demo")
    PrincipalRights.objects.all().delete()
    assert check_rights(cluster, NEEDED, NOW).result is CheckResult.UNKNOWN


def test_check__read_too_long_ago__is_unknown() -> None:
    check = check_rights(watched("demo"), NEEDED, NOW + timedelta(hours=1))
    assert (check.result, [problem.code for problem in check.problems]) == (CheckResult.UNKNOWN, [RightsCode.OLD])


def test_check__topic_was_not_told_where_topics_differ__is_unknown() -> None:
    names = ["clicks", "other"]
    check = grant(watched("demo"), ALL_RIGHTS, others={"other": ["Describe"]}, names=names)
    assert [(problem.code, problem.params["topic"]) for problem in check.problems] == [
        (RightsCode.TOPICS_UNREAD, "orders")
    ]


def test_check__rights_on_groups__are_granted_missing_or_not_known() -> None:
    cluster = watched("demo")
    held = {"usual": ["Describe", "Delete"], "others": {"billing": ["Describe"]}, "names": ["billing", "orders-app"]}
    PrincipalRights.objects.filter(cluster=cluster).update(on_groups=held)
    assert check_rights(cluster, [NeededRight("Delete", groups=("orders-app",))], NOW).result is CheckResult.PASSED
    lacking = check_rights(cluster, [NeededRight("Delete", groups=("billing", "orders-app"))], NOW)
    [problem] = lacking.problems
    assert (lacking.result, problem.code) == (CheckResult.FAILED, RightsCode.MISSING_ON_GROUPS)
    assert problem.params["line"].endswith(" --group billing --operation Delete")
    unknown = check_rights(cluster, [NeededRight("Delete", groups=("new",))], NOW)
    assert [each.code for each in unknown.problems] == [RightsCode.GROUPS_UNREAD]


def test_check__right_to_create__may_be_held_on_topics() -> None:
    cluster = watched("demo")
    grant(cluster, ["Describe"])
    check = check_rights(cluster, [NeededRight("Create", or_on_topics=True)], NOW)
    assert (check.result, check.problems[0].code) == (CheckResult.UNKNOWN, RightsCode.MAYBE_ON_TOPICS)


def test_submit__right_is_missing__asks_nobody(operator: User) -> None:
    world = ShortWorld(stored(), model_of(stored("other")), operator, GROWTH)
    draft = world.draft({"topic": "clicks", "count": 4})
    grant(world.cluster, ALL_RIGHTS, others={"clicks": ["Describe"]}, names=["clicks", "orders"])
    with pytest.raises(ChangeRefused) as refused:
        services.submit(draft, operator, why="It starts.", version=draft.version)
    assert refused.value.message.params["first"].code == RightsCode.MISSING_ON_TOPICS

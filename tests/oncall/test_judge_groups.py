"""Findings of consumer groups, from the rows that the collector leaves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from kafkadash.clusters.models import Cluster
from kafkadash.domain.finding_kinds import FindingKind, Source
from kafkadash.domain.judges.groups import MORE, MOST_NAMED, MOST_STOPPED
from kafkadash.domain.lag import LagState
from kafkadash.observe.group_names import key_of
from kafkadash.observe.models import CollectorRun, GroupState
from kafkadash.oncall.facts import facts_of
from kafkadash.oncall.models import Finding
from kafkadash.oncall.next_steps import next_step
from kafkadash.oncall.services import judge
from tests.factories import NOW, watched

pytestmark = pytest.mark.django_db

READ_AT = NOW - timedelta(seconds=3)


@pytest.fixture
def demo() -> Cluster:
    """A well cluster whose groups are collected every 30 s."""
    cluster = watched("demo")
    CollectorRun.objects.update_or_create(
        cluster=cluster, kind=Source.GROUPS.value, defaults={"succeeded_at": READ_AT, "interval_s": 30}
    )
    return cluster


def group_row(cluster: Cluster, name: str, worst: LagState = LagState.STALL, **more: Any) -> GroupState:
    """A group with one bad partition out of two, as it was read 3 s ago."""
    values: dict[str, Any] = {
        "state": "Stable",
        "verdict": "err" if worst.failing else worst.value,
        "worst": worst.value,
        "rank": 0,
        "verdict_since": NOW - timedelta(minutes=11),
        "partitions": 2,
        "members": 1,
        "counts": {worst.value: 1, "ok": 1},
        "worst_topic": "orders.paid",
        "worst_partition": 14,
        "worst_lag": 90,
        "lag": 100,
        "taken_at": READ_AT,
        "first_seen_at": NOW - timedelta(days=1),
        **more,
    }
    return GroupState(cluster=cluster, key=key_of(name), name=name, **values)


def look(cluster: Cluster) -> set[tuple[str, str]]:
    """A further reading of all groups but the old ones; (kind, scope) of what is open then."""
    later = timedelta(seconds=1)
    GroupState.objects.filter(cluster=cluster, taken_at__gte=NOW - timedelta(seconds=60)).update(
        taken_at=F("taken_at") + later
    )
    cluster.collector_runs.update(succeeded_at=F("succeeded_at") + later)
    judge(cluster.pk, NOW)
    return {(f.kind, f.scope) for f in Finding.objects.filter(closed_at=None, opened_at__isnull=False)}


def test_it_opens_at_the_second_reading_and_closes_when_it_reads_again(demo: Cluster) -> None:
    group_row(demo, "invoice-writer").save()
    assert look(demo) == set()
    assert look(demo) == {("consumer-lag", key_of("invoice-writer"))}
    opened = Finding.objects.get()
    assert (
        opened.sentence == "Group invoice-writer stalls on orders.paid-14: nothing is committed while 100 records wait."
    )
    assert opened.detail == "1 of 2 partitions · 90 wait in orders.paid-14 · 1 member in the group"
    assert (opened.state, opened.since) == ("warning", NOW - timedelta(minutes=11))

    GroupState.objects.update(worst="ok", verdict="ok", counts={"ok": 2})
    assert look(demo) == set()
    closed = Finding.objects.get()
    assert (closed.public_id, closed.closed_at is not None) == (opened.public_id, True)


def test_a_group_that_is_gone_or_was_deleted_closes_it(demo: Cluster) -> None:
    group_row(demo, "invoice-writer").save()
    look(demo)
    assert look(demo)
    GroupState.objects.update(gone_at=NOW)
    assert look(demo) == set()


def test_a_group_that_was_not_read_lately_keeps_its_finding(demo: Cluster) -> None:
    group_row(demo, "invoice-writer").save()
    look(demo)
    opened = look(demo)
    GroupState.objects.update(taken_at=NOW - timedelta(seconds=61), worst="ok", verdict="ok")
    assert look(demo) == opened


def test_a_group_that_cannot_be_judged_now_keeps_its_finding(demo: Cluster) -> None:
    """Its samples began anew, or one leader is away: that it reads again is not told."""
    group_row(demo, "invoice-writer").save()
    look(demo)
    opened = look(demo)
    public_id = Finding.objects.get().public_id
    GroupState.objects.update(worst="unknown", verdict="unknown", counts={"unknown": 2}, in_doubt=2)
    assert look(demo) == opened
    GroupState.objects.update(worst="ok", verdict="ok", counts={"unknown": 1, "ok": 1}, in_doubt=1)
    assert look(demo) == opened
    GroupState.objects.update(worst="stall", verdict="err", in_doubt=0)
    assert look(demo) == opened
    assert Finding.objects.get().public_id == public_id
    GroupState.objects.update(worst="ok", verdict="ok", counts={"unknown": 1, "ok": 1}, in_doubt=0, lag_unknown=1)
    assert look(demo) == set(), "what never waited hides nothing"


def test_the_sum_of_the_others_stays_while_one_of_them_cannot_be_judged(demo: Cluster) -> None:
    GroupState.objects.bulk_create(group_row(demo, f"dead-{n}", LagState.STOP, members=0) for n in range(40))
    look(demo)
    assert ("consumer-lag", MORE) in look(demo)
    GroupState.objects.update(worst="unknown", verdict="unknown", in_doubt=1)
    opened = look(demo)
    assert len(opened) == MOST_STOPPED + 1
    GroupState.objects.update(in_doubt=0)
    assert look(demo) == set()


def test_lost_records_and_a_group_that_was_never_judged(demo: Cluster) -> None:
    group_row(demo, "reader", LagState.OK, lost=7).save()
    new = group_row(demo, "new", LagState.UNKNOWN, taken_at=NOW - timedelta(hours=1), worst_partition=None)
    new.worst = new.verdict = new.worst_topic = ""
    new.save()
    look(demo)
    assert look(demo) == {("consumer-data-loss", key_of("reader"))}


def asked_for_facts(cluster: Cluster) -> int:
    with CaptureQueriesContext(connection) as queries:
        facts = facts_of(cluster, NOW)
    assert len(facts.groups_in_trouble) == GroupState.objects.count()
    return len(queries)


def test_thousands_are_few_findings_and_no_more_queries(demo: Cluster) -> None:
    of_none = asked_for_facts(demo)
    GroupState.objects.bulk_create(
        group_row(demo, f"dead-{n}", LagState.STOP, members=0, lag=n, worst_lag=n) for n in range(1, 3001)
    )
    assert asked_for_facts(demo) == of_none
    look(demo)
    opened = look(demo)
    assert len(opened) == MOST_STOPPED + 1 <= MOST_NAMED
    assert ("consumer-lag", MORE) in opened
    assert look(demo) == opened


def test_from_there_one_goes_to_the_group(demo: Cluster) -> None:
    group_row(demo, "a/b").save()
    look(demo)
    look(demo)
    finding = Finding.objects.get()
    step = next_step(demo, FindingKind(finding.kind), finding.scope)
    assert step is not None
    assert step.url == f"/clusters/demo/groups/~{key_of('a/b')}/"
    still = next_step(demo, FindingKind.PIPELINE_STILL, "")
    assert still is not None
    assert still.url == "/pipeline/"
    the_sum = next_step(demo, FindingKind.CONSUMER_LAG, MORE)
    assert the_sum is not None
    assert the_sum.url == "/clusters/demo/groups/"

"""The ledger of a run: what it set, what stood there before, and what is still owed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.domain.throttles import FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import Execution, ThrottleEntry
from kafkadash.reassign.run.ledger_page import summary_of
from tests.changes.parcels import propose
from tests.factories import NOW, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
pytestmark = pytest.mark.usefixtures("parcels")


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


@pytest.fixture
def change(demo: Cluster, operator: User) -> ChangeRequest:
    return propose(demo, operator, State.EXECUTING)


@pytest.fixture
def run(change: ChangeRequest) -> Execution:
    return Execution.objects.create(
        request=change,
        cluster=change.cluster,
        active=True,
        throttle=20_000_000,
        per_broker=5,
        per_cluster=50,
        throttles_read_at=NOW - timedelta(seconds=4),
    )


def a_rate(run: Execution, broker: int, key: str = LEADER_RATE, **fields: Any) -> ThrottleEntry:
    return ThrottleEntry.objects.create(
        execution=run,
        resource="broker",
        name=str(broker),
        key=key,
        **{"value": "20000000", "state": "set", "changed_at": NOW - timedelta(minutes=2), **fields},
    )


def a_list(run: Execution, topic: str, pairs: dict[str, str], **fields: Any) -> ThrottleEntry:
    return ThrottleEntry.objects.create(
        execution=run,
        resource="topic",
        name=topic,
        key=LEADER_LIST,
        pairs=pairs,
        **{"state": "set", "changed_at": NOW - timedelta(minutes=2), **fields},
    )


def ledger(get_page: GetPage, run: Execution, query: str = "") -> Page:
    return get_page(f"/changes/{run.request_id}/run/ledger/{query}")


def test_before_anything_is_set(get_page: GetPage, run: Execution) -> None:
    page = ledger(get_page, run)
    assert page.title == f"#{run.request_id} has set no throttle yet."
    assert "The ledger is empty." in page.text


def test_a_change_without_a_run_leads_to_its_page(
    change: ChangeRequest, operator: User, client_of: Callable[[User], Any]
) -> None:
    answer = client_of(operator).get(f"/changes/{change.pk}/run/ledger/")
    assert (answer.status_code, answer["location"]) == (302, f"/changes/{change.pk}/")


def test_ours_with_what_stood_there_before(get_page: GetPage, run: Execution) -> None:
    number = run.request_id
    plain = a_rate(run, 10)
    over = a_rate(run, 9, previous="3000000", previous_source="broker")
    default = a_rate(run, 1, FOLLOWER_RATE, previous="4000000", previous_source="cluster_default")
    listed = a_list(
        run,
        "orders",
        {"0:1": "set", "0:2": "set", "1:3": "set"},
        already=["1:3"],
        previous="1:3,7:7",
        previous_source="topic",
    )
    page = ledger(get_page, run)
    assert page.title == f"#{number} holds 3 rates and 2 entries."
    assert "Ours: 3 rates, 2 entries. Not ours: 0" in page.text
    assert "data 4 s old" in page.text
    assert page.words(f"entry-{plain.pk}") == (
        "broker 10 sending as leader leader.replication.throttled.rate 20.0 MB/s 20,000,000 bytes/s nothing set"
        " 02:01:04 It is in force, as far as was read."
    )
    assert "3.0 MB/s 3,000,000 bytes/s from broker set" in page.words(f"entry-{over.pk}")
    assert "4.0 MB/s 4,000,000 bytes/s from cluster default set" in page.words(f"entry-{default.pk}")
    assert page.words(f"entry-{listed.pk}") == (
        "topic orders replicas throttled as leaders leader.replication.throttled.replicas 2 replicas of 1 partition"
        ", 1 replica stood there before, and stays 2 replicas of 2 partitions from topic set"
        " 02:01:04 It is in force, as far as was read."
    )
    ids = [f"entry-{row.pk}" for row in (default, over, plain, listed)]
    assert page.order_of(*ids) == ids


def test_what_is_not_ours_and_what_is_owed(get_page: GetPage, run: Execution) -> None:
    theirs = a_rate(run, 4)
    owed = a_rate(run, 5, state="obliged", words="Broker 5 is away.")
    gone = a_rate(run, 6, state="cleared", words="Removed.")
    same = a_rate(run, 7, previous="20000000", previous_source="broker")
    run.foreign = [
        {
            "resource": "broker",
            "name": "4",
            "key": LEADER_RATE,
            "value": "5000000",
            "ours": "20000000",
            "at": (NOW - timedelta(seconds=30)).isoformat(),
        }
    ]
    run.save()
    page = ledger(get_page, run)
    assert page.title == f"1 throttle of #{run.request_id} is still to be cleared."
    assert "Ours: 1 rate, 0 entries. Not ours: 1" in page.text
    assert page.words(f"entry-{theirs.pk}").endswith(
        "not ours now 02:01:04 5.0 MB/s, 5,000,000 bytes/s, set by somebody else, stands there since 02:02:34"
        " or before. It is not adjusted until somebody decides."
    )
    assert page.words(f"entry-{owed.pk}").endswith("to be cleared later 02:01:04 Broker 5 is away.")
    assert page.words(f"entry-{gone.pk}").endswith("cleared 02:01:04 Removed.")
    assert page.has(f"entry-{same.pk}")
    assert summary_of(run).rates == 1, "what stood there just the same is not ours"
    for choice, rows in {
        "foreign": {theirs},
        "obliged": {owed},
        "cleared": {gone},
        "open": {theirs, owed, same},
    }.items():
        shown = ledger(get_page, run, f"?s={choice}")
        assert {row for row in (theirs, owed, gone, same) if shown.has(f"entry-{row.pk}")} == rows, choice
    assert "There is no choice of entries “mine”" in ledger(get_page, run, "?s=mine").text
    assert "No entry is like that." in ledger(get_page, run, "?q=nothing").text


def test_all_is_as_before(get_page: GetPage, run: Execution) -> None:
    a_rate(run, 6, state="cleared", words="Set back to 5,000,000 bytes/s.")
    run.ended_at, run.active = NOW, False
    run.save()
    page = ledger(get_page, run)
    assert page.title == f"Nothing that #{run.request_id} set is in force any more."
    assert "Ours: 0 rates, 0 entries. Not ours: 0" in page.text
    assert "data 4 s old" not in page.text, "what is over is not read any more"

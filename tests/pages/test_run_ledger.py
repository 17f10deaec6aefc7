"""The ledger of a run: what it set, what stood there before, and what is still owed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.messages import PlainReason, reason_columns, reason_text
from kafkadash.execution.engine.reasons import LedgerReasonCode, RateRestored
from kafkadash.execution.models import Execution, ThrottleEntry
from kafkadash.execution.pages.throttle_ledger import summary_of
from kafkadash.kafka.throttles import FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from tests.changes.parcels import propose
from tests.execution.ledger_run import broker_away
from tests.factories import NOW
from tests.pages.conftest import Page, figures_of, told_in

GetPage = Callable[[str], Page]
pytestmark = pytest.mark.usefixtures("parcels")


@pytest.fixture
def change(demo: Cluster, operator: User) -> ChangeRequest:
    return propose(demo, operator, ChangeState.EXECUTING)


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
    assert f"#{run.request_id}" in page.title
    assert page.find("[data-empty=none]")


def test_a_change_without_a_run_leads_to_its_page(
    change: ChangeRequest, operator: User, client_of: Callable[[User], Any]
) -> None:
    answer = client_of(operator).get(f"/changes/{change.pk}/run/ledger/")
    assert (answer.status_code, answer["location"]) == (302, f"/changes/{change.pk}/")


def test_ours_with_what_stood_there_before(get_page: GetPage, run: Execution) -> None:
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
    assert figures_of(page.title) == ["3", "2"]
    assert page.figures("#ledger .panel-foot") == ["3", "2", "0"]
    assert page.figures("#ledger .panel-head .freshness") == ["4 s"]
    cells = page.cells(f"entry-{plain.pk}")
    assert cells[0] == "broker 10"
    assert page.texts(f"#entry-{plain.pk} .config-key") == [plain.key]
    assert [figures_of(cell) for cell in cells[2:4]] == [["20.0 MB/s", "20,000,000"], []]
    assert cells[5] == "02:01:04"
    assert figures_of(page.cells(f"entry-{over.pk}")[3]) == ["3.0 MB/s", "3,000,000"]
    assert page.cells(f"entry-{over.pk}")[3].endswith("broker")
    assert figures_of(page.cells(f"entry-{default.pk}")[3]) == ["4.0 MB/s", "4,000,000"]
    assert page.cells(f"entry-{default.pk}")[3].endswith("cluster default")
    cells = page.cells(f"entry-{listed.pk}")
    assert cells[0] == "topic orders"
    assert [figures_of(cell) for cell in cells[2:4]] == [["2", "1", "1"], ["2", "2"]]
    assert page.states("#ledger .status-mark") == ["ok"] * 4
    ids = [f"entry-{row.pk}" for row in (default, over, plain, listed)]
    assert page.order_of(*ids) == ids


def test_what_is_not_ours_and_what_is_owed(get_page: GetPage, run: Execution) -> None:
    theirs = a_rate(run, 4)
    owed = a_rate(run, 5, state="obliged", **reason_columns(broker_away(5)))
    gone = a_rate(run, 6, state="cleared", **reason_columns(PlainReason(LedgerReasonCode.THROTTLE_CLEARED)))
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
    assert figures_of(page.title) == ["1"]
    assert page.figures("#ledger .panel-foot") == ["1", "0", "1"]
    cells = page.cells(f"entry-{theirs.pk}")
    assert page.states(f"#entry-{theirs.pk} .status-mark") == ["warning"]
    assert (cells[5], figures_of(cells[6])) == ("02:01:04", ["5.0 MB/s", "5,000,000", "02:02:34"])
    assert page.states(f"#entry-{owed.pk} .status-mark") == ["warning"]
    assert page.cells(f"entry-{owed.pk}")[5:] == ["02:01:04", reason_text(broker_away(5))]
    assert page.states(f"#entry-{gone.pk} .status-mark") == ["ok"]
    assert page.cells(f"entry-{gone.pk}")[5:] == [
        "02:01:04",
        reason_text(PlainReason(LedgerReasonCode.THROTTLE_CLEARED)),
    ]
    assert page.has(f"entry-{same.pk}")
    assert summary_of(run).rates == 1  # what stood there just the same is not ours
    for choice, rows in {
        "foreign": {theirs},
        "obliged": {owed},
        "cleared": {gone},
        "open": {theirs, owed, same},
    }.items():
        shown = ledger(get_page, run, f"?s={choice}")
        assert {row for row in (theirs, owed, gone, same) if shown.has(f"entry-{row.pk}")} == rows, choice
    unknown = ledger(get_page, run, "?s=mine").texts(".notice")
    assert [told_in(said, RequestErrorCode.CHOICE_UNKNOWN) for said in unknown] == [True]
    assert ledger(get_page, run, "?q=nothing").find("[data-empty=filtered]")


def test_all_is_as_before(get_page: GetPage, run: Execution) -> None:
    row = a_rate(run, 6, state="cleared", **reason_columns(RateRestored("5000000")))
    run.ended_at, run.active = NOW, False
    run.save()
    page = ledger(get_page, run)
    assert not figures_of(page.title)
    assert page.cells(f"entry-{row.pk}")[6] == reason_text(RateRestored("5000000"))
    assert page.figures("#ledger .panel-foot") == ["0", "0", "0"]
    assert not page.find("#ledger .panel-head .freshness")  # what is over is not read any more

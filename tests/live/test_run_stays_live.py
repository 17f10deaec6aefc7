"""The page of a run in the browser: what a step stored is there within a second, what is typed stays; every state."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.transitions import announce_changes
from kafkadash.clusters.models import Cluster
from kafkadash.core.events import changed
from kafkadash.core.messages import PlainReason, pack_reasons, reason_columns, reason_text
from kafkadash.execution.engine.reasons import BrokerAway, NoTraceOfIt, RunReasonCode, UnderMinIsrBrake
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.live_keys import run_keys
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.kafka.throttles import LEADER_LIST, LEADER_RATE
from tests.e2e.visitor import Visitor
from tests.execution.ledger_run import broker_away
from tests.execution.stored_runs import MB, figures, progressed, requested, row_now, running
from tests.live.conftest import Server
from tests.live.test_pages_stay_live import opened

WITHIN_S = 1.0
SEEN_MS = 15_000  # on a machine that runs other tests meanwhile
OTHER = {"resource": "broker", "name": "4", "key": "leader.replication.throttled.rate", "value": "10", "ours": "60"}
STATES = (
    ChangeState.QUEUED,
    ChangeState.EXECUTING,
    ChangeState.PAUSED,
    ChangeState.CANCELLING,
    ChangeState.VERIFYING,
    ChangeState.DONE,
    ChangeState.CANCELLED,
    ChangeState.FAILED,
)


@pytest.fixture
def acting(
    chrome: BrowserContext, server: Server, operator: User, client_of: Callable[[User], Client]
) -> BrowserContext:
    """The browser of an operator."""
    cookie: Any = client_of(operator).cookies["sessionid"].value
    chrome.clear_cookies()
    chrome.add_cookies([{"name": "sessionid", "value": cookie, "url": f"http://127.0.0.1:{server.port}"}])
    return chrome


def stepped(run: Execution, percent: float, **fields: Any) -> None:
    """What the executor does at the end of a step."""
    now = timezone.now()
    Execution.objects.filter(pk=run.pk).update(looked_at=now, progress_at=now, **fields)
    move = Move.objects.filter(execution=run).earliest("pk")
    progressed(run, figures([row_now(move, percent, now)], now, percent=percent))
    changed.send(sender=Execution, keys=run_keys(run.request_id))


def seconds_until_seen(page: Page, run: Execution, percent: float, rate: int) -> float:
    """From the end of the step until its figures, its throttle (MB/s) and its brake are in the page, in all panels."""
    number, words, brake = run.request_id, f"{percent} %", UnderMinIsrBrake(f"orders-{rate}", 1)
    stepped(run, percent, throttle=rate * MB, **reason_columns(brake, "brake"))
    began = time.monotonic()
    expect(page.locator(f"#run-{number} .big-figure b")).to_have_text(words, timeout=SEEN_MS)
    expect(page.locator(f"#run-figures-{number}")).to_contain_text(words, timeout=SEEN_MS)
    expect(page.locator(f"#moves-{number} tbody tr").nth(1)).to_contain_text(words, timeout=SEEN_MS)
    expect(page.locator(f"#run-throttle-{number}")).to_contain_text(f"In force: {rate} MB/s", timeout=SEEN_MS)
    expect(page.locator(f"#run-notices-{number}")).to_contain_text(reason_text(brake), timeout=SEEN_MS)
    return time.monotonic() - began


def test_step__is_seen_within_a_second_and_what_is_typed_stays(
    acting: BrowserContext, server: Server, cluster: Cluster, operator: User
) -> None:
    change = requested(cluster, operator)
    run = running(change, {RowState.MOVING: 1, RowState.PENDING: 3}, now=timezone.now())
    ThrottleEntry.objects.create(execution=run, resource="broker", name="4", key=OTHER["key"], value="1", state="set")
    page: Page = opened(acting, server, f"/changes/{change.pk}/run/")
    page.locator("#rate").fill("75")
    page.locator("#throttle-reason").fill("half a rea")

    # The best of three: other tests share the machine.
    assert min(seconds_until_seen(page, run, *step) for step in ((61.6, 70), (61.7, 71), (61.8, 72))) < WITHIN_S
    expect(page.locator("#rate")).to_have_value("75")
    expect(page.locator("#throttle-reason")).to_have_value("half a rea")

    ChangeRequest.objects.filter(pk=change.pk).update(state=ChangeState.PAUSED)
    announce_changes(change.pk)
    expect(page.locator("#change-bar")).to_contain_text("Paused")
    expect(page.locator("#change-bar")).to_contain_text("Resume")
    expect(page.locator("#rate")).to_have_value("75")


def test_every_state__has_nothing_wrong_in_both_themes_and_on_a_phone(
    acting: BrowserContext, server: Server, operator: User, tmp_path: Path
) -> None:
    now = timezone.now()
    visitor = Visitor(acting.new_page(), tmp_path)
    at = f"http://127.0.0.1:{server.port}"
    states = {RowState.MOVING: 3, RowState.UNKNOWN: 1, RowState.WAITING: 2, RowState.PENDING: 9, RowState.DONE: 4}
    ended = {RowState.DONE: 4, RowState.SKIPPED: 1, RowState.FAILED: 1, RowState.CANCELLED: 1}
    for state in STATES:
        cluster = Cluster.objects.create(name=state.value, slug=state.value, bootstrap_servers="127.0.0.1:1")
        change = requested(cluster, operator, state, title="Drain broker 3 " + "in the rack at the far end " * 3)
        over = state in (ChangeState.DONE, ChangeState.CANCELLED, ChangeState.FAILED)
        queued = state == ChangeState.QUEUED
        run = running(
            change,
            {} if queued else ended if over else states,
            now=now + timedelta(seconds=30),
            stuck_rows=2,
            topic="payments.ledger-by-account.and-a-long-name.v2",
            ended_at=now if over else None,
            **reason_columns(BrokerAway(6) if queued else None, "blocked"),
            foreign=[] if over else [OTHER],
            held=pack_reasons([PlainReason(RunReasonCode.PAUSED)] if state == ChangeState.PAUSED else []),
        )
        Move.objects.filter(execution=run, state=RowState.UNKNOWN).update(asks=True, **reason_columns(NoTraceOfIt(3)))
        visitor.visit(f"{at}/changes/{change.pk}/run/", state.value)
        if state == ChangeState.EXECUTING:
            move = Move.objects.filter(execution=run).earliest("pk")
            visitor.visit(f"{at}/changes/{change.pk}/run/row/?move={move.pk}", "row")
            visitor.visit(f"{at}/changes/{change.pk}/run/?s=stuck", "stuck")
            for place in (("broker", "1", LEADER_RATE), ("topic", "payments.ledger-by-account.v2", LEADER_LIST)):
                named = dict(zip(("resource", "name", "key"), place, strict=True))
                ThrottleEntry.objects.create(execution=run, state="obliged", **reason_columns(broker_away(1)), **named)
            visitor.visit(f"{at}/changes/{change.pk}/run/ledger/", "ledger")
    assert not visitor.wrong, "\n".join(visitor.wrong)

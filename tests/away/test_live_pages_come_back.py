"""An open page while PostgreSQL is away: its figures are called not fresh, and it goes on by itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import BrowserContext, expect

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import CollectorRun, Kind
from tests.away.conftest import Away
from tests.live.conftest import Server, Socket
from tests.waiting import wait_until

BACK_MS = 20_000


def read_lately(cluster: Cluster) -> None:
    taken = timezone.now() - timedelta(seconds=1)
    for kind in (Kind.METADATA, Kind.REASSIGNMENTS):
        CollectorRun.objects.update_or_create(
            cluster=cluster, kind=kind, defaults={"interval_s": 2, "succeeded_at": taken}
        )


def test_a_socket_that_is_opened_meanwhile__is_closed_and_served_when_it_is_back(
    away: Away, server: Server, watch: Callable[..., Socket], cluster: Cluster, viewer: User
) -> None:
    cookie = watch("status:demo", user=viewer).connection.request.headers["Cookie"]  # type: ignore[union-attr]
    away.stop()
    assert watch("status:demo", cookie=cookie).closed_with() == 1011

    away.start()

    def served() -> bool:
        socket = watch("status:demo", cookie=cookie)
        return "status-demo" in str(socket.until(lambda message: "heartbeat" not in message)["content"])

    def served_or_closed() -> bool:
        try:
            return served()
        except Exception:  # noqa: BLE001  closed once more
            return False

    wait_until(served_or_closed, "a socket is served again", 10)


@pytest.mark.e2e
def test_an_open_page__says_that_it_is_not_fresh_and_is_live_again(
    away: Away, server: Server, cluster: Cluster, chrome: BrowserContext
) -> None:
    read_lately(cluster)
    page = chrome.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/clusters/demo/reassignments/")
    expect(page.locator("#connection")).to_have_text("Live")
    page.evaluate("window.never = 'reloaded'")
    connection.close()
    away.kill()

    expect(page.locator("#connection")).to_have_text("Not fresh: database away", timeout=BACK_MS)
    expect(page.locator("#connection")).to_have_attribute("data-state", "unknown")
    expect(page.locator("#moves-demo")).to_have_attribute("data-stale", "")
    visitor = chrome.new_page()
    visitor.goto(f"http://127.0.0.1:{server.port}/clusters/demo/reassignments/")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("kafkadash cannot reach its database.")

    away.start()
    wait_until(lambda: page.request.get(page.url).status == 200, "pages are back", 10)
    read_lately(cluster)
    expect(page.locator("#connection")).to_have_text("Live", timeout=BACK_MS)
    assert page.evaluate("window.never") == "reloaded"
    expect(visitor.get_by_role("heading", level=1)).to_contain_text("moves", timeout=BACK_MS)

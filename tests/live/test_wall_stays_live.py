"""The wallboard in a browser: pushed like other pages, and loud where nothing is pushed any more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, expect
from pytest_django import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.live.publisher import publish_panels
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from tests.factories import watched
from tests.live.conftest import Server

pytestmark = pytest.mark.e2e

# As if the last answer had come so long ago: the stylesheet waits for a minute.
A_MINUTE_LATER = "() => { document.getElementById('wall-silence').getAnimations()[0].currentTime = 60_500; }"


def test_wall__without_answers__says_so_by_its_stylesheet_alone(
    chrome: BrowserContext, server: Server, settings: Settings
) -> None:
    settings.LIVE_HEARTBEAT_SECONDS = 1
    cluster = watched("demo-wall", timezone.now())
    page = chrome.new_page()
    chrome.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    page.goto(f"http://127.0.0.1:{server.port}/wall")
    tile, silence = page.locator("#wall-demo-wall"), page.locator("#wall-silence")
    expect(page.locator("#connection")).to_have_attribute("data-state", "ok")
    expect(tile.locator(".wall-state")).to_be_visible()
    expect(page.locator("#wall-clock")).to_contain_text("GMT+5:30")

    Cluster.objects.filter(pk=cluster.pk).update(name="Renamed")  # sends no signal
    publish_panels(cluster.pk, {CollectorKind.METADATA}, 1)
    expect(tile).to_contain_text("Renamed")

    page.evaluate(A_MINUTE_LATER)
    expect(silence).to_be_hidden()  # since the next heartbeat

    old = timezone.now() - timedelta(minutes=5)
    CollectorRun.objects.filter(cluster=cluster).update(succeeded_at=old)
    publish_panels(cluster.pk, {CollectorKind.METADATA}, 2)
    expect(tile.locator(".wall-stale")).to_be_visible()
    expect(tile.locator(".wall-state")).to_be_hidden()

    server.stop()
    expect(page.locator("#connection")).not_to_have_attribute("data-state", "ok")
    page.evaluate(A_MINUTE_LATER)
    expect(silence).to_be_visible()
    server.start()
    expect(silence).to_be_hidden()

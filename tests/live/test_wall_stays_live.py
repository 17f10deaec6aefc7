"""The wallboard in a browser: pushed like other pages, and loud where nothing is pushed any more."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, expect
from pytest_django import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.live.publisher import publish_panels
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from tests.factories import judged, watched
from tests.live.conftest import Server

pytestmark = pytest.mark.e2e

# As if the last answer had come so long ago: the stylesheet waits for a minute.
A_MINUTE_LATER = "() => { document.getElementById('wall-silence').getAnimations()[0].currentTime = 60_500; }"
FAR_AWAY = "Asia/Kolkata"
CHOSEN_ELSEWHERE = "localStorage.setItem('theme', 'light');"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
NOTE_LOCKS = """
window.locks = [];
const wakeLock = { request: async (kind) => { window.locks.push(kind); } };
Object.defineProperty(Navigator.prototype, "wakeLock", { configurable: true, get: () => wakeLock });
"""


def test_wall__without_answers__says_so_by_its_stylesheet_alone(
    chrome: BrowserContext, server: Server, settings: Settings
) -> None:
    settings.LIVE_HEARTBEAT_SECONDS = 1
    cluster = watched("demo-wall", timezone.now(), offline_partitions=2)
    judged(cluster, timezone.now())
    page = chrome.new_page()
    page.add_init_script(CHOSEN_ELSEWHERE + NOTE_LOCKS)
    page.emulate_media(color_scheme="dark")
    chrome.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": FAR_AWAY})
    page.goto(f"http://127.0.0.1:{server.port}/wall")
    tile, silence = page.locator("#wall-demo-wall"), page.locator("#wall-silence")
    expect(page.locator("#connection")).to_have_attribute("data-state", "ok")
    expect(tile.locator(".wall-state")).to_be_visible()
    expect(page.locator("#wall-clock")).to_contain_text("GMT+5:30")
    finding = Finding.objects.get(kind=FindingKind.OFFLINE)
    began = (finding.since or finding.first_seen_at).astimezone(ZoneInfo(FAR_AWAY))
    since = page.locator(f"#wall-finding-{finding.public_id} time")
    expect(since).to_have_text(f"{began:%H:%M}")
    dark = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(BACKGROUND) != dark, "the theme is that of the system"
    assert page.evaluate("window.locks") == ["screen"]
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert page.evaluate("window.locks") == ["screen", "screen"]

    Cluster.objects.filter(pk=cluster.pk).update(name="Renamed")  # sends no signal
    publish_panels(cluster.pk, {CollectorKind.METADATA}, 1)
    expect(tile).to_contain_text("Renamed")
    expect(since).to_have_text(f"{began:%H:%M}")

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

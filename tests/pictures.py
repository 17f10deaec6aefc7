"""``make pictures``: makes the three pictures of README.md from a demo of its own, and writes them into docs/images.

They show what a newcomer sees in the first ten minutes: the drain that waits for its approval, the run of it, and the
board after a broker was stopped. Needs a Chromium; takes about three minutes.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect, sync_playwright

from tests.live.chromium import EXPECT_MS, FLAGS, PROGRAMS
from tests.smoke.browser import Browser
from tests.smoke.demo_process import DemoProcess, command
from tests.smoke.steps import say

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
MOST_BYTES = 200_000
STOPPED = 5  # neither the drained broker nor one that gets its replicas
RUN_PERCENT = 40
NOTICED_MS = 180_000
WIDTH, HEIGHT, SCALE = 1440, 900, 0.75
"""Size of the browser's window in CSS pixels, and pixels of the picture for each of them."""

HAS_COPIED = "(percent) => Number(document.querySelector('[data-eta][data-percent]')?.dataset.percent) >= percent"


def main() -> int:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        say(f"No Chromium found. Install one (Debian: apt-get install {PROGRAMS[0]}).")
        return 1
    root = Path(tempfile.mkdtemp(prefix="kafkadash-pictures-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    demo = DemoProcess(root / "var", "--no-pipeline")
    try:
        demo.wait_until_ready()
        with sync_playwright() as playwright:
            expect.set_options(timeout=EXPECT_MS)
            chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
            take_pictures(demo, chromium)
            chromium.close()
    finally:
        demo.end()
        shutil.rmtree(root, ignore_errors=True)
    return 0


def take_pictures(demo: DemoProcess, chromium: Chromium) -> None:
    """Take each picture when its page shows something; raises playwright's TimeoutError where it never does."""
    alice, bob = (_sign_in(demo, name) for name in ("alice", "bob"))
    number = re.findall(r'href="/changes/(\d+)/"', bob.get("/changes/"))[0]

    page = _open(chromium, demo, bob, f"/changes/{number}/")
    _save(page, "review")

    bob.send(bob.form(f"/changes/{number}/", "/approve/"))
    alice.send(alice.form(f"/changes/{number}/", "/start/"))
    page = _open(chromium, demo, alice, f"/changes/{number}/run/")
    page.wait_for_function(HAS_COPIED, arg=RUN_PERCENT, timeout=NOTICED_MS)
    _save(page, "run")

    command(demo.folder, "playground", "stop-broker", str(STOPPED))
    page = _open(chromium, demo, alice, "/")
    expect(page.locator("#status-demo[data-state=critical]")).to_be_visible(timeout=NOTICED_MS)
    _save(page, "board")


def _sign_in(demo: DemoProcess, name: str) -> Browser:
    browser = Browser(demo.base)
    browser.sign_in(name, demo.password(name))
    return browser


def _open(chromium: Chromium, demo: DemoProcess, person: Browser, path: str) -> Page:
    context = chromium.new_context(
        base_url=demo.base,
        viewport={"width": WIDTH, "height": HEIGHT},
        device_scale_factor=SCALE,
        color_scheme="light",
    )
    cookies = (part.split("=", 1) for part in person.cookies.split("; "))
    context.add_cookies([{"name": name, "value": value, "url": demo.base} for name, value in cookies])
    page = context.new_page()
    page.goto(path)
    expect(page.locator("#connection[data-state=ok]")).to_be_visible()
    return page


def _save(page: Page, name: str) -> None:
    """Write docs/images/NAME.png. Raises ValueError where the file would be too large for a README."""
    picture = page.screenshot()
    if len(picture) > MOST_BYTES:
        raise ValueError(f"The picture “{name}” has {len(picture):,} bytes, more than {MOST_BYTES:,}.")
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / f"{name}.png").write_bytes(picture)
    say(f"  docs/images/{name}.png, {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())

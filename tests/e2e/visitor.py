"""Goes through pages as a reader would and notes what is wrong with each: in both themes, wide and narrow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import ConsoleMessage, Page, expect

from tests.waiting import wait_until

# For whoever wants to look at all pages himself; they are big, and nothing is compared with them.
WITH_PICTURES = bool(os.environ.get("KAFKADASH_PICTURES"))
# A run of everything looks at each page once: pages take turns at the two looks, and pages of a route with other
# filters are not judged by axe. `make proof ARGS=long` sets this.
WITH_ALL_LOOKS = WITH_PICTURES or bool(os.environ.get("KAFKADASH_ALL_LOOKS"))
HEIGHT = 900
REFRESHED_S = 30.0
SETTLES_S = 5.0
WIDER_THAN_ITS_WINDOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
Look = tuple[int, Literal["light", "dark"]]
EVERY_LOOK: Sequence[Look] = ((1440, "light"), (1440, "dark"), (320, "light"), (320, "dark"))
# Of every rule axe can tell all places that keep it; telling only those that break one takes half as long. Nothing is
# fetched for the rules about sound, of which there is none.
OPTIONS: Mapping[str, Any] = {"resultTypes": ["violations"], "preload": False}
COLOUR_RULES = ("color-contrast", "link-in-text-block")
BUT_COLOURS: Mapping[str, Any] = {**OPTIONS, "rules": {rule: {"enabled": False} for rule in COLOUR_RULES}}
COLOURS: Mapping[str, Any] = {**OPTIONS, "runOnly": {"type": "rule", "values": COLOUR_RULES}}
FIND_VIOLATIONS = "(options) => axe.run(options).then((found) => found.violations)"
# Contrast is three quarters of what axe takes, for each text of the page. Texts that are drawn alike, on grounds that
# are drawn alike, keep the rules or break them together: one of each kind is judged.
FIND_COLOUR_VIOLATIONS = """
(options) => {
  const grounds = new Map([[null, ""]]);
  const groundOf = (element) => {
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const own = [style.backgroundColor, style.backgroundImage, style.opacity, style.filter, style.position];
      const drawn = own.join() === "rgba(0, 0, 0, 0),none,1,none,static" ? "" : `${own.join()};`;
      grounds.set(element, groundOf(element.parentElement) + drawn);
    }
    return grounds.get(element);
  };
  const kinds = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const text = [element.tagName, element.closest("a, button, label, [disabled], [aria-disabled]")?.tagName,
      style.color, style.fontSize, style.fontWeight, style.textDecorationLine, style.textShadow, style.visibility];
    const kind = `${text.join()} on ${groundOf(element)}`;
    if (!kinds.has(kind)) kinds.set(kind, element);
  }
  const judged = { include: [...kinds.values(), ...document.querySelectorAll("input, select, textarea")] };
  return axe.run(judged, options).then((found) => found.violations);
}
"""
# A width changes places and a theme colours. ONE_LOOK: of another cluster or with another filter.
TWO_LOOKS: Sequence[Look] = ((1440, "light"), (320, "dark"))
ONE_LOOK: Sequence[Look] = ((320, "dark"),)
# Chromium's own word on a page that is answered with 400, 403 or 404, as it should be.
EXPECTED_ON_ERROR_PAGES = re.compile(r"^Failed to load resource: the server responded with a status of 40[034]\b")

KEEP_VIOLATIONS = """
window.kafkadashViolations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.kafkadashViolations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
# A cell that is shown and in which neither the eye nor a screen reader finds a word; drawings count by their name.
EMPTY_CELLS = """
() => [...document.querySelectorAll("main td, main th, main dd, main dt")]
  .filter((cell) => cell.checkVisibility() && !cell.textContent.trim()
    && !cell.querySelector("[aria-label], [role=img], input, select, textarea, button"))
  .map((cell) => `${cell.closest("section, form, div[id]")?.id || "main"}: ${cell.outerHTML.slice(0, 120)}`)
"""


@dataclass
class Visitor:
    """``screens``: where pictures of all pages go, named by the page, the width and the theme, when they are wanted.

    ``turn``: the place among the looks of a page that the first page gets.
    """

    page: Page
    screens: Path
    turn: int = 0
    wrong: list[str] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if WITH_PICTURES:
            self.screens.mkdir(parents=True, exist_ok=True)
        self.page.add_init_script(KEEP_VIOLATIONS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self._said.append(f"uncaught {error}"))

    def visit(
        self,
        address: str,
        name: str,
        status: int = 200,
        shows: Iterable[str] = (),
        looks: Sequence[Look] = TWO_LOOKS,
        *,
        judged: bool = True,
    ) -> None:
        """``shows``: texts that must stand in the page, read elsewhere than from the product; ``judged``: by axe."""
        self._said.clear()
        answer = self.page.goto(address)
        assert answer is not None
        if answer.status != status:
            self.wrong.append(f"{address}: status {answer.status}")
        self.look(address, name, looks, judged=judged)
        self.wrong += [f"{address}: does not say {text!r}" for text in self._missing(address, tuple(shows))]

    def _missing(self, address: str, shows: Sequence[str]) -> list[str]:
        """What the page does not say, also not after the next refresh of what Kafka's tools saw a moment before."""
        if not self._not_said(shows):
            return []

        def said() -> bool:
            self.page.goto(address)
            return not self._not_said(shows)

        with suppress(AssertionError):
            wait_until(said, "the page says it", REFRESHED_S)
        return self._not_said(shows)

    def _not_said(self, shows: Sequence[str]) -> list[str]:
        main = re.sub(r"\s+", " ", self.page.locator("main").text_content() or "")
        return [text for text in shows if text not in main]

    def look(self, address: str, name: str, looks: Sequence[Look] = TWO_LOOKS, *, judged: bool = True) -> None:
        page = self.page
        if page.locator("#live").count():
            expect(page.locator("#connection")).to_have_text("Live")
        headings = page.get_by_role("heading", level=1).count()
        if headings != 1:
            self.wrong.append(f"{address}: {headings} h1")
        widths_seen = set()
        for width, scheme in self._choose_looks(looks):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.emulate_media(color_scheme=scheme)
            where = f"{address} at {width} px, {scheme}"
            if width not in widths_seen:  # a narrow page hides cells that are empty on a wide one
                self.wrong += [f"{where}: empty cell in {cell}" for cell in page.evaluate(EMPTY_CELLS)]
            if sideways := self._sideways():
                self.wrong.append(f"{where}: scrolls sideways by {sideways} px")
            if judged or WITH_ALL_LOOKS:
                self._judge(where, all_rules=width not in widths_seen)
            widths_seen.add(width)
            if WITH_PICTURES:
                page.screenshot(path=self.screens / f"{name}-{width}-{scheme}.png", full_page=True)
        self.wrong += [f"{address}: policy violation {each}" for each in page.evaluate("window.kafkadashViolations")]
        self.wrong += [f"{address}: console {text}" for text in self._said if not EXPECTED_ON_ERROR_PAGES.match(text)]

    def _sideways(self) -> int:
        """Pixels that the page is too wide. Charts follow a new width some frames later, on a busy machine a second."""

        def measure() -> int:
            return int(
                self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            )

        with suppress(AssertionError):
            wait_until(lambda: measure() <= 0, "the page is as narrow as its window", SETTLES_S)
        return max(0, measure())

    def _choose_looks(self, looks: Sequence[Look]) -> Sequence[Look]:
        if WITH_ALL_LOOKS:
            return EVERY_LOOK if WITH_PICTURES else looks
        self.turn += 1
        return [looks[(self.turn - 1) % len(looks)]]

    def _judge(self, where: str, *, all_rules: bool) -> None:
        """A theme changes nothing but colours: of the second theme at a width only these are judged."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        found = self.page.evaluate(FIND_VIOLATIONS, BUT_COLOURS) if all_rules else []
        for violation in [*found, *self.page.evaluate(FIND_COLOUR_VIOLATIONS, COLOURS)]:
            nodes = [" ".join(node["target"]) for node in violation["nodes"]]
            self.wrong.append(f"{where}: axe {violation['id']} ({violation['help']}) at {nodes[:5]}")

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._said.append(message.text)

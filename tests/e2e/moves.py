"""What the reassignments page says of one move, read the way a reader's browser has it."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from tests.waiting import wait_until

REASSIGNMENTS = "/clusters/demo/reassignments/"
# The demo notices a move within its interval; a busy machine takes longer to draw it.
NOTICED_MS = 30_000
MARK = "kafkadashTestMark"


@dataclass(frozen=True, slots=True)
class MoveRow:
    """The row of a topic's move. Percents are None where the page says that they are unknown."""

    page: Page
    topic: str

    @property
    def row(self) -> Locator:
        # Only the pushed panel: lists further down have rows of the same move.
        return self.page.locator("#moves-demo tr[data-outcome]").filter(has_text=f"{self.topic}-0")

    def percent(self) -> float | None:
        said = self.row.get_attribute("data-percent")
        return None if said is None else float(said)

    def wait_for_more(self, deadline_s: float = 30) -> float:
        """The next percent that is not the present one."""
        before = self.percent()
        wait_until(lambda: self.percent() not in (None, before), f"the percent after {before} is shown", deadline_s)
        now = self.percent()
        assert now is not None
        return now


def opened(page: Page, path: str) -> Page:
    """The page at ``path``, live, and marked so that a reload would show."""
    page.goto(path)
    expect(page.locator("#connection")).to_have_text("Live")
    page.evaluate(f"window.{MARK} = true")
    return page


def was_never_reloaded(page: Page) -> bool:
    return bool(page.evaluate(f"window.{MARK} === true"))

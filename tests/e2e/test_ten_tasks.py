"""Ten tasks of a user on the running product take no more clicks than ``MOST_CLICKS`` allows.

A click on anything counts, and so does Enter that sends a form. Typing and scrolling do not. A test opens a page by its
address only before a task begins.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.playground.load import MIB, LoadTopic, load_topics
from tests.e2e.product import DRAINED, Product
from tests.frozen_nodes import alive_by, fenced_broker
from tests.notifications.receivers import LocalReceiver, local_receiver
from tests.waiting import wait_until

REFRESHED_MS = 120_000
PLANNED_MS = 120_000
RUN_MS = 120_000

# "Before" is the figure of a review of the product by its users. A limit is lower where that review named a needless
# step. Tasks without such a figure have that of the steps which the pages need.
MOST_CLICKS: Mapping[str, int] = MappingProxyType(
    {
        "approve a change": 3,  # before: 4, with a jump past the review to the form at its end
        "start a change": 4,  # before: 5, with "Follow the run": the start leads to the run now
        "raise the throttle": 3,  # before: 3, with a click into each field; a reason is required
        "lower the throttle": 2,  # before: 3; no reason is required any more
        "pause a run": 2,  # before: 2 and a reason
        "resume a run": 2,  # before: 2 and a reason
        "propose a rollback": 3,  # before: 3; approval and start have their own figures
        "acknowledge a finding": 1,  # before: 2, on two pages
        "find what broke": 1,  # from the board to the page of the cause
        "propose a drain": 7,  # broker, Drain broker, Next, three times Continue, Submit; the plan is made at once
        "propose a replication factor": 9,  # Changes, Propose, type, Next, topic, three times Continue, Submit
        "find a group": 4,  # cluster, Groups, filter, group
    }
)
A_CLUSTER_TO_CHOOSE = 1  # more click for a new change where there are several clusters

NAME_OF = "element => (element.innerText || element.labels?.[0]?.innerText || element.id).trim()"


@dataclass
class CountedTask:
    """A task of ``MOST_CLICKS``, begun on the page as it is open; ``further`` clicks are allowed on top."""

    page: Page
    name: str
    further: int = 0
    steps: list[str] = field(default_factory=list)

    def press(self, target: Locator) -> None:
        self.steps.append(str(target.evaluate(NAME_OF)))
        target.click()

    def send(self, field: Locator) -> None:
        """Press Enter in a field that was typed into."""
        self.steps.append("Enter")
        field.press("Enter")

    def end(self) -> None:
        """Fail if the task took too many clicks."""
        most = MOST_CLICKS[self.name] + self.further
        assert len(self.steps) <= most, f"{self.name}: {len(self.steps)} clicks, at most {most}: {self.steps}"


FILL = 96 * MIB
RATE = "1.5"  # MB/s: bounds are 1 and 3, and the move outlasts all that is done to its run
LOWER, RAISED = "1", "3"
# A rate is lowered without a question once producers were watched for a quarter of a minute.
WATCHED_S = 20.0


@pytest.fixture
def topic(product: Product, alice: BrowserContext) -> Iterator[str]:
    """A topic with one partition on a broker of each rack: the rollback of a fourth replica empties no rack.

    Its end waits until kafkadash knows that the topic is gone: a drain planned before would find no place for it.
    """
    name = f"e2e-{secrets.token_hex(3)}"
    load_topics(product.playground.bootstrap, [LoadTopic(name, placement=[(1, 2, 3)], fill_bytes=FILL)])
    yield name
    product.tools.run("topics", "--delete", "--topic", name)
    page = alice.new_page()
    wait_until(lambda: not is_listed(page, name), f"{name} is gone", REFRESHED_MS / 1000)
    page.close()


@pytest.mark.long
def test_change__from_its_proposal_to_its_rollback__takes_no_more_clicks_than_it_did(
    topic: str,
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    alice, bob = (new_context(storage_state=session).new_page() for session in (alices_session, bobs_session))
    alice.goto(f"/clusters/demo/topics/?q={topic}")
    row = alice.get_by_role("row").filter(has=alice.get_by_role("link", name=topic))
    expect(row).to_contain_text(re.compile(r"\d MB"), timeout=REFRESHED_MS)

    number = propose_factor(alice, topic, 4)
    approve_change(bob, number)
    start_change(alice, number)
    steer_run(alice, number)
    expect(alice.locator("#change-bar")).to_contain_text("Done", timeout=RUN_MS)
    assert read_replicas(product, topic) == (1, 2, 3, 4)

    propose_rollback(alice)  # whose run is proven by `tests/agreement` and `make smoke`


def test_drain__proposed_from_the_list_of_brokers__takes_no_more_clicks_than_it_did(
    new_context: Callable[..., BrowserContext], alices_session: dict[str, Any], bobs_session: dict[str, Any]
) -> None:
    alice, bob = (new_context(storage_state=session).new_page() for session in (alices_session, bobs_session))
    alice.goto("/clusters/demo/brokers/")
    task = CountedTask(alice, "propose a drain")
    task.press(alice.locator(f"#broker-{DRAINED} a[data-row-link]"))
    task.press(alice.get_by_role("link", name="Drain broker", exact=True))
    task.press(alice.get_by_role("button", name="Next"))
    expect(alice.locator(f"#drain-{DRAINED}")).to_be_checked()
    number = plan_and_submit(task)
    task.end()
    expect(alice.get_by_role("heading", level=1)).to_contain_text(f"Drain broker {DRAINED}")

    bob.goto(f"/changes/{number}/")
    bob.get_by_label("Reason to decline").fill("Not today.")
    bob.get_by_role("button", name="Decline change", exact=True).click()
    expect(bob.locator("#change-bar")).to_contain_text("Declined")


BROKEN = 3
OF_A_BROKEN_BROKER = ("broker-down", "offline-partitions", "under-replicated", "under-min-isr", "at-min-isr")
NOTE = "Its disk is replaced."
OPENED, CLOSED = ("broker-down", "opened"), ("broker-down", "closed")


def test_broker_that_is_down__is_one_incident_acknowledged_by_one_click__and_is_closed_everywhere(
    alice: BrowserContext,
    product: Product,
    new_context: Callable[..., BrowserContext],
    admins_session: dict[str, Any],
    receiver_on_call: LocalReceiver,
) -> None:
    page = alice.new_page()
    page.goto("/")
    receiver = receiver_on_call
    add_receiver(new_context(storage_state=admins_session).new_page(), receiver.url)
    with broken_broker(product, page):
        row = page.locator("#status-demo .finding-row[data-finding=broker-down]")
        expect(row.locator("h3")).to_contain_text(f"Broker {BROKEN} is down", timeout=REFRESHED_MS)
        task = CountedTask(page, "find what broke")
        task.press(row.locator(".finding-next a"))
        down = re.compile(rf"^Broker {BROKEN} is (fenced|unregistered|unreachable)")
        expect(page.get_by_role("heading", level=1)).to_have_text(down)
        task.end()

        page.goto("/")
        task = CountedTask(page, "acknowledge a finding")
        task.press(row.get_by_role("button", name="Acknowledge"))
        expect(row.locator(".finding-owner")).to_contain_text("alice")
        task.end()

        folded = page.locator("#status-demo details.consequences")
        expect(folded.locator("[data-consequence=under-replicated]")).to_have_count(1, timeout=REFRESHED_MS)
        expect(page.locator("#status-demo .finding-row[data-finding=under-replicated]")).to_have_count(0)
        folded.locator("summary").click()
        expect(folded.locator("[data-consequence=under-replicated]")).to_be_visible()
        number = acknowledge_for_an_hour(page, row)
        expect(row.locator("[data-owned=until]")).to_be_visible()
        expect(row.locator(".finding-note")).to_contain_text(NOTE)
        expect(folded).to_have_attribute("data-state", "critical")
        wait_until(lambda: told_of_replicas(receiver) == [OPENED], "the message of the incident", REFRESHED_MS / 1000)
    # A consequence that lasts longer, or that another broker's replicas share, is told as a finding of its own.
    wait_until(lambda: CLOSED in told_of_replicas(receiver), "its end is told", REFRESHED_MS / 1000)
    expect_closed(page, number)
    assert [event["step"] for event in receiver.events if event["subject_id"] == number] == ["opened", "closed"]


def test_group__looked_for_from_the_board__takes_no_more_clicks_than_it_did(alice: BrowserContext) -> None:
    page = alice.new_page()
    page.goto("/")
    task = CountedTask(page, "find a group")
    task.press(page.locator("#status-demo").get_by_role("link", name="Demo", exact=True))
    task.press(page.get_by_role("navigation", name="Cluster Demo").get_by_role("link", name="Groups", exact=True))
    name = page.get_by_label("Part of the name")
    name.fill("price-im")
    task.send(name)
    task.press(page.get_by_role("link", name="price-import", exact=True))
    expect(page.get_by_role("heading", level=1)).to_contain_text("price-import")
    task.end()


def propose_factor(alice: Page, topic: str, factor: int) -> str:
    """Begin on the board; return the number of the change."""
    alice.goto("/")
    task = CountedTask(alice, "propose a replication factor")
    task.press(find_changes_link(alice))
    task.press(alice.get_by_role("link", name="Propose change").first)
    cluster = alice.get_by_label("Demo", exact=True)
    if not cluster.is_checked():
        task.further = A_CLUSTER_TO_CHOOSE
        task.press(cluster)
    task.press(alice.get_by_label("Change replication factor"))
    task.press(alice.get_by_role("button", name="Next"))
    alice.get_by_label("Replication factor", exact=True).fill(str(factor))
    task.press(alice.get_by_label(topic))
    number = plan_and_submit(task, throttle=RATE)
    task.end()
    return number


def plan_and_submit(task: CountedTask, throttle: str = "") -> str:
    """Go on from the scope; return the number of the change, which then waits for its approval."""
    page = task.page
    task.press(page.get_by_role("button", name="Continue to limits"))
    page.get_by_label("Disk limit").fill("100")  # how full this machine's disk is does not matter
    if throttle:
        page.get_by_role("textbox", name="Throttle").fill(throttle)
    task.press(page.get_by_role("button", name="Continue to plan"))
    return submit_plan(task, "The rack needs it.")


def submit_plan(task: CountedTask, why: str) -> str:
    """Go on from the plan, also while it is computed; return the number of the change."""
    page = task.page
    onwards = page.get_by_role("link", name="Continue to reason")
    expect(onwards).to_be_visible(timeout=PLANNED_MS)
    task.press(onwards)
    page.get_by_label("Reason").fill(why)
    task.press(page.get_by_role("button", name="Submit for approval"))
    page.wait_for_url(re.compile(r"/changes/\d+/$"))
    expect(page.locator("#change-bar")).to_contain_text("Proposed")
    return page.url.split("/changes/")[1].split("/")[0]


def approve_change(bob: Page, number: str) -> None:
    """Begin on the board. The form is at the end of the review, so a reader needs no jump to it."""
    bob.goto("/")
    task = CountedTask(bob, "approve a change")
    open_change(task, number)
    task.press(bob.get_by_role("button", name="Approve change"))
    expect(bob.locator("#change-bar")).to_contain_text("Approved")
    task.end()


def start_change(alice: Page, number: str) -> None:
    """Begin on the board; the page of the run is open when this returns."""
    alice.goto("/")
    task = CountedTask(alice, "start a change")
    open_change(task, number)
    task.press(alice.locator("#change-bar").get_by_role("link", name="Start change…"))
    task.press(alice.get_by_role("button", name="Start change", exact=True))
    alice.wait_for_url(re.compile(rf"/changes/{number}/run/$"))
    task.end()


def open_change(task: CountedTask, number: str) -> None:
    task.press(find_changes_link(task.page))
    task.press(task.page.locator(f"#change-{number} a[data-row-link]"))


def find_changes_link(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Main").get_by_role("link", name="Changes")


def steer_run(alice: Page, number: str) -> None:
    """Pause and resume the run on its page, then lower and raise its throttle."""
    bar = alice.locator("#change-bar")
    expect(bar).to_contain_text("Executing", timeout=RUN_MS)
    first = read_sample_time(alice, number)

    task = CountedTask(alice, "pause a run")
    task.press(bar.locator("summary", has_text="Pause run"))
    task.press(bar.get_by_role("button", name="Pause run", exact=True))
    expect(bar).to_contain_text("Paused")
    task.end()

    task = CountedTask(alice, "resume a run")
    task.press(bar.locator("summary", has_text="Resume run"))
    bar.get_by_label("Reason").fill("Consumers are fine.")
    task.press(bar.get_by_role("button", name="Resume run", exact=True))
    expect(bar).to_contain_text("Executing")
    task.end()

    watched = "producers were watched for long enough"
    wait_until(lambda: (read_sample_time(alice, number) - first).total_seconds() > WATCHED_S, watched, RUN_MS / 1000)
    task = CountedTask(alice, "lower the throttle")
    set_throttle(task, LOWER)
    task.end()
    task = CountedTask(alice, "raise the throttle")
    set_throttle(task, RAISED, "Consumers are fine.")
    task.end()


def set_throttle(task: CountedTask, rate: str, reason: str = "") -> None:
    """Count the clicks into the fields as well, as the review did."""
    form = task.page.locator("#throttle-form")
    task.press(form.locator("#rate"))
    form.locator("#rate").fill(rate)
    if reason:
        task.press(form.get_by_label("Reason"))
        form.get_by_label("Reason").fill(reason)
    task.press(form.get_by_role("button", name="Set throttle"))
    expect(task.page.get_by_role("status").filter(has_text="The throttle is")).to_contain_text(f"is {rate} MB/s")


def read_sample_time(page: Page, number: str) -> datetime:
    """Return the time of the run's figures, waiting until there are any."""
    return datetime.fromisoformat(str(page.locator(f"#run-{number}[data-sampled-at]").get_attribute("data-sampled-at")))


def propose_rollback(alice: Page) -> None:
    """Begin on the page of a run that has ended."""
    task = CountedTask(alice, "propose a rollback")
    task.press(alice.locator("#report-end").get_by_role("button", name="Propose rollback"))
    submit_plan(task, "Three replicas are enough.")
    task.end()


def is_listed(page: Page, topic: str) -> bool:
    page.goto(f"/clusters/demo/topics/?q={topic}")
    return page.get_by_role("link", name=topic, exact=True).count() > 0


def read_replicas(product: Product, topic: str) -> tuple[int, ...]:
    """Return the sorted replicas of the topic's only partition, from Kafka's own tool."""
    return tuple(sorted(product.tools.topics("--topic", topic)[topic].partitions[0].replicas))


@contextmanager
def broken_broker(product: Product, page: Page) -> Iterator[None]:
    """Broker ``BROKEN`` hangs; afterwards replicas are in sync, leaders preferred and its findings closed again."""
    with fenced_broker(product.playground, BROKEN):
        yield
    # Until it is let in again, it answers from the metadata that it had before.
    others = [node for node in product.playground.cluster.brokers if node.node_id != BROKEN]
    other = f"{LOOPBACK}:{others[0].broker_port}"
    wait_until(lambda: BROKEN in alive_by(other), f"broker {BROKEN} is let in again", REFRESHED_MS / 1000)
    wait_until(lambda: is_in_sync(product), "all replicas are in sync again", REFRESHED_MS / 1000)
    product.tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    page.goto("/")
    marked = [
        f"#status-demo [data-{mark}={kind}]" for kind in OF_A_BROKEN_BROKER for mark in ("finding", "consequence")
    ]
    gone = ", ".join(marked)
    expect(page.locator(gone)).to_have_count(0, timeout=REFRESHED_MS)


def add_receiver(admin: Page, url: str) -> None:
    admin.goto("/settings/notifications/new/webhook/")
    admin.get_by_label("Name").fill("incidents")
    admin.get_by_label("URL").fill(url)
    admin.get_by_role("button", name="Add receiver").click()
    expect(admin.get_by_role("heading", level=1)).to_contain_text("incidents")


def acknowledge_for_an_hour(page: Page, row: Locator) -> str:
    """From the board to the page of the finding, and back; return its number."""
    row.get_by_role("link", name="Broker").first.click()
    owner = page.locator("#owner")
    owner.get_by_label("Note").fill(NOTE)
    number = page.url.rstrip("/").rpartition("/")[2]
    until = datetime.now(UTC) + timedelta(hours=1)
    owner.get_by_label("Until").fill(f"{until:%Y-%m-%dT%H:%M}")
    owner.get_by_role("button", name="Change acknowledgement").click()
    expect(page.locator("#note")).to_have_text(NOTE)
    page.goto("/")
    return number


def expect_closed(page: Page, number: str) -> None:
    """Look at the page of the finding and of its cluster, the wallboard, the timeline and the closed findings."""
    page.goto(f"/clusters/demo/findings/{number}/")
    expect(page.locator(".page-actions .status-pill")).to_have_attribute("data-state", "ok")
    expect(page.locator("#note")).to_have_text(NOTE)
    page.goto("/clusters/demo/")
    expect(page.locator("#overview-demo")).to_be_visible()
    expect(page.locator(f"#finding-{number}")).to_have_count(0)
    page.goto("/wall")
    expect(page.locator("#wall-demo")).to_be_visible()
    expect(page.locator(f"#wall-finding-{number}")).to_have_count(0)
    page.goto("/clusters/demo/timeline/?period=1h&kind=findings")
    expect(page.locator(f"#closed_at-{number}")).to_have_attribute("data-state", "ok")
    expect(page.locator(f"#opened_at-{number}")).to_have_attribute("data-state", "critical")
    page.goto("/clusters/demo/timeline/closed/?kind=broker-down")
    expect(page.locator(f"[id='{number}']")).to_contain_text("alice")


def told_of_replicas(receiver: LocalReceiver) -> list[tuple[str, str]]:
    """Return kind and step of the events about the broker and about partitions that lack replicas."""
    return [(event["kind"], event["step"]) for event in receiver.events if event["kind"] in OF_A_BROKEN_BROKER]


@pytest.fixture
def receiver_on_call() -> Iterator[LocalReceiver]:
    with local_receiver() as own:
        yield own


def is_in_sync(product: Product) -> bool:
    rows = [row for topic in product.tools.topics().values() for row in topic.partitions.values()]
    return all(set(row.isr) == set(row.replicas) for row in rows)

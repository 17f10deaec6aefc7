"""Pages of three clusters, wide in the light theme or narrow in the dark one: accessible, within its policy, true.

``KAFKADASH_ALL_LOOKS=1`` looks at each in both ways, ``KAFKADASH_PICTURES=1`` at both themes at both widths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from playwright.sync_api import Browser, BrowserContext, expect

from tests.agreement.tools import Tools
from tests.e2e.changes import begin_draft, plan_draft, propose
from tests.e2e.moves import NOTICED_MS
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.routes import (
    CHANGES,
    CLUSTER,
    ENDS,
    FINDING,
    FORMS,
    ITEMS,
    NAMES_ITS_ID,
    NO_PAGES,
    OF_A_CLUSTER,
    OWN_TROUBLE,
    RUNS,
    SETTINGS,
    SIGN_IN,
    SIGNED_IN,
    SIGNED_OUT,
    VERIFICATION,
)
from tests.e2e.visitor import ONE_LOOK, TWO_LOOKS, Visitor
from tests.e2e.worlds import STOPPED, Told, World, limping, never_reached, told_by

SCREENS = CHECKOUT / "var" / "screens"
MISSING = "/clusters/no-such-cluster/"
DEMO_THROTTLE = 20_000  # bytes per second; a megabyte slips past it every 11 s: 64 of them outlast all visits


@pytest.fixture(scope="module")
def worlds(product: Product) -> Iterator[Mapping[str, World]]:
    """All three, and until the product has seen what is wrong with the second and that the third is silent."""
    with product.moving(mib=64, throttle=DEMO_THROTTLE), limping(product, product.folder / "limping") as second:
        third = never_reached(product)
        yield {
            "demo": World("demo", "orders", 1, "invoice-writer", told_by(Tools(product.playground), DEMO_THROTTLE)),
            "limping": second,
            "never": third,
        }


@pytest.fixture(scope="module")
def moves(worlds: Mapping[str, World], browser: Browser, product: Product, alices_session: Any) -> Mapping[str, str]:
    """Cluster → the id of a reassignment in flight, as the product names it."""
    found = {}
    context = browser.new_context(base_url=product.url, storage_state=alices_session)
    page = context.new_page()
    for slug in ("demo", "limping"):
        page.goto(f"/clusters/{slug}/reassignments/")
        row = page.locator(f"#moves-{slug} tr[data-outcome=running]").first
        expect(row).to_be_visible(timeout=NOTICED_MS)
        found[slug] = str(row.get_attribute("id"))
    page.goto("/clusters/demo/throttles/")
    expect(page.locator("main")).to_contain_text(f"{DEMO_THROTTLE:,} bytes/s", timeout=4 * NOTICED_MS)
    page.goto("/")
    expect(page.locator("#status-limping[data-state=critical]")).to_be_visible(timeout=4 * NOTICED_MS)
    expect(page.locator("#status-never[data-state=unknown]")).to_be_visible(timeout=NOTICED_MS)
    context.close()
    return found


@pytest.fixture(scope="module")
def tested(browser: Browser, product: Product, admins_session: Any) -> str:
    """The page of a connection test of the demo's cluster, started and watched in the browser until it says so."""
    context = browser.new_context(base_url=product.url, storage_state=admins_session)
    page = context.new_page()
    page.goto("/settings/clusters/demo/")
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_role("heading", name="Connection OK")).to_be_visible()
    expect(page.locator("#step-listeners")).to_contain_text("can be reached at")
    expect(page.locator("#step-permissions")).to_contain_text("are granted on the cluster")
    address = page.get_by_role("link", name="Open test").get_attribute("href")
    context.close()
    assert address
    return address


def test_pages__all_routes__are_among_those_visited_here() -> None:
    def routes(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from routes(pattern.url_patterns, route)
            else:
                yield route

    known = (
        OF_A_CLUSTER.keys() | CHANGES.keys() | SIGNED_IN.keys() | SETTINGS.keys() | SIGNED_OUT.keys() | NO_PAGES | FORMS
    )
    elsewhere = RUNS | ENDS | ITEMS | OWN_TROUBLE | {FINDING, VERIFICATION}
    assert set(routes(get_resolver().url_patterns)) == known | elsewhere


@pytest.mark.parametrize("slug", ["demo", "limping", "never"])
def test_pages__of_this_cluster__have_nothing_wrong_and_say_what_kafkas_tools_say(
    slug: str,
    worlds: Mapping[str, World],
    moves: Mapping[str, str],
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
) -> None:
    world, told = worlds[slug], worlds[slug].told
    # A page that is wide and light for one cluster is narrow and dark for the other.
    visitor = Visitor(new_context(storage_state=alices_session).new_page(), SCREENS / slug, int(slug != "demo"))
    for route, visited in OF_A_CLUSTER.items():
        if visited.of_seen and told is None:
            continue
        if "{group}" in visited.addresses[0] and not world.group:
            continue
        # A cluster that was never read has no rows to filter.
        for number, address in enumerate(visited.addresses if told else visited.addresses[:1]):
            at = address.format(
                slug=slug, move=moves.get(slug), topic=world.topic, broker=world.broker, group=world.group
            )
            says = visited.says(told) if told and not number else ()
            looks = ONE_LOOK if number else TWO_LOOKS
            visitor.visit(at, f"{_name(route)}{number or ''}", shows=says, looks=looks, judged=not number)
    assert not visitor.wrong, "\n".join(visitor.wrong)


def test_pages__of_no_cluster__have_nothing_wrong(
    worlds: Mapping[str, World],
    moves: Mapping[str, str],
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
) -> None:
    visitor = Visitor(new_context(storage_state=alices_session).new_page(), SCREENS / "all")
    for route, addresses in SIGNED_IN.items():
        for number, address in enumerate(addresses):
            says = _board_says(worlds["limping"]) if not route and not number else ()
            looks = ONE_LOOK if number else TWO_LOOKS
            visitor.visit(address, f"{_name(route)}{number or ''}", shows=says, looks=looks, judged=not number)
    visitor.visit(MISSING, "missing", status=404)

    stranger = Visitor(new_context().new_page(), SCREENS / "all")
    stranger.visit(SIGN_IN, "login")
    with stranger.page.expect_navigation():
        # A form whose token is not the session's: what a forged one would send.
        stranger.page.evaluate(
            "document.querySelector('[name=csrfmiddlewaretoken]').value = 'forged';"
            " document.querySelector('main form').submit()"
        )
    expect(stranger.page.get_by_role("heading", level=1)).not_to_have_text("Sign in to kafkadash")
    stranger.look("403", "forged")
    assert not visitor.wrong + stranger.wrong, "\n".join(visitor.wrong + stranger.wrong)


def test_pages__of_changes__have_nothing_wrong_and_say_what_is_proposed(
    worlds: Mapping[str, World],
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    told = worlds["demo"].told
    assert told
    alice = new_context(storage_state=alices_session).new_page()
    topic, partition, replicas = _at_rest(told)
    draft, proposed = begin_draft(alice), propose(alice, topic, partition, [*replicas[1:], replicas[0]])
    by = {"draft": draft, "planned": plan_draft(alice), "proposed": proposed, "topic": topic}
    visitor = Visitor(new_context(storage_state=alices_session).new_page(), SCREENS / "changes")
    for route, addresses in CHANGES.items():
        for number, address in enumerate(addresses):
            says = [f"#{proposed}"] if address.endswith("=all") else [topic] if "{proposed}" in address else ()
            looks = ONE_LOOK if number else TWO_LOOKS
            name = f"{_name(route)}{number or ''}"
            visitor.visit(address.format(**by), name, shows=says, looks=looks, judged=not number)
    assert not visitor.wrong, "\n".join(visitor.wrong)

    bob = Visitor(new_context(storage_state=bobs_session).new_page(), SCREENS / "changes")
    bob.visit("/changes/", "waiting", shows=["waiting for you", f"#{proposed}"])
    bob.visit(
        f"/changes/{proposed}/", "decision", shows=["Your decision, bob", "You approve exactly this content", topic]
    )
    bob.page.get_by_label("Note").fill("Looked at.")
    bob.page.get_by_role("button", name="Approve change").click()
    expect(bob.page.locator("#decide")).to_contain_text("Approved: bob")
    bob.visit(f"/changes/{proposed}/", "approved", shows=["Approved: bob", "Looked at."])
    assert not bob.wrong, "\n".join(bob.wrong)

    visitor.visit(f"/changes/{proposed}/", "start", shows=["The run moves 1 partition"])
    visitor.page.get_by_role("button", name="Start change", exact=True).click()
    expect(visitor.page.locator("#change-bar")).to_have_attribute("data-outcome", "done", timeout=8 * NOTICED_MS)
    visitor.visit(f"/changes/{proposed}/", "done", shows=["Done, clean"])
    visitor.visit(f"/changes/{proposed}/report/", "report", shows=["1 of 1 partition moved"])
    visitor.page.get_by_role("button", name="Propose rollback").click()
    expect(visitor.page.get_by_role("heading", level=1)).to_contain_text(f"Rollback of #{proposed}")
    expect(visitor.page.get_by_role("link", name="Continue to reason")).to_be_visible(timeout=4 * NOTICED_MS)
    assert not visitor.wrong, "\n".join(visitor.wrong)


def test_finding__that_somebody_acknowledges__names_its_owner_on_the_board(
    worlds: Mapping[str, World],
    moves: Mapping[str, str],
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
) -> None:
    page = new_context(storage_state=alices_session).new_page()
    page.goto("/?kind=broker-down")
    of_limping = page.locator("#chosen-limping .finding-row")
    expect(of_limping.locator("h3")).to_contain_text(f"Broker {STOPPED} is down")
    own_id = str(of_limping.get_attribute("id"))
    address = str(of_limping.locator("h3 a").get_attribute("href"))
    visitor = Visitor(new_context(storage_state=alices_session).new_page(), SCREENS / "limping")
    visitor.visit(address, "finding", shows=[f"Broker {STOPPED} is down", own_id.removeprefix("finding-")])
    assert not visitor.wrong, "\n".join(visitor.wrong)

    of_limping.get_by_role("button", name="Acknowledge").click()
    expect(page).to_have_url(re.compile(rf"/#{own_id}$"))
    expect(page.locator(f"#{own_id} .finding-owner")).to_contain_text("alice")
    page.goto("/?mine=1")
    expect(page.locator(f"#{own_id}")).to_be_visible()
    page.goto(address)
    page.get_by_role("button", name="Release").click()
    expect(page.locator("#owner")).to_contain_text("Unacknowledged")


def test_pages__of_the_settings__have_nothing_wrong(
    worlds: Mapping[str, World],
    new_context: Callable[..., BrowserContext],
    admins_session: dict[str, Any],
    tested: str,
) -> None:
    told = worlds["demo"].told
    assert told
    page = new_context(storage_state=admins_session).new_page()
    page.goto("/settings/notifications/new/webhook/")
    page.get_by_label("Name").fill("on-call")
    page.get_by_label("URL").fill("https://hooks.example.com/kafka")
    page.get_by_role("button", name="Add receiver").click()
    expect(page.locator("h1")).to_contain_text("on-call")
    receiver = urlsplit(page.url).path
    visitor = Visitor(page, SCREENS / "settings")
    for route, addresses in SETTINGS.items():
        for number, address in enumerate(addresses):
            says = [told.cluster_id] if number == 0 and route in NAMES_ITS_ID else ()
            at = address.format(test=tested, receiver=receiver)
            visitor.visit(at, f"{_name(route)}{number or ''}", shows=says, judged=not number)
    assert not visitor.wrong, "\n".join(visitor.wrong)


def _at_rest(told: Told) -> tuple[str, int, Sequence[int]]:
    """A partition with several replicas that does not move: topic, partition, replicas."""
    return next(
        (name, number, partition.replicas)
        for name, topic in sorted(told.topics.items())
        for number, partition in topic.partitions.items()
        if not name.startswith("__") and len(partition.replicas) > 1 and f"{name}-{number}" not in told.moving
    )


def _board_says(world: World) -> Sequence[str]:
    assert world.told
    return [f"{len(world.told.brokers)} brokers", f"Broker {world.broker} is down"]


def _name(route: str) -> str:
    """Of a picture."""
    return re.sub(r"<[^>]*>|[^a-z]+", "-", route.removeprefix(CLUSTER)).strip("-") or "start"

"""What the review page and the wizard say of a plan: the figures of an independent count, and unknown what is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import run_time
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import coded, message_text
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import impact_of
from kafkadash.planning.problem_codes import CheckTitle
from kafkadash.planning.report import ReportCell
from kafkadash.planning.review import PlanPage, review_context, short_facts
from kafkadash.planning.topology import ClusterTopology
from tests.factories import GB, NOW
from tests.pages.conftest import Page, text_of
from tests.planning.plans import DISK, OPTIONS, counted, drained, planned, world

pytestmark = pytest.mark.django_db

WORLD = world(
    {
        "orders": [[3, 1, 2], [1, 2, 4], [2, 3, 1], [3, 5, 4], [4, 5, 3], [3, 4, 2], [2, 1, 3]],
        "clicks": [[3, 5], [1, 2]],
        "__consumer_offsets": [[3, 1, 2], [6, 4, 5]],
    }
)
ROWS = drained(WORLD, 3, instead=6)


@dataclass(frozen=True, kw_only=True)
class ReviewPage(Page):
    """``plan`` is what the HTML was made from."""

    plan: PlanPage


Review = Callable[..., ReviewPage]


@pytest.fixture(autouse=True)
def frozen_time() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def review(cluster: Cluster) -> Review:
    """The sections of a plan as HTML; its impact is reckoned as the product does."""

    def make(
        topology: ClusterTopology = WORLD,
        rows: tuple[PartitionMove, ...] = ROWS,
        query: str = "",
        options: RunOptions = OPTIONS,
    ) -> ReviewPage:
        impact = impact_of(rows, topology, disk_limit=0.8, elect_leaders=options.elect_leaders)
        return shown(planned(cluster, topology, rows, impact=impact, options=options), query)

    return make


def shown(change: ChangeRequest, query: str = "") -> ReviewPage:
    context = review_context(change, RequestFactory().get(f"/changes/{change.pk}/{query}"), NOW)
    html = render_to_string("planning/_review.html", {"of_kind": context})
    return ReviewPage(html, plan=context["plan"])


def tiles(page: Page) -> dict[str, str]:
    """Label of each tile → its figure, without what is said below it."""
    found = re.findall(r'class="stat-tile"[^>]*><dt>(.*?)</dt>\s*<dd>(.*?)</dd>', page.part("blast"), re.DOTALL)
    return {text_of(label): text_of(figure) for label, figure in found}


def test_the_tiles_say_what_is_counted_replica_by_replica(review: Review) -> None:
    expected = counted(WORLD, ROWS)
    page = review()
    found = tiles(page)
    assert found.pop("Min-ISR risk")
    assert found == {
        "Partitions": f"{expected.partitions_moved} of {expected.partitions_total}",
        "Topics": "3 of 3",
        "Brokers": f"{expected.brokers_touched} of 6",
        "Data moved": f"{(expected.copied_bytes or 0) / GB:.1f} GB",
        "Time at 60 MB/s": "6 min 52 s",  # 24 GB arrive at broker 6
        "Leaders moved": f"{expected.leaders_moved} of 11",
    }
    plan = page.plan
    assert [round(share or 0) for share in (plan.moved_share, plan.bytes_share, plan.largest_s)] == [73, 26, 50]
    assert (plan.impact.total_bytes, len(plan.impact.internal_topics)) == (expected.total_bytes, 1)
    assert [broker.id for broker in plan.impact.brokers if broker.leaders_after < broker.leaders_before] == [3]
    assert (plan.impact.emptied, plan.min_isr_state) == ((3,), "ok")
    assert [broker.id for broker in plan.impact.brokers if broker.bytes_in] == [6]
    for figure in ("73 %", "26 %", "50 s", "broker 3"):
        assert figure in page.words("blast")


def test_brokers_before_and_after_are_those_of_the_count(review: Review) -> None:
    page = review()
    for broker in counted(WORLD, ROWS).brokers:
        words = page.words(f"bars-{broker.id}")
        assert f"{broker.replicas_before} → {broker.replicas_after}" in words
        assert f"{broker.leaders_before} → {broker.leaders_after}" in words


def test_every_row_of_the_plan_can_be_seen_and_none_that_is_not_in_it(review: Review) -> None:
    names = set(re.findall(r'<td class="mono partition-name">(.*?)</td>', review().part("diff")))
    assert names <= {row.name for row in ROWS}
    assert "Show 1 more" in review().words("topic-orders")
    for figure in ("6 of 7", "3 → 6", "18.0 GB", "3 leaders"):
        assert figure in review().words("topic-orders")


def test_the_chips_say_who_leaves_who_arrives_who_leads_and_where(review: Review) -> None:
    row = review().part("topic-clicks")
    chips = re.findall(r'class="replica" data-leader data-change="(\w+)" title="(.*?)"', row)
    assert [(change, "broker 3" in title, "broker 6" in title) for change, title in chips] == [
        ("out", True, False),
        ("in", False, True),
    ]
    assert all("eu-1c" in title for _, title in chips)
    assert "<small>c</small>" in row
    assert "only 2 replicas" in text_of(row)


def test_time_is_given_at_three_throttles_with_what_binds_it(review: Review) -> None:
    page = review()
    times = [(time.rate // 10**6, run_time(time.seconds or 0)) for time in page.plan.times]
    assert times == [(30, "13 min 32 s"), (60, "6 min 52 s"), (90, "4 min 38 s")]
    for rate, took in times:
        assert f"{rate} MB/s {took}" in page.words("blast")
    assert [(time.proposed, bool(time.beyond)) for time in page.plan.times] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    impact = page.plan.impact
    assert (impact.binding_broker, impact.binding_direction, impact.binding_bytes) == (6, "in", 24 * GB)
    assert page.plan.binding_words in page.words("blast")


def test_times_go_by_the_sizes_of_the_last_checks(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS, impact=impact_of(ROWS, WORLD))
    fits = ChangeCheck(
        "window", CheckSubject.HEALTH, CheckResult.PASSED, coded(CheckTitle.FITS_WINDOW), "no end", amount=48 * GB
    )
    read_at = NOW - timedelta(seconds=4)
    ChangeRequest.objects.filter(pk=change.pk).update(checks=[pack_dataclass(fits)], checked_at=read_at)
    change = ChangeRequest.objects.select_related("report", "artifact", "cluster").get(pk=change.pk)
    page = shown(change)
    assert tiles(page)["Time at 60 MB/s"] == "13 min 32 s"
    assert (page.plan.impact.binding_bytes, page.plan.busiest, page.plan.sizes_at) == (24 * GB, 48 * GB, read_at)
    for figure in ("24.0 GB", "48.0 GB"):
        assert figure in page.plan.binding_words
    assert page.part("blast").count("<time") == 2  # of the topology, and of the sizes
    assert short_facts(change)[2] == ("13 min 32 s", "at 60 MB/s")
    ChangeRequest.objects.filter(pk=change.pk).update(checks=[pack_dataclass(replace(fits, amount=None))])
    change = ChangeRequest.objects.select_related("report").get(pk=change.pk)
    assert short_facts(change)[2] == ("6 min 52 s", "at 60 MB/s"), "where the sizes are not known now, as planned"


def test_the_rack_map_outlines_who_gains_and_dashes_who_empties(review: Review) -> None:
    cells = review().part("racks").split('class="rack-cell"')
    assert [re.search(r'data-change="(\w+)"', cell) for cell in cells[1:7]] == [None] * 6, "nothing changes before"
    changed = {
        m[1]: text_of(cell.split("</div>")[0]) for cell in cells[7:] if (m := re.match(r' data-change="(\w+)"', cell))
    }
    assert set(changed) == {"gains", "empties"}
    assert "+8 9 replicas" in changed["gains"]
    assert "broker 3 empty" in changed["empties"]


def test_disk_bars__other_data_on_the_disk__is_below_the_replicas(review: Review) -> None:
    page = review()
    for line, cell in zip(page.plan.brokers.lines, _cells(page.plan), strict=True):
        impact = line.impact
        assert impact.other_bytes == 600 * GB - (impact.bytes_before or 0)
        other = 100 * (impact.other_bytes or 0) / DISK
        assert float(line.disk.base_width.removesuffix("%")) == pytest.approx(other, abs=0.1)
        assert cell.other_percent == pytest.approx(other)
        assert cell.percent == pytest.approx(30.0), "all that is in use, 600 of 2,000 GB"
        assert line.disk.percents.startswith("30.0 % → ")
        assert 'class="bar-base"' in page.part(f"bars-{impact.id}")
        assert line.disk.limit_at == "80.0%"
    assert page.html.count('class="meter-base"') == 2 * len(page.plan.brokers.lines)


def test_disk_bars__usage_of_the_disk_is_unknown__are_not_drawn(review: Review) -> None:
    unknown = world({"orders": [[3, 1, 2], [1, 2, 4]]}, used=None)
    page = review(unknown, drained(unknown, 3, instead=6))
    assert not any(line.disk.drawn or line.disk.percents for line in page.plan.brokers.lines)
    assert {cell.percent for cell in _cells(page.plan)} == {None}
    assert not {'class="bar-base"', 'class="meter-base"'} & set(re.findall(r'class="[a-z-]+"', page.html))


def _cells(plan: PlanPage) -> list[ReportCell]:
    """Cells of the map before the plan, by the id of their broker."""
    return sorted((cell for rack in plan.racks.before for cell in rack.cells), key=lambda cell: cell.id)


@pytest.mark.parametrize("section", ["blast", "brokers", "rollback"])
def test_what_is_not_known_is_called_unknown_and_never_zero(section: str, review: Review) -> None:
    unsized = world({"orders": [[3, 1, 2], [1, 2, 4]]}, size=None, used=None, inbound=None)
    page = review(unsized, drained(unsized, 3, instead=6))
    words = page.words(section)
    assert "unknown" in words
    assert not re.search(r"(?<!→ )\b0 (k|M|G)?B\b|\b0 s\b", words)


def test_unknown_sizes_say_how_many_and_what_is_known(review: Review) -> None:
    topics = dict(WORLD.topics)
    first, *others = topics["orders"].partitions
    topics["orders"] = replace(topics["orders"], partitions=(replace(first, size_bytes=None), *others))
    some = replace(WORLD, topics=topics)
    page = review(some, drained(some, 3, instead=6))
    assert (tiles(page)["Data moved"], tiles(page)["Time at 60 MB/s"]) == ("unknown", "unknown")
    assert (page.plan.impact.known_bytes, page.plan.impact.unsized) == (21 * GB, 1)
    assert "21.0 GB" in page.words("blast")


def test_racks_that_are_not_judged_say_so(review: Review) -> None:
    mixed = world({"orders": [[3, 1, 2]]}, racks=("a", None, "b"))
    assert "Rack spread unknown" in review(mixed, drained(mixed, 3, instead=6)).words("racks")


def test_markup_in_the_name_of_a_rack_is_text(review: Review) -> None:
    nasty = '<script>alert("1")</script>'
    page = review(
        world({"orders": [[3, 1, 2]]}, racks=(nasty, "b", "c")), drained(world({"orders": [[3, 1, 2]]}), 3, 6)
    )
    assert "<script" not in page.html
    assert "&lt;script&gt;" in page.html


def test_nothing_has_a_style_of_its_own(review: Review) -> None:
    assert " style=" not in review().html


def test_only_the_order_changes__nothing_is_copied_and_that_is_said(review: Review) -> None:
    rows = (PartitionMove("orders", "id-of-orders", 0, (3, 1, 2), (1, 3, 2)),)
    page = review(rows=rows)
    assert tiles(page)["Data moved"].startswith("0 B")
    assert tiles(page)["Time at 60 MB/s"] == "no copying"
    assert page.plan.rollback.copied_bytes == 0
    assert "GB" not in page.words("rollback")
    assert "order only" in page.words("topic-orders")


def test_the_way_back_says_what_is_copied_again(review: Review) -> None:
    page = review()
    back = page.plan.rollback
    assert (back.copied_bytes, run_time(back.seconds or 0)) == (24 * GB, "6 min 52 s")
    for figure in ("24.0 GB", "6 min 52 s"):
        assert figure in page.words("rollback")


def test_without_a_window_none_is_drawn(review: Review) -> None:
    page = review()
    assert "No window." in page.words("window")
    assert "window-bar" not in page.html


@pytest.mark.parametrize(
    ("opens", "closes", "sentence"),
    [
        (timedelta(hours=1), timedelta(hours=7), "5 h 53 min to spare"),
        (timedelta(hours=-1), timedelta(minutes=3), "3 min 52 s too long"),
    ],
)
def test_the_window_holds_the_run_or_says_by_how_much_it_does_not(
    opens: timedelta, closes: timedelta, sentence: str, review: Review
) -> None:
    options = replace(OPTIONS, not_before=stamp(opens), not_after=stamp(closes))
    words = review(options=options).words("window")
    assert sentence in words
    assert ("Does not fit" in words) is ("too long" in sentence)


def test_a_window_that_is_over_says_so(review: Review) -> None:
    options = replace(OPTIONS, not_before=stamp(timedelta(hours=-3)), not_after=stamp(timedelta(hours=-1)))
    page = review(options=options)
    assert page.plan.window.over
    assert "21 Nov 01:03" in page.words("window")


def test_a_throttle_that_producers_outrun_is_marked(review: Review) -> None:
    busy = world({"orders": [[3, 1, 2]]}, inbound=25_000_000.0)
    words = review(busy, drained(busy, 3, instead=6)).words("window")
    assert "25.0 MB/s" in words
    assert "minimum throttle 20 MB/s is not above it" in words


def test_one_brokers_rows_are_found_and_others_are_not(review: Review) -> None:
    clicks = PartitionMove("clicks", "id-of-clicks", 1, (1, 2), (4, 2))
    page = review(rows=(*ROWS, clicks), query="?on=4")
    assert page.has("topic-clicks")
    assert not page.has("topic-orders")
    assert "clicks-1" in page.words("topic-clicks")
    assert "clicks-0" not in page.words("topic-clicks")


def test_a_broker_that_is_none_is_said_and_left_out(review: Review) -> None:
    page = review(query="?on=three&rows=risky")
    no_view, no_broker = page.plan.diff["listing"].problems
    assert no_broker == message_text(ReassignmentErrorCode.FILTER_NO_BROKER, typed="three")
    assert "“risky”" in no_view
    assert no_view in page.words("diff")
    assert no_broker in page.words("diff")
    assert page.has("topic-orders")


def test_exceptions_are_paged_without_losing_or_repeating_one(cluster: Cluster) -> None:
    many = world({f"__t{n}": [[3, 1, 2]] * 30 for n in range(8)})
    rows = drained(many, 3, instead=6)
    change = planned(cluster, many, rows, impact=impact_of(rows, many))
    seen = [
        name
        for number in (1, 2, 3)
        for name in re.findall(r'partition-name">(.*?)</td>', shown(change, f"?rows=exceptions&page={number}").html)
    ]
    assert len(seen) == len(set(seen)) == 240
    assert set(seen) == {row.name for row in rows}


def test_many_brokers__only_those_that_change_are_drawn_and_all_have_an_address(cluster: Cluster) -> None:
    large = world({"orders": [[n, n + 1, n + 2] for n in range(1, 298)]}, brokers=300)
    rows = drained(large, 250, instead=260)
    change = planned(cluster, large, rows, impact=impact_of(rows, large))
    page = shown(change)
    assert re.findall(r'id="bars-(\d+)"', page.html) == ["250", "260"]
    assert (page.plan.brokers.changed, page.plan.brokers.total, page.plan.brokers.limited) == (2, 300, True)
    assert 'href="?brokers=all#brokers"' in page.html
    assert len(re.findall(r'id="bars-(\d+)"', shown(change, "?brokers=all").html)) == 300
    assert len(re.findall(r'class="rack-cell"', page.part("racks"))) == 2 * 2


def test_the_page_of_a_large_plan_reads_no_more_than_that_of_a_small_one(cluster: Cluster) -> None:
    small = planned(cluster, WORLD, ROWS, impact=impact_of(ROWS, WORLD))
    large_world = world({f"t{n}": [[3, 1, 2]] * 100 for n in range(100)})
    rows = drained(large_world, 3, instead=6)
    large = planned(cluster, large_world, rows, impact=impact_of(rows, large_world))
    small, large = (ChangeRequest.objects.get(pk=change.pk) for change in (small, large))
    with CaptureQueriesContext(connection) as for_small:
        shown(small)
    with CaptureQueriesContext(connection) as for_large:
        html = shown(large).html
    assert len(for_small) == len(for_large) == 5
    assert not any('"rows"' in query["sql"] for query in for_large), "the rows of folds stay where they are"
    assert len(html) < 400_000


def test_the_short_facts_are_those_of_the_page(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS, impact=impact_of(ROWS, WORLD))
    change = ChangeRequest.objects.select_related("report").get(pk=change.pk)
    assert short_facts(change) == [("8", "moves"), ("24.0", "GB"), ("6 min 52 s", "at 60 MB/s")]


def stamp(distance: timedelta) -> str:
    return (NOW + distance).isoformat(timespec="seconds").replace("+00:00", "Z")

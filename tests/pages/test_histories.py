"""The history of a group: percentiles by minute, hour or day; what is not known is a gap, and its age is said.

The history of a cluster, a topic, a broker and the quorum's nodes: from the pipeline's rollups, gaps for what is not
known; rates by hour of the week.

The pipeline's page: whether history is up to date, and what keeps it; nothing old is green.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterMode, Role
from kafkadash.history.errors import HistoryErrorCode
from kafkadash.history.models import ClusterWorkload, SeriesKind, VerdictCount, VerdictDifference, Workload
from kafkadash.pipeline.errors import PipelineErrorCode
from tests.factories import NOW, BrokerFactory, ClusterFactory, TopicFactory, failed_with, watched
from tests.history_rows import beats, group_row, handed_back, looked, rolled_up, taken_in
from tests.pages.conftest import Page, figures_of
from tests.stored_messages import each_of_other_versions

URL = "/clusters/demo/groups/reader/history/"
MINUTE = NOW.replace(second=0, microsecond=0)
Get = Callable[..., Page]


@pytest.fixture
def demo_with_group(db: None) -> Cluster:
    demo = watched("demo")
    group_row(demo, "reader", NOW)
    return demo


@pytest.fixture
def get_group_history(demo_with_group: Cluster, viewer: User, client_of: Callable[[User], Client]) -> Get:
    client = client_of(viewer)

    def page(**asked: str) -> Page:
        with time_machine.travel(NOW, tick=False):
            response = client.get(URL, asked)
        assert response.status_code == 200
        return Page.read(response)

    return page


def minutes(demo: Cluster, *ago: int, **figures: Any) -> None:
    for n in ago:
        rolled_up(demo, MINUTE - timedelta(minutes=n), group="reader", **{"topic": "orders", **figures})


def chart(page: Page) -> dict[str, Any]:
    told = page.html.split('data-chart="', 1)[1].split('"', 1)[0]
    return json.loads(unescape(told))  # type: ignore[no-any-return]


def test_an_hour_of_minutes__lines_with_gaps_and_a_summary(get_group_history: Get, demo_with_group: Cluster) -> None:
    minutes(demo_with_group, 50, 49, 3, p50=4, p95=70, most=90)
    minutes(demo_with_group, 30, p50=5, p95=1200, most=1500)
    page = get_group_history(range="hour")
    first, at, last = ((MINUTE - timedelta(minutes=ago)).strftime("%H:%M") for ago in (50, 30, 3))
    assert page.figures(".chart-summary") == ["1,200", at, "70", last, first, "46", "50"]
    told = chart(page)
    p50, p95, most = (line["y"] for line in told["series"])
    assert [value for value in p95 if value is not None] == [70, 70, 1200, 70]
    assert p95.count(None) == p50.count(None) == most.count(None) == 55
    assert page.texts(".panel-head .mono") == ["orders"]
    assert told["x"][p95.index(1200)] == (MINUTE - timedelta(minutes=30)).timestamp()


def test_the_table_twin__has_the_largest_of_each_stretch(get_group_history: Get, demo_with_group: Cluster) -> None:
    minutes(demo_with_group, 4, p50=4, p95=70, most=90)
    minutes(demo_with_group, 5, p50=3, p95=80, most=81)
    page = get_group_history(range="hour")
    assert page.figures(".disclosure .muted")[-1] == "3"
    assert any(row.texts("td") in (["4", "80", "90"], ["4", "70", "90"]) for row in page.find(".disclosure tbody tr"))


@pytest.mark.parametrize(
    ("chosen", "grain", "at"),
    [
        ("week", 3600, MINUTE.replace(minute=0) - timedelta(days=3)),
        ("year", 86_400, MINUTE.replace(minute=0, hour=0) - timedelta(days=200)),
    ],
)
def test_longer_times__are_drawn_from_hours_and_days(
    get_group_history: Get, demo_with_group: Cluster, chosen: str, grain: int, at: datetime
) -> None:
    rolled_up(demo_with_group, at, grain=grain, group="reader", topic="orders", p95=5)
    rolled_up(demo_with_group, MINUTE - timedelta(minutes=1), group="reader", topic="orders", p95=777)
    page = get_group_history(range=chosen)
    assert page.figures(".chart-summary")[0] == "5"
    assert "777" not in page.text
    assert f'href="?range={chosen}&amp;topic=orders" aria-current="true"' in page.html


def test_several_topics__the_one_with_the_largest_lag_is_shown_unless_one_is_chosen(
    get_group_history: Get, demo_with_group: Cluster
) -> None:
    minutes(demo_with_group, 3, topic="small", p95=1, most=2)
    minutes(demo_with_group, 3, topic="large", p95=10, most=20)
    assert get_group_history(range="hour").texts(".panel-head .mono") == ["large"]
    assert get_group_history(range="hour", topic="small").texts(".panel-head .mono") == ["small"]
    page = get_group_history(range="hour", topic="other")
    assert page.tells(HistoryErrorCode.NO_HISTORY_OF_TOPIC)
    assert "other" in page.first(".notice[data-state=warning]").text
    assert page.texts(".panel-head .mono") == ["large"]


def test_the_pipeline_is_behind__it_is_said_and_nothing_looks_fresh(
    get_group_history: Get, demo_with_group: Cluster
) -> None:
    minutes(demo_with_group, 40)
    looked(NOW, beats(NOW, beat_at=(NOW - timedelta(minutes=40)).isoformat()))
    taken_in(NOW, newest_at=NOW - timedelta(minutes=39))
    page = get_group_history(range="hour")
    newest = (MINUTE - timedelta(minutes=40)).strftime("%H:%M")
    assert newest in page.figures(".page-head .inline-facts")
    assert page.first("[data-verdict]").get("data-verdict") == "silent"
    assert page.figures("[data-verdict]") == ["40 min"]
    assert "data-stale" in page.html
    looked(NOW, beats(NOW))
    assert not get_group_history(range="hour").find("[data-verdict=silent]")


def test_no_history__says_so_and_what_brings_it(get_group_history: Get) -> None:
    looked(NOW)
    page = get_group_history(range="year")
    assert not page.figures(".chart-summary")
    assert "python manage.py pipeline run" in page.first("[data-empty=none]").text
    assert "data-chart" not in page.html


def test_another_groups_history__is_not_shown(get_group_history: Get, demo_with_group: Cluster) -> None:
    rolled_up(demo_with_group, MINUTE - timedelta(minutes=2), group="writer", topic="orders")
    assert get_group_history(range="hour").find("[data-empty=none]")


HOUR = MINUTE.replace(minute=0)
DAY = HOUR.replace(hour=0)


@pytest.fixture
def demo_with_rows(db: None) -> Cluster:
    demo = watched("demo")
    TopicFactory.create(cluster=demo, name="orders")
    BrokerFactory.create(cluster=demo, broker_id=7)
    return demo


@pytest.fixture
def get_history(demo_with_rows: Cluster, viewer: User, client_of: Callable[[User], Client]) -> Get:
    client = client_of(viewer)

    def page(of: str, **asked: Any) -> Page:
        with time_machine.travel(NOW, tick=False):
            response = client.get(f"/clusters/demo/{of}{'/' if of else ''}history/", asked)
        assert response.status_code == 200
        return Page.read(response)

    return page


def charts(page: Page) -> list[dict[str, Any]]:
    return [json.loads(unescape(told.split('"', 1)[0])) for told in page.html.split('data-chart="')[1:]]


def known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def test_topic__lag_of_all_groups_and_bytes_on_disk(get_history: Get, demo_with_rows: Cluster) -> None:
    topic: dict[str, Any] = {"kind": SeriesKind.TOPIC, "topic": "orders"}
    rolled_up(demo_with_rows, MINUTE - timedelta(minutes=9), **topic, p50=1, p95=4, most=5, other=2_500_000)
    rolled_up(demo_with_rows, MINUTE - timedelta(minutes=3), **topic, p50=1, p95=3, most=5, other=None)
    page = get_history("topics/orders", range="hour")
    at, last = ((MINUTE - timedelta(minutes=ago)).strftime("%H:%M") for ago in (9, 3))
    of_lag, of_size, *_ = page.texts(".chart-summary")
    assert figures_of(of_lag) == ["4", at, "3", last, at, "7", "9"]
    assert figures_of(of_size) == ["2.5 MB", at, at, "8", "9"]
    lag, size = charts(page)
    assert [line["label"] for line in lag["series"]] == ["p50", "p95", "max"]
    assert size["unit"] == "MB"
    assert known(size["series"][0]["y"]) == [2.5]
    assert page.html.count('aria-label="Time range"') == 1


def test_topic_that_nobody_reads__has_its_size_and_no_lag(get_history: Get, demo_with_rows: Cluster) -> None:
    nobody: dict[str, Any] = dict.fromkeys(("most", "p50", "p95", "p99", "mean"))
    rolled_up(demo_with_rows, HOUR, kind=SeriesKind.TOPIC, topic="orders", grain=3600, samples=0, other=9, **nobody)
    looked(NOW, beats(NOW))
    taken_in(NOW)
    page = get_history("topics/orders", range="week")
    lag, size, *_ = page.find("figure.chart")
    assert lag.find("[data-empty=none]")
    assert not size.find("[data-empty=none]")
    assert figures_of(size.first(".chart-summary").text)[0] == "9 B"
    assert len(charts(page)) == 1


def test_broker__bytes_are_the_mean_of_a_replica_times_their_number(get_history: Get, demo_with_rows: Cluster) -> None:
    broker: dict[str, Any] = {"kind": SeriesKind.BROKER, "grain": 86_400}
    rolled_up(demo_with_rows, DAY - timedelta(days=30), node=7, most=900, mean=250.5, other=4, **broker)
    rolled_up(demo_with_rows, DAY - timedelta(days=20), node=7, most=900, mean=None, other=6, **broker)
    rolled_up(demo_with_rows, DAY - timedelta(days=10), node=8, most=77_777, mean=77_777.0, other=1, **broker)
    page = get_history("brokers/7", range="year")
    at = (DAY - timedelta(days=30)).strftime("%-d %b")
    assert figures_of(page.texts(".chart-summary")[0])[:2] == ["1.0 kB", at]
    size, number = charts(page)
    assert known(size["series"][0]["y"]) == [1.002]
    assert known(size["series"][1]["y"]) == [0.9, 0.9]
    assert known(number["series"][0]["y"]) == [4, 6]
    assert page.context["panels"][0].shown.of in page.texts(".disclosure .muted")[0]
    assert "77" not in str(charts(page)[0]["series"])


def test_quorum__the_node_that_was_farthest_behind_unless_one_is_chosen(
    get_history: Get, demo_with_rows: Cluster
) -> None:
    hour: dict[str, Any] = {"kind": SeriesKind.QUORUM, "grain": 3600}
    rolled_up(demo_with_rows, HOUR - timedelta(hours=2), node=0, p95=40, most=90, other=31, changes=0, **hour)
    rolled_up(demo_with_rows, HOUR - timedelta(hours=2), node=2, p95=400, most=25_000, other=31, changes=2, **hour)
    page = get_history("quorum", range="week")
    assert page.texts(".panel h2 .mono")[0] == "2"
    lag, fetch = charts(page)
    assert lag["unit"] == "s"
    assert known(lag["series"][2]["y"]) == [25]
    assert [mark["label"] for mark in lag["marks"]] == ["2 leader changes"]
    assert known(fetch["series"][0]["y"]) == [31]
    assert "unknown unknown unknown unknown" in page.text  # changes of the leader are not known either
    chosen = get_history("quorum", range="week", node="0")
    assert chosen.texts(".panel h2 .mono")[0] == "0"
    assert 'href="?range=year&amp;node=0"' in chosen.html
    assert "marks" not in charts(chosen)[0]


def test_cluster__lag_of_all_groups_and_traffic_of_all_topics(get_history: Get, demo_with_rows: Cluster) -> None:
    hour: dict[str, Any] = {"grain": 3600}
    at = HOUR - timedelta(hours=30)
    rolled_up(demo_with_rows, at, kind=SeriesKind.CLUSTER, p50=1, p95=4, most=5, **hour)
    rolled_up(demo_with_rows, at, kind=SeriesKind.BYTES_IN, mean=2_500_000.4, most=4_000_000, other=0, **hour)
    rolled_up(demo_with_rows, at, kind=SeriesKind.RECORDS_IN, mean=400.0, most=1_204_000, other=0, **hour)
    rolled_up(demo_with_rows, at, kind=SeriesKind.BYTES_IN, topic="orders", mean=77_000_000.0, **hour)
    rolled_up(demo_with_rows, at, kind=SeriesKind.BYTES_IN, node=7, mean=77_000_000.0, **hour)
    page = get_history("", range="week")
    lag, octets, records = charts(page)
    assert known(lag["series"][1]["y"]) == [4]
    assert octets["unit"] == "MB/s"
    assert [known(line["y"]) for line in octets["series"]] == [[2.5], [4.0]]
    assert (records["unit"], [known(line["y"]) for line in records["series"]]) == ("/s", [[0.4], [1204.0]])
    clock = at.strftime("%-d %b %H:%M")
    of_lag, of_bytes, of_records = page.texts(".chart-summary")
    assert clock in of_lag
    assert "2.5 MB/s" in of_bytes
    assert "0.4/s" in of_records
    assert page.html.count('aria-label="Time range"') == 1


@pytest.mark.parametrize(
    ("of", "subject"), [("topics/orders", {"topic": "orders"}), ("brokers/7", {"node": 7})], ids=["topic", "broker"]
)
def test_traffic__of_this_subject_alone__with_what_its_sums_leave_out(
    get_history: Get, demo_with_rows: Cluster, of: str, subject: dict[str, Any]
) -> None:
    for ago, left_out in ((9, 0), (3, 2)):
        hour: dict[str, Any] = {"grain": 3600, "most": 9_000, "mean": 9_000.0}
        at = HOUR - timedelta(hours=ago)
        rolled_up(demo_with_rows, at, kind=SeriesKind.BYTES_IN, other=left_out, **hour, **subject)
        rolled_up(demo_with_rows, at, kind=SeriesKind.RECORDS_IN, other=0, **hour, **subject)
        rolled_up(demo_with_rows, at, kind=SeriesKind.BYTES_IN, **{**hour, "mean": 7.0}, other=5)
        rolled_up(demo_with_rows, at, kind=SeriesKind.RECORDS_IN, **{**hour, "mean": 7.0}, other=5)
    page = get_history(of, range="week")
    octets, records = charts(page)
    assert (octets["unit"], known(octets["series"][0]["y"])) == ("kB/s", [9.0, 9.0])
    assert (records["unit"], known(records["series"][0]["y"])) == ("/s", [9.0, 9.0])
    last = (HOUR - timedelta(hours=3)).strftime("%-d %b %H:%M")
    of_bytes, of_records = page.texts(".chart-summary")[2:]
    assert figures_of(of_bytes)[:3] == ["9.0 kB/s", last, "2"]
    assert figures_of(of_records)[:2] == ["9.0", last]
    # Minutes of rates are not stored: the subject's own page has its last day.
    assert len(get_history(of, range="day").texts(".chart-summary")) == 2


def week_of(**rates: int | None) -> dict[str, list[int | None]]:
    """``rates``: h0 … h167."""
    return {"in": [rates.get(f"h{hour}") for hour in range(168)], "without": []}


@pytest.mark.parametrize("of", ["", "topics/orders"])
def test_rates_by_hour_of_the_week__a_row_per_day_with_24_hours(
    get_history: Get, demo_with_rows: Cluster, of: str
) -> None:
    by_hour = {**week_of(h0=0, h38=4_200_000, h167=400), "without": [0] * 167 + [3]}
    known_of = {"by_hour": by_hour, "from_at": NOW - timedelta(days=7), "to_at": NOW, "version": 1}
    if of:
        Workload.objects.create(cluster=demo_with_rows, topic="orders", partitions=[], **known_of)
    else:
        ClusterWorkload.objects.create(cluster=demo_with_rows, **known_of)
    page = get_history(of, range="week")
    rows = page.find("#week-history tbody tr")
    assert [len(row.find("td")) for row in rows] == [24] * 7
    cells = [text for row in rows for text in row.texts("td")]
    assert {hour: text for hour, text in enumerate(cells) if text != "–"} == {0: "0.0", 38: "4.2", 167: "≥ 0.0"}
    levels = [cell.get("data-heat") for row in rows for cell in row.find("td")]
    assert {hour: level for hour, level in enumerate(levels) if level != "0"} == {38: "5", 167: "1"}
    assert figures_of(page.first("#week-history .chart-summary").text) == [
        "14:00", "4.2 MB/s", "00:00", "0 B/s", "165", "3"
    ]  # fmt: skip


def test_rates_by_hour_of_the_week__without_a_model__says_what_brings_them(get_history: Get) -> None:
    page = get_history("topics/orders", range="week")
    assert page.find("#week-history [data-empty=none]")
    assert not page.find("#week-history table")


def test_zookeeper__has_no_quorum_to_tell_of(get_history: Get, demo_with_rows: Cluster) -> None:
    Cluster.objects.filter(pk=demo_with_rows.pk).update(mode=ClusterMode.ZOOKEEPER)
    looked(NOW)
    page = get_history("quorum")
    assert page.find("#no-quorum [data-empty=zookeeper]")
    assert not charts(page)


@pytest.mark.parametrize("of", ["topics/nothing", "brokers/77"])
def test_what_was_never_seen__has_no_history(
    of: str, demo_with_rows: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    assert client_of(viewer).get(f"/clusters/demo/{of}/history/").status_code == 404


@pytest.mark.parametrize("of", ["topics/orders", "brokers/7"])
def test_its_page__leads_to_its_history(
    of: str, demo_with_rows: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    page = client_of(viewer).get(f"/clusters/demo/{of}/").content.decode()
    assert f'href="/clusters/demo/{of}/history/"' in page
    for chosen in ("week", "year"):
        assert f'href="/clusters/demo/{of}/history/?range={chosen}#bytes-in-history"' in page


@pytest.mark.parametrize("of", ["", "trends/"])
def test_trends_of_a_cluster__lead_to_its_history(
    of: str, demo_with_rows: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    assert 'href="/clusters/demo/history/"' in client_of(viewer).get(f"/clusters/demo/{of}").content.decode()


@pytest.mark.parametrize(("chosen", "look"), [("day", "longer"), ("year", "shorter")])
def test_nothing_in_this_time__says_where_there_may_be_some(get_history: Get, chosen: str, look: str) -> None:
    looked(NOW, beats(NOW))
    taken_in(NOW)
    assert get_history("topics/orders", range=chosen).first("[data-look]").get("data-look") == look


PIPELINE_URL = "/pipeline/"
GetPipeline = Callable[[], Page]


@pytest.fixture
def old_demo(db: None) -> Cluster:
    return ClusterFactory.create(name="demo", created_at=NOW - timedelta(days=40))


@pytest.fixture
def get_pipeline(old_demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> GetPipeline:
    client = client_of(viewer)

    def page() -> Page:
        with time_machine.travel(NOW, tick=False):
            response = client.get(PIPELINE_URL)
        assert response.status_code == 200
        return Page.read(response)

    return page


def ago(**length: float) -> str:
    return (NOW - timedelta(**length)).isoformat()


def verdict(page: Page) -> tuple[str, str]:
    """How the pipeline stands, and in which state that is shown."""
    pills = page.states("#pipeline-head .status-pill")
    return page.first("#pipeline-head").get("data-verdict"), pills[0] if pills else "ok"


def test_first_run__says_what_is_missing_and_how_to_start_it(get_pipeline: GetPipeline) -> None:
    assert verdict(get_pipeline()) == ("never-looked", "unknown")
    looked(NOW)
    page = get_pipeline()
    assert verdict(page) == ("not-started", "unknown")
    assert page.texts("#pipeline-beat code") == ["python manage.py pipeline run"]
    assert page.find("#pipeline-batches [data-empty=none]")
    assert 'data-state="unknown"' in page.html


def test_all_is_well__it_says_up_to_when(get_pipeline: GetPipeline) -> None:
    looked(NOW, beats(NOW))
    taken_in(NOW)
    page = get_pipeline()
    assert verdict(page) == ("up-to-date", "ok")
    facts = page.facts("#pipeline-beat")
    assert facts["Status"] == "idle (host spark-1)"
    assert figures_of(facts["Last batch"])[0] == "41"
    assert figures_of(facts["Event lag"]) == ["5 s"]
    assert "status-pill" not in page.html
    assert "4.0 s" in page.text  # from the segment to the row


@pytest.mark.parametrize(
    ("beat", "row", "code", "told"),
    [
        ({"beat_at": ago(seconds=16)}, {}, ("silent", "warning"), "16 s"),
        ({"beat_at": ago(hours=3)}, {}, ("silent", "warning"), "3 h"),
        ({"beat_at": "soon"}, {}, ("silent", "warning"), ""),
        ({"state": "failed", "fault": "No room is left."}, {}, ("failed", "warning"), "No room is left."),
        ({"state": "stopped", "beat_at": ago(minutes=2)}, {}, ("stopped", "warning"), "2 min"),
        ({}, {"segments_waiting": 7, "oldest_waiting_at": NOW - timedelta(minutes=1)}, ("behind", "warning"), "1 min"),
        ({}, {"results_waiting": 2}, ("not-taken-in", "warning"), "2"),
        ({}, {"looked_at": NOW - timedelta(minutes=2)}, ("no-worker", "unknown"), ""),
        (
            {},
            {"looked_at": NOW - timedelta(minutes=2), **failed_with("The disk is away.")},
            ("unreadable", "unknown"),
            "The disk is away.",
        ),
    ],
)
def test_something_is_wrong__the_title_says_what(
    get_pipeline: GetPipeline, beat: dict[str, Any], row: dict[str, Any], code: tuple[str, str], told: str
) -> None:
    looked(NOW, beats(NOW, **beat), **row)
    taken_in(NOW)
    page = get_pipeline()
    assert verdict(page) == code
    assert told in page.words("pipeline-head")


@each_of_other_versions
def test_a_fault_of_another_version__is_shown_as_stored(
    get_pipeline: GetPipeline, code: str, params: dict[str, Any]
) -> None:
    looked(NOW, beats(NOW), last_error_code=code, last_error_params=params, looked_at=NOW - timedelta(minutes=2))
    assert get_pipeline().text.count(code) == 2 * 2, "in the title and in the panel, in the text and beside it"


@each_of_other_versions
def test_a_message_of_another_pipeline__is_shown_as_stored(
    get_pipeline: GetPipeline, code: str, params: dict[str, Any]
) -> None:
    stored = {"code": code, "params": params}
    looked(NOW, beats(NOW, state="failed", fault=stored))
    taken_in(NOW, set_aside=[{"file": "x", "why": stored}])
    page = get_pipeline()
    assert code in page.words("pipeline-aside")
    assert page.text.count(code) == 2 * 3, "in the title, as the fault and for the file, in the text and beside it"


@pytest.mark.parametrize("fault", ["No room is left.", 7, {"code": "x", "params": 3}, [1]])
def test_a_fault_that_is_no_message__breaks_no_page(get_pipeline: GetPipeline, fault: object) -> None:
    looked(NOW, beats(NOW, state="failed", fault=fault))
    taken_in(NOW)
    assert "Pipeline failed" in get_pipeline().text


def test_two_missed_signs__are_none_yet(get_pipeline: GetPipeline) -> None:
    looked(NOW, beats(NOW, beat_at=ago(seconds=15)))
    taken_in(NOW)
    assert verdict(get_pipeline()) == ("up-to-date", "ok")


def test_the_pipeline_runs_and_has_handed_nothing_back__is_not_green(get_pipeline: GetPipeline) -> None:
    looked(NOW, beats(NOW, last_batch=None, last_batch_at=None, last_batch_seconds=None, event_lag_seconds=None))
    page = get_pipeline()
    assert verdict(page) == ("nothing-yet", "unknown")
    assert not figures_of(page.facts("#pipeline-beat")["Last batch"])


def test_verdicts_differ__in_numbers_and_the_newest_of_them(get_pipeline: GetPipeline, old_demo: Cluster) -> None:
    handed_back(old_demo, 1, NOW)
    VerdictCount.objects.update(judged=400, differed=1)
    page = get_pipeline()
    assert page.figures("#agreement") == ["1", "400", "0.25 %"]
    difference = VerdictDifference.objects.get()
    assert page.cells(f"difference-{difference.pk}")[:4] == ["g t-1", "demo", "stall", "ok"]
    VerdictCount.objects.update(judged=400_000, differed=1)
    assert get_pipeline().figures("#agreement") == ["1", "400,000", "0.01 %"]
    VerdictCount.objects.update(judged=400, differed=0)
    assert get_pipeline().figures("#agreement") == ["400"]


def test_a_query_that_began_anew__counts_in_an_hour_only_where_it_judged_more(
    get_pipeline: GetPipeline, old_demo: Cluster
) -> None:
    handed_back(old_demo, 1, NOW)
    first = VerdictCount.objects.get()
    VerdictCount.objects.update(query="q1", judged=400, differed=1)
    again = VerdictCount.objects.create(query="q2", cluster=old_demo, hour=first.hour, judged=300, differed=2)
    assert get_pipeline().figures("#agreement") == ["1", "400", "0.25 %"]
    VerdictCount.objects.filter(pk=again.pk).update(judged=500)
    assert get_pipeline().figures("#agreement") == ["2", "500", "0.40 %"]


def test_what_was_compared_a_day_ago__is_not_counted(get_pipeline: GetPipeline, old_demo: Cluster) -> None:
    VerdictCount.objects.create(cluster=old_demo, hour=NOW - timedelta(hours=25), judged=5, differed=5)
    assert get_pipeline().find("#pipeline-verdicts [data-empty=none]")


def test_what_was_set_aside__has_its_sentence(get_pipeline: GetPipeline, old_demo: Cluster) -> None:
    handed_back(old_demo, 1, NOW)
    page = get_pipeline()
    file, why = page.cells("aside-1")[:2]
    assert file == "lag_rollup/q1-1"
    assert PipelineErrorCode.FILE_TRUNCATED in why


def test_of_clusters_that_one_may_not_view__nothing_is_shown(
    get_pipeline: GetPipeline, old_demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    other = ClusterFactory.create(name="secret")
    handed_back(other, 1, NOW)
    VerdictDifference.objects.update(group="hidden")
    reader = client_of(make_user("reader", Role.VIEWER, old_demo))
    with time_machine.travel(NOW, tick=False):
        page = Page(reader.get(PIPELINE_URL).content.decode())
    text = page.text
    assert "secret" not in text
    assert "hidden" not in text
    assert page.find("#pipeline-verdicts [data-empty=none]")
    assert "secret" in get_pipeline().text


def test_without_any_role__it_is_refused_and_not_in_the_navigation(
    old_demo: Cluster, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    client = client_of(make_user("nobody"))
    assert client.get(PIPELINE_URL).status_code == 403
    assert PIPELINE_URL not in client.get("/").content.decode()

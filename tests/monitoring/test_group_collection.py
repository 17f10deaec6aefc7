"""Consumer groups as the collector stores and judges them.

Rules about allowed lag: made, changed and taken away on their page, audited, and asked for by the collector.
"""

from __future__ import annotations

import io
import json
import zlib
from collections import abc
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from pytest_django import Settings

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.allowed_lag import MOST_RULES, allow_lag, allowed_for
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import AllowedLag, Cluster
from kafkadash.clusters.services import ClusterRefused
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import CodedMessage, as_message, coded, message_text
from kafkadash.export.models import SegmentOutbox
from kafkadash.export.schema import SegmentKind
from kafkadash.kafka.api import GroupMember, KafkaUnreachable, LogSpans, OpenTransaction, OtherGroup, ShareOffset
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring import collection
from kafkadash.monitoring.cluster_events.rules import EventCode
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.allowed_lag import RuleRow
from kafkadash.monitoring.groups.names import key_of
from kafkadash.monitoring.groups.shares import read_partitions, read_share_members
from kafkadash.monitoring.groups.window import NOT_KNOWN, unpack_window
from kafkadash.monitoring.models import ClusterEvent, Collection, CollectorRun, GroupLagPoint, GroupState, UnjudgedGroup
from tests.factories import NOW, watched
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import REFUSED, SILENT, MemoryCluster, MemoryGroups
from tests.monitoring.written_rows import written_rows
from tests.pages.conftest import text_of

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], RefreshOutcome]
INTERVAL = 30


class _Both(MemoryCluster):
    """A cluster that has groups as well."""

    def __init__(self, clock: Clock, groups: MemoryGroups) -> None:
        super().__init__(clock)
        self.groups, self.committed, self._spans = groups.groups, groups.committed, groups.log_spans
        self.share_offsets = groups.share_offsets
        self.stable_spans = groups.stable_spans
        self.open_transactions = groups.open_transactions  # type: ignore[method-assign]
        self.transactional_ids = groups.transactional_ids

    def log_spans(self, partitions: Mapping[str, abc.Collection[int]], *, deadline: float) -> LogSpans:
        return self._spans(partitions, deadline=deadline)


@pytest.fixture
def groups(clock: Clock, kafka: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> MemoryGroups:
    memory = MemoryGroups(clock)
    both = _Both(clock, memory)
    monkeypatch.setattr(collection, "admin_for", lambda _: both)
    return memory


@pytest.fixture
def look(refresh: Refresher, clock: Clock, groups: MemoryGroups) -> Callable[..., GroupState]:
    """Refreshes so many times, an interval apart, and returns the group ``g``."""

    def look(times: int = 1, name: str = "g", apart: float = INTERVAL) -> GroupState:
        for _ in range(times):
            clock.pass_by(apart)
            assert not refresh("groups").error
        return GroupState.objects.get(name=name)

    return look


Look = Callable[..., GroupState]


def test_commits__are_read_before_the_ends_of_the_logs(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 90}})

    def written_and_read(call: str) -> None:
        """Between the two questions somebody writes 50 and the group reads all of them."""
        if call == "log_spans":
            groups.logs["t"][0][1] = 150
            groups.all["g"].committed["t"][0] = 150

    groups.before_answer = written_and_read
    assert look().lag == 60
    assert groups.calls == ["groups", "committed", "log_spans"]


def test_a_new_group__is_collecting_until_there_are_ten_samples(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 100}}, members={"c": {"t": [0]}})
    assert look(9).verdict == "unknown"
    row = look()
    assert (row.verdict, row.lag, row.counts) == ("ok", 0, {"ok": 1})


@pytest.mark.parametrize(("members", "state"), [({"c": {"t": [0]}}, "stall"), ({}, "stop"), (None, "err")])
def test_offsets_that_stand_still__stall_with_members_and_stop_without(
    members: dict[str, dict[str, list[int]]] | None, state: str, groups: MemoryGroups, look: Look
) -> None:
    groups.log("t", [100, 7])
    groups.add("g", {"t": {0: 40, 1: 7}}, members=members)
    row = look(10)
    assert (row.verdict, row.worst, row.worst_topic, row.worst_partition, row.worst_lag) == ("err", state, "t", 0, 60)
    assert row.counts == {state: 1, "ok": 1}
    assert row.topics == {"t": [2, 60, state]}


def test_what_is_allowed__holds_from_the_next_look_on(groups: MemoryGroups, look: Look, cluster: Cluster) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 40}})
    groups.add("other", {"t": {0: 40}})
    assert look(10).verdict == "err"
    allow_lag("somebody", cluster, "g*", "60")
    row = look()
    assert (row.verdict, row.worst, row.allowed_lag) == ("ok", "ok", 60)
    assert (look(name="other").verdict, look(name="other").allowed_lag) == ("err", 0)
    allow_lag("somebody", cluster, "g", "59")
    assert look().verdict == "err"


def test_a_commit_beyond_the_end__leaves_the_lag_unknown_and_never_below_zero(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100, 100])
    groups.add("g", {"t": {0: 2**63 - 1, 1: 90}})
    row = look(10)
    assert (row.lag, row.lag_unknown, row.lost, row.counts) == (10, 1, 0, {"unknown": 1, "stop": 1})


def test_a_log_that_starts_past_the_commit__counts_what_was_lost(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [500], start=300)
    groups.add("g", {"t": {0: 120}})
    row = look()
    assert (row.lost, row.lag) == (180, 380)


def test_an_assigned_partition_without_a_commit__has_no_lag(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100, 100])
    groups.add("g", {"t": {0: 90}}, members={"c": {"t": [0, 1]}})
    row = look()
    assert (row.partitions, row.lag, row.lag_unknown) == (2, 10, 1)


def last_errors() -> list[dict[str, Any]]:
    return list(Collection.objects.latest("pk").errors)


def test_a_log_end_that_nobody_told__leaves_the_lag_unknown(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 90}, "deleted": {0: 5}})
    row = look()
    assert (row.lag, row.lag_unknown, row.counts) == (10, 1, {"unknown": 2})
    assert (
        coded(CollectionErrorCode.LOG_ENDS_NOT_READ, partitions=1, why=as_message("does not exist")).as_json()
        in last_errors()
    )


def test_nine_thousand_empty_groups__are_written_once_and_then_only_age(
    groups: MemoryGroups, refresh: Refresher, clock: Clock
) -> None:
    for number in range(9000):
        groups.add(f"empty-{number}")
    refresh("groups")
    assert GroupState.objects.filter(verdict="", lag=None, partitions=0, members=0).count() == 9000
    assert not GroupLagPoint.objects.exists()
    clock.pass_by(INTERVAL)
    with written_rows() as rows:
        refresh("groups")
    assert rows["monitoring_groupstate"] == 9000
    assert rows["monitoring_groupwindow"] == rows["monitoring_grouplagpoint"] == 0


def test_an_idle_group__has_its_window_written_ten_times_and_one_point(
    groups: MemoryGroups, look: Look, refresh: Refresher, clock: Clock
) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 100}})
    look(11)
    clock.pass_by(INTERVAL)
    with written_rows() as rows:
        refresh("groups")
    assert rows["monitoring_groupwindow"] == 0
    assert rows["monitoring_groupstate"] == 1
    # Collecting, with a time lag from the second sample on; how long that held; OK.
    assert [(p.worst, (p.at - p.since).total_seconds()) for p in GroupLagPoint.objects.order_by("at", "since")] == [
        ("unknown", 0),
        ("unknown", 0),
        ("unknown", 7 * INTERVAL),
        ("ok", 0),
    ]


def test_a_group_deleted_between_two_calls__has_no_partitions_and_is_gone_with_the_next_list(
    groups: MemoryGroups, look: Look
) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 90}})
    look()

    def deleted(call: str) -> None:
        if call == "committed":
            groups.all.pop("g", None)

    groups.before_answer = deleted
    row = look()
    assert (row.partitions, row.verdict, row.gone_at) == (0, "", None)
    row = look()
    assert row.gone_at is not None


def test_a_group_that_comes_back__begins_anew(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    group = groups.add("g", {"t": {0: 100}})
    look(10)
    del groups.all["g"]
    assert look().gone_at is not None
    groups.all["g"] = group
    row = look()
    assert (row.gone_at, row.verdict, len(row.times)) == (None, "unknown", 1)


def test_a_broker_that_lists_nothing__leaves_its_groups_with_their_age(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 90}}, coordinator=2)
    groups.add("other", {"t": {0: 100}}, coordinator=1)
    before = look()
    groups.silent = {2}
    after = look()
    assert (after.gone_at, after.taken_at, after.lag) == (None, before.taken_at, 10)
    last = Collection.objects.latest("pk")
    assert (last.ok, last.not_answered) == (True, [2])
    assert [(each["code"], each["params"]["broker"]) for each in last.errors] == [
        (CollectionErrorCode.BROKER_NOT_READ, 2)
    ]


def test_commits_that_may_not_be_read__leave_the_row_with_its_age(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 90}})
    before = look()
    groups.unread = {"g"}
    after = look()
    assert (after.taken_at, after.gone_at) == (before.taken_at, None)
    assert last_errors()[0]["code"] == CollectionErrorCode.COMMITS_NOT_READ


def test_a_group_that_may_not_be_described__has_unknown_members(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 90}}, members={"c": {"t": [0]}})
    seen = look()
    groups.all["g"].members = None
    row = look()
    assert (row.members, row.members_since, row.lag) == (None, seen.members_since, 10)
    assert last_errors()[0]["code"] == CollectionErrorCode.GROUPS_NOT_DESCRIBED


def test_every_broker_silent__is_a_failed_refresh(groups: MemoryGroups, refresh: Refresher) -> None:
    groups.silent = {1, 2}
    assert SILENT.text in str(refresh("groups").error)
    assert CollectorRun.objects.get(kind="groups").last_failure == FailureKind.UNREACHABLE


def test_a_restart__goes_on_with_the_stored_samples(groups: MemoryGroups, look: Look, cluster: Cluster) -> None:
    """Nothing is kept but rows, so every refresh here is one; another worker takes over in between."""
    groups.log("t", [100])
    groups.add("g", {"t": {0: 0}}, members={"c": {}})
    for committed in range(1, 6):
        groups.all["g"].committed["t"][0] = committed
        look()
    CollectorRun.objects.filter(cluster=cluster, kind="groups").update(epoch=900)
    for committed in range(6, 11):
        groups.all["g"].committed["t"][0] = committed
        look()
    row = GroupState.objects.get()
    assert [column[0] for column in unpack_window(bytes(row.window.data)).committed] == list(range(1, 11))
    assert (row.verdict, len(row.times)) == ("ok", 10)


def test_nobody_looked_for_long__begins_a_new_window(groups: MemoryGroups, look: Look, clock: Clock) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 100}})
    look(10)
    clock.pass_by(INTERVAL)
    assert look().verdict == "ok"  # one missed refresh is no gap
    clock.pass_by(7 * INTERVAL)
    assert look().verdict == "ok", "nor are seven: a coordinator moved, or workers were started again"
    clock.pass_by(18 * INTERVAL)
    row = look()
    assert (row.verdict, len(row.times)) == ("unknown", 1)
    assert unpack_window(bytes(row.window.data)).samples == 1


def test_members__are_stored_in_an_order_of_their_own_with_since_when(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100, 100])
    group = groups.add("g", {"t": {0: 90}}, members={"b": {"t": [1]}, "a": {"t": [0]}})
    first = look()
    rows = json.loads(zlib.decompress(bytes(first.window.members)))
    assert [(row[1], row[4]) for row in rows] == [("a", {"t": [0]}), ("b", {"t": [1]})]
    group.members = {"a": {"t": [0]}, "b": {"t": [1]}}
    assert look().members_since == first.members_since
    group.members = {"a": {"t": [0, 1]}}
    row = look()
    assert (row.members, row.members_since) == (1, row.taken_at)


def test_the_verdict__says_since_when_it_is(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 100}}, members={"c": {}})
    began = look(10)
    assert began.verdict_since == began.taken_at
    assert look(3).verdict_since == began.taken_at


def test_any_name__is_stored(groups: MemoryGroups, look: Look) -> None:
    names = ["", "a/b", "..", "ü" * 300, "n" * 30_000, "quote'\"", "emoji 🦉"]
    for name in names:
        groups.add(name)
    groups.add("with \x00")
    look(name="")
    assert set(GroupState.objects.values_list("name", flat=True)) == set(names)
    assert last_errors() == [coded(CollectionErrorCode.GROUPS_UNSTORABLE, groups=1).as_json()]


def test_a_partition_that_was_not_seen_before__is_unknown_in_older_samples(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100, 50])
    group = groups.add("g", {"t": {0: 100}})
    look(2)
    group.committed["t"][1] = 50
    row = look()
    window = unpack_window(bytes(row.window.data))
    assert [list(column) for column in window.committed] == [[100, NOT_KNOWN], [100, NOT_KNOWN], [100, 50]]


def test_each_pair__is_a_fact_for_the_pipeline_with_the_look_before(
    groups: MemoryGroups, look: Look, clock: Clock
) -> None:
    groups.log("t", [100, 7], start=2)
    group = groups.add("g", {"t": {0: 40}}, members={"c": {"t": [0, 1]}})
    look()
    before = clock.now
    group.committed["t"][0] = 60
    look()
    packed = SegmentOutbox.objects.filter(kind=SegmentKind.GROUP_OFFSET).latest("pk")
    rows = pq.read_table(io.BytesIO(bytes(packed.data))).to_pylist()
    assert [(r["partition"], r["committed"], r["log_start"], r["log_end"], r["lag"]) for r in rows] == [
        (0, 60, 2, 100, 40),
        (1, None, 2, 7, None),
    ]
    assert [(r["previous_committed"], r["previous_lag"]) for r in rows] == [(40, 60), (None, None)]
    assert {(r["group"], r["topic"], r["group_state"], r["members"], r["allowed_lag"], r["verdict"]) for r in rows} == {
        ("g", "t", "Stable", 1, 0, "unknown")
    }
    assert rows[0]["previous_at"].timestamp() == pytest.approx(before, abs=0.001)


def test_a_refresh_that_was_broken_off__is_no_sample(groups: MemoryGroups, look: Look) -> None:
    """Its portions are stored, and that it was made is not: the first of all, two in a row, and one by itself."""

    def broken_off(apart: float = INTERVAL) -> None:
        look(apart=apart)
        Collection.objects.latest("pk").delete()

    groups.log("t", [100])
    group = groups.add("g", {"t": {0: 0}})
    broken_off()
    assert len(look().times) == 1, "nothing came before it"
    for committed in (10, 20):
        group.committed["t"][0] = committed
        look()
    for committed in (30, 40):
        group.committed["t"][0] = committed
        broken_off()
    group.committed["t"][0] = 50
    row = look()
    assert len(row.times) == 4
    group.committed["t"][0] = 60
    broken_off()
    group.committed["t"][0] = 70
    window = unpack_window(bytes(look().window.data))
    assert [list(column) for column in window.committed] == [[0], [10], [20], [50], [70]]


def test_the_interval__is_a_setting(settings: Settings) -> None:
    assert settings.COLLECT_INTERVALS["groups"] == INTERVAL


def test_after_a_gap__what_waited_is_in_doubt_until_it_is_judged_again(groups: MemoryGroups, look: Look) -> None:
    """Its finding stays as long: nobody can tell that it reads."""
    groups.log("t", [100, 100, 100])
    groups.add("g", {"t": {0: 0, 1: 100}}, members={"reader": {"t": (0, 1)}})
    row = look(10)
    assert (row.worst, row.in_doubt) == ("stall", 0)
    row = look(apart=11 * INTERVAL)
    assert (row.worst, row.in_doubt) == ("unknown", 1), "of the other, nothing waits"
    assert look(8).in_doubt == 1
    row = look()
    assert (row.worst, row.in_doubt) == ("stall", 0)


def test_groups_of_other_kinds__are_stored_by_name_and_kind_and_go_when_they_are_gone(
    groups: MemoryGroups, refresh: Refresher
) -> None:
    def stored() -> list[tuple[str, str, str]]:
        return list(UnjudgedGroup.objects.order_by("name").values_list("name", "kind", "state"))

    groups.others = {name: OtherGroup(name, kind, "Stable") for name, kind in (("s-1", "share"), ("a-1", "streams"))}
    assert not refresh("groups").error, "it is an answer, although it has no consumer group"
    assert stored() == [("a-1", "streams", "Stable"), ("s-1", "share", "Stable")]
    groups.others = {"s-1": OtherGroup("s-1", "share", "Empty")}
    groups.silent = {2}
    refresh("groups")
    assert stored() == [("a-1", "streams", "Stable"), ("s-1", "share", "Empty")], "broker 2 may have the other one"
    groups.silent = set()
    refresh("groups")
    assert stored() == [("s-1", "share", "Empty")]
    groups.others = {}
    groups.add("s-1")
    refresh("groups")
    assert stored() == []


def test_share_group__offsets_lag_and_members_are_stored_and_kept_while_nobody_tells(
    groups: MemoryGroups, refresh: Refresher, clock: Clock
) -> None:
    def stored() -> UnjudgedGroup:
        return UnjudgedGroup.objects.get(name="s-1")

    reader = GroupMember("m-1", "picker", "10.0.0.1", None, {"t": [0, 1, 2]})
    groups.log("t", [100, 200, 300])
    groups.others = {"s-1": OtherGroup("s-1", "share", "Stable", True, 2, [reader])}
    groups.shared = {"s-1": {"t": {0: ShareOffset(40, 12), 1: ShareOffset(0, None)}}}
    assert not refresh("groups").error
    row = stored()
    assert (row.is_share, row.coordinator, row.members, row.topics) == (True, 2, 1, ["t"])
    assert (row.partitions, row.lag, row.lag_unknown) == (3, 12, 2)
    before = [("t", 0, 40, 100, 12), ("t", 1, 0, 200, None), ("t", 2, None, 300, None)]
    assert read_partitions(row) == before
    assert [member.client_id for member in read_share_members(row)] == ["picker"]

    groups.unread = {"s-1"}
    groups.others = {"s-1": OtherGroup("s-1", "share", "Empty", True, 3, None, REFUSED)}
    groups.log("t", [110, 210, 310])
    clock.pass_by(INTERVAL)
    refresh("groups")
    later = stored()
    assert (later.state, later.members, later.lag, read_partitions(later)) == ("Empty", None, 12, before)
    assert later.taken_at is not None
    assert row.read_at == later.read_at
    assert later.read_at != later.taken_at
    codes = {error["code"] for error in Collection.objects.latest("started_at").errors}
    assert codes == {CollectionErrorCode.GROUPS_NOT_DESCRIBED, CollectionErrorCode.SHARE_OFFSETS_NOT_READ}


def test_share_groups_alone_fail__consumer_groups_are_judged(groups: MemoryGroups, look: Look) -> None:
    def fail(call: str) -> None:
        if call == "share_offsets":
            raise KafkaUnreachable(KafkaErrorCode.NODE_TOO_SLOW, who="broker 2")

    groups.before_answer = fail
    groups.others = {"s-1": OtherGroup("s-1", "share", "Stable", True, 2, [])}
    groups.log("t", [100])
    groups.add("g", {"t": {0: 40}}, members={"reader": {"t": [0]}})

    assert look(10).worst == "stall"
    assert UnjudgedGroup.objects.get().read_at is None


def test_stalled_partition__open_transaction_that_holds_it_is_noted(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100, 100])
    groups.add("g", {"t": {0: 40, 1: 40}}, members={"reader": {"t": [0, 1]}})
    groups.transactions = {("t", 0): [OpenTransaction(11, 40, None)], ("t", 1): [OpenTransaction(12, 60, None)]}
    assert look(9).held == []
    assert "stable_spans" not in groups.calls, "nothing is judged yet"
    assert look().held == [["t", 0, 40, [11], ""]], "in the other one records can be read"
    groups.transactional = {11: "orders-tx"}
    assert look().held == [["t", 0, 40, [11], "orders-tx"]]
    groups.transactional = None
    assert look().held == [["t", 0, 40, [11], None]]

    def fail(call: str) -> None:
        if call == failing:
            raise KafkaUnreachable(KafkaErrorCode.NODE_TOO_SLOW, who="broker 2")

    groups.before_answer, failing = fail, "stable_spans"
    groups.transactions = {}
    assert look().held == [["t", 0, 40, [11], None]], "nobody told of anything else"
    failing = ""
    assert look().held == []
    groups.transactions = {("t", 1): [OpenTransaction(13, 30, None)]}
    failing = "open_transactions"
    assert look().held == [["t", 1, 30, None, None]]
    groups.all["g"].committed["t"] = {0: 100, 1: 100}
    assert look().held == []


def test_since_when_a_group_stalls__survives_a_coordinator_that_moves(groups: MemoryGroups, look: Look) -> None:
    groups.log("t", [100])
    groups.add("g", {"t": {0: 40}}, members={"c": {"t": [0]}})
    before = look(12)
    groups.unread = {"g"}
    for _ in range(7):
        assert look().taken_at == before.taken_at
    groups.unread = set()
    after = look()
    assert (after.worst, after.verdict_since) == ("stall", before.verdict_since)


PAGE = "/settings/clusters/demo/lag/"


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


@pytest.fixture
def client(admin: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(admin)


def test_one_query_answers_for_all_groups(demo: Cluster) -> None:
    allow_lag("somebody", demo, "nightly-*", "10,000")
    allow_lag("somebody", demo, "nightly-audit", "0")
    allow_lag("somebody", watched("other"), "*", "7")
    with CaptureQueriesContext(connection) as queries:
        found = allowed_for(demo.pk, ["nightly-a", "nightly-audit", "daily"])
    assert found == {"nightly-a": 10_000, "nightly-audit": 0, "daily": 0}
    assert len(queries) == 1


@pytest.mark.parametrize(
    ("typed", "records"),
    [
        ("0", 0),
        ("-0", 0),
        (" 12 ", 12),
        ("10,000", 10_000),
        ("10 000", 10_000),
        ("1_000_000", 10**6),
        ("1" + "0" * 12, 10**12),
    ],
)
def test_numbers_are_taken_as_people_write_them(demo: Cluster, typed: str, records: int) -> None:
    assert allow_lag("somebody", demo, "a", typed).records == records


def test_a_rule_is_made_changed_and_taken_away(demo: Cluster, client: Client) -> None:
    assert client.get(PAGE).context["rows"] == []
    for name in ("nightly-a", "nightly-b", "daily"):
        GroupState.objects.create(
            cluster=demo,
            key=key_of(name),
            name=name,
            state="Empty",
            rank=6,
            verdict_since=NOW,
            partitions=1,
            taken_at=NOW,
            first_seen_at=NOW,
        )
    assert client.post(PAGE, {"pattern": " nightly-* ", "records": "10,000"}).status_code == 302
    page = client.get(PAGE)
    assert page.context["rows"] == [RuleRow("nightly-*", 10_000, decides=2)]
    assert page.context["others"] == 1
    assert "nightly-* 10,000 2 groups" in text_of(page.content.decode())

    client.post(PAGE, {"pattern": "nightly-*", "records": "500"})
    client.post(PAGE, {"pattern": "nightly-*", "records": "500"})
    assert AllowedLag.objects.get().records == 500
    client.post(PAGE, {"do": "take", "pattern": "nightly-*"})
    assert not AllowedLag.objects.exists()
    events = AuditEvent.objects.filter(cluster="demo", action__startswith="allowed_lag.").order_by("pk")
    assert [(e.action, e.before, e.after) for e in events] == [
        ("allowed_lag.set", None, {"pattern": "nightly-*", "records": 10_000}),
        (
            "allowed_lag.set",
            {"pattern": "nightly-*", "records": 10_000},
            {"pattern": "nightly-*", "records": 500},
        ),
        ("allowed_lag.removed", {"pattern": "nightly-*", "records": 500}, None),
    ]


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        ({"records": "many"}, coded(ClusterErrorCode.LAG_UNREADABLE)),
        ({"records": "-1"}, coded(ClusterErrorCode.LAG_NEGATIVE)),
        ({"records": "1" + "0" * 12 + "1"}, coded(ClusterErrorCode.LAG_TOO_LARGE, most=10**12)),
        ({"records": "9" * 6000}, coded(ClusterErrorCode.LAG_TOO_LARGE, most=10**12)),
        ({"pattern": "  "}, coded(ClusterErrorCode.LAG_PATTERN_EMPTY)),
        ({"pattern": "x" * 1256}, coded(ClusterErrorCode.LAG_PATTERN_TOO_LONG, length=1256, most=255)),
        ({"pattern": "night\x00ly"}, coded(ClusterErrorCode.LAG_PATTERN_NOT_PRINTABLE, place=6)),
        ({"pattern": "a\u202eb"}, coded(ClusterErrorCode.LAG_PATTERN_NOT_PRINTABLE, place=2)),
    ],
)
def test_what_was_typed_stays_where_it_was_refused(
    demo: Cluster, client: Client, typed: dict[str, str], refusal: CodedMessage
) -> None:
    sent = {"pattern": "nightly-<b>", "records": "10,000", **typed}
    answer = client.post(PAGE, sent).content.decode()
    assert f'value="{escape(sent["records"])}"' in answer
    assert text_of(answer).count(str(refusal)) == 2  # at the top and at the field
    assert not AllowedLag.objects.exists()
    assert not AuditEvent.objects.filter(action__startswith="allowed_lag.").exists()


@pytest.mark.parametrize("pattern", ["weekly-*", "\x00"])
def test_a_rule_that_is_not_there__is_not_taken_away(demo: Cluster, client: Client, pattern: str) -> None:
    answer = client.post(PAGE, {"do": "take", "pattern": pattern}).content.decode()
    assert str(coded(ClusterErrorCode.LAG_RULE_GONE)) in text_of(answer)


def test_more_rules_than_fit__are_refused(demo: Cluster) -> None:
    AllowedLag.objects.bulk_create(AllowedLag(cluster=demo, pattern=f"n-{n}", records=5) for n in range(MOST_RULES))
    with pytest.raises(ClusterRefused) as refused:
        allow_lag("somebody", demo, "nightly", "5")
    assert str(refused.value) == message_text(ClusterErrorCode.LAG_TOO_MANY_RULES, cluster="demo", most=MOST_RULES)


def test_only_who_administers_may(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"pattern": "a", "records": "1"}).status_code == 403
    assert not AllowedLag.objects.exists()


def test_the_database_keeps_what_the_service_promises(demo: Cluster) -> None:
    AllowedLag.objects.create(cluster=demo, pattern="a", records=1)
    for pattern, records in (("a", 2), ("b", -1)):
        with pytest.raises(IntegrityError), transaction.atomic():
            AllowedLag.objects.create(cluster=demo, pattern=pattern, records=records)


def test_states_of_groups__that_change__are_events(groups: MemoryGroups, look: Look) -> None:
    groups.add("g", {"t": {0: 1}}, state="Stable")
    look()
    assert not ClusterEvent.objects.exists()
    groups.add("new", {"t": {0: 1}}, state="Stable")
    groups.all["g"].state = "Empty"
    look()
    del groups.all["new"]
    groups.all["g"].state = "Unknown"
    look()
    told = [(event.code, event.data["details"][0][:3]) for event in ClusterEvent.objects.order_by("pk")]
    assert told == [
        (EventCode.GROUPS_CHANGED, ["g", "Stable", "Empty"]),
        (EventCode.GROUPS_FOUND, ["new", "", "Stable"]),
        (EventCode.GROUPS_GONE, ["new", "Stable", ""]),
    ]
    assert not ClusterEvent.objects.filter(not_before=None).exists()

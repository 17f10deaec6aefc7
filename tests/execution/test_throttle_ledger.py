"""Whatever becomes of the calls of a run, and wherever its process dies: in the end all stands as it stood before.

What a run set and moves is shown as its own while it does, and as nobody's afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kafkadash.accounts.models import User
from kafkadash.core.messages import coded, message_reason
from kafkadash.execution.claims import reconcile_claims
from kafkadash.execution.engine.reasons import ThrottleNotRead
from kafkadash.execution.engine.step import Pair, StepThrottles
from kafkadash.execution.engine.throttle_ledger import BROKER_RATES, LedgerEvent, ThrottlePlace
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.execution.worker import throttle_ledger as throttle_reads
from kafkadash.execution.worker.snapshot import OTHERS_CLEAR
from kafkadash.execution.worker.throttle_ledger import _CODES, RunLedger
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ItemError,
    ResourceConfigs,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.throttles import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE, LISTS, throttled_replicas
from kafkadash.monitoring.models import (
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    ReassignmentSnapshot,
    StartedFrom,
    ThrottleState,
)
from tests.execution.ledger_run import (
    BROKERS,
    ConfigStore,
    Death,
    Fate,
    LedgerRun,
    as_client,
    broker,
    broker_away,
    pairs_of,
    topic,
)
from tests.execution.worlds import World
from tests.factories import ReassignmentFactory, ThrottleFactory

TOPICS = "ab"
PLACE = ThrottlePlace("broker", "3", LEADER_RATE)
OURS = [(partition, number) for partition in (0, 1) for number in BROKERS]

Before = dict[tuple[ConfigResource, str], str]
Wants = tuple[dict[str, set[Pair]], set[int], int]

before = st.fixed_dictionaries(
    {},
    optional={
        (topic("a"), LEADER_LIST): st.sampled_from(["", "*", "0:1", "7:1,0:2,8:2"]),
        (topic("a"), FOLLOWER_LIST): st.sampled_from(["", "9:9"]),
        (topic("b"), LEADER_LIST): st.sampled_from(["*", "7:7"]),
        (broker(1), LEADER_RATE): st.sampled_from(["10", "20", "77"]),
        (broker(2), FOLLOWER_RATE): st.sampled_from(["10", "88"]),
        (CLUSTER_DEFAULT, LEADER_RATE): st.sampled_from(["10", "99"]),
    },
)
wants = st.tuples(
    st.dictionaries(st.sampled_from(TOPICS), st.sets(st.sampled_from(OURS), min_size=1)),
    st.sets(st.sampled_from(BROKERS)),
    st.sampled_from([10, 20, 30]),
)
steps = st.tuples(
    st.none() | wants,
    st.sampled_from(Fate),
    st.sampled_from(Death),
    st.sets(st.sampled_from(BROKERS), max_size=1),
    st.booleans(),
)


def happens(run: LedgerRun, step: tuple[object, Fate, Death, set[int], bool]) -> None:
    """The last one: whether brokers show what stood there one step ago."""
    wanted, run.store.fate, death, run.store.away, late = step
    if isinstance(wanted, tuple):
        pairs, brokers, rate = wanted
        run.wants({name: pairs_of(own) for name, own in pairs.items()}, brokers, rate)
    run.store.shown = run.before if late else None
    run.before = dict(run.store.values)
    run.step(death)
    run.store.shown = None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=before, story=st.lists(steps, max_size=9), arrives=st.integers(0, 9))
def test_in_the_end_all_stands_as_before(before: Before, story: list[Any], arrives: int) -> None:
    run = LedgerRun(ConfigStore(dict(before)))
    for number, step in enumerate(story):
        happens(run, step)
        if number == arrives:
            run.store.arrive()
    run.store.fate, run.store.away = Fate.DONE, set()
    run.step()
    run.store.arrive()  # less than 30 s after it was sent, as its time limit says
    ledger = run.settle()
    assert run.store.values == before
    assert not ledger.throttles().pairs
    for calls in run.store.calls:
        for change in calls:
            everything = before.get((change.resource, change.key)) == "*"
            assert not everything, "a list of all replicas was touched"
            assert change.resource != CLUSTER_DEFAULT


@settings(max_examples=300, deadline=None)
@given(before=before, wanted=wants, then=wants)
def test_what_is_wanted_is_in_force_after_one_step(before: Before, wanted: Wants, then: Wants) -> None:
    run = LedgerRun(ConfigStore(dict(before)))
    for pairs, brokers, rate in (wanted, then):
        run.wants({name: pairs_of(own) for name, own in pairs.items()}, brokers, rate)
        run.step()
        for number in brokers:
            assert run.store.values[broker(number), LEADER_RATE] == run.store.values[broker(number), FOLLOWER_RATE]
            assert run.store.values[broker(number), LEADER_RATE] == str(rate)
        for name, own in pairs.items():
            for key in LISTS:
                listed = throttled_replicas(run.store.values[topic(name), key])
                assert all(listed.names(*pair) for pair in own)
        calls = len(run.store.calls)
        run.step()
        assert len(run.store.calls) == calls, "what is right is not called again"


foreign_pairs = st.tuples(st.sampled_from(TOPICS), st.sampled_from(LISTS), st.sampled_from(["50:1", "51:2"]))


SUBTRACTED_AGAIN: list[Any] = [
    (({"a": {(0, 1)}}, set(), 10), Death.NONE, None, False),
    (({}, set(), 10), Death.NONE, None, False),
    (None, Death.BEFORE_CLEARS, None, True),
    (None, Death.NONE, None, True),
]
"""A broker that is late shows pairs that were taken away; they are once more, and the process dies before it hears of
it: the list is set to '' unseen, as the next look is late too."""


@settings(max_examples=300, deadline=None)
@example(before={}, story=SUBTRACTED_AGAIN)
@given(
    before=before,
    story=st.lists(
        st.tuples(st.none() | wants, st.sampled_from(Death), st.none() | foreign_pairs, st.booleans()), max_size=8
    ),
)
def test_what_others_append_meanwhile_stays(before: Before, story: list[Any]) -> None:
    run = LedgerRun(ConfigStore(dict(before)))
    expected = dict(before)
    for wanted, death, theirs, late in story:
        happens(run, (wanted, Fate.DONE, death, set(), late))
        if theirs is not None:
            name, key, pair = theirs
            # Brokers that are late show it all the same: what is appended in the moment in which the emptied list is
            # deleted is lost, as Kafka compares nothing before it deletes.
            for values in (run.store.values, expected, run.before or {}):
                held = [part for part in values.get((topic(name), key), "").split(",") if part]
                if held != ["*"] and pair not in held:
                    values[topic(name), key] = ",".join([*held, pair])
    run.settle()
    assert run.store.values.keys() == expected.keys()
    for place, value in expected.items():
        assert throttled_replicas(run.store.values[place]) == throttled_replicas(value)
        if place[0].type is ConfigResourceType.BROKER:
            assert run.store.values[place] == value


@settings(max_examples=10, deadline=None)
@given(before=before, wanted=wants, seconds=st.integers(0, 40))
def test_what_kafkas_own_tool_removes_is_set_again_once_a_minute(before: Before, wanted: Wants, seconds: int) -> None:
    pairs, brokers, rate = wanted
    run = LedgerRun(ConfigStore(dict(before)))
    run.wants({name: pairs_of(own) for name, own in pairs.items()}, brokers, rate)
    run.step()
    again: defaultdict[object, list[datetime]] = defaultdict(list)
    for _ in range(70):
        for place in list(run.store.values):
            if place[0] != CLUSTER_DEFAULT:
                del run.store.values[place]
        calls = len(run.store.calls)
        run.step()
        changes = [change for call in run.store.calls[calls:] for change in call]
        assert all(change.operation in (ConfigOperation.SET, ConfigOperation.APPEND) for change in changes)
        for change in changes:
            again[change.resource, change.key].append(run.now)
    assert bool(again) == bool(pairs or brokers)
    for times in again.values():
        assert all((later - earlier).total_seconds() >= 60 for earlier, later in pairwise(times))


RATES_OF_OTHERS = {(broker(1), key): "4000000" for key in BROKER_RATES}


class StoreThatOthersChange(ConfigStore):
    """Others set their rates right after the first read of a broker."""

    def describe_configs(self, *args: Any, **kwargs: Any) -> ResourceConfigs:
        read = super().describe_configs(*args, **kwargs)
        self.values.update(RATES_OF_OTHERS)
        return read


def rate_run(store: ConfigStore) -> LedgerRun:
    run = LedgerRun(store)
    run.wants({}, {1}, 10_000_000)
    return run


def test_a_rate_that_others_set_right_before_ours_comes_back() -> None:
    run = rate_run(StoreThatOthersChange())
    run.step()
    assert run.store.calls == []
    run.settle()
    assert run.store.values == RATES_OF_OTHERS


def test_what_others_removed_is_set_again_only_after_a_second_look() -> None:
    run = rate_run(ConfigStore())
    run.step()
    run.now += timedelta(seconds=10)
    run.store.values.clear()
    run.step()
    assert run.store.values == {}
    run.store.values.update(RATES_OF_OTHERS)
    run.step()
    run.settle()
    assert run.store.values == RATES_OF_OTHERS


def test_a_rate_that_others_set_right_before_ours_is_cleared_stays() -> None:
    run = rate_run(ConfigStore())
    run.step()
    run.now += timedelta(seconds=10)
    run.store = StoreThatOthersChange(dict(run.store.values))
    run.settle()
    assert run.store.values == RATES_OF_OTHERS


def throttled() -> LedgerRun:
    run = LedgerRun()
    run.wants({}, (1, 3), 60_000_000)
    run.step()
    run.step()
    return run


def removed() -> LedgerRun:
    run = throttled()
    del run.store.values[broker(3), LEADER_RATE]
    return run


def replaced() -> LedgerRun:
    run = throttled()
    run.store.values[broker(3), LEADER_RATE] = "7"
    return run


def left() -> LedgerRun:
    run = replaced()
    wait(run)
    run.want = StepThrottles()
    return run


def late() -> LedgerRun:
    run = LedgerRun()
    run.store.fate = Fate.LATE
    run.wants({}, (3,), 60_000_000)
    run.step()
    run.store.fate, run.want = Fate.DONE, StepThrottles()
    wait(run)
    run.store.arrive()
    return run


def wait(run: LedgerRun) -> None:
    for _ in range(20):
        run.step()


@pytest.mark.parametrize(
    ("begin", "found"),
    [
        (removed, LedgerEvent.VANISHED),
        (replaced, LedgerEvent.FOREIGN),
        (left, LedgerEvent.LEFT),
        (late, LedgerEvent.LATE),
    ],
)
def test_what_others_did_to_a_throttle__is_found(begin: Callable[[], LedgerRun], found: LedgerEvent) -> None:
    run = begin()
    wait(run)
    assert found.value in run.found


@pytest.mark.parametrize("found", LedgerEvent)
def test_what_was_found__is_recorded_with_the_message_of_its_code(found: LedgerEvent) -> None:
    with mock.patch.object(RunLedger, "_record") as record:
        RunLedger(Execution(throttle=1), {})._tell(found, [PLACE])
    verb, said, _ = record.call_args.args
    assert (verb, said) == (found.value, coded(_CODES[found], places=PLACE.words))


def test_throttle_of_a_broker_that_is_away_or_refuses__is_not_readable() -> None:
    why = coded(KafkaErrorCode.NOT_IN_ANSWER, subject="Broker 3")
    client = mock.Mock(**{"describe_configs.return_value": ResourceConfigs({}, {broker(3): ItemError(why, -1)}, 0.0)})
    away = throttle_reads.read_places(client, [PLACE], set(), deadline=1)[PLACE]
    assert away.unreadable == broker_away(3)
    refused = throttle_reads.read_places(client, [PLACE], {3}, deadline=1)[PLACE]
    assert refused.unreadable == ThrottleNotRead(message_reason(why))


def found(world: World) -> None:
    """What the collectors find: every throttle that is set, and the first moves, none of which the run registered."""
    ReassignmentSnapshot.objects.all().delete()
    for resource, values in world.kafka.configs.items():
        for key, value in values.items():
            kind = "topic" if resource == ConfigResource.topic(resource.name) else "broker"
            ThrottleFactory.create(cluster=world.cluster, resource=kind, name=resource.name, key=key, value=value)
    for move in Move.objects.exclude(submitted_at=None):
        ReassignmentFactory.create(
            cluster=world.cluster,
            topic=move.topic,
            topic_id=move.topic_id,
            partition=move.partition,
            target=move.target,
            adding=[6],
            removing=[3],
        )


def test_ours_is_claimed_with_the_time_it_was_submitted(world: World, operator: User) -> None:
    change = world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    theirs = ThrottleFactory.create(cluster=world.cluster, name="9")
    reconcile_claims(world.cluster.pk, world.clock)
    ours = ThrottleState.objects.exclude(claimed_by="")
    assert ours.count() == ThrottleState.objects.count() - 1
    assert ours.filter(key=LEADER_RATE, claimed_by=f"#{change.pk}", claim_url=f"/changes/{change.pk}/").count() == 6
    assert ours.filter(key=LEADER_LIST).count() == 2
    theirs.refresh_from_db()
    assert (theirs.claimed_by, theirs.claimed_at) == ("", None)
    for row in ReassignmentSnapshot.objects.all():
        move = Move.objects.get(topic=row.topic, partition=row.partition)
        assert (row.claimed_by, row.started_from) == (f"#{change.pk}", StartedFrom.SUBMITTED)
        assert row.started_after == row.started_before == move.submitted_at
    assert ReassignmentSnapshot.objects.count() >= 1


def test_what_it_removed_is_said_to_be_so_until_it_is_read_again(world: World, operator: User) -> None:
    change = world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    ThrottleState.objects.update(read_at=world.clock)
    theirs = ThrottleFactory.create(cluster=world.cluster, name="9")
    reconcile_claims(world.cluster.pk, world.clock)
    world.until("done")
    reconcile_claims(world.cluster.pk, world.clock)
    removed = ThrottleState.objects.exclude(removed_at=None)
    assert set(removed.values_list("claimed_by", flat=True)) == {f"#{change.pk}"}
    assert removed.count() == ThrottleState.objects.count() - 1
    assert not removed.filter(pk=theirs.pk).exists()
    standing = removed.order_by("pk").last()
    assert standing is not None
    ThrottleState.objects.filter(pk=standing.pk).update(read_at=standing.removed_at)
    reconcile_claims(world.cluster.pk, world.clock)
    standing.refresh_from_db()
    assert (standing.claimed_by, standing.removed_at) == ("", None), "it stands there, so somebody else set it"


def test_a_run_that_sets_and_removes_throttles_has_configs_read_at_once(
    world: World, operator: User, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    def due() -> bool:
        found = CollectorRun.objects.filter(kind=CollectorKind.CONFIGS, next_at__lte=Now()).exists()
        CollectorRun.objects.update(next_at=Now() + timedelta(hours=1))
        return found

    due()
    world.queue(operator)
    with django_capture_on_commit_callbacks(execute=True):
        world.tick()
        world.tick()
    assert due()
    with django_capture_on_commit_callbacks(execute=True):
        world.until("done")
    assert due()


def test_when_it_has_ended_nothing_is_claimed_but_what_it_was(world: World, operator: User) -> None:
    change = world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    reconcile_claims(world.cluster.pk, world.clock)
    world.until("done")
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    ThrottleState.objects.update(unneeded_since=world.clock - timedelta(minutes=1), read_at=world.clock)
    ended = ReassignmentSnapshot.objects.order_by("pk").first()
    assert ended is not None
    ReassignmentSnapshot.objects.filter(pk=ended.pk).update(outcome=MoveOutcome.COMPLETED, ended_at=world.clock)
    reconcile_claims(world.cluster.pk, world.clock)
    assert not ThrottleState.objects.exclude(claimed_by="").exists()
    assert not ThrottleState.objects.filter(unneeded_since__isnull=False).exists(), "judged from here on"
    assert not ReassignmentSnapshot.objects.filter(outcome=MoveOutcome.RUNNING).exclude(claimed_by="").exists()
    ended.refresh_from_db()
    assert (ended.claimed_by, ended.started_from) == (f"#{change.pk}", StartedFrom.SUBMITTED)


def test_a_reassignment_to_another_target_is_not_ours(world: World, operator: User) -> None:
    world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    ReassignmentSnapshot.objects.update(target=[4, 5, 6])
    reconcile_claims(world.cluster.pk, world.clock)
    assert not ReassignmentSnapshot.objects.exclude(claimed_by="").exists()


def test_what_had_stood_there_before_just_the_same_is_not_ours(world: World, operator: User) -> None:
    change = world.queue(operator)
    rate = str(world.run().throttle)
    world.kafka.configs[ConfigResource.broker(6)] = {LEADER_RATE: rate}
    long_ago = world.clock - 2 * OTHERS_CLEAR
    read = ThrottleFactory.create(cluster=world.cluster, name="6", key=LEADER_RATE, value=rate, changed_at=long_ago)
    world.tick()
    world.tick()
    read.delete()
    found(world)
    reconcile_claims(world.cluster.pk, world.clock)
    same = ThrottleState.objects.get(name="6", key=LEADER_RATE)
    assert (same.value, same.claimed_by) == (rate, "")
    assert ThrottleState.objects.filter(name="6", claimed_by=f"#{change.pk}").count() == 1


def test_nothing_is_written_when_nothing_differs(
    world: World, operator: User, django_assert_num_queries: object
) -> None:
    world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    reconcile_claims(world.cluster.pk, world.clock)
    with django_assert_num_queries(6):  # type: ignore[operator]
        reconcile_claims(world.cluster.pk, world.clock)


def test_intents_that_are_not_committed__are_not_sent() -> None:
    ledger = RunLedger(Execution(throttle=1), {})
    ledger.prepare(as_client(ConfigStore()), {1}, datetime(2026, 11, 25, tzinfo=UTC), deadline=1)

    with pytest.raises(RuntimeError):
        ledger.send_limits(datetime(2026, 11, 25, tzinfo=UTC), deadline=1)

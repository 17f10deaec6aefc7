"""Whatever becomes of the calls of a run, and wherever its process dies: in the end all stands as it stood before."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kafkadash.domain.executor_throttles import Pair
from kafkadash.domain.ledger import BROKER_RATES
from kafkadash.domain.throttled_replicas import throttled_replicas
from kafkadash.domain.throttles import FOLLOWER_RATE, LEADER_RATE, LISTS
from kafkadash.kafka.changing import ConfigOperation
from kafkadash.kafka.port import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType, Configs
from tests.reassign.config_store import ConfigStore, Fate
from tests.reassign.ledger_run import BROKERS, FOLLOWER_LIST, LEADER_LIST, Death, LedgerRun, broker, pairs_of, topic

TOPICS = "ab"
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

    def describe_configs(self, *args: Any, **kwargs: Any) -> Configs:
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
